"""What number an entry of an older state has now, where a merge or a repair gave it another. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from infinimem.git.renumber import Numbers, renumber_line
from infinimem.model import Document, Entry
from infinimem.text.document import parse_lines, parse_piece

OBSERVED = re.compile(rb"[<,]\s*observed=([^,>]+)")
Identity = tuple[str, str, str]
"""When an entry was written down, by whom, and its words."""


def numbers_since(old: Iterable[Document], new: Iterable[Document], rewritten: bytes) -> dict[int, int]:
    """The numbers that have changed between two states, old ones to new; `rewritten` is evidence's diff by git.

    An entry is itself by when it was written down, who said it and what it says; where that leaves a doubt (two with
    the same, one number that two carry), its number is taken as it is.
    """
    lines = rewritten.split(b"\n")
    before = known([*(entry for document in old for entry in document.entries), *entries_in(lines, b"-")])
    moments = {moment for moment, _, _ in before}
    shown = (entry for document in new for entry in document.entries if entry.observed in moments)
    after = known([*shown, *entries_in(lines, b"+", moments)])
    targets: dict[int, set[int]] = {}
    for identity, seqs in before.items():
        for seq in seqs:
            targets.setdefault(seq, set()).update(after.get(identity, ()))
    return {seq: min(there) for seq, there in targets.items() if len(there) == 1 and seq not in there}


def known(entries: Iterable[Entry]) -> dict[Identity, set[int]]:
    """The numbers under which each entry that stands by itself is found."""
    found: dict[Identity, set[int]] = {}
    for entry in entries:
        if len(entry.seqs) == 1 and entry.observed:
            words = entry.text.split("\n", 1)[0]
            found.setdefault((entry.observed, entry.source, words), set()).add(entry.seq)
    return found


def entries_in(lines: Sequence[bytes], side: bytes, moments: Collection[str] | None = None) -> Iterator[Entry]:
    """The entries on one side of a diff of evidence, by their first lines; of some moments, if these are given."""
    for line in lines:
        if not line.startswith(side + b"- <seq="):
            continue
        observed = OBSERVED.search(line)
        if observed is not None and (moments is None or observed[1].decode("utf-8", "replace") in moments):
            yield from parse_piece("", line[1:] + b"\n").entries


def as_numbered(state: Mapping[str, Document], numbers: Numbers) -> Mapping[str, Document]:
    """A state with the entries' new numbers, as far as they have any."""
    return {path: renumbered(document, numbers) for path, document in state.items()} if numbers else state


def renumbered(document: Document, numbers: Numbers) -> Document:
    """A document with the entries' new numbers."""
    lines = list(document.lines)
    for entry in document.entries:
        lines[entry.span.start] = renumber_line(lines[entry.span.start], numbers)
    return parse_lines(document.path, tuple(lines)) if tuple(lines) != document.lines else document
