"""What agents start: `mcp`."""

from __future__ import annotations

import gc
from typing import Any

import typer

from infinimem.cli.request import command_app, examples, request_of, wants_json
from infinimem.cli.talk import emit, say
from infinimem.errors import BadInput

app = command_app()


@app.command(epilog=examples("infinimem mcp < /dev/null", "infinimem mcp --json"))
def mcp(ctx: typer.Context) -> int:
    """Serve memory to an agent over the Model Context Protocol, on standard input and output, until they close.

    Started by the agent, not by hand: see docs/agents.md. With --json the tools are printed and nothing is served.
    Makes your own library if there is none.
    """
    if wants_json(ctx):
        emit(tool_values())
        return 0
    from infinimem.library import Library
    from infinimem.store.layout import find_library, is_library

    gc.disable()  # while the SDK makes its objects, a tenth of the time went into looking for some to throw away
    try:
        from infinimem.agents.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("mcp", "mcp_types", "anyio"):
            raise
        raise BadInput("`infinimem mcp` needs the MCP SDK; install it with: pip install 'infinimem[mcp]'") from error
    finally:
        gc.enable()
    root, _ = find_library(request_of(ctx).library or None, create=True)
    if not is_library(root):
        say(f"made a library in {root}")
    serve(Library.open(root, create=True, audience="mcp"))
    return 0


def tool_values() -> list[dict[str, Any]]:
    """The tools as JSON has them."""
    from infinimem.agents.tools import TOOLS

    return [
        {
            "name": one.tool.name,
            "description": one.tool.about,
            "parameters": dict(one.tool.parameters),
            "returns": dict(one.returns),
            "only_reads": one.only_reads,
        }
        for one in TOOLS
    ]
