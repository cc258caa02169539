"""Caring for a library: `init`, `check`, `recover`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from infinimem.cli.filters import DryRun
from infinimem.cli.request import command_app, examples, open_library, request_of, seqs_of, wants_json
from infinimem.cli.show import count, paint, shown
from infinimem.cli.talk import emit, out, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infinimem.check import Finding

app = command_app()


@app.command(epilog=examples("infinimem init", "infinimem init notes"))
def init(
    ctx: typer.Context,
    folder: Annotated[str, typer.Argument(metavar="[DIR]", help="Where; by default -L, else this folder.")] = "",
) -> int:
    """Make a library in a folder; harmless on an existing one."""
    from pathlib import Path

    from infinimem.store.layout import create_library

    root = Path(folder or request_of(ctx).library or ".").expanduser().absolute()
    made = create_library(root)
    if wants_json(ctx):
        emit({"library": str(root), "created": made})
        return 0
    out(f"{'made a library in' if made else 'there is a library already in'} {root}")
    from shlex import quote

    there = "" if root == Path.cwd() else f"-L {quote(folder or str(root))} "
    say(f"next: infinimem {there}write 'something to remember'")
    return 0


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
    findings = open_library(ctx).check(fix=fix)
    if for_commit:
        findings = [finding for finding in findings if finding.stops_a_commit]
    if wants_json(ctx):
        emit([finding_values(finding) for finding in findings])
    else:
        for finding in findings:
            out(finding_line(finding))
        say(verdict(findings, fix=fix))
    return 3 if for_commit and findings else code_of(findings)


def show_repairs(ctx: typer.Context) -> int:
    """The diff of what `check --fix` would change as data, the findings as talk."""
    findings, diff = open_library(ctx).check_preview()
    if wants_json(ctx):
        emit({"findings": [finding_values(finding) for finding in findings], "diff": diff})
        return code_of(findings)
    from infinimem.cli.flush import print_diff

    print_diff(diff)
    for finding in findings:
        say(finding_line(finding))
    say(verdict(findings))
    return code_of(findings)


def code_of(findings: Sequence[Finding]) -> int:
    """The exit code of a check: 3 when a file cannot be changed until a person has looked at it."""
    return 3 if any(finding.problem.blocking and not finding.fixed for finding in findings) else 0


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


def finding_line(finding: Finding) -> str:
    """`path:line: message`, and what became of it."""
    problem = finding.problem
    place = f"{problem.path}:{problem.line}" if problem.line else problem.path
    mark = " (fixed)" if finding.fixed else ""
    colour = "green" if finding.fixed else "red" if problem.blocking else "yellow"
    return f"{paint(shown(place), 'cyan')}: {paint(shown(problem.message), colour)}{mark}"


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
