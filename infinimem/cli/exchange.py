"""Bringing memory in from elsewhere: `import`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infinimem.cli.request import command_app, examples, request_of, wants_json
from infinimem.cli.show import count, paint, shown
from infinimem.cli.talk import emit, out, say
from infinimem.errors import BadInput

if TYPE_CHECKING:
    from infinimem.exchange.run import Imported

app = command_app()

MOST_PROBLEMS = 20
"""Problems and files that are named one by one; `--json` names all."""


@app.command(
    "import",
    epilog=examples(
        "printf 'Ines: The bus is late.\\nMaya: Again?\\nInes: Again.\\n' > bus.txt; infinimem import bus.txt",
        "infinimem import topics --from notes --dry-run",
    ),
)
def import_(
    ctx: typer.Context,
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files, zip archives or folders.")],
    form: Annotated[
        str, typer.Option("--from", metavar="FORMAT", help="The format, where the content does not tell it.")
    ] = "",
    branches: Annotated[
        bool, typer.Option("--branches", help="Also what an edit or a new answer took out of sight.")
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Also what was here and was forgotten.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and count everything; write nothing.")] = False,
    extract: Annotated[
        bool, typer.Option("--extract", help="Have a model also take the facts out, each linked to its source.")
    ] = False,
    flush: Annotated[bool, typer.Option("--flush", help="Sort what comes in into topics on the way.")] = False,
) -> int:
    """Bring in chats, sessions and notes from elsewhere, word for word.

    Formats, told by content: infinimem's own export, ChatGPT's and Claude's (the zip as it is), Claude Code and Codex
    sessions, Telegram, Slack, mem0, the MCP memory server, Markdown notes (Obsidian, Logseq), chat logs (WhatsApp),
    LoCoMo, LongMemEval, the paper's own package.

    What was imported before is known again, so a second run adds only what is new. The exit code is 5 when something
    could not be read; each such place is listed. With --extract it is 4 when the model failed: the words are there, and
    the same command asks about what has no facts yet.
    """
    from infinimem.cli.progress import progress
    from infinimem.library import NO_MODEL_TO_EXTRACT, Library
    from infinimem.store.layout import find_library, is_library

    root, _ = find_library(request_of(ctx).library or None, create=True)
    made = not is_library(root)
    places = [Path(path) for path in paths]
    if extract and not has_model(None if made else root):
        raise BadInput(NO_MODEL_TO_EXTRACT)
    with progress() as show:
        if made:  # first see that there is something to read: a slip of the finger makes no library
            done = Library(root).import_(places, form=form, branches=branches, again=again, dry_run=True, progress=show)
        if not made or not (dry_run or done.added == 0):
            library = Library.open(root, create=made, audience=os.environ.get("INFINIMEM_AUDIENCE", ""))
            done = library.import_(
                places,
                form=form,
                branches=branches,
                again=again,
                dry_run=dry_run,
                extract=extract,
                flush=flush,
                progress=show,
            )
    made = made and is_library(root)
    if wants_json(ctx):
        emit(imported_values(done, dry_run, root, made))
    else:
        report(done, dry_run)
    if made:
        say(f"made a new library; stored in {root}")
    return done.exit_code


def has_model(root: Path | None) -> bool:
    """Whether a model is configured."""
    from infinimem.config import load_settings
    from infinimem.llm.connect import is_configured

    return is_configured(load_settings(root))


def imported_values(done: Imported, dry_run: bool, root: Path, made: bool) -> dict[str, Any]:
    """An import as JSON has it."""
    from infinimem.exchange.run import seqs_text
    from infinimem.text.signature import render_seqs

    return {
        "dry_run": dry_run,
        "messages": done.messages,
        "added": done.added,
        "known": done.known,
        "conversations": done.conversations,
        "attached": done.attached,
        "file_texts": done.file_texts,
        "edited": done.edited,
        "gone": [{"name": name, "seqs": render_seqs(seqs)} for name, seqs in done.gone],
        "seqs": seqs_text(done.ranges),
        "sources": done.sources,
        "skipped": done.skipped,
        "problems": [{"place": one.place, "why": one.why} for one in done.problems],
        "files": [
            {
                "name": one.name, "format": one.format, "added": one.added, "known": one.known,
                "skipped": one.skipped, "problems": one.unread,
            }
            for one in done.files
        ],
        "others": list(done.others),
        "notes": list(done.notes),
        "library": str(root),
        "created": made,
        **facts_values(done),
        **flushed_values(done),
    }  # fmt: skip


def facts_values(done: Imported) -> dict[str, Any]:
    """What a model took out, as `write --extract` prints it; what was refused under a name of its own."""
    from infinimem.cli.write import extracted_values

    if done.extracted is None:
        return {}
    values = extracted_values(done.extracted)
    return {"extracted": values["extracted"], "refused": values["skipped"], "dates": values["notes"],
            "failures": values["failures"], "usage": values["usage"]}  # fmt: skip


def flushed_values(done: Imported) -> dict[str, Any]:
    """What flushes on the way did, as `flush` prints it."""
    from infinimem.cli.flush import values_of

    return {} if done.flushed is None else {"flush": values_of(done.flushed, dry_run=False)}


def report(done: Imported, dry_run: bool) -> None:
    """What came in by speaker, what did not by kind; what could not be read one by one."""
    from infinimem.exchange.run import FORGOTTEN, seqs_text
    from infinimem.text.signature import render_seqs

    kinds = list(dict.fromkeys(one.format for one in done.files))
    where = done.files[0].name if len(done.files) == 1 else count(len(done.files), "file")
    verb = "would import" if dry_run else "imported"
    several = len(done.ranges) > 3  # others wrote meanwhile
    runs = f"{done.ranges[0][0]}…{done.ranges[-1][1]}" if several else seqs_text(done.ranges)
    seqs = f" (seq {runs})" if runs else ""
    read = f" from {shown(where)} ({', '.join(kinds)})" if kinds else ""
    out(f"{verb} {paint(count(done.added, 'entry', 'entries'), 'bold')}{seqs}{read}")
    if done.sources:
        out(f"  by {shown(listed(done.sources))}")
    if done.attached:
        texts = f"; the text of {done.file_texts:,} as entries of their own" if done.file_texts else ""
        out(f"  {count(done.attached, 'file or picture', 'files and pictures')} named in them{texts}")
    if done.known:
        out(f"  {done.known:,} already in memory")
    if done.edited:
        out(f"  {done.edited:,} edited since; a flush puts them in the place of the old words, which evidence keeps")
    skipped = {kind: number for kind, number in done.skipped.items() if kind != FORGOTTEN}
    if skipped:
        out(f"  {sum(skipped.values()):,} left out: {listed(skipped)}")
    if done.skipped.get(FORGOTTEN):
        out(f"  {done.skipped[FORGOTTEN]:,} {FORGOTTEN}, left out (--again to take them)")
    if done.problems:
        out(f"  {len(done.problems):,} could not be read")
    if done.extracted is not None:
        refused = len(done.extracted.refused)
        out(f"  {count(len(done.extracted.facts), 'fact')} taken out by the model, {refused:,} refused")
        if done.extracted.failures:
            say(shown(f"the model failed; the words are written: {' '.join(done.extracted.failures[0].split())}"))
    if done.flushed is not None:
        topics = len(done.flushed.created) + len(done.flushed.changed)
        out(f"  {count(len(done.flushed.seqs), 'entry', 'entries')} sorted into {count(topics, 'topic')}")
        for note in [*done.flushed.failures[:1], *done.flushed.notes[:MOST_PROBLEMS]]:
            say(shown(note))
    for name, gone in done.gone[:MOST_PROBLEMS]:
        say(shown(f"{name} no longer says seq {render_seqs(gone)}; memory keeps it: infinimem trace {gone[0]}"))
    for one in done.problems[:MOST_PROBLEMS]:
        say(shown(f"{one.place}: {one.why}"))
    for note in done.notes[:MOST_PROBLEMS]:
        say(shown(note))
    say_others(done.others)
    listed_ones = (len(done.problems), len(done.notes), len(done.gone))
    hidden = sum(max(0, number - MOST_PROBLEMS) for number in listed_ones)
    if hidden:
        say(f"and {hidden:,} more; all of them: the same command with --dry-run --json")
    if done.added and not dry_run and done.flushed is None:
        say("next: infinimem flush sorts them into topics; ask and search find them already")


def say_others(others: Sequence[str]) -> None:
    """Which files were left alone: what comes with an export by what it holds, and the unknown."""
    from infinimem.exchange.formats import beside

    known = [f"{name.rpartition(': ')[2]} ({beside(name)})" for name in others if beside(name)]
    unknown = [name for name in others if not beside(name)]
    if known:
        say(shown(f"left alone: {', '.join(known)}"))
    if unknown:
        more = "" if len(unknown) <= 5 else f" and {len(unknown) - 5:,} more"
        say(shown(f"no messages of a known format in {', '.join(unknown[:5])}{more}"))


def listed(counts: dict[str, int]) -> str:
    """`user 12, AI 11`, most first; the small ones of many together."""
    rows = sorted(counts.items(), key=lambda row: -row[1])
    words = [f"{name or 'nobody named'} {number:,}" for name, number in rows[:8]]
    rest = sum(number for _, number in rows[8:])
    return ", ".join([*words, f"others {rest:,}"] if rest else words)
