"""What was imported before: the `id` fields in CURRENT and evidence, and appending only what is not among them."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from infinimem.errors import StorageFailed
from infinimem.store.buffer import FIELD, Draft, evidence_files, hold, store
from infinimem.store.layout import BUFFER

PIECE = 4 << 20
LENGTH = 13
"""Characters of an id: 64 bits, so that among a million messages two agree once in 30 million libraries."""
IDENTIFIED = re.compile(rb"^(?:\xef\xbb\xbf)?- <(?:" + FIELD + rb")*?id=([0-9a-v]{13})[,>]", re.MULTILINE)


def id_of(key: str) -> str:
    """The id that an imported entry carries for what it was where it comes from."""
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return base64.b32hexencode(digest).decode().rstrip("=").lower()


class KnownIds:
    """The ids of everything that was imported into a library. Files are read on from where they were read before."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: set[int] = set()
        self._seen: dict[str, tuple[int, int]] = {}

    def __contains__(self, one: str) -> bool:
        return number_of(one) in self._known

    def add(self, ids: Iterable[str]) -> None:
        """Note ids that were imported just now, or met in what is being read."""
        self._known.update(map(number_of, ids))

    def refresh(self) -> None:
        """Read what has come to CURRENT and evidence since the last time."""
        for path in (self.root / BUFFER, *evidence_files(self.root)):
            try:
                self._read(path)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise StorageFailed(f"{path} cannot be read: {error.strerror}; check its permissions") from error

    def _read(self, path: Path) -> None:
        with path.open("rb") as file:
            here = os.fstat(file.fileno())
            inode, offset = self._seen.get(path.name, (0, 0))
            if inode != here.st_ino or offset > here.st_size:
                offset = 0
            file.seek(offset)
            rest = b""
            while piece := file.read(PIECE):
                rest, _, tail = (rest + piece).rpartition(b"\n")
                self._known.update(int(match[1], 32) for match in IDENTIFIED.finditer(rest))
                offset += len(rest) + 1 if rest else 0
                rest = tail
            self._known.update(int(match[1], 32) for match in IDENTIFIED.finditer(rest))
            self._seen[path.name] = (here.st_ino, offset)


def number_of(one: str) -> int:
    """An id as the number that it is: a tenth of the memory."""
    return int(one, 32)


def append_new(root: Path, drafts: Sequence[tuple[str, Draft]], known: KnownIds) -> list[int]:
    """Append the entries whose ids are not in the library yet; gives their seqs. One lock, one write, one fsync."""
    with hold(root) as note:
        known.refresh()
        fresh = [(one, draft) for one, draft in drafts if one not in known]
        seqs = store(root, note, [draft for _, draft in fresh]) if fresh else []
    known.add(one for one, _ in fresh)
    return seqs
