"""Reading the folder: which files there are, and what one of them says."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from infinimem.errors import StorageFailed
from infinimem.model import Document, FileState, Problem
from infinimem.store.files import digest_of, read_bytes
from infinimem.store.layout import BUFFER, EVIDENCE, LOG, TOPICS
from infinimem.text.document import parse, parse_leading, parse_piece

PARSED = 128
"""Documents whose parse is remembered, for whoever reads the same ones again and again."""
LARGEST = 200_000
"""Bytes of a document up to which it is."""
BACKUP_ENDINGS = ("~", ".swp", ".swo", ".tmp", ".bak", ".orig")


@dataclass(frozen=True, slots=True)
class File:
    """A file that was read: its digest guards every change made from it. "" = there is no such file.

    `rest` are the bytes below `document` where only the beginning was read.
    """

    path: str
    digest: str
    document: Document
    rest: bytes = b""


def list_files(root: Path) -> dict[str, FileState]:
    """CURRENT, every topic document and every evidence file, as library-relative paths.

    Hidden files and folders, editors' backups and symbolic links are left alone.
    """
    found: dict[str, FileState] = {}
    try:
        found[BUFFER] = seen_of((root / BUFFER).stat())
    except FileNotFoundError:
        pass
    except OSError as error:
        raise StorageFailed(f"{root / BUFFER} cannot be read: {error.strerror}; check its permissions") from error
    for top in (TOPICS, EVIDENCE):
        found.update(walk(root / top, f"{top}/"))
    return found


def walk(folder: Path, prefix: str) -> Iterator[tuple[str, FileState]]:
    """The Markdown files below a folder, sorted by name."""
    try:
        with os.scandir(folder) as listing:
            children = sorted(listing, key=lambda child: child.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        if folder.name == TOPICS or folder.name == EVIDENCE:
            raise StorageFailed(f"{folder} cannot be read: {error.strerror}; check its permissions") from error
        return  # `unreadable_folders` names it; the rest keeps working
    for child in children:
        name = child.name
        if name.startswith(".") or not is_text(name):
            continue
        if name.endswith(".md"):
            try:
                status = child.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if stat.S_ISREG(status.st_mode):
                yield prefix + name, seen_of(status)
                continue
        if not name.endswith(BACKUP_ENDINGS) and child.is_dir(follow_symlinks=False):
            yield from walk(folder / name, f"{prefix}{name}/")


def taken_paths(folder: Path, prefix: str) -> Iterator[str]:
    """The paths below a folder that are named as documents are but are folders or links."""
    with contextlib.suppress(OSError), os.scandir(folder) as listing:
        for child in listing:
            is_folder = child.is_dir(follow_symlinks=False)
            if child.name.endswith(".md") and (is_folder or child.is_symlink()):
                yield prefix + child.name
            if is_folder:
                yield from taken_paths(folder / child.name, f"{prefix}{child.name}/")


def read_leading(root: Path, path: str, most: int) -> File:
    """The beginning of CURRENT or the log of writes, with at least the first `most` entries if there are so many.

    The digest is that of the whole file: what it costs hardly grows with what is not read.
    """
    content = read_bytes(root / path)
    document, rest = parse_leading(path, content or b"", most, "\n" if path == LOG else "")
    return File(path, "" if content is None else digest_of(content), document, rest)


def read_log(root: Path) -> File:
    """The log of writes. It has no head line, and its terminator is always a newline."""
    content = read_bytes(root / LOG) or b""
    return File(LOG, "" if not (root / LOG).exists() else digest_of(content), parse_piece(LOG, content))


def is_text(name: str) -> bool:
    """Whether a file name is valid UTF-8: only then can it be a topic's id."""
    return name.isascii() or not any("\udc80" <= char <= "\udcff" for char in name)


def seen_of(status: os.stat_result) -> FileState:
    """A file's status as the index remembers it."""
    return FileState(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def read_file(root: Path, path: str) -> File:
    """A file of the library with its digest; empty, with digest "", where there is none.

    Raises `StorageFailed` where it is there but cannot be read.
    """
    content = read_bytes(root / path)
    if content is None:
        return File(path, "", parse(path, b""))
    return File(path, digest_of(content), parse(path, content))


def read_document(root: Path, path: str) -> Document:
    """A file's document as it is now; the same bytes as lately are not parsed again. Raises `StorageFailed`."""
    content = read_bytes(root / path) or b""
    return parsed(path, content) if len(content) <= LARGEST else parse(path, content)


@lru_cache(PARSED)
def parsed(path: str, content: bytes) -> Document:
    """As `parse`, remembered for a while."""
    return parse(path, content)


def folder_problems(root: Path) -> list[Problem]:
    """What stands in topics/ that reading leaves out: symbolic links, folders and files without permission."""
    problems = []
    for folder, names, files in os.walk(root / TOPICS, onerror=None):
        names[:] = [name for name in names if not name.startswith(".")]
        for name in sorted([*names, *files]):
            if name.startswith("."):  # an editor's or a tool's: .obsidian/, the lock .#topic.md of Emacs
                continue
            place = Path(folder) / name
            path = place.relative_to(root).as_posix()
            if not is_text(name):
                shown = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
                message = "the name is not UTF-8; rename it, until then it is left out"
                problems.append(Problem(shown, 0, message, blocking=False, code="name"))
                continue
            if name.endswith(".md") and place.is_dir() and not place.is_symlink():
                problems.append(Problem(path, 0, "a folder with the name of a document; rename it", False, "name"))
            if place.is_symlink() and (name.endswith(".md") or place.is_dir()):
                message = "a symbolic link is neither read nor written; move the real file here"
                problems.append(Problem(path, 0, message, blocking=False, code="symlink"))
            elif name.endswith(".md") or place.is_dir():
                wanted = os.R_OK | (os.X_OK if place.is_dir() else 0)
                if not name.startswith(".") and not os.access(place, wanted):
                    message = "no permission to read it; correct its mode"
                    problems.append(Problem(path, 0, message, blocking=False, code="permission"))
    return problems
