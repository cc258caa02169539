"""What adding an exported library to another one would change: pure, from two sets of files to new contents."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from infinimem.consolidate.commit import extract
from infinimem.errors import BadInput, NeedsAttention, Unreadable
from infinimem.exchange.export.json_lines import Package
from infinimem.exchange.export.pieces import as_document
from infinimem.model import CURRENT, Document, Entry, Signature, Span, Summarise, path_of
from infinimem.plan import rules
from infinimem.plan.desk import Desk, insert_entries, refresh, set_headers
from infinimem.store.append import HIGHEST_SEQ
from infinimem.store.evidence import retire_line
from infinimem.store.imported import ORIGIN, ORIGINS, mark_of, marks_of, placed_in_time, seq_at_home
from infinimem.store.layout import BUFFER, BUFFER_HEAD, LOG
from infinimem.store.transaction import with_entries
from infinimem.text.document import (
    ITEM,
    Event,
    body_tokens,
    edit,
    entry_lines,
    events,
    render,
    unsigned_entries,
)
from infinimem.text.header import render_scalar
from infinimem.text.lines import ending_of, strip_ending
from infinimem.text.signature import (
    parse_seqs,
    parse_signature,
    render_fields,
    render_seqs,
    render_signature,
    with_field,
)


@dataclass(frozen=True, slots=True)
class Merge:
    """New contents of files, lines for evidence, entries for the log of writes, and what they amount to.

    `waiting` are the new entries in CURRENT, `placed` those in pages.
    """

    seqs: tuple[int, ...]
    topics: tuple[str, ...]
    known: int
    retired: int
    following: int
    contents: Mapping[str, bytes]
    evidence: tuple[str, ...]
    waiting: tuple[Entry, ...]
    placed: tuple[Entry, ...]
    logged: tuple[Entry, ...]
    notes: tuple[str, ...]


@dataclass(slots=True)
class Work:
    """Both libraries, which of the exported seqs becomes which of ours, which were unknown here, and what was made."""

    theirs: Mapping[str, Document]
    ours: Mapping[str, Document]
    now: str
    following: int
    first: Mapping[int, Entry]
    mapping: dict[int, int] = field(default_factory=dict)
    origins: dict[int, str] = field(default_factory=dict)
    new: set[int] = field(default_factory=set)
    renamed: dict[str, str] = field(default_factory=dict)
    pages: dict[str, Document] = field(default_factory=dict)
    changed: dict[str, list[tuple[str, tuple[int, ...]]]] = field(default_factory=dict)
    created: list[str] = field(default_factory=list)
    waiting: list[Entry] = field(default_factory=list)
    logged: list[Entry] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)
    retired: int = 0
    notes: list[str] = field(default_factory=list)

    def page(self, path: str) -> Document:
        """One of our documents as changed so far."""
        return self.pages.get(path) or self.ours[path]


def plan_merge(package: Package, files: Mapping[str, bytes], following: int, now: str, *, again: bool = False) -> Merge:
    """What has to change in a library with these files for it to hold the exported one's entries, too."""
    theirs = {path: as_document(path, content) for path, content in package.files.items()}
    ours = {path: as_document(path, content) for path, content in files.items()}
    for document in (*theirs.values(), ours.get(BUFFER, as_document(BUFFER, b""))):
        if document.blocking and not document.is_guest:
            place = package.path if document.path in theirs and document is theirs[document.path] else "the library"
            raise BadInput(f"{place}: {document.blocking[0]}; nothing was loaded")
    work = Work(theirs, ours, now, following, first_words(theirs))
    number_entries(work, again=again)
    for document in theirs.values():
        if document.path.startswith("topics/"):
            choose_page(work, document)
    for document in theirs.values():
        if document.path.startswith("topics/"):
            take_page(work, document)
    take_waiting(work)
    take_evidence(work)
    retire_known(work)
    take_forgotten(work)
    return finished(work)


# Which entry is which


def first_words(documents: Mapping[str, Document]) -> dict[int, Entry]:
    """Each seq as it was first written: as evidence has it, else CURRENT, else the line that shows it."""
    order = sorted(documents.values(), key=lambda one: (not one.path.startswith("evidence/"), one.path != BUFFER))
    own = [document for document in order if not document.path.startswith("topics/") or not document.is_guest]
    alone = [entry for document in own for entry in document.entries if len(entry.seqs) == 1]
    first: dict[int, Entry] = {}
    for entry in alone:
        if not entry.signature.get("rev"):
            first.setdefault(entry.seq, entry)
    for document in own:
        for entry in document.entries:
            for seq in entry.seqs:
                first.setdefault(seq, entry)
    return first


def origin_of(seq: int, entry: Entry) -> str:
    """Where an entry comes from: what it says of itself, else its seq and a digest of its first words."""
    said = entry.signature.get(ORIGIN)
    if len(entry.seqs) == 1 and ORIGINS.fullmatch(said):
        return said
    return f"{seq}@{digest(entry.signature.fields, entry.text)}"


def digest(fields: Sequence[tuple[str, str]], text: str) -> str:
    """What tells two entries apart that have the same seq in two libraries."""
    return hashlib.blake2b(json.dumps([fields, text]).encode(), digest_size=8).hexdigest()


def number_entries(work: Work, *, again: bool) -> None:
    """Give each exported seq its own here: the one that it has already, or the next, in the old order.

    What was forgotten here gets one only if it is to come in `again`.
    """
    known = {origin_of(seq, entry): seq for seq, entry in first_words(work.ours).items()}
    forgotten = {seq: event for event in all_events(work.ours) if event.kind == "forget" for seq in event.seqs}
    marks = marks_in(work.ours)
    stay = 0
    for seq in sorted(work.first):
        entry = work.first[seq]
        origin = work.origins[seq] = origin_of(seq, entry)
        if origin in known:
            work.mapping[seq] = known[origin]
        elif not again and was_forgotten(seq, entry, origin, forgotten, marks):
            stay += 1
        else:
            work.mapping[seq] = take_seq(work)
            work.new.add(seq)
    if stay:
        work.notes.append(f"{stay} of its entries were forgotten here and stay so; --again brings them back")


def was_forgotten(seq: int, entry: Entry, origin: str, forgotten: Mapping[int, Event], marks: Set[str]) -> bool:
    """Whether an exported entry was forgotten here: its own, or one that had come from elsewhere."""
    if entry.observed and seq in forgotten and forgotten[seq].get("observed") == entry.observed:
        return True
    return not marks.isdisjoint(marks_of(seq, entry, origin))


def marks_in(documents: Mapping[str, Document]) -> set[str]:
    """What is kept of the ids of forgotten entries."""
    events = [event for event in all_events(documents) if event.kind == "forget"]
    return {mark for event in events for mark in event.get("ids").split("+") if mark}


def take_forgotten(work: Work) -> None:
    """Forget here, too, what the exported library forgot: by marks, so that no import brings it back unasked."""
    known = marks_in(work.ours)
    own = {
        (seq, one.get("observed")) for one in all_events(work.ours) if one.kind == "forget" for seq in one.seqs
    }  # an export of this very library
    taken: set[int] = set()
    lines = []
    for event in (one for one in all_events(work.theirs) if one.kind == "forget"):
        observed = event.get("observed")
        named = (placed_in_time(seq, observed) for seq in event.seqs)
        marks = dict.fromkeys([*event.get("ids").split("+"), *(mark_of(name) for name in named if name)])
        new = [mark for mark in marks if mark]
        if known.issuperset(new) or own.issuperset((seq, observed) for seq in event.seqs):
            continue
        known.update(new)
        taken.update(event.seqs)
        fields = [("event", "forget"), ("seq", str(take_seq(work))), ("at", event.get("at") or work.now)]
        fields += [("observed", observed)] if observed else []
        lines.append(f"- {render_fields([*fields, ('ids', '+'.join(new))])}\n")
    if not lines:
        return
    work.evidence += lines
    number = f"{len(taken)} entries were" if len(taken) > 1 else "1 entry was"
    work.notes.append(f"{number} forgotten where it comes from; no import brings that in here, either")
    left = [seq for seq, entry in first_words(work.ours).items() if stands_from(entry, known)]
    if left:
        seqs = render_seqs(sorted(left))
        work.notes.append(f"{seqs} came from there before; to forget it here, too: infinimem forget {seqs}")


def stands_from(entry: Entry, marks: Set[str]) -> bool:
    """Whether an entry of ours is one that was forgotten where it comes from."""
    seq = seq_at_home(entry)
    origin = entry.signature.get(ORIGIN)
    return not marks.isdisjoint(marks_of(seq, entry, origin)) if seq or entry.signature.get("id") else False


def take_seq(work: Work) -> int:
    """A seq that nobody has."""
    if work.following > HIGHEST_SEQ:
        raise NeedsAttention(f"the seq {work.following - 1} leaves no room for more; nothing was loaded")
    work.following += 1
    return work.following - 1


def rewritten(work: Work, signature: Signature) -> Signature:
    """A signature with the seqs of this library. A reference to what the export does not hold is put aside."""
    fields: list[tuple[str, str]] = []
    aside: list[tuple[str, str]] = []
    for name, value in signature.fields:
        if name == "supersedes":
            old = parse_seqs(value)
            lost = [seq for seq in old if seq not in work.mapping]
            value = (
                render_seqs(dict.fromkeys(work.mapping[seq] for seq in old if seq in work.mapping)) if old else value
            )
            aside += [(f"{ORIGIN}.{name}", render_seqs(lost))] if lost else []
        elif name == "links":
            value, lost_links = rewritten_links(work, value)
            aside += [(f"{ORIGIN}.{name}", lost_links)] if lost_links else []
        if value or (name, value) in signature.fields:
            fields.append((name, value))
    signed = Signature(tuple(work.mapping[seq] for seq in signature.seqs), (*fields, *aside))
    if len(signature.seqs) > 1 or signature.get("rev"):
        return signed
    return with_field(signed, ORIGIN, work.origins[signature.seqs[0]])


def rewritten_links(work: Work, links: str) -> tuple[str, str]:
    """`31:contradicts+maya-home` with our seqs and ids, and the pieces that name a seq that is not there."""
    kept, lost = [], []
    for piece in links.split("+"):
        target, colon, relation = piece.partition(":")
        seqs = parse_seqs(target.strip())
        if not seqs:
            kept.append(work.renamed.get(target, target) + colon + relation)
        elif all(seq in work.mapping for seq in seqs):
            kept.append(render_seqs(work.mapping[seq] for seq in seqs) + colon + relation)
        else:
            lost.append(piece)
    return "+".join(kept), "+".join(lost)


def lines_of(work: Work, entry: Entry) -> tuple[str, ...]:
    """An exported entry as lines of this library."""
    return entry_lines(rewritten(work, entry.signature), entry.text)


# Pages


def choose_page(work: Work, document: Document) -> None:
    """Note the id that an exported page gets here where its own is taken: links follow."""
    if home_of(work, document):
        work.renamed[document.id] = home_of(work, document)
        return
    topic, number = document.id, 1
    while path_of(topic) in work.ours and not holds_same(work.ours[path_of(topic)], document):
        number += 1
        topic = f"{document.id}-{number}"
    work.renamed[document.id] = topic


def home_of(work: Work, document: Document) -> str:
    """The page of ours where most entries of an exported page stand already; "" when none does."""
    if document.is_guest:
        return ""
    seqs = {seq for entry in document.entries for seq in entry.seqs} - work.new
    known = {work.mapping[seq] for seq in seqs if seq in work.mapping}
    homes: Counter[str] = Counter()
    for ours in work.ours.values() if known else ():
        if ours.path.startswith("topics/") and not ours.is_guest and not ours.blocking:
            homes[ours.id] += sum(not known.isdisjoint(entry.seqs) for entry in ours.entries)
    best = homes.most_common(1)
    return best[0][0] if best and best[0][1] else ""


def holds_same(ours: Document, document: Document) -> bool:
    """Whether a page without entries says the same here; what its front matter counts does not matter."""
    if document.entries and not document.is_guest:
        return False
    if document.is_guest:
        return ours.lines == document.lines
    return ours.lines[ours.header.span.stop :] == document.lines[document.header.span.stop :]


def take_page(work: Work, document: Document) -> None:
    """Bring an exported page in: as a page of its own, or what is new of it into the page that has the rest."""
    topic = work.renamed[document.id]
    path = path_of(topic)
    entries = [entry for entry in document.entries if not document.is_guest]
    new = [entry for entry in entries if not work.new.isdisjoint(entry.seqs)]
    if home_of(work, document):
        extend_page(work, path, [one for entry in new for one in fresh_entries(work, entry)])
    elif path in work.ours or (entries and not new):
        return
    elif document.is_guest:
        work.pages[path] = replace(document, path=path)
        work.created.append(topic)
    else:
        work.pages[path] = new_page(work, document, topic)
        work.created.append(topic)


def fresh_entries(work: Work, entry: Entry) -> list[Entry]:
    """An exported line as it comes to stand here; of a joined one that is known in part, the other parts verbatim."""
    if work.new.issuperset(entry.seqs):
        return [replace(entry, signature=rewritten(work, entry.signature))]
    parts = [work.first[seq] for seq in entry.seqs if seq in work.new]
    return [
        replace(part, signature=rewritten(work, part.signature), headings=entry.headings)
        for part in parts
        if len(part.seqs) == 1
    ]


def new_page(work: Work, document: Document, topic: str) -> Document:
    """An exported page with our seqs, and without what stands here already."""
    ending = ending_of(document.lines)
    edits: list[tuple[Span, Sequence[str]]] = []
    for entry in document.entries:
        lines: list[str] = []
        if work.new.issuperset(entry.seqs):
            lines = signed_lines(work, document, entry, ending)
        elif not work.new.isdisjoint(entry.seqs):
            parts = fresh_entries(work, entry)
            lines = [line for part in parts for line in entry_lines(part.signature, part.text, ending)]
        edits.append((entry.span, lines))
    page = replace(edit(document, edits), path=path_of(topic))
    seqs = tuple(seq for entry in page.entries for seq in entry.seqs)
    row = f", seq: {render_seqs(sorted(seqs))}" if seqs else ""
    keys = {"id": render_scalar(topic)}
    if "update_log" in page.header.fields:
        keys["update_log"] = f"\n- {{time: {work.now}, op: load{row}}}"
    if "token_count" in page.header.fields:
        keys["token_count"] = str(body_tokens(page))
    page = set_headers(page, keys)
    return page if len(page.entries) == len(document.entries) else with_true_summary(page)


def signed_lines(work: Work, document: Document, entry: Entry, ending: str) -> list[str]:
    """The lines of an entry with our signature in the place of its own, nothing else changed."""
    line = document.lines[entry.span.start]
    signature = rewritten(work, entry.signature)
    item = ITEM.match(line)
    parsed = parse_signature(strip_ending(line[item.end() :], ending)) if item else None
    if item is None or parsed is None:  # wrapped over lines, or after a byte order mark
        return list(entry_lines(signature, entry.text, ending))
    first = line[: item.end()] + render_signature(signature) + line[item.end() + parsed[1] :]
    return [first, *document.lines[entry.span.start + 1 : entry.span.stop]]


def extend_page(work: Work, path: str, entries: Sequence[Entry]) -> None:
    """Put entries under their headings in a page of ours; where that cannot be done safely they wait in CURRENT."""
    for entry in entries:
        heading = entry.headings[-1] if len(entry.headings) > 1 else ""
        try:
            work.pages[path] = insert_entries(work.page(path), heading, [entry])
            work.changed.setdefault(path, []).append(("add", entry.seqs))
        except Unreadable:
            work.waiting.append(entry)


def with_true_summary(document: Document) -> Document:
    """The document with its summary, if every number and name in it still stands there; else one of its own words."""
    summary = document.header.fields.get("summary")
    if not isinstance(summary, str) or document.is_guest:
        return document
    desk = Desk({}, {document.id: document})
    if summary and not rules.bad_summary(Summarise(document.id, summary), desk):
        return document
    return set_headers(document, {"summary": render_scalar(extract(document))})


# CURRENT and evidence


def take_waiting(work: Work) -> None:
    """What waited in the exported CURRENT waits here; what was lost from it can be recovered here."""
    document = work.theirs.get(BUFFER, as_document(BUFFER, b""))
    known = {entry.signature.get(ORIGIN) for ours in work.ours.values() for entry in ours.entries}
    for entry in document.entries:
        work.waiting += fresh_entries(work, entry) if not work.new.isdisjoint(entry.seqs) else []
    for entry in unsigned_entries(document):
        origin = f"0@{digest((), entry.text)}"
        if origin not in known:
            fields = (("source", "hand"), ("observed", work.now), (ORIGIN, origin))
            seq = take_seq(work)
            work.waiting.append(Entry(CURRENT, Signature((seq,), fields), entry.text))
    for entry in work.theirs[LOG].entries if LOG in work.theirs else ():
        if work.new.issuperset(entry.seqs):
            work.logged.append(replace(entry, signature=rewritten(work, entry.signature)))


def take_evidence(work: Work) -> None:
    """Everything that the export's evidence says of entries that are new here, in its order."""
    told: set[int] = set()
    for document in work.theirs.values():
        if not document.path.startswith("evidence/"):
            continue
        found: list[tuple[int, list[str]]] = []
        for entry in document.entries:
            if work.new.issuperset(entry.seqs):
                found.append((entry.span.start, list(lines_of(work, entry))))
                told.update(entry.seqs if len(entry.seqs) == 1 else ())
        found += [(event.line - 1, event_lines(work, event)) for event in events(document.lines)]
        work.evidence += [line for _, lines in sorted(found, key=lambda pair: pair[0]) for line in lines]
    pages = [page for page in work.theirs.values() if page.path.startswith("topics/") and not page.is_guest]
    shown = [entry for page in pages for entry in page.entries]
    for entry in shown:
        for seq in entry.seqs:
            if seq in work.new and seq not in told:
                signature = replace(entry.signature, seqs=(seq,))
                work.evidence += lines_of(work, replace(entry, signature=signature))
                told.add(seq)


def event_lines(work: Work, event: Event) -> list[str]:
    """What became of entries that are new here. Marks of their flushes mean nothing here, and what was forgotten is."""
    seqs = [work.mapping[seq] for seq in event.seqs if seq in work.new]
    if not seqs or event.kind == "forget":
        return []
    fields: list[tuple[str, str]] = []
    for name, value in event.fields:
        if name == "seq":
            value = render_seqs(seqs)
        elif name == "by":
            value = render_seqs(work.mapping[seq] for seq in parse_seqs(value) if seq in work.mapping)
        if value:
            fields.append((name, value))
    return [f"- {render_fields(fields)}\n"]


def retire_known(work: Work) -> None:
    """What the exported library has replaced since leaves our pages, too, unless it was ever retired here."""
    ever = {seq for event in all_events(work.ours) if event.kind == "retire" for seq in event.seqs}
    fates: dict[int, Event] = {}
    for event in all_events(work.theirs):
        if event.kind in ("retire", "unflush", "restore"):
            fates.update(dict.fromkeys(event.seqs, event))
    evidence = [document for path, document in work.ours.items() if path.startswith("evidence/")]
    recorded = {seq for document in evidence for entry in document.entries for seq in entry.seqs}
    standing = {
        seq: (path, entry)
        for path, document in work.ours.items()
        if path == BUFFER or (path.startswith("topics/") and not document.is_guest and not document.blocking)
        for entry in document.entries
        for seq in entry.seqs
    }
    for old, event in sorted(fates.items()):
        seq = work.mapping.get(old, 0)
        if event.kind != "retire" or old in work.new or seq in ever or seq not in standing:
            continue
        path, entry = standing[seq]
        by = next((work.mapping[one] for one in parse_seqs(event.get("by")) if one in work.mapping), 0)
        if entry.seqs != (seq,):
            work.notes.append(
                f"{path}: seq {seq} is part of a joined line; it was {event.get('why')} where it comes from"
            )
            continue
        page = work.page(path)
        span = next(one.span for one in page.entries if one.seqs == (seq,))
        work.pages[path] = edit(page, [(span, ())])
        work.changed.setdefault(path, []).append(("update", (seq,)))
        if path == BUFFER and seq not in recorded:
            work.evidence += entry_lines(entry.signature, entry.text)
        work.evidence.append(retire_line([seq], by, event.get("why") or "superseded", work.now))
        work.retired += 1


def all_events(documents: Mapping[str, Document]) -> list[Event]:
    """What evidence says became of entries, in order."""
    return [
        one for path, document in documents.items() if path.startswith("evidence/") for one in events(document.lines)
    ]


def finished(work: Work) -> Merge:
    """The work as new contents."""
    contents: dict[str, bytes] = {}
    for path, page in work.pages.items():
        if path in work.changed and path != BUFFER:
            page = with_true_summary(page)
            page = refresh(page, str(page.header.fields.get("summary", "")), work.changed[path], work.now)
        contents[path] = render(page)
    if work.waiting:
        head = render(work.page(BUFFER)) if BUFFER in work.ours else BUFFER_HEAD
        contents[BUFFER] = with_entries(contents.get(BUFFER, head), work.waiting)
        work.logged += work.waiting
    added = {work.mapping[seq] for seq in work.new} | {seq for entry in work.waiting for seq in entry.seqs}
    ordered = {path: contents[path] for path in sorted(contents, key=lambda path: path == BUFFER)}
    return Merge(
        tuple(sorted(added)),
        tuple(work.created),
        len(work.mapping) - len(work.new),
        work.retired,
        work.following,
        ordered,
        tuple(work.evidence),
        tuple(work.waiting),
        tuple(entry for page in work.pages.values() for entry in page.entries if added.issuperset(entry.seqs)),
        tuple(work.logged),
        tuple(work.notes),
    )
