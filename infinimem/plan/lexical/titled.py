"""Where titled conversations and notes go: each as a whole, those about one subject together, named by their titles.

A title is what a person or a chat program made of a conversation; it says more of the subject than the words do. Two
conversations are about one subject where a word of one's title is said in the other and their words are about as
likely from one document as from two. A note file that is worth a page of its own stays one: people link to it by name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import heappop, heappush
from itertools import combinations

from infinimem.model import Create, Entry, Extend, Merge, Step
from infinimem.plan.lexical.place import Frequencies, Group, affinity, chances, is_odds, words_of
from infinimem.plan.lexical.route import SIGNATURE, TINY, Candidate
from infinimem.plan.lexical.segment import stretches
from infinimem.plan.lexical.titles import fitted, is_opaque, name_under, slug_of
from infinimem.plan.lexical.weigh import subject_terms
from infinimem.text.tokens import estimate

SAYS = 2  # a word of a title counts as if so many entries had said it
TOGETHER = -1.0  # nats by which one new document may be less likely than two: the titles speak for it
COMMON = 0.15  # share of the library's entries from which a word tells nothing, and …
MARKS = ".,:;!?()\"'“”„«»"
FEW = 12  # … entries up to which any word does
ROOM = 0.7  # share of the limit that documents put together do not exceed
UNTITLED = frozenset(
    "untitled conversation chat notes note new-chat new-conversation neuer-chat neue-unterhaltung nouveau-chat "
    "unbenannt nueva-conversacion nouvelle-conversation ohne-titel sans-titre sin-titulo chatgpt claude".split()
)
"""Ids that a title has which a program gives to what has none."""
ASKED = """
explain explaining explanation fix fixing write writing create guide guides tip tips review help question questions
overview summary summarise summarize example examples versus schedule list draft plan ideas idea request compare
comparison discussion feedback problem error best letter email mail message
"""
"""What a title says that somebody wanted, rather than about what."""


@dataclass(frozen=True, slots=True)
class Titled:
    """A conversation or a note: its title, and its entries in order."""

    title: str
    entries: tuple[Entry, ...]

    @property
    def ns(self) -> str:
        """The namespace of its entries."""
        return self.entries[0].signature.get("ns")

    @property
    def key(self) -> tuple[str, str]:
        """What other parts of it have in common with it."""
        return self.title.casefold(), self.ns

    @property
    def is_file(self) -> bool:
        """Whether it is the text of a file."""
        return self.entries[0].source.startswith("file:") and not self.entries[0].signature.get("attachment")


@dataclass(slots=True, eq=False)
class Subject:
    """A document that is there or is to be made: its words, the words of its titles, and what is new in it."""

    topic: str
    ns: str
    group: Group
    named: set[str] = field(default_factory=set)
    tokens: int = 0
    new: list[Titled] = field(default_factory=list)
    is_open: bool = True


def title_in(entry: Entry) -> str:
    """The title of what an entry was part of; "" where it has none, or one that says nothing."""
    return usable(entry.signature.get("title"))


@lru_cache(maxsize=1 << 14)
def usable(title: str) -> str:
    """A title as it can stand in a document; "" for a date, a number, or what a program calls what has no title.

    What looks like a key or a password is left out.
    """
    plain = re.sub(r"[\[\]<>#`|*]+", " ", title)
    plain = " ".join(word for word in plain.split() if not is_opaque(word)).strip(" -–—:;,._")
    says_something = any(char.isalpha() for char in plain) and slug_for(plain) not in UNTITLED
    return plain if says_something else ""


def part_titled(entries: Iterable[Entry]) -> tuple[list[Titled], list[Entry]]:
    """What belongs to titled conversations and notes, by title; and all other entries."""
    held: dict[tuple[str, str], list[Entry]] = {}
    rest: list[Entry] = []
    for entry in entries:
        title = title_in(entry)
        if title:
            held.setdefault((title.casefold(), entry.signature.get("ns")), []).append(entry)
        else:
            rest.append(entry)
    return [Titled(title_in(found[0]), tuple(found)) for found in held.values()], rest


def is_titled(entries: Sequence[Entry]) -> bool:
    """Whether most of the entries belong to titled conversations and notes."""
    return 2 * sum(bool(title_in(entry)) for entry in entries) > len(entries)


def only_title(entries: Sequence[Entry]) -> str:
    """The one title of all the entries; "" where there are several or some have none."""
    titles = {title_in(entry) for entry in entries}
    return titles.pop() if len(titles) == 1 else ""


def homes_of(candidates: Iterable[Candidate]) -> dict[tuple[str, str], list[Candidate]]:
    """The documents that have a part of a conversation or note already, by its title and namespace."""
    homes: dict[tuple[str, str], list[Candidate]] = {}
    for each in candidates:
        held = {(title_in(entry).casefold(), entry.signature.get("ns")) for entry in each.entries}
        for key in sorted(held):
            homes.setdefault(key, []).append(each)
    return homes


@lru_cache(maxsize=1 << 14)
def slug_for(title: str) -> str:
    """The id that a document of this title has if nothing else bears it."""
    return slug_of(title, ())


def size_of(entries: Iterable[Entry]) -> int:
    """About how many tokens entries take in a document."""
    return sum(estimate(entry.text) + SIGNATURE for entry in entries)


def is_stream(told: Titled, homes: Sequence[Candidate], limit_tokens: int) -> bool:
    """Whether a conversation is too long for one document: a channel, a chat of years."""
    size = size_of(told.entries)
    is_long = size > ROOM * limit_tokens or len(homes) > 1 or any(home.tokens + size > limit_tokens for home in homes)
    return is_long and not told.is_file


def pieces_of_stream(told: Titled) -> list[tuple[Entry, ...]]:
    """A long conversation cut where its words change."""
    return stretches(told.entries)


def gather(
    titled: Sequence[Titled],
    candidates: Sequence[Candidate],
    library: Frequencies,
    taken: Collection[str],
    fixed: Collection[str],
    limit_tokens: int,
) -> list[Step]:
    """The steps that put each conversation and note as a whole into a document, with others about the same.

    A document that was named after its only conversation is named anew when another comes, unless it is `fixed`.
    """
    open_ones = [each for each in candidates if each.tokens < limit_tokens and not is_odds(each.topic)]
    near = [entry for told in titled for entry in told.entries]
    near += [entry for each in open_ones for entry in each.entries]
    chance = chances(library, near)
    there = {each.topic: subject_of(each) for each in open_ones}
    homes = homes_of(open_ones)
    found: list[Subject] = []
    for told in titled:
        known = [there[each.topic] for each in homes.get(told.key, ())]
        known += [there[slug] for slug in [slug_for(told.title)] if slug in there]
        if known:
            add(min(known, key=lambda subject: subject.tokens), told)
        else:
            found.append(add(Subject("", told.ns, Group("")), told))
            found[-1].is_open = not told.is_file or found[-1].tokens < TINY
    placed = together([*there.values(), *found], chance, telling_words(library, near), ROOM * limit_tokens)
    titles = [each.title for each in candidates]
    names = {each.topic: (each.title, only_title(each.entries)) for each in open_ones}
    used = set(taken)
    steps: list[Step] = []
    for subject in placed:
        topic = subject.topic
        if subject.new and not topic:
            title = name_of([told.title for told in subject.new], subject.group, titles)
            topic = id_for(title, used)
            used.add(topic)
            titles.append(title)
            steps.append(Create(topic, title))
        elif subject.new and topic not in fixed:
            name = new_name(names[topic], subject)
            if name and id_for(name, ()) not in used:
                old, topic = topic, id_for(name, used)
                used.add(topic)
                steps += [Create(topic, name), Merge((topic, old), topic, name)]
        for told in subject.new:
            alone = not subject.topic and len(subject.new) == 1
            steps += [Extend(topic, heading, seqs) for heading, seqs in sections_of(told, alone)]
    return steps


def id_for(title: str, taken: Collection[str]) -> str:
    """A topic id for a title; of several conversations' titles the first is enough."""
    return slug_of(title.partition(", ")[0], taken)


def new_name(known: tuple[str, str], subject: Subject) -> str:
    """A name for a document that bears that of its only conversation so far, and gets others; "" for no new one."""
    title, only = known
    titles = dict.fromkeys(told.title for told in subject.new if told.title.casefold() != only.casefold())
    return name_of([only, *titles], subject.group, ()) if only and titles and title == fitted([only]) else ""


def subject_of(candidate: Candidate) -> Subject:
    """A document that exists; of an untitled one its own title says what it is about."""
    ns = candidate.entries[0].signature.get("ns") if candidate.entries else ""
    subject = Subject(candidate.topic, ns, Group(candidate.topic), tokens=candidate.tokens)
    for entry in candidate.entries:
        subject.group.add(words_of(entry))
    for title in dict.fromkeys([candidate.title, *filter(None, map(title_in, candidate.entries))]):
        call(subject, title)
    return subject


def add(subject: Subject, told: Titled) -> Subject:
    """The subject with a conversation or note more."""
    for entry in told.entries:
        subject.group.add(words_of(entry))
    call(subject, told.title)
    subject.tokens += size_of(told.entries)
    subject.new.append(told)
    return subject


def call(subject: Subject, title: str) -> None:
    """Count the words of a title."""
    for term in title_terms(title):
        subject.group.counts[term] += SAYS
        subject.group.words += SAYS
        subject.named.add(term)


@lru_cache(maxsize=1 << 14)
def title_terms(title: str) -> tuple[str, ...]:
    """The terms of a title that say what something is about, each once."""
    return tuple(term for term in dict.fromkeys(subject_terms(title)) if term not in asked_terms())


@lru_cache(maxsize=1)
def asked_terms() -> frozenset[str]:
    """The words of `ASKED` as the analyser spells them."""
    return frozenset(subject_terms(ASKED))


def telling_words(library: Frequencies, near: Sequence[Entry]) -> Callable[[str], bool]:
    """Which words tell anything: those that not every sixth entry says."""
    here = Counter(term for entry in near for term in words_of(entry))
    most = max(FEW, COMMON * max(library.units, len(near)))
    known: dict[str, bool] = {}

    def tells(term: str) -> bool:
        if term not in known:
            known[term] = max(here[term], library.holding(term)) <= most
        return known[term]

    return tells


def together(
    subjects: Sequence[Subject], chance: Callable[[str], float], tells: Callable[[str], bool], room: float
) -> list[Subject]:
    """The subjects with those put together that are about the same, the likeliest pair first, as far as they fit."""
    left = dict(enumerate(subjects))
    version = dict.fromkeys(left, 0)
    queue: list[tuple[float, int, int, int, int]] = []

    def weigh(one: int, two: int) -> None:
        first, other = left[one], left[two]
        if other.topic or not (first.is_open or first.topic) or not other.is_open or first.ns != other.ns:
            return
        anchors = [term for term in first.named if other.group.counts[term]]
        anchors += [term for term in other.named if first.group.counts[term]]
        if first.tokens + other.tokens > room or not any(map(tells, anchors)):
            return
        gain = affinity(first.group, other.group, chance)
        if gain > (0.0 if first.topic else TOGETHER):  # a document that is there has its name
            heappush(queue, (-gain, one, two, version[one], version[two]))

    for two in left:
        for one in range(two):
            weigh(one, two)
    while queue:
        _, one, two, first, second = heappop(queue)
        if version.get(one) != first or version.get(two) != second:
            continue
        into, gone = left[one], left.pop(two)
        del version[two]
        into.group.counts.update(gone.group.counts)
        into.group.words += gone.group.words
        into.group.size += gone.group.size
        into.named |= gone.named
        into.tokens += gone.tokens
        into.new += gone.new
        version[one] += 1
        for other in left:
            if other != one:
                weigh(min(one, other), max(one, other))
    return list(left.values())


def sections_of(told: Titled, alone: bool) -> list[tuple[str, tuple[int, ...]]]:
    """The seqs of a conversation or note by the heading under which they go.

    A note keeps its own headings, a conversation has its title and the day on which it began.
    """
    if told.is_file:
        sections: dict[str, list[int]] = {}
        for entry in told.entries:
            own = usable(entry.signature.get("heading")) if alone else ""
            own = "" if own.casefold() == told.title.casefold() else own
            sections.setdefault(own or ("" if alone else told.title), []).append(entry.seq)
        return [(heading, tuple(seqs)) for heading, seqs in sections.items()]
    day = min((entry.time[:10] for entry in told.entries if entry.time), default="")
    return [(f"{told.title} ({day})" if day else told.title, tuple(entry.seq for entry in told.entries))]


def name_of(titles: Sequence[str], group: Group, avoid: Collection[str]) -> str:
    """A name for what titles are about: the words that at least half of them share, else the title that says most."""
    each = list(dict.fromkeys(titles))
    used = {slug_for(title) for title in avoid}
    weight = {title: sum(group.counts[term] for term in title_terms(title)) for title in each}
    ranked = sorted(each, key=lambda title: (-weight[title], each.index(title)))
    if len(each) == 1:
        return fitted(each)
    shared = shared_words(ranked)
    choices = [[shared]] if shared else []
    choices += [[shared, title] for title in ranked if shared]
    choices += [[ranked[0], title] for title in ranked[1:]]
    names = [fitted(choice) for choice in choices]
    return next((name for name in names if slug_for(name) not in used), names[0])


def shared_words(titles: Sequence[str]) -> str:
    """The run of words that at least half of the titles share, two at least, as the first of them spells it."""
    each = list(dict.fromkeys(titles))
    needed = max(2, -(-len(each) // 2))
    said = [{term: word.strip(MARKS) for word in title.split() for term in title_terms(word)} for title in each]
    best, value = "", 0
    for title in each:
        words = title.split()
        for start, stop in combinations(range(len(words) + 1), 2):
            run = words[start:stop]
            if not title_terms(run[0]) or not title_terms(run[-1]):
                continue
            terms = {term: word.strip(MARKS) for word in run for term in title_terms(word)}
            often = sum(all(are_alike(word, other.get(term, "")) for term, word in terms.items()) for other in said)
            if often >= needed and often * len(terms) > value:
                best, value = " ".join(run).strip(MARKS), often * len(terms)
    return best[:1].upper() + best[1:]


def are_alike(one: str, other: str) -> bool:
    """Whether two words of one stem are one, but for its number: `puppy`, `puppies`, not `train`, `training`."""
    return bool(one and other) and abs(len(one) - len(other)) <= 2


def name_titled(entries: Sequence[Entry], avoid: Collection[str], weights: dict[str, float]) -> str:
    """A name for a part of what titled conversations and notes are in a document; "" where most have no title."""
    if not is_titled(entries):
        return ""
    titles = Counter(title for entry in entries if (title := title_in(entry)))
    group = Group("")
    for entry in entries:
        group.add(words_of(entry))
    if len(titles) > 1:
        return name_of([title for title, _ in titles.most_common()], group, avoid)
    return name_under(next(iter(titles)), entries, avoid, weights)
