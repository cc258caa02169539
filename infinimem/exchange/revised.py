"""A note that was imported before: what of it memory has, what was edited in place, what it no longer says.

A note has no identity but its words. What stands in memory is recognised by its id, else by the same words from the
same file, else, where a folder is read, by the same words from a file that is no longer in it: the note was moved.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import PurePosixPath

from infinimem.exchange.message import ATTACHMENT, Found, Message, Unread
from infinimem.model import Unit
from infinimem.store.imported import id_of
from infinimem.text.signature import parse_seqs

IN_PLACE = 0.3
"""How alike a paragraph between the same two neighbours must be to replace the one that stood there, 0 to 1."""
BESIDE = 0.5
"""The same beside one neighbour that it had."""
ANYWHERE = 0.85
"""The same under the same heading of the same note."""
WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+|[^\w\s]")
FILE = "file:"


@dataclass(frozen=True, slots=True)
class Kept:
    """A paragraph of a note as memory shows it; `replaced` are the words whose place it took."""

    seq: int
    id: str
    path: str
    text: str
    heading: str
    replaced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Remembered:
    """What memory shows of notes, by the path of each and in the order in which it came."""

    notes: Mapping[str, Sequence[Kept]]

    def path_before(self, messages: Sequence[Message], path: str, present: Collection[str]) -> list[str]:
        """Where a note stood before it was moved: files that are gone with which it shares words.

        One of another name must share half of its paragraphs, or of the note's.
        """
        own = {kept.text for kept in self.notes.get(path, ())}
        new = {message.text for message in messages} - own
        found = []
        for other, held in self.notes.items():
            if other in present or not new:
                continue
            shared = len(new & {kept.text for kept in held})
            is_called_so = PurePosixPath(other).name == PurePosixPath(path).name
            if shared and (is_called_so or 2 * shared >= min(len(held), len(new))):
                found.append((-shared, other))
        return [other for _, other in sorted(found)]


def remembered(units: Iterable[Unit], words_replaced: Callable[[int], Sequence[str]]) -> Remembered:
    """What memory shows of notes: of visible entries those that came from one, and stand alone."""
    shown = [
        unit
        for unit in units
        if unit.source.startswith(FILE) and unit.get("id") and len(unit.seqs) == 1 and not unit.get(ATTACHMENT)
    ]
    by: dict[int, list[Unit]] = {}
    words = {unit.seqs[0]: unit.text for unit in shown}
    for unit in shown:  # what waits in CURRENT to be replaced is as good as gone
        for seq in parse_seqs(unit.get("supersedes")):
            by.setdefault(seq, []).append(unit)
    notes: dict[str, list[Kept]] = {}
    for unit in sorted(shown, key=lambda unit: unit.seqs):
        seq = unit.seqs[0]
        if seq in by:
            continue
        before = parse_seqs(unit.get("supersedes"))
        replaced = (*(words[one] for one in before if one in words), *(words_replaced(seq) if before else ()))
        path = unit.source.removeprefix(FILE)
        notes.setdefault(path, []).append(Kept(seq, unit.get("id"), path, unit.text, unit.get("heading"), replaced))
    return Remembered(notes)


def compare(
    found: Sequence[Found], path: str, memory: Remembered, present: Collection[str]
) -> tuple[list[Found], list[Kept]]:
    """What a note says, each paragraph with the entry that has its words or that it replaces; and what is gone from it.

    `present` are the paths of all notes that are read; empty where a single file is, of which nobody says that others
    are gone.
    """
    messages = [one for one in found if isinstance(one, Message)]
    paths = [path, *(memory.path_before(messages, path, present) if present else ())]
    held = [kept for one in paths for kept in memory.notes.get(one, ())]
    same = recognised(messages, held)
    known = set(same.values())
    left = [kept for kept in held if kept not in known]
    before = replaced_by(messages, same, held, left)
    changed: dict[str, Message] = {}
    for message in messages:
        if message.key in same:
            changed[message.key] = replace(message, known_as=same[message.key].id)
        elif message.key in before:
            old = before[message.key]
            key = f"{message.key}\nagain {old.id}" if message.text in old.replaced else message.key
            changed[message.key] = replace(message, key=key, replaces=old.seq)
    gone = [kept for kept in left if kept not in before.values()]
    whole = not any(isinstance(one, Unread) for one in found)
    result = [changed.get(one.key, one) if isinstance(one, Message) else one for one in found]
    return result, gone if whole else []


def recognised(messages: Sequence[Message], held: Sequence[Kept]) -> dict[str, Kept]:
    """The entry that a paragraph is, by its key: the one with its id, else one with its words."""
    ids = {kept.id: kept for kept in held}
    same = {message.key: ids[one] for message in messages if (one := id_of(message.key)) in ids}
    free: dict[str, list[Kept]] = {}
    for kept in held:
        if kept not in same.values():
            free.setdefault(kept.text, []).append(kept)
    for message in messages:
        if message.key not in same and free.get(message.text):
            same[message.key] = free[message.text].pop(0)
    return same


def replaced_by(
    messages: Sequence[Message], same: Mapping[str, Kept], held: Sequence[Kept], left: Sequence[Kept]
) -> dict[str, Kept]:
    """What a paragraph takes the place of, by its key: the most alike first, each once."""
    here = neighbours([same[message.key].id if message.key in same else "" for message in messages])
    there = dict(zip([kept.id for kept in held], neighbours([kept.id for kept in held]), strict=True))
    choices = []
    for at, message in enumerate(messages):
        if message.key in same:
            continue
        for kept in left:
            alike = likeness(message.text, kept.text)
            beside = sum(one == other for one, other in zip(here[at], there[kept.id], strict=True))
            enough = (ANYWHERE, BESIDE, IN_PLACE)[beside]
            under = beside or kept.heading == dict(message.fields).get("heading", "")
            if under and (alike >= enough or message.text in kept.replaced):
                choices.append((-beside, -alike, at, kept.seq, message.key, kept))
    before: dict[str, Kept] = {}
    for *_, key, kept in sorted(choices, key=lambda choice: choice[:4]):
        if key not in before and kept not in before.values():
            before[key] = kept
    return before


def neighbours(ids: Sequence[str]) -> list[tuple[str, str]]:
    """For each paragraph the one before and the one behind it; `|` is the note's edge, "" what is new."""
    around = ["|", *ids, "|"]
    return [(one, other) for (one, _), (_, other) in pairwise(pairwise(around))]


def likeness(one: str, other: str) -> float:
    """How much of their words two texts share, in order, 0 to 1."""
    matcher = SequenceMatcher(None, WORD.findall(one.casefold()), WORD.findall(other.casefold()), autojunk=False)
    return matcher.ratio() if matcher.quick_ratio() >= IN_PLACE else 0.0
