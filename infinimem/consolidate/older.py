"""Which older entries a new one may replace: those that share rare words with it, wherever they stand."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from functools import cache

from infinimem.consolidate.run import Finder
from infinimem.model import Entry, Unit
from infinimem.search.records import Record
from infinimem.text.tokens import estimate
from infinimem.text.words import analyse

NEAR = 40
"""Entries with shared words that are looked at for each new one."""
OLD_ONES = 5
"""Older entries that a new one is held against."""
FEWEST, FAINT = 1, 0.2
"""Older entries that are asked about where none is that alike, and how alike those have to be: `Maya joined
Nordlys` shares one word with `Maya works at Fjord Labs`."""
OLD_TOKENS = 90
"""Tokens of older entries that a new one is held against, after the first: long entries say what they are about."""
ALIKE = 1 / 3
"""Share of the rarer words of the shorter entry from which an older one may be what the newer replaces.

A subject of one name weighs a third of a sentence whose object has two: `The mayor of Voham is Ann Moe`."""


class Likeness:
    """Compares the words of texts by the index's frequencies; every term is looked up once."""

    def __init__(self, index: Finder) -> None:
        units = max(1, index.visible())

        @cache
        def weight(term: str) -> float:
            return math.log(1 + units / (index.holding(term) + 0.5))

        @cache
        def whole(terms: frozenset[str]) -> float:
            return math.fsum(map(weight, terms))

        self._weight = weight
        self._whole = whole

    def of(self, one: frozenset[str], other: frozenset[str]) -> tuple[float, float, frozenset[str]]:
        """The words that both say: their weight, that as a share of all that the shorter one says, and they."""
        both = one & other
        if not both:
            return 0.0, 0.0, both
        shared = math.fsum(map(self._weight, both))
        least = min(self._whole(one), self._whole(other))
        return shared, (shared / least if least else 0.0), both


def older_ones(
    entry: Entry, index: Finder, likeness: Likeness, language: str, gone: Set[int] = frozenset(), fewest: int = FEWEST
) -> list[Unit]:
    """The visible entries, of the same ns and written before, that an entry may replace; none of those `gone`."""
    seq, space = entry.seq, entry.signature.get("ns")
    near = [
        record
        for record in index.like(f"{entry.text} {entry.source}", NEAR)
        if max(record.unit.seqs) < seq
        and (not gone or gone.isdisjoint(record.unit.seqs))
        and record.unit.get("ns") == space
    ]
    return varied(entry.text, analyse(entry.text, language), near, likeness, fewest)


def varied(text: str, terms: Sequence[str], near: Sequence[Record], likeness: Likeness, fewest: int) -> list[Unit]:
    """The few units most worth comparing with a text: of those that share the same words with it, those that begin
    as it does first, the newest before the older.

    What shares a rare name alone is put beside what shares another: `The mayor of Voham is Ann Moe` may replace
    what was said of Voham, however much else is said of Ann Moe.
    """
    here = frozenset(terms)
    groups: dict[frozenset[str], list[Record]] = {}
    weights: dict[frozenset[str], float] = {}
    faint: list[tuple[float, Unit]] = []
    for record in near:
        weight, share, shared = likeness.of(here, record.distinct)
        if FAINT <= share < ALIKE:
            faint.append((weight, record.unit))
        elif share >= ALIKE:
            groups.setdefault(shared, []).append(record)
            weights[shared] = weight
    ordered = sorted(groups, key=lambda shared: (-weights[shared], sorted(shared)))
    ranks = [
        sorted(groups[shared], key=lambda record: (-lead(terms, record.own, len(text)), -max(record.unit.seqs)))
        for shared in ordered[:OLD_ONES]  # the best of so many groups are all that is chosen
    ]
    depth = max((len(rank) for rank in ranks), default=0)
    chosen: list[Unit] = []
    room = OLD_TOKENS
    for unit in (rank[at].unit for at in range(depth) for rank in ranks if at < len(rank)):
        room -= estimate(unit.text)
        if len(chosen) == OLD_ONES or (chosen and room < 0):
            break
        chosen.append(unit)
    faint.sort(key=lambda pair: (-pair[0], -max(pair[1].seqs)))
    return [*chosen, *(unit for _, unit in faint[: max(0, fewest - len(chosen))])]


def lead(one: Sequence[str], other: Sequence[str], whole: int) -> int:
    """How many words both begin with: mostly they name what is spoken of; `whole` where one is all of the other."""
    return next((at for at, (here, there) in enumerate(zip(one, other, strict=False)) if here != there), whole)
