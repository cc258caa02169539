"""What git calls, and what shows a library's history: `merge-driver`."""

from __future__ import annotations

from typing import Annotated

import typer

from infinimem.cli.request import command_app, examples, wants_json
from infinimem.cli.talk import emit, say

app = command_app()


@app.command(
    "merge-driver", epilog=examples("touch base ours theirs; infinimem merge-driver base ours theirs topics/travel.md")
)
def merge_driver(
    ctx: typer.Context,
    base: Annotated[str, typer.Argument(metavar="BASE", help="What both come from (%O).")],
    ours: Annotated[str, typer.Argument(metavar="OURS", help="Our version; the result is written here (%A).")],
    theirs: Annotated[str, typer.Argument(metavar="THEIRS", help="Their version (%B).")],
    path: Annotated[str, typer.Argument(metavar="[PATH]", help="The file's name in the repository (%P).")] = "",
) -> int:
    """Merge one file of a library by entry, as git asks for it; `infinimem init --git` sets that up.

    The exit code is 1 when a person has to decide: between git's markers, in that place alone.
    """
    from pathlib import Path

    from infinimem.git.driver import merge_files

    conflicts = merge_files(Path(base), Path(ours), Path(theirs), path or ours)
    if wants_json(ctx):
        emit({"path": path or ours, "conflicts": conflicts})
    elif conflicts:
        say(f"{path or ours}: {conflicts} place{'s' * (conflicts != 1)} to decide, between the markers")
    return 1 if conflicts else 0
