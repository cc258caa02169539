"""A library as its reader sees it: chapters with their entries, and behind each entry what it has replaced."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from infinimem.exchange.export.source import Chosen
from infinimem.model import CURRENT, Document, Entry
from infinimem.plan.rules import bad_succession
from infinimem.store.layout import BUFFER
from infinimem.text.document import Event, events, title_of
from infinimem.text.lines import is_blank
from infinimem.text.signature import parse_seqs

DEEPEST = 200
"""How far a chain of replacements is followed."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """An entry. `topic` is where it stands, "" when it is retired; then `why` and `at` say why and since when.

    `by` is what took its place, `replaced` what it took the place of, newest first, each with what that one had
    replaced; `later` is an entry in CURRENT that will replace it; `earlier` are the words that it had before a hand
    edit, or those of the entries that it was joined from.
    """

    seqs: tuple[int, ...]
    text: str
    fields: Mapping[str, str]
    topic: str
    headings: tuple[str, ...] = ()
    why: str = ""
    at: str = ""
    by: int = 0
    later: int = 0
    replaced: tuple[Leaf, ...] = ()
    earlier: tuple[tuple[int, str], ...] = ()

    @property
    def seq(self) -> int:
        """Its first seq."""
        return self.seqs[0]

    @property
    def source(self) -> str:
        """Who said it."""
        return self.fields.get("source", "")

    @property
    def date(self) -> str:
        """When it happened, else when it was written down, as a date that may be partial; "" when unknown."""
        said = self.fields.get("time", "")
        return (said if said != "empty" else "")[:10] or self.fields.get("observed", "")[:10]

    @property
    def is_noted(self) -> bool:
        """Whether its date is only that on which it was written down."""
        return bool(self.date) and self.fields.get("time", "") in ("", "empty")

    def past(self) -> Iterator[Leaf]:
        """Everything that it has replaced, however long ago, newest first."""
        for leaf in self.replaced:
            yield leaf
            yield from leaf.past()


@dataclass(frozen=True, slots=True)
class Part:
    """What stands under one heading: entries, and prose as texts. The page's own title is none of its headings."""

    headings: tuple[str, ...]
    pieces: tuple[Leaf | str, ...]


@dataclass(frozen=True, slots=True)
class Chapter:
    """A topic document, a guest, or CURRENT."""

    topic: str
    title: str
    summary: str
    parts: tuple[Part, ...]
    is_guest: bool = False

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """Its entries, in order."""
        return tuple(piece for part in self.parts for piece in part.pieces if isinstance(piece, Leaf))

    @property
    def dates(self) -> tuple[str, str]:
        """The first and last date in it; "" for none."""
        dates = sorted(leaf.date for leaf in self.leaves if leaf.date)
        return (dates[0], dates[-1]) if dates else ("", "")


@dataclass(frozen=True, slots=True)
class Book:
    """Chapters by title, what waits in CURRENT, and the retired entries that nothing shown has replaced."""

    name: str
    chapters: tuple[Chapter, ...]
    waiting: Chapter
    gone: tuple[Leaf, ...]

    @property
    def leaves(self) -> Iterator[Leaf]:
        """Every entry that holds."""
        for chapter in (*self.chapters, self.waiting):
            yield from chapter.leaves


@dataclass(frozen=True, slots=True)
class Past:
    """What evidence says of seqs that are not shown any more, and of the words that shown ones had before."""

    words: Mapping[int, Sequence[Entry]]
    fates: Mapping[int, Event]
    followers: Mapping[int, Sequence[int]]
    later: Mapping[int, int]


def book_of(chosen: Chosen, name: str) -> Book:
    """The reader's view of what a filter lets out."""
    pages = [document for document in chosen.documents if document.path.startswith("topics/")]
    buffer = next((document for document in chosen.documents if document.path == BUFFER), Document(BUFFER, ()))
    shown = {seq: entry for page in (*pages, buffer) for entry in page.entries for seq in entry.seqs}
    past = read_past([one for one in chosen.documents if one.path.startswith("evidence/")], shown, buffer)
    chapters = sorted((chapter_of(page, past) for page in pages), key=lambda one: (in_order(one.title), one.topic))
    waiting = replace(chapter_of(buffer, past), title="Waiting to be sorted", summary="")
    told = {
        seq for chapter in (*chapters, waiting) for leaf in chapter.leaves for old in leaf.past() for seq in old.seqs
    }
    tops = [seq for seq in past.fates if seq not in told and not follows_retired(seq, past)]
    gone = tuple(retired_leaf(seq, past, 0) for seq in sorted(tops, reverse=True))
    return Book(name, tuple(chapters), waiting, gone)


def in_order(title: str) -> list[tuple[bool, int, str]]:
    """What titles are sorted by: words without case, and numbers by their size."""
    pieces = [piece for piece in re.split(r"([0-9]{1,15})", title.casefold()) if piece]
    return [(False, int(piece), "") if piece.isascii() and piece.isdigit() else (True, 0, piece) for piece in pieces]


def read_past(evidence: Sequence[Document], shown: Mapping[int, Entry], buffer: Document) -> Past:
    """What the evidence files say."""
    words: dict[int, list[Entry]] = {}
    fates: dict[int, Event] = {}
    forgotten: set[int] = set()
    for document in evidence:
        for entry in document.entries:
            if len(entry.seqs) == 1:
                words.setdefault(entry.seq, []).append(entry)
        for event in events(document.lines):
            for seq in event.seqs:
                if event.kind == "retire":
                    fates[seq] = event
                elif event.kind in ("unflush", "restore"):
                    fates.pop(seq, None)
                elif event.kind == "forget":
                    forgotten.add(seq)
    fates = {seq: event for seq, event in fates.items() if seq in words and seq not in shown and seq not in forgotten}
    followers: dict[int, list[int]] = {}
    for seq, event in fates.items():
        for by in parse_seqs(event.get("by"))[:1]:
            followers.setdefault(by, []).append(seq)
    later = {
        old: entry.seq
        for entry in buffer.entries
        for old in parse_seqs(entry.signature.get("supersedes"))
        if old in shown and not bad_succession(shown[old], old, entry, entry.seq, "superseded")
    }
    return Past(words, fates, followers, later)


def follows_retired(seq: int, past: Past) -> bool:
    """Whether what took an entry's place is itself a retired entry that is told of: it stands behind that one."""
    seen = {seq}
    while True:
        by = parse_seqs(past.fates[seq].get("by"))[:1]
        if not by or by[0] not in past.fates:
            return len(seen) > 1
        if by[0] in seen:  # two that claim to have replaced each other
            return min(seen) != seq
        seq = by[0]
        seen.add(seq)


def chapter_of(document: Document, past: Past) -> Chapter:
    """A document with its entries and prose, by heading."""
    title = title_of(document)
    summary = document.header.fields.get("summary")
    parts = []
    for block in document.blocks:
        headings = block.headings[1:] if block.headings[:1] == (title,) else block.headings
        pieces = tuple(pieces_in(document, block.span.start + bool(block.level), block.span.stop, past))
        if pieces:
            parts.append(Part(headings, pieces))
    is_guest = document.is_guest
    return Chapter(document.id, title, summary if isinstance(summary, str) else "", tuple(parts), is_guest)


def pieces_in(document: Document, start: int, stop: int, past: Past) -> Iterator[Leaf | str]:
    """The entries between two lines, and the prose around them."""
    entries = {entry.span.start: entry for entry in document.entries if start <= entry.span.start < stop}
    prose: list[str] = []
    at = start
    while at < stop:
        entry = entries.get(at)
        if entry is None:
            prose.append(document.lines[at])
            at += 1
            continue
        yield from joined(prose)
        prose = []
        yield leaf_of(entry, past)
        at = entry.span.stop
    yield from joined(prose)


def joined(lines: Sequence[str]) -> Iterator[str]:
    """Lines of prose as one text, if they say anything."""
    if not all(map(is_blank, lines)):
        yield "".join(lines).replace("\r\n", "\n").strip("\n")


def leaf_of(entry: Entry, past: Past) -> Leaf:
    """An entry that is shown, with everything behind it."""
    replaced = [retired_leaf(old, past, 1) for seq in entry.seqs for old in past.followers.get(seq, ())]
    earlier = [
        (seq, version.text) for seq in entry.seqs for version in past.words.get(seq, ()) if version.text != entry.text
    ]
    return Leaf(
        entry.seqs,
        entry.text,
        dict(entry.signature.fields),
        entry.topic,
        entry.headings,
        later=next((past.later[seq] for seq in entry.seqs if seq in past.later and entry.topic != CURRENT), 0),
        replaced=tuple(sorted(replaced, key=lambda leaf: -leaf.seq)),
        earlier=tuple(dict.fromkeys(earlier)),
    )


def retired_leaf(seq: int, past: Past, depth: int) -> Leaf:
    """An entry that is not shown any more, with what it had replaced."""
    versions = past.words[seq]
    event = past.fates[seq]
    older = [old for old in past.followers.get(seq, ()) if old != seq] if depth < DEEPEST else []
    by = parse_seqs(event.get("by"))[:1]
    return Leaf(
        (seq,),
        versions[-1].text,
        dict(versions[0].signature.fields),
        "",
        why=event.get("why") or "retired",
        at=event.get("at"),
        by=by[0] if by else 0,
        replaced=tuple(retired_leaf(old, past, depth + 1) for old in sorted(older, reverse=True)),
        earlier=tuple((seq, one) for one in dict.fromkeys(v.text for v in versions) if one != versions[-1].text),
    )


def sections(chapter: Chapter) -> Iterator[tuple[tuple[str, ...], tuple[Part, ...]]]:
    """The parts of a chapter by their heading path."""
    for headings, parts in groupby(chapter.parts, key=lambda part: part.headings):
        yield headings, tuple(parts)
