"""What of a library is sound at first sight, read piece by piece, so that `check` keeps only the rest in memory.

A topic is sound if it holds nothing but headings, plain paragraphs and entries as `write` makes them, its front
matter says what is so, and evidence has each of its entries once, in the same bytes. None of check's looks can find
anything in such a topic: this is a promise that tests hold against looking at everything.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from infinimem.model import topic_of
from infinimem.plan.rules import beyond_entries, facts_of
from infinimem.secrets import secrets_in
from infinimem.store.buffer import evidence_files
from infinimem.store.files import read_bytes
from infinimem.store.layout import BUFFER
from infinimem.store.read import list_files, read_log
from infinimem.text.document import parse
from infinimem.text.header import find_header, parse_header
from infinimem.text.lines import split_lines
from infinimem.text.signature import parse_seqs
from infinimem.text.tokens import estimate

LARGE = 8 << 20
"""Bytes of topics and evidence from which on it pays to look twice."""
PIECE = 4 << 20

DATE = r"(?:empty|[0-9]{4}(?:-[0-9]{2}(?:-[0-9]{2}(?:[T ][0-9:.]+(?:Z|[+-][0-9:]+)?)?)?)?)(?=[,>])"
VALUE = r'[^\s,<>"]+(?: [^\s,<>"]+)*'
SAYS_MORE = "seq|event|rev|time|supersedes|links|expires|secret"
FIELDS = rf"(?:, (?:time={DATE}|(?!(?:{SAYS_MORE})=)[A-Za-z_][A-Za-z0-9_.-]*={VALUE}))*"
WORDS = r"[^\n]+\n(?:  [^\n<&]*\n)*"
PLAIN = re.compile(rf"- <seq=([1-9][0-9]{{0,17}})({FIELDS}> {WORDS})")
"""An entry as `write` makes it: its seq, and all that follows."""
OF_A_TOPIC = re.compile(rf"{PLAIN.pattern}|#{{1,6}} [^\n<&]*\n|\n|[A-Za-z][^\n<&]*\n")
GIVEN = r"(?:event=[a-z]+, )?seq=[1-9][0-9]*(?:[+-][1-9][0-9]*)*[,>]|event=flush, high=[0-9]+, at=[^\s,<>]+>"
OF_EVIDENCE = re.compile(rf"{PLAIN.pattern}|(- <(?:{GIVEN})[^\n]*\n(?:  [^\n]*\n)*)|#{{1,6}} [^\n<&]*\n|\n")
SEQS = re.compile(r"seq=([0-9][0-9+-]*)")
SIGNATURE = re.compile("<seq=[^>]*>")
FENCE_INSIDE = re.compile(r"\n[ \t]*(?:[-*+][ \t]+|[0-9]{1,9}[.)][ \t]+)*(?:```|~~~)")


@dataclass(frozen=True, slots=True)
class Sound:
    """The paths of sound topics and the seqs that they show; the seqs that need a look; secrets that evidence holds.

    A secret is its kind, file and line, and the seqs of the entry that it stands in.
    """

    paths: Collection[str] = ()
    seqs: Collection[int] = ()
    odd: Collection[int] = ()
    secrets: tuple[tuple[str, str, int, tuple[int, ...]], ...] = ()
    highest: int = 0
    looked: bool = False


@dataclass(slots=True)
class Kept:
    """What evidence holds: seqs and digests of plain entries, and the seqs that anything else is said of."""

    seqs: array[int] = field(default_factory=lambda: array("q"))
    digests: array[int] = field(default_factory=lambda: array("q"))
    told: set[int] = field(default_factory=set)
    secrets: list[tuple[str, str, int, tuple[int, ...]]] = field(default_factory=list)


class Sorted(Collection[int]):
    """Many numbers in little memory."""

    def __init__(self, numbers: array[int]) -> None:
        self.numbers = numbers

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int):
            return False
        at = bisect_left(self.numbers, number)
        return at < len(self.numbers) and self.numbers[at] == number

    def __iter__(self) -> Iterator[int]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)


NOTHING = Sound()


def look_through(root: Path, large: int = LARGE) -> Sound:
    """What is sound; NOTHING below `large` bytes, and where evidence is not in the shape that we write it in."""
    listing = list_files(root)
    if sum(seen.size for seen in listing.values()) < large:
        return NOTHING
    kept = Kept()
    for file in evidence_files(root):
        if not read_evidence(file, file.relative_to(root).as_posix(), kept):
            return NOTHING
    paths: list[str] = []
    shown, digests, places = array("q"), array("q"), array("q")
    for path in listing:
        entries = read_topic(root, path) if path.startswith("topics/") else None
        if entries is not None:
            shown.extend(entries[0])
            digests.extend(entries[1])
            places.extend([len(paths)] * len(entries[0]))
            paths.append(path)
    return compare(root, kept, paths, shown, digests, places, [path for path in listing if path.startswith("topics/")])


def compare(
    root: Path,
    kept: Kept,
    paths: list[str],
    shown: array[int],
    digests: array[int],
    places: array[int],
    topics: list[str],
) -> Sound:
    """The topics that evidence agrees with, once those are taken out that others say something of."""
    import numpy as np

    def column(numbers: array[int]) -> np.ndarray:
        return np.frombuffer(numbers, dtype=np.int64) if numbers else np.empty(0, dtype=np.int64)

    told = np.fromiter(kept.told, dtype=np.int64, count=len(kept.told))
    here, place = column(shown), column(places)
    first = np.argsort(column(kept.seqs), kind="stable")
    there, said = column(kept.seqs)[first], column(kept.digests)[first]
    once = np.ones(len(there), dtype=bool)
    if len(there) > 1:
        same = there[1:] == there[:-1]
        once[1:] &= ~same
        once[:-1] &= ~same
    at = np.minimum(np.searchsorted(there, here), max(0, len(there) - 1))
    agrees = np.zeros(len(here), dtype=bool)
    if len(there) and len(here):
        agrees = (there[at] == here) & once[at] & (said[at] == column(digests)) & ~np.isin(here, told)
        _, back, count = np.unique(here, return_inverse=True, return_counts=True)
        agrees &= count[back] == 1
    others, meant = seqs_elsewhere(root, set(topics) - set(paths))
    agrees &= ~np.isin(here, np.fromiter(others | meant, dtype=np.int64, count=len(others | meant)))
    odd_places = set(np.unique(place[~agrees]).tolist())
    # what those say that are not sound after all cannot name others: they are plain
    sound = np.array([number not in odd_places for number in range(len(paths))], dtype=bool)
    visible = here[sound[place]] if len(here) else here
    seen = array("q", np.sort(visible).tobytes())
    rest = there[~np.isin(there, visible)]
    return Sound(
        frozenset(path for number, path in enumerate(paths) if sound[number]),
        Sorted(seen),
        frozenset(rest.tolist()) | kept.told | others,
        tuple(kept.secrets),
        seen[-1] if seen else 0,
        looked=True,
    )


def seqs_elsewhere(root: Path, paths: Collection[str]) -> tuple[set[int], set[int]]:
    """The seqs that the buffer, the log and the other topics show, and those that they say they replace."""
    shown: set[int] = set()
    replaced: set[int] = set()
    logged = {seq for entry in read_log(root).document.entries for seq in entry.seqs}
    for path in (BUFFER, *paths):
        content = read_bytes(root / path) or b""
        for entry in parse(path, content).entries:
            shown.update(entry.seqs)
            replaced.update(parse_seqs(entry.signature.get("supersedes")))
    return shown | logged, replaced


def read_topic(root: Path, path: str) -> tuple[list[int], list[int]] | None:
    """The seqs of a topic's entries and the digests of their words, if there is nothing in it to look at twice."""
    try:
        text = (read_bytes(root / path) or b"").decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    if "\r" in text or not text.startswith("---\n") or not text.endswith("\n"):
        return None
    lines = split_lines(text[: text.find("\n---\n") + 5].encode())
    span = find_header(lines)
    body = text[sum(map(len, lines[: span.stop])) :]
    if span.stop != len(lines) or not is_right(path, lines, body):
        return None
    seqs: list[int] = []
    digests: list[int] = []
    at = 0
    for match in OF_A_TOPIC.finditer(body):
        if match.start() != at:
            return None
        at = match.end()
        seq, words = match.groups()
        if seq is not None:
            seqs.append(int(seq))
            digests.append(hash(words))
    if at != len(body) or not all(seqs):
        return None
    return seqs, digests


def is_right(path: str, lines: tuple[str, ...], body: str) -> bool:
    """Whether front matter says what is so of a topic, and nothing that looks like a secret stands in either."""
    header, problems = parse_header(path, lines)
    fields = header.fields
    if problems or "<" in "".join(lines) or fields.get("id") != topic_of(path) or fields.get("aux", {}) != {}:
        return False
    if fields.get("token_count") != estimate(body) or secrets_in("".join(lines) + body):
        return False
    summary = fields.get("summary", "")
    return not isinstance(summary, str) or is_grounded(summary, path, "".join(lines), body)


def is_grounded(summary: str, path: str, head: str, body: str) -> bool:
    """Whether the entries say what the summary does; nearly always its names and numbers are words of theirs."""
    words = SIGNATURE.sub(" ", body)
    folded = words.casefold()
    if len(folded) == len(words) and all(
        re.search(rf"(?<![\w'’]){re.escape(fact)}(?![\w'’])", folded) for fact in facts_of(summary)
    ):
        return True
    return not beyond_entries(summary, parse(path, (head + body).encode()))


def read_evidence(path: Path, name: str, kept: Kept) -> bool:
    """Take in what a file of evidence holds; False if it is not as we write it, so that all of it has to be parsed."""
    lines = 0
    with path.open("rb") as file:
        while True:
            content = read_piece(file)
            if not content:
                return True
            try:
                text = content.decode("utf-8")
            except UnicodeDecodeError:
                return False
            if "\r" in text or not read_lines(text, name, lines, kept):
                return False
            lines += text.count("\n")


def read_piece(file: BinaryIO) -> bytes:
    """Some of a file, up to where a list item or heading begins; b"" at its end."""
    content = file.read(PIECE)
    pieces = [content + file.readline()] if len(content) == PIECE else [content]
    while len(content) == PIECE:
        at = file.tell()
        line = file.readline()
        if not line or line.startswith((b"- ", b"#")):
            file.seek(at)
            break
        pieces.append(line)
    return b"".join(pieces)


def read_lines(text: str, name: str, lines: int, kept: Kept) -> bool:
    """Take in a piece of evidence, above which there are so many lines."""
    seqs, digests, told = kept.seqs, kept.digests, kept.told
    at = 0
    for match in OF_EVIDENCE.finditer(text):
        if match.start() != at:
            return False
        at = match.end()
        seq, words, more = match.groups()
        if seq is not None:
            seqs.append(int(seq))
            digests.append(hash(words))
        elif more is not None:
            if FENCE_INSIDE.search(more):
                return False
            told.update(seq for found in SEQS.findall(more) for seq in parse_seqs(found))
    if at != len(text):
        return False
    kept.secrets += [(kind, name, lines + line, seqs_at(text, line)) for kind, line in secrets_in(text)]
    return True


def seqs_at(text: str, line: int) -> tuple[int, ...]:
    """The seqs of the entry that a 1-based line of evidence belongs to."""
    lines = text.split("\n")
    while line > 1 and lines[line - 1].startswith(" "):
        line -= 1
    found = SEQS.match(lines[line - 1], 3)
    return parse_seqs(found[1]) if found else ()
