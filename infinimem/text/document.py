"""A document is its lines; blocks, entries and units are views of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from infinimem.model import Block, Document, Entry, Signature, Span, Unit, topic_of
from infinimem.text.header import parse_header, unresolved
from infinimem.text.lines import (
    BLANK,
    BOM,
    CONFLICT,
    OpenFences,
    bare_returns,
    closing_fence,
    ending_of,
    indent_of,
    is_blank,
    join_lines,
    split_lines,
    strip_ending,
    undecodable,
    width_of,
)
from infinimem.text.signature import KEY, parse_fields, parse_signature, plain_fields, render_signature
from infinimem.text.tokens import estimate

HEADING = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
ITEM = re.compile(r"([ \t]*)[-*+][ \t]+(?=\\?<)")
EVENT_ITEM = re.compile(r"[-*+][ \t]+(?=\\?<event=)")
PLAIN = re.compile(r"- <seq=([0-9]{1,18})((?:, [A-Za-z_][A-Za-z0-9_.-]*=[^,<>\"\n]*)*)> ([^\n]+)\n?\Z")
UNCLOSED = re.compile(r"\\?<[A-Za-z_][A-Za-z0-9_.\\-]*=[^<>]*$")
MOST_HEAD_LINES = 4
LONGEST_REMEMBERED = 4096
"""Characters of a line that is remembered with what it says: a run reads the same lines again and again."""
BULLET = re.compile(r"[-*+][ \t]+(?!\[.\][ \t])(?=\S)")
SIGN = r"(?:\\?<|&lt;)\s*(?:seq|event)\s*="
NEAR_MISS = re.compile(rf"[ \t]*(?:[-*+]|[0-9]{{1,9}}[.)])[ \t]+{SIGN}")
MARKS = r"[^A-Za-z0-9<&\\\n]{0,40}"
SIGN_FIRST = re.compile(rf"{MARKS}(?:[0-9]{{1,9}}[.)]{MARKS})?(?:\[[xX]\]{MARKS})?{SIGN}")
BROKEN_HEAD = re.compile(r"([ \t]*)([-*+•·‣∙◦–—])([ \t\u00a0\u200b\u2060\ufeff]+)(?:\\?<|&lt;)(.*?)(?:>|&gt;)")
LOOSE_FIELD = re.compile(rf"(^|,)\s*({KEY})\s*=\s*")
ODD_QUOTES = re.compile("&quot;|[“”„‟″]")
CONTINUATION = "  "
WRITTEN = re.compile(rb"^- <", re.MULTILINE)
"""Where an entry begins that `write` has appended."""
UNWRITTEN = re.compile(rb"^(?!- <|  |# |\r?$)", re.MULTILINE)
"""A line as `write` appends none: what it means may depend on what stands far below it."""
FENCED = "`~-*+0123456789"
NOTHING: Mapping[str, tuple[Signature, str]] = {}


def parse(path: str, content: bytes) -> Document:
    """Any file at all as a document; what is wrong with it stands in `problems`, never an error."""
    return parse_lines(path, split_lines(content))


def render(document: Document) -> bytes:
    """The document's bytes: exactly what was parsed, unless lines were changed."""
    return join_lines(document.lines)


def parse_leading(path: str, content: bytes, most: int, ending: str = "") -> tuple[Document, bytes]:
    """What stands before the entry that follows the first `most`, and the bytes from there on, unread.

    All of it is read where the beginning alone does not tell what it says, or where the rest has a problem.
    """
    begins = next(islice(WRITTEN.finditer(content), most, None), None)
    if begins is None:
        return parse_lines(path, split_lines(content), ending), b""
    lead, rest = content[: begins.start()], content[begins.start() :]
    marked = any(b"\n" + mark in rest for mark in (b"<<<<<<<", b">>>>>>>"))
    if UNWRITTEN.search(lead) or marked or not is_utf8(rest):
        return parse_lines(path, split_lines(content), ending), b""
    return parse_lines(path, split_lines(lead), ending), rest


def is_utf8(content: bytes) -> bool:
    """Whether bytes are text."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def parse_piece(path: str, content: bytes, ending: str = "\n") -> Document:
    """A piece out of the middle of a file whose line terminator is known: its own first line does not tell."""
    return parse_lines(path, split_lines(content), ending)


def parse_changed(document: Document, lines: tuple[str, ...]) -> Document:
    """The views of a document's lines after a change; what entries on lines that it had before say is known."""
    if ending_of(document.lines) != "\n":
        return parse_lines(document.path, lines)
    alone = (entry for entry in document.entries if entry.span.stop == entry.span.start + 1)
    known = {document.lines[entry.span.start]: (entry.signature, entry.text) for entry in alone}
    return parse_lines(document.path, lines, known=known)


def parse_lines(
    path: str, lines: tuple[str, ...], ending: str = "", known: Mapping[str, tuple[Signature, str]] = NOTHING
) -> Document:
    """The views of a file's lines; `ending` is the file's terminator where the lines are only a piece of it.

    `known` says what entries that stand on one line say.
    """
    header, problems = parse_header(path, lines)
    topic = topic_of(path)
    blocks: list[Block] = []
    entries: list[Entry] = []
    found = [*problems]
    if not any(problem.code == "encoding" for problem in problems):
        found.extend(undecodable(path, lines) or bare_returns(path, lines))
    trail: list[tuple[int, str]] = []
    names: tuple[str, ...] = ()
    block_start, block_level = header.span.stop, 0
    ending = ending or ending_of(lines)
    fences: OpenFences = {}
    at = header.span.stop
    while at < len(lines):
        line = lines[at] if at else lines[at].removeprefix(BOM)
        start = line.lstrip(" \t")[:1]
        if start and start in "-*+":
            plain = read_plain(lines, at, line, known) if ending == "\n" else None
            if plain is not None:
                signature, text = plain
                entries.append(Entry(topic, signature, text, names, Span(at, at + 1)))
                at += 1
                continue
            signed = read_signed(lines, at, line, ending)
            if signed is not None:
                signature, first, indent, last = signed
                stop, text = read_text(lines, last, first, indent, ending, fences)
                if not first and text and lines[last].rstrip("\r\n").endswith(">"):
                    text = text[1:]  # broken right after the signature: `write` leaves a space there
                entries.append(Entry(topic, signature, text, names, Span(at, stop)))
                at = stop
                continue
        elif start == "#":
            level, name = read_heading(line, ending)
            if level:
                blocks.append(Block(names, block_level, Span(block_start, at)))
                block_level = level
                block_start = at
                trail = [step for step in trail if step[0] < level]
                trail.append((level, name))
                names = tuple(name for _, name in trail)
        elif start and start in "<>" and CONFLICT.match(line):
            found.append(unresolved(path, at))
        if start and start in FENCED:
            closing = closing_fence(lines, at, fences)
            if closing >= 0:
                at = closing + 1
                continue
        at += 1
    blocks.append(Block(names, block_level, Span(block_start, len(lines))))
    return Document(path, lines, header, tuple(blocks), tuple(entries), tuple(found))


def read_heading(line: str, ending: str) -> tuple[int, str]:
    """The level and name of a heading; level 0 when the line is none."""
    text = strip_ending(line, ending).rstrip("\r")
    match = HEADING.match(text)
    if match is None:
        return 0, ""
    name = text[match.end() :].strip(" \t")
    unclosed = name.rstrip("#")
    if unclosed[-1:] in ("", " ", "\t"):
        name = unclosed
    return len(match[1]), name.strip()


def read_plain(
    lines: tuple[str, ...], at: int, line: str, known: Mapping[str, tuple[Signature, str]] = NOTHING
) -> tuple[Signature, str] | None:
    """What `read_signed` and `read_text` find, for an entry on one line as `write` makes it; None = ask those.

    Nearly all entries are such, and one search for all of their parts costs a quarter.
    """
    if at + 1 < len(lines) and lines[at + 1][0] in " \t\r\n":
        return None
    if known and line in known and line[0] == "-":
        return known[line]
    match = PLAIN.match(line)
    if match is None:
        return None
    seq, rest, text = match.groups()
    fields = plain_fields(rest)
    if fields is None or not int(seq):
        return None
    return Signature((int(seq),), fields), text


def read_signed(lines: tuple[str, ...], at: int, line: str, ending: str) -> tuple[Signature, str, str, int] | None:
    """The signature, first line of text and indent of the entry at `line`, and where its signature ends; else None."""
    alone = (signed_line if len(line) <= LONGEST_REMEMBERED else signed_line.__wrapped__)(line, ending)
    if alone is not None:
        return *alone, at
    item = ITEM.match(line)
    if item is None:
        return None
    rest, last = whole_head(lines, at, strip_ending(line[item.end() :], ending), ending)
    signed = signed_line(line[: item.end()] + rest + ending, ending) if last > at else None
    return None if signed is None else (*signed, last)


@lru_cache(maxsize=1 << 12)
def signed_line(line: str, ending: str) -> tuple[Signature, str, str] | None:
    """The signature, text and indent of an entry whose signature ends on its first line; the same lines come again."""
    item = ITEM.match(line)
    if item is None:
        return None
    rest = strip_ending(line[item.end() :], ending)
    parsed = parse_signature(rest)
    if parsed is None:
        return None
    signature, end = parsed
    # `<seq=1>text`: hand edits omit the space
    return signature, rest[end + (rest[end : end + 1] in (" ", "\t")) :], item[1]


def whole_head(lines: Sequence[str], at: int, rest: str, ending: str) -> tuple[str, int]:
    """What follows a list item's marker, up to the line that closes its signature: formatters wrap long ones."""
    if UNCLOSED.match(rest) is None:
        return rest, at
    joined = rest
    for last in range(at + 1, min(at + MOST_HEAD_LINES, len(lines))):
        line = strip_ending(lines[last], ending).strip(" \t")
        if not line or line[0] in "-*+#<":
            break
        joined = f"{joined.rstrip()} {line}"
        if parse_fields(joined)[0]:
            return joined, last
    return rest, at


def signed_again(line: str, signature: Signature) -> str:
    """An entry's first line with another signature; marker, indent, words and terminator stay."""
    item = ITEM.match(line)
    parsed = parse_signature(line[item.end() :]) if item is not None else None
    if item is None or parsed is None:
        return line
    return line[: item.end()] + render_signature(signature) + line[item.end() + parsed[1] :]


def read_text(
    lines: tuple[str, ...], at: int, first: str, indent: str, ending: str, fences: OpenFences
) -> tuple[int, str]:
    """Where the entry that begins at line `at` stops, and its whole text."""
    stop = at + 1
    if stop >= len(lines) or lines[stop][0] not in " \t\r\n":
        return stop, first
    own = width_of(indent)
    pieces = [first]
    pending = 0
    while stop + pending < len(lines):
        line = lines[stop + pending]
        width = width_of(indent_of(line))
        if is_blank(line):
            # `write` indents every blank line of a text: one that follows a bare one is an editor's
            if pending or width < own + len(CONTINUATION):
                pending += 1
                continue
        elif width <= own or (width < own + len(CONTINUATION) and begins_block(lines, stop + pending, ending, fences)):
            break
        pieces.extend(strip_ending(blank, ending).lstrip(" \t") for blank in lines[stop : stop + pending])
        pieces.append(outdent(strip_ending(line, ending), indent))
        stop += pending + 1
        pending = 0
    return stop, "\n".join(pieces)


def begins_block(lines: tuple[str, ...], at: int, ending: str, fences: OpenFences) -> bool:
    """Whether a heading or a code fence stands here: one space does not make it part of the item above."""
    return read_heading(lines[at], ending)[0] > 0 or closing_fence(lines, at, fences) >= 0


def outdent(line: str, indent: str) -> str:
    """A continuation line without the entry's indent and the two spaces (or the tab) that mark it."""
    line = line.removeprefix(indent)
    if line.startswith("\t"):
        return line[1:]
    return line[len(CONTINUATION) :] if line.startswith(CONTINUATION) else line.lstrip(" ")


def entry_lines(signature: Signature, text: str, ending: str = "\n") -> tuple[str, ...]:
    """The lines of an entry: the list item, and every further line indented by two spaces."""
    return item_lines(render_signature(signature), text, ending)


def item_lines(head: str, text: str, ending: str = "\n") -> tuple[str, ...]:
    """A list item with `head` before its text, one that reading gives back exactly."""
    first, *rest = text.split("\n")
    return (f"- {head} {first}{ending}", *(f"{CONTINUATION}{line}{ending}" for line in rest))


def looks_signed(line: str) -> bool:
    """Whether a line begins like an entry or an event, whatever became of its signature."""
    return NEAR_MISS.match(line) is not None


def begins_signed(line: str) -> bool:
    """Whether a signature is the first thing on a line, behind whatever marks: a heading, a quote, a task, bold."""
    return SIGN_FIRST.match(line) is not None


def mended(line: str) -> str:
    """A line whose signature an editor broke, as an entry again; "" where more than its spelling is wrong.

    What programs do to it: HTML escapes, typographic quotes and bullets, spaces around the equals sign.
    """
    head = BROKEN_HEAD.match(line)
    if head is None:
        return ""
    marker = head[2] if head[2] in "-*+" else "-"
    fields = ODD_QUOTES.sub('"', head[4]).strip()
    for spelling in (fields, LOOSE_FIELD.sub(lambda field: f"{field[1] and ', '}{field[2]}=", fields)):
        if parse_signature(f"<{spelling}>") is not None:
            return f"{head[1]}{marker} <{spelling}>{line[head.end() :]}"
    return ""


def unsigned_entries(document: Document) -> tuple[Entry, ...]:
    """Top-level bullets that carry no signature, in the buffer and in our own documents.

    Task items, quotes, fences, ordered lists and guests' files are not ours to sign.
    """
    if document.is_guest:
        return ()
    taken = {at for entry in document.entries for at in range(entry.span.start, entry.span.stop)}
    headings = headings_at(document)
    ending = ending_of(document.lines)
    fences: OpenFences = {}
    found = []
    at = document.header.span.stop
    while at < len(document.lines):
        line = document.lines[at]
        if at in taken:
            at += 1
            continue
        bullet = BULLET.match(line)
        if bullet is None:
            at = max(at, closing_fence(document.lines, at, fences)) + 1
            continue
        if begins_signed(line):  # a signature that somebody broke is not words to be signed
            at += 1
            continue
        first = strip_ending(line[bullet.end() :], ending)
        stop, text = read_text(document.lines, at, first, "", ending, fences)
        if not taken.isdisjoint(range(at, stop)):
            at += 1
            continue
        found.append(Entry(document.id, Signature(()), text, headings(at), Span(at, stop)))
        at = stop
    return tuple(found)


class headings_at:  # noqa: N801 - used as a function
    """The heading path above a line, for lines asked for in rising order."""

    def __init__(self, document: Document) -> None:
        self.blocks = document.blocks
        self.at = 0

    def __call__(self, line: int) -> tuple[str, ...]:
        while self.at + 1 < len(self.blocks) and self.blocks[self.at + 1].span.start <= line:
            self.at += 1
        return self.blocks[self.at].headings if self.blocks else ()


def title_of(document: Document) -> str:
    """The first heading of level 1, else the id with its words apart."""
    for block in document.blocks:
        if block.level == 1 and block.headings[-1]:
            return block.headings[-1]
    return document.id.rsplit("/", 1)[-1].replace("-", " ").replace("_", " ")


def units(document: Document) -> list[Unit]:
    """What can be found in a document: its entries, and runs of prose between blank lines."""
    found = [
        Unit(
            document.path,
            entry.span.start + 1,
            entry.span.stop,
            entry.text,
            entry.seqs,
            entry.headings,
            entry.signature.fields,
        )
        for entry in document.entries
    ]
    found.extend(prose_units(document))
    found.sort(key=lambda unit: unit.line)
    return found


def prose_units(document: Document) -> Iterator[Unit]:
    """Paragraphs, list items and code between the entries; headings and rules alone say nothing."""
    headings = headings_at(document)
    heading_lines = {block.span.start for block in document.blocks if block.level}
    edges = [*(entry.span for entry in document.entries), Span(len(document.lines), len(document.lines))]
    at = document.header.span.stop if "id" in document.header.fields or not document.blocking else 0
    for edge in edges:
        start = -1
        if at == edge.start:  # one entry follows the other
            at = edge.stop
            continue
        for line in range(at, edge.start + 1):
            text = document.lines[line] if line < edge.start else ""
            heading = line in heading_lines
            if start >= 0 and (is_blank(text) or heading or BULLET.match(text)):
                body = "".join(document.lines[start:line]).strip(BLANK)
                yield Unit(document.path, start + 1, line, body, (), headings(start))
                start = -1
            if start < 0 and not heading and any(char.isalnum() for char in text) and not CONFLICT.match(text):
                start = line
        at = max(at, edge.stop)


@dataclass(frozen=True, slots=True)
class Event:
    """A line of evidence that says what became of entries: retire, unflush, forget, flush."""

    kind: str
    seqs: tuple[int, ...]
    fields: tuple[tuple[str, str], ...]
    line: int

    def get(self, key: str, default: str = "") -> str:
        """The value of the first field called `key`."""
        return next((value for name, value in self.fields if name == key), default)


def events(lines: Sequence[str], first_line: int = 1) -> list[Event]:
    """The events among the lines of an evidence file, in order; `first_line` is the 1-based line of lines[0]."""
    from infinimem.text.signature import parse_seqs

    found = []
    for at, line in enumerate(lines):
        item = EVENT_ITEM.match(line)
        if item is None:
            continue
        rest, _ = whole_head(lines, at, line[item.end() :].rstrip("\r\n"), "\n")
        fields, _ = parse_fields(rest)
        given = dict(fields)
        if "event" in given:
            found.append(Event(given["event"], parse_seqs(given.get("seq", "")), fields, first_line + at))
    return found


def edit(document: Document, edits: Iterable[tuple[Span, Sequence[str]]]) -> Document:
    """The document with spans of lines replaced. Spans refer to the old lines and do not overlap.

    Where lines come to stand after a last line without terminator, that line gets one.
    """
    lines = list(document.lines)
    ending = ending_of(document.lines)
    in_order = sorted(edits, key=lambda pair: (pair[0].start, pair[0].stop))
    for span, new in reversed(in_order):
        if new and span.start and not lines[span.start - 1].endswith("\n"):
            lines[span.start - 1] += ending
        lines[span.start : span.stop] = new
    return parse_changed(document, tuple(lines))


def body_tokens(document: Document) -> int:
    """What a document costs a reader, its front matter not counted."""
    return estimate("".join(document.lines[document.header.span.stop :]))
