"""Which libraries lie below a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from infinimem.errors import InfinimemError
from infinimem.store.layout import SETTINGS, is_library


def ignore(folder: Path, why: str) -> None:
    """What cannot be read is not told."""


def libraries_below(root: Path, unreadable: Callable[[Path, str], None] = ignore) -> Iterator[Path]:
    """The libraries below a folder, by name; a library has none inside. Hidden folders and links are left alone.

    `unreadable` is told each folder that cannot be looked into, and why: libraries may lie there.
    """
    try:
        if marks_library(root):
            yield root
            return
        names = sorted(entry.name for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False))
    except InfinimemError:  # settings that cannot be read, or of a later format: whoever opens it says so
        yield root
        return
    except OSError as error:
        unreadable(root, f"cannot be looked into: {error.strerror}; correct its mode, or move it elsewhere")
        return
    for name in names:
        if not name.startswith("."):
            yield from libraries_below(root / name, unreadable)


def marks_library(folder: Path) -> bool:
    """Whether a folder is a library; a settings file that is no file, such as a pipe, is not waited for."""
    return (folder / SETTINGS).is_file() and is_library(folder)
