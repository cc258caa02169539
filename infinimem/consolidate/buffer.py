"""CURRENT as a flush finds it: plain bullets signed, entries told apart from what a merge brought back."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from infinimem.consolidate.run import Buffer, Finder, seqs_of
from infinimem.errors import BadPlan, NeedsAttention, StorageFailed
from infinimem.model import CURRENT, Document, Entry
from infinimem.plan.paper import Plan
from infinimem.store.buffer import hold
from infinimem.store.evidence import evidence_conflicts
from infinimem.store.layout import BUFFER
from infinimem.store.read import read_file, read_log
from infinimem.text.signature import render_seqs

TOGETHER = 500
"""Entries that the index is asked about at once."""


def refuse_unreadable(root: Path, document: Document) -> None:
    """A CURRENT or evidence that cannot be understood stops what would change it."""
    problems = [*document.blocking, *evidence_conflicts(root)]
    if problems:
        raise NeedsAttention(str(problems[0]))


def read_buffer(root: Path, document: Document, index: Finder, most: int = 0, *, whole: bool = True) -> Buffer:
    """CURRENT's entries, told apart from those that a git merge brought back although topics hold them.

    With `most` no more are looked at once there are so many. Of a document that is not the `whole` of CURRENT
    nothing is said about what is missing in it.
    """
    entries: dict[int, Entry] = {}
    again: list[Entry] = []
    notes: list[str] = []
    taken: set[int] = set()
    recorded: set[int] = set()
    bare: list[Entry] = []
    unseen = 0
    if whole:
        notes += lost_entries(root, document, index)
    met: Collection[int] = ()
    for at, entry in enumerate(document.entries):
        if at % TOGETHER == 0:
            met = index.met(seqs_of(document.entries[at : at + TOGETHER]))
        if most and len(entries) == most:
            unseen = len(document.entries) - at
            break
        if taken.intersection(entry.seqs):
            notes.append(
                f"{BUFFER}:{entry.span.start + 1}: seq {render_seqs(entry.seqs)} stands there twice; "
                "this one stays. `infinimem check --fix` renumbers it"
            )
            continue
        taken.update(entry.seqs)
        if entry.seq not in met:
            entries[entry.seq] = entry
            continue
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
    return Buffer(document, entries, tuple(again), tuple(notes), frozenset(recorded), tuple(bare), unseen)


def lost_entries(root: Path, document: Document, index: Finder) -> list[str]:
    """A line for each entry that was written but that neither CURRENT nor evidence holds any more.

    Somebody may write between the reading of CURRENT and that of the log: what seems gone is looked for under the lock.
    """
    there = set(seqs_of(document.entries))
    gone = gone_from(root, there, index)
    if gone:
        with suppress(StorageFailed), hold(root):  # a read-only library is taken as it is
            there.update(seqs_of(read_file(root, BUFFER).document.entries))
            gone = gone_from(root, there, index)
    return [f"seq {seq} was written but is gone from {BUFFER}; bring it back: infinimem recover {seq}" for seq in gone]


def gone_from(root: Path, there: Collection[int], index: Finder) -> list[int]:
    """The seqs of entries in the log of writes that are not there, nor anywhere that the index knows of."""
    return [
        entry.seq
        for entry in read_log(root).document.entries
        if not any(seq in there for seq in entry.seqs) and index.locate(entry.seq) is None and not index.fate(entry.seq)
    ]


def refuse_other_buffer(plan: Plan, buffer: Buffer) -> None:
    """A plan is for the entries it was made for; entries written since simply wait."""
    gone = [seq for seq in plan.seqs if seq not in {s for entry in buffer.entries.values() for s in entry.seqs}]
    if gone:
        raise BadPlan(f"the plan is for another buffer: {render_seqs(gone)} not in {BUFFER}. Make a new plan")
