"""All or nothing: several files change together, whatever instant the process is killed at.

1. new contents are written beside and synced (`.infinimem/commit/`)
2. a manifest that names them is renamed into place: **the commit point**
3. each old file is hard-linked into `.infinimem/undo/`, each new one renamed into place
4. the manifest is removed

`recover` finishes what lies beyond the commit point and discards what lies before it. It touches a file
only if its digest is the old or the new one; otherwise it stops and both are kept.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infinimem.errors import ChangedOnDisk, NeedsAttention, StorageFailed
from infinimem.model import Change
from infinimem.store.layout import (
    COMMIT,
    KEPT,
    MANIFEST,
    PRIVATE_FILE,
    UNDO,
    make_folder,
    safe_path,
    sync,
    sync_folder,
    write_all,
    write_private,
)

UNDO_KEPT = 5
"""Flushes that can be undone, newest first."""


@dataclass(frozen=True, slots=True)
class Append:
    """Bytes to add to the end of a file (evidence): only they are written, whatever its size."""

    path: str
    content: bytes


def digest_of(content: bytes) -> str:
    """A file's digest as snapshots and changes carry it."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def digest_at(path: Path) -> str:
    """The digest of the file there now; "" when there is none."""
    try:
        return digest_of(path.read_bytes())
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise StorageFailed(f"{path} cannot be read: {error.strerror}; nothing was written") from error


def commit(
    root: Path, changes: Sequence[Change], appends: Sequence[Append], about: Mapping[str, Any] | None = None
) -> list[str]:
    """Carry out all changes, or none. Call it under the library's lock.

    `about` is kept with the old files as an undo record; without it none is kept. Gives a line for each
    file that another program saved in the very moment of the change: its version lies in `.infinimem/kept/`.
    Raises `ChangedOnDisk` when a file is not what the change was made for, `StorageFailed` when the disk
    refuses; in both cases nothing has changed.
    """
    for change in changes:
        if digest_at(safe_path(root, change.path)) != change.old_digest:
            raise ChangedOnDisk(
                f"{change.path} was changed meanwhile; nothing was written. Run the command again"
            )
    for append in appends:
        safe_path(root, append.path)
    try:
        manifest = stage(root, changes, appends, about)
    except OSError as error:
        shutil.rmtree(root / COMMIT, ignore_errors=True)
        raise StorageFailed(f"{root} cannot be written: {error.strerror}; nothing was changed") from error
    return finish(root, manifest)


def stage(
    root: Path, changes: Sequence[Change], appends: Sequence[Append], about: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Write the new contents and, last, the manifest that makes them count."""
    folder = root / COMMIT
    shutil.rmtree(folder, ignore_errors=True)
    make_folder(folder)
    rows: list[dict[str, Any]] = []
    for number, change in enumerate(changes):
        row = {"path": change.path, "old": change.old_digest, "new": ""}
        if change.new is not None:
            row["new"] = digest_of(change.new)
            staged = folder / str(number)
            write_private(staged, change.new)
            target = root / change.path
            if target.exists():
                staged.chmod(target.stat().st_mode & 0o7777)
        rows.append(row)
    tails: list[dict[str, Any]] = []
    for number, append in enumerate(appends):
        write_private(folder / f"a{number}", append.content)
        target = root / append.path
        size = target.stat().st_size if target.exists() else 0
        tails.append({"path": append.path, "offset": size, "length": len(append.content)})
    manifest: dict[str, Any] = {"changes": rows, "appends": tails, "undo": "", "about": dict(about or {})}
    if about is not None:
        manifest["undo"] = next_undo(root)
    beside = folder / "manifest"
    write_private(beside, json.dumps(manifest).encode())
    sync_folder(folder)
    beside.rename(root / MANIFEST)
    sync_folder((root / MANIFEST).parent)
    return manifest


def next_undo(root: Path) -> str:
    """The name of the next undo record: numbers that rise."""
    return f"{max((int(name) for name in undo_records(root)), default=0) + 1:06d}"


def undo_records(root: Path) -> list[str]:
    """The names of the undo records, oldest first."""
    try:
        return sorted(name for name in os.listdir(root / UNDO) if name.isdigit())
    except FileNotFoundError:
        return []


def recover(root: Path) -> list[str]:
    """Finish or discard what a killed commit left. Call it under the lock."""
    try:
        text = (root / MANIFEST).read_text("utf-8")
    except FileNotFoundError:
        shutil.rmtree(root / COMMIT, ignore_errors=True)
        return []
    return finish(root, json.loads(text))


def finish(root: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Everything after the commit point; may be repeated from any place in it."""
    try:
        refuse_strangers(root, manifest)
        kept = [*move_into_place(root, manifest)]
        append_all(root, manifest)
        write_undo_record(root, manifest)
        (root / MANIFEST).unlink()
        sync_folder((root / MANIFEST).parent)
    except OSError as error:
        where = error.filename or root
        raise StorageFailed(
            f"{where}: {error.strerror}; the change is complete but not yet in place. "
            "Make room or correct the permissions and run any command"
        ) from error
    shutil.rmtree(root / COMMIT, ignore_errors=True)
    forget_old_undo(root)
    return kept


def refuse_strangers(root: Path, manifest: Mapping[str, Any]) -> None:
    """Stop if a file is neither what it was nor what it becomes: a branch was switched under a killed commit."""
    for number, row in enumerate(manifest["changes"]):
        path = safe_path(root, row["path"])
        seen = digest_at(path)
        if seen not in (row["old"], row["new"]):
            staged = root / COMMIT / str(number)
            raise NeedsAttention(
                f"{row['path']} was changed while a killed flush waits to be finished; keep one of it and {staged}, "
                f"then remove {root / MANIFEST}"
            )


def move_into_place(root: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Rename the new files into place, the old ones linked into the undo record first."""
    undo = root / (f"{UNDO}/{manifest['undo']}" if manifest["undo"] else f"{COMMIT}/old")
    make_folder(undo)
    kept: list[str] = []
    folders = set()
    for number, row in enumerate(manifest["changes"]):
        path = safe_path(root, row["path"])
        staged = root / COMMIT / str(number)
        link = undo / str(number)
        folders.add(path.parent)
        # a staged file that is gone was renamed before the kill
        if (
            digest_at(path) == row["old"]
            and row["old"] != row["new"]
            and (row["new"] == "" or staged.exists())
        ):
            make_folder(path.parent)
            if row["old"]:
                link_old(path, link)
            if row["new"]:
                staged.rename(path)
            else:
                path.unlink(missing_ok=True)
        if row["old"] and link.exists() and digest_at(link) != row["old"]:
            kept.append(keep_save(root, row["path"], link))
    for folder in folders:
        sync_folder(folder)
    sync_folder(undo)
    return kept


def link_old(path: Path, link: Path) -> None:
    """A second name for the old file, or a copy where the file system has no hard links."""
    link.unlink(missing_ok=True)
    try:
        os.link(path, link)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV):
            raise
        shutil.copy2(path, link)


def keep_save(root: Path, path: str, link: Path) -> str:
    """Put what an editor saved in the very moment of the rename where its owner finds it."""
    folder = root / KEPT
    make_folder(folder)
    name = path.replace("/", "-")
    number = 1
    while (folder / f"{number}-{name}").exists():
        number += 1
    place = folder / f"{number}-{name}"
    write_private(place, link.read_bytes())
    return f"{path} was saved by another program in the moment of the change; that version is kept in {place}"


def append_all(root: Path, manifest: Mapping[str, Any]) -> None:
    """Add to the ends of files; a repetition sees what is there already."""
    for number, row in enumerate(manifest["appends"]):
        content = (root / COMMIT / f"a{number}").read_bytes()
        path = safe_path(root, row["path"])
        make_folder(path.parent)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE)
        try:
            size = os.fstat(descriptor).st_size
            offset = row["offset"]
            there = os.pread(descriptor, len(content), offset) if size > offset else b""
            if there == content:
                continue
            if size < offset or not content.startswith(there):
                raise NeedsAttention(
                    f"{row['path']} was changed while a killed flush waits to be finished; what it was to gain "
                    f"lies in {root / COMMIT / f'a{number}'}: add it at the end, then remove {root / MANIFEST}"
                )
            os.lseek(descriptor, offset + len(there), os.SEEK_SET)
            write_all(descriptor, content[len(there) :])
            sync(descriptor)
        finally:
            os.close(descriptor)
        if row["offset"] == 0:
            sync_folder(path.parent)


def write_undo_record(root: Path, manifest: Mapping[str, Any]) -> None:
    """Say beside the old files what they were."""
    if manifest["undo"]:
        record = {"changes": manifest["changes"], "about": manifest["about"]}
        write_private(root / UNDO / manifest["undo"] / "record.json", json.dumps(record).encode())


def forget_old_undo(root: Path) -> None:
    """Keep the newest undo records only."""
    for name in undo_records(root)[:-UNDO_KEPT]:
        shutil.rmtree(root / UNDO / name, ignore_errors=True)


def read_undo(root: Path) -> tuple[str, dict[str, Any]]:
    """The newest undo record's name and content; ("", {}) when there is none."""
    for name in reversed(undo_records(root)):
        try:
            record: dict[str, Any] = json.loads((root / UNDO / name / "record.json").read_text("utf-8"))
        except FileNotFoundError:
            continue
        return name, record
    return "", {}


def drop_undo(root: Path, name: str) -> None:
    """Remove an undo record that has served."""
    shutil.rmtree(root / UNDO / name, ignore_errors=True)
