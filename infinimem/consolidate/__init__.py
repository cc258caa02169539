"""Consolidation: from CURRENT into topic documents, and back; one function per pass. Importing this does nothing."""
