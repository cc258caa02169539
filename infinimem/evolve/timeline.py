"""A timeline: from when to when each statement held, in which words, and what took its place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from infinimem.evolve.lives import Life, followed_by, in_order, life_of
from infinimem.forgetting.survey import forgotten_seqs
from infinimem.model import Unit
from infinimem.readers.memory import Waiting, waiting
from infinimem.search.records import NEVER, happened, is_over
from infinimem.store.evidence import read_records
from infinimem.text.signature import parse_seqs

if TYPE_CHECKING:
    from infinimem.search.index import Index


@dataclass(frozen=True, slots=True)
class Held:
    """A statement and when it held: `since` and `until` are ISO dates, perhaps partial, "" for unknown and for still.

    `why` says how it ended and `by` what took its place; `waiting` that this waits for a flush, `coming` that the end
    is still to come. `forgotten` are those of `by` whose words are gone: then `until` is when what followed them
    began, as far as anything is known of it, else the day of the flush. `observed` and `retired_at` say from when to
    when the library knew it. `unit` is the visible line, else the words in evidence.
    """

    unit: Unit
    since: str
    until: str = ""
    why: str = ""
    by: tuple[int, ...] = ()
    retired_at: str = ""
    waiting: bool = False
    coming: bool = False
    forgotten: tuple[int, ...] = ()


def timeline(root: Path, index: Index, seqs: Iterable[int], moment: int) -> list[Held]:
    """When some entries held, as seen from a moment, and all that they replaced or that replaced them, in time."""
    there = waiting(index, [*index.superseding(), *index.announced()], moment)
    lives = whole_story(root, index, seqs, there)
    rows: dict[tuple[str, int], Held] = {}
    for life in lives.values():
        held = held_of(life, lives, there, moment)
        if held is not None:
            rows.setdefault((held.unit.path, held.unit.line), held)
    return sorted(rows.values(), key=in_time)


def in_time(held: Held) -> tuple[int, int, str]:
    """Order of beginning; what has no date comes last."""
    began = happened(held.unit)
    return (began[0] if began else NEVER), min(held.unit.seqs, default=0), held.unit.path


def whole_story(root: Path, index: Index, seqs: Iterable[int], there: Waiting) -> dict[int, Life]:
    """The lives of entries, of all that they replaced, and of all that took their place or is to take it."""
    lives: dict[int, Life] = {}
    later = {**there.coming, **there.newer}
    before: dict[int, set[int]] = {}
    for old, unit in later.items():
        for seq in unit.seqs:
            before.setdefault(seq, set()).add(old)
    gone_before = forgotten_before(root)
    fresh = set(seqs)
    while fresh:
        records = read_records(root, fresh)
        for seq in sorted(fresh):
            lives[seq] = life_of(seq, records[seq], next(iter(index.standing(seq)), None))
        near = {old for unit in index.replaced_by(*fresh) for old in unit.seqs}
        for seq in fresh:
            near.update(before.get(seq, ()), later[seq].seqs if seq in later else ())
            event = lives[seq].retirement()
            near.update(parse_seqs(event.get("by")) if event is not None else ())
            near.update(followed_by(lives[seq]) if is_gone(lives[seq]) else ())
            near.update(gone_before.get(seq, ()))
            near.update(lives[seq].here.seqs if lives[seq].here is not None else ())  # type: ignore[union-attr]
        fresh = near - lives.keys()
    return lives


def held_of(life: Life, lives: dict[int, Life], there: Waiting, moment: int) -> Held | None:
    """One statement's row: the line that shows it, else its words in evidence; None where neither is left."""
    event = life.retirement() if life.here is None else None
    unit = life.here or life.said()
    if unit is None or (event is not None and event.kind == "forget"):
        return None
    since = start_words(unit)
    if event is None:
        for later, coming in ((there.newer.get(life.seq), False), (there.coming.get(life.seq), True)):
            if later is not None and later.seqs != unit.seqs:
                return Held(unit, since, start_words(later), "superseded", later.seqs, waiting=True, coming=coming)
        expires = unit.get("expires")
        if is_over(unit, moment):
            return Held(unit, since, expires, "expired", waiting=True)
        return Held(unit, since, expires, "expires" if expires else "", coming=bool(expires))
    by = parse_seqs(event.get("by"))
    why = event.get("why") or event.kind
    if why == "expired" and unit.get("expires"):
        until = unit.get("expires")
    elif why == "split":
        until = event.get("at")[:10]
    else:
        until = min((end for seq in by if (end := first_words(lives, seq))), default=event.get("at")[:10])
    gone = tuple(seq for seq in by if seq in lives and is_gone(lives[seq]))
    return Held(unit, since, until, why, by, event.get("at"), forgotten=gone)


def forgotten_before(root: Path) -> dict[int, list[int]]:
    """The entries whose words were forgotten, by what had taken their place."""
    found: dict[int, list[int]] = {}
    gone = forgotten_seqs(root)
    records = read_records(root, gone) if gone else {}
    for seq in gone:
        for by in followed_by(life_of(seq, records[seq], None)):
            found.setdefault(by, []).append(seq)
    return found


def is_gone(life: Life) -> bool:
    """Whether nothing is left of an entry but that it was forgotten."""
    return unit_in(life) is None and any(event.kind == "forget" for event in life.events)


def first_words(lives: dict[int, Life], seq: int) -> str:
    """From when an entry held, as a date to read; of a forgotten one, when what had followed it began."""
    waiting, seen = [seq], set[int]()
    starts: list[tuple[tuple[int, int], str]] = []
    while waiting:
        seq = waiting.pop()
        if seq in seen or seq not in lives:
            continue
        seen.add(seq)
        unit = unit_in(lives[seq])
        if unit is None:
            waiting += followed_by(lives[seq])
        elif said := start_words(unit):
            starts.append((happened(unit) or (NEVER, NEVER), said))
    return min(starts)[1] if starts else ""


def unit_in(life: Life | None) -> Unit | None:
    """An entry's own words, else the line that shows it."""
    return (life.said() or life.here) if life is not None else None


def start_words(unit: Unit) -> str:
    """From when a statement held, as a date to read."""
    return unit.time or unit.observed[:10]


def seqs_of_topic(units: Sequence[Unit]) -> list[int]:
    """The seqs that a topic shows, as they were written."""
    return [seq for unit in in_order(units) for seq in unit.seqs]
