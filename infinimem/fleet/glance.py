"""What a small library holds, at a glance: a list of its words, kept beside its index, and the library read whole.

A search through thousands of libraries cannot open thousands of indexes. Of each it needs to know how many units hold
the words that are looked for, mostly none. That stands in a list of words, made when the library is first read whole
and valid while no file has changed. It lies in the index's folder, and whatever removes the index removes it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from infinimem.errors import InfinimemError
from infinimem.indexing import Reader, commit_mark, finish_commit
from infinimem.model import Unit
from infinimem.search.folder import Busy, held
from infinimem.search.rank import Statistics
from infinimem.search.records import Record, describe
from infinimem.store.layout import INDEX, MANIFEST
from infinimem.store.read import list_files
from infinimem.text import words

VERSION = 1
SMALL = 200_000
"""Bytes of visible text up to which a library is sooner read whole than its index is opened."""
SETTLED = 2_000_000_000
"""Nanoseconds after which a file can no longer change without its times telling."""
ATTEMPTS = 3

Listing = Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Glance:
    """How many visible units a library has, the sum of their terms, and a line for each term that any holds."""

    units: int
    terms: int
    lines: bytes

    def statistics(self, terms: Sequence[str]) -> Statistics:
        """What the ranking needs to know of a library."""
        holding = {term: self.holding(term) for term in terms}
        return Statistics(self.units, self.terms / max(1, self.units), holding)

    def holding(self, term: str) -> int:
        """How many units hold a term; where none does, how many stand below a heading that does."""
        start = self.lines.find(b"\n" + term.encode("utf-8", "surrogateescape") + b"\t")
        if start < 0:
            return 0
        _, own, above = self.lines[start + 1 : self.lines.index(b"\n", start + 1)].split(b"\t")
        return int(own) or int(above)


def visible_files(place: Path) -> dict[str, list[int]]:
    """The files that a search reads, and how each looks from outside."""
    return {path: list(seen) for path, seen in list_files(place).items() if not path.startswith("evidence/")}


def is_small(listing: Listing) -> bool:
    """Whether a library is sooner read whole."""
    return sum(seen[0] for seen in listing.values()) <= SMALL


def known_glance(place: Path, language: str, listing: Listing) -> Glance | None:
    """The glance that is kept, if no file has changed since."""
    if (place / MANIFEST).exists():
        return None
    try:
        head, _, lines = (place / INDEX / folder_name(language) / "glance").read_bytes().partition(b"\n")
        units, terms, made_of = json.loads(head)
    except (OSError, ValueError):
        return None
    return Glance(units, terms, b"\n" + lines) if made_of == listing else None


def read_whole(place: Path, language: str) -> list[Record]:
    """Every visible unit of a library as it is between two commits, analysed; a file that cannot be read is empty."""
    for _ in range(ATTEMPTS):
        finish_commit(place)
        seen = commit_mark(place)
        reader = Reader(place)
        records: list[Record] = []
        for path in visible_files(place):
            with suppress(OSError, InfinimemError):
                read = reader.read_units(path).units
                records += [describe(unit, language) for unit in read if isinstance(unit, Unit)]
        if commit_mark(place) == seen and not (place / MANIFEST).exists():
            break
    return records


def glance_of(records: Sequence[Record]) -> Glance:
    """The glance of a library that was read whole."""
    own: dict[str, int] = {}
    above: dict[str, int] = {}
    for record in records:
        for term in {*record.own, *record.signature}:
            own[term] = own.get(term, 0) + 1
        for term in set(record.headings):
            above[term] = above.get(term, 0) + 1
    lines = [f"{term}\t{own.get(term, 0)}\t{above.get(term, 0)}\n" for term in sorted({*own, *above})]
    text = "\n" + "".join(lines)
    return Glance(len(records), sum(len(record.own) for record in records), text.encode("utf-8", "surrogateescape"))


def keep_glance(place: Path, language: str, listing: Listing, glance: Glance) -> None:
    """Keep a glance for the next search, unless a file has changed, or may change within its times."""
    before = time.time_ns() - SETTLED
    if any(max(seen[1], seen[2]) > before for seen in listing.values()):
        return
    folder = place / INDEX
    with suppress(OSError, Busy), held(folder, 0.0):
        # Under the lock: what removes words from the library removes the index after, so no glance outlives them.
        if visible_files(place) != listing or (place / MANIFEST).exists():
            return
        inside = folder / folder_name(language)
        inside.mkdir(mode=0o700, exist_ok=True)
        head = json.dumps([glance.units, glance.terms, listing], separators=(",", ":"))
        fresh = inside / "glance.new"
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(head.encode() + glance.lines)
        fresh.replace(inside / "glance")


def folder_name(language: str) -> str:
    """Where in the index's folder: another version or language has another place."""
    return f"glance-{VERSION}.{words.VERSION}.{language}"
