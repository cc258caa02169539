"""What an answer is written from: found entries with what stands around them, what holds now in the place of what did.

Decided in one order and shown in another. Room goes to the entries that were found, to those they link to, to
more by BM25 where that is little, to the rest of their heading blocks, and to what was written last.
They are shown best block first, or in order of time where the question counts or asks for a date.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from infinimem.ask import Evidence, evidence_of
from infinimem.model import Hit, Unit
from infinimem.readers.lines import flat, head_of
from infinimem.readers.links import Walk, marked_against, opposed, walked
from infinimem.readers.memory import (
    Memory,
    Place,
    block_of,
    marked,
    newest,
    older,
    place_of,
    recent,
    successor,
    until_then,
)
from infinimem.readers.questions import OLDEST, Kind, kind_of, subject_words
from infinimem.search.records import NEVER, happened, looks_back
from infinimem.text.tokens import estimate

DEPTH = 100
"""Entries that BM25 ranks for a question."""
GROWTH = 0.5
"""Share of the room that heading blocks may take."""
LARGEST_BLOCK = 400
"""Tokens of one heading block that are brought in."""
RECENT = 300
"""Tokens of CURRENT's newest entries."""
FEW = 0.5
"""Share of `k` under which what was found is too little and BM25 supplements it."""
AROUND, LAST = 10**6, 10**9
"""Where in the order comes what stands around what was found, and what was written last."""
MOST_OLD = 100
"""Entries of a long list whose old values are looked up."""
LISTED = 240
"""Characters of an entry in a long list."""


@dataclass(frozen=True, slots=True)
class Switches:
    """Parts of the reader that can be left out, to measure what each is worth."""

    expand: bool = True
    supplement: bool = True
    links: bool = True
    recent: bool = True
    history: bool = True
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Gathered:
    """Evidence in the order it is shown. Where matches were counted, `total` of them; `complete` says all are here."""

    pieces: tuple[Evidence, ...] = ()
    complete: bool = False
    total: int = 0


@dataclass(slots=True)
class Basket:
    """Evidence being gathered: each place once, no more than the room holds. `blocks` orders what belongs together."""

    memory: Memory
    room: int
    units: dict[Place, Unit] = field(default_factory=dict)
    blocks: dict[Place, int] = field(default_factory=dict)

    def put(self, unit: Unit, block: int = -1) -> bool:
        """Take a unit in if there is room; whether it is in now."""
        place = place_of(unit)
        if place in self.units:
            return True
        cost = cost_of(unit)
        if cost > self.room and self.units:
            return False
        self.room -= cost
        self.units[place] = unit
        self.blocks[place] = block if block >= 0 else len(self.units)
        return True


def gather(
    memory: Memory,
    question: str,
    found: Sequence[Unit],
    *,
    sure: bool = False,
    listed: Sequence[Unit] = (),
    k: int = 8,
    least: int = 0,
    room: int = 3_000,
    switches: Switches = Switches(),
    walk: Walk = Walk(),
) -> Gathered:
    """The evidence for a question, from what was found for it.

    `sure` says that a model pointed to what was found; else the question ranks it. `listed` is a complete list of
    matching entries that the model asked for. BM25 adds pieces up to `least` at any rate.
    """
    kind = kind_of(question)
    ranked = [hit.unit for hit in memory.index.search(question, DEPTH, memory.filter)]
    if kind.counts and switches.complete:
        listed = listed or own_list(memory, question)
        if listed:
            anchors = [*found[:k], *(ranked[: max(0, k - len(listed))] if switches.supplement else [])]
            return complete_list(memory, listed, anchors, kind, room)
    order = {place_of(unit): at for at, unit in enumerate(ranked)}
    if not sure:
        found = sorted(found, key=lambda unit: order.get(place_of(unit), DEPTH))
    basket = Basket(memory, room)
    anchors = held(memory, found)[: len(found) if sure else 2 * k]
    for unit in anchors:
        basket.put(unit)
    facing = opposed(memory, anchors) if switches.links else {}
    for unit in anchors:
        for other in facing.get(place_of(unit), ()):
            basket.put(other, basket.blocks.get(place_of(unit), -1))
    if switches.links:
        for unit in walked(memory, question, anchors, order, walk, k):
            basket.put(unit)
    if switches.supplement:
        few = math.ceil(FEW * k)
        wanted = max(least, 0 if len(anchors) >= few else few if sure else k)
        for unit in held(memory, ranked):
            if len(basket.units) >= wanted:
                break
            basket.put(unit)
    if switches.history and (kind.history or looks_back(memory.filter)):
        for unit in list(basket.units.values()):
            for old in older(memory, unit):
                basket.put(old, basket.blocks[place_of(unit)])
    if switches.expand:
        grow(basket, list(basket.units.values()), int(basket.room * GROWTH))
    if switches.recent:
        for unit in held(memory, recent(memory, RECENT)):
            basket.put(unit, block=LAST)
    units = sorted(basket.units.values(), key=lambda unit: basket.blocks[place_of(unit)])
    if kind.counts:
        units = in_time(units)
    pieces = {place_of(unit): piece(memory, unit, order) for unit in units}
    for place, others in facing.items():
        for other in others:
            if place in pieces and place_of(other) in pieces:
                pieces[place] = marked_against(pieces[place], [other])
                pieces[place_of(other)] = marked_against(pieces[place_of(other)], [basket.units[place]])
    return Gathered(tuple(pieces.values()))


def held(memory: Memory, units: Iterable[Unit]) -> list[Unit]:
    """The units with what holds now in the place of those that were replaced, each once.

    What has not begun comes behind what holds till then.
    """
    found: dict[Place, Unit] = {}
    for unit in units:
        now = newest(memory, unit)
        for one in (*until_then(memory, now), now):
            found.setdefault(place_of(one), one)
    return list(found.values())


def own_list(memory: Memory, question: str) -> list[Unit]:
    """Every entry that holds the words that a question is about; none where they are too many or too few to tell."""
    terms = subject_words(question, memory.language)
    if not terms:
        return []
    units = memory.index.entries(terms, memory.filter) or memory.index.nearly(terms, memory.filter)
    held_most = most_held(memory, terms, units)
    return units if held_most >= math.ceil(len(terms) / 2) else []


def most_held(memory: Memory, terms: Sequence[str], units: Sequence[Unit]) -> int:
    """How many of the terms the units of a list hold: all of them alike, so the first tells."""
    from infinimem.search.records import describe

    if not units:
        return 0
    record = describe(units[0], memory.language)
    return len(set(terms).intersection((*record.own, *record.signature, *record.headings)))


def complete_list(memory: Memory, listed: Sequence[Unit], anchors: Sequence[Unit], kind: Kind, room: int) -> Gathered:
    """All entries that match, in order of time; where there is no room for all, the end that the question asks about.

    What was found besides is among them. An entry that was replaced is counted as what took its place; where the
    question is about history both are there.
    """
    units = held(memory, [*listed, *anchors])
    if kind.history:
        units = unique([*units, *(old for unit in units[:MOST_OLD] for old in older(memory, unit))])
    units = in_time(units)
    if sum(map(cost_of, units)) > room:
        units = [shortened(unit) for unit in units]
    total = len(units)
    first: Iterable[Unit] = units if kind.end == OLDEST else reversed(units)
    chosen: set[Place] = set()
    for unit in first:
        cost = cost_of(unit)
        if cost > room and chosen:
            break
        room -= cost
        chosen.add(place_of(unit))
    shown = [unit for unit in units if place_of(unit) in chosen]
    return Gathered(tuple(piece(memory, unit) for unit in shown), len(shown) == total, total)


def unique(units: Iterable[Unit]) -> list[Unit]:
    """Each unit once."""
    return list({place_of(unit): unit for unit in units}.values())


def shortened(unit: Unit) -> Unit:
    """A unit with the beginning of its text."""
    return unit if len(unit.text) <= LISTED else replace(unit, text=flat(unit.text, LISTED))


def in_time(units: Iterable[Unit]) -> list[Unit]:
    """Units in order of time, those without one last."""
    never = (NEVER, NEVER)
    return sorted(units, key=lambda unit: (happened(unit) or never, min(unit.seqs, default=0), unit.path, unit.line))


def grow(basket: Basket, units: Sequence[Unit], room: int) -> None:
    """Bring in the rest of the units' heading blocks, nearest lines first, as far as a room of tokens goes."""
    memory = basket.memory
    for unit in units:
        left = min(LARGEST_BLOCK, room)
        block = AROUND + basket.blocks[place_of(unit)]
        near = sorted(block_of(memory, unit), key=lambda other: abs(other.line - unit.line))
        for other in near:
            if place_of(other) in basket.units or successor(memory, other) is not None:
                continue
            cost = cost_of(other)
            if cost > left:
                break
            if basket.put(other, block):
                left -= cost
                room -= cost


def cost_of(unit: Unit) -> int:
    """Tokens of a unit as a model is shown it."""
    return estimate(unit.text) + estimate(head_of(unit)) + 2


def piece(memory: Memory, unit: Unit, order: dict[Place, int] | None = None) -> Evidence:
    """A unit as evidence, marked where it holds no longer or not yet. Its score falls with its rank."""
    # a model that is asked what held then would take the mark of what came later for a no
    unit = replace(unit, retired="") if memory.filter.as_of else marked(memory, unit)
    at = (order or {}).get(place_of(unit))
    return evidence_of(Hit(unit, 0.0 if at is None else 1 / (1 + at)))
