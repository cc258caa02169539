"""The final ranking: rank_bm25 over candidates, each read together with what was said around it.

An entry is scored as one bag of words: its own, those of its signature (date and source) and headings,
and, with less weight, those of the entries written just before and after it in the same sitting. The words
of a question weigh more in the entry that follows it, since an answer seldom repeats what was asked.
The neighbourhood is that of the seqs, so a flush, which moves entries to other files, moves no result.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from infinimem.text.words import fold, query_words

REACH = 3
"""How many entries before and after one count as its context."""

FEW = 2_000
"""Candidates, neighbours among them, that are scored without numpy: those of a search for 100 or so."""

ROLES = frozenset(("user", "ai", "assistant", "system", "tool", "hand"))
"""Sources that are no names: a question with the word `user` does not ask what the user said."""

MACHINES = frozenset(("ai", "assistant", "bot", "model", "system", "tool"))
"""Sources of what was replied to a person."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What the ranking may vary; chosen leave-one-conversation-out by benchmarks/recall.py.

    The optimum is flat: any of these changed by a third costs less than a point of R@5.
    """

    k1: float = 0.9
    b: float = 0.3
    near: float = 0.3
    """The weight of the next entries' words."""
    decay: float = 0.5
    """What each further step away leaves of it."""
    answer: float = 0.5
    """Added to `near` where the entry before asks something."""
    speaker: float = 0.2
    """Bonus for an entry whose source the question names; `I` names all but an assistant."""
    when: float = 0.2
    """Bonus, if the question asks when, for an entry that says when."""
    asking: float = 0.1
    """Penalty for an entry that only asks: a question states nothing."""
    heading: float = 0.25
    """The weight of the words of the headings above an entry."""
    signature: float = 1.0
    """The weight of its date and source as words."""


@dataclass(frozen=True, slots=True)
class Question:
    """A query as the ranking sees it."""

    terms: tuple[str, ...]
    names: frozenset[str]
    asks_when: bool
    of_self: bool = False
    """Whether who asks means what they said themselves, not what they were told."""


@dataclass(frozen=True, slots=True)
class Sitting:
    """When and where an entry was written, as far as it decides which entries belong together."""

    day: str = ""
    minute: int = -1
    space: str = ""

    def joins(self, other: Sitting) -> bool:
        """Whether two entries next to each other in write order are of one conversation or sitting."""
        if self.space != other.space:
            return False
        if self.day and other.day:
            return self.day == other.day
        if self.minute >= 0 and other.minute >= 0:
            return abs(self.minute - other.minute) <= 60
        return True


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry as the ranking sees it; `own`, `signature` and `headings` are analysed terms."""

    own: Sequence[str]
    signature: Sequence[str] = ()
    headings: Sequence[str] = ()
    seqs: tuple[int, ...] = ()
    source: str = ""
    sitting: Sitting = Sitting()
    asks: bool = False
    only_asks: bool = False
    says_when: bool = False


@dataclass(frozen=True, slots=True)
class Statistics:
    """Of the whole library: how many units, their mean number of own terms, how many hold each term."""

    units: int
    mean_length: float
    holding: Mapping[str, int]


def read_question(query: str, language: str = "english") -> Question:
    """The terms, names and kind of a query."""
    return Question(
        tuple(query_words(query, language)),
        frozenset(_WORD.findall(fold(query))),
        _ASKS_WHEN.search(query) is not None,
        _SELF.search(query) is not None and _TOGETHER.search(query) is None,
    )


def score(
    question: Question,
    pool: Sequence[Candidate],
    statistics: Statistics,
    weights: Weights = Weights(),
) -> list[float]:
    """The score of every candidate; 0 where it shares no word with the question nor answers one that does.

    `pool` should also hold the candidates' neighbours in seq order, or their context goes unread.
    """
    if not pool or not question.terms:
        return [0.0] * len(pool)
    counts, lengths = _bags(question, pool, weights)
    around = 2 * weights.near * sum(weights.decay**step for step in range(REACH))
    mean_length = max(statistics.mean_length * (1 + around), 1.0)
    bm25 = _bm25 if len(pool) <= FEW else _rank_bm25
    scores = bm25(question.terms, counts, lengths, statistics, weights, mean_length)
    return [value * _bonus(question, candidate, weights) for value, candidate in zip(scores, pool, strict=True)]


def _bm25(
    terms: Sequence[str],
    counts: Sequence[Mapping[str, float]],
    lengths: Sequence[float],
    statistics: Statistics,
    weights: Weights,
    mean_length: float,
) -> list[float]:
    """What `_rank_bm25` gives, to the last bit: its own formula, in its own order, without its numpy.

    That takes 0.13 s of CPU to import, a third of a cold search, and gains nothing on the candidates of one.
    """
    k1, b = weights.k1, weights.b
    rarity = [(term, idf(statistics.units, statistics.holding.get(term, 0))) for term in terms]
    scores = []
    for bag, length in zip(counts, lengths, strict=True):
        total = 0.0
        if bag:
            saturation = k1 * (1 - b + b * length / mean_length)
            for term, rare in rarity:
                count = bag.get(term)
                if count:
                    total += rare * (count * (k1 + 1) / (count + saturation))
        scores.append(total)
    return scores


def _rank_bm25(
    terms: Sequence[str],
    counts: Sequence[Mapping[str, float]],
    lengths: Sequence[float],
    statistics: Statistics,
    weights: Weights,
    mean_length: float,
) -> list[float]:
    """The scores of a BM25Okapi over the pool that takes N, document frequencies and mean length from the library.

    Its own constructor would count the pool alone, and floor what then looks too common.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a thread pool costs more than it gives here
    from rank_bm25 import BM25Okapi

    bm25 = BM25Okapi.__new__(BM25Okapi)
    bm25.k1, bm25.b, bm25.epsilon = weights.k1, weights.b, 0.0
    bm25.corpus_size, bm25.avgdl = len(counts), mean_length
    bm25.doc_freqs, bm25.doc_len = counts, lengths
    bm25.idf = {term: idf(statistics.units, holding) for term, holding in statistics.holding.items()}
    return [float(value) for value in bm25.get_scores(list(terms))]


def idf(units: int, holding: int) -> float:
    """Robertson's weight of a term, kept positive (Lucene's form): a small library ranks too."""
    holding = min(holding, units)
    return math.log(1 + (units - holding + 0.5) / (holding + 0.5)) if holding > 0 else 0.0


def _bags(
    question: Question, pool: Sequence[Candidate], weights: Weights
) -> tuple[list[dict[str, float]], list[float]]:
    """For each candidate the weighted counts of the question's terms, and its weighted length."""
    wanted = frozenset(question.terms)
    own = [_count(candidate.own, wanted) for candidate in pool]
    at_seq = {seq: at for at, candidate in enumerate(pool) for seq in candidate.seqs}
    counts: list[dict[str, float]] = []
    lengths: list[float] = []
    for at, candidate in enumerate(pool):
        bag = dict(own[at])
        length = float(len(candidate.own))
        _add(bag, _count(candidate.signature, wanted), weights.signature)
        _add(bag, _count(candidate.headings, wanted), weights.heading)
        shares = bool(bag)
        answer = 0.0 if is_aside(question, candidate) else weights.answer
        if not shares and not (answer and _may_answer(candidate, pool, at_seq, own)):
            counts.append({})  # no neighbour can change that: it scores nothing
            lengths.append(length)
            continue
        for neighbour, weight in _neighbours(at, candidate, pool, at_seq, weights, answer):
            _add(bag, own[neighbour], weight)
            length += weight * len(pool[neighbour].own)
            shares = shares or (weight > weights.near and bool(own[neighbour]))
        counts.append(bag if shares else {})
        lengths.append(length)
    return counts, lengths


def _may_answer(
    candidate: Candidate, pool: Sequence[Candidate], at_seq: Mapping[int, int], own: Sequence[Mapping[str, float]]
) -> bool:
    """Whether the entry before a candidate asks something with the question's words."""
    before = at_seq.get(min(candidate.seqs) - 1) if candidate.seqs else None
    return before is not None and pool[before].asks and bool(own[before])


def _neighbours(
    at: int,
    candidate: Candidate,
    pool: Sequence[Candidate],
    at_seq: Mapping[int, int],
    weights: Weights,
    answer: float,
) -> list[tuple[int, float]]:
    """The entries around a candidate in seq order, as far as the sitting lasts, and their weights."""
    found: dict[int, float] = {}
    if not candidate.seqs:
        return []
    for direction, edge in ((-1, min(candidate.seqs)), (1, max(candidate.seqs))):
        for step in range(1, REACH + 1):
            neighbour = at_seq.get(edge + direction * step)
            if neighbour is None or neighbour == at or neighbour in found:
                continue
            if not candidate.sitting.joins(pool[neighbour].sitting):
                break
            weight = weights.near * weights.decay ** (step - 1)
            if direction < 0 and step == 1 and pool[neighbour].asks:
                weight += answer
            found[neighbour] = weight
    return list(found.items())


def _bonus(question: Question, candidate: Candidate, weights: Weights) -> float:
    bonus = 1.0
    if weights.speaker and names_source(question, candidate.source):
        bonus *= 1 + weights.speaker
    if is_aside(question, candidate):
        bonus /= 1 + weights.speaker
    if question.asks_when and candidate.says_when:
        bonus *= 1 + weights.when
    if candidate.only_asks:
        bonus *= 1 - weights.asking
    return bonus


def names_source(question: Question, source: str) -> bool:
    """Whether a question names who said something: `Maya` is enough for `Maya Lindqvist`."""
    return bool(source) and ":" not in source and not question.names.isdisjoint(_names_in(source))


def is_aside(question: Question, candidate: Candidate) -> bool:
    """Whether an entry is an assistant's reply, where somebody asks what they said themselves.

    A reply says again what was asked. What an agent notes by itself is none.
    """
    return question.of_self and candidate.source.casefold() in MACHINES


@lru_cache(4096)
def _names_in(source: str) -> frozenset[str]:
    return frozenset(word for word in _WORD.findall(fold(source)) if len(word) > 1 and word not in ROLES)


def _count(terms: Sequence[str], wanted: frozenset[str]) -> dict[str, float]:
    counts: dict[str, float] = {}
    if wanted.isdisjoint(terms):
        return counts
    for term in terms:
        if term in wanted:
            counts[term] = counts.get(term, 0.0) + 1
    return counts


def _add(bag: dict[str, float], counts: Mapping[str, float], weight: float) -> None:
    if not weight:
        return
    for term, count in counts.items():
        bag[term] = bag.get(term, 0.0) + weight * count


_WORD = re.compile(r"[^\W_]+")
_ASKS_WHEN = re.compile(
    r"\b(?:when|what (?:date|day|month|year|time)|which (?:date|day|month|year)|how long ago"
    r"|wann|quand|cu[aá]ndo|quando|wanneer|när|når|hvornår|когда)\b|いつ|什么时候|什麼時候|何时|何時|哪天|언제",
    re.I,
)
_SELF = re.compile(
    r"\b(?:i|me|my|myself|ich|mich|mir|mein(?:e[mnrs]?)?|je|j(?=['’])|moi|mon|yo|mi|mis)\b|我|私|僕", re.I
)
_TOGETHER = re.compile(
    r"\b(?:you|your|yours|we|our|ours|(?-i:us)|du|dich|dir|dein(?:e[mnrs]?)?|(?-i:Sie|Ihnen)|wir|uns|unser(?:e[mnrs]?)?"
    r"|tu|toi|vous|votre|vos|nous|notre|nos|tú|usted|ustedes|nosotr[oa]s|nuestr[oa]s?)\b|你|您|我们|我們|あなた|私たち",
    re.I,
)
"""Said to or together with an assistant: then what it answered may be meant."""
