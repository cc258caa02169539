"""All or nothing: several files change together, whatever instant the process is killed at.

1. new contents are written beside and synced (`.infinimem/commit/`)
2. a manifest that names them is renamed into place: **the commit point**
3. each old file is hard-linked into `.infinimem/undo/`, each new one renamed into place
4. the manifest is removed

`recover` finishes what lies beyond the commit point and discards what lies before it. A file that somebody has
changed meanwhile is left as it is: then the commit is taken back, or only CURRENT's lines are taken out of it.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from infinimem.errors import ChangedOnDisk, NeedsAttention, StorageFailed
from infinimem.model import Change, Entry
from infinimem.store.files import (
    PRIVATE_FILE,
    digest_of,
    make_folder,
    read_bytes,
    sync,
    sync_folder,
    write_all,
    write_private,
)
from infinimem.store.layout import (
    BUFFER,
    COMMIT,
    EVIDENCE,
    INDEX,
    KEPT,
    MANIFEST,
    STATE,
    TOPICS,
    UNDO,
    VIEWS,
    safe_path,
)
from infinimem.store.lock import exclusive
from infinimem.text.document import edit, entry_lines, parse, parse_piece, render
from infinimem.text.lines import ending_of, split_lines

NUMBERED = re.compile(r"[0-9]{6,9}")
UNDO_KEPT = 5
"""Flushes that can be undone, newest first."""


@dataclass(frozen=True, slots=True)
class Append:
    """Bytes to add to the end of a file (evidence): only they are written, whatever its size."""

    path: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What must be gone when a commit is over: files and folders, and lines of logs, named by their digests.

    A folder outside `.infinimem` goes only if it is empty. Nothing of the old files is kept either.
    """

    erase: tuple[str, ...] = ()
    scrub: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def digest_at(path: Path) -> str:
    """The digest of the file there now; "" when there is none."""
    content = read_bytes(path)
    return "" if content is None else digest_of(content)


def commit(
    root: Path,
    changes: Sequence[Change],
    appends: Sequence[Append],
    about: Mapping[str, Any] | None = None,
    *,
    undoable: bool = False,
    drop: str = "",
    clean: Cleaning | None = None,
) -> list[str]:
    """Carry out all changes, or none. Call it under the library's lock.

    `about` says what the changes are for: `lines`, the entries that leave CURRENT, and `void`, what evidence
    is to gain should the commit have to be taken back. With `undoable` it is kept with the old files as an undo
    record; `drop` names one that has served. `clean` is done last, and before the journal goes. Gives a line for each
    file that another program saved in the very moment of the change: its version lies in `.infinimem/kept/`.
    Raises `ChangedOnDisk` when a file is not what the change was made for, `StorageFailed` when the disk
    refuses; in both cases nothing has changed.
    """
    for change in changes:
        if digest_at(safe_path(root, change.path)) != change.old_digest:
            raise ChangedOnDisk(f"{change.path} was changed meanwhile; nothing was written. Run the command again")
    for append in appends:
        safe_path(root, append.path)
    try:
        manifest = stage(root, changes, appends, about or {}, next_undo(root) if undoable else "", drop, clean)
    except OSError as error:
        shutil.rmtree(root / COMMIT, ignore_errors=True)
        raise StorageFailed(f"{root} cannot be written: {error.strerror}; nothing was changed") from error
    return finish(root, manifest)


def stage(
    root: Path,
    changes: Sequence[Change],
    appends: Sequence[Append],
    about: Mapping[str, Any],
    undo: str,
    drop: str,
    clean: Cleaning | None,
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
    manifest: dict[str, Any] = {"changes": rows, "appends": tails, "undo": undo, "drop": drop, "about": dict(about)}
    if clean is not None:
        manifest["clean"] = {
            "erase": list(clean.erase),
            "scrub": {path: list(one) for path, one in clean.scrub.items()},
        }
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
        return sorted(name for name in os.listdir(root / UNDO) if NUMBERED.fullmatch(name))
    except FileNotFoundError:
        return []


def recover(root: Path) -> None:
    """Finish or take back what a killed commit left. Call it under the lock.

    Hand edits win. Where somebody edited a file that had its new contents already, the commit is finished around
    it; where a file still has (or has got back) its old contents and was edited, the whole commit is taken back.
    CURRENT is never a reason to take back: the commit's lines are taken out of it, or put into it, one by one.
    """
    try:
        text = (root / MANIFEST).read_text("utf-8")
    except FileNotFoundError:
        shutil.rmtree(root / COMMIT, ignore_errors=True)
        return
    manifest = read_manifest(root, text)
    states = {row["path"]: state_of(root, number, row) for number, row in enumerate(manifest["changes"])}
    topics = {path: state for path, state in states.items() if path.startswith((f"{TOPICS}/", f"{EVIDENCE}/"))}
    if any(state in ("edited old", "reverted") for state in topics.values()):
        take_back(root, manifest, topics)
    else:
        finish(root, around_edits(root, manifest, states))


def state_of(root: Path, number: int, row: Mapping[str, Any]) -> str:
    """What a killed commit and others have made of one file: pending, done, edited old, edited new or reverted.

    The new contents lie in their staging place until they are renamed into theirs: that tells before from after.
    """
    digest = digest_at(root / row["path"])
    if row["old"] == row["new"]:
        return "done"
    if row["new"] == "":
        return "done" if digest == "" else "pending" if digest == row["old"] else "edited old"
    if (root / COMMIT / str(row.get("number", number))).exists():
        return "pending" if digest in (row["old"], row["new"]) else "edited old"
    return "done" if digest == row["new"] else "reverted" if digest == row["old"] else "edited new"


def read_manifest(root: Path, text: str) -> dict[str, Any]:
    """The manifest, if it is one that `stage` wrote."""
    try:
        manifest: dict[str, Any] = json.loads(text)
        rows = [(row["path"], row["old"], row["new"]) for row in manifest["changes"]]
        tails = [(row["path"], int(row["offset"]), int(row["length"])) for row in manifest["appends"]]
        undo, drop, about = str(manifest["undo"]), str(manifest["drop"]), manifest["about"]
        fits = all(isinstance(part, str) for row in rows for part in row) and isinstance(about, dict)
    except (ValueError, KeyError, TypeError):
        fits = False
    if not fits or not all(NUMBERED.fullmatch(name) for name in (undo, drop) if name):
        raise NeedsAttention(f"{root / MANIFEST} is damaged; move it and {COMMIT} away, then run: infinimem check")
    clean = manifest.get("clean") or {"erase": [], "scrub": {}}
    for path in (*(row[0] for row in rows), *(tail[0] for tail in tails), *clean["erase"], *clean["scrub"]):
        safe_path(root, path)
    return manifest


def around_edits(root: Path, manifest: dict[str, Any], states: Mapping[str, str]) -> dict[str, Any]:
    """The manifest without what others have edited; an edited CURRENT only loses or gains the commit's lines."""
    rows = []
    for number, row in enumerate(manifest["changes"]):
        row = {**row, "number": row.get("number", number)}
        if states[row["path"]] in ("pending", "done"):
            rows.append(row)
        elif row["path"] == BUFFER:
            new = adapted_buffer(read_bytes(root / BUFFER) or b"", manifest["about"])
            write_private(root / COMMIT / str(row["number"]), new)
            rows.append({**row, "old": digest_at(root / BUFFER), "new": digest_of(new)})
    return {**manifest, "changes": rows}


def adapted_buffer(content: bytes, about: Mapping[str, Any]) -> bytes:
    """CURRENT as edited, without the entries that a commit consumed and with those that it brought back."""
    document = parse(BUFFER, content)
    if document.blocking:
        return content
    consumed = {(entry.signature, entry.text) for entry in entries_in(about.get("lines", ()))}
    spans = [entry.span for entry in document.entries if (entry.signature, entry.text) in consumed]
    document = edit(document, [(span, ()) for span in spans])
    there = {seq for entry in document.entries for seq in entry.seqs}
    missing = [entry for entry in entries_in(about.get("back", ())) if there.isdisjoint(entry.seqs)]
    return with_entries(render(document), missing)


def with_entries(content: bytes, entries: Sequence[Entry]) -> bytes:
    """CURRENT with entries at its end, in its own line ending."""
    if not entries:
        return content
    ending = ending_of(split_lines(content))
    lead = "" if not content or content.endswith(b"\n") else ending
    lines = (line for entry in entries for line in entry_lines(entry.signature, entry.text, ending))
    return content + (lead + "".join(lines)).encode("utf-8", "surrogateescape")


def entries_in(lines: Sequence[str]) -> Sequence[Entry]:
    """The entries that a manifest carries."""
    return parse_piece(BUFFER, "".join(lines).encode("utf-8", "surrogateescape")).entries


def take_back(root: Path, manifest: Mapping[str, Any], states: Mapping[str, str]) -> None:
    """Put back what a killed commit had renamed, leave what others changed, and say in evidence that it is void.

    Whatever entry would then be shown nowhere goes into CURRENT: of what the commit touched, nothing is lost.
    """
    try:
        known = touched_entries(root, manifest, states)
        for number, row in enumerate(manifest["changes"]):
            if states.get(row["path"]) == "done":
                put_old_back(root, manifest, number, row)
        there = shown_seqs(root)
        missing = [entry for seqs, entry in known.items() if there.isdisjoint(seqs)]
        content = read_bytes(root / BUFFER) or b""
        if missing:
            beside = root / COMMIT / "buffer"
            write_private(beside, with_entries(content, missing))
            beside.replace(root / BUFFER)
        if any(appended(root, row, number) for number, row in enumerate(manifest["appends"])):
            for row in manifest["appends"]:
                void = "".join(manifest["about"].get("void", ()))
                add_lines(root / row["path"], void.encode("utf-8", "surrogateescape"))
        (root / MANIFEST).unlink()
        sync_folder((root / MANIFEST).parent)
    except OSError as error:
        raise unfinished(root, error) from error
    shutil.rmtree(root / COMMIT, ignore_errors=True)
    if manifest["undo"]:
        shutil.rmtree(undo_folder(root, manifest), ignore_errors=True)


def touched_entries(root: Path, manifest: Mapping[str, Any], states: Mapping[str, str]) -> dict[tuple[int, ...], Entry]:
    """The entries that must be shown somewhere once the commit is void: what stood in its files, and what it consumed.

    What stood in a file that somebody edited is theirs to delete, so it is not among them.
    """
    known: dict[tuple[int, ...], Entry] = {}
    theirs: set[int] = set()
    for number, row in enumerate(manifest["changes"]):
        link = undo_folder(root, manifest) / str(row.get("number", number))
        old = (read_bytes(link) if row["old"] else None) or b""
        entries = parse(row["path"], old).entries if row["path"].startswith(f"{TOPICS}/") else ()
        if states.get(row["path"]) in ("edited old", "reverted"):
            theirs.update(seq for entry in entries for seq in entry.seqs)
        elif states.get(row["path"]) in ("done", "edited new"):
            known.update((entry.seqs, entry) for entry in entries)
    known = {seqs: entry for seqs, entry in known.items() if theirs.isdisjoint(seqs)}
    known.update((entry.seqs, entry) for entry in entries_in(manifest["about"].get("lines", ())))
    return known


def put_old_back(root: Path, manifest: Mapping[str, Any], number: int, row: Mapping[str, Any]) -> None:
    """One file as it was before the commit."""
    path = root / row["path"]
    link = undo_folder(root, manifest) / str(row.get("number", number))
    if not row["old"]:
        path.unlink(missing_ok=True)
        remove_empty(root, path.parent)
    elif digest_at(link) == row["old"] and row["old"] != row["new"]:
        beside = root / COMMIT / f"back{number}"
        beside.unlink(missing_ok=True)
        shutil.copy2(link, beside)
        make_folder(path.parent)
        beside.replace(path)


def shown_seqs(root: Path) -> set[int]:
    """Every seq that CURRENT or a topic shows now. Reads the whole library: it is asked once after a kill."""
    seqs: set[int] = set()
    for path in (root / BUFFER, *sorted((root / TOPICS).rglob("*.md"))):
        if path.is_file() and not path.is_symlink():
            document = parse(path.relative_to(root).as_posix(), path.read_bytes())
            seqs.update(seq for entry in document.entries for seq in entry.seqs)
    return seqs


def appended(root: Path, row: Mapping[str, Any], number: int) -> bool:
    """Whether a file has gained what a commit was to append, wherever it stands by now."""
    content = read_bytes(root / COMMIT / f"a{number}")
    return content is not None and holds(read_bytes(root / row["path"]) or b"", content)


def holds(content: bytes, piece: bytes) -> bool:
    """Whether some lines stand in a file, whatever its line terminators have become."""
    return piece.replace(b"\r\n", b"\n") in content.replace(b"\r\n", b"\n")


def add_lines(path: Path, content: bytes) -> None:
    """Add lines to the end of a file, on a line of their own, and have them on disk."""
    make_folder(path.parent)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE)
    try:
        size = os.fstat(descriptor).st_size
        lead = b"\n" if size and os.pread(descriptor, 1, size - 1) != b"\n" else b""
        write_all(descriptor, lead + content)
        sync(descriptor)
    finally:
        os.close(descriptor)


def finish(root: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Everything after the commit point; may be repeated from any place in it.

    Evidence comes first and CURRENT last, so that the words of an entry are always in one of the two.
    """
    try:
        append_all(root, manifest)
        kept = move_into_place(root, manifest)
        write_undo_record(root, manifest)
        if manifest["drop"]:
            shutil.rmtree(root / UNDO / manifest["drop"], ignore_errors=True)
        if "clean" in manifest:
            clean_up(root, manifest)
        (root / MANIFEST).unlink()
        sync_folder((root / MANIFEST).parent)
    except OSError as error:
        raise unfinished(root, error) from error
    shutil.rmtree(root / COMMIT, ignore_errors=True)
    forget_old_undo(root)
    return kept


def clean_up(root: Path, manifest: Mapping[str, Any]) -> None:
    """Remove what a commit leaves no trace of; may be repeated."""
    for path, digests in manifest["clean"]["scrub"].items():
        scrub(safe_path(root, path), frozenset(digests))
    for path in manifest["clean"]["erase"]:
        place = safe_path(root, path)
        if path == INDEX:
            empty_index(place)
        elif path == VIEWS:
            remove_views(place)
        elif not place.is_dir():
            place.unlink(missing_ok=True)
        elif path.startswith(f"{STATE}/"):
            shutil.rmtree(place)
        elif not any(place.iterdir()):
            place.rmdir()
    if not manifest["undo"]:
        shutil.rmtree(undo_folder(root, manifest), ignore_errors=True)


def scrub(path: Path, digests: frozenset[str]) -> None:
    """Take lines out of a log that others may append to without a lock; what they append meanwhile is kept."""
    content = read_bytes(path)
    if content is None:
        return
    kept = [line for line in content.split(b"\n") if digest_of(line) not in digests]
    beside = path.with_name(f"{path.name}.tmp")
    with path.open("rb") as old:
        write_private(beside, b"\n".join(kept))
        beside.replace(path)
        old.seek(len(content))
        late = old.read()
    if late:
        add_lines(path, late)


def empty_index(folder: Path) -> None:
    """Remove the index with every word in it, and let no other process go on writing an old one."""
    if not folder.is_dir():
        return
    with exclusive(folder / "lock", doing="the index"):
        for place in folder.iterdir():
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)
            elif place.name != "lock":
                place.unlink(missing_ok=True)


def remove_views(folder: Path) -> None:
    """Remove what audiences read, each while nobody makes it anew from older files."""
    views = [view for view in folder.iterdir() if view.is_dir()] if folder.is_dir() else []
    for view in views:
        with exclusive(view / STATE / "view.lock", doing="a view"):
            view.with_name(f"{view.name}.json").unlink(missing_ok=True)
            for beside in folder.glob(f"{view.name}.*"):
                beside.unlink(missing_ok=True)
            empty_index(view / INDEX)
            shutil.rmtree(view)
    for left in folder.glob("*.*"):  # a view of which somebody removed the folder
        if left.is_file() and not left.with_name(left.name.partition(".")[0]).is_dir():
            left.unlink(missing_ok=True)


def unfinished(root: Path, error: OSError) -> StorageFailed:
    """The error for a disk that refuses after the commit point."""
    where = error.filename or root
    return StorageFailed(
        f"{where}: {error.strerror}; the change is complete but not yet in place. "
        "Make room or correct the permissions and run any command"
    )


def undo_folder(root: Path, manifest: Mapping[str, Any]) -> Path:
    """Where the old files are linked."""
    return root / (f"{UNDO}/{manifest['undo']}" if manifest["undo"] else f"{COMMIT}/old")


def move_into_place(root: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Rename the new files into place, the old ones linked into the undo record first."""
    undo = undo_folder(root, manifest)
    make_folder(undo)
    kept: list[str] = []
    folders = set()
    gone: list[Path] = []
    for number, row in enumerate(manifest["changes"]):
        path = safe_path(root, row["path"])
        staged = root / COMMIT / str(row.get("number", number))
        link = undo / str(row.get("number", number))
        folders.add(path.parent)
        # a staged file that is gone was renamed before the kill
        if digest_at(path) == row["old"] and row["old"] != row["new"] and (row["new"] == "" or staged.exists()):
            make_folder(path.parent)
            if row["old"]:
                link_old(path, link)
            if row["new"]:
                staged.rename(path)
            else:
                path.unlink(missing_ok=True)
                gone.append(path)
        if row["old"] != row["new"] and row["old"] and link.exists() and digest_at(link) != row["old"]:
            kept.append(keep_save(root, row["path"], link))
    for folder in folders:
        sync_folder(folder)
    sync_folder(undo)
    for path in gone:
        remove_empty(root, path.parent)
    return kept


def remove_empty(root: Path, folder: Path) -> None:
    """Remove a folder of topics in which nothing is left, and those above it in which nothing is left then."""
    topics = root / TOPICS
    while topics in folder.parents:
        try:
            folder.rmdir()
        except OSError:  # somebody has put something there, or removed it
            return
        folder = folder.parent


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
            if size >= offset and content.startswith(there) and size == offset + len(there):
                os.lseek(descriptor, offset + len(there), os.SEEK_SET)
                write_all(descriptor, content[len(there) :])
            elif not holds(path.read_bytes(), content):  # git merged it meanwhile: what is there stays there
                ended = size == 0 or os.pread(descriptor, 1, size - 1) == b"\n"
                os.lseek(descriptor, 0, os.SEEK_END)
                write_all(descriptor, content if ended else b"\n" + content)
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


def written_digests(root: Path) -> dict[str, str]:
    """What the commits that can be undone made of each file, the newest last: path → digest."""
    found: dict[str, str] = {}
    for name in undo_records(root):
        try:
            record = json.loads((root / UNDO / name / "record.json").read_text("utf-8"))
            found.update((row["path"], row["new"]) for row in record["changes"])
        except (OSError, ValueError, KeyError, TypeError):  # just being written, or damaged: then it tells nothing
            continue
    return found


def read_undo(root: Path) -> tuple[str, dict[str, Any]]:
    """The newest undo record's name and content; ("", {}) when there is none."""
    for name in reversed(undo_records(root)):
        try:
            record: dict[str, Any] = json.loads((root / UNDO / name / "record.json").read_text("utf-8"))
        except (FileNotFoundError, ValueError):
            continue
        return name, record
    return "", {}
