"""What an audience may see: a view of the library without the rest, in which all of its reading takes place.

Rules (`access` in the settings) say which entries an audience, such as agents over MCP, is never shown. They are kept
below every tool: whoever reads for an audience reads a second folder, `.infinimem/views/NAME`, with the library's files
less those entries and the words that only they say. Lines keep their numbers. No reader, index, search or export that
works on that folder can get round the rules, for what they forbid is not there.
"""
