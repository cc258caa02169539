"""Finding entries again: the persisted index and the ranking. Importing this does nothing."""
