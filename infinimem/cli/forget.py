"""Erasing for good: `forget`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infinimem.cli.filters import Where
from infinimem.cli.request import command_app, examples, open_library, pair_of, seqs_of, wants_json
from infinimem.cli.show import count, on_one_line, paint, shown
from infinimem.cli.talk import emit, flush, is_terminal, out, say
from infinimem.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from infinimem.fleet.forget import Below
    from infinimem.fleet.search import Trouble
    from infinimem.forgetting.forget import Forgotten
    from infinimem.forgetting.history import History
    from infinimem.library import Library

app = command_app()

SHOWN = 10
"""Files that are no text which are named; `--json` names them all."""
COMMANDS = 4
"""Commands that rewrite a history in which no file was named after what is gone."""


@app.command(
    epilog=examples(
        "infinimem forget 43 --dry-run",
        "infinimem forget 43 --yes",
        "infinimem forget --where source=Ines --dry-run",
        "infinimem forget --root . --pattern 'Nord\\w+' --dry-run",
        "infinimem forget --pattern 'Nord\\w+' --copies --yes",
    )
)
def forget(
    ctx: typer.Context,
    seqs: Annotated[
        list[str] | None, typer.Argument(metavar="[SEQ]...", help="An entry's number; also 12-15+18.")
    ] = None,
    where: Where = None,
    pattern: Annotated[str, typer.Option(metavar="REGEX", help="Entries whose words match (RE2 syntax).")] = "",
    ignore_case: Annotated[bool, typer.Option("--ignore-case", "-i", help="Upper and lower case alike.")] = False,
    copies: Annotated[bool, typer.Option("--copies", help="Entries that repeat or quote them, too.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go; change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    root: Annotated[str, typer.Option(metavar="DIR", help="In every library below a folder.")] = "",
) -> int:
    """Erase entries for good: their words in every file of the library, what was made from them, what points to them.

    It cannot be undone. Afterwards every file is searched; what still holds the words is listed by file and line,
    what is no text and may hold them by name, and the exit code is 5. Evidence keeps that the number was forgotten,
    and when. With --root a library in which it cannot be done is named, and makes the exit code 5.
    """
    asked: dict[str, Any] = {
        "where": dict(pair_of(text, "--where") for text in where or ()),
        "pattern": pattern,
        "ignore_case": ignore_case,
        "copies": copies,
    }
    if root:
        if seqs:
            raise BadInput("a number is one library's: use -L DIR, or say --where or --pattern for all below --root")
        return forget_root(ctx, root, asked, dry_run=dry_run, yes=yes)
    library = open_library(ctx)
    asked["seqs"] = seqs_of(seqs or [])
    if not (seqs or where or pattern):
        raise BadInput("say what to forget: a seq such as 12, --where source=Ines, or --pattern 'Nordlys'")
    if not dry_run and not yes and not agreed(library, asked):
        return 1
    report = library.forget(**asked, dry_run=dry_run)
    if wants_json(ctx):
        emit(values_of(report))
    elif dry_run:
        tell_plan(report)
        if report.seqs:
            number = count(len(report.seqs), "entry", "entries")
            say(f"nothing was changed; with --yes instead of --dry-run {number} would be gone for good")
    else:
        tell(report)
    return report.exit_code


def forget_root(ctx: typer.Context, root: str, asked: dict[str, Any], *, dry_run: bool, yes: bool) -> int:
    """Forget in every library below a folder, and tell what became of each that holds what is meant.

    The exit code is 1 where no entry is meant, 5 where something was left undone or still holds the words.
    """
    from infinimem.cli.find import NO_LIBRARY, root_folder, tell_troubles

    folder = root_folder(root)
    if not dry_run and not yes and not agreed_below(folder, asked):
        return 1
    done = done_below(folder, asked, dry_run=dry_run)
    troubles = tuple(trouble_of(one) for one in done if one.why)
    meant = [one for one in done if one.report.seqs]
    entries = sum(len(one.report.seqs) for one in meant)
    if wants_json(ctx):
        emit(
            {
                "root": str(folder),
                "searched": len(done) - len(troubles),
                "entries": entries,
                "libraries": [{"library": one.path, **values_of(one.report)} for one in meant],
                "troubles": [{"path": one.path, "why": one.why} for one in troubles],
            }
        )
    else:
        tell_below(folder, meant)
        what = "would be forgotten" if dry_run else "forgotten"
        number = count(len(done), "library", "libraries")
        out(f"{number} below {shown(str(folder))}: {count(entries, 'entry', 'entries')} {what} in {len(meant):,}")
        tell_troubles(troubles)
        if dry_run and meant:
            say("nothing was changed; with --yes instead of --dry-run they would be gone for good")
    if not done:
        say(NO_LIBRARY.format(folder=shown(str(folder))))
    if troubles or any(one.report.exit_code == 5 for one in meant if not dry_run):
        return 5
    return 0 if meant else 1


def done_below(folder: Path, asked: dict[str, Any], *, dry_run: bool) -> list[Below]:
    """What became of every library below a folder, by path."""
    import os

    from infinimem.cli.progress import libraries_to_show, progress
    from infinimem.fleet.forget import forget_below

    done: list[Below] = []
    try:
        with progress() as show:
            total = libraries_to_show(folder)
            audience = os.environ.get("INFINIMEM_AUDIENCE", "")
            verb = "looking" if dry_run else "forgetting"
            done.extend(
                forget_below(
                    folder,
                    **asked,
                    dry_run=dry_run,
                    audience=audience,
                    progress=lambda number: show(verb, number, total),
                )
            )
    except KeyboardInterrupt:
        if not dry_run:
            say("interrupted: the libraries at work are finished; run it again for the rest")
        raise
    return sorted(done, key=lambda one: one.path)


def agreed_below(folder: Path, asked: dict[str, Any]) -> bool:
    """Whether a person who has seen what would go in all of them wants it gone."""
    from infinimem.cli.find import tell_troubles

    refuse_unasked()
    done = done_below(folder, asked, dry_run=True)
    meant = [one for one in done if one.report.seqs]
    tell_below(folder, meant)
    tell_troubles([trouble_of(one) for one in done if one.why])
    if not meant:
        say("no entry is meant; nothing to forget")
        return False
    entries = sum(len(one.report.seqs) for one in meant)
    libraries = count(len(meant), "library", "libraries")
    return says_yes(f"Forget {count(entries, 'entry', 'entries')} in {libraries} for good? [y/N] ")


def trouble_of(one: Below) -> Trouble:
    """Why nothing was forgotten in a library."""
    from infinimem.fleet.search import Trouble

    return Trouble(one.path, one.why)


def tell_below(folder: Path, meant: Sequence[Below]) -> None:
    """What became of each library, below its name."""
    import os

    for one in meant:
        out(paint(shown(os.path.relpath(one.path, folder)), "bold cyan"))
        (tell_plan if one.report.dry_run else tell)(one.report)


def agreed(library: Library, asked: dict[str, Any]) -> bool:
    """Whether a person who has seen what would go wants it gone."""
    refuse_unasked()
    report = library.forget(**asked, dry_run=True)
    tell_plan(report)
    if not report.seqs:
        return False
    return says_yes("Forget for good? [y/N] ")


def refuse_unasked() -> None:
    """Raise `BadInput` where nobody can be asked."""
    if not (is_terminal() and is_terminal(sys.stdin)):
        raise BadInput("this cannot be undone, so nothing was forgotten; look with --dry-run, then say --yes")


def says_yes(question: str) -> bool:
    """What a person answers."""
    out(question, end="")
    flush(sys.stdout)
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def values_of(report: Forgotten) -> dict[str, Any]:
    """A report as JSON has it."""
    history = report.history
    return {
        "seqs": list(report.seqs),
        "at": report.at,
        "dry_run": report.dry_run,
        "texts": [{"seq": seq, "text": text} for seq, text in report.texts],
        "changed": list(report.changed),
        "removed": list(report.removed),
        "renamed": [{"old": old, "new": new} for old, new in report.renamed],
        "erased": list(report.erased),
        "copies": [{"seq": copy.seq, "path": copy.path, "line": copy.line, "why": copy.why} for copy in report.copies],
        "searched": report.searched,
        "remains": [{"path": one.path, "line": one.line, "what": one.what} for one in report.remains],
        "unread": list(report.unread),
        "media": list(report.media),
        "notes": list(report.notes),
        "git": {
            "repository": history.repository,
            "versions": history.versions,
            "paths": list(history.paths),
            "messages": history.messages,
            "commands": list(history.commands),
        },
    }


def tell_plan(report: Forgotten) -> None:
    """What would be forgotten, and what changes with it."""
    if not report.seqs:
        say("no entry is meant; nothing to forget")
        return
    for seq, text in report.texts:
        out(f"{paint(str(seq), 'bold')}\t{shown(on_one_line(text))}")
    tell_files(report)
    tell_copies(report)
    for one in report.remains:
        say(f"{shown(one.path)} stays as it is: {shown(one.what)}")


def tell(report: Forgotten) -> None:
    """What was forgotten, and what the search afterwards found."""
    from infinimem.text.signature import render_seqs

    if not report.seqs:
        say("no entry is meant; nothing was forgotten")
        return
    number = count(len(report.seqs), "entry", "entries")
    out(paint(f"forgot {number}: {render_seqs(report.seqs)}", "bold"))
    tell_files(report)
    tell_copies(report)
    for note in report.notes:
        say(note)
    searched = f"searched {count(report.searched, 'file')}"
    if report.remains:
        out(f"{searched}; {count(len(report.remains), 'place still holds', 'places still hold')} their words:")
        for one in report.remains:
            place = f"{one.path}:{one.line}" if one.line else one.path
            out(f"  {paint(shown(place), 'cyan')}: {shown(on_one_line(one.what))}")
    else:
        out(f"{searched}: none{' of those that are text' * bool(report.unread or report.media)} holds their words")
    if report.unread:
        number = count(len(report.unread), "place is", "places are")
        named = first(report.unread)
        say(f"{number} no text (UTF-8), or cannot be read, and may hold them; look there yourself: {named}")
    if report.media:
        number = count(len(report.media), "picture, sound or film", "pictures, sounds or films")
        say(f"{number} may show them: {first(report.media)}")
    tell_history(report.history)


def first(paths: Sequence[str]) -> str:
    """The first paths, and how many more there are."""
    return shown(", ".join(paths[:SHOWN])) + f" and {len(paths) - SHOWN:,} more" * (len(paths) > SHOWN)


def tell_files(report: Forgotten) -> None:
    """The files that change."""
    for path in report.changed:
        out(f"  {paint(shown(path), 'cyan')}  changed")
    for path in report.removed:
        out(f"  {paint(shown(path), 'cyan')}  {paint('removed', 'red')}")
    for old, new in report.renamed:
        out(f"  {paint(shown(old), 'cyan')}  renamed to {paint(shown(new), 'cyan')}")
    for what in report.erased:
        out(f"  {paint(shown(what), 'cyan')}  {paint('erased', 'red')}")


def tell_copies(report: Forgotten) -> None:
    """Other entries that say the same."""
    for copy in report.copies:
        say(f"{copy.seq} [{shown(copy.path)}:{copy.line}] stays: {copy.why}")
    if report.copies:
        say("to forget these too, say --copies, or forget them by number")


def tell_history(history: History) -> None:
    """What git still holds, and how to rewrite that."""
    if not history.repository:
        return
    if not history.versions and not history.messages:
        say(f"no commit of {history.repository} holds their words; other clones may")
        return
    versions = "a history too large to search" if history.versions < 0 else count(history.versions, "version")
    of = f" of {', '.join(map(shown, history.paths))}" if history.paths else ""
    told = f" and {count(history.messages, 'commit message')}" if history.messages else ""
    say(f"git still holds them: {versions}{of}{told} in {history.repository}. To rewrite that, in bash or zsh:")
    for command in history.commands:
        out(f"  $ {command}")
    say("after words=$(cat) type what is to go, one text a line, and end with Ctrl-D; it is stored nowhere")
    if len(history.commands) > COMMANDS:
        say("where a file was named after it, type the old paths at the second filter-repo")
    say("every other clone, fork and backup has to be rewritten or deleted, too; see: git filter-repo --help")
