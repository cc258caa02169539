"""A timeline: from when to when each statement held, in which words, and what took its place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from infinimem.evolve.lives import Life, in_order, life_of
from infinimem.model import Unit
from infinimem.search.records import happened
from infinimem.store.evidence import read_records
from infinimem.text.signature import parse_seqs

if TYPE_CHECKING:
    from infinimem.search.index import Index

NEVER = 10**12


@dataclass(frozen=True, slots=True)
class Held:
    """A statement and when it held: `since` and `until` are ISO dates, perhaps partial, "" for unknown and for still.

    `why` says how it ended and `by` what took its place; `waiting` that this waits for a flush. `observed` and
    `retired_at` say from when to when the library knew it. `unit` is the visible line, else the words in evidence.
    """

    unit: Unit
    since: str
    until: str = ""
    why: str = ""
    by: tuple[int, ...] = ()
    retired_at: str = ""
    waiting: bool = False


def timeline(root: Path, index: Index, seqs: Iterable[int]) -> list[Held]:
    """When some entries held, and all that they replaced or that replaced them, in order of time."""
    lives = whole_story(root, index, seqs)
    waiting = {old: unit for unit in index.superseding() for old in parse_seqs(unit.get("supersedes"))}
    rows: dict[tuple[str, int], Held] = {}
    for life in lives.values():
        held = held_of(life, lives, waiting)
        if held is not None:
            rows.setdefault((held.unit.path, held.unit.line), held)
    return sorted(rows.values(), key=in_time)


def in_time(held: Held) -> tuple[int, int, str]:
    """Order of beginning; what has no date comes last."""
    began = happened(held.unit)
    return (began[0] if began else NEVER), min(held.unit.seqs, default=0), held.unit.path


def whole_story(root: Path, index: Index, seqs: Iterable[int]) -> dict[int, Life]:
    """The lives of entries, of all that they replaced, and of all that took their place."""
    lives: dict[int, Life] = {}
    fresh = set(seqs)
    while fresh:
        records = read_records(root, fresh)
        for seq in sorted(fresh):
            lives[seq] = life_of(seq, records[seq], next(iter(index.standing(seq)), None))
        near = {old for unit in index.replaced_by(*fresh) for old in unit.seqs}
        for seq in fresh:
            event = lives[seq].retirement()
            near.update(parse_seqs(event.get("by")) if event is not None else ())
            near.update(lives[seq].here.seqs if lives[seq].here is not None else ())  # type: ignore[union-attr]
        fresh = near - lives.keys()
    return lives


def held_of(life: Life, lives: dict[int, Life], waiting: dict[int, Unit]) -> Held | None:
    """One statement's row: the line that shows it, else its words in evidence; None where neither is left."""
    event = life.retirement() if life.here is None else None
    unit = life.here or life.said()
    if unit is None or (event is not None and event.kind == "forget"):
        return None
    since = start_words(unit)
    if event is None:
        later = waiting.get(life.seq)
        if later is not None and later.seqs != unit.seqs:
            return Held(unit, since, start_words(later), "superseded", later.seqs, waiting=True)
        expires = unit.get("expires")
        return Held(unit, since, expires, "expires" if expires else "")
    by = parse_seqs(event.get("by"))
    why = event.get("why") or event.kind
    if why == "expired" and unit.get("expires"):
        until = unit.get("expires")
    elif why == "split":
        until = event.get("at")[:10]
    else:
        ends = [start_words(next_unit) for seq in by if (next_unit := unit_in(lives.get(seq))) is not None]
        until = min((end for end in ends if end), default=event.get("at")[:10])
    return Held(unit, since, until, why, by, event.get("at"))


def unit_in(life: Life | None) -> Unit | None:
    """An entry's own words, else the line that shows it."""
    return (life.said() or life.here) if life is not None else None


def start_words(unit: Unit) -> str:
    """From when a statement held, as a date to read."""
    return unit.time or unit.observed[:10]


def seqs_of_topic(units: Sequence[Unit]) -> list[int]:
    """The seqs that a topic shows, as they were written."""
    return [seq for unit in in_order(units) for seq in unit.seqs]
