"""Loading an export: into an empty library it is restored byte for byte, into another it is added.

What is added gets seqs of its own, in the old order, and every reference follows. Each entry carries where it comes
from in `origin`, a digest of its old seq and first words, so that loading the export again, or a later one of the
same library, adds only what is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from infinimem.consolidate.due import timestamp
from infinimem.errors import BadInput
from infinimem.exchange.export.json_lines import Package, read_package
from infinimem.exchange.export.merge import plan_merge
from infinimem.exchange.export.pieces import as_document
from infinimem.model import Change, Entry
from infinimem.store import transaction
from infinimem.store.buffer import hold, next_seq, note_state
from infinimem.store.evidence import append_to_evidence, event_line
from infinimem.store.files import digest_of, read_bytes
from infinimem.store.layout import BUFFER, BUFFER_HEAD, FLUSH_LOCK, LOG, MARKER, SETTINGS, create_library
from infinimem.store.lock import exclusive
from infinimem.store.note import set_note
from infinimem.store.read import list_files
from infinimem.store.transaction import digest_at
from infinimem.text.document import entry_lines
from infinimem.text.signature import render_seqs


@dataclass(frozen=True, slots=True)
class Loaded:
    """What loading an export did. `seqs` are those of the entries it brought, `topics` the pages it made.

    `restored` says that the library was empty and is now the one that was exported; `known` counts the entries that
    were there already, `retired` those that what came has replaced; `notes` say what was left as it is, and why.
    """

    root: str
    restored: bool
    seqs: tuple[int, ...] = ()
    topics: tuple[str, ...] = ()
    known: int = 0
    retired: int = 0
    notes: tuple[str, ...] = ()


def load_export(root: Path, path: Path, now: datetime, *, again: bool = False) -> Loaded:
    """Load a file of JSON lines that `export` wrote into the library in `root`, which is made if missing.

    What was forgotten there stays so unless `again` is given.

    One transaction: all of it is there, or nothing. Raises `BadInput` where the file is no whole export.
    """
    package = read_package(path)
    for name in package.files:
        if name == SETTINGS and not sound_settings(package.files[name]):
            raise BadInput(f"{path}: its infinimem.yaml does not say `format: 1`; nothing was loaded")
    create_library(root)
    with exclusive(root / FLUSH_LOCK, doing="flush"), hold(root) as note:
        if is_empty(root):
            return restore(root, package, note)
        return add(root, package, note, timestamp(now), again=again)


def sound_settings(content: bytes) -> bool:
    """Whether settings mark a folder as a library of this format."""
    from infinimem.store.layout import FORMAT

    found = FORMAT.search(content.decode("utf-8", "replace"))
    return found is not None and found[1].strip("'\"") == "1"


def is_empty(root: Path) -> bool:
    """Whether nothing of what was ever written here is left."""
    others = [path for path in list_files(root) if path != BUFFER]
    return not others and not read_bytes(root / LOG) and (read_bytes(root / BUFFER) or b"") in (b"", BUFFER_HEAD)


def check_folders(root: Path, paths: Iterable[str]) -> None:
    """Raise `BadInput` where a file stands in the place of a folder that is needed: found late, it would be stuck."""
    for parent in {parent for path in paths for parent in (root / path).parents if parent != root}:
        if parent.is_relative_to(root) and parent.exists() and not parent.is_dir():
            raise BadInput(f"{parent} is a file where a folder is needed; move it away. Nothing was loaded")


def restore(root: Path, package: Package, note: int) -> Loaded:
    """The exported library, byte for byte. Settings that stand here already stay."""
    documents = [as_document(path, content) for path, content in package.files.items()]
    waiting = [entry for document in documents if document.path in (BUFFER, LOG) for entry in document.entries]
    files = {**package.files, LOG: lines_of(waiting)} if waiting else package.files
    changes: list[Change] = []
    for path, content in files.items():
        old = read_bytes(root / path)
        if old != content and (path != SETTINGS or old in (None, MARKER.encode())):
            changes.append(Change(path, "" if old is None else digest_of(old), content))
    check_folders(root, files)
    following = max(next_seq(root, note), package.high + 1)
    set_note(note, f"ready unknown lf {following}")  # whatever happens now, no seq is given twice
    transaction.commit(root, changes, [], about_load(waiting, ()))
    note_state(root, note, following)
    seqs = sorted({seq for document in documents for entry in document.entries for seq in entry.seqs})
    topics = tuple(document.id for document in documents if document.path.startswith("topics/"))
    return Loaded(str(root), True, tuple(seqs), topics)


def add(root: Path, package: Package, note: int, now: str, *, again: bool = False) -> Loaded:
    """What of an export is not here yet, with seqs of this library."""
    paths = list_files(root)
    files = {path: read_bytes(root / path) or b"" for path in (*paths, LOG)}
    merge = plan_merge(package, files, next_seq(root, note), now, again=again)
    if not merge.contents and not merge.evidence:
        return Loaded(str(root), False, known=merge.known, notes=merge.notes)
    contents = dict(merge.contents)
    if merge.logged:
        contents[LOG] = files[LOG] + lines_of(merge.logged)
    changes = [Change(path, digest_at(root / path), content) for path, content in contents.items()]
    check_folders(root, contents)
    high = event_line("flush", now, high=str(merge.following - 1))
    placed = {seq for entry in merge.placed for seq in entry.seqs}
    void = [event_line("unflush", now, seq=render_seqs(sorted(placed))), high] if placed else [high]
    about = about_load(merge.waiting, merge.placed, void)
    transaction.commit(root, changes, [append_to_evidence(root, now, [*merge.evidence, high])], about)
    note_state(root, note, merge.following)
    return Loaded(str(root), False, merge.seqs, merge.topics, merge.known, merge.retired, merge.notes)


def about_load(waiting: Sequence[Entry], placed: Sequence[Entry], void: Sequence[str] = ()) -> dict[str, object]:
    """What a commit that is killed and then edited over needs to know: what came into CURRENT, what into pages.

    Where it has to be taken back, the entries that came into pages wait in CURRENT, and evidence says so.
    """
    back = ["".join(entry_lines(entry.signature, entry.text)) for entry in waiting]
    lines = ["".join(entry_lines(entry.signature, entry.text)) for entry in placed]
    return {"kind": "load", "back": back, "lines": [*lines, *back], "void": list(void)}


def lines_of(entries: Iterable[Entry]) -> bytes:
    """Entries as the log of writes holds them."""
    lines = (line for entry in entries for line in entry_lines(entry.signature, entry.text))
    return "".join(lines).encode("utf-8", "surrogateescape")
