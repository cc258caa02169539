"""OS locks: they die with their holder, so nothing is ever left locked."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from infinimem.errors import NeedsAttention, NoLibrary, StorageFailed
from infinimem.store.files import PRIVATE_FILE, PRIVATE_FOLDER


@contextmanager
def exclusive(path: Path, *, wait: float = 600.0, doing: str = "the library", reading: bool = False) -> Iterator[int]:
    """Hold the lock file exclusively; gives its descriptor, whose content is the holder's to use.

    Whoever is only `reading` goes on without a lock where nothing can be written: what it holds then `is_stand_in`.
    Waits up to `wait` seconds, then raises `NeedsAttention`. After taking the lock it is made sure that
    the file is still the one in the folder: a deleted lock file locks nobody out.
    """
    deadline = time.monotonic() + wait
    while True:
        descriptor = open_lock(path, reading=reading)
        try:
            if reading and is_stand_in(descriptor):
                yield descriptor
                return
            take(descriptor, deadline, path, doing)
            if same_file(descriptor, path):
                yield descriptor
                return
        finally:
            os.close(descriptor)


@contextmanager
def shared(path: Path) -> Iterator[None]:
    """Hold the lock file together with whoever else does so; `is_free` says no meanwhile."""
    descriptor = open_lock(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def is_free(path: Path) -> bool:
    """Whether nobody holds the lock file at this moment."""
    descriptor = open_lock(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def is_stand_in(descriptor: int) -> bool:
    """Whether a lock is none, because nothing can be written where it would be."""
    return stat.S_ISCHR(os.fstat(descriptor).st_mode)


def open_lock(path: Path, *, reading: bool = False) -> int:
    """The lock file, made if missing; for one who is only `reading` a stand-in for one that cannot be written."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        try:
            return os.open(path, flags, PRIVATE_FILE)
        except FileNotFoundError:
            path.parent.mkdir(PRIVATE_FOLDER, exist_ok=True)  # but not the library, should that be gone
            return os.open(path, flags, PRIVATE_FILE)
    except OSError as error:
        if reading and error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        if error.errno == errno.ENOENT:
            raise NoLibrary(f"{path.parent.parent} is not there any more; open the library where it is now") from error
        raise StorageFailed(f"{path} cannot be opened: {error.strerror}; nothing was written") from error


def take(descriptor: int, deadline: float, path: Path, doing: str) -> None:
    """Take the lock before the deadline.

    The kernel cannot be asked to wait so long and no longer, so it is asked again and again: most holders need a few
    milliseconds, and one that takes seconds is not asked more often than fifty times in each.
    """
    pause = 0.0005
    patient = time.monotonic() + 0.25
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise NeedsAttention(f"{path}: {doing} is in use by another process; try again later") from None
            time.sleep(pause)
            pause = 0.0005 if time.monotonic() < patient else min(pause * 1.5, 0.02)
        except OSError as error:
            raise StorageFailed(f"{path} cannot be locked: {error.strerror}; nothing was written") from error


def same_file(descriptor: int, path: Path) -> bool:
    """Whether the open file is the one that the path names now."""
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    here = os.fstat(descriptor)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)
