"""What happened to a library, as its evidence and its undo journal tell it: the history where there is no git."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from infinimem.git.compare import Difference
from infinimem.model import Document, Entry, Unit, path_of, topic_of
from infinimem.store.buffer import evidence_files
from infinimem.store.evidence import Record, read_records, records_in, retirement
from infinimem.store.layout import BUFFER, EVIDENCE, TOPICS, UNDO
from infinimem.store.read import list_files, read_file
from infinimem.store.transaction import undo_records
from infinimem.text.document import Event, events, parse, units
from infinimem.text.lines import counted
from infinimem.text.signature import parse_seqs

Standing = Callable[[int], Sequence[Unit]]
"""Every visible place of a seq."""


REARRANGED = "topics rearranged"
"""What evidence alone tells of a change that gave it no words."""
FEW = 2000
"""Places that are asked of the index one by one; whoever wants more has all topics read once, which is faster."""


def places_in(root: Path, standing: Callable[[], Standing]) -> Standing:
    """Where seqs stand, for one seq after the other: by the index, or by reading everything when it gets many."""
    asked = 0
    index: list[Standing] = []
    known: dict[int, list[Unit]] = {}

    def find(seq: int) -> Sequence[Unit]:
        nonlocal asked
        asked += 1
        if asked <= FEW:
            index[:] = index or [standing()]
            return index[0](seq)
        if not known:
            known.update(shown_now(root))
        return known.get(seq, ())

    return find


def shown_now(root: Path) -> dict[int, list[Unit]]:
    """Every visible place of every seq, CURRENT's last; reads all of the library but evidence."""
    found: dict[int, list[Unit]] = {0: []}
    for path in sorted(list_files(root), key=lambda path: path == BUFFER):
        if path.startswith(f"{EVIDENCE}/"):
            continue
        for unit in units(read_file(root, path).document):
            for seq in unit.seqs:
                found.setdefault(seq, []).append(unit)
    return found


@dataclass(frozen=True, slots=True)
class Gone:
    """An entry that left the visible surface: why, and for which other (0 for none)."""

    seq: int
    by: int
    why: str


@dataclass(frozen=True, slots=True)
class Row:
    """One line of history: when, what, which topics and entries; `commit` and `author` where git tells it."""

    at: str
    what: str
    topics: tuple[str, ...] = ()
    seqs: tuple[int, ...] = ()
    retired: tuple[Gone, ...] = ()
    commit: str = ""
    author: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """What one transaction added to evidence: entries, then events of which the last is the flush's own."""

    at: str
    entries: tuple[Entry, ...]
    events: tuple[Event, ...]


def blocks(root: Path) -> Iterator[Block]:
    """What was added to evidence, newest first."""
    for path in reversed(evidence_files(root)):
        yield from reversed(list(blocks_in(parse(f"{EVIDENCE}/{path.name}", path.read_bytes()))))


def blocks_in(document: Document) -> Iterator[Block]:
    """The transactions of one file of evidence, oldest first: a flush event ends each."""
    entries = list(document.entries)
    happened: list[Event] = []
    for event in events(document.lines):
        happened.append(event)
        if event.kind == "flush":
            mine = [entry for entry in entries if entry.span.start < event.line]
            entries = entries[len(mine) :]
            yield Block(event.get("at"), tuple(mine), tuple(happened))
            happened = []
    if entries or happened:  # written by hand, or by another version
        at = happened[-1].get("at") if happened else entries[-1].signature.get("at") or entries[-1].observed
        yield Block(at, tuple(entries), tuple(happened))


def row_of(block: Block) -> Row:
    """A transaction as a line of history, its topics still to be found."""
    new = [entry for entry in block.entries if not entry.signature.get("rev") and len(entry.seqs) == 1]
    divided = {
        seq: event for event in block.events if event.get("why") == "split" for seq in parse_seqs(event.get("by"))
    }
    pieces = [entry for entry in new if entry.seq in divided]
    fresh = [entry for entry in new if entry.seq not in divided]
    revised = [entry for entry in block.entries if entry.signature.get("rev")]
    gone = [gone_of(event, seq) for event in block.events if event.kind == "retire" for seq in event.seqs]
    back = [seq for event in block.events if event.kind == "unflush" for seq in event.seqs]
    kept = [seq for event in block.events if event.kind == "restore" for seq in event.seqs]
    lost = [seq for event in block.events if event.kind == "forget" for seq in event.seqs]
    parts = [f"{counted(len(fresh), 'entry', 'entries')} flushed"] * bool(fresh)
    parts += [f"undone, {counted(len(back), 'entry', 'entries')} back in CURRENT"] * bool(back)
    parts += [f"{counted(len(kept), 'entry', 'entries')} restored"] * bool(kept)
    parts += [f"the words of {counted(len(revised), 'line')} changed"] * bool(revised)
    if pieces:
        of = {divided[entry.seq].line for entry in pieces}
        parts.append(f"{counted(len(of), 'entry', 'entries')} split into {len(pieces)}")
    for why in dict.fromkeys(one.why for one in gone if one.why != "split" or not pieces):
        parts.append(f"{sum(one.why == why for one in gone)} {why}")
    parts += [f"{counted(len(lost), 'entry', 'entries')} forgotten"] * bool(lost)
    seqs = {seq for entry in (*new, *revised) for seq in entry.seqs} | {*back, *kept, *lost}
    return Row(block.at, ", ".join(parts) or REARRANGED, (), tuple(sorted(seqs)), tuple(gone))


def gone_of(event: Event, seq: int) -> Gone:
    """One seq of a retirement."""
    by = parse_seqs(event.get("by"))
    return Gone(seq, by[0] if by else 0, event.get("why"))


def history(root: Path, standing: Standing, most: int) -> list[Row]:
    """The newest `most` rows of a library's history, newest first."""
    journal = journal_rows(root)
    rows: list[Row] = []
    for block in blocks(root):
        row = row_of(block)
        known = journal.pop(row.at, None)
        what = known.what if known and row.what == REARRANGED else row.what
        rows.append(replace(row, what=what, topics=known.topics if known else topics_of(row, standing)))
        if len(rows) >= most:
            break
    oldest = rows[-1].at if rows else ""
    rows += [row for row in journal.values() if row.at >= oldest or len(rows) < most]
    return newest_first(rows)[:most]


def topic_history(root: Path, topic: str, most: int) -> list[Row]:
    """The newest rows that speak of a topic, by its own log of updates and the entries that stand in it."""
    document = read_file(root, path_of(topic)).document
    logged = log_of(document)
    own = {seq for entry in document.entries for seq in entry.seqs}
    journal = journal_rows(root)
    rows: list[Row] = []
    seen: set[str] = set()
    for block in blocks(root):
        row = row_of(block)
        seqs = own.intersection(row.seqs)
        is_named = row.at in journal and topic in journal[row.at].topics
        if not (seqs or is_named or row.at in logged or any(one.by in own for one in row.retired)):
            continue
        seen.add(row.at)
        known = seqs | set(logged.get(row.at, Row("", "")).seqs)
        gone = tuple(one for one in row.retired if one.by == 0 or one.by in known) if known else row.retired
        rows.append(replace(row, topics=(topic,), seqs=tuple(sorted(known)), retired=gone))
        if len(rows) >= most:
            break
    rows += [replace(row, topics=(topic,)) for at, row in logged.items() if at not in seen]
    return newest_first(rows)[:most]


def seq_history(root: Path, seq: int) -> list[Row]:
    """An entry's life as evidence tells it, newest first."""
    record = read_records(root, [seq])[seq]
    rows: list[Row] = []
    for path, entry in record.entries:
        rev = entry.signature.get("rev")
        if not rev and len(entry.seqs) == 1:
            if entry.observed:
                rows.append(Row(entry.observed, "written", (), (seq,)))
            rows.append(Row(flushed_at(root, path, entry.span.start), "flushed", (), (seq,)))
        else:
            what = f"its words changed (revision {rev})" if len(entry.seqs) == 1 else "joined into one line with others"
            rows.append(Row(entry.signature.get("at"), what, (), entry.seqs))
    for _, event in record.events:
        gone = (gone_of(event, seq),) if event.kind == "retire" else ()
        by = f" by {gone[0].by}" if gone and gone[0].by else ""
        what = {"unflush": "back in CURRENT", "restore": "restored", "forget": "forgotten"}.get(event.kind, event.kind)
        rows.append(Row(event.get("at"), f"{gone[0].why}{by}" if gone else what, (), (seq,), gone))
    return newest_first(rows[::-1])


def flushed_at(root: Path, path: str, line: int) -> str:
    """When a line of evidence was written: the next flush event says so."""
    following = (root / path).read_bytes().split(b"\n")[line:]
    mark = next((one for one in following if one.startswith(b"- <event=flush")), b"")
    found = events([mark.decode("utf-8", "replace")])
    return found[0].get("at") if found else ""


def newest_first(rows: Sequence[Row]) -> list[Row]:
    """Rows by time, those of one second in the order that they were found in: events are told to the second."""
    return sorted(rows, key=lambda row: moment(row.at) // 1, reverse=True)


def moment(at: str) -> float:
    """A timestamp as a number that can be compared; 0 for what is none."""
    try:
        found = datetime.fromisoformat(at)
    except ValueError:
        return 0.0
    return found.timestamp() if found.tzinfo is not None else datetime.fromisoformat(f"{at}+00:00").timestamp()


def topics_of(row: Row, standing: Standing) -> tuple[str, ...]:
    """Where the entries of a row, or what replaced them, stand now."""
    seqs = [*row.seqs, *(one.by for one in row.retired if one.by)]
    return tuple(dict.fromkeys(unit.topic for seq in seqs for unit in standing(seq)))


def journal_rows(root: Path) -> dict[str, Row]:
    """What the undo journal knows of the last runs, by their time."""
    rows = {}
    for name in undo_records(root):
        try:
            undo: dict[str, Any] = json.loads((root / UNDO / name / "record.json").read_text("utf-8"))
        except (FileNotFoundError, ValueError):
            continue
        topics = [topic_of(row["path"]) for row in undo["changes"] if row["path"].startswith(f"{TOPICS}/")]
        at = str(undo["about"].get("at", ""))
        did = undo["about"].get("did")
        what = "; ".join(map(str, did)) if isinstance(did, list) else ""
        rows[at] = Row(at, what or f"{counted(len(topics), 'topic')} rearranged", tuple(topics))
    return rows


def log_of(document: Document) -> dict[str, Row]:
    """A topic's own log of updates, by time."""
    value = document.header.fields.get("update_log")
    rows: dict[str, Row] = {}
    for one in value if isinstance(value, list) else ():
        if not isinstance(one, dict) or "time" not in one:
            continue
        time = one["time"]
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ") if isinstance(time, datetime) else str(time)
        earlier = rows.get(at, Row(at, "", (document.id,)))
        what = ", ".join(part for part in (earlier.what, str(one.get("op", ""))) if part)
        seqs = parse_seqs(str(one.get("seq", "")))
        rows[at] = replace(earlier, what=what, seqs=tuple(dict.fromkeys([*earlier.seqs, *seqs])))
    return rows


def differences_since(root: Path, at: str, standing: Standing) -> list[Difference]:
    """What changed since a moment, by evidence alone; what only stands in files, such as prose, is not in it."""
    since = moment(at)
    found: list[Difference] = []
    documents = [parse(f"{EVIDENCE}/{path.name}", path.read_bytes()) for path in evidence_files(root)]
    flushed = {
        seq: block.at
        for document in documents
        for block in blocks_in(document)
        for entry in block.entries
        if not entry.signature.get("rev")
        for seq in entry.seqs
    }
    for seq, record in records_in(documents).items():
        found += seq_differences(seq, record, flushed.get(seq, ""), since, standing)
    for entry in read_file(root, BUFFER).document.entries:
        if moment(entry.observed) >= since and not flushed.keys() & set(entry.seqs):
            found.append(Difference("added", entry.topic, entry.seqs, entry.text, line=entry.span.start + 1))
    return sorted(found, key=lambda one: (one.topic, one.line or 1 << 30))


def seq_differences(seq: int, record: Record, flushed: str, since: float, standing: Standing) -> Iterator[Difference]:
    """What became of one entry since a moment."""
    if record.newest is None:
        return
    is_new = moment(record.newest.observed or flushed) >= since
    is_placed = moment(flushed) >= since
    event = retirement(record)
    left = event is not None and moment(event.get("at")) >= since
    words = [entry for _, entry in record.entries if len(entry.seqs) == 1]
    reworded = len(words) > 1 and moment(words[-1].signature.get("at")) >= since
    if not (is_new or is_placed or left or reworded):
        return
    place = next(iter(standing(seq)), None)
    if event is not None and place is None:
        if left and not is_new:
            gone = gone_of(event, seq)
            heir = next(iter(standing(gone.by)), None) if gone.by else None
            topic = heir.topic if heir is not None else ""
            yield Difference("retired", topic, (seq,), record.newest.text, by=gone.by, why=gone.why or event.kind)
        return
    if place is None:
        return
    if is_new:
        yield Difference("added", place.topic, place.seqs, place.text, line=place.line)
        return
    if is_placed:
        yield Difference("moved", place.topic, place.seqs, place.text, source="CURRENT", line=place.line)
    if reworded:
        yield Difference("changed", place.topic, (seq,), words[-1].text, words[-2].text, line=place.line)
