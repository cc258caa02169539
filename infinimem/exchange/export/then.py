"""The reader's view of what held at a date, or of what the library knew by then: entries in the words of then."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from infinimem.evolve.lives import in_order
from infinimem.exchange.export.book import Book, Chapter, Leaf, Part
from infinimem.model import CURRENT, Entry, Filter, Signature, Unit
from infinimem.plan import lexical
from infinimem.search.past import PastIndex
from infinimem.search.records import allows

ELSEWHERE = "What stood elsewhere"


def book_then(
    past: PastIndex, filter: Filter, withheld: Collection[int], titles: Mapping[str, str], name: str, *, named: bool
) -> Book:
    """What was there then and may go out, by the topics that it belongs to.

    `titles` are those of today's pages by topic. What belongs to none of them stands under its topic's id, or, unless
    topics may be `named`, together with the rest of its kind. Prose has no dates, so none of it is there.
    """
    now = replace(filter, as_of="", known_at="", topic="", retired=True)
    by_topic: dict[str, list[Unit]] = {}
    for unit in past.units_then():
        home = past.home(unit)
        if unit.seqs and not set(withheld) & set(unit.seqs) and allows(now, unit) and filter.topic in ("", home):
            topic = home if home == CURRENT or home in titles or (home and named) else ""
            by_topic.setdefault(topic, []).append(unit)
    waiting = by_topic.pop(CURRENT, [])
    chapters = [chapter_then(topic, titles.get(topic, "") or spoken(topic), units) for topic, units in by_topic.items()]
    at = " and ".join(
        words for words in (f"as of {filter.as_of}", f"as known at {filter.known_at}") if not words.endswith(" ")
    )
    ordered = sorted(chapters, key=lambda chapter: (chapter.title.casefold(), chapter.topic))
    return Book(f"{name}, {at}", tuple(ordered), chapter_then(CURRENT, "Waiting to be sorted", waiting), ())


def spoken(topic: str) -> str:
    """A title for a topic that has no page today."""
    return topic.rsplit("/", 1)[-1].replace("-", " ").replace("_", " ") or ELSEWHERE


def chapter_then(topic: str, title: str, units: Sequence[Unit]) -> Chapter:
    """A topic with its entries under the headings that they had, as they were written."""
    rows = [(unit.headings[1:] if unit.headings[:1] == (title,) else unit.headings, unit) for unit in in_order(units)]
    parts = [
        Part(headings, tuple(Leaf(unit.seqs, unit.text, dict(unit.fields), topic, headings) for _, unit in group))
        for headings, group in groupby(sorted(rows, key=lambda row: row[0]), key=lambda row: row[0])
    ]
    entries = [Entry(topic, Signature(unit.seqs, unit.fields), unit.text) for _, unit in rows]
    summary = lexical.summarise(title, entries) if entries and topic != CURRENT else ""
    return Chapter(topic, title, summary, tuple(parts))
