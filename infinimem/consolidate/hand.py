"""What people typed into the files: plain bullets become entries, wrapped lines their entry's again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from infinimem.errors import ChangedOnDisk, StorageFailed
from infinimem.model import Change, Document, Entry, Signature, Span
from infinimem.store import transaction
from infinimem.store.buffer import next_seq, note_state, read_if_there
from infinimem.store.evidence import append_to_evidence, event_line, evidence_conflicts
from infinimem.store.files import write_private
from infinimem.store.layout import STATE
from infinimem.store.read import list_files, read_file
from infinimem.text.document import CONTINUATION, edit, entry_lines, render, unsigned_entries
from infinimem.text.lines import is_blank

LOOKED = f"{STATE}/looked"
"""When topics were last looked through for plain bullets, as the change time of the newest."""
MARGIN = 2 * 10**9
"""Nanoseconds: some file systems keep time by the second only."""
PLAIN_BULLET = re.compile(rb"^[-*+][ \t]+(?!\[.\][ \t]|\\?<)\S", re.MULTILINE)


def sign_topics(root: Path, note: int, at: str) -> list[int]:
    """Sign the plain bullets in topics that changed since this was last done; gives their seqs. Under the lock.

    Only files changed since are opened, only those with such a line are parsed: where nobody typed it costs next to
    nothing. What another program saves in this very moment is left for the next time.
    """
    if evidence_conflicts(root):
        return []
    seen = {path: status for path, status in list_files(root).items() if path.startswith("topics/")}
    looked = noted_time(root)
    signed: list[int] = []
    for path, status in seen.items():
        if status.ctime_ns >= looked - MARGIN:
            with suppress(ChangedOnDisk, StorageFailed):
                signed += sign_topic(root, note, path, at)
    newest = max((status.ctime_ns for status in seen.values()), default=0)
    if newest > looked:
        write_private(root / LOOKED, str(newest).encode())
    return signed


def noted_time(root: Path) -> int:
    """The change time that was noted last; 0 without a note."""
    content = read_if_there(root / LOOKED)
    return int(content) if content.isdigit() else 0


def sign_topic(root: Path, note: int, path: str, at: str) -> list[int]:
    """Sign the plain bullets of one topic, and put them into evidence."""
    if PLAIN_BULLET.search(read_if_there(root / path)) is None:
        return []
    file = read_file(root, path)
    loose = () if file.document.blocking else unsigned_entries(file.document)
    if not loose:
        return []
    first = next_seq(root, note)
    document, seqs = sign(file.document, loose, first, at)
    entries = [entry for entry in document.entries if entry.seq in seqs]
    lines = [line for entry in entries for line in entry_lines(entry.signature, entry.text)]
    high = event_line("flush", at, high=str(seqs[-1]))
    transaction.commit(
        root, [Change(path, file.digest, render(document))], [append_to_evidence(root, at, [*lines, high])]
    )
    note_state(root, note, first + len(seqs))
    return seqs


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


def sign(document: Document, loose: Sequence[Entry], first: int, at: str) -> tuple[Document, list[int]]:
    """The document with plain bullets signed from `first` on; only the head of each line changes."""
    edits = []
    seqs = []
    for seq, entry in enumerate(loose, first):
        line = document.lines[entry.span.start]
        body = line[1:].lstrip(" \t")
        signature = Signature((seq,), (("source", "hand"), ("observed", at)))
        head = line[0] + entry_lines(signature, "")[0].removesuffix(" \n")[1:]
        edits.append((Span(entry.span.start, entry.span.start + 1), [f"{head} {body}"]))
        seqs.append(seq)
    return edit(document, edits), seqs
