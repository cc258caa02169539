"""What git still holds of forgotten words, and the commands that take it out of there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from infinimem.errors import BadInput, NeedsAttention
from infinimem.forgetting.words import Words, readable
from infinimem.git.run import run_git, work_tree

MOST = 20_000
"""Versions of files that are searched; in a larger history all of them count as holding the words."""


@dataclass(frozen=True, slots=True)
class History:
    """What git holds: `versions` of `paths` with the words (-1: too many to search). No `repository`: no git here."""

    repository: str = ""
    versions: int = 0
    paths: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


def history_of(root: Path, words: Words) -> History:
    """What the git repository around a library still holds of the words. Nothing there is changed."""
    tree = work_tree(root)
    if tree is None:
        return History()
    try:
        held = versions_with(tree, words)
    except (BadInput, NeedsAttention):  # no git here, or too slow: what it holds cannot be told
        held = None
    if held is None:
        return History(str(tree), -1, (), commands_for(root, tree))
    if not held:
        return History(str(tree))
    return History(str(tree), len(held), tuple(sorted(set(held))), commands_for(root, tree))


def versions_with(tree: Path, words: Words) -> list[str] | None:
    """The path of each version of a file that holds the words; None where there are too many to search."""
    listed = run_git(tree, "rev-list", "--objects", "--all", "--reflog", "--indexed-objects").out.splitlines()
    named = [line.split(b" ", 1) for line in listed]
    blobs = {pair[0]: pair[1].decode("utf-8", "replace") for pair in named if len(pair) == 2 and pair[1]}
    if len(blobs) > MOST:
        return None
    return [blobs[name] for name, content in contents(tree, list(blobs)) if holds(content, words)]


def holds(content: bytes, words: Words) -> bool:
    """Whether a version of a file holds the words."""
    return any(True for _ in words.places(readable(content)))


def commands_for(root: Path, tree: Path) -> tuple[str, ...]:
    """The commands that rewrite a history. None of them names the words: they are typed in, and stored nowhere."""
    here = f"git -C {quote(str(tree))}"
    return (
        f"git -C {quote(str(root))} add -A . && {here} commit -m Forget",
        f"{here} filter-repo --force --replace-text <(cat)",
        f"{here} reflog expire --expire=now --all",
        f"{here} gc --prune=now",
    )


def contents(tree: Path, names: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """The blobs among some git objects, with what they hold."""
    batch = run_git(tree, "cat-file", "--batch", "--buffer", content=b"".join(name + b"\n" for name in names)).out
    at = 0
    while at < len(batch):
        end = batch.index(b"\n", at)
        head = batch[at:end].split(b" ")
        at = end + 1
        if len(head) < 3:  # missing
            continue
        size = int(head[2])
        if head[1] == b"blob":
            yield head[0], batch[at : at + size]
        at += size + 1
