"""CURRENT and the lock: held with everything mended that a killed process left, the seqs that are given, the keys.

Entries are appended in `append.py`; the note that makes it safe and cheap is `note.py`.
"""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from infinimem.errors import NeedsAttention, StorageFailed
from infinimem.store.files import PRIVATE_FILE, sync, write_all
from infinimem.store.layout import (
    BUFFER,
    COMMIT,
    EDIT_LOCK,
    EVIDENCE,
    FLUSH_LOCK,
    INDEX,
    KEPT,
    LOCK,
    LOG,
    LOOKED,
    MANIFEST,
    STATE,
    UNDO,
    WATCH_LOCK,
    evidence_names,
)
from infinimem.store.lock import exclusive, is_stand_in
from infinimem.store.note import (
    evidence_looks,
    fingerprint,
    get_note,
    log_size,
    noted_seq,
    read_note,
    set_ready,
    set_rest,
)
from infinimem.text.signature import parse_seqs

OWN = frozenset({LOCK, FLUSH_LOCK, WATCH_LOCK, EDIT_LOCK, LOG, LOOKED, COMMIT, MANIFEST, UNDO, KEPT, INDEX})
"""What is written in the folder of our own state."""
FIELD = rb'[A-Za-z_][A-Za-z0-9_.-]*=(?:"(?:[^"\\\n]|\\[^\n])*"|[^,<>"\n]*), *'
SIGNED = re.compile(
    rb"^(?:\xef\xbb\xbf)?([ \t]*)[-*+][ \t]+\\?<(?:"
    + FIELD
    + rb")*?seq=([0-9]+(?:-[0-9]+)?(?:\+[0-9]+(?:-[0-9]+)?)*)[,>]",
    re.MULTILINE,
)
HIGH = re.compile(rb"^[-*+][ \t]+\\?<event=flush,\s+high=([0-9]+)", re.MULTILINE)


@contextmanager
def hold(root: Path, *, wait: float = 600.0, reading: bool = False) -> Iterator[int]:
    """Hold the library's lock with everything mended that a killed process left behind.

    Whoever is only `reading` gets a library as it is where nothing can be written.
    """
    refuse_links(root)
    with exclusive(root / LOCK, wait=wait, reading=reading) as note:
        if reading and is_stand_in(note):
            yield note
            return
        mend_append(root, note)
        if os.path.exists(f"{root}/{MANIFEST}") or os.path.exists(f"{root}/{COMMIT}"):  # noqa: PTH110
            from infinimem.store.transaction import recover

            recover(root)
        yield note


def refuse_links(root: Path) -> None:
    """Nothing outside the library is ever written: a repository may bring links where our own files belong."""
    for name, what in ((EVIDENCE, "move the real folder here"), (STATE, "remove it, it is made anew")):
        if os.path.islink(f"{root}/{name}"):  # noqa: PTH114 - a Path for each would be a fifth of a write
            raise NeedsAttention(f"{root}/{name} is a symbolic link; {what}. Nothing was written")
    try:
        listing = os.scandir(f"{root}/{STATE}")
    except OSError:  # what it is needed for will say why
        return
    with listing:
        for entry in listing:
            if entry.is_symlink() and f"{STATE}/{entry.name}" in OWN:
                raise NeedsAttention(
                    f"{entry.path} is a symbolic link; remove it, it is made anew. Nothing was written"
                )


def noted_at(now: datetime) -> str:
    """When an entry is written down: UTC to the microsecond, so that with its seq it is like no other clone's."""
    form = "%Y-%m-%dT%H:%M:%S.%fZ" if now.microsecond else "%Y-%m-%dT%H:%M:%SZ"
    return now.astimezone(UTC).strftime(form)


def with_ending(content: bytes, ending: str) -> bytes:
    """Lines with the document's own terminator."""
    return content.replace(b"\n", b"\r\n") if ending == "\r\n" else content


def open_log(root: Path) -> int:
    """The log of writes, open for appending."""
    try:
        return os.open(root / LOG, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE)
    except OSError as error:
        raise StorageFailed(f"{root / LOG} cannot be opened: {error.strerror}; nothing was stored") from error


def mend_append(root: Path, note: int) -> None:
    """Cut off an append that its writer did not live to finish; what was edited since is left alone."""
    words = get_note(note).split()
    if not words or words[0] != "append":
        return
    inode, offset, logged, length = (int(words[at]) for at in (1, 2, 5, 6))
    lead = b"" if words[3] == "-" else bytes.fromhex(words[3])
    try:
        descriptor = os.open(root / BUFFER, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return
    try:
        log = open_log(root)
        try:
            content = os.pread(log, length, logged)
            here = os.fstat(descriptor)
            whole = lead + with_ending(content, "\r\n" if words[4] == "crlf" else "\n")
            tail = os.pread(descriptor, len(whole) + 1, offset) if here.st_ino == inode else whole
            if len(content) < length:  # CURRENT comes after the log, so it was not begun
                os.ftruncate(log, logged)
            elif len(tail) < len(whole) and whole.startswith(tail) and here.st_size == offset + len(tail):
                os.ftruncate(descriptor, offset)
                sync(descriptor)
                os.ftruncate(log, logged)
            set_rest(note, int(words[7]) if len(words) > 7 else 1)  # an older version did not say which seq comes next
        finally:
            os.close(log)
    except OSError as error:
        raise StorageFailed(f"{BUFFER} ends in half an entry that cannot be cut off: {error.strerror}") from error
    finally:
        os.close(descriptor)


def write_log(root: Path, content: bytes) -> None:
    """The second copy. It is no promise of durability (CURRENT is), so it is not synced."""
    try:
        descriptor = open_log(root)
        try:
            write_all(descriptor, content)
        finally:
            os.close(descriptor)
    except (OSError, StorageFailed):  # the entry itself is safe in CURRENT
        pass


def note_state(root: Path, note: int, following: int) -> None:
    """Leave the note after a commit that changed CURRENT or evidence."""
    path = root / BUFFER
    here = stat_if_there(path)
    if here is None:
        return
    with path.open("rb") as file:
        ending = "\r\n" if file.readline().endswith(b"\r\n") else "\n"
        file.seek(max(0, here.st_size - 1))
        whole = file.read(1) == b"\n"
    looks = fingerprint(here, log_size(root), evidence_looks(root)) if whole else "unknown"
    set_ready(note, looks, ending, following)


def reserve_seqs(root: Path, note: int, following: int) -> None:
    """Have the next write begin at `following`: the seqs before it are somebody's, even if nothing comes of them."""
    note_state(root, note, following)
    if noted_seq(note) < following:
        set_rest(note, following)


def next_seq(root: Path, note: int) -> int:
    """The seq that the next write will get. Call it under the lock that `note` is."""
    here = stat_if_there(root / BUFFER)
    known = read_note(note, fingerprint(here, log_size(root), evidence_looks(root))) if here is not None else None
    if known is not None:
        return known[0]
    content = read_if_there(root / BUFFER)
    logged = highest_seq(read_if_there(root / LOG))
    return max(highest_seq(content), logged, evidence_high(root), noted_seq(note) - 1) + 1


def seqs_in(content: bytes) -> set[int]:
    """The seqs of every line that looks signed, nested ones included."""
    return {seq for match in SIGNED.finditer(content) for seq in parse_seqs(match[2].decode())}


def highest_seq(content: bytes) -> int:
    """The largest seq of an entry; 0 for none.

    Indented lines are usually an entry's own text: only where one would matter is the document parsed.
    """
    highest = nested = 0
    for match in SIGNED.finditer(content):
        seqs = parse_seqs(match[2].decode())
        if seqs and match[1]:
            nested = max(nested, *seqs)
        elif seqs:
            highest = max(highest, *seqs)
    if nested > highest:
        from infinimem.text.document import parse

        return max([highest, *(seq for entry in parse(BUFFER, content).entries for seq in entry.seqs)])
    return highest


def evidence_files(root: Path) -> list[Path]:
    """The evidence files, oldest month first."""
    return [root / EVIDENCE / name for name in evidence_names(root)]


def evidence_high(root: Path) -> int:
    """The largest high-water mark in evidence. Reads all of it: called only when evidence has changed."""
    highest = 0
    for path in evidence_files(root):
        for match in scan(path, HIGH, b"event=flush"):
            highest = max(highest, int(match[1]))
    return highest


def scan(path: Path, pattern: re.Pattern[bytes], mark: bytes = b"") -> Iterator[re.Match[bytes]]:
    """Matches of a pattern in a file that may be too large to read into memory.

    With a mark only those at the beginning of lines that hold it: to look for some bytes costs a fifteenth.
    """
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                found = pattern.finditer(content) if not mark else marked(content, pattern, mark)
                yield from [_Found(match) for match in found]  # type: ignore[misc]
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageFailed(f"{path} cannot be read: {error.strerror}; check its permissions") from error


def marked(content: mmap.mmap, pattern: re.Pattern[bytes], mark: bytes) -> Iterator[re.Match[bytes]]:
    """Matches at the beginning of the lines that hold a mark."""
    at = content.find(mark)
    while at >= 0:
        match = pattern.match(content, content.rfind(b"\n", 0, at) + 1)
        if match is not None:
            yield match
        end = content.find(b"\n", at)
        at = content.find(mark, end) if end >= 0 else -1


class _Found:
    """A match that outlives its memory map."""

    def __init__(self, match: re.Match[bytes]) -> None:
        self.groups = (match[0], *match.groups())
        self.at = match.start()

    def __getitem__(self, number: int) -> bytes:
        return self.groups[number]


def find_key(root: Path, key: str) -> dict[int, str]:
    """The seqs, and the first lines, of the entries that were written with this `--key`; {} when there are none.

    A line that only talks of such a key is no match: candidates are read as the signatures that they are.
    """
    from infinimem.text.signature import parse_signature, render_value

    needle = re.compile(
        rb"^[-*+][ \t]+(\\?<[^\n]*key=" + re.escape(render_value(key).encode()) + rb"[,>][^\n]*)", re.MULTILINE
    )
    for path in (root / BUFFER, *reversed(evidence_files(root))):
        found: dict[int, str] = {}
        for match in scan(path, needle, b"key=" + render_value(key).encode()):
            line = match[1].decode("utf-8", "surrogateescape")
            parsed = parse_signature(line)
            if parsed is not None and parsed[0].get("key") == key:
                signature, end = parsed
                found.update((seq, line[end:].removeprefix(" ")) for seq in signature.seqs)
        if found:
            return dict(sorted(found.items()))
    return {}


def read_if_there(path: Path) -> bytes:
    """The file's bytes; b"" when there is none."""
    from infinimem.store.files import read_bytes

    return read_bytes(path) or b""


def stat_if_there(path: Path) -> os.stat_result | None:
    """The file's status; None when there is none."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None
