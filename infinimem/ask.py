"""From a question to evidence. Without a model there is no answer, but there are its sources, best first."""

from __future__ import annotations

import time as clock_time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from infinimem.model import HOLDS_FROM, Filter, Hit, Span, Unit, Usage
from infinimem.search.records import looks_back

OLD_ONES = 3
"""Retired entries that may lead to what holds now."""
LONGEST_CHAIN = 100


class Searching(Protocol):
    """What a reader asks the index."""

    def search(self, query: str, k: int, filter: Filter) -> Sequence[Hit]:
        """Entries, best first."""
        ...

    def missing(self, query: str, *, retired: bool = False) -> bool:
        """Whether no content word of the query occurs in anything visible, or, if asked for, in what is retired."""
        ...

    def standing(self, seq: int) -> Sequence[Unit]:
        """Every visible place of a seq."""
        ...

    def evidence(self, seq: int) -> Sequence[Unit]:
        """Everything that evidence has of a seq."""
        ...


@dataclass(frozen=True, slots=True)
class Evidence:
    """A piece of memory that bears on the question. `span` is 1-based and inclusive, as an editor counts."""

    topic: str
    span: Span
    text: str
    seqs: tuple[int, ...]
    path: str = ""
    headings: tuple[str, ...] = ()
    time: str = ""
    observed: str = ""
    source: str = ""
    retired: str = ""
    score: float = 0.0
    by: int = 0
    """The seq that took its place, where one did."""
    contradicts: tuple[int, ...] = ()
    """Seqs of entries that cannot be true together with it; they are among the evidence, too."""
    expires: str = ""
    """Its date of expiry, where it has expired."""
    holds_from: str = ""
    """When it is to take the place of what holds till then; "" where it holds."""
    library: str = ""
    """Which of many libraries it is from; a seq is one of its library."""

    @property
    def place(self) -> str:
        """`topic:line`, as citations name it; of one of many libraries `library/topic:line`."""
        where = f"{self.topic}:{self.span.start}"
        return f"{self.library}/{where}" if self.library else where


@dataclass(frozen=True, slots=True)
class Round:
    """One round of a reader: its calls as `tool(arguments): what came of it`, and how many entries it brought."""

    calls: tuple[str, ...]
    new: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        return "; ".join(self.calls) or "no call"


@dataclass(frozen=True, slots=True)
class Answer:
    """What memory says. `text` is "" when no model wrote an answer; `found` is False for *not in memory*.

    `stop` says why the search ended, `failed` why an answer that was asked for could not be written, and then
    `fallback` is True. `nearest` is what comes nearest to a question that memory does not answer. `dropped` are
    statements of the model without support, `removed` counts its citations of entries that do not exist, or that
    bear nothing of their statement out. `withheld` counts what a search finds for the question and the access
    rules keep from the model.
    """

    text: str
    found: bool
    evidence: tuple[Evidence, ...]
    citations: tuple[str, ...] = ()
    rounds: tuple[Round, ...] = ()
    stop: str = ""
    reader: str = "bm25"
    fallback: bool = False
    usage: Usage = field(default_factory=Usage)
    failed: str = ""
    why: str = ""
    nearest: tuple[Evidence, ...] = ()
    dropped: tuple[str, ...] = ()
    removed: int = 0
    withheld: int = 0


def ask(
    index: Searching,
    question: str,
    k: int,
    filter: Filter,
    led_to_now: Callable[[Sequence[Hit]], Sequence[Hit]] = tuple,
) -> Answer:
    """The bm25 reader: search, no model. Evidence is empty when no content word of the question occurs.

    A question may be in the words of what was replaced: then what holds now comes first; `led_to_now` sees to what
    CURRENT replaces without a flush having done it yet.
    """
    started = clock_time.monotonic()
    hits = [] if index.missing(question, retired=filter.retired) else list(index.search(question, k, filter))
    hits = [*led_to_now([*successors(index, question, hits, filter), *hits])][:k]
    usage = Usage(seconds=clock_time.monotonic() - started)
    evidence = tuple(evidence_of(hit) for hit in hits)
    citations = tuple(piece.place for piece in evidence)
    stop = "evidence" if evidence else "no content word of the question occurs"
    return Answer("", bool(evidence), evidence, citations, stop=stop, usage=usage)


def successors(index: Searching, question: str, hits: Sequence[Hit], filter: Filter) -> list[Hit]:
    """What took the place of retired entries that answer a question better than anything visible does.

    The old entry follows, so that one sees why. Nothing where a filter looks back: there the old ones are hits.
    """
    if looks_back(filter):
        return []
    best = hits[0].score if hits else 0.0
    seen = {hit.unit.seqs for hit in hits}
    found: list[Hit] = []
    for old in index.search(question, OLD_ONES, replace(filter, retired=True)):
        if not old.unit.retired or old.score <= best:
            continue
        now = holding_now(index, old.unit)
        if now is not None and now.seqs not in seen:
            seen.add(now.seqs)
            found += [Hit(now, old.score), old]
    return found


def holding_now(index: Searching, unit: Unit) -> Unit | None:
    """The visible entry that a retired one led to, over any number of replacements."""
    by = unit.retired_by
    for _ in range(LONGEST_CHAIN):
        if not by:
            return None
        standing = index.standing(by)
        if standing:
            return standing[0]
        after = [one.retired_by for one in index.evidence(by) if one.retired_by]
        by = after[-1] if after else 0
    return None


def evidence_of(hit: Hit) -> Evidence:
    """A hit as evidence."""
    unit = hit.unit
    return Evidence(
        unit.topic,
        Span(unit.line, unit.stop),
        unit.text,
        unit.seqs,
        unit.path,
        unit.headings,
        unit.time,
        unit.observed,
        unit.source,
        unit.retired,
        hit.score,
        unit.retired_by,
        expires=unit.get("expires") if unit.retired == "expired" else "",
        holds_from=unit.get(HOLDS_FROM),
    )
