"""A plan's steps carried out on values: the documents as they would be. Pure; no file is touched here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from unicodedata import normalize

from infinimem.errors import Unreadable
from infinimem.model import (
    Block,
    Create,
    Divide,
    Document,
    Entry,
    Extend,
    Join,
    Link,
    Merge,
    Retire,
    Signature,
    Span,
    Split,
    Step,
    Summarise,
    Tie,
    path_of,
)
from infinimem.text.document import body_tokens, edit, entry_lines, parse_changed, parse_lines, signed_again, title_of
from infinimem.text.header import key_span, load_yaml, render_flow, render_scalar, set_key
from infinimem.text.lines import BOM, ending_of, indent_of, is_blank, strip_ending
from infinimem.text.signature import parse_links, parse_seqs, render_links, render_seqs, with_field, without_field

BARE_WORD = re.compile(r"[^\W_]+")
LOG_ROWS = 20
REDIRECTED = "This topic is now part of ["
OWN_FIELDS = ("supersedes", "key", "rev", "at", "split_from", "conf")
"""Fields that belong to one entry and do not go over to its pieces."""
OUR_KEYS = ("id", "summary", "token_count", "created_time", "update_log", "aux")


@dataclass(frozen=True, slots=True)
class Desk:
    """What a run works on: the buffer it consumes and the documents as its steps have left them.

    `waiting` are the buffered entries that no step has placed yet, by their first seq; `spare` are verbatim
    entries from evidence for the members of joined lines, in case one of them is retired; `gone` are the entries
    that this run retired, `made` the lines that an entry was divided into, `joined` those that join visible ones.
    """

    waiting: Mapping[int, Entry]
    documents: Mapping[str, Document] = field(default_factory=dict)
    placed: tuple[int, ...] = ()
    retired: tuple[Retire, ...] = ()
    removed: tuple[str, ...] = ()
    touched: Mapping[str, tuple[tuple[str, tuple[int, ...]], ...]] = field(default_factory=dict)
    spare: Mapping[int, Entry] = field(default_factory=dict)
    summaries: Mapping[str, str] = field(default_factory=dict)
    gone: Mapping[int, Entry] = field(default_factory=dict)
    made: Mapping[int, tuple[Entry, ...]] = field(default_factory=dict)
    joined: tuple[Entry, ...] = ()
    read: dict[str, tuple[Document, Mapping[int, Entry]]] = field(default_factory=dict, compare=False, repr=False)
    """The entries of a document by seq, of each as it was when that was asked last: a memory, no part of the value."""

    def holding(self, seq: int) -> Entry | None:
        """The visible entry that stands for a seq in one of the documents at hand."""
        for topic, document in self.documents.items():
            known = self.read.get(topic)
            if known is None or known[0] is not document:
                by_seq = {one: entry for entry in reversed(document.entries) for one in entry.seqs}
                known = self.read[topic] = document, by_seq
            if seq in known[1]:
                return known[1][seq]
        return None

    def buffered(self, seq: int) -> Entry | None:
        """The waiting entry that stands for a seq."""
        if seq in self.waiting:
            return self.waiting[seq]
        return next((entry for entry in self.waiting.values() if seq in entry.seqs), None)


def apply(desk: Desk, step: Step, now: str) -> Desk:
    """The desk after one step that `rules.violation` found nothing against."""
    match step:
        case Create():
            return with_document(desk, new_document(step.topic, step.title, now), "create", ())
        case Extend():
            return extend(desk, step)
        case Join():
            return join(desk, step)
        case Retire():
            return retire(desk, step)
        case Split():
            return split(desk, step, now)
        case Merge():
            return merge(desk, step)
        case Summarise():
            return replace(desk, summaries={**desk.summaries, step.topic: step.text})
        case Link():
            return link(desk, step)
        case Divide():
            return divide(desk, step)


def with_document(desk: Desk, document: Document, op: str, seqs: Sequence[int]) -> Desk:
    """The desk with a document changed and the change noted for its update log.

    Raises `Unreadable` where the document's front matter cannot be brought up to date afterwards.
    """
    if document.id not in desk.touched and op != "create":
        # Tried now: at the end of a run it would be one document's front matter that stops all of it.
        refresh(document, "A summary.", ((op, tuple(seqs)),), "2026-01-01T00:00:00Z")
    noted = (*desk.touched.get(document.id, ()), (op, tuple(seqs)))
    return replace(
        desk,
        documents={**desk.documents, document.id: document},
        touched={**desk.touched, document.id: noted},
    )


def new_document(topic: str, title: str, now: str) -> Document:
    """A topic document with its six keys and a title, nothing in it yet."""
    lines = (
        "---\n",
        f"id: {render_scalar(topic)}\n",
        "summary: ''\n",
        "token_count: 0\n",
        f"created_time: {now}\n",
        "update_log: []\n",
        "aux: {}\n",
        "---\n",
        f"# {title}\n",
    )
    return parse_lines(path_of(topic), lines)


def extend(desk: Desk, step: Extend) -> Desk:
    """Place waiting entries, verbatim and in the step's order."""
    entries = first_places(desk.buffered(seq) for seq in step.seqs)
    document = insert_entries(desk.documents[step.topic], step.heading, entries)
    seqs = tuple(seq for entry in entries for seq in entry.seqs)
    waiting = {seq: entry for seq, entry in desk.waiting.items() if entry not in entries}
    return replace(with_document(desk, document, "add", seqs), waiting=waiting, placed=(*desk.placed, *seqs))


def first_places(found: Iterable[Entry | None]) -> list[Entry]:
    """Each entry once, in the order of first mention."""
    entries: list[Entry] = []
    for entry in found:
        if entry is not None and entry not in entries:
            entries.append(entry)
    return entries


def join(desk: Desk, step: Join) -> Desk:
    """One line for several entries; what all of them agree on stays in its signature."""
    waiting = any(desk.buffered(seq) is not None for seq in step.seqs)
    sources = first_places(desk.buffered(seq) if waiting else desk.holding(seq) for seq in step.seqs)
    joined = joined_line(sources, step.text, shown=not waiting)
    if not waiting:
        return join_visible(desk, sources, joined)
    rest: dict[int, Entry] = {}
    for seq, entry in desk.waiting.items():
        if entry is sources[0]:
            rest[seq] = joined
        elif entry not in sources:
            rest[seq] = entry
    return replace(desk, waiting=rest)


def joined_line(sources: Sequence[Entry], text: str, *, shown: bool) -> Entry:
    """The line that says what several entries say, with all their seqs and links."""
    shared = [pair for pair in sources[0].signature.fields if all(pair in entry.signature.fields for entry in sources)]
    times = [entry.time for entry in sources if entry.time]
    if times and not any(key == "time" for key, _ in shared):
        shared.insert(0, ("time", max(times)))
    seqs = tuple(seq for entry in sources for seq in entry.seqs)
    signature = Signature(seqs, tuple(shared))
    if not any(key == "links" for key, _ in shared):
        # what links one that is shown to another, too: it may stand in no evidence, so only the line can give it back
        ties = dict.fromkeys(tie for entry in sources for tie in parse_links(entry.signature.get("links")))
        kept = [tie for tie in ties if shown or not tie.seqs or not set(tie.seqs) <= set(seqs)]
        signature = with_links(signature, kept)
    return replace(sources[0], signature=signature, text=text)


def join_visible(desk: Desk, sources: Sequence[Entry], joined: Entry) -> Desk:
    """Put a joined line in the place of the first of its sources and take the others off their pages."""
    first, *others = sources
    for source in (*others, first):
        entry = desk.holding(source.seq)
        assert entry is not None  # the rules have seen it
        document = desk.documents[entry.topic]
        lines = entry_lines(joined.signature, joined.text, ending_of(document.lines)) if source is first else ()
        document = edit(document, [(entry.span, lines)])
        if not lines:
            document = without_empty_blocks(document, entry.headings)
        desk = with_document(desk, document, "join", joined.seqs)
    return replace(desk, joined=(*desk.joined, joined))


def divide(desk: Desk, step: Divide) -> Desk:
    """Several lines in the place of one, each with a seq of its own and the one that it comes from."""
    entry = desk.holding(step.seq)
    assert entry is not None  # the rules have seen it
    shared = [pair for pair in entry.signature.fields if pair[0] not in OWN_FIELDS]
    fields = (*shared, ("split_from", str(step.seq)))
    parts = tuple(
        replace(entry, signature=Signature((seq,), fields), text=text.strip())
        for seq, text in zip(step.seqs, step.texts, strict=True)
    )
    document = desk.documents[entry.topic]
    ending = ending_of(document.lines)
    lines = [line for part in parts for line in entry_lines(part.signature, part.text, ending)]
    at = document.entries.index(entry)
    expected = [*document.entries[:at], *parts, *document.entries[at + 1 :]]
    document = only_if_it_reads(edit(document, [(entry.span, lines)]), expected)
    desk = replace(
        desk,
        retired=(*desk.retired, Retire(step.seq, step.seqs[0], "split")),
        gone={**desk.gone, step.seq: entry},
        made={**desk.made, step.seq: parts},
    )
    return with_document(desk, document, "divide", (step.seq, *step.seqs))


def retire(desk: Desk, step: Retire) -> Desk:
    """Take an entry off the visible surface; the other members of a joined line come back verbatim."""
    left = desk.buffered(step.seq) or desk.holding(step.seq)
    gone = {**desk.gone, **({step.seq: left} if left is not None else {})}
    desk = replace(desk, retired=(*desk.retired, step), gone=gone)
    waiting = desk.buffered(step.seq)
    if waiting is not None:
        rest = {seq: entry for seq, entry in desk.waiting.items() if entry is not waiting}
        for seq in waiting.seqs:
            if seq != step.seq and seq in desk.spare:
                rest[seq] = come_back(waiting, seq, desk.spare)
        desk = replace(desk, waiting=dict(sorted(rest.items())))
    # a copied file may show an entry twice: every copy leaves
    while (entry := desk.holding(step.seq)) is not None:
        document = desk.documents[entry.topic]
        ending = ending_of(document.lines)
        others = [come_back(entry, seq, desk.spare) for seq in entry.seqs if seq != step.seq]
        first = document.lines[entry.span.start]
        # as far in as the line was: what stands below it belongs to it by that alone, or does not
        margin = first[: len(first) - len(first.lstrip(" "))]
        lines = [line for other in others for line in entry_lines(other.signature, other.text, ending)]
        lines = [margin + line if line.strip("\r\n") else line for line in lines]
        document = edit(document, [(entry.span, lines)])
        if not lines:
            document = without_empty_blocks(document, entry.headings)
        desk = with_document(desk, document, "update", (step.by,) if step.by else (step.seq,))
    return desk


def come_back(line: Entry, seq: int, members: Mapping[int, Entry]) -> Entry:
    """A member of a joined line by itself again: in its own words, and with those links of the line that may be its.

    Links that were made while the line was joined are in no member's evidence: nobody can tell whose they are.
    """
    own = members[seq]
    known = {
        tie for other in line.seqs if other in members for tie in parse_links(members[other].signature.get("links"))
    }
    new = [tie for tie in parse_links(line.signature.get("links")) if tie not in known and seq not in tie.seqs]
    if not new:
        return own
    return replace(own, signature=with_links(own.signature, [*parse_links(own.signature.get("links")), *new]))


def without_empty_blocks(document: Document, headings: tuple[str, ...]) -> Document:
    """The document without a heading of ours under which nothing stands any more; one that is pinned keeps them."""
    if is_pinned(document):
        return document
    for number, block in enumerate(document.blocks):
        body = document.lines[block.span.start + 1 : block.span.stop]
        deeper = number + 1 < len(document.blocks) and document.blocks[number + 1].level > block.level
        if block.headings == headings and block.level > 1 and not deeper and all(map(is_blank, body)):
            emptied = edit(document, [(block.span, ())])
            # an indented heading below would become text of the entry above
            return emptied if reads_as(emptied, document.entries) else document
    return document


def insert_entries(document: Document, heading: str, entries: Sequence[Entry]) -> Document:
    """The document with entries under a heading (made at the end if missing; "" = before any subheading).

    Indented lines below an entry would become its text. So it goes after the block's last entry or to the
    next place that takes nothing in, and where a block has none it gets a heading of its own.
    """
    ending = ending_of(document.lines)
    lines = [line for entry in entries for line in entry_lines(entry.signature, entry.text, ending)]
    name = as_read(heading)
    if name and is_pinned(document) and block_called(document, name) is None:
        name = ""  # a person keeps the headings as they are
    for wanted in (name,) if name else ("", as_read(title_of(document))):
        name = wanted
        block = block_called(document, name)
        for at, before, after in places(document, block, ending) if block is not None else ():
            changed = edit(document, [(Span(at, at), [*before, *lines, *after])])
            if reads_as(changed, with_inserted(document, at, entries)):
                return changed
    end = Span(len(document.lines), len(document.lines))
    apart = [] if not document.lines or is_blank(document.lines[-1]) else [ending]
    changed = edit(document, [(end, [*apart, f"## {name}".rstrip(" ") + ending, ending, *lines])])
    return only_if_it_reads(changed, [*document.entries, *entries])


def as_read(heading: str) -> str:
    """A heading's name as it is read back once it is written: without closing marks and outer spaces."""
    while True:
        name = parse_lines("", (f"## {heading}\n",)).blocks[-1].headings[-1]
        if name == heading:
            return name
        heading = name


def block_called(document: Document, name: str) -> Block | None:
    """The last block with this name below the title, else with the same words; for "" the one right under the title."""
    if not name:
        top = [block for block in document.blocks if block.level <= 1]
        return top[-1] if top else document.blocks[0]
    below = [block for block in document.blocks if block.level > 1]
    wanted = name.casefold()
    named = [block for block in below if block.headings[-1].casefold() == wanted]
    if named:
        return named[-1]
    words = bare_words(name)  # `Work, travel:` is no second heading beside `Work & travel`
    alike = [block for block in below if words and bare_words(block.headings[-1]) == words]
    return alike[-1] if alike else None


def bare_words(heading: str) -> list[str]:
    """The words of a heading, whatever marks stand between them, and however their accents are encoded."""
    return BARE_WORD.findall(normalize("NFC", heading.casefold()))


def places(document: Document, block: Block, ending: str) -> Iterator[tuple[int, list[str], list[str]]]:
    """Where entries may go in a block, best first: a line, and what must stand before and after them."""
    inside = [entry for entry in document.entries if block.span.start <= entry.span.start < block.span.stop]
    at = block.span.stop
    while at > block.span.start and is_blank(document.lines[at - 1]):
        at -= 1
    if inside:
        last = inside[-1].span.stop
        yield last, [], []
        # what hangs on the list item above the last entry ends at the margin
        margin = next((line for line in range(last, at) if document.lines[line][0] not in " \t\r\n"), 0)
        if margin:
            yield margin, [], []
        at = max(at, last)
    before = [ending] if at else []
    followed = at < len(document.lines) and not is_blank(document.lines[at])
    yield at, before, [ending] if followed else []
    yield at, before, [ending]


def with_inserted(document: Document, at: int, entries: Sequence[Entry]) -> list[Entry]:
    """The document's entries with others before line `at`."""
    above = [entry for entry in document.entries if entry.span.start < at]
    return [*above, *entries, *document.entries[len(above) :]]


def reads_as(document: Document, entries: Sequence[Entry]) -> bool:
    """Whether the document says just these entries, wherever they stand."""
    return [(entry.signature, entry.text) for entry in document.entries] == [
        (entry.signature, entry.text) for entry in entries
    ]


def only_if_it_reads(document: Document, entries: Sequence[Entry]) -> Document:
    """The document if it says just these entries; else `Unreadable`, for an edit may not change other entries."""
    if reads_as(document, entries):
        return document
    raise Unreadable(
        f"{document.path}: this edit would change other entries (a code fence is not closed?); arrange it by hand"
    )


def split(desk: Desk, step: Split, now: str) -> Desk:
    """Move the parts' entries into documents of their own; prose stays where it is."""
    document = desk.documents[step.topic]
    for part in step.parts:
        if part.topic == step.topic:
            continue
        moved = [entry for entry in document.entries if entry.seqs[0] in part.seqs]
        made = new_document(part.topic, part.title, now)
        for heading, entries in by_heading(moved):
            made = insert_entries(made, heading, entries)
        made = set_aux(made, "split_from", [step.topic])
        headings = dict.fromkeys(entry.headings for entry in moved)
        rest = [entry for entry in document.entries if entry not in moved]
        document = only_if_it_reads(edit(document, [(entry.span, ()) for entry in moved]), rest)
        for path in headings:
            document = without_empty_blocks(document, path)
        desk = with_document(desk, made, "split", tuple(seq for entry in moved for seq in entry.seqs))
    return with_document(desk, document, "split", tuple(seq for part in step.parts for seq in part.seqs))


def by_heading(entries: Sequence[Entry]) -> list[tuple[str, list[Entry]]]:
    """Entries grouped by the heading right above them, in order of first mention."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        name = entry.headings[-1] if len(entry.headings) > 1 else ""
        groups.setdefault(name, []).append(entry)
    return list(groups.items())


def merge(desk: Desk, step: Merge) -> Desk:
    """Bring all entries, and any prose, of several documents into one; the others are removed."""
    target = desk.documents[step.into]
    former: list[str] = []
    moved: list[int] = []
    ties = [*topic_ties(target)]
    for topic in step.topics:
        if topic == step.into:
            continue
        source = desk.documents[topic]
        target = absorb(target, source)
        fresh = desk.touched.get(topic, (("", ()),))[0][0] == "create"  # nobody has known it by this id yet
        former += [*([] if fresh else [topic]), *aux_list(source, "merged_from"), *aux_list(source, "former_ids")]
        moved += [seq for entry in source.entries for seq in entry.seqs]
        ties += topic_ties(source)
    known = aux_list(target, "merged_from")
    new = [topic for topic in former if topic not in known]
    if new:
        target = set_aux(target, "merged_from", [*known, *new])
    outward = [render_links([tie]) for tie in dict.fromkeys(ties) if tie.topic not in step.topics]
    if outward != aux_list(target, "links"):
        target = set_aux(target, "links", outward)
    target = with_title(target, step.title)
    gone = tuple(topic for topic in step.topics if topic != step.into)
    documents = {topic: document for topic, document in desk.documents.items() if topic not in gone}
    touched = {topic: rows for topic, rows in desk.touched.items() if topic not in gone}
    desk = replace(desk, documents=documents, touched=touched, removed=(*desk.removed, *gone))
    return with_document(desk, target, "merge" if former else "add", moved)  # of fresh topics nobody saw a merge


def with_title(document: Document, title: str) -> Document:
    """The document with another title, where it has a line for one; a person's own page keeps its."""
    block = next((block for block in document.blocks if block.level == 1), None)
    if not title or title == title_of(document) or block is None or is_pinned(document):
        return document
    at = block.span.start
    line = document.lines[at].removeprefix(BOM)
    if not line.startswith("# "):
        return document
    changed = edit(document, [(Span(at, at + 1), [f"# {title}{ending_of(document.lines)}"])])
    return changed if title_of(changed) == title and reads_as(changed, document.entries) else document


def absorb(target: Document, source: Document) -> Document:
    """The target with every block of the source: entries under equal headings together, the rest appended."""
    title = title_of(source)
    taken = {at for entry in source.entries for at in range(entry.span.start, entry.span.stop)}
    for block in source.blocks:
        start, stop = block.span.start + (1 if block.level else 0), block.span.stop
        while start < stop and is_blank(source.lines[start]):
            start += 1
        while start < stop and stop - 1 not in taken and is_blank(source.lines[stop - 1]):
            stop -= 1
        if start == stop:
            continue
        heading = block.headings[-1] if block.level > 1 else title
        inside = [entry for entry in source.entries if start <= entry.span.start < stop]
        if all(at in taken or is_blank(source.lines[at]) for at in range(start, stop)):
            target = insert_entries(target, heading, inside)
        else:
            target = append_block(target, heading, source, Span(start, stop), inside)
    return target


def append_block(target: Document, heading: str, source: Document, span: Span, inside: Sequence[Entry]) -> Document:
    """The target with lines of the source at its end, under a heading and in the target's own line ending."""
    old, ending = ending_of(source.lines), ending_of(target.lines)
    body = [strip_ending(line, old) + ending for line in source.lines[span.start : span.stop]]
    before = [] if is_blank(target.lines[-1]) else [ending]
    end = Span(len(target.lines), len(target.lines))
    title = f"## {heading}".rstrip(" ") + ending
    changed = only_if_it_reads(edit(target, [(end, [*before, title, ending, *body])]), [*target.entries, *inside])
    if len(changed.blocks) != len(target.blocks) + 1:
        raise Unreadable(f"{target.path}: a code fence is not closed, it would take in {source.path}; close it first")
    return changed


def entry_at(desk: Desk, end: str) -> Entry | None:
    """The entry that one end of a link names; None for a topic, or where no entry has the seq."""
    seqs = parse_seqs(end)
    return (desk.buffered(seqs[0]) or desk.holding(seqs[0])) if seqs else None


def tie_to(step: Link) -> Tie:
    """What a link step writes."""
    seqs = parse_seqs(step.to)
    return Tie(seqs, "" if seqs else step.to, step.relation)


def ties_at(desk: Desk, end: str) -> tuple[Tie, ...]:
    """The links that an entry or a topic has."""
    entry = entry_at(desk, end)
    if entry is not None:
        return parse_links(entry.signature.get("links"))
    document = desk.documents.get(end)
    return topic_ties(document) if document is not None else ()


def topic_ties(document: Document) -> tuple[Tie, ...]:
    """The links of a topic, from `aux.links`."""
    return tuple(tie for one in aux_list(document, "links") for tie in parse_links(one))


def link(desk: Desk, step: Link) -> Desk:
    """Add a link to, or take it from, an entry's signature or a topic's `aux`."""
    tie = tie_to(step)
    ties = [one for one in ties_at(desk, step.source) if one != tie] + ([] if step.remove else [tie])
    entry = entry_at(desk, step.source)
    if entry is None:
        document = set_aux(desk.documents[step.source], "links", [render_links([one]) for one in ties])
        return with_document(desk, document, "link", tie.seqs)
    signature = with_links(entry.signature, ties)
    if entry in desk.waiting.values():
        waiting = {seq: replace(one, signature=signature) if one is entry else one for seq, one in desk.waiting.items()}
        return replace(desk, waiting=waiting)
    return with_document(desk, resigned(desk.documents[entry.topic], entry, signature), "link", entry.seqs)


def with_links(signature: Signature, ties: Sequence[Tie]) -> Signature:
    """The signature with these links, or without the field."""
    return with_field(signature, "links", render_links(ties)) if ties else without_field(signature, "links")


def resigned(document: Document, entry: Entry, signature: Signature) -> Document:
    """The document with an entry's signature replaced; its words and everything else stay byte for byte."""
    span = Span(entry.span.start, entry.span.start + 1)
    changed = edit(document, [(span, [signed_again(document.lines[span.start], signature)])])
    same = [replace(one, signature=signature) if one.span == entry.span else one for one in document.entries]
    return only_if_it_reads(changed, same)


def aux_list(document: Document, key: str) -> list[str]:
    """A list of ids in `aux`; [] when there is none."""
    aux = document.header.fields.get("aux")
    value = aux.get(key) if isinstance(aux, Mapping) else None
    return [str(one) for one in value] if isinstance(value, list) else []


def set_aux(document: Document, key: str, value: Any) -> Document:
    """The document with one key of `aux` set; whatever else stands there is kept."""
    aux = document.header.fields.get("aux") or {}
    if not isinstance(aux, Mapping):
        raise Unreadable(f"{document.path}: `aux` is not a list of `key: value`; make it one, or remove it")
    return set_header(document, "aux", render_flow({**aux, key: value}))


def set_header(document: Document, key: str, rendered: str) -> Document:
    """The document with one front-matter key set, nothing else changed."""
    return set_headers(document, {key: rendered})


def set_headers(document: Document, keys: Mapping[str, str]) -> Document:
    """The document with some front-matter keys set, nothing else changed. Each edit is read back; the body is not."""
    stop = document.header.span.stop
    header = document.lines[:stop]
    for key, rendered in keys.items():
        header = set_key(document.path, header, key, rendered)
    return parse_changed(document, (*header, *document.lines[stop:])) if keys else document


def is_pinned(document: Document) -> bool:
    """Whether a person keeps the summary and headings as they are."""
    aux = document.header.fields.get("aux")
    return isinstance(aux, Mapping) and bool(aux.get("pinned"))


def refresh(document: Document, summary: str, ops: Sequence[tuple[str, tuple[int, ...]]], now: str) -> Document:
    """The document with summary, token_count, id and update_log brought up to date."""
    if str(document.header.fields.get("id")) != document.id:
        former = str(document.header.fields.get("id", ""))
        if former:
            document = set_aux(document, "former_ids", [*aux_list(document, "former_ids"), former])
        document = set_header(document, "id", render_scalar(document.id))
    keys: dict[str, str] = {}
    if str(document.header.fields.get("summary", "")) != summary and not is_pinned(document):
        keys["summary"] = render_scalar(summary)
    rows = log_rows(document)
    indent = indent_of(rows[0]) if rows else ""
    for op, seqs in compact(ops):
        seq = f", seq: {quoted_seqs(seqs)}" if seqs else ""
        rows.append(f"{indent}- {{time: {now}, op: {op}{seq}}}")
    if ops:
        keys["update_log"] = "\n".join(["", *rows[-LOG_ROWS:]])
    tokens = body_tokens(document)
    if document.header.fields.get("token_count") != tokens:
        keys["token_count"] = str(tokens)
    return set_headers(document, keys)


def quoted_seqs(seqs: Sequence[int]) -> str:
    """Seqs as YAML reads them back as the same text or number."""
    return render_seqs(sorted(set(seqs)))


def compact(ops: Sequence[tuple[str, tuple[int, ...]]]) -> list[tuple[str, tuple[int, ...]]]:
    """One row for each operation of a run, its seqs together; `create` swallows the first `add`."""
    together: dict[str, list[int]] = {}
    for op, seqs in ops:
        together.setdefault(op, []).extend(seqs)
    if "create" in together and "add" in together:
        together["create"] += together.pop("add")
    return [(op, tuple(seqs)) for op, seqs in together.items()]


def log_rows(document: Document) -> list[str]:
    """The update log's rows as they are written, or as one line each where that cannot be told."""
    value = document.header.fields.get("update_log")
    if not isinstance(value, list) or not value:
        return []
    span = key_span(document.lines, document.header, "update_log")
    ending = ending_of(document.lines)
    lines = [strip_ending(line, ending) for line in document.lines[span.start + 1 : span.stop]]
    indent = next((indent_of(line) for line in lines if line.lstrip(" ").startswith("- ")), "")
    rows: list[str] = []
    for line in lines:
        if line.startswith(f"{indent}- "):
            rows.append(line)
        elif rows and line.strip(" "):
            rows[-1] += "\n" + line
    import yaml

    # Only whole rows can be dropped one by one: each must be read by itself.
    try:
        read = [one for row in rows for one in load_yaml(row)]
    except (yaml.YAMLError, TypeError):
        read = []
    return rows if repr(read) == repr(value) else [f"- {render_flow(row)}" for row in value]


def aux_value(document: Document, key: str) -> Any:
    """One key of `aux`; None when there is none."""
    aux = document.header.fields.get("aux")
    return aux.get(key) if isinstance(aux, Mapping) else None


def redirect(document: Document, target: str) -> Document:
    """What is left of a topic that was merged into another one: a page that says so.

    In a library that git merges it stays, so that a change which another machine made to the topic meanwhile finds
    its way; a file that one side removed and the other changed is a conflict to git.
    """
    former = aux_list(document, "former_ids")
    aux = {"merged_into": target, **({"former_ids": former} if former else {})}
    link = f"{'../' * document.id.count('/')}{target}.md".replace(" ", "%20")
    lines = (
        "---\n",
        f"id: {render_scalar(document.id)}\n",
        f"aux: {render_flow(aux)}\n",
        "---\n",
        f"# {title_of(document)}\n",
        "\n",
        f"{REDIRECTED}{target}]({link}).\n",
    )
    ending = ending_of(document.lines)
    return parse_lines(document.path, tuple(line.replace("\n", ending) for line in lines))


def is_redirect(document: Document) -> bool:
    """Whether a document only says where its topic has gone."""
    return bool(aux_value(document, "merged_into")) and not document.entries
