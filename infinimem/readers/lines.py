"""Entries as a model sees them: a line each with the place to cite, behind a fence that no entry can close."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from infinimem.llm.prompts import FENCE, harmless
from infinimem.model import HOLDS_FROM, Unit
from infinimem.readers.memory import Memory, cited, marked, place_of
from infinimem.text.signature import parse_seqs, render_seqs
from infinimem.text.tokens import estimate

LONGEST_LINE = 1000
"""Characters of an entry in a list; `read` shows more of it."""
LONGEST_ENTRY = 4000
"""Characters of an entry that is read by itself."""


def fenced(lines: Iterable[str]) -> str:
    """Stored text as data: none of its lines closes the fence."""
    body = "\n".join(map(harmless, lines))
    return f"{FENCE}\n{body}\n{FENCE}"


def flat(text: str, longest: int = LONGEST_LINE) -> str:
    """A text on one line, without control characters, cut at a word."""
    words = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return words if len(words) <= longest else f"{words[:longest].rsplit(' ', 1)[0]} … (cut)"


def entry_line(memory: Memory, unit: Unit, longest: int = LONGEST_LINE) -> str:
    """`[topic:line] #seq · date · source (what replaced it): text`."""
    unit = marked(memory, unit)
    return f"{head_of(unit)}: {flat(unit.text, longest)}"


def head_of(unit: Unit) -> str:
    """The part of an entry's line that says where it stands, when it was, who said it and whether it holds."""
    seqs = f"#{render_seqs(unit.seqs)}" if unit.seqs else ""
    when = unit.time or (f"noted {unit.observed[:10]}" if unit.observed else "")
    about = " · ".join(word for word in (seqs, when, flat(unit.source, 60)) if word)
    marks = []
    if unit.retired:
        by = unit.get("retired_by")
        over = f" {unit.get('expires')}".rstrip() if unit.retired == "expired" else ""
        marks.append(f"{unit.retired} by #{by}" if by and by != "0" else unit.retired + over)
    if unit.get(HOLDS_FROM):
        marks.append(f"not yet: from {unit.get(HOLDS_FROM)}")
    replaces = parse_seqs(unit.get("supersedes"))
    if replaces:
        marks.append(f"replaces #{render_seqs(replaces)}")
    return f"[{cited(unit)}] {about}" + (f" ({', '.join(marks)})" if marks else "")


def heading_line(unit: Unit) -> str:
    """The document and headings that an entry stands under."""
    return "under " + flat(" > ".join((unit.topic, *unit.headings)), 200)


def lines_of(
    memory: Memory,
    units: Sequence[Unit],
    room: int,
    longest: int = LONGEST_LINE,
    known: frozenset[object] = frozenset(),
) -> tuple[list[str], int]:
    """The units' lines, with a heading line where it changes, as far as a room of tokens goes; and how many fitted.

    Units whose place is `known` are named and not repeated. The first one always fits, cut if need be.
    """
    lines: list[str] = []
    used = 0
    above = ""
    for at, (unit, heading) in enumerate(with_headings(units)):
        if place_of(unit) in known:
            line, heading = f"[{cited(unit)}] shown above", above
        else:
            line = entry_line(memory, unit, longest)
        cost = estimate(line) + (estimate(heading) if heading != above else 0)
        if used + cost > room:
            if lines:
                return lines, at
            line = flat(line, max(80, 3 * room))
        if heading != above:
            lines.append(heading)
            above = heading
        lines.append(line)
        used += cost
    return lines, len(units)


def with_headings(units: Sequence[Unit]) -> Iterator[tuple[Unit, str]]:
    """Each unit with the line of its headings."""
    for unit in units:
        yield unit, heading_line(unit) if unit.headings else ""
