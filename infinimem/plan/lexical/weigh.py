"""How alike two groups of entries are, by the words that tell subjects apart."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from infinimem.model import NOBODY, Entry
from infinimem.plan.lexical.light import CALENDAR, ENGLISH, GERMAN
from infinimem.text.words import STOP_WORDS, analyse

Vector = Mapping[str, float]

_NAME = re.compile(r"[^\W\d_]+(?:[ .'’-]{1,2}[^\W\d_]+){0,3}\.?")
_CAPITAL = re.compile(r"\b[A-Z][a-z]{1,3}\b")  # as long as a short form
_COUNTS_OR_DATES = re.compile(r"\d|(?:y|m|d|ym|md)\d")  # numbers, and dates as the analyser spells them


ENGLISH_TOO = frozenset("son sin van war kind men mine far pour over under even her man mit son bin den hat".split())
"""Stop words of other languages that name things in English."""


@lru_cache(maxsize=1)
def light_terms() -> frozenset[str]:
    """The light words as the analyser spells them."""
    foreign = (word for words in STOP_WORDS.values() for word in words if len(word) > 1 and word not in ENGLISH_TOO)
    return frozenset(term for word in (*f"{ENGLISH} {GERMAN} {CALENDAR}".split(), *foreign) for term in analyse(word))


@lru_cache(maxsize=1 << 17)
def subject_terms(text: str) -> tuple[str, ...]:
    """The terms of a text that can name a subject, in order, repeats kept."""
    light = light_terms()
    return tuple(term for term in analyse(text) if term not in light and not _COUNTS_OR_DATES.match(term))


def vocatives(entries: Sequence[Entry]) -> frozenset[str]:
    """The terms that name the speakers themselves: who is addressed is not what is talked about.

    A short form that the entries use counts too: `Mel` for Melanie.
    """
    names = {name for source in {entry.source for entry in entries} if is_person(source) for name in source.split()}
    if not names:
        return frozenset()
    called = {name: _short_forms(name) for name in names}
    used = {word for entry in entries for word in _capitals(entry.text)}
    shown = {short for name, shorts in called.items() for short in shorts if short == name or short in used}
    return frozenset(term for short in shown for term in analyse(short))


@lru_cache(maxsize=1 << 17)
def _capitals(text: str) -> frozenset[str]:
    return frozenset(_CAPITAL.findall(text))


def is_person(source: str) -> bool:
    """True for a source that reads like somebody's name, false for roles, files and tools."""
    return _NAME.fullmatch(source) is not None and source[0].isupper() and source.casefold() not in NOBODY


def term_counts(entries: Iterable[Entry], without: frozenset[str] = frozenset()) -> Counter[str]:
    """In how many of the entries each subject term occurs."""
    counts: Counter[str] = Counter()
    for entry in entries:
        counts.update(set(subject_terms(entry.text)))
    for term in without:
        del counts[term]
    return counts


def rarity(groups: Sequence[Counter[str]], sizes: Sequence[int]) -> dict[str, float]:
    """Inverse document frequency over all entries counted; a term in half of them weighs next to nothing."""
    total = sum(sizes)
    seen: Counter[str] = Counter()
    for counts in groups:
        seen.update(counts)
    return {term: math.log(1 + total / count) for term, count in seen.items()}


def telling(others: Iterable[Entry]) -> dict[str, float]:
    """How well each term tells a group from these others, at most 1 as for a term they lack.

    Damped, for choosing names: a title should be distinctive, but not a word that occurs once.
    """
    around = list(others)
    top = math.log(2 + len(around))
    return {
        term: math.sqrt(math.log(1 + (1 + len(around)) / (1 + count)) / top)
        for term, count in term_counts(around).items()
    }


def vector(counts: Counter[str], weights: Mapping[str, float]) -> dict[str, float]:
    """A unit vector: damped counts times rarity."""
    raw = {term: (1 + math.log(count)) * weights.get(term, 0.0) for term, count in counts.items()}
    norm = math.sqrt(math.fsum(value * value for value in raw.values()))
    return {term: value / norm for term, value in raw.items()} if norm else {}


def cosine(one: Vector, other: Vector) -> float:
    """How alike two unit vectors are, 0 to 1."""
    if len(other) < len(one):
        one, other = other, one
    return math.fsum(value * other[term] for term, value in one.items() if term in other)


def _short_forms(name: str) -> set[str]:
    return {name, *(name[:length] for length in range(2, 5) if length < len(name) - 1)}
