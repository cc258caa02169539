"""Memory that evolves: review of edits, what held when, links learned from use, how faithful summaries are."""
