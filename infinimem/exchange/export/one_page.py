"""The library as one Markdown document that reads from top to bottom."""

from __future__ import annotations

from collections.abc import Iterator

from infinimem.exchange.export.book import Book, Chapter, Leaf
from infinimem.exchange.export.words import day, reason, slug
from infinimem.text.lines import counted

HEAD = "<!-- infinimem export: md, version 1 -->\n"


def markdown_lines(book: Book, *, history: bool) -> Iterator[str]:
    """The document, piece by piece: contents, topics with their entries, dates and sources; CURRENT last."""
    chapters = [*book.chapters, *([book.waiting] if book.waiting.parts else [])]
    anchors = anchors_of(chapters)
    yield f"{HEAD}# {one_line(book.name)}\n\n{facts(book)}\n\n## Contents\n\n"
    for chapter, anchor in zip(chapters, anchors, strict=True):
        summary = f": {one_line(chapter.summary)}" if chapter.summary else ""
        yield f"- [{one_line(chapter.title)}](#{anchor}){summary}\n"
    for chapter, anchor in zip(chapters, anchors, strict=True):
        yield from chapter_lines(chapter, anchor, history)
    if history and book.gone:
        yield "\n## No longer held\n\n"
        for leaf in book.gone:
            yield from leaf_lines(leaf, "", history)


def anchors_of(chapters: list[Chapter]) -> list[str]:
    """A name for each chapter that no other has."""
    found: list[str] = []
    for chapter in chapters:
        name = f"topic-{slug(chapter.topic)}"
        found.append(name if name not in found else f"{name}-{len(found)}")
    return found


def facts(book: Book) -> str:
    """What there is, in one sentence."""
    leaves = list(book.leaves)
    dates = sorted(leaf.date for leaf in leaves if leaf.date)
    span = f", {day(dates[0])} to {day(dates[-1])}" if dates else ""
    waiting = counted(len(book.waiting.leaves), "entry waits", "entries wait")
    more = f"; {waiting} to be sorted" if book.waiting.leaves else ""
    return f"{counted(len(leaves), 'entry', 'entries')} in {counted(len(book.chapters), 'topic')}{span}{more}."


def chapter_lines(chapter: Chapter, anchor: str, history: bool) -> Iterator[str]:
    """A topic: title, summary, and what stands under each heading."""
    yield f'\n<a id="{anchor}"></a>\n\n## {one_line(chapter.title)}\n'
    if chapter.summary:
        yield f"\n*{one_line(chapter.summary).replace('*', chr(92) + '*')}*\n"
    for part in chapter.parts:
        if part.headings:
            yield f"\n{'#' * min(6, len(part.headings) + 2)} {one_line(part.headings[-1])}\n"
        for piece in part.pieces:
            if isinstance(piece, Leaf):
                yield "\n"
                yield from leaf_lines(piece, "", history)
            else:
                yield f"\n{piece}\n"


def leaf_lines(leaf: Leaf, indent: str, history: bool) -> Iterator[str]:
    """An entry as a list item, its date and source below it; with history, what it replaced below that."""
    body = leaf.text.replace("\r\n", "\n")
    apart = "\n\n" if "\n" in body else "\n"
    item = f"{body}{apart}*{signed(leaf)}*"
    first, *rest = item.split("\n")
    yield f"{indent}- {first}\n"
    yield from (f"{indent}  {line}\n" if line.strip() else "\n" for line in rest)
    if history:
        for text in dict.fromkeys(text for _, text in leaf.earlier):
            yield f"{indent}  - before: {one_line(text)}\n"
        for old in leaf.replaced:
            yield from leaf_lines(old, indent + "  ", history)


def signed(leaf: Leaf) -> str:
    """`1 May 2026, Ines, 41`; an undated one says when it was noted, a retired one also why and since when."""
    seqs = "+".join(map(str, leaf.seqs)) if len(leaf.seqs) < 4 else f"{leaf.seqs[0]}–{leaf.seqs[-1]}"
    when = f"noted {day(leaf.date)}" if leaf.is_noted else day(leaf.date)
    parts = [when, one_line(leaf.source), f"#{seqs}", reason(leaf)]
    return ", ".join(part for part in parts if part).replace("*", r"\*")


def one_line(text: str) -> str:
    """A text with its line breaks folded."""
    return " ".join(text.split())
