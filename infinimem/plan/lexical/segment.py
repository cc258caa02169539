"""Cutting the buffer into blocks that belong together: stretches of a conversation, subjects of notes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from infinimem.model import Entry
from infinimem.plan.lexical.weigh import Vector, cosine, rarity, term_counts, vector, vocatives

SHORTEST = 4  # turns of a conversation in a block
LONGEST = 24
TALK = 8  # turns from which a conversation's own words tell what it is about; fewer are notes
CUT_PRICE = 0.7  # in units of log(words): a higher price makes longer blocks
OPEN_QUESTION = 2.0  # nats: what a cut between a question and its answer costs
ALIKE = 0.08  # cosine from which two independent notes share a block


def segment(entries: Sequence[Entry]) -> list[tuple[Entry, ...]]:
    """The buffer as blocks, every entry exactly once, ordered by their first entries.

    A conversation is cut where its words change; notes that belong to none are grouped by what they share.
    """
    blocks: list[tuple[Entry, ...]] = []
    notes: list[Entry] = []
    for run in _runs(entries):
        if _is_conversation(run):
            blocks += stretches(run)
        else:
            notes += run
    blocks += group_notes(notes)
    place = {id(entry): index for index, entry in enumerate(entries)}
    return sorted(blocks, key=lambda block: place[id(block[0])])


def part(entries: Sequence[Entry]) -> tuple[list[tuple[Entry, ...]], list[Entry]]:
    """Long conversations cut into stretches, and all other entries, in order: independent notes."""
    talks: list[tuple[Entry, ...]] = []
    notes: list[Entry] = []
    for run in _runs(entries):
        if is_talk(run):
            talks += stretches(run)
        else:
            notes += run
    return talks, notes


def is_talk(entries: Sequence[Entry]) -> bool:
    """Whether most of the entries are turns of conversations long enough to speak for themselves."""
    turns = sum(len(run) for run in _runs(entries) if len(run) >= TALK and _is_conversation(run))
    return 2 * turns > len(entries)


def _runs(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Neighbours of one sitting: the same time, or, where none is known, written on the same day."""
    runs: list[list[Entry]] = []
    for entry in entries:
        if runs and _sitting(runs[-1][-1]) == _sitting(entry):
            runs[-1].append(entry)
        else:
            runs.append([entry])
    return runs


def _sitting(entry: Entry) -> tuple[str, str]:
    return (entry.time or entry.observed)[:10], entry.signature.get("ns")


def _is_conversation(run: Sequence[Entry]) -> bool:
    """At least four turns, and the speaker changes at two of three."""
    changes = sum(one.source != other.source for one, other in pairwise(run))
    return len(run) >= 4 and all(entry.source for entry in run) and 3 * changes >= 2 * (len(run) - 1)


def stretches(run: Sequence[Entry]) -> list[tuple[Entry, ...]]:
    """The cheapest segmentation by Utiyama and Isahara (ACL 2001): each stretch has words of its own.

    A stretch costs the bits to say its words by their own smoothed frequencies, and a constant.
    """
    names = vocatives(run)
    counted = [term_counts([entry], names) for entry in run]
    vocabulary = len({term for counts in counted for term in counts}) or 1
    price = CUT_PRICE * math.log(2 + sum(len(counts) for counts in counted))
    best = [0.0] + [math.inf] * len(run)
    came_from = [0] * (len(run) + 1)
    for start in range(len(run)):
        if best[start] == math.inf:
            continue
        counts: Counter[str] = Counter()
        for stop in range(start + 1, min(start + LONGEST, len(run)) + 1):
            counts.update(counted[stop - 1])
            if stop - start < SHORTEST and stop < len(run):
                continue
            cost = best[start] + price + _words_cost(counts, vocabulary)
            if stop < len(run) and _asks(run[stop - 1].text):
                cost += OPEN_QUESTION
            if stop - start < SHORTEST:
                cost += price  # a short tail belongs to the stretch before it
            if cost < best[stop]:
                best[stop], came_from[stop] = cost, start
    blocks = []
    stop = len(run)
    while stop:
        blocks.append(tuple(run[came_from[stop] : stop]))
        stop = came_from[stop]
    return blocks[::-1]


def _words_cost(counts: Counter[str], vocabulary: int) -> float:
    total = counts.total() + vocabulary
    return math.fsum(count * math.log(total / (count + 1)) for count in counts.values())


def _asks(text: str) -> bool:
    return any(mark in text[-60:] for mark in "?？؟")


def group_notes(notes: Sequence[Entry]) -> list[tuple[Entry, ...]]:
    """Notes in groups: joined, most alike pair first, while the mean cosine between two groups is at least ALIKE."""
    counted = [term_counts([entry]) for entry in notes]
    weights = rarity(counted, [1] * len(counted))
    vectors = [vector(counts, weights) for counts in counted]
    group_of = list(range(len(notes)))
    members = {index: [index] for index in group_of}
    sums = {index: dict(unit) for index, unit in enumerate(vectors)}
    for _, one, other in _alike_pairs(notes, vectors):
        keep, gone = sorted((group_of[one], group_of[other]))
        pairs = len(members[keep]) * len(members[gone])
        if keep == gone or cosine(sums[keep], sums[gone]) < ALIKE * pairs:
            continue
        for term, value in sums.pop(gone).items():
            sums[keep][term] = sums[keep].get(term, 0.0) + value
        for index in members[gone]:
            group_of[index] = keep
        members[keep] += members.pop(gone)
    return [tuple(notes[index] for index in sorted(group)) for group in members.values()]


def _alike_pairs(notes: Sequence[Entry], vectors: Sequence[Vector]) -> list[tuple[float, int, int]]:
    """Pairs of notes in one namespace with a cosine of at least ALIKE, most alike first, then in write order."""
    pairs = []
    for one, entry in enumerate(notes):
        for other in range(one):
            score = cosine(vectors[one], vectors[other])
            if score >= ALIKE and entry.signature.get("ns") == notes[other].signature.get("ns"):
                pairs.append((-score, one, other))
    return sorted(pairs)
