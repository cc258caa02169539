"""Documents as they may be seen: entries that rules withhold, and what tells of them, masked line by line. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from infinimem.config import Access
from infinimem.consolidate.commit import extract
from infinimem.forgetting.erase import event_span, with_head
from infinimem.forgetting.survey import Survey
from infinimem.forgetting.words import OUR_OWN, Words, tokens_of
from infinimem.model import Document, Entry, Signature, Span, path_of
from infinimem.plan import lexical
from infinimem.plan.desk import reads_as
from infinimem.plan.lexical.weigh import light_terms
from infinimem.store.layout import BUFFER
from infinimem.text.document import body_tokens, edit, entry_lines, events, parse_lines, render
from infinimem.text.header import render_scalar
from infinimem.text.lines import FENCE, ending_of, is_blank
from infinimem.text.words import analyse

MASK = "<!-- … -->"
"""Stands in every line that is kept back; no word of it can be found."""
PLAIN_EVENTS = ("retire", "unflush", "restore", "forget", "flush")


@dataclass(frozen=True, slots=True)
class Rules:
    """What is kept back of one library: seqs, the words that only they say, and whether prose is kept back, too."""

    access: Access
    hidden: frozenset[int]
    words: Words
    spare: Mapping[int, Entry] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    """Topics that go by another name, or by none (""), by their own."""

    def withholds(self, entry: Entry) -> bool:
        """Whether an entry is kept back: a joined line with one such member is."""
        rules = Access(self.access.deny) if len(entry.seqs) > 1 or entry.signature.get("rev") else self.access
        return not rules.permits(dict(entry.signature.fields)) or not self.hidden.isdisjoint(entry.seqs)

    @property
    def shows_prose(self) -> bool:
        """Whether what has no fields may be seen."""
        return self.access.permits({})


def shown_of(document: Document, rules: Rules, secret: str) -> Document | None:
    """Any file of a library as it may be seen, perhaps under another path; None where nothing of it may be."""
    if document.path == BUFFER:
        shown: Document | None = masked(document, rules)[0]
    elif document.path.startswith("evidence/"):
        shown = masked_evidence(document, rules)
    else:
        shown = masked_topic(document, rules, secret)
    return None if shown is None else with_links(shown, rules)


def with_links(document: Document, rules: Rules) -> Document:
    """The document with links to topics by the names that they go by; those to what is not there are gone."""
    edits = []
    for entry in document.entries:
        links = entry.signature.get("links")
        kept = "+".join(one for piece in links.split("+") for one in [named_link(piece, rules)] if one)
        if kept != links:
            fields = [(key, kept if key == "links" else value) for key, value in entry.signature.fields]
            span, lines = with_head(document, entry, Signature(entry.seqs, tuple((k, v) for k, v in fields if v)))
            edits.append((span, [*lines, *[line_end(lines[0])] * (span.stop - span.start - 1)]))
    return edit(document, edits) if edits else document


def named_link(piece: str, rules: Rules) -> str:
    """One link of `31:contradicts+maya-home` by the name that a topic goes by; "" for one that is not there."""
    place, colon, relation = piece.partition(":")
    shown = rules.names.get(place, place)
    return shown + colon + relation if shown and not rules.words.in_name(shown) else ""


def shown_bytes(document: Document | None) -> bytes:
    """A document's bytes; b"" where there is nothing to see."""
    return b"" if document is None else render(document)


def rules_of(survey: Survey, access: Access) -> Rules:
    """Which entries are kept back, wherever and in whatever form they stand; without the words that only they say."""
    said: dict[int, list[Mapping[str, str]]] = {}
    joined: dict[int, list[Mapping[str, str]]] = {}
    spare: dict[int, Entry] = {}
    for path, entry in survey.entries():
        fields = dict(entry.signature.fields)
        if len(entry.seqs) > 1:
            for seq in entry.seqs:
                joined.setdefault(seq, []).append(fields)
        elif not entry.signature.get("rev"):
            said.setdefault(entry.seq, []).append(fields)
            if path.startswith("evidence/"):
                spare.setdefault(entry.seq, entry)
    known = {**joined, **said}
    hidden = {seq for seq, rows in known.items() if not all(access.permits(fields) for fields in rows)}
    denied = Access(access.deny)
    hidden |= {seq for seq, rows in joined.items() if not all(denied.permits(fields) for fields in rows)}
    shown = {seq: entry for seq, entry in spare.items() if seq not in hidden}
    return Rules(access, frozenset(hidden), Words(), shown)


def untelling(document: Document, rules: Rules, secret: str) -> Document | None:
    """A topic document, its withheld entries gone already, without lines and names that tell of them."""
    shown = masked_topic(document, rules, secret)
    shown = with_links(shown, rules) if shown is not None else None
    if shown is None or shown is document:
        return shown
    masks = [(Span(at, at + 1), ()) for at, line in enumerate(shown.lines) if line.strip() == MASK]
    return edit(shown, masks) if masks else shown


def masked(document: Document, rules: Rules) -> tuple[Document, bool]:
    """The document with every line masked that is kept back; and whether an entry is among them."""
    lines = list(document.lines)
    kept: list[Entry] = []
    taken: set[int] = set()
    held = False
    for entry in document.entries:
        taken.update(range(entry.span.start, entry.span.stop))
        if rules.withholds(entry):
            held = True
            kept += mask_entry(lines, entry, rules, ending_of(document.lines))
        else:
            kept.append(entry)
    heads = {block.span.start for block in document.blocks if block.level}
    body = [at for at in range(document.header.span.stop, len(lines)) if at not in taken and at not in heads]
    telling = {line - 1 for line, _ in rules.words.places("".join(lines))}
    for at in body:
        if not is_blank(lines[at]) and (at in telling or not rules.shows_prose):
            lines[at] = mask_of(lines[at])
    shown = parse_lines(document.path, tuple(lines))
    if reads_as(shown, kept):
        return shown, held
    for at in range(document.header.span.stop, len(lines)):  # an unclosed fence: only what is known to be shown stays
        if at in heads or (at in body and not is_blank(lines[at])):
            lines[at] = MASK + line_end(lines[at])
    shown = parse_lines(document.path, tuple(lines))
    if reads_as(shown, kept):
        return shown, held
    blank = tuple(MASK + line_end(line) for line in document.lines)
    return parse_lines(document.path, blank), True


def mask_entry(lines: list[str], entry: Entry, rules: Rules, ending: str) -> list[Entry]:
    """Mask an entry's lines; members of a joined line who may be seen take them, as far as there is room."""
    shown: list[Entry] = []
    room = list(range(entry.span.start, entry.span.stop))
    for seq in entry.seqs if len(entry.seqs) > 1 else ():
        own = rules.spare.get(seq)
        if own is None or "\n" in own.text or not room:
            continue
        lines[room.pop(0)] = entry_lines(own.signature, own.text, ending)[0]
        shown.append(own)
    for at in room:
        lines[at] = MASK + line_end(lines[at])
    return shown


def mask_of(line: str) -> str:
    """A masked line of prose; what opens or closes a code fence goes on doing so."""
    fence = FENCE.match(line)
    if fence is not None:
        return fence[0] + line_end(line)
    return MASK + line_end(line)


def line_end(line: str) -> str:
    """A line's terminator."""
    return line[len(line.rstrip("\r\n")) :]


def masked_evidence(document: Document, rules: Rules) -> Document:
    """An evidence file with its entries masked, and with the events that tell more than what became of a seq."""
    shown, _ = masked(document, replace(rules, spare={}))
    told = [
        (span, tuple(MASK + line_end(line) for line in shown.lines[span.start : span.stop]))
        for event in events(shown.lines)
        for span in [event_span(shown, event)]
        if event.kind not in PLAIN_EVENTS and rules.words.in_name(" ".join(value for _, value in event.fields))
    ]
    return edit(shown, told) if told else shown


def masked_topic(document: Document, rules: Rules, secret: str) -> Document | None:
    """A topic document as it may be seen, under another name where its own tells; None where nothing may be seen."""
    shown, held = masked(document, rules)
    names = Names(rules.words, held, spoken_in(shown))
    if document.is_guest and names.tell(document.id):
        return None
    tells = held or bool(document.entries) or not rules.shows_prose or names.tell(document.id)
    if tells and not shown.entries and not shows_anything(shown):
        return None
    shown = with_headings(shown, names)
    path = document.path
    if names.tell(document.id):
        path = path_of(other_name(document.path, secret))
    header = "".join(document.lines[: document.header.span.stop])
    told = rules.words.in_name(header) or any(name in header for name in rules.names)
    if path == document.path and not held and not told:
        return shown
    if document.is_guest:
        return without_header(shown)
    return with_header(shown, path)


def other_name(path: str, secret: str) -> str:
    """A topic id that tells nothing, the same every time; without the secret nobody can tell what it stands for."""
    return f"topic-{blake2b(path.encode('utf-8', 'surrogateescape'), key=secret.encode(), digest_size=4).hexdigest()}"


@dataclass(frozen=True, slots=True)
class Names:
    """Which names tell what is kept back. In a document that `held` some of it, all that its shown words do not say."""

    words: Words
    held: bool
    spoken: Collection[str]

    def tell(self, name: str) -> bool:
        """Whether a title, a heading or an id tells."""
        if self.words.in_name(name):
            return True
        return self.held and any(self.is_news(token) for token in tokens_of(name))

    def is_news(self, token: str) -> bool:
        """Whether a word is one that nothing shown in the document says."""
        if token in OUR_OWN or token.isdecimal() or token in self.spoken:
            return False
        terms = [term for term in analyse(token) if term not in light_terms()]
        return any(term not in self.spoken for term in terms)


def spoken_in(document: Document) -> frozenset[str]:
    """The words and terms of what a document shows."""
    spoken: set[str] = set()
    for entry in document.entries:
        for text in (entry.text, entry.source):
            spoken.update(tokens_of(text))
            spoken.update(analyse(text))
    return frozenset(spoken)


def shows_anything(document: Document) -> bool:
    """Whether a line of prose is left."""
    heads = {block.span.start for block in document.blocks if block.level}
    body = range(document.header.span.stop, len(document.lines))
    return any(
        at not in heads and not is_blank(document.lines[at]) and document.lines[at].strip() != MASK for at in body
    )


def with_headings(document: Document, names: Names) -> Document:
    """The document with each heading that tells replaced by one from what is shown under it."""
    edits: list[tuple[Span, Sequence[str]]] = []
    for block in document.blocks:
        if not block.level or not names.tell(block.headings[-1]):
            continue
        depth = len(block.headings)
        under = [entry for entry in document.entries if entry.headings[:depth] == block.headings]
        name = lexical.heading_of(under) if block.level > 1 else lexical.title_of(under)
        if not name or names.tell(name):
            name = lexical.title_of([])
        line = document.lines[block.span.start]
        new = f"{'#' * block.level} {name}{line_end(line)}"
        edits.append((Span(block.span.start, block.span.start + 1), (new,)))
    return edit(document, edits) if edits else document


def with_header(document: Document, path: str) -> Document:
    """The document with front matter of as many lines, made from what is shown."""
    stop = document.header.span.stop
    ending = ending_of(document.lines)
    body = document.lines[stop:]
    bare = parse_lines(path, document.lines)
    topic = path.removeprefix("topics/").removesuffix(".md")
    rows = [
        f"id: {render_scalar(topic)}",
        f"token_count: {body_tokens(bare)}",
        f"summary: {render_scalar(extract(bare))}",
        "update_log: []",
        "aux: {}",
    ]
    inner = max(0, stop - 2)
    rows = (rows + ["#"] * inner)[:inner]
    header = [line + ending for line in ("---", *rows, "---")] if stop else []
    return parse_lines(path, (*header, *body))


def without_header(document: Document) -> Document:
    """A guest with its front matter blank."""
    stop = document.header.span.stop
    ending = ending_of(document.lines)
    header = [line + ending for line in ("---", *["#"] * (stop - 2), "---")] if stop else []
    return parse_lines(document.path, (*header, *document.lines[stop:]))
