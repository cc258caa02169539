"""Links followed from what was found, and both sides of what contradicts itself.

All-Mem's three budgets: `anchors` whose links are followed, `candidates` that are reached in `hops`, and of those the
ones most like the question are `kept`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from infinimem.ask import Answer, Evidence, evidence_of
from infinimem.errors import StorageFailed
from infinimem.model import CURRENT, Hit, Tie, Unit
from infinimem.plan.desk import topic_ties
from infinimem.readers.memory import LONGEST_CHAIN, Memory, Place, allowed, newest, place_of
from infinimem.reading import resolve_topic
from infinimem.store.read import read_file
from infinimem.text.signature import parse_links, parse_seqs

OPPOSED = "contradicts"
OF_A_TOPIC = 2
"""Entries that a link to a topic leads to."""
UNRANKED = 10**6
LONGEST_RANGE = 10
"""Seqs of one link that are followed."""


@dataclass(frozen=True, slots=True)
class Walk:
    """How far links are followed. `kept` counts what was found, too; at least a quarter of it is for links."""

    hops: int = 2
    anchors: int = 10
    candidates: int = 40
    kept: int = 16

    def room(self, found: int) -> int:
        """How many linked entries are kept beside so many that were found."""
        return max(self.kept - found, self.kept // 4)


def walked(
    memory: Memory, question: str, anchors: Sequence[Unit], order: Mapping[Place, int], walk: Walk, k: int
) -> list[Unit]:
    """What the anchors are linked to, as it stands now, those most like the question first."""
    frontier = list(anchors[: walk.anchors])
    seen = {place_of(unit) for unit in anchors}
    found: list[tuple[int, int, Unit]] = []
    for hop in range(walk.hops):
        reached: list[Unit] = []
        for unit in frontier:
            for there in linked(memory, question, unit, topics=hop == 0):
                if place_of(there) not in seen and len(found) < walk.candidates:
                    seen.add(place_of(there))
                    reached.append(there)
                    found.append((order.get(place_of(there), UNRANKED), hop, there))
        frontier = reached
    found.sort(key=lambda one: one[:2])
    return [unit for _, _, unit in found[: walk.room(k)]]


def linked(memory: Memory, question: str, unit: Unit, *, topics: bool) -> Iterator[Unit]:
    """What a unit's own links lead to, and those of its topic; what contradicts it is shown at any rate."""
    ties = parse_links(unit.get("links"))
    for tie in (*ties, *(ties_of_topic(memory, unit) if topics else ())):
        if tie.relation != OPPOSED:
            yield from reached_by(memory, question, tie)


def ties_of_topic(memory: Memory, unit: Unit) -> tuple[Tie, ...]:
    """The links of the topic that a unit stands in."""
    if not unit.path.startswith("topics/"):
        return ()
    try:
        return topic_ties(read_file(memory.root, unit.path).document)
    except StorageFailed:
        return ()


def reached_by(memory: Memory, question: str, tie: Tie) -> Iterator[Unit]:
    """The entries that a link leads to, as they stand now."""
    seen: set[Place] = set()
    for seq in tie.seqs[:LONGEST_RANGE]:
        for unit in heirs(memory, seq):
            if place_of(unit) not in seen:
                seen.add(place_of(unit))
                yield unit
    if tie.topic:
        topic = resolve_topic(memory.root, tie.topic, memory.index.named_before)
        if topic is not None and topic != CURRENT:
            narrow = replace(memory.filter, topic=topic)
            yield from (hit.unit for hit in memory.index.search(question, OF_A_TOPIC, narrow))


def heirs(memory: Memory, seq: int) -> list[Unit]:
    """What a seq is now: the line that shows it, or those that took its place; of a divided entry all its pieces."""
    found: list[Unit] = []
    waiting, passed = [seq], set[int]()
    while waiting and len(passed) < LONGEST_CHAIN:
        seq = waiting.pop(0)
        passed.add(seq)
        here = allowed(memory, memory.index.standing(seq))[:1]
        gone = [] if here else memory.index.retired((seq,))[:1]
        then = allowed(memory, gone)
        found += [newest(memory, unit) for unit in here or then]
        if not then:
            waiting += [one for unit in gone for one in parse_seqs(unit.get("retired_by")) if one not in passed]
    return found


def opposed(memory: Memory, units: Sequence[Unit]) -> dict[Place, list[Unit]]:
    """For each unit the entries that contradict it or that it contradicts, as they stand now."""
    earlier = predecessors(memory, units)
    accusing = accusers(memory, {seq for seqs in earlier.values() for seq in seqs})
    found: dict[Place, list[Unit]] = {}
    for unit in units:
        there = [now for tie in against(unit) for now in reached_by(memory, "", tie)]
        there += [one for seq in earlier[place_of(unit)] for one in accusing.get(seq, ())]
        others = {place_of(one): one for one in there if place_of(one) != place_of(unit)}
        if others:
            found[place_of(unit)] = list(others.values())
    return found


def predecessors(memory: Memory, units: Sequence[Unit]) -> dict[Place, list[int]]:
    """For each unit its seqs and those whose place it took: what leads to those leads to it."""
    found = {place_of(unit): list(unit.seqs) for unit in units}
    frontier = {seq for unit in units for seq in unit.seqs}
    for _ in range(LONGEST_CHAIN):
        before: dict[int, list[int]] = {}
        for gone in memory.index.replaced_by(*frontier) if frontier else ():
            for seq in parse_seqs(gone.get("retired_by")):
                before.setdefault(seq, []).extend(gone.seqs)
        for seqs in found.values():
            seqs += [old for seq in tuple(seqs) for old in before.get(seq, ()) if old not in seqs]
        frontier = {old for olds in before.values() for old in olds}
    return found


def accusers(memory: Memory, seqs: Collection[int]) -> dict[int, list[Unit]]:
    """The entries that say of a seq that they contradict it, by that seq."""
    found: dict[int, list[Unit]] = {}
    for one in allowed(memory, memory.index.linked_to(seqs, OPPOSED)):
        for seq in {seq for tie in against(one) for seq in tie.seqs}:
            found.setdefault(seq, []).append(one)
    return found


def disputes(memory: Memory, units: Sequence[Unit] | None = None) -> list[tuple[Unit, Unit]]:
    """Each pair of entries of which one is said to contradict the other, one of them among `units` (None: any)."""
    if units is None:
        units = allowed(memory, memory.index.having("links", OPPOSED))
    facing = opposed(memory, units)
    return [(unit, other) for unit in units for other in facing.get(place_of(unit), ())]


def against(unit: Unit) -> list[Tie]:
    """The links by which a unit says that it contradicts another."""
    return [tie for tie in parse_links(unit.get("links")) if tie.relation == OPPOSED and tie.seqs]


def with_both_sides(memory: Memory, answer: Answer) -> Answer:
    """An answer that is only evidence, with the other side beside each piece that is contradicted."""
    units = {(piece.path, piece.span.start): unit_at(memory, piece) for piece in answer.evidence}
    facing = opposed(memory, [unit for unit in units.values() if unit is not None])
    if not facing:
        return answer
    pieces: dict[Place, Evidence] = {}
    for piece in answer.evidence:
        place = (piece.path, piece.span.start)
        others = facing.get(place, [])
        pieces[place] = marked_against(pieces.get(place, piece), others)
        for other in others:
            back = replace(evidence_of(Hit(other, 0.0)), contradicts=piece.seqs[:1])
            pieces.setdefault(place_of(other), back)
    everything = tuple(pieces.values())
    return replace(answer, evidence=everything, citations=tuple(piece.place for piece in everything))


def unit_at(memory: Memory, piece: Evidence) -> Unit | None:
    """The unit that a piece of evidence came from."""
    found = [unit for seq in piece.seqs[:1] for unit in memory.index.standing(seq)]
    return next((unit for unit in found if place_of(unit) == (piece.path, piece.span.start)), None)


def marked_against(piece: Evidence, others: Sequence[Unit]) -> Evidence:
    """A piece of evidence that names what it contradicts."""
    seqs = dict.fromkeys([*piece.contradicts, *(unit.seqs[0] for unit in others)])
    return replace(piece, contradicts=tuple(seqs))
