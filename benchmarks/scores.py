"""How good a ranking is, and how sure that is: recall, NDCG and all-evidence recall at k, with bootstrap intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

KS = (1, 3, 5, 10)
MEASURES = ("recall", "ndcg", "all")
RESAMPLES = 2_000
SEED = 1

Places = Sequence[frozenset[str]]
"""A ranking: for each place the labels of what stands there."""


@dataclass(frozen=True)
class Judged:
    """Of several questions: `values[question, k, measure]`, and the stratum and category of each question."""

    values: Any
    strata: tuple[str, ...]
    categories: tuple[str, ...]

    def at(self, k: int, measure: str = "recall") -> Any:
        """One figure a question, between 0 and 1."""
        return self.values[:, KS.index(k), MEASURES.index(measure)]

    def only(self, keep: Sequence[bool]) -> Judged:
        """The questions marked True."""
        marked = np.array(keep, dtype=bool)
        return Judged(
            self.values[marked],
            tuple(name for name, kept in zip(self.strata, keep, strict=True) if kept),
            tuple(name for name, kept in zip(self.categories, keep, strict=True) if kept),
        )


def judge(places: Places, evidence: frozenset[str], any_of: bool = False) -> list[tuple[float, float, float]]:
    """(recall, NDCG, all) at each k; what comes up twice counts at its first place, `any_of`: one is all."""
    needed = 1 if any_of else len(evidence)
    found: set[str] = set()
    gained = 0.0
    figures = []
    for place in range(max(KS)):
        new = (places[place] & evidence) - found if place < len(places) else frozenset()
        if new and len(found) < needed:
            gained += 1 / math.log2(place + 2)
            found |= new
        if place + 1 in KS:
            ideal = sum(1 / math.log2(at + 2) for at in range(min(place + 1, needed)))
            figures.append((min(1.0, len(found) / needed), gained / ideal, float(len(found) >= needed)))
    return figures


def percent(values: Any) -> float:
    """A mean in percent."""
    return round(100 * float(np.mean(values)), 2) if len(values) else 0.0


def interval(values: Any, strata: Sequence[str], seed: int = SEED) -> tuple[float, float]:
    """What 95 % of resamples give, in percent: questions drawn anew within each stratum. For paired differences too."""
    if not len(values):
        return 0.0, 0.0
    dice = np.random.default_rng(seed)
    sums = np.zeros(RESAMPLES)
    names = np.array(strata)
    for name in sorted(set(strata)):
        own = np.asarray(values)[names == name]
        sums += own[dice.integers(0, len(own), (RESAMPLES, len(own)))].sum(axis=1)
    low, high = np.percentile(100 * sums / len(values), (2.5, 97.5))
    return round(float(low), 2), round(float(high), 2)
