"""Documents as they are without forgotten entries, and without what was made from them. Pure: values in, values out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from infinimem.consolidate.commit import extract
from infinimem.errors import Unreadable
from infinimem.forgetting.survey import Survey, is_ours
from infinimem.forgetting.words import Words
from infinimem.model import Document, Entry, Signature, Span, path_of, topic_of
from infinimem.plan import lexical
from infinimem.plan.desk import (
    aux_list,
    come_back,
    is_pinned,
    reads_as,
    refresh,
    set_aux,
    set_header,
    without_empty_blocks,
)
from infinimem.store.layout import LOG
from infinimem.text.document import (
    ITEM,
    Event,
    body_tokens,
    edit,
    entry_lines,
    events,
    parse_lines,
    title_of,
    whole_head,
)
from infinimem.text.header import render_scalar
from infinimem.text.lines import BOM, ending_of, is_blank, strip_ending
from infinimem.text.signature import parse_seqs, parse_signature, render_seqs, render_signature

ID_LISTS = ("former_ids", "merged_from", "split_from")
"""Lists of topic ids in `aux`."""
PLACEHOLDER = "<!-- forgotten -->"
"""Stands where an entry stood if the lines below it would otherwise become another one's text."""

Meant = Callable[[Entry], Sequence[int]]
"""Says which of the seqs of an entry are to go."""


@dataclass(slots=True)
class Erased:
    """Documents by their old path, as they are to be; `renamed` topics by their old id, `removed` paths.

    `left` are files that may not be changed although they show forgotten entries, each with the reason.
    """

    documents: dict[str, Document] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)


def erase(
    survey: Survey, meant: Meant, seqs: Collection[int], spare: Mapping[int, Entry], words: Words, now: str
) -> Erased:
    """Everything that is to change in CURRENT, topics, evidence and the log of writes."""
    done = Erased()
    for path, file in survey.topics.items():
        document = file.document
        if not is_ours(document):
            if any(meant(entry) for entry in document.entries):
                done.left[path] = str(document.blocking[0]) if document.blocking else "a guest is never changed"
            continue
        try:
            erase_topic(done, survey, document, meant, spare, words, now)
        except Unreadable as error:
            done.left[path] = str(error)
    for file in (survey.buffer, *survey.evidence.values(), survey.log):
        if file.document.blocking:
            done.left[file.path] = str(file.document.blocking[0])
            continue
        is_evidence = file.path.startswith("evidence/")
        document = without(file.document, meant, {} if is_evidence else spare)
        if is_evidence:
            document = without_told(document, words)
        if document is not file.document:
            done.documents[file.path] = document
    point_elsewhere(done, survey, seqs)
    return done


def erase_topic(
    done: Erased,
    survey: Survey,
    document: Document,
    meant: Meant,
    spare: Mapping[int, Entry],
    words: Words,
    now: str,
) -> None:
    """One topic document: its entries, headings, title, summary, ids and, if that was made from them, its name."""
    old = document
    gone = [seq for entry in document.entries for seq in meant(entry)]
    shorter = without(document, meant, spare)
    for headings in dict.fromkeys(entry.headings for entry in document.entries):
        shorter = without_empty_blocks(shorter, headings)
    if gone and not shorter.entries and not has_prose(shorter):
        done.removed.append(old.path)
        return
    if not is_pinned(document):
        taken = [title_of(file.document) for file in survey.topics.values() if file.path != document.path]
        shorter = with_other_headings(shorter, words, taken)
        said = summary_of(shorter)
        if gone or words.in_name(said):
            said = extract(shorter)
            said = "" if words.in_name(said) else said
        elif shorter is old and not ids_showing(shorter, words) and not words.in_name(shorter.id):
            return
    else:
        said = summary_of(shorter)
    shorter = without_ids(shorter, words)
    if words.in_name(shorter.id):
        shorter = with_other_name(done, survey, shorter, words)
    if shorter is not old or said != summary_of(old):
        ops = (("forget", tuple(sorted(set(gone)))),) if gone else ()
        done.documents[old.path] = refresh(shorter, said, ops, now)


def summary_of(document: Document) -> str:
    """The summary in the front matter."""
    return str(document.header.fields.get("summary") or "")


def without(document: Document, meant: Meant, spare: Mapping[int, Entry]) -> Document:
    """The document without the entries that are meant; who shares a line with one comes back in his own words."""
    ending = "\n" if document.path == LOG else ending_of(document.lines)
    edits: list[tuple[Span, Sequence[str]]] = []
    after: list[Entry] = []
    for entry in document.entries:
        seqs = meant(entry)
        if not seqs:
            after.append(entry)
            continue
        rest = [come_back(entry, seq, spare) for seq in entry.seqs if seq not in seqs and seq in spare]
        after += rest
        lines = [line for one in rest for line in entry_lines(one.signature, one.text, ending)]
        if lines and entry.span.start == 0 and document.lines[0].startswith(BOM):
            lines[0] = BOM + lines[0]
        edits.append((entry.span, lines))
    if not edits:
        return document
    shorter = edit_as(document, edits)
    if reads_as(shorter, after):
        return shorter
    marked = [(span, lines or [PLACEHOLDER + ending]) for span, lines in edits]
    shorter = edit_as(document, marked)
    if reads_as(shorter, after):
        return shorter
    raise Unreadable(f"{document.path}: without it other entries would read differently; arrange it by hand")


def edit_as(document: Document, edits: Sequence[tuple[Span, Sequence[str]]]) -> Document:
    """The document with spans replaced, read as a piece where it is one (the log)."""
    changed = edit(document, edits)
    return parse_lines(document.path, changed.lines, "\n") if document.path == LOG else changed


def without_told(document: Document, words: Words) -> Document:
    """Evidence without events that tell the words, such as an earlier summary; what became of entries stays."""
    told = [
        event_span(document, event)
        for event in events(document.lines)
        if event.kind not in ("retire", "unflush", "restore", "forget", "flush")
        and words.in_name(" ".join(value for _, value in event.fields))
    ]
    return edit(document, [(span, ()) for span in told]) if told else document


def event_span(document: Document, event: Event) -> Span:
    """The lines of an event; a formatter may have wrapped it."""
    at = event.line - 1
    rest = document.lines[at].lstrip("-*+ \t").rstrip("\r\n")
    return Span(at, whole_head(document.lines, at, rest, "\n")[1] + 1)


def has_prose(document: Document) -> bool:
    """Whether anything stands in a document besides entries, headings and blank lines."""
    taken = {at for entry in document.entries for at in range(entry.span.start, entry.span.stop)}
    taken |= {block.span.start for block in document.blocks if block.level}
    body = range(document.header.span.stop, len(document.lines))
    return any(
        at not in taken and not is_blank(document.lines[at]) and PLACEHOLDER not in document.lines[at] for at in body
    )


# Headings and names


def with_other_headings(document: Document, words: Words, taken: Sequence[str]) -> Document:
    """The document with each heading named anew that was made from what is gone."""
    number = 0
    while number < len(document.blocks):
        block = document.blocks[number]
        number += 1
        if not block.level or not words.in_name(block.headings[-1]):
            continue
        under = [entry for entry in document.entries if entry.headings[: block.level] == block.headings[: block.level]]
        inside = under if block.level > 1 else list(document.entries)
        name = lexical.heading_of(inside) if block.level > 1 else lexical.title_of(inside, taken)
        if not name or words.in_name(name):
            name = "Notes"
        line = document.lines[block.span.start]
        marks = line[: len(line) - len(line.lstrip(" #"))].rstrip(" ")
        ending = line[len(line.rstrip("\r\n")) :]
        new = (f"{marks} {name}{ending}",)
        document = edit(document, [(Span(block.span.start, block.span.start + 1), new)])
    return document


def with_other_name(done: Erased, survey: Survey, document: Document, words: Words) -> Document:
    """The document under a new id, made from what it still says; nothing in it tells the old one."""
    taken = {*(topic_of(path) for path in survey.topics), *done.renamed.values()}
    folders = [piece for piece in document.id.split("/")[:-1] if not words.in_name(piece)]
    title = title_of(document)
    if words.in_name(title) or title == lexical.title_of([]):
        title = lexical.title_of(document.entries)
    if words.in_name(title):
        title = lexical.title_of([])
    prefix = "".join(f"{folder}/" for folder in folders)
    inside = [topic.removeprefix(prefix) for topic in taken if topic.startswith(prefix)]
    new = prefix + lexical.slug_of(title, inside)
    done.renamed[document.id] = new
    named = set_header(document, "id", render_scalar(new))
    return parse_lines(path_of(new), named.lines)


def ids_showing(document: Document, words: Words) -> list[str]:
    """The keys of `aux` that list an id made from what is gone."""
    return [key for key in ID_LISTS if any(words.in_name(one) for one in aux_list(document, key))]


def without_ids(document: Document, words: Words) -> Document:
    """The document without earlier ids that tell the words."""
    for key in ids_showing(document, words):
        document = set_aux(document, key, [one for one in aux_list(document, key) if not words.in_name(one)])
    return document


# What points to them


def point_elsewhere(done: Erased, survey: Survey, seqs: Collection[int]) -> None:
    """Take out the links and `supersedes` that point to what is gone; follow the topics that were renamed."""
    gone = {topic_of(path) for path in done.removed}
    for file in survey.files:
        if file.path in done.removed or file.path in done.left or not is_changeable(file.document):
            continue
        document = done.documents.get(file.path, file.document)
        edits = []
        for entry in document.entries:
            fields = pointing(entry, seqs, done.renamed, gone)
            if fields != entry.signature.fields:
                edits.append(with_head(document, entry, Signature(entry.seqs, fields)))
        if edits:
            done.documents[file.path] = counted(edit_as(document, edits))


def counted(document: Document) -> Document:
    """The document with its own token count put right, where it has one."""
    tokens = body_tokens(document)
    if document.header.fields.get("token_count", tokens) == tokens:
        return document
    return set_header(document, "token_count", str(tokens))


def is_changeable(document: Document) -> bool:
    """Whether entries of a file may be given other fields."""
    is_topic = document.path.startswith("topics/")
    return not document.blocking and not (is_topic and document.is_guest)


def with_head(document: Document, entry: Entry, signature: Signature) -> tuple[Span, Sequence[str]]:
    """The edit that gives an entry another signature; its words and its indent stay as they are."""
    at = entry.span.start
    line = document.lines[at]
    ending = line[len(line.rstrip("\r\n")) :] or ending_of(document.lines)
    lead = BOM if at == 0 and line.startswith(BOM) else ""
    item = ITEM.match(line.removeprefix(BOM))
    assert item is not None
    rest, last = whole_head(document.lines, at, strip_ending(line.removeprefix(BOM)[item.end() :], ending), ending)
    parsed = parse_signature(rest)
    assert parsed is not None
    return Span(at, last + 1), (lead + item[0] + render_signature(signature) + rest[parsed[1] :] + ending,)


def pointing(
    entry: Entry, seqs: Collection[int], renamed: Mapping[str, str], gone: Collection[str]
) -> tuple[tuple[str, str], ...]:
    """The fields of an entry without what points to forgotten ones."""
    fields = []
    for key, value in entry.signature.fields:
        if key == "supersedes":
            named = parse_seqs(value)
            value = render_seqs([seq for seq in named if seq not in seqs]) if named else value
        elif key == "links":
            pieces = (kept_link(piece, seqs, renamed, gone) for piece in value.split("+"))
            value = "+".join(piece for piece in pieces if piece)
        else:
            fields.append((key, value))
            continue
        if value:
            fields.append((key, value))
    return tuple(fields)


def kept_link(piece: str, seqs: Collection[int], renamed: Mapping[str, str], gone: Collection[str]) -> str:
    """One link of `links=31-33:contradicts+maya-home`, or what stays of it."""
    place, colon, relation = piece.partition(":")
    named = parse_seqs(place)
    if not named:
        return "" if place in gone else renamed.get(place, place) + colon + relation
    left = [seq for seq in named if seq not in seqs]
    return "+".join(one + colon + relation for one in render_seqs(left).split("+") if one)
