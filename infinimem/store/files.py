"""Reading and writing single files: privately, wholly, and durably."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from pathlib import Path

from infinimem.errors import StorageFailed

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700
STATE = ".infinimem"
"""The folder of what is derived or transient; git is told to leave it alone by a file of its own."""


def read_bytes(path: Path) -> bytes | None:
    """An ordinary file's bytes, None when there is no such file; anything else raises `StorageFailed`.

    A pipe or a device in the place of a file would keep a reader waiting for ever.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StorageFailed(f"{path} cannot be read: {error.strerror}; check its permissions") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StorageFailed(f"{path} is no ordinary file; move it away")
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def digest_of(content: bytes) -> str:
    """A file's digest as snapshots and changes carry it."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def make_folder(folder: Path) -> None:
    """The folder and its missing parents; only the new ones are given private modes."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        path.mkdir(PRIVATE_FOLDER, exist_ok=True)
        if path.name == STATE:  # `git clone` does not bring this file, so whoever makes the folder makes it
            write_once(path / ".gitignore", b"*\n")


def write_once(path: Path, content: bytes) -> None:
    """Create the file with its whole content at once, or leave the one that is there."""
    if path.exists():
        return
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    write_private(beside, content)
    try:
        os.link(beside, path)
    except FileExistsError:
        pass
    except OSError:  # a file system without hard links
        beside.replace(path)
        return
    beside.unlink()


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, and have it on disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        write_all(descriptor, content)
        sync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, content: bytes) -> None:
    """Write every byte; a short write (disk full, quota) raises `OSError`."""
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def sync(descriptor: int) -> None:
    """Have the file's data on disk, through the drive's own cache where the platform can."""
    if sys.platform == "darwin":
        import fcntl

        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
        except OSError:  # not every file system has it
            pass
    os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Have the folder's names on disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError:  # some network file systems refuse; the files themselves are synced
        pass
    finally:
        os.close(descriptor)
