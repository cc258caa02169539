"""What is imported, as files to read: a file, the members of a zip archive, or the files below a folder."""

from __future__ import annotations

import codecs
import io
import os
import stat
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, cast

from infinimem.errors import BadInput
from infinimem.exchange.message import Unread

HEAD = 1 << 18
"""Bytes by which a format is recognised: LoCoMo has its questions before its conversation."""
LONGEST_LINE = 48 << 20
LARGEST_BESIDE = 64 << 20
READABLE = (".json", ".jsonl", ".ndjson", ".md", ".markdown", ".txt", ".log", "")
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Input:
    """A file to be read from its beginning, as often as `open` is called. `name` is how messages call it.

    `within` is its path below the folder or archive that was given; `size` is in bytes; `path` is that of a file by
    itself; `beside` gives what another file below the same folder or in the same archive holds, b"" for none.
    """

    name: str
    within: str
    size: int
    open: Callable[[], IO[bytes]]
    path: Path | None = None
    beside: Callable[[str], bytes] = lambda name: b""

    def head(self) -> bytes:
        """Its first bytes."""
        with self.open() as file:
            return file.read(HEAD)


def inputs_of(path: Path) -> Iterator[Input | Unread]:
    """The files that a path stands for, by name. Raises `BadInput` where there is nothing to open."""
    if path.is_dir():
        yield from files_below(path)
        return
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(mode):
        raise BadInput(f"{path} is no ordinary file; save it to one first")
    if zipfile.is_zipfile(path):
        yield from members_of(path)
        return
    yield file_input(path, path.name, path.name)


def files_below(folder: Path) -> Iterator[Input | Unread]:
    """The readable files below a folder; what is hidden is left alone, links are not followed."""

    @lru_cache(maxsize=2)
    def beside(name: str) -> bytes:
        path = folder / name
        if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST_BESIDE:
            return b""
        return path.read_bytes()

    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(here) / name
            if name.startswith(".") or path.is_symlink() or path.suffix.lower() not in READABLE or not path.suffix:
                continue
            within = path.relative_to(folder).as_posix()
            try:
                yield replace(file_input(path, within, within), beside=beside)
            except BadInput as error:
                yield Unread(within, str(error))


def file_input(path: Path, name: str, within: str) -> Input:
    """An ordinary file. Raises `BadInput` where it cannot be opened."""
    try:
        with path.open("rb"):
            size = path.stat().st_size
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from error
    return Input(printable(name), within, size, lambda: in_utf8(path.open("rb")), path)


def members_of(path: Path) -> Iterator[Input | Unread]:
    """The readable members of an archive; nothing is unpacked to disk."""
    try:
        archive = zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile) as error:
        raise BadInput(f"{path} cannot be unpacked: {error}") from error
    sizes = {member.filename: member.file_size for member in archive.infolist()}

    @lru_cache(maxsize=2)
    def beside(name: str) -> bytes:
        return archive.read(name) if sizes.get(name, LARGEST_BESIDE + 1) <= LARGEST_BESIDE else b""

    for member in archive.infolist():
        name = member.filename
        hidden = any(piece.startswith(".") or piece == "__MACOSX" for piece in name.split("/"))
        suffix = Path(name).suffix.lower()
        if member.is_dir() or hidden or suffix not in READABLE or not suffix:
            continue
        if member.flag_bits & 1:
            yield Unread(f"{path.name}: {printable(name)}", "it is encrypted; unpack it first")
            continue
        yield Input(f"{path.name}: {printable(name)}", name, member.file_size, opener(archive, member), None, beside)


def opener(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Callable[[], IO[bytes]]:
    """A function that opens a member."""
    return lambda: in_utf8(archive.open(member))


class Recoded(io.RawIOBase):
    """A file in UTF-16, read as UTF-8."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-16")("replace")
        self._rest = b""
        self._over = False

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; 0 at the end."""
        while not self._rest and not self._over:
            content = self._file.read(1 << 16)
            self._over = not content
            self._rest = self._decoder.decode(content, final=self._over).encode("utf-8", "replace")
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size

    def close(self) -> None:
        """Close the file, too."""
        self._file.close()
        super().close()


def in_utf8(file: IO[bytes]) -> IO[bytes]:
    """A file as it is, or, where it begins with UTF-16's mark, as UTF-8: Windows programs save texts so."""
    begin = file.read(2)
    file.seek(0)
    return cast(IO[bytes], io.BufferedReader(Recoded(file))) if begin in UTF_16 else file


def printable(name: str) -> str:
    """A file name that can be printed and stored, whatever bytes it has."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


# Lines


def lines_of(file: IO[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """Each line without its terminator, by number from 1; None for one that is too long to be held."""
    number = 0
    while line := file.readline(LONGEST_LINE):
        number += 1
        if number == 1:
            line = line.removeprefix(BOM)
        if line.endswith(b"\n") or len(line) < LONGEST_LINE:
            yield number, line.rstrip(b"\r\n")
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(LONGEST_LINE)
        yield number, None
