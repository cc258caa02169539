"""From entries to plan steps: what a planner proposes, what the rules refuse, what applying does."""
