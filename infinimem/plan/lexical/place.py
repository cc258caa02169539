"""Where independent notes go: each to the document that would most likely say it, or to a new one.

A document is read as a unigram language model, smoothed by the whole library's frequencies (Dirichlet): a note
fits where its words are likelier than anywhere. A big document is a likelier home than a small one, as in
a Chinese restaurant process, and what one person jots down in one sitting tends to be about one thing.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from heapq import heappop, heappush
from itertools import chain, pairwise

from infinimem.model import NOBODY, Create, Entry, Extend, Merge, Part, Split, Step
from infinimem.plan.lexical.route import TINY, Candidate, text_tokens
from infinimem.plan.lexical.segment import group_notes, is_talk
from infinimem.plan.lexical.titles import UNNAMED, name_subject, slug_of
from infinimem.plan.lexical.weigh import cosine, rarity, subject_terms, term_counts, vector
from infinimem.text.signature import parse_seqs

SMOOTHING = 200.0  # pseudo-words: what a document must say before it counts for much
NEWCOMER = 20.0  # a new document is as likely as one of 400 notes whose words say nothing
CROWD = 0.5  # how much a document's size speaks for it
SITTING_BONUS = 4.0  # nats for the home of the note written just before or after
SITTING_GAP = (10.0, 2700.0)  # seconds between two notes of one sitting; sooner is a script, later another
CORRECTS_BONUS = 8.0  # nats for the home of an entry that the note says it replaces
ROUNDS = 3
SAME_SECTION = 0.08  # cosine from which a note goes under a heading that exists
SUBJECT = 3  # odds and ends that share a word from which they are a subject
FEW = 6  # notes from which a name stays in a merge
_ODDS = re.compile(rf"{UNNAMED.casefold()}(?:-\d{{4}}-\d\d)?(?:-\d+)?")


@dataclass(frozen=True, slots=True)
class Frequencies:
    """How common words are in the whole library: visible units, and how many of them hold a term."""

    units: int
    holding: Callable[[str], int]


@dataclass(slots=True, eq=False)
class Group:
    """A document as notes are weighed against it: its entries' words, each counted once an entry."""

    topic: str
    counts: Counter[str] = field(default_factory=Counter)
    size: int = 0
    words: int = 0

    def add(self, terms: Iterable[str], times: int = 1) -> None:
        """Take the terms of an entry in, or with -1 out."""
        for term in terms:
            self.counts[term] += times
            self.words += times
        self.size += times


def place(
    notes: Sequence[Entry],
    candidates: Sequence[Candidate],
    library: Frequencies,
    taken: Collection[str],
    limit_tokens: int,
) -> list[Step]:
    """The steps that put every note into the document most likely to say it, or into a new one.

    `taken` are the ids that exist; a document at twice the limit takes no more before it is split.
    """
    open_ones = {each.topic: each for each in candidates if each.tokens < 2 * limit_tokens and not is_odds(each.topic)}
    chance = chances(library, [*notes, *(entry for each in open_ones.values() for entry in each.entries)])
    groups = [group_of(each.topic, each.entries) for each in open_ones.values()]
    holders = {
        seq: group
        for group, each in zip(groups, open_ones.values(), strict=True)
        for entry in each.entries
        for seq in entry.seqs
    }
    steps: list[Step] = []
    used = set(taken)
    titles = [each.title for each in candidates]
    room = (each.topic for each in candidates if is_odds(each.topic) and each.tokens < limit_tokens)
    odds = next(room, "")  # where notes go that name nothing
    for group, placed in _settle(notes, groups, chance, holders):
        target = open_ones.get(group.topic)
        if target is None:
            title = name_subject(placed, telling_of(group, chance), titles)
            if title == UNNAMED and odds:
                topic = odds
            else:
                topic = slug_of(title, used)
                used.add(topic)
                titles.append(title)
                steps.append(Create(topic, title))
                odds = topic if title == UNNAMED else odds
        else:
            topic = target.topic
        weights = telling_of(group, chance)
        for heading, under in _sections(placed, target, weights):
            steps.append(Extend(topic, heading, tuple(entry.seq for entry in under)))
    return steps


def plan_union(
    document: Candidate,
    candidates: Sequence[Candidate],
    library: Frequencies,
    merge_tokens: int,
    limit_tokens: int,
    taken: Collection[str],
    made: Collection[str],
) -> list[Step]:
    """The steps that merge a small document of notes with the one that most likely is about the same, if any.

    What stood before this run keeps its id and title. One of two or three notes that nothing is like goes to the
    odds and ends, if it is among those `made` just now and no subject, which would leave them again at the next
    flush: what had a place of its own keeps it.
    """
    if document.tokens >= merge_tokens or is_odds(document.topic):
        return []
    others = [
        other
        for other in candidates
        if other.topic != document.topic
        and other.tokens < merge_tokens
        and document.tokens + other.tokens <= limit_tokens
    ]
    chance = chances(library, [entry for each in (document, *others) for entry in each.entries])
    own = group_of(document.topic, document.entries)
    gains = [
        (affinity(own, group_of(other.topic, other.entries), chance), -at)
        for at, other in enumerate(others)
        if not is_odds(other.topic) and not is_talk(other.entries)
    ]
    gain, at = max(gains, default=(0.0, 0))
    if gain > 0 and _is_anchored(own, group_of("", others[-at].entries)):
        pair = (document, others[-at])
        into, gone = sorted(pair, key=lambda each: (each.topic in made, -len(each.entries), each.topic))
        if into.topic not in made:  # a name that people may know by now stays
            return [Merge((into.topic, gone.topic), into.topic, into.title)]
        return _merged(into, gone, candidates, chance, taken)
    if text_tokens(document) >= TINY or document.topic not in made or _is_subject(document.entries):
        return []
    month = min((entry.time or entry.observed)[:7] for entry in document.entries) if document.entries else ""
    title = f"{UNNAMED} {month}".strip()
    home = next((other for other in others if is_odds(other.topic)), None)
    if home is not None:
        return [Merge((home.topic, document.topic), home.topic, home.title)]
    also = [
        other for other in others if other.topic in made and text_tokens(other) < TINY and not is_talk(other.entries)
    ]
    if not also:
        return []
    topic = slug_of(title, taken)
    topics = (topic, document.topic, *(other.topic for other in also[:1]))
    return [Create(topic, title), Merge(topics, topic, title)]


def plan_sort(
    odds: Candidate,
    candidates: Sequence[Candidate],
    library: Frequencies,
    taken: Collection[str],
    limit_tokens: int,
    kept: Collection[int] = (),
) -> list[Step]:
    """What leaves the odds and ends: to a document that has come to be about it, or as a subject of its own.

    A subject of its own is at least SUBJECT notes that share a word. The seqs that are `kept` stay.
    """
    homes = [
        each
        for each in candidates
        if each.tokens < limit_tokens and not is_odds(each.topic) and not is_talk(each.entries)
    ]
    entries = [entry for entry in odds.entries if entry.seqs and entry.seq not in kept]
    chance = chances(library, [*entries, *(entry for each in homes for entry in each.entries)])
    groups = [group_of(each.topic, each.entries) for each in homes]
    titles = {each.topic: each.title for each in candidates}
    used = {*taken, odds.topic}
    parts: list[Part] = []
    merges: list[Step] = []
    for group, found in _settle(entries, groups, chance, {}):
        if not group.topic and not _is_subject(found):
            continue
        title = name_subject(found, telling_of(group, chance), list(titles.values()))
        topic = slug_of(title, used)
        used.add(topic)
        parts.append(Part(topic, title, tuple(seq for entry in found for seq in entry.seqs)))
        if group.topic:
            merges.append(Merge((group.topic, topic), group.topic, titles[group.topic]))
    gone = {seq for part in parts for seq in part.seqs}
    rest = tuple(seq for entry in odds.entries for seq in entry.seqs if seq not in gone)
    if not parts or not rest:
        return []
    return [Split(odds.topic, (Part(odds.topic, odds.title, rest), *parts)), *merges]


def _is_subject(entries: Sequence[Entry]) -> bool:
    """Whether so many notes share a word that they are no odds and ends."""
    return max(Counter(term for entry in entries for term in words_of(entry)).values(), default=0) >= SUBJECT


def _is_anchored(one: Group, other: Group) -> bool:
    """Whether two documents share more than a word that each says once."""
    shared = [max(one.counts[term], other.counts[term]) for term in one.counts.keys() & other.counts.keys()]
    return sum(shared) > 1


def is_odds(topic: str) -> bool:
    """Whether a topic gathers what fits nowhere: `notes-2026-03`."""
    return _ODDS.fullmatch(topic) is not None


def _merged(
    into: Candidate,
    gone: Candidate,
    candidates: Sequence[Candidate],
    chance: Callable[[str], float],
    taken: Collection[str],
) -> list[Step]:
    """A merge; a document that was named after a handful of notes is named anew when it doubles."""
    both = [*into.entries, *gone.entries]
    if len(into.entries) >= FEW:
        return [Merge((into.topic, gone.topic), into.topic, into.title)]
    others = [each.title for each in candidates if each.topic not in (into.topic, gone.topic)]
    title = name_subject(both, telling_of(group_of("", both), chance), others)
    topic = slug_of(title, ())
    if topic in (into.topic, gone.topic):
        other = gone.topic if topic == into.topic else into.topic
        return [Merge((topic, other), topic, title)]
    if topic in taken:
        return [Merge((into.topic, gone.topic), into.topic, into.title)]
    return [Create(topic, title), Merge((topic, into.topic, gone.topic), topic, title)]


def group_of(topic: str, entries: Iterable[Entry]) -> Group:
    """A document's entries as one group."""
    group = Group(topic)
    for entry in entries:
        group.add(words_of(entry))
    return group


def words_of(entry: Entry) -> tuple[str, ...]:
    """The distinct terms of an entry, in order; who said it counts as one of its words, the writer does not."""
    return _words_of(entry.text, entry.source, entry.signature.get("ns"))


@lru_cache(maxsize=1 << 17)
def _words_of(text: str, source: str, ns: str) -> tuple[str, ...]:
    kind, _, name = source.rpartition(":")
    said_by = () if source.casefold() in NOBODY or kind == "file" else subject_terms(name)
    return tuple(dict.fromkeys([*subject_terms(text), *said_by, *([f"ns:{ns}"] if ns else [])]))


def chances(library: Frequencies, near: Sequence[Entry]) -> Callable[[str], float]:
    """How likely a word is a given term, over the whole library; the entries at hand say how long entries are."""
    held = Counter(chain.from_iterable(map(words_of, near)))
    per_entry = held.total() / len(near) if near else 1.0
    total = 2 * max(library.units, len(near), 1) * max(per_entry, 1.0)
    known: dict[str, float] = {}

    def chance(term: str) -> float:
        if term not in known:
            known[term] = (max(held[term], library.holding(term)) + 1) / total
        return known[term]

    return chance


def fit(terms: Iterable[str], group: Group, chance: Callable[[str], float]) -> float:
    """How much likelier the terms are in a group's words than anywhere, in nats."""
    length = math.log(group.words / SMOOTHING + 1)
    return math.fsum(math.log(group.counts[term] / (SMOOTHING * chance(term)) + 1) - length for term in terms)


def affinity(one: Group, other: Group, chance: Callable[[str], float]) -> float:
    """How much likelier two groups' words are as one document than as two, in nats."""
    gain = [
        math.lgamma(prior + one.counts[term] + other.counts[term])
        + math.lgamma(prior)
        - math.lgamma(prior + one.counts[term])
        - math.lgamma(prior + other.counts[term])
        for term in one.counts.keys() & other.counts.keys()
        if one.counts[term] and other.counts[term]
        for prior in [SMOOTHING * chance(term)]
    ]
    return math.fsum(gain) - (
        math.lgamma(SMOOTHING + one.words + other.words)
        + math.lgamma(SMOOTHING)
        - math.lgamma(SMOOTHING + one.words)
        - math.lgamma(SMOOTHING + other.words)
    )


def telling_of(group: Group, chance: Callable[[str], float]) -> dict[str, float]:
    """How much each of a group's terms sets it apart from the library: 0 for what is as common anywhere."""
    return {
        term: max(0.0, math.log((count + 0.5) / (group.words + 1) / chance(term)))
        for term, count in group.counts.items()
        if count
    }


def _settle(
    notes: Sequence[Entry], groups: list[Group], chance: Callable[[str], float], holders: Mapping[int, Group]
) -> list[tuple[Group, list[Entry]]]:
    """Each note where it fits best, reconsidered until nothing moves; groups in order of their first note."""
    homes: list[Group | None] = [None] * len(notes)
    groups = list(groups)
    corrected = [[holders[seq] for seq in replaced_by(note) if seq in holders] for note in notes]
    ties = [_one_sitting(one, other) for one, other in pairwise(notes)]
    for _ in range(ROUNDS):
        moved = False
        for at, note in enumerate(notes):
            old = homes[at]
            terms = words_of(note)
            if old is not None:
                old.add(terms, -1)
            beside = [homes[at - 1]] if at and ties[at - 1] else []
            beside += [homes[at + 1]] if at < len(ties) and ties[at] else []
            best, home = math.log(NEWCOMER), None
            for group in groups:
                near = group in beside or group in corrected[at]
                if not group.size or (group.counts.keys().isdisjoint(terms) and not near):
                    continue
                value = fit(terms, group, chance) + CROWD * math.log(group.size)
                value += SITTING_BONUS * beside.count(group) + CORRECTS_BONUS * (group in corrected[at])
                if value > best:
                    best, home = value, group
            if home is None:
                home = old if old is not None and not old.size and not old.topic else Group("")
                if home is not old:
                    groups.append(home)
            home.add(terms)
            homes[at] = home
            moved = moved or home is not old
        if not moved:
            break
    placed: dict[int, tuple[Group, list[Entry]]] = {}
    for home, note in zip(homes, notes, strict=True):
        if home is not None:
            placed.setdefault(id(home), (home, []))[1].append(note)
    return _joined(list(placed.values()), chance)


def replaced_by(entry: Entry) -> list[int]:
    """The seqs that an entry says it replaces."""
    return list(parse_seqs(entry.signature.get("supersedes")))


def _joined(placed: list[tuple[Group, list[Entry]]], chance: Callable[[str], float]) -> list[tuple[Group, list[Entry]]]:
    """New groups that are likelier one document than two are one, the likeliest pair first.

    Groups without a common word never gain by being one, so only pairs that share one are weighed; after a union
    only its own pairs are weighed anew.
    """
    new = {at: pair for at, pair in enumerate(placed) if not pair[0].topic}
    holding: dict[str, set[int]] = {}
    for at, (group, _) in new.items():
        for term in +group.counts:
            holding.setdefault(term, set()).add(at)
    version = dict.fromkeys(new, 0)
    queue: list[tuple[float, int, int, int, int]] = []

    def weigh(at: int, after: int) -> None:
        near = set().union(*(holding[term] for term in +new[at][0].counts))
        for other in sorted(near - {at}):
            if other > after:
                one, two = min(at, other), max(at, other)
                gain = affinity(new[one][0], new[two][0], chance)
                if gain > 0:
                    heappush(queue, (-gain, one, two, version[one], version[two]))

    for at in new:
        weigh(at, at)
    while queue:
        _, one, two, first, second = heappop(queue)
        if version.get(one) != first or version.get(two) != second:
            continue
        group, entries = new[one]
        absorbed, more = new.pop(two)
        del version[two]
        for term in +absorbed.counts:
            holding[term].discard(two)
            holding[term].add(one)
        group.counts.update(absorbed.counts)
        group.words += absorbed.words
        group.size += absorbed.size
        entries += more
        version[one] += 1
        weigh(one, -1)
    return [pair for at, pair in enumerate(placed) if pair[0].topic or at in new]


def _one_sitting(one: Entry, other: Entry) -> bool:
    """Whether two notes were written one soon after the other, by a person and not in one call."""
    first, last = _moment(one.observed), _moment(other.observed)
    return first is not None and last is not None and SITTING_GAP[0] <= last - first <= SITTING_GAP[1]


@lru_cache(maxsize=1 << 12)
def _moment(observed: str) -> float | None:
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", observed):
        return None
    try:
        return datetime.fromisoformat(observed).timestamp()
    except ValueError:
        return None


def _sections(
    placed: Sequence[Entry], target: Candidate | None, weights: Mapping[str, float]
) -> list[tuple[str, list[Entry]]]:
    """New entries of one document by heading: one that exists where it is like them, else one of their own."""
    held: dict[str, list[Entry]] = {}
    for entry in target.entries if target is not None else ():
        if len(entry.headings) > 1:
            held.setdefault(entry.headings[-1], []).append(entry)
    counted = [*map(term_counts, held.values()), term_counts(placed)]
    rare = rarity(counted, [*map(len, held.values()), len(placed)])
    sections: dict[str, list[Entry]] = {}
    for block in group_notes(placed):
        own = vector(term_counts(block), rare)
        alike = [(cosine(own, vector(term_counts(entries), rare)), name) for name, entries in held.items()]
        score, heading = max(alike, default=(0.0, ""))
        if score < SAME_SECTION:
            heading = name_subject(block, weights, ())
        sections.setdefault(heading, []).extend(block)
    order = {entry.seq: at for at, entry in enumerate(placed)}
    return [(heading, sorted(block, key=lambda entry: order[entry.seq])) for heading, block in sections.items()]
