"""Caring for a library: `init`, `check`, `recover`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from infinimem.cli.request import command_app, examples, open_library, request_of, seqs_of, wants_json
from infinimem.cli.show import count, paint, place_of, shown
from infinimem.cli.talk import emit, out, say

if TYPE_CHECKING:
    from pathlib import Path

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


@app.command(epilog=examples("infinimem check", "infinimem check --fix"))
def check(
    ctx: typer.Context,
    fix: Annotated[
        bool,
        typer.Option("--fix", help="Repair what is safe: sign plain entries, renumber clashes, recount."),
    ] = False,
) -> int:
    """Look for anything amiss, by file and line.

    The exit code is 3 when something keeps a file from being changed until a person has looked at it.
    """
    library = open_library(ctx)
    findings = library.check(fix=fix)
    if wants_json(ctx):
        emit([finding_values(finding) for finding in findings])
    else:
        for finding in findings:
            out(finding_line(library.root, finding))
        say(verdict(findings))
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


def finding_line(root: Path, finding: Finding) -> str:
    """`path:line: message`, and what became of it."""
    problem = finding.problem
    place = place_of(root, problem.path, problem.line)
    mark = " (fixed)" if finding.fixed else ""
    colour = "green" if finding.fixed else "red" if problem.blocking else "yellow"
    return f"{place}: {paint(shown(problem.message), colour)}{mark}"


def verdict(findings: list[Finding]) -> str:
    """The result in one line."""
    if not findings:
        return "all is well"
    fixed = sum(finding.fixed for finding in findings)
    fixable = sum(finding.fixable and not finding.fixed for finding in findings)
    words = [count(len(findings), "finding")]
    if fixed:
        words.append(f"{fixed} fixed")
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
