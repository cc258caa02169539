"""git, where the library lies in a work tree: set up, committed to, read for history, merged by entry."""
