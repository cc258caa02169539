"""Where everything in the site is: pages, and on which of them each entry stands."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from infinimem.exchange.export.book import Book, Chapter, Leaf
from infinimem.exchange.export.words import slug

ON_A_PAGE = 200
"""Entries on one page; what is longer continues on the next."""

Piece = tuple[tuple[str, ...], Leaf | str]
"""An entry or prose, and the headings above it."""


@dataclass(frozen=True, slots=True)
class Site:
    """The book, and where everything is in the site: paths relative to its folder."""

    book: Book
    pages: Mapping[str, Sequence[str]]
    """By topic: its pages."""
    places: Mapping[int, str]
    """By seq: page and anchor."""
    entries: Sequence[tuple[Leaf, str]]
    """Every entry, held or not, with the topic that it belongs to; "" for those that nothing has replaced."""
    months: Mapping[str, Sequence[str]]
    """By month: its pages."""
    titles: Mapping[str, str]
    """By topic."""


@dataclass(frozen=True, slots=True)
class View:
    """Where a page is written from: the site, and the way from the page to the site's folder."""

    site: Site
    up: str

    def link(self, seq: int) -> str:
        """The address of an entry; "" when it is not in the site."""
        place = self.site.places.get(seq, "")
        path, _, anchor = place.partition("#")
        return f"{self.up}{address(path)}#{anchor}" if place else ""


def laid_out(book: Book) -> Site:
    """Decide the pages and where each entry stands on them."""
    pages: dict[str, list[str]] = {}
    places: dict[int, str] = {}
    entries: list[tuple[Leaf, str]] = []
    taken: set[str] = set()
    for chapter in (*book.chapters, book.waiting):
        is_waiting = chapter is book.waiting
        name = "waiting" if is_waiting else free_name(f"topics/{slug(chapter.topic) or 'topic'}", taken)
        chunks = chunked(chapter)
        pages[chapter.topic] = numbered(name, len(chunks))
        for path, chunk in zip(pages[chapter.topic], chunks, strict=True):
            for _, piece in chunk:
                for leaf in (piece, *piece.past()) if isinstance(piece, Leaf) else ():
                    entries.append((leaf, chapter.topic))
                    for seq in leaf.seqs:
                        places.setdefault(seq, f"{path}#seq-{seq}")
    changes = changed(book)
    for number, path in enumerate(numbered("changes", pages_for(len(changes)))):
        for leaf in changes[number * ON_A_PAGE : (number + 1) * ON_A_PAGE]:
            places.setdefault(leaf.seq, f"{path}#seq-{leaf.seq}")
    entries += [(leaf, "") for top in book.gone for leaf in (top, *top.past())]
    months: dict[str, int] = defaultdict(int)
    for leaf, _ in entries:
        months[month_of(leaf)] += 1
    named = {month: numbered(f"timeline/{month}", pages_for(months[month])) for month in sorted(months)}
    titles = {chapter.topic: chapter.title for chapter in (*book.chapters, book.waiting)}
    return Site(book, pages, places, entries, named, titles)


def free_name(name: str, taken: set[str]) -> str:
    """A name that differs from the others also where a file system ignores case."""
    found, number = name, 1
    while (key := unicodedata.normalize("NFKC", found).casefold()) in taken:
        number += 1
        found = f"{name}_{number}"
    taken.add(key)
    return found


def numbered(name: str, count: int) -> list[str]:
    """The paths of a text's pages."""
    return [f"{name}.html", *(f"{name}-{number}.html" for number in range(2, count + 1))]


def pages_for(count: int) -> int:
    """How many pages so many entries take."""
    return max(1, -(-count // ON_A_PAGE))


def chunked(chapter: Chapter) -> list[list[Piece]]:
    """A chapter's pieces, cut into pages."""
    pieces: list[Piece] = [(part.headings, piece) for part in chapter.parts for piece in part.pieces]
    return [pieces[at : at + ON_A_PAGE] for at in range(0, len(pieces), ON_A_PAGE)] or [[]]


def changed(book: Book) -> list[Leaf]:
    """Every entry that is not held any more, the latest change first."""
    behind = [old for leaf in book.leaves for old in leaf.past()]
    gone = [old for top in book.gone for old in (top, *top.past())]
    return sorted((*behind, *gone), key=lambda leaf: (leaf.at, leaf.seq), reverse=True)


def month_of(leaf: Leaf) -> str:
    """The month that an entry belongs to: `2026-05`, `2026` where no more is known, or `undated`."""
    return leaf.date[:7] or "undated"


def address(path: str) -> str:
    """A path as it stands in a link."""
    return quote(path, safe="/#")
