"""Readers: from a question to evidence with a model's help, and to an answer that cites it."""
