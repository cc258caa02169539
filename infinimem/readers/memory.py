"""A library as a reader may see it: through one filter, with what holds now in the place of what did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from infinimem.errors import Unreadable
from infinimem.indexing import read_found
from infinimem.model import CURRENT, Filter, Hit, Unit
from infinimem.search.records import looks_back
from infinimem.text.signature import parse_seqs

if TYPE_CHECKING:
    from infinimem.search.index import CatalogRow, Index

Place = tuple[str, int]
"""Path and first line of a unit: what tells it from others during one ask."""
LONGEST_CHAIN = 20
"""Replacements that are followed from an entry to what holds now."""


@dataclass(frozen=True, slots=True)
class Memory:
    """A library under a filter, as it is during one ask. `newer` is what CURRENT's entries replace, by seq."""

    root: Path
    index: Index
    filter: Filter = Filter()
    language: str = "english"
    newer: Mapping[int, Unit] = field(default_factory=dict)
    pages: dict[str, tuple[Unit, ...]] = field(default_factory=dict)
    """Documents that were parsed already."""

    @property
    def is_narrow(self) -> bool:
        """Whether the filter leaves things out, so that titles and summaries may say too much."""
        return replace(self.filter, topic="", retired=False) != Filter()


def open_memory(root: Path, index: Index, filter: Filter, language: str) -> Memory:
    """A library as a reader may see it."""
    units = index.passing(index.superseding(), filter)
    newer = {seq: unit for unit in units for seq in parse_seqs(unit.get("supersedes")) if seq not in unit.seqs}
    return Memory(root, index, filter, language, newer)


def place_of(unit: Unit) -> Place:
    """What tells a unit from others."""
    return unit.path, unit.line


def cited(unit: Unit) -> str:
    """`topic:line`, as citations name a unit."""
    return f"{unit.topic}:{unit.line}"


def allowed(memory: Memory, units: Iterable[Unit]) -> list[Unit]:
    """The units that the filter lets through."""
    return memory.index.passing(units, memory.filter)


def allowed_old(memory: Memory, units: Iterable[Unit]) -> list[Unit]:
    """The units that the filter lets through if retired ones are let through at all."""
    return memory.index.passing(units, replace(memory.filter, retired=True))


def units_of(memory: Memory, path: str) -> tuple[Unit, ...]:
    """A document's units that the filter lets through, in order; none of a file that cannot be read."""
    if path not in memory.pages:
        try:
            found = read_found(memory.root, path)
        except (OSError, Unreadable):
            found = ()
        memory.pages[path] = tuple(sorted(allowed(memory, found), key=lambda unit: unit.line))
    return memory.pages[path]


def block_of(memory: Memory, unit: Unit) -> list[Unit]:
    """The units under the same heading as a unit, itself among them; of CURRENT, which has none, itself alone."""
    if not unit.headings or unit.retired or unit.topic == CURRENT:
        return [unit]
    return [other for other in units_of(memory, unit.path) if other.headings == unit.headings]


def newest(memory: Memory, unit: Unit) -> Unit:
    """What holds now in the place of a unit: itself, if nothing replaced it or the filter looks back that far."""
    seen = {place_of(unit)}
    for _ in range(LONGEST_CHAIN):
        later = successor(memory, unit)
        if later is None or place_of(later) in seen:
            return unit
        seen.add(place_of(later))
        unit = later
    return unit


def successor(memory: Memory, unit: Unit) -> Unit | None:
    """What took a unit's place, as far as the filter shows it."""
    for seq in unit.seqs:
        if seq in memory.newer and memory.newer[seq].seqs != unit.seqs:
            return memory.newer[seq]
    if not unit.retired or looks_back(memory.filter):
        return None
    by = unit.retired_by
    if not by:
        return None
    here = allowed(memory, memory.index.standing(by))
    if here:
        return here[0]
    return next(iter(allowed_old(memory, memory.index.retired((by,)))), None)


def older(memory: Memory, unit: Unit) -> list[Unit]:
    """What a unit replaced, retired already or still waiting for a flush to do it."""
    seqs = parse_seqs(unit.get("supersedes"))
    past = memory.index.replaced_by(*unit.seqs)
    gone = allowed_old(memory, [*past, *memory.index.retired(seqs)])
    waiting = [
        replaced(old, unit)
        for seq in seqs
        if seq in memory.newer and memory.newer[seq].seqs == unit.seqs
        for old in allowed(memory, memory.index.standing(seq))
    ]
    found = {place_of(old): old for old in (*gone, *waiting) if old.retired}
    return [old for place, old in found.items() if place != place_of(unit)]


def replaced(old: Unit, by: Unit) -> Unit:
    """A unit that is still on its page, marked with what takes its place."""
    if old.retired or not by.seqs:
        return old
    return replace(old, retired="superseded", fields=(*old.fields, ("retired_by", str(by.seqs[0]))))


def marked(memory: Memory, unit: Unit) -> Unit:
    """A unit as a reader sees it: with the mark of its successor where one waits in CURRENT."""
    later = successor(memory, unit)
    return replaced(unit, later) if later is not None and not unit.retired else unit


def marked_hits(memory: Memory, hits: Sequence[Hit]) -> list[Hit]:
    """Hits with the mark of what waits in CURRENT to take their place."""
    return [replace(hit, unit=marked(memory, hit.unit)) for hit in hits] if memory.newer else list(hits)


def led_to_now(memory: Memory, hits: Sequence[Hit]) -> list[Hit]:
    """Hits, each behind what waits in CURRENT to take its place: both are shown, what holds now first."""
    if not memory.newer:
        return list(hits)
    ordered: dict[Place, Hit] = {}
    for hit in hits:
        now = newest(memory, hit.unit)
        if not hit.unit.retired and place_of(now) != place_of(hit.unit):
            ordered.setdefault(place_of(now), Hit(now, hit.score))
        ordered.setdefault(place_of(hit.unit), replace(hit, unit=marked(memory, hit.unit)))
    return list(ordered.values())


def catalog(memory: Memory) -> list[CatalogRow]:
    """The documents that a reader may name. Under a narrow filter they carry no summary, which might say too much."""
    rows = [row for row in memory.index.catalog() if row.topic != CURRENT]
    if memory.filter.topic:
        rows = [row for row in rows if row.topic == memory.filter.topic]
    if not memory.is_narrow:
        return rows
    counts: dict[str, int] = {}
    for unit in memory.index.entries((), memory.filter):
        counts[unit.path] = counts.get(unit.path, 0) + 1
    return [
        replace(row, title="", summary=f"{counts[row.path]} that pass the filters", entries=counts[row.path])
        for row in rows
        if row.path in counts
    ]


def recent(memory: Memory, tokens: int) -> list[Unit]:
    """CURRENT's newest entries, newest first, about as many tokens of them as asked for."""
    from infinimem.indexing import Reader
    from infinimem.store.layout import BUFFER
    from infinimem.text.tokens import estimate

    path = memory.root / BUFFER
    try:
        size = path.stat().st_size
        if size > 64 * tokens:  # a buffer that was never flushed: its end will do
            with path.open("rb") as file:
                head = file.read(size - 32 * tokens)
                head += file.readline()
                while (line := file.readline()) and not line.startswith(b"- <"):
                    head += line
            tail = Reader(memory.root).read_tail(BUFFER, len(head), head.count(b"\n") + 1)
            units: Sequence[Unit] = [] if tail is None else [unit for unit in tail.units if isinstance(unit, Unit)]
        else:
            units = units_of(memory, BUFFER)
    except (OSError, Unreadable):
        return []
    found: list[Unit] = []
    for unit in reversed(allowed(memory, units)):
        tokens -= estimate(unit.text) + 15
        if tokens < 0:
            break
        found.append(unit)
    return found
