"""Evidence: every consolidated entry as it stood, and what became of it; appended, never rewritten."""

from __future__ import annotations

import mmap
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from infinimem.model import Document, Entry, FileState, Problem, Span, Unit
from infinimem.store.buffer import evidence_files
from infinimem.store.layout import EVIDENCE
from infinimem.store.read import seen_of
from infinimem.store.transaction import Append
from infinimem.text.document import Event, events, parse, parse_piece
from infinimem.text.signature import parse_seqs, render_fields, render_seqs

FEW = 20
SETTLED = 2_000_000_000
"""Nanoseconds from which on a file that changes again has another time of change."""
TAKEN_BACK = "undo"
"""Why an entry is visible again that a flush had retired: no hand put it back."""
SEQ = re.compile(rb'seq="?([0-9][0-9+-]*)"? *[,>]')
ITEM_START = re.compile(rb"[-*+][ \t]+\\?<")
ITEM_END = re.compile(rb"\n(?=[-*+#])")  # not any other line: a signature may be broken without indent


@dataclass(frozen=True, slots=True)
class Record:
    """What evidence holds of one seq: its words by revision, its events, and where each stands."""

    seq: int
    entries: tuple[tuple[str, Entry], ...]
    events: tuple[tuple[str, Event], ...]

    @property
    def newest(self) -> Entry | None:
        """The entry as its newest revision has it, alone, not as part of a joined line."""
        alone = [entry for _, entry in self.entries if len(entry.seqs) == 1]
        if not alone:
            return None
        fields = alone[0].signature
        return replace(alone[-1], signature=fields)


def evidence_path(root: Path, at: str) -> str:
    """The file of the month that an ISO timestamp lies in; never one older than the newest there is.

    What happened is read back in the order of the files, so a clock that was set back must not reorder it.
    """
    newest = max((path.name for path in evidence_files(root)), default="")
    return f"{EVIDENCE}/{max(f'{at[:7]}.md', newest)}"


def evidence_conflicts(root: Path) -> list[Problem]:
    """A problem for each evidence file with an unresolved git conflict; reads bytes only, to be cheap."""
    found = []
    for path in evidence_files(root):
        line = line_of_conflict(path)
        if line:
            message = "a git conflict is not resolved; keep the lines of both sides, then go on"
            found.append(Problem(f"{EVIDENCE}/{path.name}", line, message, code="conflict"))
    return found


def line_of_conflict(path: Path) -> int:
    """The 1-based line of the first conflict marker; 0 where there is none. A search of bytes, so cheap.

    What was found is remembered of a file that nobody has changed for a while.
    """
    status = path.stat()
    settled = time.time_ns() - status.st_ctime_ns > SETTLED
    return (known_conflict if settled else known_conflict.__wrapped__)(path, seen_of(status))


@lru_cache(1024)
def known_conflict(path: Path, seen: FileState) -> int:
    """The line of the first conflict marker in a file that was in this state."""
    with path.open("rb") as file:
        if not path.stat().st_size:
            return 0
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            at = 0 if content[:8] == b"<<<<<<< " else content.find(b"\n<<<<<<< ") + 1
            if at == 0 and content[:8] != b"<<<<<<< ":
                return 0
            return content[:at].count(b"\n") + 1


def append_to_evidence(root: Path, at: str, lines: Sequence[str]) -> Append:
    """Lines to add to this month's evidence; a new file gets a heading, an unended last line its newline."""
    path = evidence_path(root, at)
    place = root / path
    lead = ""
    if not place.exists() or place.stat().st_size == 0:
        lead = f"# Evidence {place.stem}\n\n"
    else:
        with place.open("rb") as file:
            file.seek(-1, 2)
            if file.read(1) != b"\n":
                lead = "\n"
    return Append(path, (lead + "".join(lines)).encode("utf-8", "surrogateescape"))


def event_line(kind: str, at: str, **fields: str) -> str:
    """`- <event=retire, seq=12, by=41, why=superseded, at=…>`"""
    return f"- {render_fields((('event', kind), *fields.items(), ('at', at)))}\n"


def retire_line(seqs: Iterable[int], by: int | str, why: str, at: str) -> str:
    """The event that says why seqs left the visible surface, and for whom."""
    fields = {"seq": render_seqs(seqs)}
    if by:
        fields["by"] = str(by)
    return event_line("retire", at, **fields, why=why)


def read_records(root: Path, seqs: Iterable[int]) -> dict[int, Record]:
    """Everything evidence says of some seqs, without parsing more than the lines that name them."""
    wanted = set(seqs)
    entries: dict[int, list[tuple[str, Entry]]] = {seq: [] for seq in wanted}
    happened: dict[int, list[tuple[str, Event]]] = {seq: [] for seq in wanted}
    if not wanted:
        return {}
    needle = SEQ
    if len(wanted) < FEW:
        numbers = b"|".join(str(seq).encode() for seq in sorted(wanted))
        needle = re.compile(rb'seq="?(?:0*(?:' + numbers + rb')"? *[,>]|[0-9]+[-+])')
    for path in evidence_files(root):
        name = f"{EVIDENCE}/{path.name}"
        ending = file_ending(path)
        for line, fragment in fragments(path, needle, wanted):
            document = parse_piece(name, fragment, ending)
            for entry in document.entries:
                here = replace(entry, span=Span(entry.span.start + line, entry.span.stop + line))
                for seq in wanted.intersection(entry.seqs):
                    entries[seq].append((name, here))
            for event in events(document.lines, line + 1):
                for seq in wanted.intersection(event.seqs):
                    happened[seq].append((name, event))
    return {seq: Record(seq, tuple(entries[seq]), tuple(happened[seq])) for seq in wanted}


def file_ending(path: Path) -> str:
    """The line terminator of a file."""
    with path.open("rb") as file:
        return "\r\n" if file.readline().endswith(b"\r\n") else "\n"


def fragments(path: Path, needle: re.Pattern[bytes], wanted: set[int]) -> list[tuple[int, bytes]]:
    """The list items that match, each with its continuation lines and 0-based line; nested ones with those around."""
    found: list[tuple[int, bytes]] = []
    with path.open("rb") as file:
        if not path.stat().st_size:
            return []
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            counted = line = past = 0
            for match in needle.finditer(content):
                if needle is SEQ and wanted.isdisjoint(parse_seqs(match[1].decode())):
                    continue
                if match.start() < past:
                    continue
                start = item_start(content, match.start())
                if ITEM_START.match(content, start) is None and content.rfind(b"\n", start, match.start()) < 0:
                    continue
                end = ITEM_END.search(content, match.end())
                past = end.start() + 1 if end else len(content)
                line += content[counted:start].count(b"\n")
                counted = start
                found.append((line, content[start:past]))
    return found


def item_start(content: mmap.mmap, at: int) -> int:
    """Where the line begins that a place belongs to, or the nearest one above at which an item or heading does."""
    start = content.rfind(b"\n", 0, at) + 1
    while start and content[start : start + 1] not in (b"-", b"*", b"+", b"#"):
        start = content.rfind(b"\n", 0, start - 1) + 1
    return start


def all_records(root: Path) -> dict[int, Record]:
    """Everything evidence says, by seq."""
    return records_in(parse(f"{EVIDENCE}/{path.name}", path.read_bytes()) for path in evidence_files(root))


def records_in(documents: Iterable[Document]) -> dict[int, Record]:
    """Everything that some files of evidence say, by seq."""
    entries: dict[int, list[tuple[str, Entry]]] = {}
    happened: dict[int, list[tuple[str, Event]]] = {}
    for document in documents:
        for entry in document.entries:
            for seq in entry.seqs:
                entries.setdefault(seq, []).append((document.path, entry))
        for event in events(document.lines):
            for seq in event.seqs:
                happened.setdefault(seq, []).append((document.path, event))
    return {
        seq: Record(seq, tuple(entries.get(seq, ())), tuple(happened.get(seq, ())))
        for seq in sorted({*entries, *happened})
    }


def retirement(record: Record) -> Event | None:
    """The event that retired a seq, unless an undo took it back since. What was forgotten stays so."""
    last: Event | None = None
    for _, event in record.events:
        if event.kind == "forget":
            return event
        if event.kind in ("retire", "unflush", "restore"):
            last = event
    return last if last is not None and last.kind == "retire" else None


def event_units(document: Document, offset: int = 0) -> list[Unit]:
    """The events of an evidence file that concern seqs, as the index keeps them; `offset` lines come before.

    A retirement names when, why and for whom; the words are those that the index knows of the seq.
    """
    return [
        Unit(
            document.path,
            event.line,
            event.line,
            "",
            event.seqs,
            (),
            (*event.fields, ("retired_at", event.get("at")), ("retired_by", event.get("by"))),
            event.get("why", "retired") if event.kind == "retire" else "",
        )
        for event in events(document.lines, offset + 1)
        if event.seqs
    ]
