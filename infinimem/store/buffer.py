"""CURRENT: appending entries so that they are on disk, whole and once, when `append` returns.

Everything happens under the library's lock. The lock file's own content is the note that makes it safe
and cheap: while an append is under way it says where, so that whoever takes the lock next can cut off
a torn one; afterwards it says what the files looked like, so that the next write need not read them.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from infinimem.errors import NeedsAttention, StorageFailed
from infinimem.model import Entry, Signature
from infinimem.store.layout import (
    BUFFER,
    BUFFER_HEAD,
    COMMIT,
    EVIDENCE,
    LOCK,
    LOG,
    MANIFEST,
    PRIVATE_FILE,
    sync,
    write_all,
)
from infinimem.store.lock import exclusive
from infinimem.text.signature import parse_seqs, render_signature

HIGHEST_SEQ = 10**18 - 1
LARGEST_BUFFER_COMPARED = 4 << 20
MOST_COMPARED = 1000
FIELD = rb'[A-Za-z_][A-Za-z0-9_.-]*=(?:"(?:[^"\\\n]|\\[^\n])*"|[^,<>"\n]*), ?'
SIGNED = re.compile(
    rb"^(?:\xef\xbb\xbf)?([ \t]*)[-*+] <(?:"
    + FIELD
    + rb")*?seq=([0-9]+(?:-[0-9]+)?(?:\+[0-9]+(?:-[0-9]+)?)*)[,>]",
    re.MULTILINE,
)
HIGH = re.compile(rb"^- <event=flush, high=([0-9]+)", re.MULTILINE)

Draft = tuple[Signature, str]
"""An entry still without its seq: fields in order, and the words."""


@contextmanager
def hold(root: Path, *, wait: float = 600.0) -> Iterator[int]:
    """Hold the library's lock with everything mended that a killed process left behind."""
    with exclusive(root / LOCK, wait=wait) as note:
        mend_append(root, note)
        if (root / MANIFEST).exists() or (root / COMMIT).exists():
            from infinimem.store.transaction import recover

            recover(root)
        yield note


@dataclass(frozen=True, slots=True)
class Appended:
    """The seqs in order; whether they were stored now; and for repeats of words in CURRENT the earlier seq."""

    seqs: tuple[int, ...]
    stored: bool = True
    repeats: tuple[tuple[int, int], ...] = ()


def append(root: Path, drafts: Sequence[Draft], key: str = "") -> Appended:
    """Append entries to CURRENT.

    One lock, one write, one fsync, whatever the number. With `key`, entries that carry it already are
    returned instead and nothing is stored. Raises `StorageFailed` with the state as before.
    """
    with hold(root) as note:
        if key:
            known = find_key(root, key)
            if known:
                return Appended(tuple(known), stored=False)
        earlier = repeats(root, drafts)
        seqs = store(root, note, drafts)
    return Appended(tuple(seqs), repeats=tuple((seqs[at], seq) for at, seq in earlier.items()))


def repeats(root: Path, drafts: Sequence[Draft]) -> dict[int, int]:
    """For the drafts (by place) whose very words stand in CURRENT already, the seq that has them."""
    found: dict[int, int] = {}
    seen = stat_if_there(root / BUFFER)
    if seen is None or seen.st_size > LARGEST_BUFFER_COMPARED or len(drafts) > MOST_COMPARED:
        return found
    content = read_if_there(root / BUFFER)
    for at, (_, text) in enumerate(drafts):
        place = content.find(b"> " + text.replace("\n", "\n  ").encode() + b"\n")
        if place >= 0:
            match = SIGNED.match(content, content.rfind(b"\n", 0, place) + 1)
            seqs = parse_seqs(match[2].decode()) if match else ()
            if seqs:
                found[at] = seqs[0]
    return found


def store(root: Path, note: int, drafts: Sequence[Draft]) -> list[int]:
    """The append itself, under the lock that `note` is."""
    path = root / BUFFER
    seqs: list[int] = []
    for _ in range(20):
        descriptor = open_buffer(path)
        try:
            size = os.fstat(descriptor).st_size
            first, ending, lead = survey(root, note, descriptor, size)
            if not seqs:
                if first + len(drafts) > HIGHEST_SEQ:
                    raise NeedsAttention(
                        f"{BUFFER}: the seq {first - 1} leaves no room for more; correct that line"
                    )
                seqs = list(range(first, first + len(drafts)))
            lines = [
                render_draft(signature, text, (seq,), ending)
                for seq, (signature, text) in zip(seqs, drafts, strict=True)
            ]
            content = "".join(lines).encode("utf-8")
            write_at_end(note, descriptor, size, lead + content)
            if still_there(path, descriptor):
                write_log(root, content.replace(b"\r\n", b"\n") if ending == "\r\n" else content)
                leave_note(root, note, os.fstat(descriptor), seqs[-1] + 1, ending)
                return seqs
        finally:
            os.close(descriptor)
        # An editor put another file in its place meanwhile; did it see the new lines?
        if path.exists() and all(seq in seqs_in(path.read_bytes()) for seq in seqs):
            write_log(root, content)
            return seqs
    raise NeedsAttention(f"{path}: another program keeps replacing this file; close it and write again")


def append_known(root: Path, note: int, entries: Sequence[Entry]) -> None:
    """Put entries that have their seqs already at the end of CURRENT. Under the lock that `note` is."""
    descriptor = open_buffer(root / BUFFER)
    try:
        size = os.fstat(descriptor).st_size
        following, ending, lead = survey(root, note, descriptor, size)
        content = "".join(render_draft(entry.signature, entry.text, entry.seqs, ending) for entry in entries)
        write_at_end(note, descriptor, size, lead + content.encode("utf-8", "surrogateescape"))
        leave_note(root, note, os.fstat(descriptor), following, ending)
    finally:
        os.close(descriptor)


def render_draft(signature: Signature, text: str, seqs: tuple[int, ...], ending: str) -> str:
    """An entry's lines, as `text.document.entry_lines` makes them (kept apart: it would load YAML)."""
    head = render_signature(Signature(seqs, signature.fields))
    return f"- {head} " + text.replace("\n", ending + "  ") + ending


def open_buffer(path: Path) -> int:
    """CURRENT, open for appending, made if missing."""
    try:
        return os.open(
            path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE
        )
    except OSError as error:
        why = "it is a symbolic link" if path.is_symlink() else error.strerror
        raise StorageFailed(f"{path} cannot be opened for writing: {why}; nothing was written") from error


def survey(root: Path, note: int, descriptor: int, size: int) -> tuple[int, str, bytes]:
    """The next seq, CURRENT's line ending, and what must come before an appended line."""
    known = read_note(root, note, os.fstat(descriptor))
    if known is not None:
        return known[0], known[1], b""
    content = os.pread(descriptor, size, 0)
    ending = "\r\n" if content[: content.find(b"\n") + 1].endswith(b"\r\n") else "\n"
    lead = b""
    if not content:
        lead = BUFFER_HEAD
    elif not content.endswith(b"\n"):
        lead = ending.encode()
    log = read_if_there(root / LOG)
    highest = max(highest_seq(content), highest_seq(log), evidence_high(root))
    return highest + 1, ending, lead


def write_at_end(note: int, descriptor: int, size: int, content: bytes) -> None:
    """Append under a note of where, and have it on disk; on any failure the file is as it was."""
    here = os.fstat(descriptor)
    try:
        set_note(note, f"append {here.st_ino} {size} {len(content)}")
    except OSError as error:
        raise StorageFailed(f"{LOCK} cannot be written: {error.strerror}; nothing was stored") from error
    try:
        write_all(descriptor, content)
        sync(descriptor)
    except BaseException as error:
        what = take_back(note, descriptor, size)
        if isinstance(error, OSError):
            raise StorageFailed(f"{BUFFER} cannot be written: {error.strerror}; {what}") from error
        raise


def take_back(note: int, descriptor: int, size: int) -> str:
    """Undo a failed append; says how that went. A full disk can still truncate, a read-only one cannot."""
    try:
        os.ftruncate(descriptor, size)
    except OSError:
        return f"part of it may stand at the end of {BUFFER}; the next command puts that right"
    with contextlib.suppress(OSError):
        set_note(note, "")
    return "nothing was stored"


def mend_append(root: Path, note: int) -> None:
    """Cut off an append that its writer did not live to finish."""
    words = os.pread(note, 4096, 0).split()
    if len(words) != 4 or words[0] != b"append":
        return
    inode, offset, length = (int(word) for word in words[1:])
    try:
        descriptor = os.open(root / BUFFER, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        here = os.fstat(descriptor)
        if here.st_ino == inode and offset < here.st_size < offset + length:
            os.ftruncate(descriptor, offset)
            sync(descriptor)
    except OSError as error:
        raise StorageFailed(f"{BUFFER} ends in half an entry that cannot be cut off: {error.strerror}") from error
    finally:
        os.close(descriptor)


def still_there(path: Path, descriptor: int) -> bool:
    """Whether the open file is still what CURRENT names."""
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    return there.st_ino == os.fstat(descriptor).st_ino


def write_log(root: Path, content: bytes) -> None:
    """The second copy. It is no promise of durability (CURRENT is), so it is not synced."""
    try:
        descriptor = os.open(root / LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
        try:
            write_all(descriptor, content)
        finally:
            os.close(descriptor)
    except OSError:  # the entry itself is safe in CURRENT
        pass


def set_note(note: int, text: str) -> None:
    """Replace the lock file's content."""
    content = text.encode()
    os.pwrite(note, content, 0)
    os.ftruncate(note, len(content))


def leave_note(root: Path, note: int, here: os.stat_result, following: int, ending: str) -> None:
    """Write down what the files look like now and which seq comes next."""
    mark = "crlf" if ending == "\r\n" else "lf"
    with contextlib.suppress(OSError):  # the note only saves work: without it the next write looks for itself
        set_note(note, f"ready {fingerprint(root, here)} {mark} {following}")


def read_note(root: Path, note: int, here: os.stat_result) -> tuple[int, str] | None:
    """The next seq and line ending, if nothing has changed since the note was left."""
    words = os.pread(note, 4096, 0).decode("ascii", "replace").split()
    if len(words) < 4 or words[0] != "ready" or not words[-1].isdigit():
        return None
    if " ".join(words[1:-2]) != fingerprint(root, here):
        return None
    return int(words[-1]), "\r\n" if words[-2] == "crlf" else "\n"


def fingerprint(root: Path, here: os.stat_result) -> str:
    """What CURRENT, the log and evidence look like from outside, in one line."""
    log = stat_if_there(root / LOG)
    parts = [here.st_ino, here.st_size, here.st_mtime_ns, here.st_ctime_ns, log.st_size if log else 0]
    newest = 0
    total = 0
    for path in evidence_files(root):
        seen = stat_if_there(path)
        if seen is not None:
            newest = max(newest, seen.st_mtime_ns)
            total += seen.st_size
    return " ".join(str(part) for part in (*parts, total, newest))


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
    if whole:
        leave_note(root, note, here, following, ending)


def next_seq(root: Path) -> int:
    """The seq that the next write will get. Call it under the lock."""
    content = read_if_there(root / BUFFER)
    return max(highest_seq(content), highest_seq(read_if_there(root / LOG)), evidence_high(root)) + 1


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
    try:
        names = sorted(name for name in os.listdir(root / EVIDENCE) if name.endswith(".md"))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise StorageFailed(
            f"{root / EVIDENCE} cannot be read: {error.strerror}; check its permissions"
        ) from error
    return [root / EVIDENCE / name for name in names]


def evidence_high(root: Path) -> int:
    """The largest high-water mark in evidence. Reads all of it: called only when evidence has changed."""
    highest = 0
    for path in evidence_files(root):
        for match in scan(path, HIGH):
            highest = max(highest, int(match[1]))
    return highest


def scan(path: Path, pattern: re.Pattern[bytes]) -> Iterator[re.Match[bytes]]:
    """Matches of a pattern in a file that may be too large to read into memory."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                yield from [_Found(match) for match in pattern.finditer(content)]  # type: ignore[misc]
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageFailed(f"{path} cannot be read: {error.strerror}; check its permissions") from error


class _Found:
    """A match that outlives its memory map."""

    def __init__(self, match: re.Match[bytes]) -> None:
        self.groups = (match[0], *match.groups())
        self.at = match.start()

    def __getitem__(self, number: int) -> bytes:
        return self.groups[number]


def find_key(root: Path, key: str) -> list[int]:
    """The seqs of the entries that were written with this `--key`; [] when there are none."""
    from infinimem.text.signature import render_value

    needle = re.compile(
        rb"^- <(?:"
        + FIELD
        + rb")*?seq=([0-9+-]+)[^\n]*?, ?key="
        + re.escape(render_value(key).encode())
        + rb"[,>]",
        re.MULTILINE,
    )
    for path in (root / BUFFER, *reversed(evidence_files(root))):
        seqs = sorted({seq for match in scan(path, needle) for seq in parse_seqs(match[1].decode())})
        if seqs:
            return seqs
    return []


def read_if_there(path: Path) -> bytes:
    """The file's bytes; b"" when there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise StorageFailed(f"{path} cannot be read: {error.strerror}; check its permissions") from error


def stat_if_there(path: Path) -> os.stat_result | None:
    """The file's status; None when there is none."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None
