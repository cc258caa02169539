"""Entries written twice."""

from __future__ import annotations

from collections.abc import Sequence

from infinimem.model import Entry, Retire
from infinimem.text.words import analyse

SAYS_SOMETHING = 3  # terms: "Thanks, Max!" may well be said twice
_FINAL = ".!?。！？ "


def duplicates(entries: Sequence[Entry]) -> list[Retire]:
    """The later of two entries that say the same, by the same source and of the same time.

    The same means: but for case, white space and final punctuation. All other fields must agree too,
    `observed` and `key` excepted. What is said again after something much like it may be a change back: it stays.
    """
    first: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}
    found = []
    for at, entry in enumerate(entries):
        text = " ".join(entry.text.casefold().split()).rstrip(_FINAL)
        fields = tuple(sorted(pair for pair in entry.signature.fields if pair[0] not in _PER_WRITE))
        earlier = first.setdefault((text, fields), at)
        terms = analyse(text) if earlier != at else []
        if len(terms) < SAYS_SOMETHING:
            continue
        if any(_is_like(other, frozenset(terms)) for other in entries[earlier + 1 : at]):
            first[text, fields] = at
        else:
            found.append(Retire(entry.seq, entries[earlier].seq, "duplicate"))
    return found


def _is_like(entry: Entry, terms: frozenset[str]) -> bool:
    """Whether an entry shares more than half of its terms with others, not all: `married to Bo`, `married to Cy`."""
    own = frozenset(analyse(entry.text))
    return own != terms and 2 * len(own & terms) > max(len(own), len(terms))


_PER_WRITE = frozenset({"observed", "key"})
