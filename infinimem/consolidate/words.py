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
