"""Where an export goes: a file or a folder, private to the user, over nothing but an earlier export."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from infinimem.errors import BadInput, StorageFailed
from infinimem.store.files import make_folder, sync_folder, write_private
from infinimem.store.layout import BUFFER, EVIDENCE, SETTINGS, STATE, TOPICS

MARK = "infinimem-export.json"
"""The file that marks a folder as an export of ours and names what was put there."""
BEGINNINGS = (b'{"record": "library", "format": "infinimem-export"', b"<!-- infinimem export")
"""How a file begins that is an earlier export and may be overwritten."""


def refuse_inside(root: Path, out: Path) -> None:
    """Raise `BadInput` where an export would land among the library's own files."""
    place = out.resolve()
    base = root.resolve()
    own = [base / name for name in (TOPICS, EVIDENCE, STATE, BUFFER, SETTINGS)]
    if place == base or any(place == one or one in place.parents for one in own):
        raise BadInput(f"{out} is a part of the library itself; choose another place")
    if place in base.parents:
        raise BadInput(f"{out} holds the library; choose another place")


@contextmanager
def new_file(out: Path) -> Iterator[BinaryIO]:
    """A file to write, private, that takes the place of an earlier export when all of it is there.

    Raises `BadInput` where something else is there already, `StorageFailed` where the disk refuses.
    """
    out = out.resolve()
    if out.is_dir():
        raise BadInput(f"{out} is a folder; name a file")
    if out.exists() and not out.is_file():
        raise BadInput(f"{out} is no ordinary file; for standard output leave --out away")
    if out.exists() and out.stat().st_size and not is_earlier(out):
        raise BadInput(f"{out} is there already and is no export; choose another name, or remove it")
    beside = out.with_name(f"{out.name}.{os.getpid()}.tmp")
    try:
        make_folder(out.parent)
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(descriptor, "wb", 1 << 16) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            beside.replace(out)
        finally:
            beside.unlink(missing_ok=True)
        sync_folder(out.parent)
    except OSError as error:
        raise StorageFailed(f"{out} cannot be written: {error.strerror}; choose another place") from error


def is_earlier(out: Path) -> bool:
    """Whether a file begins like an export of ours."""
    try:
        with out.open("rb") as file:
            first = file.read(64)
    except OSError as error:
        raise StorageFailed(f"{out} cannot be read: {error.strerror}; choose another place") from error
    return first.startswith(BEGINNINGS)


def write_folder(out: Path, files: Iterable[tuple[str, bytes]], about: Mapping[str, str]) -> int:
    """Put files into a folder, which must be new, empty or an earlier export of ours; gives their number of bytes.

    What an earlier export put there and this one does not is removed; nothing else in the folder is touched.
    """
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out} is a file; name a folder")
    before = earlier_files(out)
    written: list[str] = []
    size = 0
    try:
        make_folder(out)
        # said first: a folder in which a killed export left half of its files is still ours
        write_private(out / MARK, mark_of(about, before))
        for name, content in files:
            place = out / name
            make_folder(place.parent)
            put(place, content)
            written.append(name)
            size += len(content)
        for name in set(before).difference(written):
            remove_old(out, name)
        write_private(out / MARK, mark_of(about, written))
        sync_folder(out)
    except OSError as error:
        raise StorageFailed(
            f"{error.filename or out} cannot be written: {error.strerror}; choose another place"
        ) from error
    return size


def mark_of(about: Mapping[str, str], names: Iterable[str]) -> bytes:
    """The content of the file that marks a folder as ours."""
    return json.dumps({**about, "files": sorted(names)}, ensure_ascii=False, indent=1).encode() + b"\n"


def earlier_files(out: Path) -> list[str]:
    """What an earlier export put into a folder. Raises `BadInput` for a folder with anything else in it."""
    if not out.exists() or not any(out.iterdir()):
        return []
    try:
        known = json.loads((out / MARK).read_bytes())
        names = [str(name) for name in known["files"]] if known["format"] == "infinimem-site" else None
    except (OSError, ValueError, LookupError, TypeError):
        names = None
    if names is None:
        raise BadInput(f"{out} has something else in it than an export; choose an empty or a new folder")
    return names


def files_in(out: Path) -> list[str]:
    """The ordinary files below a folder that an earlier export put there; none where it is no export of ours."""
    try:
        names = earlier_files(out)
    except BadInput:
        return []
    plain = [name for name in names if not name.startswith("/") and ".." not in name.split("/")]
    return [name for name in plain if (out / name).is_file() and not (out / name).is_symlink()]


def put(place: Path, content: bytes) -> None:
    """Write a file of the export, whole at any moment; one that has not changed stays as it is."""
    if place.is_file() and not place.is_symlink() and place.read_bytes() == content:
        return
    beside = place.with_name(f"{place.name}.tmp")
    beside.unlink(missing_ok=True)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    beside.replace(place)


def remove_old(out: Path, name: str) -> None:
    """Remove a file of an earlier export, if the name leads to an ordinary file inside the folder."""
    place = out / name
    if name.startswith("/") or ".." in name.split("/") or place.is_symlink() or not place.is_file():
        return
    if out.resolve() in place.resolve().parents:
        place.unlink()
