"""What is said to a model, and how it is reached."""
