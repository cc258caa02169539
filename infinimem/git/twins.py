"""One seq that two entries carry: they are told apart, and all but one get new numbers with what refers to them.

That happens where git does not know both sides: a squash merge, a stash, a cherry-pick, files copied from another
library. When an entry was written down, to the microsecond, is what it keeps wherever it goes. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path

from infinimem.git.renumber import Numbers, renumber_line
from infinimem.git.run import run_git, work_tree
from infinimem.model import Document, Entry, Span
from infinimem.plan.desk import topic_ties
from infinimem.store.evidence import Record
from infinimem.store.layout import BUFFER
from infinimem.text.document import Event, edit, events, parse
from infinimem.text.merge import bare_lines
from infinimem.text.signature import parse_links, parse_seqs

SECOND = len("2026-05-02T08:00:00")
ALIKE = 0.6
"""From which likeness on two texts of one second are one entry whose words were changed."""
LONG = 1000
"""Letters of two texts together from which on they are compared by their threes of letters."""
COMPARED = 50_000
"""Letters of a text that are compared at all."""

Place = tuple[str, int]
"""A path and a 0-based line."""
Identity = tuple[str, str, str]
"""When an entry was written down, by whom, and its words."""


@dataclass(slots=True)
class Carrier:
    """One of the entries that carry a seq: as it was first written, and every line of its own."""

    seq: int
    first: Entry
    places: list[Place] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    is_shown: bool = False

    @property
    def identity(self) -> Identity:
        """What makes it itself, whatever number it has."""
        return self.first.observed or "~", self.first.source, self.first.text


@dataclass(frozen=True, slots=True)
class Twins:
    """A seq and those who carry it, the one that keeps it first; none keeps the number of a forgotten entry.

    `lines` are all lines of each of the others and what refers to it. `doubt` is where that cannot be told.
    """

    seq: int
    keeps: Carrier | None
    yields: tuple[tuple[Carrier, tuple[Place, ...]], ...]
    doubt: Place | None = None


@dataclass(frozen=True, slots=True)
class Reference:
    """A line that names a seq: when it was written ("" where it does not say), and what it is.

    An entry that says what it replaces names itself (`successor`); an event of that name tells the same.
    """

    place: Place
    at: str
    event: Event | None = None
    successor: int = 0
    names_successor: bool = False


def find_twins(
    shown: Sequence[Document],
    evidence: Sequence[Document],
    published: Callable[[], frozenset[Identity]] = frozenset,
) -> list[Twins]:
    """Every seq that entries of different identity carry, by evidence or by what it says was forgotten.

    `shown` are CURRENT and the topics. What others know keeps its number, as `published` says; else the older one does.
    """
    told = {document.path: events(bare_lines(document)) for document in evidence}
    forgotten = {seq: one for path in told for one in told[path] if one.kind == "forget" for seq in one.seqs}
    alone: dict[int, list[tuple[str, Entry]]] = {}
    for document in (*evidence, *shown):
        for entry in document.entries if not document.is_guest or document in evidence else ():
            if len(entry.seqs) == 1:
                alone.setdefault(entry.seq, []).append((document.path, entry))
    found = {seq: carriers_of(seq, lines, forgotten.get(seq)) for seq, lines in alone.items()}
    several = {seq: some for seq, some in found.items() if len(some) > 1 or (some and seq in forgotten)}
    if not several:
        return []
    known = published()
    named = references_to(set(several), (*evidence, *shown), told)
    return [
        told_apart(seq, several[seq], named.get(seq, ()), known, is_taken=seq in forgotten) for seq in sorted(several)
    ]


def any_twins(shown: Sequence[Document], records: Iterable[Record]) -> bool:
    """Whether `find_twins` would find any, told from what evidence says of all seqs that may have some."""
    alone: dict[int, list[tuple[str, Entry]]] = {}
    forgotten: dict[int, Event] = {}
    for record in records:
        alone[record.seq] = [(path, entry) for path, entry in record.entries if len(entry.seqs) == 1]
        forgotten.update((record.seq, event) for _, event in record.events if event.kind == "forget")
    for document in shown:
        for entry in document.entries if not document.is_guest else ():
            if len(entry.seqs) == 1:
                alone.setdefault(entry.seq, []).append((document.path, entry))
    carriers = ((seq, carriers_of(seq, lines, forgotten.get(seq))) for seq, lines in alone.items())
    return any(len(found) > 1 or (found and seq in forgotten) for seq, found in carriers)


def carriers_of(seq: int, lines: Sequence[tuple[str, Entry]], forgotten: Event | None) -> list[Carrier]:
    """The entries that lines of one seq belong to; what evidence knows by one name alone is one."""
    found: list[Carrier] = []
    inside = [(path, entry) for path, entry in lines if path.startswith("evidence/")]
    for path, entry in inside:
        if not entry.signature.get("rev"):
            take(found, path, entry, next((one for one in found if is_one(one.first, entry)), None))
    for path, entry in lines:
        if not path.startswith("evidence/") and (found or forgotten is not None):
            take(found, path, entry, whose(found, entry)).is_shown = True
    for path, entry in inside:
        if entry.signature.get("rev") and found:
            take(found, path, entry, nearest(found, entry.text))
    if forgotten is not None:
        found = [one for one in found if one.first.observed != forgotten.get("observed")]
    return found


def take(found: list[Carrier], path: str, entry: Entry, carrier: Carrier | None) -> Carrier:
    """Note a line as one of a carrier, or of a new one."""
    if carrier is None:
        carrier = Carrier(entry.seq, entry)
        found.append(carrier)
    carrier.places.append((path, entry.span.start))
    carrier.texts.append(entry.text)
    return carrier


def is_one(one: Entry, other: Entry) -> bool:
    """Whether two lines of evidence, each as it was first written, are the same entry."""
    if one.observed and other.observed and one.observed != other.observed:
        return False
    if one.text == other.text or (one.observed == other.observed and is_exact(one.observed)):
        return True
    return likeness(one.text, other.text) >= ALIKE


def is_exact(observed: str) -> bool:
    """Whether a moment is told more exactly than to the second."""
    return len(observed) > SECOND + 1


def whose(found: Sequence[Carrier], entry: Entry) -> Carrier | None:
    """The carrier that a line of CURRENT or a topic shows, in words that a person may have changed; None: another."""
    same = [one for one in found if one.first.observed == entry.observed and entry.observed]
    if same:
        return nearest(same, entry.text)
    if any(entry.text in one.texts for one in found):
        return next(one for one in found if entry.text in one.texts)
    unsaid = found if not entry.observed else [one for one in found if not one.first.observed]
    return nearest(unsaid, entry.text) if unsaid else None


def nearest(found: Sequence[Carrier], text: str) -> Carrier:
    """The carrier whose words are most like a text; one without a rival is not compared at all."""
    if len(found) == 1:
        return found[0]
    return max(found, key=lambda one: max(likeness(text, other) for other in one.texts))


def likeness(one: str, other: str) -> float:
    """How much two texts share, 0 to 1; of long ones the threes of letters are counted, whatever their order."""
    if one == other:
        return 1.0
    if len(one) + len(other) > LONG:  # letter by letter would cost the product of their lengths
        mine, theirs = threes(one[:COMPARED]), threes(other[:COMPARED])
        return 2 * (mine & theirs).total() / max(1, mine.total() + theirs.total())
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def threes(text: str) -> Counter[str]:
    """How often each run of three letters stands in a text."""
    return Counter(text[at : at + 3] for at in range(len(text) - 2))


def references_to(
    seqs: set[int], documents: Sequence[Document], told: Mapping[str, Sequence[Event]]
) -> dict[int, list[Reference]]:
    """The lines that name some seqs without being one of theirs alone: events, joined lines, fields, topics' links."""
    found: dict[int, list[Reference]] = {}
    for document in documents:
        for event in told.get(document.path, ()):
            place = document.path, event.line - 1
            for seq in seqs.intersection(event.seqs) if event.kind != "forget" else ():
                found.setdefault(seq, []).append(Reference(place, event.get("at"), event))
            for seq in seqs.intersection(parse_seqs(event.get("by"))):
                found.setdefault(seq, []).append(Reference(place, event.get("at"), event, names_successor=True))
    for document in documents:
        for entry in document.entries:
            replaced = set(parse_seqs(entry.signature.get("supersedes")))
            others = {*entry.seqs} if len(entry.seqs) > 1 else set[int]()
            others.update(parse_seqs(entry.signature.get("split_from")))
            others.update(seq for tie in parse_links(entry.signature.get("links")) for seq in tie.seqs)
            for seq in seqs.intersection(replaced | others):
                successor = entry.seq if seq not in others else 0
                place = document.path, entry.span.start
                at = entry.observed or entry.signature.get("at")
                found.setdefault(seq, []).append(Reference(place, at, successor=successor))
        if not document.is_guest and document.path not in told and document.path != BUFFER:
            for seq in {seq for tie in topic_ties(document) for seq in tie.seqs} & seqs:
                found.setdefault(seq, []).append(Reference((document.path, 0), ""))
    return found


def told_apart(
    seq: int,
    carriers: Sequence[Carrier],
    named: Sequence[Reference],
    published: frozenset[Identity],
    *,
    is_taken: bool,
) -> Twins:
    """Who keeps a seq, and which lines belong to each of the others."""
    ranked = sorted(carriers, key=lambda one: (one.identity not in published, one.identity))
    keeps = None if is_taken else ranked[0]
    yields = ranked if is_taken else ranked[1:]
    lines: dict[int, list[Place]] = {id(one): list(one.places) for one in yields}
    replaced: dict[int, Carrier] = {}
    doubt: Place | None = None
    for reference in named:
        owner = replaced.get(reference.successor) or owner_of(reference, carriers)
        if owner is None:
            doubt = doubt or reference.place
            continue
        event = reference.event
        if event is not None and event.kind == "retire" and not reference.names_successor:
            replaced.update(dict.fromkeys(parse_seqs(event.get("by")), owner))
        if id(owner) in lines:
            lines[id(owner)].append(reference.place)
    return Twins(seq, keeps, tuple((one, tuple(lines[id(one)])) for one in yields), doubt)


def owner_of(reference: Reference, carriers: Sequence[Carrier]) -> Carrier | None:
    """The one carrier that a line can mean; None where it can be another one as well. Its words would be a guess."""
    event = reference.event
    able = [one for one in carriers if not reference.at or is_before(one.first.observed, reference.at)]
    if event is not None and reference.names_successor:
        said = [one for one in able if set(parse_seqs(one.first.signature.get("supersedes"))) & set(event.seqs)]
        able = said or able
    elif event is not None and event.kind == "retire":
        able = [one for one in able if not one.is_shown] or able
    return able[0] if len(able) == 1 else None


def is_before(observed: str, at: str) -> bool:
    """Whether one moment may come before another, or with it; events tell theirs to the second."""
    if is_exact(observed) and is_exact(at):
        return observed <= at
    return observed[:SECOND] <= at[:SECOND]


def renumber_places(document: Document, numbers: Mapping[int, Numbers]) -> Document:
    """A document with new numbers on some of its 0-based lines."""
    lines = bare_lines(document)
    return edit(
        document,
        [
            (Span(at, at + 1), (renumber_line(lines[at], some) + document.lines[at][len(lines[at]) :],))
            for at, some in numbers.items()
        ],
    )


def published_in(root: Path, paths: Iterable[str]) -> frozenset[Identity]:
    """The entries in some files as the branch that this one follows has them: others know these by their numbers."""
    if work_tree(root) is None:
        return frozenset()
    prefix = run_git(root, "rev-parse", "--show-prefix").text
    found: set[Identity] = set()
    for path in paths:
        ran = run_git(root, "cat-file", "blob", f"@{{upstream}}:{prefix}{path}")
        if ran.code == 0:
            found.update(Carrier(entry.seq, entry).identity for entry in parse(path, ran.out).entries)
    return frozenset(found)
