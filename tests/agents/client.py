"""A client of the MCP server: the SDK's own, talking to the real process."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
from mcp import ClientSession, StdioServerParameters, stdio_client

_Value = TypeVar("_Value")
HERE = Path(__file__).resolve().parent.parent.parent


@asynccontextmanager
async def session_of(root: Path | None, **environment: str) -> AsyncIterator[tuple[ClientSession, Any]]:
    """A session with `infinimem mcp`, and what the server said of itself."""
    chosen = ["-L", str(root)] if root is not None else []
    arguments = ["-m", "infinimem", *chosen, "mcp"]
    server = StdioServerParameters(command=sys.executable, args=arguments, env=environment or None, cwd=HERE)
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        yield session, await session.initialize()


def with_session(root: Path | None, work: Callable[[ClientSession, Any], Awaitable[_Value]], **more: str) -> _Value:
    """What some work with a session gives."""

    async def whole() -> _Value:
        async with session_of(root, **more) as (session, said):
            return await work(session, said)

    return anyio.run(whole)


async def call(session: ClientSession, name: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    """The text and the values of a call that has to succeed."""
    result = await session.call_tool(name, arguments)
    [content] = result.content
    assert not result.is_error, content
    assert content.type == "text"
    assert isinstance(result.structured_content, dict)
    return content.text, result.structured_content
