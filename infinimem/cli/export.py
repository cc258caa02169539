"""Taking a library out: `export`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infinimem.cli.filters import AsOf, KnownAt, Namespace, Since, Until, Where, filter_of, topic_ids
from infinimem.cli.progress import progress
from infinimem.cli.request import command_app, examples, open_library, wants_json
from infinimem.cli.show import count, shown
from infinimem.cli.talk import close_quietly, emit, say
from infinimem.errors import BadInput

if TYPE_CHECKING:
    from infinimem.exchange.export.run import Exported

app = command_app()


@app.command(
    epilog=examples(
        "infinimem export > memory.jsonl",
        "infinimem export --out memory.md --history",
        "infinimem export --out site --where source=Ines",
        "infinimem export --format md --as-of 2026-05-01",
    )
)
def export(
    ctx: typer.Context,
    format: Annotated[
        str, typer.Option(metavar="jsonl|md|html", help="By default as PATH says: .jsonl, .md, or a folder.")
    ] = "",
    out: Annotated[str, typer.Option(metavar="PATH", help="Where to; by default standard output.")] = "",
    history: Annotated[bool, typer.Option("--history", help="In md, what was replaced, too.")] = False,
    topic: Annotated[str, typer.Option(help="Only this topic.", autocompletion=topic_ids)] = "",
    where: Where = None,
    since: Since = "",
    until: Until = "",
    ns: Namespace = "",
    as_of: AsOf = "",
    known_at: KnownAt = "",
) -> int:
    """Write the library as JSON lines that restore it (jsonl), one document to read (md) or a site (html).

    `infinimem init DIR --from FILE.jsonl` loads JSON lines: into an empty library byte for byte, into another as new
    entries, once. What the setting `access` denies to `export` never goes out. Only an earlier export is ever
    overwritten. The exit code is 5 when a file could not be read.
    """
    if wants_json(ctx) and not out:
        raise BadInput("--json prints what was done; say with --out where the export goes")
    library = open_library(ctx)
    filter = replace(filter_of(where, since, until, ns, as_of, known_at, False), topic=topic)
    try:
        with progress() as show:
            done = library.export(format, out or None, filter=filter, history=history, progress=show)
    except BrokenPipeError:
        close_quietly()
        return 0
    if wants_json(ctx):
        emit(export_values(done))
    else:
        say_what(done)
    return 5 if done.left_out else 0


def export_values(done: Exported) -> dict[str, Any]:
    """What was done, as JSON has it."""
    names = "format out documents entries withheld size".split()
    left_out = [{"path": one.path, "line": one.line, "message": one.message} for one in done.left_out]
    return {**{name: getattr(done, name) for name in names}, "left_out": left_out}


def say_what(done: Exported) -> None:
    """What was done, in a line, and what was not."""
    for problem in done.left_out:
        say(shown(f"left out {problem}"))
    kept = f"; held back: {count(done.withheld, 'entry', 'entries')}" if done.withheld else ""
    if done.out:
        door = f"; open {shown(done.out)}/index.html" if done.format == "html" else ""
        say(f"exported {count(done.entries, 'entry', 'entries')} to {shown(done.out)}{door}{kept}")
    elif kept:
        say(kept.removeprefix("; "))
