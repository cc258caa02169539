"""What git still holds of forgotten words, and the commands that take it out of there."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from infinimem.forgetting.words import Words, readable

MOST = 20_000
"""Versions of files that are searched; in a larger history all of them count as holding the words."""
LONGEST = 60.0
"""Seconds that git may take to list or hand out what it has."""


@dataclass(frozen=True, slots=True)
class History:
    """What git holds: `versions` of `paths` with the words (-1: too many to search). No `repository`: no git here."""

    repository: str = ""
    versions: int = 0
    paths: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


def history_of(root: Path, words: Words) -> History:
    """What the git repository around a library still holds of the words. Nothing there is changed."""
    top = run_git(root, "rev-parse", "--show-toplevel").decode("utf-8", "replace").strip()
    if not top:
        return History()
    below = Path(top)
    listed = run_git(below, "rev-list", "--objects", "--all", "--reflog", "--indexed-objects").splitlines()
    named = [line.split(b" ", 1) for line in listed]
    blobs = {pair[0]: pair[1].decode("utf-8", "replace") for pair in named if len(pair) == 2 and pair[1]}
    if len(blobs) > MOST:
        return History(top, -1, (), commands_for(root, top))
    held = [blobs[name] for name, content in contents(below, list(blobs)) if holds(content, words)]
    if not held:
        return History(top)
    return History(top, len(held), tuple(sorted(set(held))), commands_for(root, top))


def holds(content: bytes, words: Words) -> bool:
    """Whether a version of a file holds the words."""
    return any(True for _ in words.places(readable(content)))


def commands_for(root: Path, top: str) -> tuple[str, ...]:
    """The commands that rewrite a history. None of them names the words: they are typed in, and stored nowhere."""
    here = f"git -C {quote(top)}"
    return (
        f"git -C {quote(str(root))} add -A . && {here} commit -m Forget",
        f"{here} filter-repo --force --replace-text <(cat)",
        f"{here} reflog expire --expire=now --all",
        f"{here} gc --prune=now",
    )


def contents(top: Path, names: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """The blobs among some git objects, with what they hold."""
    try:
        done = subprocess.run(
            ["git", "-C", str(top), "cat-file", "--batch", "--buffer"],
            input=b"".join(name + b"\n" for name in names),
            capture_output=True, check=False, timeout=LONGEST,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return
    at = 0
    while at < len(done.stdout):
        end = done.stdout.index(b"\n", at)
        head = done.stdout[at:end].split(b" ")
        at = end + 1
        if len(head) < 3:  # missing
            continue
        size = int(head[2])
        if head[1] == b"blob":
            yield head[0], done.stdout[at : at + size]
        at += size + 1


def run_git(folder: Path, *words: str) -> bytes:
    """What git prints; b"" where there is no git, no repository, or no answer in time."""
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, check=False, timeout=LONGEST)
    except (OSError, subprocess.TimeoutExpired):
        return b""
    return done.stdout if done.returncode == 0 else b""
