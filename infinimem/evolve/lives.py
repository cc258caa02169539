"""When each entry held and when the library knew it, replayed from evidence and from what is visible; no git needed.

`time` is when a thing happened and `observed` when it was written down. An entry holds from its `time` (else
`observed`) until what took its place began, until it expires, or until it was deleted. What an entry says that it
replaces, and when one expires, is known as long as the entry is: a flush only carries it out, so that no answer about
the past changes by it. What a planner or a person found is known from the event that says so, until an undo.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from infinimem.errors import StorageFailed
from infinimem.indexing import ATTEMPTS, commit_mark, finish_commit, found_in
from infinimem.model import CURRENT, Entry, Filter, Signature, Unit, path_of
from infinimem.plan.rules import may_succeed
from infinimem.search.records import NEVER, asked_interval, happened, interval, known, last_moment
from infinimem.store.evidence import TAKEN_BACK, Record, all_records
from infinimem.store.read import list_files, read_file
from infinimem.text.document import Event
from infinimem.text.signature import parse_seqs
from infinimem.text.tokens import estimate

if TYPE_CHECKING:
    from infinimem.search.index import CatalogRow
    from infinimem.search.past import PastIndex

ALWAYS = NEVER
"""When all was known that is known."""
UNDONE = "undone"
"""Why a piece of a divided entry is gone once that was undone: it never was an entry of its own."""
JOINED = "joined"
"""Why an entry is shown by itself that stands in a joined line now."""
FATES = ("retire", "forget", "unflush", "restore")


@dataclass(frozen=True, slots=True)
class Life:
    """One seq: its words by revision, each from the moment it was known; its events; the line that shows it now.

    `lines` are the joined lines that evidence knows it in, each from the moment of the joining. `heirs` are the seqs
    of entries that say that they replace it and may do so.
    """

    seq: int
    words: tuple[tuple[int, Unit], ...] = ()
    lines: tuple[tuple[int, Unit], ...] = ()
    events: tuple[Event, ...] = ()
    here: Unit | None = None
    heirs: tuple[int, ...] = ()

    def said(self, moment: int = ALWAYS) -> Unit | None:
        """The entry by itself, in the words that it had at a moment; None where it only ever stood in a longer line."""
        then = [unit for since, unit in self.words if since <= moment] or [unit for _, unit in self.words[:1]]
        if then:
            return replace(then[-1], fields=self.words[0][1].fields)
        if self.lines and self.here is None:
            return self.lines[0][1]
        return self.here if self.here is not None and self.here.seqs == (self.seq,) else None

    def retirement(self, moment: int = ALWAYS) -> Event | None:
        """The event by which it was gone at a moment."""
        then = [event for event in self.events if start_of(event.get("at")) <= moment]
        return then[-1] if then and then[-1].kind in ("retire", "forget") else None


def start_of(time: str) -> int:
    """The first moment of a time; the beginning of all where it is none."""
    found = interval(time)
    return found[0] if found else 0


def lives_of(records: Mapping[int, Record], visible: Iterable[Unit]) -> dict[int, Life]:
    """The life of every seq that evidence knows or that is visible."""
    here: dict[int, Unit] = {}
    for unit in visible:
        for seq in unit.seqs:
            if seq not in here or here[seq].topic == CURRENT:
                here[seq] = unit
    return with_heirs({
        seq: life_of(seq, records.get(seq, Record(seq, (), ())), here.get(seq)) for seq in sorted({*records, *here})
    })  # fmt: skip


def with_heirs(lives: Mapping[int, Life]) -> dict[int, Life]:
    """The lives with what takes the place of each by its own word, as far as the rules of a flush allow it."""
    heirs: dict[int, list[int]] = {}
    for seq, life in lives.items():
        unit = own_line(life)
        for old in parse_seqs(unit.get("supersedes")) if unit is not None else ():
            before = lives[old].said() or lives[old].here if old in lives else None
            if unit is not None and before is not None and seq != old and may_succeed(before, old, unit):
                heirs.setdefault(old, []).append(seq)
    return {seq: replace(life, heirs=tuple(heirs.get(seq, ()))) for seq, life in lives.items()}


def own_line(life: Life) -> Unit | None:
    """What stands for an entry alone: its visible line, which a hand may have changed, else what evidence has."""
    here = life.here
    return here if here is not None and here.seqs == (life.seq,) else life.said() or here


def life_of(seq: int, record: Record, here: Unit | None) -> Life:
    """The life of one seq."""
    alone = [(path, entry) for path, entry in record.entries if entry.seqs == (seq,)]
    words = tuple((start_of(entry.signature.get("at")), unit_of(path, entry)) for path, entry in alone)
    several = [(path, entry) for path, entry in record.entries if entry.seqs != (seq,)]
    lines = tuple((start_of(entry.signature.get("at")), unit_of(path, entry)) for path, entry in several)
    events = tuple(event for _, event in record.events if event.kind in FATES)
    return Life(seq, words, lines, events, here)


def unit_of(path: str, entry: Entry) -> Unit:
    """An entry in evidence as the index would have it."""
    return Unit(path, entry.span.start + 1, entry.span.stop, entry.text, entry.seqs, (), entry.signature.fields)


def visible_units(root: Path) -> Iterator[Unit]:
    """Everything that CURRENT and the topics show, prose too."""
    for path in list_files(root):
        if not path.startswith("evidence/"):
            try:
                yield from found_in(read_file(root, path).document)
            except StorageFailed:  # `check` names it
                continue


Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Past:
    """What there was at a moment: units, and the topics that those outside the topics belong to now, by place."""

    units: tuple[Unit, ...]
    homes: Mapping[Place, str]


def replay(root: Path, filter: Filter) -> Past:
    """What held at `as_of` as the library knew it at `known_at`, the dates of a filter; prose as it is now."""
    held_at = asked_interval(filter.as_of)[1] if filter.as_of else None
    known_at = asked_interval(filter.known_at)[1] if filter.known_at else ALWAYS
    shown = list(visible_units(root))
    lives = lives_of(all_records(root), shown)
    units = {place_of(unit): unit for unit in shown if not unit.seqs}
    told: set[int] = set()
    for unit in shown:
        if unit.seqs and told.isdisjoint(unit.seqs) and stands(unit, lives, held_at, known_at):
            then = reworded(unit, lives, known_at)
            alone = len(unit.seqs) == 1
            then = told_fate(then, lives[unit.seqs[0]], lives, held_at, known_at) if alone else then
            units[place_of(unit)] = then
            told.update(unit.seqs)
    homes: dict[Place, str] = {}
    for seq, life in lives.items():
        if seq not in told and was_there(life, lives, held_at, known_at):
            for unit in past_unit(life, known_at):
                units[place_of(unit)] = told_fate(unit, life, lives, held_at, known_at)
                homes[place_of(unit)] = home_of(life, lives)
    return Past(tuple(units.values()), homes)


def place_of(unit: Unit) -> Place:
    """Path and first line."""
    return unit.path, unit.line


def home_of(life: Life, lives: Mapping[int, Life]) -> str:
    """The topic in which an entry, or what took its place, stands now; "" for none."""
    seen: set[int] = set()
    while life.here is None:
        seen.add(life.seq)
        event = life.retirement()
        by = parse_seqs(event.get("by")) if event is not None else ()
        if not by or by[0] in seen or by[0] not in lives:
            return ""
        life = lives[by[0]]
    return life.here.topic


def stands(unit: Unit, lives: Mapping[int, Life], held_at: int | None, known_at: int) -> bool:
    """Whether a visible line is what was there: of a joined one each member held, and it had been joined by then."""
    if len(unit.seqs) == 1:
        return was_there(lives[unit.seqs[0]], lives, held_at, known_at)
    members = [lives[seq] for seq in unit.seqs]
    if any(life.said() is None for life in members):  # it was written as one
        end = min(end_of(unit, life, lives, known_at) for life in members)
        moment = known_at if held_at is None else held_at
        return known_from(unit) <= known_at and holds(unit, end, moment, begun=held_at is not None)
    if joined_since(unit, members) > known_at:
        return False
    return all(was_there(life, lives, held_at, known_at) for life in members)


def joined_since(unit: Unit, members: Sequence[Life]) -> int:
    """When a line of several entries was joined, as far as evidence tells; it cannot be before all were known."""
    noted = [since for since, line in members[0].lines if line.seqs == unit.seqs]
    known = [known_from(said) for life in members if (said := life.said()) is not None]
    return max([*noted[:1], *known])


def was_there(life: Life, lives: Mapping[int, Life], held_at: int | None, known_at: int) -> bool:
    """Whether an entry was known at one moment to hold at the other; without that, to hold still or to come."""
    unit = life.said(known_at) or life.here
    if unit is None or max(known_from(unit), divided_at(unit, lives)) > known_at:
        return False
    event = life.retirement(known_at)
    if event is not None and (event.kind == "forget" or event.get("why") == UNDONE):
        return False
    if held_at is None and event is not None and event.get("why") != "superseded" and not is_by_date(unit, event):
        return False
    moment = known_at if held_at is None else held_at
    return holds(unit, end_of(unit, life, lives, known_at), moment, begun=held_at is not None)


def is_by_date(unit: Unit, event: Event) -> bool:
    """Whether an entry was retired for a date of its own, which says when it held no longer."""
    return event.get("why") == "expired" and last_moment(unit) is not None


def divided_at(unit: Unit, lives: Mapping[int, Life]) -> int:
    """When a piece of another entry came to stand by itself; the beginning of all for other entries."""
    origins = [lives[seq] for seq in parse_seqs(unit.get("split_from")) if seq in lives]
    times = [
        start_of(event.get("at"))
        for origin in origins
        for event in origin.events
        if event.get("why") == "split" and not set(unit.seqs).isdisjoint(parse_seqs(event.get("by")))
    ]
    return max(times, default=0)


def known_from(unit: Unit) -> int:
    """The moment from which the library knew an entry."""
    found = known(unit)
    return found[0] if found else 0


def holds(unit: Unit, end: int, moment: int, *, begun: bool = True) -> bool:
    """Whether what an entry says held at a moment; unless it must have `begun`, also if that was still to come."""
    began = happened(unit)
    expires = last_moment(unit)
    has_begun = not begun or began is None or began[0] <= moment
    return has_begun and moment < end and (expires is None or moment <= expires)


def end_of(unit: Unit, life: Life, lives: Mapping[int, Life], known_at: int) -> int:
    """The moment from which an entry held no longer, by what was known at another; its own date left out of account."""
    ends = [beginning_of(seq, lives) or known_from_of(seq, lives) for seq in heirs_of(life, lives, known_at)]
    event = life.retirement(known_at)
    if event is None or is_by_date(unit, event):
        return min(ends, default=ALWAYS)
    if event.get("why") == "split":
        return 0  # its pieces hold when it held
    by = parse_seqs(event.get("by"))
    if event.get("why") == "superseded" and not set(by).isdisjoint(life.heirs):
        return min(ends, default=ALWAYS)  # a flush has done what an entry said
    starts = [start for seq in by if (start := beginning_of(seq, lives))]
    return min([*ends, min(starts) if starts else start_of(event.get("at"))])


def heirs_of(life: Life, lives: Mapping[int, Life], known_at: int) -> list[int]:
    """The entries that by their own word had taken an entry's place, or would, as far as was known at a moment."""
    return [
        seq
        for seq in life.heirs
        if known_from_of(seq, lives) <= known_at and not stands_again(life, lives, seq, known_at)
    ]


def stands_again(life: Life, lives: Mapping[int, Life], heir: int, known_at: int) -> bool:
    """Whether a hand had put an entry back, by some moment, where another had taken its place."""
    done = [at for at, one in enumerate(life.events) if one.kind == "retire" and heir in parse_seqs(one.get("by"))]
    undone = {one.get("at") for one in lives[heir].events if one.kind == "unflush"}  # an undo as it was noted before
    back = [
        (at, start_of(one.get("at")))
        for at, one in enumerate(life.events)
        if one.kind == "restore" and one.get("why") != TAKEN_BACK and one.get("at") not in undone
    ]
    since = known_from_of(heir, lives)
    return any((at > done[-1] if done else since <= moment) and moment <= known_at for at, moment in back)


def known_from_of(seq: int, lives: Mapping[int, Life]) -> int:
    """The moment from which a seq was known; 0 where nothing tells."""
    unit = own_line(lives[seq]) if seq in lives else None
    return known_from(unit) if unit is not None else 0


def beginning_of(seq: int, lives: Mapping[int, Life], seen: frozenset[int] = frozenset()) -> int:
    """The moment from which a seq held; 0 where nothing tells.

    One that was forgotten held at the latest until what took its own place began: so much is known of it.
    """
    life = lives.get(seq)
    if life is None or seq in seen:
        return 0
    unit = life.said() or life.here
    if unit is None:
        starts = [start for by in followed_by(life) if (start := beginning_of(by, lives, seen | {seq}))]
        return min(starts, default=0)
    began = happened(unit)
    return began[0] if began else 0


def followed_by(life: Life) -> tuple[int, ...]:
    """What had taken the place of an entry whose words were forgotten."""
    before = [event for event in life.events if event.kind != "forget"][-1:]
    return tuple(by for event in before if event.kind == "retire" for by in parse_seqs(event.get("by")))


def reworded(unit: Unit, lives: Mapping[int, Life], known_at: int) -> Unit:
    """A visible line in the words that it had at a moment: those of the last revision noted by then."""
    if known_at == ALWAYS or len(unit.seqs) > 1:
        return unit
    said = lives[unit.seqs[0]].said(known_at)
    return unit if said is None else replace(unit, text=said.text)


def past_unit(life: Life, known_at: int) -> Iterator[Unit]:
    """An entry that is not visible by itself now, from evidence."""
    said = life.said(known_at)
    if said is not None and said.path.startswith("evidence/"):
        yield replace(said, retired=JOINED) if life.here is not None and len(life.here.seqs) > 1 else said


def told_fate(unit: Unit, life: Life, lives: Mapping[int, Life], held_at: int | None, known_at: int) -> Unit:
    """A unit with the mark of what became of it, as far as that was known at a moment.

    What had not held any more at that very moment is not there, so that only who asks what held sees marks.
    """
    if held_at is None:
        return unit
    event = life.retirement(known_at)
    heirs = heirs_of(life, lives, known_at)
    if heirs:
        first = min(heirs, key=lambda seq: (beginning_of(seq, lives) or known_from_of(seq, lives), seq))
        return replace(unit, retired="superseded", fields=(*unit.fields, ("retired_by", str(first))))
    if event is None or is_by_date(unit, event):
        return unit
    fields = (*unit.fields, ("retired_at", event.get("at")), ("retired_by", event.get("by")))
    return replace(unit, retired=event.get("why") or event.kind, fields=fields)


# What is asked of the past


def past_index(root: Path, language: str, filter: Filter) -> PastIndex:
    """An index of what there was at the dates of a filter, read between two commits."""
    from infinimem.search.past import PastIndex

    for _ in range(ATTEMPTS):
        finish_commit(root)
        seen = commit_mark(root)
        past = replay(root, filter)
        if commit_mark(root) == seen:
            break
    return PastIndex(root, language, past.units, past.homes)


def past_catalog(index: PastIndex) -> list[CatalogRow]:
    """Every topic that had entries then, with a summary made of their words alone."""
    from infinimem.plan import lexical
    from infinimem.search.index import CatalogRow

    topics: dict[str, list[Unit]] = {}
    for unit in index.units_then():
        topic = index.home(unit)
        if unit.seqs and topic not in ("", CURRENT):
            topics.setdefault(topic, []).append(unit)
    rows = []
    for topic, units in sorted(topics.items()):
        title = topic.rsplit("/", 1)[-1].replace("-", " ").replace("_", " ")
        entries = [Entry(topic, Signature(unit.seqs, unit.fields), unit.text) for unit in in_order(units)]
        tokens = sum(estimate(unit.text) for unit in units)
        rows.append(
            CatalogRow(topic, path_of(topic), title, lexical.summarise(title, entries), tokens, len(units), False)
        )
    return rows


def in_order(units: Iterable[Unit]) -> list[Unit]:
    """Units as they were written."""
    return sorted(units, key=lambda unit: (min(unit.seqs, default=0), unit.path, unit.line))
