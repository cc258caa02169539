"""CURRENT as a flush finds it: plain bullets signed, entries told apart from what a merge brought back."""

from __future__ import annotations

from pathlib import Path

from infinimem.consolidate.hand import rejoined, sign
from infinimem.consolidate.run import Buffer, Finder, seqs_of
from infinimem.errors import BadPlan, NeedsAttention
from infinimem.model import CURRENT, Change, Document, Entry
from infinimem.plan.paper import Plan
from infinimem.store import transaction
from infinimem.store.buffer import next_seq, note_state, write_log
from infinimem.store.evidence import append_to_evidence, event_line, evidence_conflicts
from infinimem.store.layout import BUFFER
from infinimem.store.read import read_file, read_log
from infinimem.text.document import entry_lines, render, unsigned_entries
from infinimem.text.lines import join_lines
from infinimem.text.signature import render_seqs


def refuse_unreadable(root: Path, document: Document) -> None:
    """A CURRENT or evidence that cannot be understood stops what would change it."""
    problems = [*document.blocking, *evidence_conflicts(root)]
    if problems:
        raise NeedsAttention(str(problems[0]))


def sign_buffer(root: Path, note: int, at: str) -> list[int]:
    """Give the plain bullets typed into CURRENT a signature, and wrapped lines their indent. Under the lock."""
    return sign_file(root, BUFFER, note, at)


def sign_file(root: Path, path: str, note: int, at: str) -> list[int]:
    """Give the plain bullets that a person typed into a file of ours a signature; gives their seqs. Under the lock.

    What is signed in CURRENT goes into the log of writes, what is signed in a topic into evidence, all at once.
    Raises `ChangedOnDisk` when the file is saved meanwhile, `NeedsAttention` when evidence cannot be added to.
    """
    file = read_file(root, path)
    if file.document.blocking:
        return []
    whole, wrapped = file.document, list[int]()
    if path == BUFFER:
        logged = {entry.seq: entry.text for entry in read_log(root).document.entries}
        whole, wrapped = rejoined(file.document, logged)
    loose = unsigned_entries(whole)
    if not loose and not wrapped:
        return []
    if path != BUFFER:
        refuse_unreadable(root, file.document)
    first = max([next_seq(root, note), *(seq + 1 for entry in file.document.entries for seq in entry.seqs)])
    signed, seqs = sign(whole, loose, first, at)
    fresh = [entry for entry in signed.entries if entry.seq in seqs]
    lines = [line for entry in fresh for line in entry_lines(entry.signature, entry.text)]
    appends = []
    if path != BUFFER:
        lines.append(event_line("flush", at, high=str(seqs[-1])))
        appends.append(append_to_evidence(root, at, lines))
    transaction.commit(root, [Change(path, file.digest, render(signed))], appends)
    if path == BUFFER and lines:
        write_log(root, join_lines(tuple(lines)))
    note_state(root, note, first + len(seqs))
    return seqs


def read_buffer(root: Path, document: Document, index: Finder) -> Buffer:
    """CURRENT's entries, told apart from those that a git merge brought back although topics hold them."""
    entries: dict[int, Entry] = {}
    again: list[Entry] = []
    notes: list[str] = []
    taken: set[int] = set()
    recorded: set[int] = set()
    bare: list[Entry] = []
    notes += lost_entries(root, document, index)
    for entry in document.entries:
        if taken.intersection(entry.seqs):
            notes.append(
                f"{BUFFER}:{entry.span.start + 1}: seq {render_seqs(entry.seqs)} stands there twice; "
                "this one stays. `infinimem check --fix` renumbers it"
            )
            continue
        taken.update(entry.seqs)
        held = index.locate(entry.seq)
        if held is None or held.topic == CURRENT:
            fate = index.fate(entry.seq)
            if fate == "retired" and entry.text in index.words(entry.seq):
                again.append(entry)
                continue
            if fate == "retired":
                notes.append(
                    f"{BUFFER}:{entry.span.start + 1}: seq {entry.seq} was retired with other words; it stays. "
                    "`infinimem check --fix` renumbers it"
                )
                continue
            if fate:
                recorded.add(entry.seq)
            entries[entry.seq] = entry
        elif held.text == entry.text:
            again.append(entry)
            if not index.fate(entry.seq):
                bare.append(entry)
        else:
            notes.append(
                f"{BUFFER}:{entry.span.start + 1}: seq {entry.seq} is also {held.path}:{held.line} with other words; "
                "it stays. `infinimem check --fix` renumbers it"
            )
    return Buffer(document, entries, tuple(again), tuple(notes), frozenset(recorded), tuple(bare))


def lost_entries(root: Path, document: Document, index: Finder) -> list[str]:
    """A line for each entry that was written but that neither CURRENT nor evidence holds any more."""
    there = set(seqs_of(document.entries))
    return [
        f"seq {entry.seq} was written but is gone from {BUFFER}; bring it back: infinimem recover {entry.seq}"
        for entry in read_log(root).document.entries
        if there.isdisjoint(entry.seqs) and index.locate(entry.seq) is None and not index.fate(entry.seq)
    ]


def refuse_other_buffer(plan: Plan, buffer: Buffer) -> None:
    """A plan is for the entries it was made for; entries written since simply wait."""
    gone = [seq for seq in plan.seqs if seq not in {s for entry in buffer.entries.values() for s in entry.seqs}]
    if gone:
        raise BadPlan(f"the plan is for another buffer: {render_seqs(gone)} not in {BUFFER}. Make a new plan")
