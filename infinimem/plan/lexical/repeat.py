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
    `observed` and `key` excepted.
    """
    first: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}
    found = []
    for entry in entries:
        text = " ".join(entry.text.casefold().split()).rstrip(_FINAL)
        fields = tuple(sorted(pair for pair in entry.signature.fields if pair[0] not in _PER_WRITE))
        earlier = first.setdefault((text, fields), entry.seq)
        if earlier != entry.seq and len(analyse(text)) >= SAYS_SOMETHING:
            found.append(Retire(entry.seq, earlier, "duplicate"))
    return found


_PER_WRITE = frozenset({"observed", "key"})
