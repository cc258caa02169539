"""Write what is made from the code: docs/reference.md, docs/api.md, the manual page, completion for three shells.

    python tools/make_reference.py [FOLDER]    # the repository by default; a test compares

All of it is in the repository and in the wheel, so that an installed infinimem has `man infinimem` and completion.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
from collections.abc import Mapping
from pathlib import Path

from infinimem.cli import main
from infinimem.cli.commands import GROUPS
from tools import make_api

ROOT = Path(__file__).resolve().parent.parent
MANUAL = "share/man/man1/infinimem.1"
COMPLETION = {
    "bash": "share/bash-completion/completions/infinimem",
    "zsh": "share/zsh/site-functions/_infinimem",
    "fish": "share/fish/vendor_completions.d/infinimem.fish",
}


def printed(arguments: list[str]) -> str:
    """What a command prints, 79 columns wide and without colours."""
    caught = io.StringIO()
    with contextlib.redirect_stdout(caught), contextlib.suppress(SystemExit):
        main(arguments)
    return caught.getvalue().rstrip()


def helps() -> dict[str, dict[str, str]]:
    """The help of every command, by group."""
    return {
        group: {name: printed([name, "--help"]) for name in members} for group, members in GROUPS.items() if members
    }


def reference(groups: Mapping[str, Mapping[str, str]]) -> str:
    """The help of every command as a page."""
    lines = ["# Every command", "", "Made from `--help` by `tools/make_reference.py`; a test compares.", ""]
    for group, members in groups.items():
        lines += [f"## {group}", ""]
        for name, text in members.items():
            lines += [f"### {name}", "", "```text", text, "```", ""]
    return "\n".join(lines)


def manual(groups: Mapping[str, Mapping[str, str]]) -> str:
    """The help of every command as a manual page."""
    lines = [
        '.TH INFINIMEM 1 "" "infinimem" "User commands"',
        ".SH NAME",
        r"infinimem \- memory for people and LLM agents: a folder of plain text",
        ".SH SYNOPSIS",
        ".B infinimem",
        "COMMAND [OPTIONS] [ARGUMENTS]",
    ]
    for group, members in groups.items():
        lines.append(f".SH {group.upper()} COMMANDS")
        for name, text in members.items():
            lines += [f".SS {name}", ".nf", *(escaped(line) for line in text.splitlines()), ".fi"]
    lines += [
        ".SH EXIT STATUS",
        "0 done; 1 nothing found; 2 bad input; 3 the library needs attention; 4 the model failed, nothing lost; "
        "5 done in part; 130 interrupted.",
    ]
    return "\n".join(lines) + "\n"


def escaped(line: str) -> str:
    """A line that roff prints as it is."""
    line = line.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{line}" if line[:1] in (".", "'") else line


def completion(shell: str) -> str:
    """The script by which a shell completes the command."""
    before = os.environ.get("_INFINIMEM_COMPLETE")
    os.environ["_INFINIMEM_COMPLETE"] = f"source_{shell}"
    try:
        script = printed([])
    finally:
        if before is None:
            del os.environ["_INFINIMEM_COMPLETE"]
        else:
            os.environ["_INFINIMEM_COMPLETE"] = before
    return re.sub(r"\n{3,}", "\n\n", script).strip() + "\n"


def write_all(folder: Path) -> None:
    """Write every file that is made here."""
    os.environ["COLUMNS"] = "80"
    groups = helps()
    api = make_api.public_page(make_api.guide_of(ROOT / make_api.PAGE))
    files = {"docs/reference.md": reference(groups), make_api.PAGE: api, MANUAL: manual(groups)}
    files |= {path: completion(shell) for shell, path in COMPLETION.items()}
    for path, text in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT, help="where to; the repository by default")
    write_all(parser.parse_args().folder)
