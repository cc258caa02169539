"""How the library got here: `history`, and what changed: `diff`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infinimem.cli.filters import topic_ids
from infinimem.cli.request import command_app, examples, wants_json
from infinimem.cli.show import count, on_one_line, paint, paragraph, shown, table
from infinimem.cli.talk import emit, is_terminal, out, say

if TYPE_CHECKING:
    from infinimem.git.chronicle import Row
    from infinimem.git.compare import Difference
    from infinimem.git.history import Comparison
    from infinimem.library import Library

app = command_app()

MOST_PROSE = 3
"""Lines of prose that are shown of each document; --text shows all."""


# history


@app.command(
    epilog=examples(
        "infinimem history",
        "infinimem history maya-work -n 5",
        "infinimem history 12",
        "infinimem history maya-work --summary",
        "infinimem history maya-work --headings",
    )
)
def history(
    ctx: typer.Context,
    what: Annotated[
        str, typer.Argument(metavar="[TOPIC|SEQ]", help="Only a topic, or an entry.", autocompletion=topic_ids)
    ] = "",
    most: Annotated[int, typer.Option("-n", metavar="N", min=1, help="Show the newest N.")] = 20,
    summary: Annotated[
        bool, typer.Option("--summary", help="Of a topic: how its summary changed, newest first.")
    ] = False,
    headings: Annotated[
        bool, typer.Option("--headings", help="Of a topic: which headings came and went, newest first.")
    ] = False,
) -> int:
    """What happened, newest first: when, what, which topics and entries.

    From git where it keeps the library (a topic is followed through its renames), else from evidence, the topics' own
    logs and the undo journal. An entry's story is told from both. With --summary: what the topic's summary said, since
    when, and how far that is from its first version (0 the same, 1 no word in common); what git has is not looked at.
    """
    from infinimem.cli.progress import shown_library
    from infinimem.errors import BadInput

    library = shown_library(ctx)
    if summary and headings:
        raise BadInput("give one of --summary and --headings")
    if headings:
        return tell_headings(ctx, library, what, most)
    if summary:
        return tell_summaries(ctx, library, what, most)
    seq = seq_named(library, what)
    rows = library.history("" if seq else what, seq=seq, most=most)
    if wants_json(ctx):
        emit([row_values(row) for row in rows])
    else:
        print_rows(rows)
    if not rows:
        say(f"nothing is known of {what}" if what else "nothing has happened yet; what is in CURRENT waits for a flush")
    return 0 if rows else 1


def tell_summaries(ctx: typer.Context, library: Library, topic: str, most: int) -> int:
    """The versions of a topic's summary, newest first."""
    from infinimem.errors import BadInput

    if not topic:
        raise BadInput("name the topic: infinimem history TOPIC --summary")
    versions = library.summaries(topic)[::-1][:most]
    if wants_json(ctx):
        emit([
            {"at": one.at, "op": one.op, "by": one.by, "drift": round(one.drift, 4), "summary": one.text}
            for one in versions
        ])  # fmt: skip
        return 0
    lines = [(when(one.at), made(one.op, one.by), f"{one.drift:.2f}", on_one_line(one.text)) for one in versions]
    if is_terminal():
        table(lines, ("dim", "", ">yellow", ""))
    else:
        for line in lines:
            out("\t".join(line))
    return 0


def tell_headings(ctx: typer.Context, library: Library, topic: str, most: int) -> int:
    """The versions of a topic's headings, newest first: what came and what went."""
    from infinimem.errors import BadInput

    if not topic:
        raise BadInput("name the topic: infinimem history TOPIC --headings")
    versions = library.outlines(topic)[::-1][:most]
    if wants_json(ctx):
        emit([
            {"at": one.at, "op": one.op, "by": one.by, "headings": list(one.headings), "added": list(one.added),
             "removed": list(one.removed)}
            for one in versions
        ])  # fmt: skip
        return 0
    lines = []
    for one in versions:
        words = "; ".join([*(f"+ {name}" for name in one.added), *(f"- {name}" for name in one.removed)])
        lines.append((when(one.at), made(one.op, one.by), on_one_line(words or "in another order")))
    if is_terminal():
        table(lines, ("dim", "", ""))
    else:
        for line in lines:
            out("\t".join(line))
    return 0


def made(op: str, by: str) -> str:
    """`flush (model)`: what changed something, and who planned it."""
    return f"{op} ({by})" if by and by != op else op


def seq_named(library: Library, what: str) -> int:
    """The seq that a name means; 0 where it is a topic's."""
    digits = what.removeprefix("#")
    if not (digits.isascii() and digits.isdigit()):
        return 0
    is_topic = not what.startswith("#") and (library.root / "topics" / f"{what}.md").is_file()
    return 0 if is_topic else int(digits)


def row_values(row: Row) -> dict[str, Any]:
    """A row as JSON has it."""
    return {
        "at": row.at,
        "what": row.what,
        "topics": list(row.topics),
        "seqs": list(row.seqs),
        "retired": [{"seq": one.seq, "by": one.by, "why": one.why} for one in row.retired],
        "commit": row.commit,
        "author": row.author,
    }


def print_rows(rows: Sequence[Row]) -> None:
    """Columns on a terminal, tabs for a program."""
    from infinimem.text.signature import render_seqs

    lines = [
        (when(row.at), row.commit, on_one_line(row.what), " ".join(row.topics), render_seqs(row.seqs)) for row in rows
    ]
    if not is_terminal():
        for line in lines:
            out("\t".join(line))
        return
    cells = [(at, commit, what, topics, seqs) for at, commit, what, topics, seqs in lines]
    if not any(row.commit for row in rows):
        table([(at, *rest) for at, _, *rest in cells], ("dim", "", "cyan", "dim"), cutting=True)
    else:
        table(cells, ("dim", "yellow", "", "cyan", "dim"), cutting=True)


def when(at: str) -> str:
    """A timestamp to the minute, as it was noted."""
    return at[:16].replace("T", " ")


# diff


@app.command(
    epilog=examples(
        "infinimem diff", "infinimem diff 2026-05-01", "infinimem diff 2026-05-01 maya-work", "infinimem diff --text"
    )
)
def diff(
    ctx: typer.Context,
    since: Annotated[
        str, typer.Argument(metavar="[REV|DATE]", help="Since then; also A..B. By default the last commit.")
    ] = "",
    topic: Annotated[str, typer.Argument(metavar="[TOPIC]", help="Only this topic.", autocompletion=topic_ids)] = "",
    text: Annotated[bool, typer.Option("--text", help="As a unified diff of the files.")] = False,
) -> int:
    """What changed in memory, told by entry: added, moved, new words, replaced, deleted; and summaries and topics.

    Since the last commit; without git, since before the last flush, or by evidence since a date.
    """
    from infinimem.cli.progress import shown_library
    from infinimem.errors import BadInput

    library = shown_library(ctx)
    if since and not topic and is_topic(library, since):
        since, topic = "", since
    found = library.diff(since, topic)
    if text and not found.text and found.differences:
        raise BadInput("evidence alone has no older files to compare with; leave --text out, or use git")
    if wants_json(ctx):
        emit(diff_values(found, text=text))
    elif text:
        from infinimem.cli.flush import print_diff

        if found.text:
            print_diff(found.text)
    else:
        print_differences(found)
    if not found.differences:
        say(f"nothing changed since {found.label}")
    return 0


def is_topic(library: Library, name: str) -> bool:
    """Whether a single argument is a topic: a date never is one."""
    from infinimem.git.history import is_date
    from infinimem.model import CURRENT
    from infinimem.store.layout import TOPICS

    if is_date(name) or ".." in name or name.startswith("/"):
        return False
    return name == CURRENT or (library.root / TOPICS / f"{name}.md").is_file()


def diff_values(found: Comparison, *, text: bool) -> dict[str, Any]:
    """A comparison as JSON has it."""
    names = ("kind", "topic", "seqs", "text", "before", "source", "by", "why", "line")
    changes = [
        {name: list(one.seqs) if name == "seqs" else getattr(one, name) for name in names} for one in found.differences
    ]
    return {"since": found.label, "commit": found.commit, "changes": changes, "diff": found.text if text else ""}


def print_differences(found: Comparison) -> None:
    """The changes by topic, for a person."""
    topic = None
    for one in found.differences:
        if one.topic != topic:
            topic = one.topic
            out(paint(shown(topic or "in no topic any more"), "bold cyan"))
        for mark, colour, line in told(one):
            out(paint(paragraph(f"{mark} {line}", hang="  "), colour))
    if found.differences:
        say(f"{count(len(found.differences), 'change')} since {shown(found.label)}")


def told(one: Difference) -> Iterator[tuple[str, str, str]]:
    """A change as lines: a mark, a colour, the words."""
    from infinimem.text.signature import render_seqs

    name = f"{render_seqs(one.seqs)}  " if one.seqs else ""
    words = on_one_line(one.text)
    before = on_one_line(one.before)
    match one.kind:
        case "created":
            yield "*", "green", f"a new topic: {words}"
        case "removed":
            yield "*", "red", one.why or f"the topic is gone: {words}"
        case "renamed":
            yield "*", "", f"was called {one.source}"
        case "summary":
            yield "*", "", f"summary: {words}" if words else "summary: none any more"
        case "added":
            yield "+", "green", name + words
        case "moved":
            yield "+", "green", f"{name}{words}  (from {one.source})"
        case "joined":
            yield "~", "yellow", f"{name}{words}  (joined)"
        case "changed":
            yield "~", "yellow", f"{name}{words}  (was: {before})"
        case "marked":
            yield "~", "yellow", f"{name}{words or 'without'}  (was: {before or 'without'})"
        case "retired":
            by = f" {'of' if one.why == 'duplicate' else 'by'} {one.by}" if one.by else ""
            yield "-", "red", f"{name}{words}  ({one.why}{by})"
        case _:
            yield from prose_lines(one)


def prose_lines(one: Difference) -> Iterator[tuple[str, str, str]]:
    """The first lines of prose that came and went."""
    for mark, colour, text in (("+", "green", one.text), ("-", "red", one.before)):
        lines = text.split("\n") if text else []
        for line in lines[:MOST_PROSE]:
            yield mark, colour, f"prose: {line}"
        if len(lines) > MOST_PROSE:
            yield mark, colour, f"prose: {count(len(lines) - MOST_PROSE, 'more line')}"
