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
    """What git holds: `versions` of `paths` with the words (-1: too many to search), and how many commit `messages`.

    No `repository`: no git here.
    """

    repository: str = ""
    versions: int = 0
    paths: tuple[str, ...] = ()
    messages: int = 0
    commands: tuple[str, ...] = ()


def history_of(root: Path, words: Words) -> History:
    """What the git repository around a library still holds of the words. Nothing there is changed."""
    tree = work_tree(root)
    if tree is None:
        return History()
    try:
        held = versions_with(tree, words)
        messages = messages_with(tree, words)
    except (BadInput, NeedsAttention):  # no git here, or too slow: what it holds cannot be told
        held, messages = None, 0
    named = held is None or any(words.in_name(path) for path in held)
    if held is not None and not held and not messages:
        return History(str(tree))
    commands = commands_for(root, tree, named=named)
    return History(str(tree), -1 if held is None else len(held), tuple(sorted(set(held or ()))), messages, commands)


def versions_with(tree: Path, words: Words) -> list[str] | None:
    """The path of each version of a file that holds the words; None where there are too many to search."""
    listed = run_git(tree, "rev-list", "--objects", "--all", "--reflog", "--indexed-objects").out.splitlines()
    named = [line.split(b" ", 1) for line in listed]
    blobs = {pair[0]: pair[1].decode("utf-8", "replace") for pair in named if len(pair) == 2 and pair[1]}
    if len(blobs) > MOST:
        return None
    return [
        blobs[name]
        for name, content in contents(tree, list(blobs))
        if words.in_name(blobs[name]) or holds(content, words)
    ]


def messages_with(tree: Path, words: Words) -> int:
    """How many commits say the words in their message."""
    told = run_git(tree, "log", "--all", "--reflog", "-z", "--format=%B").out.split(b"\0")
    return sum(holds(message, words) for message in told)


def holds(content: bytes, words: Words) -> bool:
    """Whether a version of a file holds the words."""
    return any(True for _ in words.places(readable(content)))


def commands_for(root: Path, tree: Path, *, named: bool) -> tuple[str, ...]:
    """The commands that rewrite a history. None of them names the words: they are typed in, and stored nowhere."""
    here = f"git -C {quote(str(tree))}"
    typed = '<(printf "%s\\n" "$words")'
    return (
        f"git -C {quote(str(root))} add -A . && {here} commit -m Forget",
        "words=$(cat)",
        f"{here} filter-repo --force --replace-text {typed} --replace-message {typed}",
        *([f"{here} filter-repo --force --invert-paths --paths-from-file <(cat)"] if named else []),
        f"{here} reflog expire --expire=now --all && {here} gc --prune=now",
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
