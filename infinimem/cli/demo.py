"""`infinimem demo`: a guided run on a copy of the sample library. Every command is really run, as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from infinimem.cli.request import command_app, examples, wants_json
from infinimem.cli.show import paint, paragraph
from infinimem.cli.talk import emit, flush, out, say

if TYPE_CHECKING:
    from infinimem.library import Library

app = command_app()

FACT = "The daily stand-up of Grid Signals moves to 10:10 from Monday 9 November, so that Porto can join."
OLD_FACT = "stand-up of grid signals"
"""The sentence in the sample library that the new fact replaces."""

Scene = tuple[str, Sequence[str]]
"""What a command shows, and its arguments."""


@app.command(epilog=examples("infinimem demo"))
def demo(ctx: typer.Context) -> int:
    """A guided run: write, flush, ask and trace on a copy of the sample library, with every command shown.

    Nothing else on this machine is touched; the copy is yours to play with.
    """
    from infinimem.library import Library

    root = copy_sample()
    library = Library.open(root)
    old = seq_to_replace(library)
    quiet = wants_json(ctx)
    if not quiet:
        out(
            paragraph(
                f"A copy of the sample library is in {root}: eight months of one invented life, in plain text.", ""
            )
        )
    steps = [run(root, scene, quiet) for scene in opening(old)]
    new = newest_seq(library)
    steps += [run(root, scene, quiet) for scene in ending(old, new)]
    if quiet:
        emit({"library": str(root), "steps": steps})
    else:
        say_goodbye(root)
    codes: list[int] = [step["exit_code"] for step in steps]
    return max(code for code in codes if code != 1)  # one question is not in memory


def opening(old: int) -> list[Scene]:
    """Up to the new fact in CURRENT."""
    return [
        ("What is in it? Nothing here needs a model, a key or the network.", ["status"]),
        ("Topics are Markdown files; each sums itself up.", ["catalog", "--max-lines", "8"]),
        ("Questions find their evidence, each piece with the file and line to open.", [
            "ask", "When is the daily stand-up of Grid Signals?", "-k", "2"]),
        (f"That has just changed. Writing is instant; --supersedes says what it replaces (entry {old}).", [
            "write", FACT, "--source", "Ines", "--time", "2026-11-09", "--supersedes", str(old)]),
    ]  # fmt: skip


def ending(old: int, new: int) -> list[Scene]:
    """From the flush on."""
    return [
        ("It waits in CURRENT, found at once, until a flush sorts everything new into the topics.", ["flush"]),
        ("The same question now finds the new time. What was replaced has left the page …", [
            "ask", "When is the daily stand-up of Grid Signals?", "-k", "1"]),
        ("… but nothing is ever lost: its words, and what took their place.", ["trace", str(old)]),
        (f"And {new} names its own place and what it replaced.", ["trace", str(new)]),
        ("In any language.", ["ask", "Wie heißt Ankes Baby?", "-k", "1"]),
        ("What memory does not hold, it does not invent.", ["ask", "Xylophon?"]),
        ("A flush is one transaction, and can be taken back as one.", ["undo"]),
    ]  # fmt: skip


def run(root: Path, scene: Scene, quiet: bool) -> dict[str, Any]:
    """Run one command in the copy, with its real output; gives what happened."""
    from shlex import join

    caption, arguments = scene
    command = f"infinimem {join(arguments)}"
    if not quiet:
        out()
        out(paint(paragraph(caption, "# "), "dim"))
        out(paint(f"$ {command}", "bold"))
        flush(sys.stdout)
    environment = {name: value for name, value in os.environ.items() if name != "INFINIMEM_LIBRARY"}
    done = subprocess.run(
        [sys.executable, "-m", "infinimem", *arguments],
        cwd=root,
        env=environment | {"PYTHONPATH": python_path()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if quiet else None,
        stderr=subprocess.STDOUT if quiet else None,
        check=False,
    )
    return {
        "command": command,
        "exit_code": done.returncode,
        "output": (done.stdout or b"").decode("utf-8", "replace"),
    }


def python_path() -> str:
    """So that the commands run are of this very infinimem, installed or not."""
    import infinimem

    here = str(Path(infinimem.__file__).resolve().parent.parent)
    return os.pathsep.join(part for part in (here, os.environ.get("PYTHONPATH", "")) if part)


def sample_library() -> Path:
    """The sample library: in the installed package, or beside it in a checkout."""
    import infinimem
    from infinimem.errors import BadInput
    from infinimem.store.layout import is_library

    package = Path(infinimem.__file__).resolve().parent
    for folder in (package / "sample_library", package.parent / "sample_library"):
        if is_library(folder):
            return folder
    raise BadInput(f"the sample library is not in {package.parent}; install infinimem again, or clone its repository")


def copy_sample() -> Path:
    """A private copy in a new temporary folder."""
    import shutil
    import tempfile

    root = Path(tempfile.mkdtemp(prefix="infinimem-demo-")) / "memory"
    shutil.copytree(sample_library(), root, ignore=shutil.ignore_patterns(".infinimem"))
    return root


def seq_to_replace(library: Library) -> int:
    """The entry that says when the stand-up is."""
    hits = [
        hit for hit in library.search("daily stand-up of Grid Signals time", k=5) if OLD_FACT in hit.text.casefold()
    ]
    return max((seq for hit in hits for seq in hit.seqs), default=1)


def newest_seq(library: Library) -> int:
    """The entry that was written last."""
    return library.status().newest_seq


def say_goodbye(root: Path) -> None:
    """Where the copy lies and how to go on."""
    from shlex import quote

    out()
    out(paragraph(f"The copy stays in {root}; remove it when you like. Go on from there:", ""))
    out(f"  cd {quote(str(root))}")
    out(f"  {program()} ask 'What colour is the kitchen?'")
    out(f"  {program()} read CURRENT")
    say(f"Your own memory starts with: {program()} write 'something to remember'")


def program() -> str:
    """How this infinimem is called from any folder."""
    from shlex import quote
    from shutil import which

    if which("infinimem"):
        return "infinimem"
    beside = Path(sys.executable).with_name("infinimem")
    return quote(str(beside)) if beside.exists() else f"{quote(sys.executable)} -m infinimem"
