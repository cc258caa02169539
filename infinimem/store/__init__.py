"""The only file I/O: layout, locks, the buffer, evidence, transactions."""
