"""A document for somebody who knows nothing of signatures: its text without front matter; and changed text put back.

What is changed in that text becomes entries again: a bullet in the place of another replaces it, a new bullet is a new
entry, a bullet that is gone has left. Whatever else stands there is prose, byte for byte.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from infinimem.errors import BadInput
from infinimem.model import Document, Entry, Signature, Unit
from infinimem.text.document import BULLET, ITEM, parse_lines, units, unsigned_entries
from infinimem.text.lines import BOM
from infinimem.text.signature import parse_signature, render_seqs, render_signature

MARKER = re.compile(r"[ \t]*[-*+][ \t]+")
OWN = frozenset("time source observed supersedes links conf expires key rev at".split())
"""Fields that belong to one entry's words; every other one (ns, sensitivity, …) goes on to what takes its place."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A document with other text: the entries that are new, those that left, and prose that is there no more.

    `removed` names with each entry the seq that took its place, 0 if none did.
    """

    document: Document
    added: tuple[Entry, ...] = ()
    removed: tuple[tuple[Entry, int], ...] = ()
    lost: tuple[Unit, ...] = ()


def plain_lines(document: Document) -> tuple[str, ...]:
    """The lines below the front matter, terminators kept, without signatures."""
    heads = {entry.span.start for entry in document.entries}
    start = document.header.span.stop
    return tuple(
        without_signature(line) if at in heads else line for at, line in enumerate(document.lines[start:], start)
    )


def without_signature(line: str) -> str:
    """The first line of an entry as it reads without its signature."""
    lead = BOM if line.startswith(BOM) else ""
    bare = line.removeprefix(lead)
    item = ITEM.match(bare)
    parsed = parse_signature(bare[item.end() :]) if item is not None else None
    if item is None or parsed is None:
        return line
    text = bare[item.end() + parsed[1] :]
    return lead + bare[: item.end()] + (text[1:] if text[:1] in (" ", "\t") else text)


def with_signature(line: str, signature: Signature) -> str:
    """A bullet's first line, signed; nothing else of it changes."""
    marker = MARKER.match(line)
    assert marker is not None
    return f"{line[: marker.end()]}{render_signature(signature)} {line[marker.end() :]}"


def rewrite(document: Document, text: Sequence[str], following: int, fields: Mapping[str, str]) -> Rewritten:
    """The document with these lines as its plain text. New entries get seqs from `following` on, and `fields`.

    Entries outside the changed lines keep every byte. Raises `BadInput` where the text cannot be read back as it is.
    """
    old, new = plain_lines(document), tuple(text)
    start = document.header.span.stop
    first, last = changed_lines(old, new)
    if old == new:
        return Rewritten(document)
    # whole entries, and the one that ends where the change begins: new lines may continue it
    touched = [
        entry
        for entry in document.entries
        if (entry.span.start - start < last and entry.span.stop - start > first) or entry.span.stop - start == first
    ]
    first = min([first, *(entry.span.start - start for entry in touched)])
    last = max([last, *(entry.span.stop - start for entry in touched)])
    stop = len(new) - (len(old) - last)
    as_read = parse_lines(document.path, (*document.lines[:start], *new))
    bullets = [one for one in unsigned_entries(as_read) if first <= one.span.start - start < stop]
    region = dict(enumerate(new[first:stop], start + first))
    heads = unmoved(document, touched, bullets, region)
    stay = set(heads.values())
    others = [entry for entry in touched if entry.signature not in stay]
    removed = match(others, bullets, heads, following, fields)
    signed = [with_signature(line, heads[at]) if at in heads else line for at, line in region.items()]
    lines = (*document.lines[: start + first], *signed, *document.lines[start + last :])
    done = parse_lines(document.path, lines)
    fresh = range(following, following + len(heads) + 1)
    given = {signature.seqs for signature in heads.values() if signature.seqs[0] in fresh}
    added = tuple(entry for entry in done.entries if entry.seqs in given and entry.signature not in stay)
    refuse_misread(document, done, new, added, removed)
    return Rewritten(done, added, tuple(removed), tuple(lost_prose(document, done)))


def changed_lines(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """The first and, exclusive, the last of the old lines between what both texts have in common."""
    most = min(len(old), len(new))
    first = next((at for at in range(most) if old[at] != new[at]), most)
    same = next((at for at in range(most - first) if old[-1 - at] != new[-1 - at]), most - first)
    return first, len(old) - same


def unmoved(
    document: Document, touched: Sequence[Entry], bullets: Sequence[Entry], region: Mapping[int, str]
) -> dict[int, Signature]:
    """Entries that no plain bullet would be (indented, empty, a task), by the line where they still stand."""
    taken = {bullet.span.start for bullet in bullets}
    found: dict[int, Signature] = {}
    for entry in touched:
        head = document.lines[entry.span.start]
        plain = without_signature(head)
        if BULLET.match(plain):
            continue
        at = next((at for at, line in region.items() if line == plain and at not in taken and at not in found), -1)
        if at >= 0:
            found[at] = entry.signature
    return found


def match(
    old: Sequence[Entry],
    bullets: Sequence[Entry],
    heads: dict[int, Signature],
    following: int,
    fields: Mapping[str, str],
) -> list[tuple[Entry, int]]:
    """Find the signature for each bullet's first line; gives the entries that left and what took their place.

    The same words are the same entry. Of the others, one between the same two neighbours replaces the one most like it.
    """
    left = list(old)
    for bullet in bullets:
        same = next((entry for entry in left if entry.text == bullet.text), None)
        if same is not None:
            left.remove(same)
            heads[bullet.span.start] = same.signature
    old_gaps = gaps(old, [entry not in left for entry in old])
    new_gaps = gaps(bullets, [bullet.span.start in heads for bullet in bullets])
    removed: list[tuple[Entry, int]] = []
    for bullet, gap in new_gaps:
        near = [entry for entry, place in old_gaps if place == gap and entry in left]
        replaced = max(near, key=lambda entry: SequenceMatcher(None, entry.text, bullet.text).ratio(), default=None)
        kept: tuple[tuple[str, str], ...] = ()
        given = dict(fields)
        if replaced is not None:
            left.remove(replaced)
            removed.append((replaced, following))
            given["supersedes"] = render_seqs(replaced.seqs)
            kept = tuple(pair for pair in replaced.signature.fields if pair[0] not in OWN)
        order = [name for name in ("source", "supersedes", "observed") if name in given]
        heads[bullet.span.start] = Signature((following,), (*((name, given[name]) for name in order), *kept))
        following += 1
    return [*removed, *((entry, 0) for entry in left)]


def gaps(entries: Sequence[Entry], stays: Sequence[bool]) -> list[tuple[Entry, int]]:
    """The entries that do not stay, each with the number of those before it that do."""
    return [(entry, sum(stays[:at])) for at, entry in enumerate(entries) if not stays[at]]


def refuse_misread(
    before: Document,
    after: Document,
    text: tuple[str, ...],
    added: Iterable[Entry],
    removed: Iterable[tuple[Entry, int]],
) -> None:
    """Raise `BadInput` unless the text reads back as given, and every entry that was not meant as it was."""
    if after.blocking:
        raise BadInput(str(after.blocking[0]))
    gone = {entry.seqs for entry, _ in removed}
    kept = [(entry.seqs, entry.text) for entry in before.entries if entry.seqs not in gone]
    stand = [(entry.seqs, entry.text) for entry in after.entries]
    wanted = Counter([*kept, *((entry.seqs, entry.text) for entry in added)])
    if plain_lines(after) != text or Counter(stand) != wanted:
        raise BadInput(
            f"{before.path}: these lines would change how another entry is read; "
            "begin each entry at the margin with `- `, without `<seq=…>`, and leave its indented lines below it"
        )


def lost_prose(before: Document, after: Document) -> list[Unit]:
    """The paragraphs that stood there and do not any more."""
    left = Counter(unit.text for unit in units(after) if not unit.seqs)
    lost = []
    for unit in units(before):
        if not unit.seqs and left[unit.text]:
            left[unit.text] -= 1
        elif not unit.seqs:
            lost.append(unit)
    return lost
