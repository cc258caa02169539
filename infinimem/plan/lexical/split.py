"""Cutting a document that has grown too long into documents of one subject each."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence

from infinimem.model import Document, Entry, Part, Split
from infinimem.plan.lexical.route import SAME_SUBJECT, TINY
from infinimem.plan.lexical.segment import segment
from infinimem.plan.lexical.titled import name_titled
from infinimem.plan.lexical.titles import slug_of, title_of
from infinimem.plan.lexical.weigh import Vector, cosine, rarity, subject_terms, telling, term_counts, vector, vocatives
from infinimem.text.tokens import estimate

COMFORTABLE = 0.7  # share of the limit that no part of several entries exceeds
ROUNDS = 8


def plan_split(document: Document, limit_tokens: int, taken: Collection[str]) -> Split | None:
    """An exact partition of a document over the limit, None where it is not or cannot be cut.

    What stands under one heading stays together where it fits. The part that its id fits best keeps it.
    """
    entries = [entry for entry in document.entries if entry.seqs]
    tokens = {entry.seq: _tokens(document, entry) for entry in entries}
    if estimate("".join(document.lines)) <= limit_tokens or len(entries) < 2:
        return None
    room = COMFORTABLE * limit_tokens
    groups = _separate(_pieces(entries, tokens, room), tokens, room)
    if len(groups) < 2:
        return None
    first = _keeper(document.id, groups)
    groups = [groups[first], *groups[:first], *groups[first + 1 :]]
    used = set(taken)
    titles: list[str] = []
    parts: list[Part] = []
    for group in groups:
        weights = telling(entry for other in groups if other is not group for entry in other)
        title = name_titled(group, titles, weights) or title_of(group, titles, weights)
        topic = slug_of(title, used) if parts else document.id
        used.add(topic)
        titles.append(title)
        parts.append(Part(topic, title, _seqs(sorted(group, key=lambda entry: entry.span.start))))
    return Split(document.id, tuple(parts))


def plan_promote(document: Document, taken: Collection[str]) -> Split | None:
    """A section of odds and ends that has grown into a subject, in a document of its own; None where none has.

    Only notes gathered over time move: a stretch of one conversation stays with those around it.
    """
    entries = [entry for entry in document.entries if entry.seqs]
    sections: dict[tuple[str, ...], list[Entry]] = {}
    for entry in entries:
        sections.setdefault(entry.headings[1:], []).append(entry)
    weights = rarity([term_counts([entry]) for entry in entries], [1] * len(entries))
    for heading, section in sections.items():
        rest = [entry for entry in entries if entry.headings[1:] != heading]
        tokens = sum(_tokens(document, entry) for entry in section)
        days = {entry.time[:10] for entry in section}
        if not heading or not rest or len(section) < 3 or len(days) < 2 or tokens < TINY:
            continue
        unlike = cosine(vector(term_counts(section), weights), vector(term_counts(rest), weights))
        if unlike < SAME_SUBJECT:
            stays = entries[0].headings[0] if entries[0].headings else ""
            still_said = [term in term_counts(rest) for term in subject_terms(stays)]
            if 2 * sum(still_said) <= len(still_said):
                stays = title_of(rest, (), telling(section))
            title = title_of(section, [stays], telling(rest))
            goes = slug_of(title, {*taken, document.id})
            return Split(document.id, (Part(document.id, stays, _seqs(rest)), Part(goes, title, _seqs(section))))
    return None


def _keeper(topic: str, groups: Sequence[Sequence[Entry]]) -> int:
    """The group that has most of the words in the id, for its size; the largest one where none has."""
    named = set(subject_terms(re.sub(r"[-/_]", " ", topic)))
    counted = [term_counts(group) for group in groups]
    return max(
        range(len(groups)),
        key=lambda i: (sum(counted[i][term] for term in named) / len(groups[i]), len(groups[i]), -i),
    )


def _seqs(entries: Sequence[Entry]) -> tuple[int, ...]:
    return tuple(seq for entry in entries for seq in entry.seqs)


def _tokens(document: Document, entry: Entry) -> int:
    lines = document.lines[entry.span.start : entry.span.stop]
    return estimate("".join(lines)) if lines else estimate(entry.text) + 16


def _pieces(entries: Sequence[Entry], tokens: Mapping[int, int], room: float) -> list[list[Entry]]:
    """What a cut does not separate: the entries under one heading, or where those are too many, their blocks."""
    sections: list[list[Entry]] = []
    for entry in entries:
        if sections and sections[-1][-1].headings == entry.headings:
            sections[-1].append(entry)
        else:
            sections.append([entry])
    pieces = []
    for section in sections:
        if sum(tokens[entry.seq] for entry in section) <= room / 4:
            pieces.append(section)
            continue
        for block in segment(section):
            if sum(tokens[entry.seq] for entry in block) <= room / 2:
                pieces.append(list(block))
            else:
                pieces += [[entry] for entry in block]
    return pieces


def _separate(pieces: list[list[Entry]], tokens: Mapping[int, int], room: float) -> list[list[Entry]]:
    """Pieces in groups that fit: halved by subject until they do."""
    size = sum(tokens[entry.seq] for piece in pieces for entry in piece)
    if size <= room or len(pieces) < 2:
        return [[entry for piece in pieces for entry in piece]]
    one, other = _halve(pieces, tokens, min(room, 0.7 * size))
    return _separate(one, tokens, room) + _separate(other, tokens, room)


def _halve(
    pieces: list[list[Entry]], tokens: Mapping[int, int], room: float
) -> tuple[list[list[Entry]], list[list[Entry]]]:
    """Two groups of pieces about different subjects, from the two pieces least alike; neither exceeds `room`."""
    names = vocatives([entry for piece in pieces for entry in piece])
    counted = [term_counts(piece, names) for piece in pieces]
    weights = rarity(counted, [len(piece) for piece in pieces])
    vectors = [vector(counts, weights) for counts in counted]
    sizes = [sum(tokens[entry.seq] for entry in piece) for piece in pieces]
    side = _first_sides(vectors, sizes)
    for _ in range(ROUNDS):
        centres = [_centre([vectors[i] for i in range(len(pieces)) if side[i] == half]) for half in (0, 1)]
        lean = [cosine(unit, centres[0]) - cosine(unit, centres[1]) for unit in vectors]
        moved = _sides(lean, sizes, room)
        if moved == side:
            break
        side = moved
    halves = tuple([piece for piece, half in zip(pieces, side, strict=True) if half == want] for want in (0, 1))
    if not halves[0] or not halves[1]:
        return pieces[:1], pieces[1:]
    return halves[0], halves[1]


def _first_sides(vectors: Sequence[Vector], sizes: Sequence[int]) -> list[int]:
    """Every piece to the one of two far apart seeds that it is more like."""
    heaviest = max(range(len(vectors)), key=lambda i: (sizes[i], -i))
    everything = _centre(vectors)
    # the seed is far from the other one but typical enough to gather others
    far = max(
        (i for i in range(len(vectors)) if i != heaviest),
        key=lambda i: (cosine(vectors[i], everything) - cosine(vectors[i], vectors[heaviest]), -i),
    )
    return [
        0 if i == heaviest or (i != far and cosine(unit, vectors[heaviest]) >= cosine(unit, vectors[far])) else 1
        for i, unit in enumerate(vectors)
    ]


def _sides(lean: Sequence[float], sizes: Sequence[int], room: float) -> list[int]:
    """Each piece on the side it leans to, the least decided moved over where a side would not fit."""
    side = [0 if value >= 0 else 1 for value in lean]
    for full in (0, 1):
        held = sum(size for size, half in zip(sizes, side, strict=True) if half == full)
        for i in sorted(range(len(lean)), key=lambda i: (abs(lean[i]), i)):
            if held <= room:
                break
            if side[i] == full and held > sizes[i]:
                side[i] = 1 - full
                held -= sizes[i]
    return side


def _centre(vectors: Sequence[Vector]) -> dict[str, float]:
    total: dict[str, float] = {}
    for unit in vectors:
        for term, value in unit.items():
            total[term] = total.get(term, 0.0) + value
    norm = math.sqrt(math.fsum(value * value for value in total.values()))
    return {term: value / norm for term, value in total.items()} if norm else {}
