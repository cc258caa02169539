"""What else in the library's folder holds forgotten words: undo records, logs, proposals, plans, editors' backups."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from infinimem.errors import BadPlan, StorageFailed, Unreadable
from infinimem.exchange.export.place import MARK, files_in, is_earlier
from infinimem.forgetting.erase import Meant, without
from infinimem.forgetting.words import Words, readable
from infinimem.model import Change, Entry
from infinimem.store.files import digest_of, read_bytes
from infinimem.store.layout import (
    BUFFER,
    COMMIT,
    EVIDENCE,
    FLUSH_LOCK,
    INDEX,
    KEPT,
    LOCK,
    LOG,
    MANIFEST,
    SETTINGS,
    STATE,
    TOPICS,
    UNDO,
    VIEWS,
)
from infinimem.store.proposals import PROPOSALS, read_proposals, render_proposals
from infinimem.store.read import BACKUP_ENDINGS
from infinimem.store.summaries import SUMMARIES
from infinimem.store.transaction import Cleaning, undo_records
from infinimem.store.usage import RECALLS
from infinimem.text.document import parse, render
from infinimem.text.lines import counted

LOGS = (".jsonl", ".log")
PLANS = (".yaml", ".yml", ".json")
LEFT_BESIDE = (*BACKUP_ENDINGS, ".save", ".old", ".rej", ".autosave", ".kate-swp")
BACKUP = re.compile(r"#.*#|\.#.*|.*\.sw[a-p]|.*(?:" + "|".join(map(re.escape, LEFT_BESIDE)) + r")|.*\.save\.\d+")
OLD_VERSIONS = frozenset({".stversions", ".trash", ".history", ".dropbox.cache"})
"""Folders in which Syncthing, Obsidian, editors and Dropbox put what a file was, or what was thrown away."""
MOST_LINKED = 10_000
"""Files of a folder outside the library, to which a symbolic link leads, that are searched."""
KEPT_APART = (COMMIT, MANIFEST, INDEX, UNDO, VIEWS, KEPT, LOG, LOCK, FLUSH_LOCK, f"{STATE}/.gitignore")
"""What of the library's own folder is looked after elsewhere, or holds no words."""


@dataclass(slots=True)
class Traces:
    """What is to go besides entries: files to remove, lines to take out of logs, files to change; and in words what."""

    erase: list[str] = field(default_factory=list)
    scrub: dict[str, list[str]] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    @property
    def cleaning(self) -> Cleaning:
        """As the transaction carries it out."""
        return Cleaning(tuple(self.erase), {path: tuple(lines) for path, lines in self.scrub.items()})


@dataclass(frozen=True, slots=True)
class About:
    """What traces may be about: forgotten seqs, topics that showed one, topics that go by that name no more.

    `said` are the forgotten seqs, each with its words and with when it was written down: the number alone may be
    another library's.
    """

    seqs: frozenset[int] = frozenset()
    topics: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    said: frozenset[tuple[int, str]] = frozenset()


def traces_of(root: Path, meant: Meant, words: Words, about: About) -> Traces:
    """Everything outside CURRENT, topics and evidence that holds the words, and what is to be done with it."""
    found = Traces()
    if (root / INDEX).is_dir():
        found.erase.append(INDEX)
    if (root / VIEWS).is_dir():
        found.erase.append(VIEWS)
    find_undo(found, root, meant, words)
    find_sites(found, root, words)
    for path in files_below(root):
        if path in found.erase:
            continue
        if path == KEPT or path.startswith(f"{KEPT}/"):
            find_kept(found, root, path, meant, words)
        elif path == PROPOSALS:
            find_proposals(found, root, words, about.gone)
        elif path.startswith(f"{STATE}/"):
            if not is_apart(path):
                find_state(found, root, path, words, about)
        elif BACKUP.fullmatch(path.rpartition("/")[2]) or not OLD_VERSIONS.isdisjoint(path.split("/")[:-1]):
            find_backup(found, root, path, meant, words)
        elif is_document(path):
            continue
        elif is_earlier(root / path):
            find_export(found, root, path, words)
        elif path.endswith(".md"):
            find_copy(found, root, path, words, about.said)
        elif path.endswith(PLANS) and path != SETTINGS:
            find_plan(found, root, path, words)
    return found


def is_apart(path: str) -> bool:
    """Whether a file is looked after elsewhere."""
    return any(path == one or path.startswith(f"{one}/") for one in KEPT_APART)


def is_document(path: str) -> bool:
    """Whether a file is one of the library's own, which are erased by entry."""
    return path in (BUFFER, SETTINGS) or (path.startswith((f"{TOPICS}/", f"{EVIDENCE}/")) and path.endswith(".md"))


def files_below(root: Path, unreadable: Callable[[str], None] = lambda path: None) -> Iterator[str]:
    """Every ordinary file of a folder, as a path relative to it; what git keeps is git's.

    `unreadable` is told each folder that cannot be looked into.
    """
    for folder, names, files in os.walk(root, onerror=lambda error: unreadable(below(root, error.filename))):
        names[:] = sorted(name for name in names if name != ".git")
        for name in sorted(files):
            place = Path(folder) / name
            if name != ".git" and place.is_file() and not place.is_symlink():
                yield place.relative_to(root).as_posix()


def below(root: Path, folder: str) -> str:
    """A folder as a path relative to another, which holds it."""
    return f"{Path(folder).relative_to(root).as_posix()}/"


def linked_below(root: Path) -> Iterator[str]:
    """Every symbolic link to an ordinary file or a folder outside a folder, as a path relative to it."""
    real = root.resolve()
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name != ".git")
        for name in sorted([*names, *files]):
            place = Path(folder) / name
            if place.is_symlink() and place.exists() and not place.resolve().is_relative_to(real):
                yield place.relative_to(root).as_posix()


def behind_link(root: Path, link: str, unreadable: Callable[[str], None]) -> Iterator[str]:
    """The files that a symbolic link leads to, as paths through it; of a folder so many that a look stays short.

    `unreadable` is told the link where there are more.
    """
    place = root / link
    if place.is_file():
        yield link
        return
    if not place.is_dir():  # a pipe, a device
        return
    number = 0
    for number, path in enumerate(files_below(place.resolve(), lambda folder: unreadable(f"{link}/{folder}")), 1):
        if number > MOST_LINKED:
            unreadable(f"{link}/")
            return
        yield f"{link}/{path}"


def content_of(root: Path, path: str) -> bytes:
    """A file's bytes; b"" where it cannot be read: the proof names it then."""
    return known_content(root, path) or b""


def known_content(root: Path, path: str) -> bytes | None:
    """A file's bytes; None where it cannot be read."""
    try:
        return read_bytes(root / path) or b""
    except StorageFailed:
        return None


def shows(content: bytes, path: str, meant: Meant, words: Words) -> bool:
    """Whether a file holds the words, or entries that are meant."""
    if any(meant(entry) for entry in parse(path, content).entries):
        return True
    return any(True for _ in words.places(readable(content)))


def find_undo(found: Traces, root: Path, meant: Meant, words: Words) -> None:
    """Undo records up to the newest that holds the words: none is undone past one that is missing."""
    names = undo_records(root)
    held = [at for at, name in enumerate(names) if holds_words(root, f"{UNDO}/{name}", meant, words)]
    if held:
        found.erase += [f"{UNDO}/{name}" for name in names[: held[-1] + 1]]
        found.said.append(f"{UNDO}: what could be undone until now")
    for path in files_below(root / UNDO):
        if path.partition("/")[0] not in names:
            found.erase.append(f"{UNDO}/{path}")


def holds_words(root: Path, folder: str, meant: Meant, words: Words) -> bool:
    """Whether any file of a folder holds the words."""
    return any(
        shows(content_of(root, f"{folder}/{path}"), f"{folder}/{path}", meant, words)
        for path in files_below(root / folder)
    )


def find_kept(found: Traces, root: Path, path: str, meant: Meant, words: Words) -> None:
    """A version that an editor saved in the moment of a flush: its owner may still want the rest of it."""
    content = content_of(root, path)
    document = parse(path, content)
    shorter = document if document.blocking else without(document, meant, {})
    if shorter is not document:
        content = render(shorter)
        found.changes.append(Change(path, digest_of(render(document)), content))
        found.said.append(path)


def find_proposals(found: Traces, root: Path, words: Words, gone_topics: Collection[str]) -> None:
    """Proposals that tell the words, or name a topic that is gone."""
    content = content_of(root, PROPOSALS)
    rows = read_proposals(root)
    left = [row for row in rows if not words.in_text(str(row)) and not names_topic(row, gone_topics)]
    if len(left) < len(rows):
        found.changes.append(Change(PROPOSALS, digest_of(content), render_proposals(left)))
        found.said.append(PROPOSALS)


def names_topic(value: object, topics: Collection[str]) -> bool:
    """Whether a plan step names one of some topics."""
    if isinstance(value, dict):
        return any(names_topic(one, topics) for one in value.values())
    if isinstance(value, list):
        return any(names_topic(one, topics) for one in value)
    return isinstance(value, str) and value in topics


def find_state(found: Traces, root: Path, path: str, words: Words, about: About) -> None:
    """A log loses the lines that hold the words or are about them; anything else in there is derived, and goes."""
    content = content_of(root, path)
    if path.endswith(LOGS):
        lines = [line for line in content.split(b"\n") if line and tells(path, line, words, about)]
        if lines:
            found.scrub[path] = [digest_of(line) for line in lines]
            found.said.append(f"{path}: {counted(len(lines), 'line')}")
    elif any(True for _ in words.places(readable(content))):
        found.erase.append(path)
        found.said.append(path)


def tells(path: str, line: bytes, words: Words, about: About) -> bool:
    """Whether a line of a log holds the words, is an earlier summary of their topic, or a question they answered."""
    if any(True for _ in words.places(readable(line))):
        return True
    if path not in (SUMMARIES, RECALLS):
        return False
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return True  # half a row is of no use, and of what nobody can tell
    if not isinstance(row, dict):
        return True
    if path == SUMMARIES:
        return row.get("topic") in about.topics or words.in_name(
            f"{row.get('topic')} {row.get('summary')} {row.get('headings')}"
        )
    shown = [*(row.get("shown") or ()), *(row.get("cited") or ())]
    return any(seq in about.seqs for seq in shown if isinstance(seq, int))


def find_backup(found: Traces, root: Path, path: str, meant: Meant, words: Words) -> None:
    """An editor's backup that holds the words, or that is one of a document of ours and names them."""
    content = content_of(root, path)
    if not shows(content, path, meant, words):
        return
    if path.startswith(f"{TOPICS}/") or "/" not in path or words.says(readable(content)):
        found.erase.append(path)
        found.said.append(path)


def find_export(found: Traces, root: Path, path: str, words: Words) -> None:
    """An export that was put into the library and holds the words: it can be made again without them."""
    if any(True for _ in words.places(readable(content_of(root, path)))):
        found.erase.append(path)
        found.said.append(path)


def find_sites(found: Traces, root: Path, words: Words) -> None:
    """Exported sites in the library of which a page holds the words: all of what was exported goes."""
    for mark in [path for path in files_below(root) if path.rpartition("/")[2] == MARK]:
        folder = mark.rpartition("/")[0]
        paths = [path_in(folder, path) for path in files_in(root / folder)]
        if any(words.in_text(path) or words.in_text(readable(content_of(root, path))) for path in paths):
            inside = {path.rpartition("/")[0] for path in paths}
            found.erase += [*paths, mark, *sorted((one for one in inside if one), key=lambda one: -one.count("/"))]
            found.said.append(folder or MARK)


def path_in(folder: str, path: str) -> str:
    """A path below a folder of the library."""
    return f"{folder}/{path}" if folder else path


def find_copy(found: Traces, root: Path, path: str, words: Words, said: Collection[tuple[int, str]]) -> None:
    """A copy of one of our files beside the library's own, such as what a synchronisation in conflict leaves."""

    def meant(entry: Entry) -> Sequence[int]:
        return [seq for seq in entry.seqs if (seq, entry.text) in said or (seq, entry.observed) in said]

    content = content_of(root, path)
    document = parse(path, content)
    if document.blocking or not any(meant(entry) for entry in document.entries):
        return
    try:
        shorter = without(document, meant, {})
    except Unreadable:  # then the search names it
        return
    found.changes.append(Change(path, digest_of(content), render(shorter)))
    found.said.append(path)


def find_plan(found: Traces, root: Path, path: str, words: Words) -> None:
    """A plan that was kept in the library and holds the words."""
    from infinimem.plan.paper import parse_plan

    content = content_of(root, path)
    if not any(True for _ in words.places(readable(content))):
        return
    try:
        parse_plan(content.decode("utf-8", "replace"), path)
    except BadPlan:
        return
    found.erase.append(path)
    found.said.append(path)
