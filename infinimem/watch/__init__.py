"""Watching a library: saves checked and signed as they happen, the index warm, flushes when due."""
