"""Which older entries a new one may replace: those that share rare words with it, wherever they stand."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import cache, lru_cache

from infinimem.consolidate.run import Finder
from infinimem.model import Entry, Unit
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
    """Compares texts by the index's frequencies; every term is looked up once."""

    def __init__(self, index: Finder, language: str) -> None:
        units = max(1, index.visible())

        @cache
        def weight(term: str) -> float:
            return math.log(1 + units / (index.holding(term) + 0.5))

        @lru_cache(maxsize=4096)
        def terms(text: str) -> frozenset[str]:
            return frozenset(analyse(text, language))

        self._weight = weight
        self._terms = terms
        self._language = language

    def of(self, one: str, other: str) -> tuple[float, float, frozenset[str]]:
        """The words that both say: their weight, that as a share of all that the shorter one says, and they."""
        here, there = self._terms(one), self._terms(other)
        both = here & there
        shared = math.fsum(map(self._weight, both))
        least = min(math.fsum(map(self._weight, here)), math.fsum(map(self._weight, there)))
        return shared, (shared / least if least else 0.0), both

    def lead(self, one: str, other: str) -> int:
        """How many words both begin with: mostly they name what is spoken of."""
        pairs = zip(analyse(one, self._language), analyse(other, self._language), strict=False)
        return next((at for at, (here, there) in enumerate(pairs) if here != there), len(one))


def older_ones(
    entry: Entry, index: Finder, likeness: Likeness, gone: Collection[int] = (), fewest: int = FEWEST
) -> list[Unit]:
    """The visible entries, of the same ns and written before, that an entry may replace; none of those `gone`."""
    near = [
        unit
        for unit in index.like(f"{entry.text} {entry.source}", NEAR)
        if max(unit.seqs) < entry.seq
        and not any(seq in gone for seq in unit.seqs)
        and unit.get("ns") == entry.signature.get("ns")
    ]
    return varied(entry.text, near, likeness, fewest)


def varied(text: str, units: Sequence[Unit], likeness: Likeness, fewest: int) -> list[Unit]:
    """The few units most worth comparing with a text: of those that share the same words with it, those that begin
    as it does first, the newest before the older.

    What shares a rare name alone is put beside what shares another: `The mayor of Voham is Ann Moe` may replace
    what was said of Voham, however much else is said of Ann Moe.
    """
    groups: dict[frozenset[str], list[Unit]] = {}
    weights: dict[frozenset[str], float] = {}
    faint: list[tuple[float, Unit]] = []
    for unit in units:
        weight, share, shared = likeness.of(text, unit.text)
        if FAINT <= share < ALIKE:
            faint.append((weight, unit))
        elif share >= ALIKE:
            groups.setdefault(shared, []).append(unit)
            weights[shared] = weight
    ordered = sorted(groups, key=lambda shared: (-weights[shared], sorted(shared)))
    ranks = [
        sorted(groups[shared], key=lambda unit: (-likeness.lead(text, unit.text), -max(unit.seqs)))
        for shared in ordered
    ]
    depth = max((len(rank) for rank in ranks), default=0)
    chosen: list[Unit] = []
    room = OLD_TOKENS
    for unit in (rank[at] for at in range(depth) for rank in ranks if at < len(rank)):
        room -= estimate(unit.text)
        if len(chosen) == OLD_ONES or (chosen and room < 0):
            break
        chosen.append(unit)
    faint.sort(key=lambda pair: (-pair[0], -max(pair[1].seqs)))
    return [*chosen, *(unit for _, unit in faint[: max(0, fewest - len(chosen))])]
