"""Taking a library out: JSON lines that restore it, one document to read, a site of pages."""
