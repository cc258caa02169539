"""For agents of others: the tools they call, the MCP server, and the memory tool of Anthropic's API."""
