"""What was imported before: the `id` fields in CURRENT and evidence, and appending only what is not among them."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from infinimem.errors import StorageFailed
from infinimem.model import Entry
from infinimem.store.append import Draft, store
from infinimem.store.buffer import FIELD, evidence_files, hold, next_seq
from infinimem.store.layout import BUFFER, STATE
from infinimem.text.document import Event
from infinimem.text.signature import with_field

PIECE = 4 << 20
ORIGIN = "origin"
"""The field of a loaded entry that says what it was in the library that was exported."""
ORIGINS = re.compile(r"[0-9]{1,18}@[0-9a-f]{16}")
IDENTIFIED = re.compile(rb"^(?:\xef\xbb\xbf)?- <(?:" + FIELD + rb")*?id=([0-9a-v]{13})[,>]", re.MULTILINE)
"""An id has 64 bits, so that among a million messages two agree once in 30 million libraries."""
VERSIONED = re.compile(
    rb"^- <seq=([0-9]+), id=[0-9a-v]{13}, of=([0-9a-v]{13})(?:, time=([0-9TZ:.+-]*))?[,>]", re.MULTILINE
)
FORGOTTEN = re.compile(rb"^- <event=forget, (?:" + FIELD + rb")*?ids=([0-9a-v+]+)[,>]", re.MULTILINE)


def id_of(key: str) -> str:
    """The id that an imported entry carries for what it was where it comes from."""
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return base64.b32hexencode(digest).decode().rstrip("=").lower()


def mark_of(one: str) -> str:
    """What is kept of a forgotten entry's id, so that the next import of the same file does not bring it back."""
    return id_of(f"forgotten {one}")


def marks_of(seq: int, entry: Entry, origin: str) -> set[str]:
    """The marks that an exported entry would have been forgotten by, here or where it comes from."""
    names = {origin, entry.signature.get("id"), placed_in_time(seq, entry.observed)}
    return {mark_of(name) for name in names if name}


def placed_in_time(seq: int, observed: str) -> str:
    """What tells an entry from all others of its library without its words; "" where it does not say when it came."""
    return f"{seq}@{observed}" if observed else ""


def seq_at_home(entry: Entry) -> int:
    """The seq that an entry has in the library that it was exported from; 0 where it comes from none."""
    origin = entry.signature.get(ORIGIN)
    return int(origin.partition("@")[0]) if ORIGINS.fullmatch(origin) else 0


def is_what_was_forgotten(entry: Entry, event: Event) -> bool:
    """Whether an entry came, by an export or an import, from what an event says was forgotten in this library.

    An event that only tells of a forgetting elsewhere, as loading an export takes it along, says nothing of it.
    """
    seq, origin = seq_at_home(entry), entry.signature.get(ORIGIN)
    if seq in event.seqs and entry.observed and event.get("observed") == entry.observed:
        return True
    marks = set(event.get("ids").split("+")) - {""}
    if not marks or mark_of(placed_in_time(seq, entry.observed)) in marks:
        return False
    return not marks.isdisjoint({mark_of(name) for name in (origin if seq else "", entry.signature.get("id")) if name})


class KnownIds:
    """The ids of everything that was imported into a library. Files are read on from where they were read before."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: set[int] = set()
        self._forgotten: set[int] = set()
        self._newest: dict[int, tuple[str, int]] = {}
        self._read: dict[Path, tuple[int, int]] = {}

    def __contains__(self, one: str) -> bool:
        return number_of(one) in self._known

    def is_forgotten(self, one: str) -> bool:
        """Whether an entry with this id was here and was forgotten."""
        return bool(self._forgotten) and number_of(mark_of(one)) in self._forgotten

    def version_before(self, of: str, time: str) -> int:
        """The seq of the newest version of a thing, where one from this time would take its place; 0 for none."""
        known, seq = self._newest.get(number_of(of), ("", 0))
        return seq if not (known and time) or known <= time else 0

    def note_version(self, of: str, time: str, seq: int) -> None:
        """Note a version of a thing; a newer one takes its place."""
        known, _ = self._newest.get(number_of(of), ("", 0))
        if not (known and time) or known <= time:
            self._newest[number_of(of)] = time, seq

    def add(self, ids: Iterable[str]) -> None:
        """Note ids that were imported just now, or met in what is being read."""
        self._known.update(map(number_of, ids))

    def refresh(self) -> None:
        """Read what has come to CURRENT and evidence since the last time; takes the lock for a moment.

        What is read is what whole appends left: half of one, which the next command cuts off, makes nothing known.
        """
        if not (self.root / STATE).is_dir():
            return
        try:
            with hold(self.root):
                seen = self.sight()
        except StorageFailed:  # a read-only library is read as it is
            seen = self.sight()
        self.read(seen)

    def sight(self) -> dict[Path, tuple[int, int]]:
        """Which files there are, each with its inode and size. Call it under the lock."""
        found: dict[Path, tuple[int, int]] = {}
        for path in (self.root / BUFFER, *evidence_files(self.root)):
            with suppress(FileNotFoundError):
                here = path.stat()
                found[path] = here.st_ino, here.st_size
        return found

    def read(self, seen: Mapping[Path, tuple[int, int]]) -> None:
        """Read files as far as they went when they were seen; one that was replaced since waits for the next time."""
        for path, (inode, size) in seen.items():
            known, offset = self._read.get(path, (0, 0))
            if known != inode or offset > size:
                offset = 0
            try:
                with path.open("rb") as file:
                    if os.fstat(file.fileno()).st_ino == inode and self._read_piece(file, offset, size):
                        self._read[path] = inode, size
            except FileNotFoundError:
                continue
            except OSError as error:
                raise StorageFailed(f"{path} cannot be read: {error.strerror}; check its permissions") from error

    def _read_piece(self, file: IO[bytes], offset: int, size: int) -> bool:
        """The ids between two places; False where the file has become shorter."""
        file.seek(offset)
        rest = b""
        while offset < size:
            piece = file.read(min(PIECE, size - offset))
            if not piece:
                return False
            offset += len(piece)
            whole, _, rest = (rest + piece).rpartition(b"\n")
            self._note(whole)
        self._note(rest)
        return True

    def _note(self, lines: bytes) -> None:
        self._known.update(int(match[1], 32) for match in IDENTIFIED.finditer(lines))
        for match in VERSIONED.finditer(lines) if b", of=" in lines else ():
            self.note_version(match[2].decode(), (match[3] or b"").decode(), int(match[1]))
        if b"event=forget" in lines:
            marks = (match[1].decode().split("+") for match in FORGOTTEN.finditer(lines))
            self._forgotten.update(number_of(mark) for several in marks for mark in several)


def number_of(one: str) -> int:
    """An id as the number that it is: a tenth of the memory."""
    return int(one, 32)


def append_new(root: Path, drafts: Sequence[tuple[str, Draft]], known: KnownIds) -> dict[str, int]:
    """Append the entries whose ids are not in the library yet; gives their seqs by id. One lock, write and fsync.

    A version of something that is there in an older one takes that one's place.
    """
    with hold(root) as note:
        known.read(known.sight())
        fresh = [(one, draft) for one, draft in drafts if one not in known]
        first = next_seq(root, note) if any(draft[0].get("of") for _, draft in fresh) else 0
        fresh = [(one, succeeding(draft, first + at, known)) for at, (one, draft) in enumerate(fresh)]
        seqs = store(root, note, [draft for _, draft in fresh]) if fresh else []
    known.add(one for one, _ in fresh)
    return {one: seq for (one, _), seq in zip(fresh, seqs, strict=True)}


def succeeding(draft: Draft, seq: int, known: KnownIds) -> Draft:
    """An entry that is to get a seq, with the one whose place it takes if it is a newer version of that."""
    signature, text = draft
    of, time = signature.get("of"), signature.get("time")
    if not of:
        return draft
    before = known.version_before(of, time)
    known.note_version(of, time, seq)
    return (with_field(signature, "supersedes", str(before)), text) if before else draft
