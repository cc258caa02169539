"""A document as a row of records, one for each heading, entry, event and run of prose; and the way back.

Rendering the records gives the document's bytes: what a record's fields alone would render otherwise than it
stands in the file carries its lines in `raw`, and the blank lines after a piece are its `after`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from infinimem.errors import BadInput
from infinimem.model import Document, Signature
from infinimem.text.document import entry_lines, events, parse_lines, title_of
from infinimem.text.lines import ending_of, is_blank, join_lines, split_lines
from infinimem.text.signature import KEY_ALONE, parse_seqs, render_fields, render_seqs

Record = dict[str, Any]
ENDINGS = {"lf": "\n", "crlf": "\r\n"}
KINDS = ("settings", "topic", "guest", "buffer", "evidence", "log")


def kind_of(document: Document) -> str:
    """What a file of a library is."""
    top = document.path.split("/")[0]
    kinds = {"CURRENT.md": "buffer", "infinimem.yaml": "settings", "evidence": "evidence", ".infinimem": "log"}
    return kinds.get(top) or ("guest" if document.is_guest else "topic")


def document_records(document: Document) -> Iterator[Record]:
    """The document's own record, then one for each of its pieces, in order."""
    kind = kind_of(document)
    body = document.header.span.stop
    ending = "\n" if kind == "log" else ending_of(document.lines)
    first: Record = {"record": "document", "path": document.path, "kind": kind}
    if kind in ("topic", "guest"):
        summary = document.header.fields.get("summary")
        first |= {
            "id": document.id,
            "title": title_of(document),
            "summary": summary if isinstance(summary, str) else "",
        }
    if ending != "\n":
        first["ending"] = "crlf"
    if body:
        first["front"] = "".join(document.lines[:body])
    pieces = [first, *body_records(document, kind, ending)]
    yield from with_blanks(pieces, kind)


def body_records(document: Document, kind: str, ending: str) -> Iterator[Record]:
    """The pieces below the front matter, blank lines as prose of their own."""
    entries = {entry.span.start: entry for entry in document.entries}
    headings = {block.span.start: block for block in document.blocks if block.level}
    happened = {event.line - 1: event for event in events(document.lines)} if kind == "evidence" else {}
    prose: list[str] = []
    at = document.header.span.stop
    while at < len(document.lines):
        record: Record = {}
        stop = at + 1
        if kind == "settings":
            pass
        elif at in entries:
            entry = entries[at]
            stop = entry.span.stop
            record = {"record": "entry", "in": document.path, "seqs": list(entry.seqs)}
            if entry.headings:
                record["headings"] = list(entry.headings)
            record |= {"fields": dict(entry.signature.fields), "text": entry.text}
        elif at in headings:
            block = headings[at]
            record = {"record": "heading", "level": block.level, "text": block.headings[-1]}
        elif at in happened:
            record = {"record": "event", "in": document.path, "fields": dict(happened[at].fields)}
        if not record:
            prose.append(document.lines[at])
            at += 1
            continue
        if prose:
            yield {"record": "prose", "text": "".join(prose)}
            prose = []
        lines = "".join(document.lines[at:stop])
        if rendered(record, ending) != lines:
            record["raw"] = lines
        yield record
        at = stop
    if prose:
        yield {"record": "prose", "text": "".join(prose)}


def with_blanks(pieces: Iterable[Record], kind: str) -> Iterator[Record]:
    """The pieces, with the blank lines that follow each in its `after` instead of in a piece of their own."""
    last: Record = {}
    for piece in pieces:
        if last and piece["record"] == "prose" and kind != "settings":
            lines = split_lines(piece["text"].encode("utf-8", "surrogateescape"))
            first = next((at for at, line in enumerate(lines) if not is_blank(line)), len(lines))
            stop = next((at for at in range(len(lines), 0, -1) if not is_blank(lines[at - 1])), 0)
            if first:
                last["after"] = "".join(lines[:first])
            if first == len(lines):
                continue
            piece = {"record": "prose", "text": "".join(lines[first:stop])}
            if stop < len(lines):
                piece["after"] = "".join(lines[stop:])
        if last:
            yield last
        last = piece
    if last:
        yield last


def rendered(record: Mapping[str, Any], ending: str) -> str:
    """A piece's lines, without the blank ones after it."""
    if "raw" in record:
        return str(record["raw"])
    match record["record"]:
        case "heading":
            return f"{'#' * record['level']} {record['text']}{ending}"
        case "entry":
            signature = Signature(tuple(record["seqs"]), tuple(record["fields"].items()))
            return "".join(entry_lines(signature, record["text"], ending))
        case "event":
            return f"- {render_fields(record['fields'].items())}{ending}"
        case "document":
            return str(record.get("front", ""))
        case _:
            return str(record["text"])


def content_of(records: Iterable[Mapping[str, Any]]) -> bytes:
    """The bytes of the document that these records, its own first, were made of."""
    pieces: list[str] = []
    ending = "\n"
    for record in records:
        if record["record"] == "document":
            ending = ENDINGS[record.get("ending", "lf")]
        pieces += (rendered(record, ending), record.get("after", ""))
    return "".join(pieces).encode("utf-8", "surrogateescape")


# Reading records that somebody else may have written


def checked(value: Any, where: str) -> Record:
    """A record of a document, if it is one. Raises `BadInput` naming the place."""
    if not isinstance(value, dict):
        raise wrong(where, "a record is a JSON object")
    kind = value.get("record")
    for key in ("raw", "after", "front", "text"):
        if not isinstance(value.get(key, ""), str):
            raise wrong(where, f"{key} is not a text")
    match kind:
        case "document":
            sound = isinstance(value.get("path"), str) and value.get("kind") in KINDS
            sound = sound and value.get("ending", "lf") in ENDINGS
        case "heading":
            level = value.get("level")
            sound = isinstance(level, int) and 1 <= level <= 6 and "text" in value
        case "entry":
            sound = is_fields(value.get("fields")) and are_seqs(value.get("seqs")) and "text" in value
        case "event":
            sound = is_fields(value.get("fields"))
        case "prose":
            sound = "text" in value
        case _:
            raise wrong(where, f"there is no record {kind!r}")
    if not sound:
        raise wrong(where, f"this is no {kind} record; see: infinimem schema export-lines")
    return value


def is_fields(value: Any) -> bool:
    """Whether a value is the fields of a signature: names that read back, texts."""
    return isinstance(value, dict) and all(
        KEY_ALONE.fullmatch(name) and isinstance(text, str) for name, text in value.items()
    )


def are_seqs(value: Any) -> bool:
    """Whether a value is seqs that read back as they are written."""
    if not isinstance(value, list) or not all(isinstance(seq, int) and not isinstance(seq, bool) for seq in value):
        return False
    return parse_seqs(render_seqs(value)) == tuple(value)


def wrong(where: str, what: str) -> BadInput:
    """The error for a line that is no record."""
    return BadInput(f"{where}: {what}; nothing was loaded")


def same_bytes(document: Document) -> bool:
    """Whether the records give the document back: what export promises, looked at before it is written."""
    return content_of(document_records(document)) == join_lines(document.lines)


def as_document(path: str, content: bytes) -> Document:
    """A file of a library as a document; settings are lines only."""
    lines = split_lines(content)
    if path == "infinimem.yaml":
        return Document(path, lines)
    return parse_lines(path, lines, "\n" if path.startswith(".infinimem") else "")
