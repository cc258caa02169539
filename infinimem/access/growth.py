"""What new withheld entries change in a view: the words that only they say, and the files in which these stand."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from infinimem.access.mask import Rules
from infinimem.config import Access
from infinimem.forgetting.words import CUT, Kept, Words, is_telling, words_of
from infinimem.model import Entry
from infinimem.store.files import read_bytes
from infinimem.store.read import read_file
from infinimem.text.document import parse_piece
from infinimem.text.words import fold

SHORTEST = 3
"""Characters of a word that are looked for at least, so that its other forms are found, too."""
SIGNATURE = re.compile(r"<seq=[^>\n]*>")


def new_ones(entries: Iterable[Entry], rules: Rules, high: int) -> list[Entry] | None:
    """The withheld entries written since seq `high`; None where anything is told otherwise than before.

    An older one may stand in files that have not changed, and what is shown again may free words that were kept back.
    """
    found = []
    denied = Access(rules.access.deny)
    for entry in entries:
        fields = dict(entry.signature.fields)
        known = not rules.hidden.isdisjoint(entry.seqs)
        if len(entry.seqs) > 1 or entry.signature.get("rev"):
            if not known and not denied.permits(fields):
                return None
        elif known is rules.access.permits(fields):
            if known or entry.seq <= high:
                return None
            found.append(entry)
    return found


def folded_texts(root: Path, paths: Iterable[str]) -> dict[str, str]:
    """What files say, folded; topics first, for there a word is found soonest."""
    ordered = sorted(paths, key=lambda path: (not path.startswith("topics/"), path))
    return {path: fold((read_bytes(root / path) or b"").decode("utf-8", "replace")) for path in ordered}


def words_said_only_by(fresh: Sequence[Entry], root: Path, texts: Mapping[str, str], rules: Rules) -> Words:
    """What new withheld entries say that no shown one does. Only what may say it is read."""
    bare = words_of(fresh, ())
    rest = Kept()
    kept: list[Entry] = []
    tokens = {token for token in bare.telling | bare.numbers if token not in rules.words.telling}
    grams = {gram for gram in bare.grams if gram not in rules.words.grams}
    for path, text in texts.items():
        needles = {beginning(token) for token in tokens} | grams
        here = {needle for needle in needles if needle in text}
        for entry in entries_with(root, path, here) if here else ():
            if rules.withholds(entry) or not tokens | grams:
                continue
            kept.append(entry)
            rest.take(entry)
            tokens = {token for token in tokens if token not in rest.tokens and may_tell(token, rest.terms)}
            grams -= rest.grams
    return words_of(fresh, kept)


def may_tell(token: str, terms: Collection[str]) -> bool:
    """Whether a word may still be one that nothing shown says."""
    return token.isdecimal() or is_telling(token, terms)


def beginning(token: str) -> str:
    """What the forms of a word have in common."""
    return token[: max(SHORTEST, len(token) - 3)]


def entries_with(root: Path, path: str, needles: Collection[str]) -> Iterator[Entry]:
    """The entries of a file that may say something; of evidence and CURRENT only the lines are read that do."""
    if path.startswith("topics/"):
        document = read_file(root, path).document
        if not document.is_guest:
            yield from (entry for entry in document.entries if says(f"{entry.text} {entry.signature}", needles))
        return
    lines = (read_bytes(root / path) or b"").decode("utf-8", "surrogateescape").split("\n")
    for at, line in enumerate(lines):
        if line.startswith(("- <", "- \\<")):
            stop = at + 1
            while stop < len(lines) and lines[stop][:1] in (" ", "\t"):
                stop += 1
            piece = "\n".join(lines[at:stop]) + "\n"
            if says(piece, needles):
                yield from parse_piece(path, piece.encode("utf-8", "surrogateescape")).entries


def says(text: str, needles: Collection[str]) -> bool:
    """Whether a text holds any of some folded pieces."""
    folded = fold(text)
    return any(needle in folded for needle in needles)


def files_telling(texts: Mapping[str, str], words: Words) -> list[str]:
    """The files that may hold some words outside the signatures of entries, cut as in names or whole."""
    needles = {*(word[:CUT] for word in words.telling), *words.numbers, *words.grams}
    needles |= {max(one.split(" "), key=len) for one in words.statements}
    found = [(path, text) for path, text in texts.items() if any(needle in text for needle in needles)]
    bare = ((path, SIGNATURE.sub("", text)) for path, text in found)
    return [path for path, text in bare if any(needle in text for needle in needles)]


def together(one: Words, other: Words) -> Words:
    """The words of both."""
    return Words(
        one.telling | other.telling,
        one.grams | other.grams,
        one.numbers | other.numbers,
        tuple(dict.fromkeys((*one.statements, *other.statements))),
    )
