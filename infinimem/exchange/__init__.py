"""Bringing memory in from elsewhere, and taking it out."""
