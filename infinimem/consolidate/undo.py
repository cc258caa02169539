"""Undo: the last flush reverted as one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from infinimem.consolidate.buffer import refuse_unreadable
from infinimem.consolidate.commit import diff_lines, headings_of, said
from infinimem.consolidate.due import timestamp
from infinimem.consolidate.run import Finder, Report, seqs_of
from infinimem.model import CURRENT, Change, Document, Entry, Outcome, Span, Summarise, topic_of
from infinimem.store import transaction
from infinimem.store.buffer import evidence_high, hold, next_seq, note_state, write_log
from infinimem.store.evidence import TAKEN_BACK, append_to_evidence, event_line, retire_line
from infinimem.store.files import read_bytes
from infinimem.store.layout import BUFFER, FLUSH_LOCK, UNDO
from infinimem.store.lock import exclusive
from infinimem.store.read import read_file
from infinimem.store.summaries import note_versions
from infinimem.store.transaction import UNDO_KEPT
from infinimem.text.document import edit, entry_lines, parse, parse_lines, parse_piece, render
from infinimem.text.lines import BOM, ending_of, join_lines, split_lines
from infinimem.text.signature import parse_seqs, render_seqs


def undo(root: Path, finder: Callable[[], Finder], now: datetime, *, dry_run: bool = False) -> Report:
    """Revert the last flush as one transaction.

    Documents go back to what they were, entries go back into CURRENT before later writes, evidence gains an
    `unflush` event. A document edited since is left alone, and with it those that share entries with it.
    """
    with exclusive(root / FLUSH_LOCK, doing="flush", reading=dry_run):
        index = finder()
        with hold(root, reading=dry_run) as note:
            return undo_last(root, note, index, timestamp(now), dry_run=dry_run)


def undo_last(root: Path, note: int, index: Finder, at: str, *, dry_run: bool) -> Report:
    """The undo itself, under the lock."""
    name, record = transaction.read_undo(root)
    if not name:
        return Report(reason=why_nothing(root))
    file = read_file(root, BUFFER)
    refuse_unreadable(root, file.document)
    rows = [(number, row) for number, row in enumerate(record["changes"]) if row["path"].startswith("topics/")]
    states = [read_state(root, name, number, row) for number, row in rows]
    groups = [settled(group, index) for group in groups_of(states)]
    back = [state for group in groups if not any(state.edited for state in group) for state in group]
    skipped = [state for group in groups if any(state.edited for state in group) for state in group]
    paths = {state.path for state in back}
    own = set(parse_seqs(record["about"].get("retired", "")))
    returning = [
        entry
        for entry in recorded_entries(record["about"])
        if all(unit.path in paths for seq in entry.seqs for unit in index.standing(seq))
        # what a later flush or a person retired stays retired
        and all(seq in own or index.fate(seq) != "retired" for seq in entry.seqs)
    ]
    changes = [Change(state.path, state.new_digest, state.old) for state in back]
    longer = with_entries_first(file.document, returning)
    if returning:
        changes.append(Change(BUFFER, file.digest, render(longer)))
    seqs = seqs_of(returning)
    older = sorted(seq for seq in own - set(seqs) if any(seq in state.old_seqs for state in back))
    report = Report(
        flushed=bool(changes),
        outcomes=tuple(Outcome(Summarise(state.topic, ""), "skipped", why_left(state)) for state in skipped),
        seqs=seqs,
        changed=tuple(state.topic for state in back if state.old is not None),
        removed=tuple(state.topic for state in back if state.old is None),
    )
    if dry_run:
        pieces = [diff_lines(state.path, split_lines(state.now), split_lines(state.old or b"")) for state in back]
        pieces.append(diff_lines(BUFFER, file.document.lines, longer.lines))
        return replace(report, diff="".join(line for piece in pieces for line in piece))
    following = next_seq(root, note)
    lines = [event_line("unflush", at, seq=render_seqs(seqs))] if seqs else []
    lines += [event_line("restore", at, seq=render_seqs(older), why=TAKEN_BACK)] if older else []
    made = [seq for seq in parse_seqs(record["about"].get("made", "")) if any(seq in state.new_seqs for state in back)]
    lines += [retire_line(made, "", "undone", at)] if made else []
    appends = []
    if lines:
        appends = [append_to_evidence(root, at, [*lines, event_line("flush", at, high=str(following - 1))])]
    if not changes and not appends:
        return report  # nothing could be undone: the flush before it is not reached past this one
    about = {"back": ["".join(entry_lines(entry.signature, entry.text)) for entry in returning]}
    transaction.commit(root, changes, appends, about, drop=name)
    for key, part in (("summary", said), ("headings", headings_of)):
        note_versions(root, key, {state.topic: both(state, part) for state in back}, at, "undo")
    for entry in returning:
        write_log(root, join_lines(entry_lines(entry.signature, entry.text)))
    note_state(root, note, following)
    return report


def both(state: State, part: Callable[[Document], Any]) -> tuple[Any, Any]:
    """A part of a document now, and before; of one that goes, of nothing."""
    return part(parse(state.path, state.now)), part(parse(state.path, state.old or b""))


def why_nothing(root: Path) -> str:
    """Why there is nothing to undo: nothing was flushed yet, or it was all too long ago."""
    if not evidence_high(root):
        return "there is no flush to undo"
    kept = f"undo reaches back over the {UNDO_KEPT} newest changes (a fixed number, in {UNDO}), each once"
    return f"there is no flush left to undo: {kept}; git keeps more, where it keeps the library"


@dataclass(frozen=True, slots=True)
class State:
    """A document before and after the flush that is to be undone, and what it is now."""

    path: str
    new_digest: str
    old: bytes | None
    now: bytes
    edited: bool
    old_seqs: frozenset[int]
    new_seqs: frozenset[int]

    @property
    def topic(self) -> str:
        return topic_of(self.path)


def read_state(root: Path, name: str, number: int, row: Mapping[str, Any]) -> State:
    """One changed document of an undo record."""
    path = row["path"]
    link = root / UNDO / name / str(number)
    old = read_bytes(link) or b"" if row["old"] else None
    content = read_bytes(root / path) or b""
    digest = transaction.digest_at(root / path)
    before = frozenset(seqs_of(parse(path, old or b"").entries))
    after = frozenset(seqs_of(parse(path, content).entries))
    return State(path, row["new"], old, content, digest != row["new"], before, after)


def groups_of(states: Sequence[State]) -> list[list[State]]:
    """The documents that exchanged entries, together: they are undone together or not at all."""
    groups: list[list[State]] = []
    for state in states:
        seqs = state.old_seqs | state.new_seqs
        mine = [group for group in groups if any(seqs & (one.old_seqs | one.new_seqs) for one in group)]
        groups = [group for group in groups if group not in mine]
        groups.append([*(one for group in mine for one in group), state])
    return groups


def recorded_entries(about: Mapping[str, Any]) -> Sequence[Entry]:
    """The flushed entries as they stood in CURRENT."""
    return parse_piece(BUFFER, "".join(about.get("lines", ())).encode("utf-8", "surrogateescape")).entries


def with_entries_first(document: Document, entries: Sequence[Entry]) -> Document:
    """CURRENT with entries put before the later ones."""
    if not entries:
        return document
    ending = ending_of(document.lines)
    lines = [line for entry in entries for line in entry_lines(entry.signature, entry.text, ending)]
    if not document.lines:
        return parse_lines(document.path, (*(line + "\n" for line in ("# CURRENT", "")), *lines))
    at = document.entries[0].span.start if document.entries else len(document.lines)
    if at == 0 and document.lines[0].startswith(BOM):
        at = document.entries[0].span.stop
    return edit(document, [(Span(at, at), lines)])


def settled(group: list[State], index: Finder) -> list[State]:
    """The group, marked as edited where an entry of it has come to stand somewhere else: moved or copied by hand."""
    paths = {state.path for state in group}
    seqs = {seq for state in group for seq in state.old_seqs | state.new_seqs}
    elsewhere = any(unit.path not in paths and unit.topic != CURRENT for seq in seqs for unit in index.standing(seq))
    return [replace(state, edited=True) for state in group] if elsewhere else group


def why_left(state: State) -> str:
    """Why a document was not put back."""
    if state.edited:
        return f"{state.path} was changed since; it is left as it is"
    return f"{state.path} exchanged entries with a document that was changed since; it is left as it is"
