"""From files to records: which files changed, and what they hold now. The store does the reading."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from infinimem.errors import Unreadable
from infinimem.model import CURRENT, FileState, Unit, path_of
from infinimem.search.records import Record, describe

if TYPE_CHECKING:
    from infinimem.search.shelf import Shelf, Writer

EVIDENCE_FOLDER = "evidence/"

_LARGE = 8 << 20  # bytes of CURRENT, as an import leaves it, from which on it is read piece by piece
_SETTLED = 2_000_000_000  # ns; a file read so shortly after it changed may change again within its mtime
_SEALED = 65_536  # bytes before the end of what was read that must be unchanged for a file to count as grown


class Line(NamedTuple):
    """An entry of evidence as it stands there, read only when it is asked for; `line` is 1-based."""

    line: int
    seq: int
    content: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """A file as the index reads it. `digest` is blake2b-16 of its bytes, in hex.

    `end` is a byte offset from which reading on gives the same units as reading the whole file again,
    `next_line` the 1-based line there; 0 where a file cannot be continued. `former` are ids that the topic had before.
    """

    units: Iterable[Unit | Line]
    title: str = ""
    summary: str = ""
    tokens: int = 0
    guest: bool = False
    digest: str = ""
    end: int = 0
    next_line: int = 1
    former: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tail:
    """A file's units from some offset on, up to `end`; a long file may be handed out in several."""

    units: Iterable[Unit | Line]
    end: int
    next_line: int
    tokens: int = 0


ReadUnits = Callable[[str], Parsed]
"""Path → the file as it is now; OSError or Unreadable leaves it out of the index."""

ReadTail = Callable[[str, int, int], "Tail | None"]
"""Path, byte offset, 1-based line there → what follows; None where only the whole file makes sense."""


@dataclass(frozen=True, slots=True)
class Reader:
    """How to read the library, and what state its files were listed in."""

    root: Path
    listing: Mapping[str, FileState]
    read_units: ReadUnits
    read_tail: ReadTail | None
    language: str


class Row(NamedTuple):
    """What the index knows of one file. A tuple, because a cold search makes one of each file there is.

    What follows `terms` is the catalog, which a search does without. `former` are the ids that a topic had before.
    """

    state: FileState
    settled: bool = True
    digest: str = ""
    end: int = 0
    next_line: int = 1
    seal: str = ""
    units: int = 0
    terms: int = 0
    entries: int = 0
    tokens: int = 0
    title: str = ""
    summary: str = ""
    guest: bool = False
    former: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Changes:
    """Paths to forget, to read whole, and to read on from where they ended."""

    removed: list[str] = field(default_factory=list)
    whole: list[str] = field(default_factory=list)
    grown: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.removed or self.whole or self.grown)


def changes_since(rows: Mapping[str, Row], reader: Reader) -> Changes:
    """What differs between the files and what was read of them."""
    changes = Changes(removed=[path for path in rows if path not in reader.listing])
    for path, state in reader.listing.items():
        row = rows.get(path)
        if row is None:
            changes.whole.append(path)
        elif row.state == state:
            if not row.settled and not _still_holds(reader.root / path, row):
                changes.whole.append(path)
        elif _has_grown(row, state, reader) and _seal(reader.root / path, row.end) == row.seal:
            changes.grown.append(path)
        else:
            changes.whole.append(path)
    return _with_all_evidence(changes, rows, reader)


def size_of(changes: Changes, rows: Mapping[str, Row], reader: Reader) -> int:
    """The bytes that have to be read."""
    whole = sum(reader.listing[path].size for path in changes.whole)
    return whole + sum(reader.listing[path].size - rows[path].end for path in changes.grown)


def read_changes(
    changes: Changes,
    rows: Mapping[str, Row],
    reader: Reader,
    writer: Writer,
    shelves: list[Shelf],
) -> dict[str, Row]:
    """Write what changed; the rows of all files as they are then. The last of `shelves` is the writer's."""
    after = dict(rows)
    intake = _Intake(writer, reader.language)
    for path in changes.removed:
        writer.drop(path)
        del after[path]
    for path in changes.whole:
        writer.drop(path)
        after.pop(path, None)
        with contextlib.suppress(FileNotFoundError):
            after[path] = _read_whole(path, reader, intake)
    for path in changes.grown:
        grown = _read_on(path, rows[path], reader, intake)
        if grown is None:
            writer.drop(path)
            grown = _read_whole(path, reader, intake)
        after[path] = grown
    if intake.retired:
        writer.number(0)
        writer.commit()
        shelves[-1].reload()
        intake.add_retired(shelves)
    return after


class _Intake:
    """Takes units in, and keeps for last the events that retire units whose words lie elsewhere."""

    def __init__(self, writer: Writer, language: str) -> None:
        self.writer = writer
        self.language = language
        self.retired: list[tuple[Unit, str]] = []

    def take(self, units: Iterable[Unit | Line], path: str) -> tuple[int, int, int]:
        """Add the units of a file; how many there are, their own terms, and how many are entries."""
        from infinimem.search.shelf import EVIDENCE, RETIRED, VISIBLE

        count = terms = entries = 0
        for unit in units:
            if isinstance(unit, Line):
                self.writer.add_line(unit, path)
                continue
            if path.startswith(EVIDENCE_FOLDER):
                if unit.retired and unit.text:
                    self.writer.add(describe(unit, self.language), RETIRED, path)
                    continue
                if unit.seqs:
                    self.writer.add(Record(unit), EVIDENCE, path)
                if unit.retired:
                    self.retired.append((unit, path))
                continue
            record = describe(unit, self.language)
            self.writer.add(record, VISIBLE, path)
            count += 1
            terms += len(record.own)
            entries += bool(unit.seqs)
        return count, terms, entries

    def add_retired(self, shelves: list[Shelf]) -> None:
        """Make retired entries searchable, with the words that evidence has of them.

        Those of a line that several were joined into are the last resort: the others of it may be shown still.
        """
        from infinimem.search.shelf import EVIDENCE, RETIRED

        seqs = {seq for event, _ in self.retired for seq in event.seqs}
        for shelf in shelves:
            shelf.at_seqs(seqs, EVIDENCE)  # all at once: each is looked up below
        for event, path in self.retired:
            told = [record.unit for shelf in shelves for record in shelf.at_seqs(event.seqs, EVIDENCE)]
            written: set[tuple[int, ...]] = set()
            for seq in event.seqs:
                versions = [unit for unit in told if seq in unit.seqs and unit.text]
                versions = [unit for unit in versions if len(unit.seqs) == 1] or versions
                if not versions or versions[-1].seqs in written:
                    continue
                written.add(versions[-1].seqs)
                first, last = versions[0], versions[-1]
                fields = (*first.fields, *(pair for pair in event.fields if pair[0].startswith("retired_")))
                unit = replace(last, fields=fields, retired=event.retired)
                self.writer.add(describe(unit, self.language), RETIRED, path)


def _read_whole(path: str, reader: Reader, intake: _Intake) -> Row:
    """Read a file from its start; one that cannot be read counts as empty (`check` names it)."""
    state = reader.listing[path]
    is_large_buffer = path == path_of(CURRENT) and state.size > _LARGE
    if path.startswith(EVIDENCE_FOLDER) or is_large_buffer:
        streamed = _read_on(path, Row(state, title=CURRENT if is_large_buffer else ""), reader, intake)
        if streamed is not None:
            return streamed
        intake.writer.drop(path)
    now = time.time_ns()
    try:
        parsed = reader.read_units(path)
        units, terms, entries = intake.take(parsed.units, path)
    except FileNotFoundError:
        raise
    except (OSError, Unreadable):
        return Row(state)
    return Row(
        state,
        now - state.mtime_ns > _SETTLED,
        parsed.digest,
        parsed.end,
        parsed.next_line,
        _seal(reader.root / path, parsed.end),
        units,
        terms,
        entries,
        parsed.tokens,
        parsed.title,
        parsed.summary,
        parsed.guest,
        parsed.former,
    )


def _read_on(path: str, row: Row, reader: Reader, intake: _Intake) -> Row | None:
    """Read a file from where it ended; None if it has to be read whole."""
    if reader.read_tail is None:
        return None
    state = reader.listing[path]
    now = time.time_ns()
    end, line, tokens = row.end, row.next_line, row.tokens
    units, terms, entries = row.units, row.terms, row.entries
    while end < state.size:
        try:
            tail = reader.read_tail(path, end, line)
        except (OSError, Unreadable):
            tail = None
        if tail is None:
            return None
        if tail.end <= end:
            break
        more = intake.take(tail.units, path)
        units, terms, entries = units + more[0], terms + more[1], entries + more[2]
        end, line, tokens = tail.end, tail.next_line, tokens + tail.tokens
    return row._replace(
        state=state,
        settled=now - state.mtime_ns > _SETTLED,
        digest="",
        end=end,
        next_line=line,
        seal=_seal(reader.root / path, end),
        units=units,
        terms=terms,
        entries=entries,
        tokens=tokens,
    )


def _still_holds(file: Path, row: Row) -> bool:
    """Whether a file that was read shortly after it changed still holds what was read."""
    if row.end and not row.digest:
        return _seal(file, row.end) == row.seal
    try:
        return hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest() == row.digest
    except OSError:
        return False


def _has_grown(row: Row, state: FileState, reader: Reader) -> bool:
    same_file = state.inode == row.state.inode and state.size >= row.end
    return row.end > 0 and same_file and reader.read_tail is not None


def _with_all_evidence(changes: Changes, rows: Mapping[str, Row], reader: Reader) -> Changes:
    """All of evidence is read again if any of it did more than grow.

    That happens when words are forgotten, and then nothing that was read from it may stay.
    """
    rewritten = (*changes.whole, *changes.removed)
    if not any(path.startswith(EVIDENCE_FOLDER) and path in rows for path in rewritten):
        return changes
    evidence = (path for path in reader.listing if path.startswith(EVIDENCE_FOLDER))
    return replace(
        changes,
        whole=list(dict.fromkeys((*changes.whole, *evidence))),
        grown=[path for path in changes.grown if not path.startswith(EVIDENCE_FOLDER)],
    )


def _seal(file: Path, end: int) -> str:
    """A digest of what stands before an offset; "" for offset 0 or an unreadable file."""
    if not end:
        return ""
    try:
        with file.open("rb") as stream:
            stream.seek(max(0, end - _SEALED))
            content = stream.read(min(end, _SEALED))
    except OSError:
        return ""
    return hashlib.blake2b(content, digest_size=16).hexdigest()
