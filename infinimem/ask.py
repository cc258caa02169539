"""From a question to evidence. Without a model there is no answer, but there are its sources, best first."""

from __future__ import annotations

import time as clock_time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from infinimem.model import Filter, Hit, Span, Usage


class Searching(Protocol):
    """What a reader asks the index."""

    def search(self, query: str, k: int, filter: Filter) -> Sequence[Hit]:
        """Entries, best first."""
        ...

    def missing(self, query: str) -> bool:
        """Whether no content word of the query occurs anywhere."""
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

    @property
    def place(self) -> str:
        """`topic:line`, as citations name it."""
        return f"{self.topic}:{self.span.start}"


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
    statements of the model without support, `removed` counts its citations of entries that do not exist.
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


def ask(index: Searching, question: str, k: int, filter: Filter) -> Answer:
    """The bm25 reader: search, no model. Evidence is empty when no content word of the question occurs."""
    started = clock_time.monotonic()
    hits = [] if index.missing(question) else index.search(question, k, filter)
    usage = Usage(seconds=clock_time.monotonic() - started)
    evidence = tuple(evidence_of(hit) for hit in hits)
    citations = tuple(piece.place for piece in evidence)
    stop = "evidence" if evidence else "no content word of the question occurs"
    return Answer("", bool(evidence), evidence, citations, stop=stop, usage=usage)


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
    )
