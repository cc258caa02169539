"""A library as JSON lines, one record a line, and back: the same files, byte for byte."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from infinimem import __version__
from infinimem.errors import BadInput
from infinimem.exchange.export.pieces import Record, checked, content_of, document_records, wrong
from infinimem.exchange.export.source import Chosen

FORMAT = "infinimem-export"
VERSION = 1
COUNTED = {
    "document": "documents",
    "heading": "headings",
    "entry": "entries",
    "event": "events",
    "prose": "prose",
}
"""The records of an export, as its last one counts them."""


@dataclass(frozen=True, slots=True)
class Package:
    """An export as read: the files of the library that it was made of, and the last seq given there.

    `partial` says that a filter held something back.
    """

    path: str
    high: int
    partial: bool
    files: Mapping[str, bytes]


def export_records(chosen: Chosen) -> Iterator[Record]:
    """The records of an export: what it is, the documents with their pieces, and how many there were."""
    yield {
        "record": "library",
        "format": FORMAT,
        "version": VERSION,
        "made_by": f"infinimem {__version__}",
        "high": chosen.source.high,
        "partial": not chosen.is_whole,
    }
    counts: Counter[str] = Counter()
    for document in chosen.documents:
        for record in document_records(document):
            counts[record["record"]] += 1
            yield record
    yield {"record": "end", **{plural: counts[one] for one, plural in COUNTED.items()}}


def record_line(record: Mapping[str, Any]) -> bytes:
    """A record as one line of JSON; bytes of a file that are no UTF-8 become escapes that read back."""
    try:
        return json.dumps(record, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(record).encode() + b"\n"


def read_package(path: Path) -> Package:
    """The export in a file. Raises `BadInput` naming the line where it is no whole export."""
    files: dict[str, bytes] = {}
    pieces: list[Record] = []
    counts: Counter[str] = Counter()
    head: Record = {}
    ended = False
    number = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                where = f"{path}:{number}"
                value = value_of(line, where)
                if not head:
                    head = checked_head(value, where)
                    continue
                if ended:
                    raise wrong(where, "something follows the end of the export")
                if value.get("record") == "end":
                    check_end(value, counts, where)
                    ended = True
                    continue
                record = checked(value, where)
                counts[record["record"]] += 1
                if record["record"] == "document":
                    put_together(pieces, files)
                    pieces = [checked_path(record, files, where)]
                elif pieces:
                    pieces.append(record)
                else:
                    raise wrong(where, "a piece before any document")
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from error
    if not ended:
        raise wrong(f"{path}:{number}", "the export ends here without its last record, so it is not whole")
    put_together(pieces, files)
    folders = {str(parent) for name in files for parent in PurePosixPath(name).parents}
    for name in folders.intersection(files):
        raise wrong(str(path), f"{name} is a document and a folder")
    return Package(str(path), head["high"], head["partial"], files)


def put_together(pieces: list[Record], files: dict[str, bytes]) -> None:
    """The document that some records are, among the files."""
    if not pieces:
        return
    path = pieces[0]["path"]
    try:
        files[path] = content_of(pieces)
    except UnicodeEncodeError as error:
        raise wrong(path, "a text in it is not valid Unicode") from error


def value_of(line: bytes, where: str) -> Record:
    """The JSON object on a line."""
    try:
        value = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise wrong(where, "this is no JSON in UTF-8, so no line of an export") from error
    if not isinstance(value, dict):
        raise wrong(where, "a record is a JSON object")
    return value


def checked_head(value: Record, where: str) -> Record:
    """The first record, if this version can read what follows it."""
    if value.get("format") != FORMAT or value.get("record") != "library":
        raise wrong(where, "this is no export of infinimem (infinimem export --out FILE.jsonl makes one)")
    if value.get("version") != VERSION:
        raise wrong(where, f"version {value.get('version')} of the export is not known; upgrade infinimem")
    high, partial = value.get("high"), value.get("partial")
    if not isinstance(high, int) or isinstance(high, bool) or high < 0 or not isinstance(partial, bool):
        raise wrong(where, "the first record lacks `high` or `partial`")
    return value


def check_end(value: Record, counts: Counter[str], where: str) -> None:
    """Refuse an export from which lines are missing."""
    for one, plural in COUNTED.items():
        if value.get(plural) != counts[one]:
            raise wrong(where, f"there should be {value.get(plural)} {plural} and there are {counts[one]}")


def checked_path(record: Record, files: Mapping[str, bytes], where: str) -> Record:
    """A document's record, if its path is one that a library reads, and new."""
    path = record["path"]
    pieces = path.split("/")
    top = pieces[0]
    inner = top in ("topics", "evidence") and len(pieces) > 1 and path.endswith(".md")
    hidden = any(piece.startswith(".") or not piece for piece in pieces)
    known = path in ("CURRENT.md", "infinimem.yaml", ".infinimem/written.log")
    odd = any(char in "\\\0" or "\ud800" <= char <= "\udfff" for char in path)
    if not known and (not inner or hidden or odd):
        raise wrong(where, f"{path!r} is no document of a library")
    if path in files:
        raise wrong(where, f"{path} occurs twice")
    return record
