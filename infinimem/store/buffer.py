"""CURRENT: appending entries so that they are on disk, whole and once, when `append` returns.

Everything happens under the library's lock. The lock file's own content is the note that makes it safe
and cheap: while an append is under way it says where, so that whoever takes the lock next can cut off
a torn one; afterwards it says what the files looked like, so that the next write need not read them.
"""

from __future__ import annotations

import binascii
import contextlib
import mmap
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from infinimem.errors import ChangedOnDisk, NeedsAttention, StorageFailed
from infinimem.model import Entry, Signature
from infinimem.store.files import PRIVATE_FILE, sync, write_all
from infinimem.store.layout import (
    BUFFER,
    BUFFER_HEAD,
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
)
from infinimem.store.lock import exclusive, is_stand_in
from infinimem.text.signature import parse_seqs, render_rest, render_signature

HIGHEST_SEQ = 10**18 - 1
LARGEST_BUFFER_COMPARED = 4 << 20
LARGEST_COMPARED_WITH_MANY = 256 << 10
"""Bytes: a buffer far beyond what is due is an import under way, and to look through it costs more than the append."""
FEW = 10
NEWLINE, INDENTED = "\n", "\n  "
OWN = frozenset({LOCK, FLUSH_LOCK, WATCH_LOCK, EDIT_LOCK, LOG, LOOKED, COMMIT, MANIFEST, UNDO, KEPT, INDEX})
"""What is written in the folder of our own state."""
FIELD = rb'[A-Za-z_][A-Za-z0-9_.-]*=(?:"(?:[^"\\\n]|\\[^\n])*"|[^,<>"\n]*), *'
SIGNED = re.compile(
    rb"^(?:\xef\xbb\xbf)?([ \t]*)[-*+][ \t]+\\?<(?:"
    + FIELD
    + rb")*?seq=([0-9]+(?:-[0-9]+)?(?:\+[0-9]+(?:-[0-9]+)?)*)[,>]",
    re.MULTILINE,
)
ENDS = re.compile(rb"> (?:(?!> )[^\n])*$", re.MULTILINE)
"""What stands on a line from its last `> ` on."""
HIGH = re.compile(rb"^[-*+][ \t]+\\?<event=flush,\s+high=([0-9]+)", re.MULTILINE)

NOTE_SIZE = 256
"""Bytes of the lock file: a note is half as long."""

Draft = tuple[Signature, str]
"""An entry still without its seq: fields in order, and the words."""


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


@dataclass(frozen=True, slots=True)
class Appended:
    """The seqs in order; whether they were stored now; and for repeats of words in CURRENT the earlier seq.

    `differs` says of a repeated key that it came with other words the first time. `too_new` are the seqs that an entry
    says it replaces although no earlier one has them.
    """

    seqs: tuple[int, ...]
    stored: bool = True
    differs: bool = False
    repeats: tuple[tuple[int, int], ...] = ()
    too_new: tuple[int, ...] = ()


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


def append(root: Path, drafts: Sequence[Draft], key: str = "") -> Appended:
    """Append entries to CURRENT; they are on disk when this returns.

    One lock, one write, one fsync, whatever the number; others may write while the disk is waited for. With `key`,
    entries that carry it already are returned instead and nothing is stored. Raises `StorageFailed` with the state
    as before.
    """
    with hold(root) as note:
        if key:
            known = find_key(root, key)
            if known:
                first_lines = [text.split("\n", 1)[0] for _, text in drafts]
                return Appended(tuple(known), stored=False, differs=list(known.values()) != first_lines)
        earlier = repeats(root, drafts)
        written = put(root, note, drafts)
        if key:  # who repeats it is told of what is on disk, so nobody else has the lock before it is
            confirm(root, written, drafts, note)
    if not key:
        confirm(root, written, drafts)
    said = tuple((written.seqs[at], seq) for at, seq in earlier.items())
    return Appended(tuple(written.seqs), repeats=said, too_new=not_before(drafts, written.seqs))


def not_before(drafts: Sequence[Draft], seqs: Sequence[int]) -> tuple[int, ...]:
    """The seqs that drafts say they replace, and that none before them has."""
    found: set[int] = set()
    fields: tuple[tuple[str, str], ...] | None = None
    replaced: tuple[int, ...] = ()
    for seq, (signature, _) in zip(seqs, drafts, strict=True):
        if signature.fields is not fields:
            fields = signature.fields
            replaced = parse_seqs(signature.get("supersedes"))
        if replaced:
            found.update(old for old in replaced if old >= seq)
    return tuple(sorted(found))


def repeats(root: Path, drafts: Sequence[Draft]) -> dict[int, int]:
    """For the drafts (by place) whose very words stand in CURRENT already, the seq that has them."""
    largest = LARGEST_BUFFER_COMPARED if len(drafts) <= FEW else LARGEST_COMPARED_WITH_MANY
    seen = stat_if_there(root / BUFFER)
    if seen is None or seen.st_size > largest:
        return {}
    content = read_if_there(root / BUFFER)
    lines = frozenset(ENDS.findall(content)) if len(drafts) > FEW else frozenset()
    found: dict[int, int] = {}
    for at, (_, text) in enumerate(drafts):
        needle = b"> " + text.replace("\n", "\n  ").encode() + b"\n"
        if lines and b"> " not in needle[2:] and needle[: needle.index(b"\n")] not in lines:
            continue
        place = content.find(needle)
        if place >= 0:
            match = SIGNED.match(content, content.rfind(b"\n", 0, place) + 1)
            seqs = parse_seqs(match[2].decode()) if match else ()
            if seqs:
                found[at] = seqs[0]
    return found


@dataclass(frozen=True, slots=True)
class Written:
    """Entries at the end of CURRENT that may not be on disk yet: their seqs, and in both files where they begin.

    `lines` are those of CURRENT, `copy` those of the log of writes. Both files are open until `confirm` has closed them.
    """

    seqs: Sequence[int]
    lines: bytes
    buffer: int
    start: int
    copy: bytes
    log: int
    logged: int


def store(root: Path, note: int, drafts: Sequence[Draft], seqs: Sequence[int] = ()) -> Sequence[int]:
    """Append entries under the lock that `note` is; their seqs, and they are on disk."""
    written = put(root, note, drafts, seqs)
    confirm(root, written, drafts, note)
    return written.seqs


def put(root: Path, note: int, drafts: Sequence[Draft], seqs: Sequence[int] = ()) -> Written:
    """Append entries under the lock that `note` is, without waiting for the disk: that is for `confirm`."""
    buffer = open_buffer(root / BUFFER)
    try:
        seen = survey(root, note, buffer)
        if not seqs:
            if seen.following + len(drafts) > HIGHEST_SEQ:
                raise NeedsAttention(
                    f"{BUFFER}: the seq {seen.following - 1} leaves no room for more; correct that line"
                )
            seqs = range(seen.following, seen.following + len(drafts))
        written = write_at_end(root, note, buffer, seen, render_drafts(drafts, seqs).encode("utf-8"), seqs)
    except BaseException:
        os.close(buffer)
        raise
    leave_note(note, os.fstat(buffer), seen, written, max(seen.following, seqs[-1] + 1))
    return written


def confirm(root: Path, written: Written, drafts: Sequence[Draft], note: int | None = None, tries: int = 20) -> None:
    """Wait until the disk has what was `put` there, under the lock that `note` is or without it; close its files.

    On failure it is taken out again. Where CURRENT is another file by then, a commit has taken the entries along, or
    an editor saved over them: those that stand nowhere are appended once more.
    """
    failed: BaseException | None = None
    try:
        try:
            sync(written.buffer)
        except BaseException as error:  # an interrupt, too: nobody was told that they are stored
            failed = error
        if failed is None and still_there(root / BUFFER, written.buffer):
            return
        with contextlib.ExitStack() as held:
            if note is None:
                note = held.enter_context(hold(root))
            if not still_there(root / BUFFER, written.buffer):
                store_missing(root, note, written, drafts, tries)
            elif failed is not None:
                what = take_back(root, note, written)
                if isinstance(failed, OSError):
                    raise StorageFailed(f"{BUFFER} cannot be written: {failed.strerror}; {what}") from failed
        if failed is not None and not isinstance(failed, OSError):
            raise failed
    finally:
        os.close(written.log)
        os.close(written.buffer)


def store_missing(root: Path, note: int, written: Written, drafts: Sequence[Draft], tries: int) -> None:
    """Append those entries once more that neither CURRENT nor evidence has, under the lock."""
    from infinimem.store.evidence import read_records

    there = seqs_in(read_if_there(root / BUFFER))
    gone = [at for at, seq in enumerate(written.seqs) if seq not in there]
    if gone:
        records = read_records(root, [written.seqs[at] for at in gone])
        gone = [at for at in gone if not (records[written.seqs[at]].entries or records[written.seqs[at]].events)]
    if gone and not tries:
        raise NeedsAttention(f"{root / BUFFER}: another program keeps replacing this file; close it and write again")
    if gone:
        again = [drafts[at] for at in gone]
        confirm(root, put(root, note, again, [written.seqs[at] for at in gone]), again, note, tries - 1)
    else:  # an editor does not wait for the disk
        current = open_buffer(root / BUFFER)
        try:
            sync(current)
        except OSError as error:
            raise StorageFailed(
                f"{BUFFER} may not be on disk: {error.strerror}; look at it before you write it again"
            ) from error
        finally:
            os.close(current)


def append_known(root: Path, note: int, entries: Sequence[Entry]) -> None:
    """Put entries that have their seqs already at the end of CURRENT, on disk. Under the lock that `note` is."""
    buffer = open_buffer(root / BUFFER)
    try:
        seen = survey(root, note, buffer)
        content = "".join(render_draft(entry.signature, entry.text, entry.seqs, "\n") for entry in entries)
        written = write_at_end(root, note, buffer, seen, content.encode("utf-8", "surrogateescape"), ())
        try:
            sync(buffer)
        except OSError as error:
            what = take_back(root, note, written)
            raise StorageFailed(f"{BUFFER} cannot be written: {error.strerror}; {what}") from error
        finally:
            os.close(written.log)
        leave_note(note, os.fstat(buffer), seen, written, seen.following)
    finally:
        os.close(buffer)


def noted_at(now: datetime) -> str:
    """When an entry is written down: UTC to the microsecond, so that with its seq it is like no other clone's."""
    form = "%Y-%m-%dT%H:%M:%S.%fZ" if now.microsecond else "%Y-%m-%dT%H:%M:%SZ"
    return now.astimezone(UTC).strftime(form)


def render_draft(signature: Signature, text: str, seqs: tuple[int, ...], ending: str) -> str:
    """An entry's lines, as `text.document.entry_lines` makes them (kept apart: it would load YAML)."""
    return f"- {render_signature(Signature(seqs, signature.fields))} " + text.replace("\n", ending + "  ") + ending


def render_drafts(drafts: Sequence[Draft], seqs: Sequence[int]) -> str:
    """The lines of many entries, each as `render_draft` makes it; what they share is rendered once."""
    lines: list[str] = []
    fields: tuple[tuple[str, str], ...] | None = None
    rest = ""
    for seq, (signature, text) in zip(seqs, drafts, strict=True):
        if signature.fields is not fields:
            fields = signature.fields
            rest = render_rest(fields)
        if NEWLINE in text:
            text = text.replace(NEWLINE, INDENTED)
        lines.append(f"- <seq={seq}{rest}> {text}\n")
    return "".join(lines)


def open_buffer(path: Path) -> int:
    """CURRENT, open for appending, made if missing."""
    try:
        return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE)
    except OSError as error:
        why = "it is a symbolic link" if path.is_symlink() else error.strerror
        raise StorageFailed(f"{path} cannot be opened for writing: {why}; nothing was written") from error


@dataclass(frozen=True, slots=True)
class Seen:
    """What was found before an append: the next seq, CURRENT's line ending, and what must come before a new line.

    `log` is the size of the log of writes, `evidence` what evidence looks like from outside.
    """

    following: int
    ending: str
    lead: bytes
    log: int
    evidence: str


def survey(root: Path, note: int, buffer: int) -> Seen:
    """Look at CURRENT, and read it and the rest only if something has changed since the note was left."""
    here = os.fstat(buffer)
    log, evidence = log_size(root), evidence_looks(root)
    known = read_note(note, fingerprint(here, log, evidence))
    if known is not None:
        return Seen(*known, b"", log, evidence)
    content = os.pread(buffer, here.st_size, 0)
    first, newline, _ = content.partition(b"\n")
    ending = "\r\n" if first.endswith(b"\r") else "\n"
    lead = b""
    if not content:
        lead = BUFFER_HEAD
    elif not content.endswith(b"\n"):
        lead = b"\n" if not newline and first.endswith(b"\r") else ending.encode()
    logged = read_if_there(root / LOG)
    highest = max(highest_seq(content), highest_seq(logged), evidence_high(root), noted_seq(note) - 1)
    return Seen(highest + 1, ending, lead, log, evidence)


def noted_seq(note: int) -> int:
    """The seq that was to come next when the note was left; 1 without a note. Evidence may have been deleted since."""
    words = get_note(note).split()
    return int(words[-1]) if words and words[0] == "ready" else 1


def write_at_end(root: Path, note: int, buffer: int, seen: Seen, content: bytes, seqs: Sequence[int]) -> Written:
    """Append to the log of writes and then to CURRENT; on any failure both are as they were. The log stays open.

    The note says where, so that whoever takes the lock after a kill can compare CURRENT with the log and
    cut off a torn append, and only that. The log is no promise of durability, so it is never synced.
    """
    here = os.fstat(buffer)
    log = open_log(root)
    lines = seen.lead + with_ending(content, seen.ending)
    written = Written(seqs, lines, buffer, here.st_size, content, log, os.fstat(log).st_size)
    mark = "crlf" if seen.ending == "\r\n" else "lf"
    try:
        set_note(
            note, f"append {here.st_ino} {here.st_size} {seen.lead.hex() or '-'} {mark} {written.logged} {len(content)}"
        )
        write_all(log, content)
        write_all(buffer, lines)
    except BaseException as error:
        what = take_back(root, note, written)
        os.close(log)
        if isinstance(error, OSError):
            raise StorageFailed(f"{BUFFER} cannot be written: {error.strerror}; {what}") from error
        raise
    return written


def with_ending(content: bytes, ending: str) -> bytes:
    """Lines with the document's own terminator."""
    return content.replace(b"\n", b"\r\n") if ending == "\r\n" else content


def open_log(root: Path) -> int:
    """The log of writes, open for appending."""
    try:
        return os.open(root / LOG, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE)
    except OSError as error:
        raise StorageFailed(f"{root / LOG} cannot be opened: {error.strerror}; nothing was stored") from error


def take_back(root: Path, note: int, written: Written) -> str:
    """Undo a failed append under the lock; says how that went.

    A full disk can still truncate, a read-only one cannot. Where others have appended behind it meanwhile, only
    its own lines are cut out, by a commit, so that theirs are never half there.
    """
    try:
        behind = os.fstat(written.buffer).st_size - written.start - len(written.lines)
        logged = os.fstat(written.log).st_size - written.logged - len(written.copy)
        mine = os.pread(written.buffer, len(written.lines), written.start)
        if behind <= 0 and logged <= 0 and written.lines.startswith(mine):
            os.ftruncate(written.buffer, min(written.start, os.fstat(written.buffer).st_size))
            os.ftruncate(written.log, min(written.logged, os.fstat(written.log).st_size))
        else:
            cut_out(root, written)
    except (OSError, StorageFailed, ChangedOnDisk):
        return f"part of it may stand in {BUFFER}; look there before you write it again"
    with contextlib.suppress(OSError):
        set_note(note, "")
    return "nothing was stored"


def cut_out(root: Path, written: Written) -> None:
    """Take lines out of CURRENT and of the log of writes, by a commit."""
    from infinimem.model import Change
    from infinimem.store.files import digest_of
    from infinimem.store.transaction import commit

    changes = []
    for name, lines in ((BUFFER, written.lines), (LOG, written.copy)):
        content = read_if_there(root / name)
        if lines in content:
            changes.append(Change(name, digest_of(content), content.replace(lines, b"", 1)))
    commit(root, changes, [])


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
            set_note(note, "")
        finally:
            os.close(log)
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
        descriptor = open_log(root)
        try:
            write_all(descriptor, content)
        finally:
            os.close(descriptor)
    except (OSError, StorageFailed):  # the entry itself is safe in CURRENT
        pass


def set_note(note: int, text: str) -> None:
    """Replace the lock file's content; the checksum tells a torn note from a whole one.

    Padded to one length, so that nothing of a longer one is left behind and no call is needed to cut it off.
    """
    content = f"{text} {binascii.crc32(text.encode()):08x}".encode() if text else b""
    os.pwrite(note, content.ljust(NOTE_SIZE), 0)


def get_note(note: int) -> str:
    """The lock file's content; "" when there is none, or none that is whole."""
    text, _, checksum = os.pread(note, NOTE_SIZE, 0).decode("utf-8", "replace").rstrip().rpartition(" ")
    return text if text and checksum == f"{binascii.crc32(text.encode()):08x}" else ""


def leave_note(note: int, here: os.stat_result, seen: Seen, written: Written, following: int) -> None:
    """Write down what the files look like after an append, and which seq comes next."""
    looks = fingerprint(here, written.logged + len(written.copy), seen.evidence)
    set_ready(note, looks, seen.ending, following)


def set_ready(note: int, looks: str, ending: str, following: int) -> None:
    """The note of a library that is at rest. It only saves work: without it the next write looks for itself."""
    mark = "crlf" if ending == "\r\n" else "lf"
    with contextlib.suppress(OSError):
        set_note(note, f"ready {looks} {mark} {following}")


def read_note(note: int, looks: str) -> tuple[int, str] | None:
    """The next seq and line ending, if things look as they did when the note was left."""
    words = get_note(note).split()
    if not words or words[0] != "ready" or " ".join(words[1:-2]) != looks:
        return None
    return int(words[-1]), "\r\n" if words[-2] == "crlf" else "\n"


def fingerprint(here: os.stat_result, log: int, evidence: str) -> str:
    """What CURRENT, the log and evidence look like from outside, in one line."""
    return f"{here.st_ino} {here.st_size} {here.st_mtime_ns} {here.st_ctime_ns} {log} {evidence}"


def log_size(root: Path) -> int:
    """Bytes in the log of writes."""
    try:
        return os.stat(f"{root}/{LOG}").st_size  # noqa: PTH116 - paths as objects would double what this costs
    except FileNotFoundError:
        return 0


def evidence_looks(root: Path) -> str:
    """The size of evidence and when it was last written to."""
    newest = total = 0
    for name in evidence_names(root):
        with contextlib.suppress(FileNotFoundError):
            seen = os.stat(f"{root}/{EVIDENCE}/{name}")  # noqa: PTH116
            newest = max(newest, seen.st_mtime_ns)
            total += seen.st_size
    return f"{total} {newest}"


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
        set_note(note, f"ready unknown lf {following}")


def next_seq(root: Path, note: int) -> int:
    """The seq that the next write will get. Call it under the lock that `note` is."""
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


def evidence_names(root: Path) -> list[str]:
    """The names of the evidence files, oldest month first."""
    try:
        return sorted(name for name in os.listdir(f"{root}/{EVIDENCE}") if name.endswith(".md"))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise StorageFailed(f"{root / EVIDENCE} cannot be read: {error.strerror}; check its permissions") from error


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
