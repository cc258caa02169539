"""Older states of a library to compare with: a commit's, or from the undo journal where there is no git."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from infinimem.errors import BadInput
from infinimem.git.compare import State
from infinimem.git.numbers import numbers_since
from infinimem.git.run import must_git, run_git, work_tree
from infinimem.model import Document
from infinimem.search.records import asked_interval
from infinimem.store.files import read_bytes
from infinimem.store.layout import BUFFER, EVIDENCE, TOPICS, UNDO
from infinimem.store.read import list_files, read_file
from infinimem.store.transaction import read_undo
from infinimem.text.document import parse

EMPTY_LABEL = "the beginning"
SHOWN = (BUFFER, TOPICS)
"""What a reader sees; evidence says what became of it."""


@dataclass(frozen=True, slots=True)
class Past:
    """Two states of a library, as the documents in which they differ; `label` says since when, `commit` which."""

    label: str
    old: State
    new: State
    commit: str = ""
    evidence: tuple[Document, ...] | None = None
    """What the newer state's evidence gained, where that is not the evidence on disk."""
    numbers: Mapping[int, int] = field(default_factory=dict)
    """Numbers that entries of the older state have no longer, and those that they have now."""


def is_kept_by_git(root: Path) -> bool:
    """Whether git knows files of this library."""
    return work_tree(root) is not None and bool(run_git(root, "ls-files", "-z", "--", ".").out)


def since_commit(root: Path, revision: str = "HEAD") -> Past:
    """The files as they are against those of a revision; of `A..B`, those of B against those of A."""
    first, dots, last = revision.partition("..")
    commit = commit_of(root, first or "HEAD")
    if commit == "" and first in ("", "HEAD"):
        return Past("the first commit, which is still to come", {}, dict(files_now(root, list_shown(root))))
    if commit == "":
        raise BadInput(f"git knows no revision {first!r}; see: infinimem history")
    label = must_git(root, "show", "--no-patch", "--format=%cs %h %s", commit).text
    if dots:
        other = commit_of(root, last or "HEAD")
        if other == "":
            raise BadInput(f"git knows no revision {last!r}; see: infinimem history")
        paths = names_in(must_git(root, *DIFF, commit, other, "--", *SHOWN, EVIDENCE).out)
        new = files_at(root, other, paths)
        evidence = tuple(document for path, document in new.items() if not is_shown(path))
        shown = {path: document for path, document in new.items() if is_shown(path)}
        old = {path: document for path, document in files_at(root, commit, paths).items() if is_shown(path)}
        return Past(label, old, shown, commit, evidence, numbers_between(root, [commit, other], old, shown))
    paths = names_in(must_git(root, *DIFF, commit, "--", *SHOWN).out)
    paths += names_in(run_git(root, "ls-files", "--others", "--exclude-standard", "-z", "--", *SHOWN).out)
    paths = list(dict.fromkeys([*paths, BUFFER]))  # CURRENT even where the user has git ignore it
    old, now = files_at(root, commit, paths), dict(files_now(root, paths))
    return Past(label, old, now, commit, None, numbers_between(root, [commit], old, now))


def numbers_between(root: Path, commits: Sequence[str], old: State, new: State) -> dict[int, int]:
    """The numbers that a merge has changed between two commits, or between one and the files as they are."""
    options = ("diff", "--no-ext-diff", "--no-color", "--no-renames", "--text", "--unified=0")
    return numbers_since(old.values(), new.values(), must_git(root, *options, *commits, "--", EVIDENCE).out)


DIFF = ("diff", "--name-only", "--no-renames", "--no-ext-diff", "--relative", "-z")


def since_date(root: Path, date: str) -> Past:
    """The files as they are against those of the last commit before a date."""
    found = must_git(root, "rev-list", "--max-count=1", f"--before={moment_of(date)}", "HEAD").text
    if found:
        return since_commit(root, found)
    return Past(EMPTY_LABEL, {}, dict(files_now(root, list_shown(root))))


def moment_of(date: str) -> str:
    """The first moment, in UTC, of a date that may be partial."""
    first = str(asked_interval(date)[0])
    return f"{first[:4]}-{first[4:6]}-{first[6:8]}T{first[8:10]}:{first[10:12]}:{first[12:14]}Z"


def since_flush(root: Path) -> Past:
    """The files that the last flush changed, as they are against what they were before it."""
    name, undo = read_undo(root)
    if not name:
        return Past(EMPTY_LABEL, {}, dict(files_now(root, list_shown(root))))
    old: dict[str, Document] = {}
    for number, row in enumerate(undo["changes"]):
        path = row["path"]
        if row["old"] and is_shown(path):
            old[path] = parse(path, read_bytes(root / UNDO / name / str(row.get("number", number))) or b"")
    paths = [row["path"] for row in undo["changes"] if is_shown(row["path"])]
    at = undo["about"].get("at", "an unknown time")
    return Past(f"before the flush at {at}", old, dict(files_now(root, paths)))


def commit_of(root: Path, revision: str) -> str:
    """The full id of the commit that a revision names; "" for none."""
    return run_git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}").text


def list_shown(root: Path) -> list[str]:
    """CURRENT and the topic documents."""
    return [path for path in list_files(root) if is_shown(path)]


def is_shown(path: str) -> bool:
    """Whether a reader of the library meets this file."""
    hidden = any(part.startswith(".") for part in path.split("/"))
    return path == BUFFER or (path.startswith(f"{TOPICS}/") and path.endswith(".md") and not hidden)


def files_now(root: Path, paths: Iterable[str]) -> Iterator[tuple[str, Document]]:
    """The documents of some paths that are there."""
    for path in paths:
        if is_shown(path) and not (root / path).is_symlink():
            file = read_file(root, path)
            if file.digest:
                yield path, file.document


def files_at(root: Path, commit: str, paths: Iterable[str]) -> dict[str, Document]:
    """The documents of some paths as a commit has them, read by one process."""
    wanted = {path for path in paths if is_shown(path) or path.startswith(f"{EVIDENCE}/")}
    listing = must_git(root, "ls-tree", "-r", "-z", commit, "--", *SHOWN, EVIDENCE).out if wanted else b""
    blobs: dict[str, str] = {}
    for row in listing.split(b"\0"):
        meta, _, name = row.partition(b"\t")
        path = name.decode("utf-8", "surrogateescape")
        if path in wanted and meta.startswith(b"100"):  # an ordinary file, no link
            blobs[path] = meta.split()[2].decode()
    contents = read_blobs(root, blobs.values())
    return {path: parse(path, contents[blob]) for path, blob in blobs.items()}


def read_blobs(root: Path, blobs: Iterable[str]) -> Mapping[str, bytes]:
    """The contents of git objects by their ids."""
    ids = list(dict.fromkeys(blobs))
    if not ids:
        return {}
    found = must_git(root, "cat-file", "--batch", content="".join(f"{one}\n" for one in ids).encode()).out
    contents: dict[str, bytes] = {}
    at = 0
    for one in ids:
        end = found.index(b"\n", at)
        size = int(found[at:end].split()[2])
        contents[one] = found[end + 1 : end + 1 + size]
        at = end + 2 + size
    return contents


def names_in(listing: bytes) -> list[str]:
    """The names of a listing that ends each with a NUL."""
    return [name.decode("utf-8", "surrogateescape") for name in listing.split(b"\0") if name]
