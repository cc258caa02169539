"""How much of what one entry says another says too, by the words that are rare in the library."""

from __future__ import annotations

import math
from functools import cache, lru_cache

from infinimem.consolidate.run import Finder
from infinimem.text.words import analyse


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

    def of(self, one: str, other: str) -> float:
        """The weight of the words that both say, as a share of all that the shorter one says; 0 to 1."""
        here, there = self._terms(one), self._terms(other)
        shared = math.fsum(self._weight(term) for term in here & there)
        least = min(math.fsum(map(self._weight, here)), math.fsum(map(self._weight, there)))
        return shared / least if least else 0.0
