"""Caring for a library: `init`, `check`, `recover`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from infinimem.cli.filters import DryRun
from infinimem.cli.request import command_app, examples, open_library, request_of, seqs_of, wants_json
from infinimem.cli.show import count, paint, place_of, shown
from infinimem.cli.talk import emit, out, say

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from infinimem.check import Finding
    from infinimem.evolve.interpretation import Strayed
    from infinimem.exchange.export.load import Loaded

app = command_app()

MOST_STRAYED = 3
"""Pages that a note on strayed summaries names."""


@app.command(epilog=examples("infinimem init", "infinimem init notes", "infinimem init notes --git"))
def init(
    ctx: typer.Context,
    folder: Annotated[str, typer.Argument(metavar="[DIR]", help="Where; by default -L, else this folder.")] = "",
    git: Annotated[
        bool, typer.Option("--git", help="Have git keep it, and merge it by entry; also in a clone that exists.")
    ] = False,
    commit: Annotated[
        bool, typer.Option("--commit", help="With --git: every flush is a commit (the setting git.commit).")
    ] = False,
    exported: Annotated[str, typer.Option("--from", metavar="FILE", help="Load what `export` wrote there.")] = "",
) -> int:
    """Make a library in a folder; harmless on an existing one.

    With --git the folder becomes a repository unless it lies in one, and the clone learns how memory is merged, which
    git does not clone. Only this repository's own configuration is touched. With --from it gets what another one was
    exported as: an empty one byte for byte, another as new entries, once.
    """
    from pathlib import Path

    from infinimem.errors import BadInput
    from infinimem.store.layout import create_library, is_library

    if commit and not git:
        raise BadInput("--commit goes with --git: infinimem init --git --commit")
    root = Path(folder or request_of(ctx).library or ".").expanduser().absolute()
    made = not is_library(root) if exported else create_library(root)
    loaded = load_export(root, exported) if exported else None
    done, waiting, trouble = set_up_git(root, commit) if git else ((), False, "")
    if wants_json(ctx):
        brought = loaded_values(loaded) if loaded is not None else {}
        emit({"library": str(root), "created": made, "git": list(done), **brought})
    elif loaded is not None:
        out(loaded_line(loaded, root))
        for line in (*loaded.notes, *done):
            say(shown(line))
    else:
        out(f"{'made a library in' if made else 'there is a library already in'} {root}")
        for line in done:
            out(line)
    if trouble:
        raise BadInput(trouble)
    if wants_json(ctx) or loaded is not None:
        return 0
    from shlex import quote

    there = "" if root == Path.cwd() else f"-L {quote(folder or str(root))} "
    if waiting:
        say(f"next: git -C {quote(str(root))} add . && git -C {quote(str(root))} commit -m 'memory'")
    else:
        say(f"next: infinimem {there}write 'something to remember'")
    return 0


def set_up_git(root: Path, commit: bool) -> tuple[tuple[str, ...], bool, str]:
    """What `--git` did, whether something waits to be committed, and what stood in the way of `--commit`."""
    from infinimem.git.setup import set_up, switch_commits_on

    found = set_up(root)
    trouble = switch_commits_on(root) if commit else ""
    return found.done or ("git merges it by entry already",), found.waiting, trouble


def load_export(root: Path, exported: str) -> Loaded:
    """Load an export; a library is made only if the file is one."""
    from datetime import UTC, datetime
    from pathlib import Path

    from infinimem.exchange.export.load import load_export

    return load_export(root, Path(exported).expanduser(), datetime.now(UTC))


def loaded_values(loaded: Loaded) -> dict[str, Any]:
    """What an export brought, as JSON has it."""
    names = ("restored", "known", "retired")
    several = {name: list(getattr(loaded, name)) for name in ("seqs", "topics", "notes")}
    return {**{name: getattr(loaded, name) for name in names}, **several}


def loaded_line(loaded: Loaded, root: Path) -> str:
    """What an export brought, in a line."""
    entries = count(len(loaded.seqs), "entry", "entries")
    if loaded.restored:
        return f"restored {entries} in {root}"
    known = f"; {loaded.known:,} were there already" if loaded.known else ""
    retired = f"; {loaded.retired:,} of them replaced now" if loaded.retired else ""
    return f"added {entries} to {root}{known}{retired}"


@app.command(epilog=examples("infinimem check", "infinimem check --fix --dry-run", "infinimem check --fix"))
def check(
    ctx: typer.Context,
    fix: Annotated[
        bool,
        typer.Option("--fix", help="Repair what is safe: sign plain entries, renumber clashes, recount."),
    ] = False,
    dry_run: DryRun = False,
    for_commit: Annotated[
        bool, typer.Option("--for-commit", help="For a git hook: only what should not be committed, and exit code 3.")
    ] = False,
) -> int:
    """Look for anything amiss, the worst first, by file and line.

    The exit code is 3 when something keeps a file from being changed until a person has looked at it.
    With --fix --dry-run the diff of the repairs is printed, and the findings beside it.
    """
    if dry_run:
        return show_repairs(ctx)
    library = open_library(ctx)
    findings = library.check(fix=fix)
    if for_commit:
        findings = [finding for finding in findings if finding.stops_a_commit]
    if wants_json(ctx):
        emit([finding_values(finding) for finding in findings])
    else:
        for finding in findings:
            out(finding_line(library.root, finding))
        say(verdict(findings, fix=fix))
        if not for_commit:
            say_strayed(library.strayed_summaries())
    return 3 if for_commit and findings else code_of(findings)


def say_strayed(summaries: Sequence[Strayed]) -> None:
    """A note on summaries that have strayed: no file is wrong, and what they should say a person knows."""
    if not summaries:
        return
    some = ", ".join(f"{one.topic} (drift {one.drift:.2f})" for one in summaries[:MOST_STRAYED])
    more = f" and {len(summaries) - MOST_STRAYED} more" if len(summaries) > MOST_STRAYED else ""
    whose = (
        "the summary of 1 page no longer says" if len(summaries) == 1 else f"{len(summaries)} summaries no longer say"
    )
    say(
        f"note: {whose} half of what the first version did, though the page does: {shown(some)}{more}; "
        f"see: infinimem history {shown(summaries[0].topic)} --summary"
    )


def show_repairs(ctx: typer.Context) -> int:
    """The diff of what `check --fix` would change as data, the findings as talk."""
    library = open_library(ctx)
    findings, diff = library.check_preview()
    if wants_json(ctx):
        emit({"findings": [finding_values(finding) for finding in findings], "diff": diff})
        return code_of(findings)
    from infinimem.cli.flush import print_diff

    print_diff(diff)
    for finding in findings:
        say(finding_line(library.root, finding))
    say(verdict(findings))
    return code_of(findings)


def code_of(findings: Sequence[Finding]) -> int:
    """3 when a file cannot be changed until a person has looked at it; 5 when a repair could not be committed."""
    if any(finding.problem.blocking and not finding.fixed for finding in findings):
        return 3
    return 5 if any(finding.problem.code == "uncommitted" for finding in findings) else 0


def finding_values(finding: Finding) -> dict[str, Any]:
    """A finding as JSON has it."""
    problem = finding.problem
    return {
        "path": problem.path,
        "line": problem.line,
        "message": problem.message,
        "code": problem.code,
        "blocking": problem.blocking,
        "fixable": finding.fixable,
        "fixed": finding.fixed,
    }


def finding_line(root: Path, finding: Finding) -> str:
    """`path:line: message`, and what became of it."""
    problem = finding.problem
    place = place_of(root, problem.path, problem.line)
    mark = " (fixed)" if finding.fixed else ""
    colour = "green" if finding.fixed else "red" if problem.blocking else "yellow"
    return f"{place}: {paint(shown(problem.message), colour)}{mark}"


def verdict(findings: Sequence[Finding], *, fix: bool = False) -> str:
    """The result in one line."""
    if not findings:
        return "all is well"
    fixed = sum(finding.fixed for finding in findings)
    fixable = sum(finding.fixable and not finding.fixed for finding in findings)
    words = [count(len(findings), "finding")]
    if fixed:
        words.append(f"{fixed} fixed")
    if fix and fixed < len(findings):
        words.append(f"{len(findings) - fixed} for you to look at")
    if fixable:
        words.append(f"{fixable} can be fixed with: infinimem check --fix")
    return ", ".join(words)


@app.command(epilog=examples("infinimem recover 42", "infinimem recover 42-43"))
def recover(
    ctx: typer.Context,
    seqs: Annotated[list[str], typer.Argument(metavar="SEQ...", help="What to bring back; also 12-15+18.")],
) -> int:
    """Bring back entries that were written but lost from CURRENT; `check` names them."""
    wanted = seqs_of(seqs)
    back = open_library(ctx).recover(wanted)
    if wants_json(ctx):
        emit({"recovered": back})
    elif back:
        out("\n".join(map(str, back)))
    if not back:
        say("nothing was missing; all of it is in CURRENT or in evidence")
    return 0
