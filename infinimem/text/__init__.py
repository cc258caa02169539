"""The format, pure: lines, signatures, front matter, documents, tokens, words. Nothing here touches a file."""
