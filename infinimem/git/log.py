"""The history that git has of a library: its commits, each with the topics and entries that it touched."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from infinimem.consolidate.due import timestamp
from infinimem.git.chronicle import Gone, Row, gone_of
from infinimem.git.run import must_git, run_git
from infinimem.model import path_of, topic_of
from infinimem.store.layout import BUFFER, EVIDENCE, TOPICS
from infinimem.text.document import events
from infinimem.text.signature import parse_seqs

FORMAT = "--format=%x00%h%x1f%ct%x1f%an%x1f%s"
PATCH = tuple("-p -U0 -M --no-ext-diff --no-textconv --no-color --src-prefix=a/ --dst-prefix=b/ --relative".split())
SIGNED = re.compile(r"[ \t]*[-*+][ \t]+<(?:[^<>\n]*?[, ])?seq=([0-9][0-9+-]*)[,>]")
FILE = re.compile(r"^(?:\+\+\+|---) (?:\"?[ab]/)?(.*?)\"?\t?$")


@dataclass(slots=True)
class Patch:
    """What one commit did to a library, gathered line by line."""

    topics: dict[str, None] = field(default_factory=dict)
    seqs: set[int] = field(default_factory=set)
    retired: list[Gone] = field(default_factory=list)


def has_commits(root: Path) -> bool:
    """Whether there is a commit with files of this library."""
    found = run_git(root, "log", "--max-count=1", "--format=%h", "--", BUFFER, TOPICS, EVIDENCE)
    return bool(found.text) and not found.code


def commits(root: Path, most: int) -> list[Row]:
    """The newest commits that touched CURRENT, topics or evidence, newest first."""
    return rows_of(root, f"--max-count={most}", "--", BUFFER, TOPICS, EVIDENCE)


def topic_commits(root: Path, topic: str, most: int) -> list[Row]:
    """The commits that touched a topic, also under its former names."""
    return rows_of(root, f"--max-count={most}", "--follow", "--", f":(literal){path_of(topic)}")


def seq_commits(root: Path, seq: int, most: int) -> list[Row]:
    """The commits in which a line that stands for an entry came, went or changed."""
    # a range may hold the seq without naming it: git finds the candidates, their patches decide
    named = rf"[<, ]seq=([0-9+-]*[+-])?{seq}[^0-9]|[<, ]seq=[0-9+]*-"
    # evidence is told by itself, and comparing all its versions takes a hundred times as long
    rows = rows_of(root, f"-G{named}", "--", BUFFER, TOPICS)
    return [row for row in rows if seq in row.seqs][:most]


def uncommitted(root: Path, topic: str) -> list[Row]:
    """What is in no commit yet, as the row above the others; none where that is nothing."""
    places = [f":(literal){path_of(topic)}"] if topic else [BUFFER, TOPICS, EVIDENCE]
    patch = must_git(root, "diff", *PATCH, "HEAD", "--", *places).out
    new = must_git(root, "ls-files", "--others", "--exclude-standard", "-z", "--", *places).out.split(b"\0")
    found = read_patch(patch.decode("utf-8", "surrogateescape").split("\n"))
    paths = [path.decode("utf-8", "surrogateescape") for path in new]
    topics = {topic_of(path): None for path in paths if path.startswith(f"{TOPICS}/") and path.endswith(".md")}
    if not patch and not any(paths):
        return []
    rows = Row("", "not committed yet", (*found.topics, *topics), tuple(sorted(found.seqs)), tuple(found.retired))
    return [rows]


def rows_of(root: Path, *arguments: str) -> list[Row]:
    """What `git log` tells with its patches, as rows."""
    text = must_git(root, "log", FORMAT, "--no-show-signature", *PATCH, *arguments).out.decode(
        "utf-8", "surrogateescape"
    )
    rows = []
    for piece in text.split("\0")[1:]:
        head, _, patch = piece.partition("\n")
        commit, seconds, author, subject = head.split("\x1f", 3)
        at = timestamp(datetime.fromtimestamp(int(seconds), UTC))
        found = read_patch(patch.split("\n"))
        topics, seqs = tuple(found.topics), tuple(sorted(found.seqs))
        rows.append(Row(at, subject, topics, seqs, tuple(found.retired), commit, author))
    return rows


def read_patch(lines: Sequence[str]) -> Patch:
    """The topics, entries and retirements that a patch without context names."""
    found = Patch()
    path = ""
    is_head = False
    for line in lines:
        if line.startswith("diff --git "):
            is_head = True
        elif line.startswith("@@"):
            is_head = False
        elif is_head:
            match = FILE.match(line)
            if match is not None and match[1] != "/dev/null":
                path = match[1]
                if path.startswith(f"{TOPICS}/") and path.endswith(".md"):
                    found.topics[topic_of(path)] = None
            elif line.startswith(("rename from ", "rename to ")):
                found.topics[topic_of(line.split(" ", 2)[2].strip('"'))] = None
        elif line[:1] in ("+", "-"):
            take_line(found, path, line)
    return found


def take_line(found: Patch, path: str, line: str) -> None:
    """One line that came or went."""
    if path.startswith(f"{EVIDENCE}/") and line.startswith("+- <event="):
        for event in events([line[1:]]):
            if event.kind == "retire":
                found.retired += [gone_of(event, seq) for seq in event.seqs]
        return
    match = SIGNED.match(line[1:])
    if match is not None:
        found.seqs.update(parse_seqs(match[1]))
