"""One file as somebody has just saved it: what is wrong with it, and its plain bullets signed.

`check` looks at a whole library; this looks at one file, and asks the index about the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from infinimem.check import Finding, Survey, check_doubled, check_headers, check_near_misses, in_order, writable
from infinimem.consolidate.hand import sign_file
from infinimem.errors import BadInput, StorageFailed
from infinimem.model import Document, Entry, Problem, Unit
from infinimem.store.buffer import hold
from infinimem.store.evidence import line_of_conflict
from infinimem.store.layout import BUFFER, EVIDENCE, FLUSH_LOCK, LOG, SETTINGS
from infinimem.store.lock import exclusive
from infinimem.store.read import File, read_file
from infinimem.text.document import parse, unsigned_entries
from infinimem.text.signature import render_seqs

if TYPE_CHECKING:
    from infinimem.search.index import Index

SHOWN = 10
"""Entries of one file that are named for standing in another one, too: a copied file has hundreds."""


def check_saved(root: Path, path: str, index: Index) -> list[Finding]:
    """What is wrong in one file, by line; `index` (fresh) says what the others hold.

    Only what needs a person: a plain bullet is signed, a wrong count recounted, without a word.
    """
    if path.startswith(f"{EVIDENCE}/"):
        return check_evidence_file(root, path)
    if path == SETTINGS:
        return check_settings(root)
    try:
        file = read_file(root, path)
    except StorageFailed as error:
        return [Finding(Problem(path, 0, str(error), code="permission"))]
    if not file.digest:
        return []
    survey = survey_of(root, file)
    survey.findings += [Finding(problem) for problem in file.document.problems]
    check_near_misses(survey)
    check_guest(survey, file.document)
    check_doubled(survey)
    check_front_matter(survey)
    check_elsewhere(survey, file.document, index)
    return in_order(survey.findings)


@dataclass(frozen=True, slots=True)
class Edited:
    """What a hand did to entries that had a number: other words, other fields, or gone from the file."""

    reworded: tuple[int, ...] = ()
    marked: tuple[int, ...] = ()
    deleted: tuple[int, ...] = ()
    moved: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.reworded or self.marked or self.deleted or self.moved)


def edited_between(path: str, before: bytes, after: bytes, index: Index) -> Edited:
    """What became of the entries of a file; `index` (fresh) says which of those that are gone stand elsewhere."""
    old, new = ({entry.seqs: entry for entry in parse(path, content).entries} for content in (before, after))
    both = [(old[seqs], new[seqs]) for seqs in old if seqs in new]
    left = {seq for seqs in old for seq in seqs} - {seq for seqs in new for seq in seqs}
    moved = {seq for seq in left if any(unit.path != path for unit in index.standing(seq))}
    return Edited(
        tuple(sorted(seq for one, other in both if one.text != other.text for seq in one.seqs)),
        tuple(sorted(seq for one, other in both if one.signature != other.signature for seq in one.seqs)),
        tuple(sorted(left - moved)),
        tuple(sorted(moved)),
    )


def survey_of(root: Path, file: File) -> Survey:
    """A survey that has seen one file only."""
    nothing = File(BUFFER, "", parse(BUFFER, b""))
    is_buffer = file.path == BUFFER
    topics = {} if is_buffer else {file.path: file}
    return Survey(root, "", "", file if is_buffer else nothing, topics, {}, File(LOG, "", parse(LOG, b"")), 1)


def check_evidence_file(root: Path, path: str) -> list[Finding]:
    """Evidence is only ever appended to, so a merge that left its markers is what can be wrong with it."""
    try:
        line = line_of_conflict(root / path)
    except OSError:
        return []
    message = "a git conflict is not resolved; keep the lines of both sides, then go on"
    return [Finding(Problem(path, line, message, code="conflict"))] if line else []


def check_settings(root: Path) -> list[Finding]:
    """The library's settings, as the next command will read them."""
    from infinimem.config import load_settings

    try:
        load_settings(root)
    except BadInput as error:
        place, _, message = str(error).removeprefix(f"{root}/").partition(": ")
        path, _, line = place.partition(":")
        if path == SETTINGS and line.isdecimal():
            return [Finding(Problem(SETTINGS, int(line), message, code="settings"))]
        return [Finding(Problem(SETTINGS, 0, str(error), code="settings"))]
    return []


def check_guest(survey: Survey, document: Document) -> None:
    """Entries in a file that lost its `id`: from then on it is read, but nothing keeps it in order."""
    if document.is_guest and document.entries and not document.blocking:
        message = f"has entries but no `id`, so it is never changed; if it is ours, add `id: {document.id}` on top"
        survey.say(document.path, document.entries[0].span.start + 1, message, "guest", fixable=False)


def check_front_matter(survey: Survey) -> None:
    """Front matter that can be read but not changed; counts and ids that are off put themselves right."""
    said = len(survey.findings)
    check_headers(survey)
    survey.findings[said:] = [one for one in survey.findings[said:] if one.problem.code == "front-matter"]


def check_elsewhere(survey: Survey, document: Document, index: Index) -> None:
    """Entries that another file shows, too: pasted, copied, or brought back by a merge."""
    if document.is_guest:
        return
    found = 0
    for entry in document.entries:
        others = (unit for seq in entry.seqs for unit in index.standing(seq))
        other = next((unit for unit in others if clashes(document.path, entry, unit)), None)
        if other is None:
            continue
        found += 1
        if found <= SHOWN:
            same = other.text == entry.text
            seqs, place = render_seqs(entry.seqs), f"{other.path}:{other.line}"
            message = f"seq {seqs} stands in {place} too, in {'the same' if same else 'other'} words"
            survey.say(document.path, entry.span.start + 1, message, "doubled" if same else "clash", fixable=True)
    if found > SHOWN:
        message = f"{found - SHOWN} more of its entries stand elsewhere, too"
        survey.say(document.path, 0, message, "doubled", fixable=True)


def clashes(path: str, entry: Entry, other: Unit) -> bool:
    """Whether another place of a seq is one too many; a copy in CURRENT leaves it at the next flush."""
    return other.path != path and not (BUFFER in (path, other.path) and other.text == entry.text)


def is_loose(root: Path, path: str) -> bool:
    """Whether a file of ours has plain bullets to be signed."""
    document = read_file(root, path).document
    return writable(document) and bool(unsigned_entries(document))


def sign_saved(root: Path, path: str, now: datetime, *, wait: float = 5.0) -> list[int]:
    """Sign the plain bullets of one file; gives their seqs. Nothing else in the file changes.

    Raises `NeedsAttention` while a flush is at work (it would find the topic changed under its plan), and
    `ChangedOnDisk` when the file is saved meanwhile.
    """
    with exclusive(root / FLUSH_LOCK, wait=wait, doing="flush"), hold(root) as note:
        return sign_file(root, path, note, now)
