"""Where a block of new entries goes, and which small documents belong in one."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from infinimem.model import Create, Entry, Extend, Merge, Step
from infinimem.plan.lexical.titles import SITTING, fitted, heading_of, name_under, slug_of, title_of
from infinimem.plan.lexical.weigh import Vector, cosine, rarity, telling, term_counts, vector, vocatives
from infinimem.text.tokens import estimate

SAME_SUBJECT = 0.10  # cosine from which a block continues a document
NEXT_TO = 0.04  # added where the document already holds the block's neighbours in write order
SAME_SCOPE = 0.12  # cosine from which two small documents are merged
COHERENT = 0.06  # mean cosine of a document's entries from which it has one subject
TINY = 80  # tokens of entries: a document so short, two or three notes, is never left alone
SIGNATURE = 16  # tokens of an entry's signature
SECTION = 0.6  # what the cosine to one section counts against the cosine to the whole
SAME_HEADING = 0.05  # cosine from which fewer notes go under a heading that exists


@dataclass(frozen=True, slots=True)
class Candidate:
    """A topic document that the index proposes for a block."""

    topic: str
    title: str
    summary: str
    tokens: int
    score: float
    headings: tuple[str, ...]
    entries: tuple[Entry, ...]


def route(
    block: Sequence[Entry],
    candidates: Sequence[Candidate],
    taken: Collection[str],
    limit_tokens: int,
    *,
    under: str = "",
) -> list[Step]:
    """The steps that put a block into the document most like it, or into a new one, named after the title `under`.

    `taken` are the ids that exist; a document at twice the limit takes no more before it is split.
    """
    seqs = tuple(entry.seq for entry in block)
    open_ones = [candidate for candidate in candidates if candidate.tokens < 2 * limit_tokens]
    weights = _weights(block, open_ones)
    alike = _likeness(block, open_ones, weights)
    ranked = sorted(zip(alike, open_ones, strict=True), key=lambda pair: (-pair[0], pair[1].topic))
    if ranked and ranked[0][0] >= SAME_SUBJECT:
        target = ranked[0][1]
        return [Extend(target.topic, _heading_in(block, target, weights), seqs)]
    around = telling(entry for candidate in candidates for entry in candidate.entries)
    others = [candidate.title for candidate in candidates]
    if under:
        title = name_under(under, block, others, around) if candidates else fitted([under])
    else:
        title = title_of(block, others, around)
    topic = slug_of(title, taken)
    return [Create(topic, title), Extend(topic, heading_of(block, around), seqs)]


def _weights(block: Sequence[Entry], candidates: Sequence[Candidate]) -> dict[str, float]:
    """The rarity of terms over a block and its candidates."""
    groups = [block, *(candidate.entries for candidate in candidates)]
    return rarity([term_counts(group) for group in groups], [len(group) for group in groups])


def _likeness(block: Sequence[Entry], candidates: Sequence[Candidate], weights: Mapping[str, float]) -> list[float]:
    """For each candidate the cosine to the block, and a little for neighbours.

    A few notes are also held against each section, for a document of odds and ends is like nothing as a whole.
    """
    names = vocatives([*block, *(entry for candidate in candidates for entry in candidate.entries)])
    own = vector(term_counts(block, names), weights)
    return [
        max(
            cosine(own, vector(term_counts(candidate.entries, names), weights)),
            SECTION * max((score for score, _ in _sections(own, candidate, weights)), default=0.0)
            if len(block) < SITTING
            else 0.0,
        )
        + NEXT_TO * _holds_neighbour(candidate, block)
        for candidate in candidates
    ]


def _holds_neighbour(candidate: Candidate, block: Sequence[Entry]) -> bool:
    """True where the document holds the entry written just before or after the block, of the same time."""
    around = {block[0].seq - 1, block[-1].seq + 1}
    return any(entry.seq in around and entry.time == block[0].time for entry in candidate.entries)


def plan_merge(
    document: Candidate, candidates: Sequence[Candidate], merge_tokens: int, limit_tokens: int
) -> Merge | None:
    """The merge of a small document with the small one most like it, None where none shares its scope.

    A document under TINY tokens goes where the odds and ends are.
    """
    if document.tokens >= merge_tokens:
        return None
    others = [
        other
        for other in candidates
        if other.topic != document.topic
        and other.tokens < merge_tokens
        and document.tokens + other.tokens <= limit_tokens
    ]
    weights = _weights(document.entries, others)
    alike = _likeness(document.entries, others, weights)
    ranked = sorted(zip(alike, others, strict=True), key=lambda pair: (-pair[0], pair[1].tokens, pair[1].topic))
    if ranked and ranked[0][0] >= SAME_SCOPE:
        target = ranked[0][1]
    elif ranked and text_tokens(document) < TINY:
        target = min(others, key=lambda other: (_is_one_subject(other, weights), -other.tokens, other.topic))
    else:
        return None
    into, other = sorted((document, target), key=lambda each: (-each.tokens, each.topic))
    if into.tokens >= 4 * other.tokens:
        title = into.title
    else:
        kept = [each.title for each in candidates if each.topic not in (into.topic, other.topic)]
        rest = (entry for each in candidates if each.title in kept for entry in each.entries)
        title = title_of([*into.entries, *other.entries], kept, telling(rest))
    return Merge((into.topic, other.topic), into.topic, title)


def text_tokens(candidate: Candidate) -> int:
    """What the entries alone cost, without front matter."""
    return sum(estimate(entry.text) + SIGNATURE for entry in candidate.entries)


def _is_one_subject(candidate: Candidate, weights: Mapping[str, float]) -> bool:
    """Whether two entries of a document are on average alike: odds and ends are not."""
    count = len(candidate.entries)
    total: dict[str, float] = {}
    for entry in candidate.entries:
        for term, value in vector(term_counts([entry]), weights).items():
            total[term] = total.get(term, 0.0) + value
    pairs = count * (count - 1)
    return pairs > 0 and math.fsum(value * value for value in total.values()) - count >= COHERENT * pairs


def _heading_in(block: Sequence[Entry], target: Candidate, weights: Mapping[str, float]) -> str:
    """The heading in a document for new entries: for a few notes the one most like them, else one of their own."""
    own = vector(term_counts(block), weights)
    score, heading = max(_sections(own, target, weights), default=(0.0, ""))
    if len(block) < SITTING and score >= SAME_HEADING:
        return heading
    return heading_of(block, telling(target.entries))


def _sections(own: Vector, candidate: Candidate, weights: Mapping[str, float]) -> list[tuple[float, str]]:
    """The cosine of a block to the entries under each heading of a document, and the heading."""
    sections: dict[str, list[Entry]] = {}
    for entry in candidate.entries:
        if len(entry.headings) > 1:
            sections.setdefault(entry.headings[-1], []).append(entry)
    return [(cosine(own, vector(term_counts(held), weights)), heading) for heading, held in sections.items()]
