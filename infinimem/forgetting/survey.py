"""The whole library at one moment, and which of its entries are meant."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unicodedata import normalize

from infinimem.errors import BadInput, UnknownSeq
from infinimem.forgetting.words import matches, tokens_of
from infinimem.model import Document, Entry
from infinimem.store.buffer import evidence_files, scan
from infinimem.store.layout import BUFFER
from infinimem.store.read import File, list_files, read_file, read_log
from infinimem.text.document import Event, events
from infinimem.text.signature import parse_seqs, render_seqs

FORGOTTEN = re.compile(rb"^[-*+][ \t]+\\?<event=forget,\s*seq=([0-9+-]+)", re.MULTILINE)
QUOTED = 5
"""Words of a sentence from which on another entry that holds it quotes it."""


@dataclass(frozen=True, slots=True)
class Survey:
    """Every file that holds entries, as read under the lock. `forgotten` are the events of earlier forgetting."""

    root: Path
    buffer: File
    topics: Mapping[str, File]
    evidence: Mapping[str, File]
    log: File
    forgotten: Mapping[int, Event]

    @property
    def files(self) -> Iterator[File]:
        """CURRENT, the topics, evidence and the log of writes."""
        yield self.buffer
        yield from self.topics.values()
        yield from self.evidence.values()
        yield self.log

    def entries(self) -> Iterator[tuple[str, Entry]]:
        """Every entry wherever it stands, with the path; what guests show is theirs."""
        for file in self.files:
            if file.path == BUFFER or not file.document.is_guest or not file.path.startswith("topics/"):
                yield from ((file.path, entry) for entry in file.document.entries)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which entries to forget: by number, or those whose fields are `where` and whose words match `pattern`."""

    seqs: tuple[int, ...] = ()
    where: tuple[tuple[str, str], ...] = ()
    pattern: Any = None
    copies: bool = False


@dataclass(frozen=True, slots=True)
class Copy:
    """Another entry with the words of a forgotten one: the same, a quotation, or taken from it."""

    seq: int
    path: str
    line: int
    why: str


def read_survey(root: Path) -> Survey:
    """Read everything once; call it under the lock."""
    topics: dict[str, File] = {}
    for path in list_files(root):
        if path.startswith("topics/"):
            topics[path] = read_file(root, path)
    evidence = {
        name: read_file(root, name)
        for path in evidence_files(root)
        for name in [path.relative_to(root).as_posix()]
    }  # fmt: skip
    return Survey(root, read_file(root, BUFFER), topics, evidence, read_log(root), forgotten_in(evidence))


def forgotten_in(evidence: Mapping[str, File]) -> dict[int, Event]:
    """The event of each seq that was forgotten."""
    return {
        seq: event
        for file in evidence.values()
        for event in events(file.document.lines)
        if event.kind == "forget"
        for seq in event.seqs
    }


def forgotten_seqs(root: Path) -> tuple[int, ...]:
    """The seqs that were forgotten, by a search of evidence for their events: cheap where there is none."""
    matches = (match for path in evidence_files(root) for match in scan(path, FORGOTTEN, b"event=forget"))
    found = (parse_seqs(match[1].decode()) for match in matches)
    return tuple(sorted({seq for seqs in found for seq in seqs}))


def came_back(entry: Entry, forgotten: Mapping[int, Event], others: Collection[int] = ()) -> list[int]:
    """The seqs of an entry that were forgotten; none where it is another one that has got the same number.

    Two clones can give one seq twice. When an entry was written down, to the microsecond, tells them apart without
    its words. A revision or a joined line does not say it, so there `others` decide, see `others_of`.
    """
    unsaid = len(entry.seqs) > 1 or bool(entry.signature.get("rev"))
    return [
        seq
        for seq in entry.seqs
        if seq in forgotten and (seq not in others if unsaid else is_the_same(entry, forgotten[seq]))
    ]


def is_the_same(entry: Entry, event: Event) -> bool:
    """Whether an entry is the one that an event says was forgotten."""
    return entry.observed == event.get("observed")


def others_of(entries: Iterable[Entry], forgotten: Mapping[int, Event]) -> frozenset[int]:
    """The forgotten seqs under which another entry stands by itself now, and the forgotten one does not."""
    same: set[int] = set()
    other: set[int] = set()
    for entry in entries:
        if len(entry.seqs) == 1 and entry.seq in forgotten and not entry.signature.get("rev"):
            (same if is_the_same(entry, forgotten[entry.seq]) else other).add(entry.seq)
    return frozenset(other - same)


def chosen(survey: Survey, wanted: Wanted) -> tuple[int, ...]:
    """The seqs that are meant, in order. Raises `BadInput`, `UnknownSeq`."""
    if wanted.seqs:
        known = {seq for _, entry in survey.entries() for seq in entry.seqs}
        for seq in wanted.seqs:
            if seq not in known and seq in survey.forgotten:
                raise UnknownSeq(f"{seq} was forgotten at {survey.forgotten[seq].get('at')}; nothing of it is left")
            if seq not in known:
                raise UnknownSeq(f"no entry has seq {seq}; `infinimem status` names the newest")
        return tuple(sorted(set(wanted.seqs)))
    if not wanted.where and wanted.pattern is None:
        raise BadInput("say what to forget: a seq such as 12, --where source=Ines, or --pattern 'Nordlys'")
    alone: set[int] = set()
    joined: set[tuple[int, ...]] = set()
    for _, entry in survey.entries():
        if not is_meant(entry, wanted):
            continue
        if len(entry.seqs) == 1:
            alone.update(entry.seqs)
        else:
            joined.add(entry.seqs)
    for seqs in joined:  # of a joined line only the members that are meant themselves, if that can be told
        if alone.isdisjoint(seqs):
            alone.update(seqs)
    return tuple(sorted(alone))


def is_meant(entry: Entry, wanted: Wanted) -> bool:
    """Whether an entry has the fields and the words that were asked for."""
    if any(normalize("NFC", entry.signature.get(key)) != normalize("NFC", value) for key, value in wanted.where):
        return False
    if wanted.pattern is None:
        return True
    texts = (entry.text, *(value for _, value in entry.signature.fields))
    return any(matches(wanted.pattern, text) for text in texts)


def copies_of(survey: Survey, seqs: Collection[int]) -> list[Copy]:
    """Other entries that say what forgotten ones say, or were taken from them."""
    gone = [entry for _, entry in survey.entries() if not seqs_in(entry, seqs).isdisjoint(seqs)]
    whole = dict.fromkeys(" ".join(tokens_of(entry.text)) for entry in gone)
    quotes = [f" {text} " for text in whole if text.count(" ") + 1 >= QUOTED]
    found: dict[int, Copy] = {}
    for path, entry in survey.entries():
        if not entry.seqs or not set(entry.seqs).isdisjoint(seqs) or entry.seq in found:
            continue
        text = " ".join(tokens_of(entry.text))
        why = "the same words" if text in whole else ""
        if not why and any(quote in f" {text} " for quote in quotes):
            why = "quotes it"
        origins = {*seqs_from(entry.signature.get("links")), *parse_seqs(entry.signature.get("split_from"))}
        if not why and not origins.isdisjoint(seqs):
            why = "taken from it"
        if why:
            found[entry.seq] = Copy(entry.seq, path, entry.span.start + 1, why)
    return [found[seq] for seq in sorted(found)]


def seqs_in(entry: Entry, seqs: Collection[int]) -> set[int]:
    """The seqs of an entry that are among some."""
    return {seq for seq in entry.seqs if seq in seqs}


def seqs_from(links: str) -> set[int]:
    """The seqs that an entry says it was taken from: `12:from`."""
    pieces = (piece.partition(":") for piece in links.split("+"))
    return {seq for place, _, relation in pieces if relation == "from" for seq in parse_seqs(place)}


def spare_members(survey: Survey, seqs: Collection[int]) -> dict[int, Entry]:
    """The own words of those that share a line with a forgotten entry. Raises `BadInput` where they are nowhere."""
    spare: dict[int, Entry] = {}
    gone: dict[int, Entry] = {}
    needed: dict[int, tuple[int, ...]] = {}
    for file in survey.files:
        for entry in file.document.entries:
            if len(entry.seqs) == 1 and entry.seq not in seqs:
                if file.path.startswith("evidence/") or entry.seq not in spare:
                    spare[entry.seq] = in_first_form(spare.get(entry.seq), entry)
            elif len(entry.seqs) == 1 and file.path.startswith("evidence/"):
                gone.setdefault(entry.seq, entry)  # by its links one can tell which of a line's are not the others'
            elif len(entry.seqs) > 1 and seqs_in(entry, seqs):
                needed.update((seq, entry.seqs) for seq in entry.seqs if seq not in seqs)
    for seq, line in needed.items():
        if seq not in spare:
            raise BadInput(
                f"the words of {seq} stand only in the joined line {render_seqs(line)}; forget all of that line"
            )
    return {**(gone if needed else {}), **{seq: spare[seq] for seq in needed}}


def in_first_form(first: Entry | None, newest: Entry) -> Entry:
    """The newest words of an entry under its first signature: a revision's says only when it was noted."""
    if first is None or not newest.signature.get("rev"):
        return newest
    return Entry(newest.topic, first.signature, newest.text)


def is_ours(document: Document) -> bool:
    """Whether a document may be changed: one of ours, and understood."""
    return not document.blocking and not document.is_guest
