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
from infinimem.store.buffer import evidence_files, next_seq, note_state, noted_at, read_if_there, write_log
from infinimem.store.evidence import append_to_evidence, event_line, evidence_conflicts, read_records
from infinimem.store.files import write_private
from infinimem.store.layout import BUFFER, EDIT_LOCK, EVIDENCE, LOOKED, TOPICS
from infinimem.store.lock import is_free
from infinimem.store.read import list_files, read_file, read_log
from infinimem.text.document import CONTINUATION, edit, entry_lines, render, unsigned_entries
from infinimem.text.lines import is_blank, join_lines
from infinimem.text.signature import parse_seqs

MARGIN = 2 * 10**9
"""Nanoseconds: some file systems keep time by the second only."""
RECENT = 2
"""Evidence files, newest last, in which a line is looked for that was signed a moment ago."""
BY_HAND = re.compile(rb"^- <seq=([0-9]{1,18}), source=hand, observed=[^,>\n]*> ([^\r\n]*)", re.MULTILINE)
SEQS = re.compile(rb"<seq=([0-9+-]+)")
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
    again = signed_before(root, loose) if path != BUFFER else {}
    whole, loose = with_signatures(whole, loose, again)
    first = max([next_seq(root, note), *(seq + 1 for entry in whole.entries for seq in entry.seqs)])
    signed, seqs = sign(whole, loose, first, noted_at(now))
    fresh = [entry for entry in signed.entries if entry.seq in seqs]
    lines = [line for entry in fresh for line in entry_lines(entry.signature, entry.text)]
    appends = []
    if path != BUFFER and seqs:
        at = timestamp(now)
        lines.append(event_line("flush", at, high=str(seqs[-1])))
        appends.append(append_to_evidence(root, at, lines))
    transaction.commit(root, [Change(path, file.digest, render(signed))], appends)
    if path == BUFFER and lines:
        write_log(root, join_lines(tuple(lines)))
    note_state(root, note, first + len(seqs))
    return sorted([*seqs, *(signature.seqs[0] for signature in again.values())])


def signed_before(root: Path, loose: Sequence[Entry]) -> dict[int, Signature]:
    """The signatures that plain bullets had already, by the line on which each stands; those alike in their order.

    An editor that had the file open when they were signed has saved over it what it knew. So it is where a hand's line
    of these very words stands nowhere any more, and nothing has become of it since.
    """
    firsts = {entry.text.split("\n")[0].encode("utf-8", "surrogateescape") for entry in loose}
    said = [read_if_there(path) for path in evidence_files(root)[-RECENT:]]
    seqs = {int(match[1]) for content in said for match in BY_HAND.finditer(content) if match[2] in firsts}
    if not seqs:
        return {}
    for path in list_files(root):
        if not path.startswith(f"{EVIDENCE}/"):
            for match in SEQS.finditer(read_if_there(root / path)):
                seqs.difference_update(parse_seqs(match[1].decode()))
    records = read_records(root, seqs)
    waiting: dict[str, list[Signature]] = {}
    for seq in sorted(seqs):
        newest = records[seq].newest
        if newest is not None and not records[seq].events and len(records[seq].entries) == 1:
            waiting.setdefault(newest.text, []).append(newest.signature)
    found: dict[int, Signature] = {}
    for entry in loose:
        if waiting.get(entry.text):
            found[entry.span.start] = waiting[entry.text].pop(0)
    return found


def with_signatures(
    document: Document, loose: tuple[Entry, ...], again: Mapping[int, Signature]
) -> tuple[Document, tuple[Entry, ...]]:
    """The document with some plain bullets signed as they were before; and the bullets that are plain still."""
    if not again:
        return document, loose
    edits = [
        (Span(at, at + 1), [signed_line(document.lines[at], signature)]) for at, signature in sorted(again.items())
    ]
    return edit(document, edits), tuple(entry for entry in loose if entry.span.start not in again)


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
        signature = Signature((seq,), (("source", "hand"), ("observed", noted)))
        line = signed_line(document.lines[entry.span.start], signature)
        edits.append((Span(entry.span.start, entry.span.start + 1), [line]))
        seqs.append(seq)
    return edit(document, edits), seqs


def signed_line(line: str, signature: Signature) -> str:
    """A plain bullet's first line with a signature."""
    head = line[0] + entry_lines(signature, "")[0].removesuffix(" \n")[1:]
    body = line[1:].lstrip(" \t")
    return f"{head} {body}"
