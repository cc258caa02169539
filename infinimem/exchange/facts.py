"""Taking facts out of what is imported: conversation by conversation, each portion written before a model sees it.

A killed import leaves words without facts. Which those are is read off the facts' own links, so that the next import
with `extract` asks about these and no others: about words that were imported without it, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from infinimem.config import Access
from infinimem.consolidate.extract import Extracted, Fact, Refused, entry_values, extract, told, turns_of
from infinimem.consolidate.thinking import Thinker
from infinimem.exchange.run import Progress, Spool, draft_of
from infinimem.store.append import Appended, Draft
from infinimem.store.buffer import SIGNED, evidence_files, scan
from infinimem.store.imported import IDENTIFIED, KnownIds, append_new
from infinimem.store.layout import BUFFER
from infinimem.text.signature import parse_seqs

PORTION = 40
"""Messages that are written before a model is asked about them: what a kill can cost is one portion's facts."""
PORTION_LENGTH = 40_000
LINKED = re.compile(rb"[<,] ?links=([0-9:a-z+]*[0-9]+:from[0-9:a-z+]*)[,>]")
FROM = re.compile(r"([0-9]+):from")

WriteFacts = Callable[[list[dict[str, str]]], list[int]]


@dataclass(slots=True)
class Standing:
    """What memory holds of an import already: the seq of each id, and the seqs that facts were taken from."""

    seqs: dict[int, int] = field(default_factory=dict)
    linked: set[int] = field(default_factory=set)


def standing_in(root: Path) -> Standing:
    """One look through CURRENT and evidence."""
    found = Standing()
    for path in (root / BUFFER, *evidence_files(root)):
        for match in scan(path, IDENTIFIED):
            seqs = parse_seqs(seq_in(match[0]))
            if len(seqs) == 1:
                found.seqs[int(match[1], 32)] = seqs[0]
        for match in scan(path, LINKED):
            found.linked.update(map(int, FROM.findall(match[1].decode())))
    return found


def seq_in(head: bytes) -> str:
    """The `seq` in the beginning of a signature."""
    match = SIGNED.match(head)
    return match[2].decode() if match else ""


@dataclass(slots=True)
class Extracting:
    """An import that has a model take the facts out; `found` is what came of it, portion by portion."""

    root: Path
    thinker: Thinker
    language: str
    write_facts: WriteFacts
    access: Access = Access()
    facts: list[tuple[int, Fact]] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def writer(self, spool: Spool, known: KnownIds, observed: str, progress: Progress) -> Iterator[dict[str, int]]:
        """Writes what was read, and the facts in it; yields the seqs of what was read by id."""
        standing = standing_in(self.root)
        done = 0
        for run in spool.runs():
            for portion in portions([draft_of(values, observed) for values in run], known):
                yield self._portion(portion, known, standing)
                done += len(portion)
                progress("extracting", done, spool.count)

    def _portion(self, portion: Sequence[tuple[str, Draft]], known: KnownIds, standing: Standing) -> dict[str, int]:
        written = append_new(self.root, portion, known)
        standing.seqs.update({int(one, 32): seq for one, seq in written.items()})
        seqs = [standing.seqs.get(int(one, 32), 0) for one, _ in portion]
        if standing.linked.isdisjoint(seqs):
            there = [(seq, draft) for seq, (_, draft) in zip(seqs, portion, strict=True) if seq]
            self._take_facts(*told([seq for seq, _ in there], [draft for _, draft in there], self.access))
        return written

    def _take_facts(self, seqs: Sequence[int], drafts: Sequence[Draft]) -> None:
        turns = turns_of(seqs, drafts)
        found = extract(Appended(tuple(seqs)), turns, self.thinker, self.language)
        self.refused += found.refused
        self.notes += found.notes
        if found.facts:
            stored = self.write_facts([entry_values(fact, turns) for fact in found.facts])
            self.facts += zip(stored, found.facts, strict=True)

    @property
    def found(self) -> Extracted:
        """All that came of it."""
        seqs, facts = tuple(seq for seq, _ in self.facts), tuple(fact for _, fact in self.facts)
        failures = tuple(dict.fromkeys(self.thinker.failures))
        refused, notes = tuple(self.refused), tuple(self.notes)
        return Extracted(Appended(()), seqs, facts, refused, notes, failures, self.thinker.usage)


def portions(drafts: Sequence[tuple[str, Draft]], known: KnownIds) -> Iterator[list[tuple[str, Draft]]]:
    """A conversation in portions; what is in memory and what is new are never in one."""
    for _, stretch in groupby(drafts, lambda row: row[0] in known):
        portion: list[Any] = []
        length = 0
        for row in list(stretch):
            portion.append(row)
            length += len(row[1][1])
            if len(portion) >= PORTION or length >= PORTION_LENGTH:
                yield portion
                portion, length = [], 0
        if portion:
            yield portion
