"""Editing by hand: `edit`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infinimem.cli.care import finding_line
from infinimem.cli.filters import topic_ids
from infinimem.cli.request import command_app, examples, open_library, wants_json
from infinimem.cli.show import count, linked, paint, shown
from infinimem.cli.talk import emit, is_terminal, out, say
from infinimem.errors import BadInput, ChangedOnDisk, NeedsAttention, StorageFailed

if TYPE_CHECKING:
    from pathlib import Path

    from infinimem.check import Finding
    from infinimem.library import Library
    from infinimem.saved import Edited

app = command_app()

PLUS = frozenset(
    "vi vim nvim vimx gvim mvim view nano pico rnano emacs emacsclient emacs-nox xemacs zile mg jmacs joe jed ne "
    "micro kak gedit gnome-text-editor xed pluma mousepad tilde".split()
)
"""Editors that open a file at a line with `+12 file`."""
COLON = frozenset({"hx", "helix", "subl", "zed", "zeditor", "lapce", "amp"})
"""With `file:12`."""
GOTO = frozenset({"code", "code-insiders", "codium", "vscodium", "cursor", "windsurf", "positron"})
"""With `-g file:12`."""
DETACHING = GOTO | {"subl", "zed", "zeditor", "gvim", "mvim"}
"""Editors that return at once unless told to wait."""
WAITING = {"gvim": "--nofork", "mvim": "--nofork"}
NO_EDITOR = "no editor is set; for example: export EDITOR=nano"


@app.command(epilog=examples("infinimem edit maya-work", "infinimem edit maya-work:12", "infinimem edit CURRENT"))
def edit(
    ctx: typer.Context,
    place: Annotated[
        str, typer.Argument(metavar="TOPIC[:LINE]", help="Also CURRENT.", autocompletion=topic_ids)
    ] = "CURRENT",
) -> int:
    """Open a topic in $VISUAL or $EDITOR; then check what was saved and sign the bullets that you typed.

    The exit code is 3 when something keeps the file from being changed until you have looked at it again.
    """
    from infinimem.cli.look import parse_place
    from infinimem.store.layout import EDIT_LOCK
    from infinimem.store.lock import shared

    topic, line, _, _ = parse_place(place)
    library = open_library(ctx)
    path = library.file_of(topic)
    file = library.root / path
    before = bytes_at(file)
    command = editor_command(file, line if place.rstrip("]").endswith(f":{line}") else 0)
    with shared(library.root / EDIT_LOCK):  # so that a watch does not sign under the editor's hands
        code = run_editor(command)
    changed = bytes_at(file) != before
    findings = library.check_file(path) if changed else []
    edited = library.edited_since(path, before or b"") if changed else None
    signed = sign(library, path) if changed and not code else []
    if wants_json(ctx):
        emit(values_of(path, changed=changed, code=code, signed=signed, edited=edited, findings=findings))
    else:
        tell(library.root, path, changed, signed, edited, findings)
    if code:
        end = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        raise BadInput(f"{command[0]} {end}; {path} is as it left it, and nothing was signed")
    return 3 if any(finding.problem.blocking for finding in findings) else 0


def editor_command(file: Path, line: int) -> list[str]:
    """The user's editor, told to open a file at a line and to wait until it is closed. Raises `BadInput`."""
    import shlex
    from pathlib import Path

    name = next((name for name in ("VISUAL", "EDITOR") if os.environ.get(name, "").strip()), "")
    if not name:
        raise BadInput(NO_EDITOR)
    try:
        words = shlex.split(os.environ[name])
    except ValueError as error:
        raise BadInput(f"${name} cannot be read ({error}); for example: export {name}='code --wait'") from error
    if not words:
        raise BadInput(NO_EDITOR)
    program = Path(words[0]).name.removesuffix(".exe")
    wait = WAITING.get(program, "--wait")
    if program in DETACHING and not {wait, "-w", "-f", "-nw"} & set(words):
        words.append(wait)
    if not line:
        return [*words, str(file)]
    if program in PLUS:
        return [*words, f"+{line}", str(file)]
    if program in GOTO:
        return [*words, "-g", f"{file}:{line}"]
    return [*words, f"{file}:{line}" if program in COLON else str(file)]


def run_editor(command: list[str]) -> int:
    """Run an editor on the terminal, also where standard output is a pipe; gives its exit code. Raises `BadInput`."""
    import subprocess

    if sys.stdout is not None:
        sys.stdout.flush()
    try:
        with ignored_interrupts():
            return subprocess.run(command, stdout=None if is_terminal() else sys.stderr, check=False).returncode
    except OSError as error:
        raise BadInput(
            f"{command[0]} cannot be run ({error.strerror}); set $VISUAL or $EDITOR to your editor"
        ) from error


@contextmanager
def ignored_interrupts() -> Iterator[None]:
    """While an editor has the terminal, Ctrl-C is for it. A handler: what is ignored would be so in the editor, too."""
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def bytes_at(file: Path) -> bytes | None:
    """What a file holds; None where there is none."""
    from infinimem.store.files import read_bytes

    return read_bytes(file)


def sign(library: Library, path: str) -> list[int]:
    """Sign what was typed, unless someone is at work there; then the next flush or `check --fix` does."""
    try:
        return library.sign(path)
    except StorageFailed:
        raise
    except (ChangedOnDisk, NeedsAttention) as error:
        say(f"the bullets stay unsigned for now: {error}")
        return []


def values_of(
    path: str, *, changed: bool, code: int, signed: list[int], edited: Edited | None, findings: list[Finding]
) -> dict[str, Any]:
    """What came of an edit, as JSON has it."""
    from infinimem.cli.care import finding_values
    from infinimem.model import topic_of

    return {
        "topic": topic_of(path),
        "path": path,
        "changed": changed,
        "exit_code": abs(code),
        "signed": signed,
        **{name: list(getattr(edited, name, ())) for name in ("reworded", "marked", "deleted", "moved")},
        "problems": [finding_values(finding) for finding in findings],
    }


def tell(
    root: Path, path: str, changed: bool, signed: list[int], edited: Edited | None, findings: list[Finding]
) -> None:
    """What came of an edit: what is wrong, by line, what was signed, and what became of entries that were there."""
    for finding in findings:
        out(finding_line(root, finding))
    if signed:
        from infinimem.text.signature import render_seqs

        words = f"{count(len(signed), 'bullet')} signed as {render_seqs(signed)}"
        out(f"{linked(paint(shown(path), 'cyan'), root, path)}: {paint(words, 'green')}")
    for line in edited_lines(path, edited) if edited else ():
        out(line)
    if not changed:
        say("nothing was changed")
    elif not findings and not edited:
        say("all is well")


def edited_lines(path: str, edited: Edited) -> Iterator[str]:
    """What was done to entries by hand, and what that means."""
    from infinimem.store.layout import BUFFER
    from infinimem.text.signature import render_seqs

    where = shown(path)
    if edited.reworded:
        kept = "" if path == BUFFER else "; evidence keeps the words of before, and the next flush notes the new ones"
        yield f"{where}: {render_seqs(edited.reworded)} reworded{kept}"
    if edited.marked:
        yield f"{where}: {render_seqs(edited.marked)} with other fields"
    if edited.deleted:
        seqs = render_seqs(edited.deleted)
        yield f"{where}: {seqs} deleted; the words are kept: infinimem recover {seqs} (infinimem forget erases them)"
    if edited.moved:
        yield f"{where}: {render_seqs(edited.moved)} deleted here; another file shows that"
