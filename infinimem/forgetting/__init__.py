"""Forgetting: an entry's words taken out of every file, and a search that proves it."""
