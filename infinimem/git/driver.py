"""What git calls for a file that both sides changed: `infinimem merge-driver %O %A %B %P`."""

from __future__ import annotations

from pathlib import Path

from infinimem.errors import StorageFailed
from infinimem.git.run import run_git
from infinimem.model import Document
from infinimem.store.layout import BUFFER, EVIDENCE
from infinimem.text.document import parse
from infinimem.text.merge import Merged, merge_appended, merge_topic

LABELS = ("-L", "ours", "-L", "base", "-L", "theirs")


def merge_files(base: Path, ours: Path, theirs: Path, path: str) -> int:
    """Merge three files into `ours`, as git's merge drivers do; gives the number of places left to a person.

    `path` is the file's name in the repository. A file that is none of ours, or that cannot be understood, is merged
    as git merges text. Raises `StorageFailed`; then `ours` is as it was.
    """
    try:
        versions = [file.read_bytes() for file in (base, ours, theirs)]
    except OSError as error:
        raise StorageFailed(f"{error.filename} cannot be read: {error.strerror}; git merge can be run again") from error
    merged = merge_three(path, *versions)
    if merged is None:
        return merge_text(base, ours, theirs)
    try:
        ours.write_bytes(merged.content)
    except OSError as error:
        raise StorageFailed(f"{ours} cannot be written: {error.strerror}; git merge can be run again") from error
    return merged.conflicts


def merge_three(path: str, base: bytes, ours: bytes, theirs: bytes) -> Merged | None:
    """Three versions of one of a library's files as one; None where only text can be merged."""
    kind = kind_of(path)
    if kind == "appended":
        if any(parse("", content).problems for content in (base, ours, theirs)):
            return None
        return merge_appended(path, base, ours, theirs)
    if kind == "topic":
        if any(is_foreign(parse(path, content)) for content in (ours, theirs)):
            return None
        return merge_topic(path, base, ours, theirs)
    return None


def kind_of(path: str) -> str:
    """What a file of a repository is to a library, by its name: appended, topic or nothing of ours."""
    parts = path.split("/")
    if parts[-1] == BUFFER or (len(parts) > 1 and parts[-2] == EVIDENCE):
        return "appended"
    return "topic" if parts[-1].endswith(".md") else ""


def is_foreign(document: Document) -> bool:
    """Whether a document lacks our front matter; its path says nothing here, for git may give another one."""
    fields = document.header.fields
    return "id" not in fields or not {"token_count", "update_log", "created_time", "aux"} & set(fields)


def merge_text(base: Path, ours: Path, theirs: Path) -> int:
    """Merge as git merges text, with its markers where both sides changed the same lines."""
    names = [str(file.resolve()) for file in (ours, base, theirs)]
    done = run_git(ours.resolve().parent, "merge-file", *LABELS, *names)
    if done.code < 0 or done.code > 127:
        raise StorageFailed(f"git merge-file failed: {done.said or done.code}; resolve it by hand")
    return done.code
