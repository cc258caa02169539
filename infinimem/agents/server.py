"""The MCP server: the tools for agents and the topics as resources, over standard input and output.

One process serves one client; any number of them may serve one library. Calls run in threads, so that a slow one does
not hold up the next. Everything is read from the files anew, and nothing is kept but the index.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import quote, unquote

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from infinimem import __version__
from infinimem.agents.tools import FOR_AGENTS, TOOLS, memory_for, run
from infinimem.errors import InfinimemError
from infinimem.library import Library
from infinimem.llm.prompts import fill, load_prompt
from infinimem.model import CURRENT, Filter, path_of
from infinimem.readers.lines import entry_line, flat
from infinimem.readers.memory import catalog, units_of
from infinimem.reading import read_page, resolve_topic
from infinimem.text.tokens import estimate

TOPICS = "infinimem://topics/"
PAGE = 200
"""Resources that one listing names."""
LONGEST_RESOURCE = 100_000
"""Characters of one resource."""
NAMED = 150
"""Tokens of topic names in the instructions."""
PATIENCE = 1.0
"""Seconds that the instructions wait for the index of a library that was never indexed."""
AT_WORK = "infinimem loads or indexes"
"""The name of threads that nobody waits for when the client goes."""
AT_ONCE = 4
"""Calls that run side by side; each in a thread with an index of its own."""

_Value = TypeVar("_Value")


def serve(library: Library) -> None:
    """Serve a library on standard input and output until the client closes them."""
    gc.freeze()  # the SDK's 300,000 objects stay anyway: looking through them made a search take 60 ms more
    anyio.run(serve_streams, library)
    if any(thread.name == AT_WORK and thread.is_alive() for thread in threading.enumerate()):
        # Python would stop these threads in the middle of other languages' code, which ends in an abort
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


async def serve_streams(library: Library) -> None:
    """Serve until standard input ends."""
    server = server_for(library)

    async def greeted(ctx: Any, params: types.NotificationParams | None) -> None:
        threading.Thread(target=load_the_rest, daemon=True, name=AT_WORK).start()

    server.add_notification_handler("notifications/initialized", types.NotificationParams, greeted)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def load_the_rest() -> None:
    """Load what only the first calls would, while the agent is still reading what tools there are."""
    from infinimem.consolidate import template  # noqa: F401
    from infinimem.grep import compile_pattern
    from infinimem.search.rank import Candidate, Statistics, read_question, score
    from infinimem.secrets import secrets_in

    score(read_question("ferry"), [Candidate(("ferri",))], Statistics(1, 1.0, {"ferri": 1}))
    compile_pattern("ferry")
    secrets_in("ferry")


def server_for(library: Library, filter: Filter = FOR_AGENTS) -> Server[Any]:
    """The server of a library, for whatever transport; nothing that does not pass the filter is shown."""
    slots = anyio.CapacityLimiter(AT_ONCE)

    async def apart(work: Callable[[], _Value]) -> _Value:
        return await anyio.to_thread.run_sync(work, limiter=slots)

    async def list_tools(ctx: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=definitions())

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        result = await apart(lambda: run(library, params.name, params.arguments, filter))
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=result.text)],
            structured_content=dict(result.values),
            is_error=result.is_fault,
        )

    async def list_resources(ctx: Any, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        return await answered(apart, lambda: resources(library, filter, params.cursor if params is not None else None))

    async def list_templates(
        ctx: Any, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(uri_template=TOPICS + "{id}", name="topic", mime_type="text/markdown")
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        return await answered(apart, lambda: resource(library, filter, params.uri))

    return Server(
        "infinimem",
        version=__version__,
        instructions=instructions(library, filter),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )


async def answered(apart: Callable[[Callable[[], _Value]], Awaitable[_Value]], work: Callable[[], _Value]) -> _Value:
    """What some work gives; an error of ours as one of the protocol, with its remedy."""
    try:
        return await apart(work)
    except InfinimemError as error:
        raise MCPError(types.INVALID_PARAMS, flat(str(error), 300)) from error


def definitions() -> list[types.Tool]:
    """The tools as the protocol has them."""
    return [
        types.Tool(
            name=one.tool.name,
            description=one.tool.about,
            input_schema=dict(one.tool.parameters),
            output_schema=dict(one.returns),
            annotations=types.ToolAnnotations(
                read_only_hint=one.only_reads,
                destructive_hint=False,
                idempotent_hint=one.repeatable,
                open_world_hint=False,
            ),
        )
        for one in TOOLS
    ]


# Instructions


def instructions(library: Library, filter: Filter) -> str:
    """How to use this library, how large it is and what it is about: at most some 600 tokens."""
    found: list[dict[str, str]] = []

    def look() -> None:
        found.append(about(library, filter))

    # A million entries that were never indexed take minutes: a client that waits so long for its start gives up.
    looking = threading.Thread(target=look, daemon=True, name=AT_WORK)
    looking.start()
    looking.join(PATIENCE)
    unknown = {"size": "The library is being indexed; the first call may take a while.", "topics": ""}
    return fill(load_prompt("agent"), found[0] if found else unknown).strip()


def about(library: Library, filter: Filter) -> dict[str, str]:
    """The size of a library and the names of its topics, the largest first."""
    now = library.status()
    size = f"{now.entries:,} entries in {now.topics + now.guests:,} documents"
    size += f", {now.buffered:,} wait in CURRENT" if now.buffered else ""
    rows = sorted(catalog(memory_for(library, filter)), key=lambda row: (-row.entries, row.topic))
    names: list[str] = []
    used = 0
    for row in rows:
        used += estimate(row.topic) + 1
        if used > NAMED:
            break
        names.append(flat(row.topic, 80))
    more = f", … ({len(rows) - len(names):,} more: `catalog`)" if len(names) < len(rows) else ""
    return {"size": f"{size}.", "topics": f"Documents: {', '.join(names)}{more}" if names else "It is empty so far."}


# Resources


def resources(library: Library, filter: Filter, cursor: str | None) -> types.ListResourcesResult:
    """CURRENT and the topics, by id, a page at a time."""
    rows = catalog(memory_for(library, filter))
    start = int(cursor) if cursor is not None and cursor.isdecimal() else 0
    page = [
        types.Resource(
            uri=uri_of(row.topic),
            name=row.topic,
            title=row.title or None,
            description=flat(row.summary, 240) or None,
            mime_type="text/markdown",
        )
        for row in rows[start : start + PAGE]
    ]
    if not start:
        page.insert(0, types.Resource(uri=uri_of(CURRENT), name=CURRENT, description="What was written last."))
    more = str(start + PAGE) if start + PAGE < len(rows) else None
    return types.ListResourcesResult(resources=page, next_cursor=more)


def uri_of(topic: str) -> str:
    """The address of a topic."""
    return TOPICS + quote(topic.encode("utf-8", "surrogateescape"), safe="/")


def resource(library: Library, filter: Filter, uri: str) -> types.ReadResourceResult:
    """A topic's document; where not everything may be seen, its entries that may. Raises `MCPError`."""
    topic = unquote(str(uri).removeprefix(TOPICS), errors="surrogateescape")
    memory = memory_for(library, filter)
    found = resolve_topic(memory.root, topic, memory.index.named_before) if str(uri).startswith(TOPICS) else None
    if found is None:
        raise MCPError(types.INVALID_PARAMS, f"there is no resource {uri}; list the resources, or call catalog")
    if memory.filter == Filter():
        lines: Sequence[str] = read_page(memory.root, found, 1, 0, "").lines
    else:
        lines = [entry_line(memory, unit) for unit in units_of(memory, path_of(found))]
    text = bounded(lines, found)
    safe = text.encode("utf-8", "backslashreplace").decode("utf-8")
    content = types.TextResourceContents(uri=str(uri), mime_type="text/markdown", text=safe)
    return types.ReadResourceResult(contents=[content])


def bounded(lines: Sequence[str], topic: str) -> str:
    """A document's lines, as many as a client should be sent at once; and how to see the others."""
    used = 0
    shown: list[str] = []
    for line in lines:
        used += len(line) + 1
        if used > LONGEST_RESOURCE and shown:
            more = f"({len(lines) - len(shown):,} more lines: read, topic={topic}, first={len(shown) + 1})"
            return "\n".join((*shown, "", more))
        shown.append(line if len(line) <= LONGEST_RESOURCE else f"{line[:LONGEST_RESOURCE]} … (cut)")
    return "\n".join(shown)
