"""The index's folder: who may write in it, and which files each generation had read."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from infinimem.model import FileState
from infinimem.search.sources import Row

_KEPT = 2  # generations of row files: a reader may still be opening the one before


class Busy(Exception):
    """Another process writes the index."""


@contextlib.contextmanager
def held(folder: Path, patience: float) -> Iterator[None]:
    """Hold the right to write in the index's folder; Busy if others do for `patience` seconds."""
    for place in (folder.parent, folder):  # and not the library's own: one that was moved away stays away
        place.mkdir(mode=0o700, exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(handle, patience)
        yield
    finally:
        os.close(handle)  # which also releases it, as the death of this process would


def _lock(handle: int, patience: float) -> None:
    try:
        import fcntl
    except ImportError:  # Windows: tantivy's own lock remains
        return
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as busy:
            if time.monotonic() > deadline:
                raise Busy from busy
            time.sleep(0.02)
        else:
            return


def clear(folder: Path) -> None:
    """Remove every index in a folder, of whatever version, but not the lock that is held."""
    for entry in list(folder.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)


def read_rows(place: Path, generation: int) -> dict[str, Row]:
    """The files that a generation had read, without titles, summaries and counts."""
    listed = json.loads((place / f"files-{generation}.json").read_bytes())
    return {path: Row(FileState._make(row[:4]), *row[4:]) for path, row in listed.items()}


def read_catalog(place: Path, generation: int, rows: Mapping[str, Row]) -> dict[str, Row]:
    """The same rows with titles, summaries and counts."""
    listed = json.loads((place / f"catalog-{generation}.json").read_bytes())
    return {
        path: Row._make((*row[:_CATALOG], *listed[path][:-1], tuple(listed[path][-1]))) for path, row in rows.items()
    }


def write_rows(place: Path, generation: int, rows: Mapping[str, Row]) -> None:
    """Write what `read_rows` and `read_catalog` read."""
    states = {path: (*row[0], *row[1:_CATALOG]) for path, row in rows.items()}
    catalog = {path: row[_CATALOG:] for path, row in rows.items()}
    for name, content in (("files", states), ("catalog", catalog)):
        fresh = place / f"{name}-{generation}.json.new"
        fresh.write_text(json.dumps(content, separators=(",", ":")))
        fresh.replace(place / f"{name}-{generation}.json")


def tidy(place: Path) -> None:
    """Remove the rows of old generations, and keep the files to their owner."""
    for name in ("files", "catalog"):
        rows = sorted(place.glob(f"{name}-*.json"), key=lambda file: int(file.stem.split("-")[1]))
        for old in rows[:-_KEPT]:
            old.unlink(missing_ok=True)
    for entry in os.scandir(place):
        if entry.stat().st_mode & 0o077:
            with contextlib.suppress(OSError):
                Path(entry.path).chmod(0o600)


_CATALOG = Row._fields.index("entries")
"""Where in a row the catalog begins."""
