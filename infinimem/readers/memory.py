"""A library as a reader may see it: through one filter, with what holds now in the place of what did."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from infinimem.consolidate.expiry import has_expired
from infinimem.errors import Unreadable
from infinimem.indexing import put_back, read_found
from infinimem.model import CURRENT, HOLDS_FROM, Filter, Hit, Unit
from infinimem.plan.rules import may_succeed
from infinimem.search.records import asked_interval, is_about_a_date, is_coming, is_over, looks_back, moment_of
from infinimem.text.signature import parse_seqs

if TYPE_CHECKING:
    from infinimem.config import Retention
    from infinimem.search.index import CatalogRow, Index

Place = tuple[str, int]
"""Path and first line of a unit: what tells it from others during one ask."""
NO_TIME = datetime(1, 1, 1, tzinfo=UTC)
LONGEST_CHAIN = 20
"""Replacements that are followed from an entry to what holds now."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """What is still shown and what is to take its place, by the seq of the old one.

    What is in `newer` holds now, and only a flush has not seen to it; what is in `coming` has not begun yet.
    """

    newer: Mapping[int, Unit] = field(default_factory=dict)
    coming: Mapping[int, Unit] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Memory:
    """A library under a filter, as it is during one ask. `newer` is what holds in the place of some seqs already.

    `moment` is when what is shown should hold: now, or as `known_at` says; 0 where all of it held when it was asked
    to. `retention` are the rules by which a flush at `now` would retire what is shown.
    """

    root: Path
    index: Index
    filter: Filter = Filter()
    language: str = "english"
    newer: Mapping[int, Unit] = field(default_factory=dict)
    moment: int = 0
    pages: dict[str, tuple[Unit, ...]] = field(default_factory=dict)
    """Documents that were parsed already."""
    now: datetime = NO_TIME
    retention: tuple[Retention, ...] = ()

    @property
    def is_narrow(self) -> bool:
        """Whether the filter leaves things out, so that titles and summaries may say too much."""
        return replace(self.filter, topic="", retired=False) != Filter()


def open_memory(
    root: Path,
    index: Index,
    filter: Filter,
    language: str,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    retention: Sequence[Retention] = (),
) -> Memory:
    """A library as a reader may see it; what was held or known at a date no rule of `retention` of today marks."""
    if filter.as_of:
        return Memory(root, index, filter, language)
    if filter.known_at:  # what was replaced by then is not there
        return Memory(root, index, filter, language, {}, asked_interval(filter.known_at)[1])
    today = now()
    moment = moment_of(today)
    units = index.passing([*index.superseding(), *index.announced()], filter)
    newer = waiting(index, units, moment).newer
    return Memory(root, index, filter, language, newer, moment, now=today, retention=tuple(retention))


def waiting(index: Index, units: Iterable[Unit], moment: int) -> Waiting:
    """What some entries say that they replace, as far as it is shown still and the rules of a flush allow it.

    Of several that would replace the same the first does, as in a flush.
    """
    pairs = {(unit.seqs[-1], seq): unit for unit in units if unit.seqs for seq in parse_seqs(unit.get("supersedes"))}
    if not pairs:
        return Waiting()
    wanted = {seq for _, seq in pairs}
    standing = {seq: unit for unit in index.standing(*wanted) for seq in unit.seqs if seq in wanted}
    newer: dict[int, Unit] = {}
    coming: dict[int, Unit] = {}
    for (_, seq), unit in sorted(pairs.items(), key=lambda pair: pair[0]):
        if seq in standing and may_succeed(standing[seq], seq, unit) and not was_put_back(index, unit, seq):
            old = standing[seq]
            is_to_come = is_coming(unit.time, moment) and not is_about_a_date(old.text, old.time, moment)
            (coming if is_to_come else newer).setdefault(seq, unit)
    return Waiting(newer, coming)


def was_put_back(index: Index, unit: Unit, seq: int) -> bool:
    """Whether a hand has put back what an entry of a topic replaces: no flush replaces it again."""
    return unit.topic != CURRENT and any(map(put_back, index.evidence(seq)))


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
    """A unit as a reader sees it: with a mark where a flush would retire it, or where it has not begun to hold."""
    if unit.retired:
        return unit
    later = successor(memory, unit)
    if later is not None:
        return replaced(unit, later)
    if not memory.moment:
        return unit
    if is_over(unit, memory.moment) or is_kept_no_longer(memory, unit):
        return replace(unit, retired="expired")
    return replace(unit, fields=(*unit.fields, (HOLDS_FROM, unit.time))) if has_not_begun(memory, unit) else unit


def is_kept_no_longer(memory: Memory, unit: Unit) -> bool:
    """Whether a rule of the settings has the next flush retire a unit."""
    return bool(memory.retention and unit.seqs) and has_expired(unit.fields, memory.now, memory.retention)


def has_not_begun(memory: Memory, unit: Unit) -> bool:
    """Whether a unit is to take another's place later on. What is only a date to come holds as it is said."""
    return bool(held_till(memory, unit))


def held_till(memory: Memory, unit: Unit) -> list[Unit]:
    """What a unit to come takes the place of when it begins; an appointment that it moves has no such time left."""
    is_to_come = memory.moment and not unit.retired and is_coming(unit.time, memory.moment)
    seqs = replaces(memory, unit) if is_to_come else set()
    if not seqs:
        return []
    here = allowed(memory, memory.index.standing(*seqs))
    gone = allowed_old(memory, memory.index.retired(seqs))
    early = [still_there(old) for old in gone if old.retired == "superseded" and old.retired_by in unit.seqs]
    return [old for old in (*here, *early) if not is_about_a_date(old.text, old.time, memory.moment)]


def replaces(memory: Memory, unit: Unit) -> set[int]:
    """The seqs whose place a unit takes, by its own word or as a planner found."""
    found = [old for old in memory.index.replaced_by(*unit.seqs) if old.retired == "superseded"]
    return {*parse_seqs(unit.get("supersedes")), *(seq for old in found for seq in old.seqs)}


def until_then(memory: Memory, unit: Unit) -> list[Unit]:
    """What holds until a unit begins to; nothing where it holds already."""
    found: dict[Place, Unit] = {}
    seen: set[Place] = set()
    units = [unit]
    while units and len(seen) < LONGEST_CHAIN:
        one = units.pop(0)
        if place_of(one) in seen:
            continue
        seen.add(place_of(one))
        till = held_till(memory, one)
        units += till
        if not till:
            now = newest(memory, one)
            found.setdefault(place_of(now), now)
    return list(found.values())


def still_there(old: Unit) -> Unit:
    """What a plan retired for the sake of what has not begun, as the statement that holds till then."""
    fields = tuple(pair for pair in old.fields if pair[0] not in ("retired_at", "retired_by"))
    return replace(old, retired="", fields=fields)


def marked_hits(memory: Memory, hits: Sequence[Hit]) -> list[Hit]:
    """Hits with their marks: what holds before what is to take its place later, and last what has expired."""
    places = {place_of(hit.unit) for hit in hits}
    by_place = {place_of(hit.unit): hit for hit in hits}
    ordered: dict[Place, Hit] = {}
    for hit in hits:
        held = until_then(memory, hit.unit) if has_not_begun(memory, hit.unit) else []
        for one in (*(by_place[place_of(unit)] for unit in held if place_of(unit) in places), hit):
            ordered.setdefault(place_of(one.unit), replace(one, unit=marked(memory, one.unit)))
    return over_last(hits, ordered.values())


def over_last(hits: Iterable[Hit], ordered: Iterable[Hit]) -> list[Hit]:
    """Hits in order, those last that are shown still though they have expired."""
    shown = {place_of(hit.unit) for hit in hits if not hit.unit.retired}
    return sorted(ordered, key=lambda hit: hit.unit.retired == "expired" and place_of(hit.unit) in shown)


def led_to_now(memory: Memory, hits: Sequence[Hit]) -> list[Hit]:
    """Hits, each behind what holds now in its place: both are shown. Last comes what has expired."""
    ordered: dict[Place, Hit] = {}
    for hit in hits:
        for unit in until_then(memory, hit.unit) if has_not_begun(memory, hit.unit) else ():
            ordered.setdefault(place_of(unit), Hit(marked(memory, unit), hit.score))
        now = newest(memory, hit.unit)
        if not hit.unit.retired and place_of(now) != place_of(hit.unit):
            ordered.setdefault(place_of(now), Hit(marked(memory, now), hit.score))
        ordered.setdefault(place_of(hit.unit), replace(hit, unit=marked(memory, hit.unit)))
    return over_last(hits, ordered.values())


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
