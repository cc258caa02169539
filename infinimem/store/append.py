"""Appending entries to CURRENT so that they are on disk, whole and once, when `append` returns.

What is written is written under the library's lock; the disk is waited for without it, so that several writers wait
together. What may have become of the entries meanwhile is told apart by `confirm`.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

from infinimem.errors import ChangedOnDisk, InfinimemError, NeedsAttention, StorageFailed
from infinimem.model import Entry, Signature
from infinimem.store.buffer import (
    SIGNED,
    evidence_high,
    find_key,
    highest_seq,
    hold,
    open_log,
    read_if_there,
    seqs_in,
    stat_if_there,
    with_ending,
)
from infinimem.store.files import PRIVATE_FILE, sync, write_all
from infinimem.store.layout import BUFFER, BUFFER_HEAD, LOG, MANIFEST
from infinimem.store.note import (
    evidence_looks,
    fingerprint,
    log_size,
    noted_seq,
    read_note,
    set_note,
    set_ready,
    set_rest,
)
from infinimem.text.signature import parse_seqs, render_rest, render_signature

HIGHEST_SEQ = 10**18 - 1
LARGEST_BUFFER_COMPARED = 4 << 20
LARGEST_COMPARED_WITH_MANY = 256 << 10
"""Bytes: a buffer far beyond what is due is an import under way, and to look through it costs more than the append."""
FEW = 10
HALF = f"part of it may stand in {BUFFER}; look there before you write it again"
NEWLINE, INDENTED = "\n", "\n  "
Draft = tuple[Signature, str]
"""An entry still without its seq: fields in order, and the words."""


class Alike(Sequence[Draft]):
    """Drafts that differ in nothing but their words: what they share is looked at once."""

    def __init__(self, signature: Signature, texts: Sequence[str]) -> None:
        self.signature = signature
        self.texts = texts

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, at: int) -> Draft: ...

    @overload
    def __getitem__(self, at: slice) -> Alike: ...

    def __getitem__(self, at: int | slice) -> Draft | Alike:
        if isinstance(at, slice):
            return Alike(self.signature, self.texts[at])
        return self.signature, self.texts[at]


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


@dataclass(frozen=True, slots=True)
class Written:
    """Entries at the end of CURRENT that may not be on disk yet: their seqs, and in both files where they begin.

    `lines` are those of CURRENT, after a `lead` that ends what stood there before; `copy` those of the log of writes.
    Both files are open until `confirm` closes them. `following` is the seq that was to come next before.
    """

    seqs: Sequence[int]
    lead: bytes
    lines: bytes
    buffer: int
    start: int
    copy: bytes
    log: int
    logged: int
    following: int


@dataclass(frozen=True, slots=True)
class Seen:
    """What was found before an append: the next seq, CURRENT's line ending, and what must come before a new line.

    `evidence` is what evidence looks like from outside.
    """

    following: int
    ending: str
    lead: bytes
    evidence: str


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
                flush_to_disk(root)  # its writer may have been killed while it waited for that
                first_lines = [text.split("\n", 1)[0] for _, text in drafts]
                return Appended(tuple(known), stored=False, differs=list(known.values()) != first_lines)
        earlier = repeats(root, drafts)
        written = put(root, note, drafts)
        if key:  # who repeats it is told of what is on disk, so nobody else has the lock before it is
            seqs = confirm(root, written, drafts, note)
    if not key:
        seqs = confirm(root, written, drafts)
    said = tuple((seqs[at], seq) for at, seq in earlier.items())
    return Appended(tuple(seqs), repeats=said, too_new=not_before(drafts, seqs))


def not_before(drafts: Sequence[Draft], seqs: Sequence[int]) -> tuple[int, ...]:
    """The seqs that drafts say they replace, and that none before them has."""
    if isinstance(drafts, Alike):
        return tuple(sorted(old for old in parse_seqs(drafts.signature.get("supersedes")) if old >= seqs[0]))
    found: set[int] = set()
    for seq, (signature, _) in zip(seqs, drafts, strict=True):
        found.update(old for old in parse_seqs(signature.get("supersedes")) if old >= seq)
    return tuple(sorted(found))


def repeats(root: Path, drafts: Sequence[Draft]) -> dict[int, int]:
    """For the drafts (by place) whose very words stand in CURRENT already, the seq that has them."""
    largest = LARGEST_BUFFER_COMPARED if len(drafts) <= FEW else LARGEST_COMPARED_WITH_MANY
    seen = stat_if_there(root / BUFFER)
    if seen is None or seen.st_size > largest:
        return {}
    content = read_if_there(root / BUFFER)
    lines = frozenset(line.rpartition(b"> ")[2] for line in content.split(b"\n")) if len(drafts) > FEW else frozenset()
    found: dict[int, int] = {}
    for at, (_, text) in enumerate(drafts):
        needle = b"> " + text.replace("\n", "\n  ").encode() + b"\n"
        if lines and b"> " not in needle[2:] and needle[2 : needle.index(b"\n")] not in lines:
            continue
        place = content.find(needle)
        if place >= 0:
            match = SIGNED.match(content, content.rfind(b"\n", 0, place) + 1)
            seqs = parse_seqs(match[2].decode()) if match else ()
            if seqs:
                found[at] = seqs[0]
    return found


def store(root: Path, note: int, drafts: Sequence[Draft], seqs: Sequence[int] = ()) -> Sequence[int]:
    """Append entries under the lock that `note` is; their seqs, and they are on disk."""
    return confirm(root, put(root, note, drafts, seqs), drafts, note)


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


def confirm(
    root: Path, written: Written, drafts: Sequence[Draft], note: int | None = None, tries: int = 20
) -> Sequence[int]:
    """Wait until the disk has what was `put` there, under the lock that `note` is or without it; close its files.

    On failure it is taken out again. Where CURRENT is another file by then, or has other words in their place, a
    commit has taken the entries along, or an editor saved over them: those that stand nowhere are appended once more.
    Gives the seqs that they have in the end.
    """
    seqs = written.seqs
    failed: BaseException | None = None
    try:
        try:
            sync(written.buffer)
        except BaseException as error:  # an interrupt, too: nobody was told that they are stored
            failed = error
        if failed is None and still_there(root / BUFFER, written.buffer) and still_whole(written):
            return seqs
        with contextlib.ExitStack() as held:
            if note is None:
                note = held.enter_context(held_again(root, failed))
            replaced = not still_there(root / BUFFER, written.buffer)
            if failed is None or replaced:
                if not replaced:
                    let_settle(root / BUFFER)
                seqs = store_missing(root, note, written, drafts, tries)
            else:
                what = take_back(root, note, written)
                if isinstance(failed, OSError):
                    raise StorageFailed(f"{BUFFER} cannot be written: {failed.strerror}; {what}") from failed
        if failed is not None and not isinstance(failed, OSError):
            raise failed
        return seqs
    finally:
        os.close(written.log)
        os.close(written.buffer)


@contextlib.contextmanager
def held_again(root: Path, failed: BaseException | None) -> Iterator[int]:
    """The lock after the disk was waited for; where it cannot be had, it is the disk's failure that is told."""
    with contextlib.ExitStack() as held:
        try:
            note = held.enter_context(hold(root))
        except InfinimemError as error:
            if isinstance(failed, OSError):
                raise StorageFailed(f"{BUFFER} cannot be written: {failed.strerror}; {HALF}") from error
            raise
        yield note


def store_missing(root: Path, note: int, written: Written, drafts: Sequence[Draft], tries: int) -> Sequence[int]:
    """Append those entries once more that neither CURRENT nor evidence has, under the lock; the seqs of all.

    They keep their seqs, unless others have been given one: without the log of writes nobody knew of it.
    """
    gone, taken = missing(root, written, drafts)
    if gone and not tries:
        raise NeedsAttention(f"{root / BUFFER}: another program keeps replacing this file; close it and write again")
    if gone:
        again = [drafts[at] for at in gone]
        seqs = dict(enumerate(written.seqs))
        try:
            put_again = put(root, note, again, () if taken else [seqs[at] for at in gone])
            seqs.update(zip(gone, confirm(root, put_again, again, note, tries - 1), strict=True))
        except BaseException:  # nor may the log of writes know of the first time
            with contextlib.suppress(OSError, StorageFailed, ChangedOnDisk):
                if not (root / MANIFEST).exists():
                    cut_out(root, written)
            raise
        return tuple(seqs.values())
    flush_to_disk(root)  # an editor does not wait for the disk
    return written.seqs


def flush_to_disk(root: Path) -> None:
    """Wait until CURRENT is on disk, whoever has written it."""
    current = open_buffer(root / BUFFER)
    try:
        sync(current)
    except OSError as error:
        raise StorageFailed(
            f"{BUFFER} may not be on disk: {error.strerror}; look at it before you write it again"
        ) from error
    finally:
        os.close(current)


def missing(root: Path, written: Written, drafts: Sequence[Draft]) -> tuple[list[int], bool]:
    """Which drafts (by place) neither CURRENT nor evidence has, and whether others have the seq of one of them."""
    content = read_if_there(root / BUFFER)
    if written.lines in content:
        return [], False
    from infinimem.store.evidence import read_records
    from infinimem.text.document import parse

    there: dict[int, list[Entry]] = {}
    for entry in parse(BUFFER, content).entries:
        for seq in entry.seqs:
            there.setdefault(seq, []).append(entry)
    left = [at for at, seq in enumerate(written.seqs) if not any(is_of(drafts[at], one) for one in there.get(seq, ()))]
    records = read_records(root, [written.seqs[at] for at in left])
    gone = []
    taken = False
    for at in left:
        record = records[written.seqs[at]]
        consumed = [entry for _, entry in record.entries]
        if any(event.kind == "forget" for _, event in record.events) or any(is_of(drafts[at], one) for one in consumed):
            continue
        gone.append(at)
        taken = taken or bool(consumed) or written.seqs[at] in there
    return gone, taken


def is_of(draft: Draft, entry: Entry) -> bool:
    """Whether an entry with the seq of a draft is what became of it: edited, or joined with others."""
    signature, text = draft
    return len(entry.seqs) > 1 or entry.text == text or entry.signature.get("observed") == signature.get("observed")


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


def render_draft(signature: Signature, text: str, seqs: tuple[int, ...], ending: str) -> str:
    """An entry's lines, as `text.document.entry_lines` makes them (kept apart: it would load YAML)."""
    return f"- {render_signature(Signature(seqs, signature.fields))} " + text.replace("\n", ending + "  ") + ending


def render_drafts(drafts: Sequence[Draft], seqs: Sequence[int]) -> str:
    """The lines of many entries, each as `render_draft` makes it; what they share is rendered once."""
    if isinstance(drafts, Alike):
        rest = render_rest(drafts.signature.fields)
        texts = drafts.texts
        if any(NEWLINE in text for text in texts):
            texts = [text.replace(NEWLINE, INDENTED) for text in texts]
        return "".join([f"- <seq={seq}{rest}> {text}\n" for seq, text in zip(seqs, texts, strict=True)])
    return "".join(
        render_draft(signature, text, (seq,), "\n") for seq, (signature, text) in zip(seqs, drafts, strict=True)
    )


def open_buffer(path: Path) -> int:
    """CURRENT, open for appending, made if missing."""
    try:
        return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE)
    except OSError as error:
        why = "it is a symbolic link" if path.is_symlink() else error.strerror
        raise StorageFailed(f"{path} cannot be opened for writing: {why}; nothing was written") from error


def survey(root: Path, note: int, buffer: int) -> Seen:
    """Look at CURRENT, and read it and the rest only if something has changed since the note was left."""
    here = os.fstat(buffer)
    evidence = evidence_looks(root)
    known = read_note(note, fingerprint(here, log_size(root), evidence))
    if known is not None:
        return Seen(*known, b"", evidence)
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
    return Seen(highest + 1, ending, lead, evidence)


def write_at_end(root: Path, note: int, buffer: int, seen: Seen, content: bytes, seqs: Sequence[int]) -> Written:
    """Append to the log of writes and then to CURRENT; on any failure both are as they were. The log stays open.

    The note says where, so that whoever takes the lock after a kill can compare CURRENT with the log and
    cut off a torn append, and only that. The log is no promise of durability, so it is never synced.
    """
    here = os.fstat(buffer)
    log = open_log(root)
    lines = with_ending(content, seen.ending)
    logged = os.fstat(log).st_size
    written = Written(seqs, seen.lead, lines, buffer, here.st_size, content, log, logged, seen.following)
    mark = "crlf" if seen.ending == "\r\n" else "lf"
    try:
        set_note(
            note,
            f"append {here.st_ino} {here.st_size} {seen.lead.hex() or '-'} {mark} {logged} {len(content)} "
            f"{seen.following}",
        )
        write_all(log, content)
        write_all(buffer, seen.lead + lines)
    except BaseException as error:
        what = take_back(root, note, written)
        os.close(log)
        if isinstance(error, OSError):
            raise StorageFailed(f"{BUFFER} cannot be written: {error.strerror}; {what}") from error
        raise
    return written


def leave_note(note: int, here: os.stat_result, seen: Seen, written: Written, following: int) -> None:
    """Write down what the files look like after an append, and which seq comes next."""
    looks = fingerprint(here, written.logged + len(written.copy), seen.evidence)
    set_ready(note, looks, seen.ending, following)


def take_back(root: Path, note: int, written: Written) -> str:
    """Undo a failed append under the lock; says how that went.

    A full disk can still truncate, a read-only one cannot. Where others have appended behind it meanwhile, only
    its own lines are cut out, by a commit, so that theirs are never half there.
    """
    try:
        whole = written.lead + written.lines
        behind = os.fstat(written.buffer).st_size - written.start - len(whole)
        logged = os.fstat(written.log).st_size - written.logged - len(written.copy)
        if behind <= 0 and logged <= 0 and whole.startswith(os.pread(written.buffer, len(whole), written.start)):
            os.ftruncate(written.buffer, min(written.start, os.fstat(written.buffer).st_size))
            os.ftruncate(written.log, min(written.logged, os.fstat(written.log).st_size))
        else:
            cut_out(root, written)
    except (OSError, StorageFailed, ChangedOnDisk):
        return HALF
    with contextlib.suppress(OSError):
        set_rest(note, max(written.following, noted_seq(note)))
    return "nothing was stored"


def cut_out(root: Path, written: Written) -> None:
    """Take lines out of CURRENT and of the log of writes, by a commit; not if somebody has edited them meanwhile."""
    from infinimem.model import Change
    from infinimem.store.files import digest_of
    from infinimem.store.transaction import commit

    changes = []
    for name, lines in ((BUFFER, written.lines), (LOG, written.copy)):
        content = read_if_there(root / name)
        if name == BUFFER and lines not in content and not seqs_in(content).isdisjoint(written.seqs):
            raise ChangedOnDisk(f"{BUFFER} was changed meanwhile")
        if lines in content:
            changes.append(Change(name, digest_of(content), content.replace(lines, b"", 1)))
    commit(root, changes, [])


def still_there(path: Path, descriptor: int) -> bool:
    """Whether the open file is still what CURRENT names."""
    try:
        there = path.stat()
    except OSError:  # whoever takes the lock then says what has become of the library
        return False
    return there.st_ino == os.fstat(descriptor).st_ino


def let_settle(path: Path) -> None:
    """Wait until nobody is in the middle of saving a file: most programs empty it first. A second at most."""
    for _ in range(50):
        before = stat_if_there(path)
        time.sleep(0.02)
        after = stat_if_there(path)
        if before and after and after.st_size and before.st_mtime_ns == after.st_mtime_ns:
            return


def still_whole(written: Written) -> bool:
    """Whether the lines stand where they were written: an editor may save over a file without replacing it."""
    whole = written.lead + written.lines
    return os.pread(written.buffer, len(whole), written.start) == whole
