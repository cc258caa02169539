"""What an export is made of: the library's files as they were at one moment, and what a filter lets out of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from infinimem.config import Access
from infinimem.consolidate.commit import extract
from infinimem.errors import BadInput, StorageFailed, Unreadable
from infinimem.exchange.export.pieces import as_document
from infinimem.model import Document, Entry, Filter, Problem, Span, Unit, path_of
from infinimem.plan.desk import set_headers
from infinimem.search.records import allows
from infinimem.store.buffer import hold, next_seq, seqs_in
from infinimem.store.files import digest_of, read_bytes
from infinimem.store.layout import BUFFER, LOG, SETTINGS
from infinimem.store.read import folder_problems, list_files
from infinimem.text.document import (
    EVENT_ITEM,
    Event,
    body_tokens,
    edit,
    entry_lines,
    events,
    prose_units,
    whole_head,
)
from infinimem.text.header import render_scalar
from infinimem.text.lines import ending_of, is_blank
from infinimem.text.signature import parse_seqs

WORD = re.compile(r"\w+")
UNNAMED = "Notes"
"""What is called so when its name would say too much."""


@dataclass(frozen=True, slots=True)
class Source:
    """A library's files at one moment. `high` is the last seq given; `left_out` is what could not be read."""

    root: Path
    files: Mapping[str, bytes]
    high: int
    left_out: tuple[Problem, ...] = ()

    def document(self, path: str) -> Document:
        """One file, read."""
        return as_document(path, self.files[path])

    def documents(self) -> Iterator[Document]:
        """The files in the order of an export: settings, topics, CURRENT, evidence, what was lost from CURRENT."""
        for path in self.files:
            yield self.document(path)

    @property
    def topics(self) -> tuple[str, ...]:
        """The paths of the topic documents and guests."""
        return tuple(path for path in self.files if path.startswith("topics/"))

    @property
    def evidence(self) -> tuple[str, ...]:
        """The paths of the evidence files, oldest first."""
        return tuple(path for path in self.files if path.startswith("evidence/"))


def read_source(root: Path) -> Source:
    """Every file of a library as it is between two commits. Writers wait while bytes are read, not longer."""
    files: dict[str, bytes] = {}
    unread: list[Problem] = []
    with ExitStack() as lock:
        note = -1
        with suppress(StorageFailed):  # a read-only library is read as it is
            note = lock.enter_context(hold(root))
        listed = list_files(root)
        topics = [path for path in listed if path.startswith("topics/")]
        for path in (SETTINGS, *topics, BUFFER, *(path for path in listed if path.startswith("evidence/")), LOG):
            try:
                content = read_bytes(root / path)
            except StorageFailed as error:
                if path not in topics:
                    raise
                unread.append(Problem(path, 0, str(error), code="permission"))
                continue
            if content is not None:
                files[path] = content
        high = next_seq(root, note) - 1 if note >= 0 else highest(files)
    named = {problem.path for problem in unread}
    unread += [problem for problem in folder_problems(root) if problem.path not in named]
    return Source(root, with_lost_only(files), high, tuple(unread))


def highest(files: Mapping[str, bytes]) -> int:
    """The largest seq or high-water mark that the files name."""
    marks = [
        int(event.get("high"))
        for path, content in files.items()
        if path.startswith("evidence/")
        for event in events(as_document(path, content).lines)
        if event.kind == "flush" and event.get("high").isdigit()
    ]
    return max([0, *marks, *(seq for content in files.values() for seq in seqs_in(content))])


def with_lost_only(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files with no more of the log of writes than what stands nowhere else: it is a second copy."""
    others = {path: content for path, content in files.items() if path != LOG}
    log = as_document(LOG, files.get(LOG, b""))
    if not log.entries:
        return others
    candidates = {entry.seqs for entry in log.entries}
    for path in (BUFFER, *others):
        if not candidates:
            return others
        there = {seq for entry in as_document(path, others.get(path, b"")).entries for seq in entry.seqs}
        candidates = {seqs for seqs in candidates if there.isdisjoint(seqs)}
    lost = [
        line for entry in log.entries if entry.seqs in candidates for line in entry_lines(entry.signature, entry.text)
    ]
    return {**others, LOG: "".join(lost).encode("utf-8", "surrogateescape")} if lost else others


# What a filter lets out


@dataclass(frozen=True, slots=True)
class Chosen:
    """What of a library goes out: the documents as they may be shown, and how many entries stay behind.

    `withheld` are the seqs that nothing of an export may speak of.
    """

    source: Source
    documents: tuple[Document, ...]
    withheld: frozenset[int] = frozenset()

    @property
    def is_whole(self) -> bool:
        """Whether nothing at all was held back."""
        return not self.withheld and len(self.documents) == len(self.source.files)


def choose(source: Source, filter: Filter, access: Access = Access()) -> Chosen:
    """The documents as a filter and access rules let them out. **The one place that decides what an export may hold.**

    A seq goes out if its fields pass: those it was written with, and over them those of the line that stands for it
    now. A joined line goes out only with all of its seqs. What is no entry has no fields, so it passes where the
    filter asks for none. A page of which something stays behind gets a summary of the rest, and neither its name nor
    its headings say a word that only stood in what stays behind.
    """
    if filter.as_of or filter.known_at:
        raise BadInput(
            "an export holds what the library holds now; for what held at a date, use: infinimem search --as-of"
        )
    documents = list(source.documents())
    if replace(filter, retired=False) == Filter() and not access:
        return Chosen(source, tuple(documents))
    lines = [(document, entry) for document in documents for entry in document.entries]
    rules = Rules(filter, access)
    withheld = withheld_seqs(lines, rules)
    if filter.topic:
        withheld |= behind_others(documents, withheld)
    kept = [only_allowed(document, withheld, rules) for document in documents]
    shown = tuple(document for document in kept if document.path != SETTINGS and any(document.lines))
    return Chosen(source, shown, withheld)


@dataclass(frozen=True, slots=True)
class Rules:
    """What was asked for, and what the settings never let out."""

    filter: Filter
    access: Access

    def let_out(self, fields: Mapping[str, str], path: str, seqs: tuple[int, ...] = ()) -> bool:
        """Whether something with these fields may go out; `path` is where it stands, "" for what is retired."""
        unit = Unit(path or "evidence/", 1, 1, "", seqs, (), tuple(fields.items()))
        wanted = replace(self.filter, retired=True, topic=self.filter.topic if path else "")
        return self.access.permits(fields) and allows(wanted, unit)


def withheld_seqs(lines: Sequence[tuple[Document, Entry]], rules: Rules) -> frozenset[int]:
    """The seqs that the rules hold back."""
    written: dict[int, dict[str, str]] = {}
    places: dict[int, str] = {}
    now: dict[int, dict[str, str]] = {}
    for document, entry in lines:
        for seq in entry.seqs:
            fields = dict(entry.signature.fields)
            if not document.path.startswith("evidence/"):
                now[seq] = fields
                places[seq] = document.path
            elif len(entry.seqs) == 1 and "rev" not in fields:
                written.setdefault(seq, fields)
    held = {
        seq
        for seq in {*written, *now}
        if not rules.let_out({**written.get(seq, {}), **now.get(seq, {})}, places.get(seq, ""), (seq,))
    }
    # one that is held back takes the lines that were joined from it along
    return frozenset(held | {seq for _, entry in lines if not held.isdisjoint(entry.seqs) for seq in entry.seqs})


def behind_others(documents: Sequence[Document], withheld: frozenset[int]) -> frozenset[int]:
    """The retired seqs that nothing which goes out has replaced, by whatever steps."""
    shown = {
        seq
        for document in documents
        if not document.path.startswith("evidence/")
        for entry in document.entries
        for seq in entry.seqs
    } - withheld
    followers: dict[int, list[int]] = {}
    retired: set[int] = set()
    for document in documents:
        for event in events(document.lines) if document.path.startswith("evidence/") else ():
            for seq in event.seqs if event.kind == "retire" else ():
                retired.add(seq)
                for by in parse_seqs(event.get("by")):
                    followers.setdefault(by, []).append(seq)
    open_, reached = list(shown), set(shown)
    while open_:
        for seq in followers.get(open_.pop(), ()):
            if seq not in reached:
                reached.add(seq)
                open_.append(seq)
    return frozenset(retired - reached)


def only_allowed(document: Document, withheld: frozenset[int], rules: Rules) -> Document:
    """A document without what stays behind; one with no lines when nothing of it goes out."""
    gone = [entry.span for entry in document.entries if not withheld.isdisjoint(entry.seqs)]
    entries = len(document.entries) - len(gone)
    if not rules.let_out({}, document.path):
        gone += [
            Span(unit.line - 1, unit.stop) for unit in prose_units(document) if EVENT_ITEM.match(unit.text) is None
        ]
    if document.path.startswith("evidence/"):
        told = [event for event in events(document.lines) if not withheld.isdisjoint(event.seqs)]
        gone += [event_span(document, event) for event in told]
    if not gone:
        return document
    if not entries and (document.path.startswith("topics/") or document.path == BUFFER):
        return replace(document, lines=(), entries=())
    shorter = without_empty_headings(edit(document, [(span, ()) for span in gone]))
    if not document.path.startswith("topics/"):
        return shorter
    hidden = words_of(entry for entry in document.entries if not withheld.isdisjoint(entry.seqs))
    return with_own_summary(without_words(shorter, hidden - words_of(shorter.entries)))


def event_span(document: Document, event: Event) -> Span:
    """The lines of an event; a formatter may have wrapped it."""
    at = event.line - 1
    item = EVENT_ITEM.match(document.lines[at])
    rest = document.lines[at][item.end() :].rstrip("\r\n") if item is not None else ""
    return Span(at, whole_head(document.lines, at, rest, "\n")[1] + 1)


def words_of(entries: Iterable[Entry]) -> set[str]:
    """Every word that entries say, in their fields too."""
    texts = (text for entry in entries for text in (entry.text, *(value for _, value in entry.signature.fields)))
    return {word for text in texts for word in WORD.findall(text.casefold())}


def without_words(document: Document, hidden: set[str]) -> Document:
    """The document with none of some words in its name and headings."""

    def says_hidden(name: str) -> bool:
        return not hidden.isdisjoint(WORD.findall(name.casefold()))

    ending = ending_of(document.lines)
    edits: list[tuple[Span, Sequence[str]]] = []
    for block in document.blocks:
        if block.level and says_hidden(block.headings[-1]):
            kept = " ".join(word for word in block.headings[-1].split() if not says_hidden(word)).strip(" ,;:")
            line = f"{'#' * block.level} {kept or UNNAMED}{ending}"
            edits.append((Span(block.span.start, block.span.start + 1), [line]))
    document = edit(document, edits)
    if not says_hidden(document.id):
        return document
    name = f"{UNNAMED.lower()}-{digest_of(document.id.encode('utf-8', 'surrogateescape'))[:8]}"
    return replace(document, path=path_of(name), entries=tuple(replace(one, topic=name) for one in document.entries))


def without_empty_headings(document: Document) -> Document:
    """The document without headings under which nothing stands, deeper ones first."""
    spans = []
    needed = 0
    for block in reversed(document.blocks):
        body = document.lines[block.span.start + 1 : block.span.stop]
        if block.level > 1 and block.level >= needed and all(map(is_blank, body)):
            spans.append(block.span)
        elif block.level:
            needed = block.level
    return edit(document, [(span, ()) for span in spans]) if spans else document


def with_own_summary(document: Document) -> Document:
    """The document with a summary that says only what is left in it, and no log of what once was."""
    fields = document.header.fields
    keys = {"summary": render_scalar(extract(document))} if "summary" in fields else {}
    keys |= {"token_count": str(body_tokens(document))} if "token_count" in fields else {}
    keys |= {"update_log": "[]"} if "update_log" in fields else {}
    keys |= {"aux": "{}"} if "aux" in fields else {}
    keys |= {"id": render_scalar(document.id)} if "id" in fields else {}
    try:
        return set_headers(document, keys)
    except Unreadable:  # rather no front matter than one that says too much
        return edit(document, [(document.header.span, ())])
