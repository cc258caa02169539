"""Many libraries below one folder, one for each agent or user: what is done to all of them, none by another's fault."""
