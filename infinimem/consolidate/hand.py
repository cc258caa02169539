"""What people typed into the files: plain bullets become entries, wrapped lines their entry's again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from infinimem.consolidate.buffer import refuse_unreadable
from infinimem.consolidate.due import timestamp
from infinimem.errors import ChangedOnDisk, StorageFailed
from infinimem.model import Change, Document, Entry, Signature, Span, topic_of
from infinimem.store import transaction
from infinimem.store.buffer import next_seq, note_state, noted_at, read_if_there, write_log
from infinimem.store.evidence import append_to_evidence, event_line, evidence_conflicts
from infinimem.store.files import write_private
from infinimem.store.layout import BUFFER, EDIT_LOCK, LOOKED, TOPICS
from infinimem.store.lock import is_free
from infinimem.store.read import list_files, read_file, read_log
from infinimem.text.document import CONTINUATION, edit, entry_lines, render, unsigned_entries
from infinimem.text.lines import is_blank, join_lines

MARGIN = 2 * 10**9
"""Nanoseconds: some file systems keep time by the second only."""
PLAIN_BULLET = re.compile(rb"^[-*+][ \t]+(?!\[.\][ \t]|\\?<)\S", re.MULTILINE)


def sign_buffer(root: Path, note: int, now: datetime) -> list[int]:
    """Give the plain bullets typed into CURRENT a signature, and wrapped lines their indent. Under the lock."""
    return sign_file(root, BUFFER, note, now)


def sign_file(root: Path, path: str, note: int, now: datetime) -> list[int]:
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
    signed, seqs = sign(whole, loose, first, noted_at(now))
    fresh = [entry for entry in signed.entries if entry.seq in seqs]
    lines = [line for entry in fresh for line in entry_lines(entry.signature, entry.text)]
    appends = []
    if path != BUFFER:
        at = timestamp(now)
        lines.append(event_line("flush", at, high=str(seqs[-1])))
        appends.append(append_to_evidence(root, at, lines))
    transaction.commit(root, [Change(path, file.digest, render(signed))], appends)
    if path == BUFFER and lines:
        write_log(root, join_lines(tuple(lines)))
    note_state(root, note, first + len(seqs))
    return seqs


def sign_topics(root: Path, note: int, now: datetime) -> tuple[str, ...]:
    """Sign the plain bullets in topics that changed since this was last done; gives those topics. Under the lock.

    Only files changed since are opened, only those with such a line are parsed: where nobody typed it costs next to
    nothing. What a program saves in this very moment, or `infinimem edit` has open, is left for the next time.
    """
    if evidence_conflicts(root) or not is_free(root / EDIT_LOCK):
        return ()
    seen = {path: status for path, status in list_files(root).items() if path.startswith(f"{TOPICS}/")}
    looked = noted_time(root)
    signed: list[str] = []
    for path, status in seen.items():
        if status.ctime_ns < looked - MARGIN or PLAIN_BULLET.search(read_if_there(root / path)) is None:
            continue
        with suppress(ChangedOnDisk, StorageFailed):
            if sign_file(root, path, note, now):
                signed.append(topic_of(path))
    newest = max((status.ctime_ns for status in seen.values()), default=0)
    if newest > looked:
        with suppress(OSError):  # then all are looked at once more
            write_private(root / LOOKED, str(newest).encode())
    return tuple(signed)


def noted_time(root: Path) -> int:
    """The change time that was noted last; 0 without a note."""
    content = read_if_there(root / LOOKED)
    return int(content) if content.isdigit() else 0


def rejoined(document: Document, words: Mapping[int, str]) -> tuple[Document, list[int]]:
    """The document with the lines indented that wrapping at a margin took out of their entries; and whose they are.

    `words` is what each entry said: only where it and the unindented lines below it say just that are they its own.
    """
    edits: list[tuple[Span, Sequence[str]]] = []
    seqs: list[int] = []
    for entry in document.entries:
        wanted = words.get(entry.seq, entry.text).split()
        said = entry.text.split()
        if said == wanted or said != wanted[: len(said)]:
            continue
        stop = entry.span.stop
        while stop < len(document.lines) and said != wanted and not is_blank(document.lines[stop]):
            said += document.lines[stop].split()
            stop += 1
        if said == wanted:
            lines = document.lines[entry.span.stop : stop]
            edits.append((Span(entry.span.stop, stop), [CONTINUATION + line for line in lines]))
            seqs += entry.seqs
    return (edit(document, edits) if edits else document), seqs


def sign(document: Document, loose: Sequence[Entry], first: int, noted: str) -> tuple[Document, list[int]]:
    """The document with plain bullets signed from `first` on; only the head of each line changes."""
    edits = []
    seqs = []
    for seq, entry in enumerate(loose, first):
        line = document.lines[entry.span.start]
        body = line[1:].lstrip(" \t")
        signature = Signature((seq,), (("source", "hand"), ("observed", noted)))
        head = line[0] + entry_lines(signature, "")[0].removesuffix(" \n")[1:]
        edits.append((Span(entry.span.start, entry.span.start + 1), [f"{head} {body}"]))
        seqs.append(seq)
    return edit(document, edits), seqs
