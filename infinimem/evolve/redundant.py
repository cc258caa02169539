"""Entries that say the same, made one by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from infinimem.model import Join, Retire, Step
from infinimem.plan.rules import facts_of, ungrounded


def joining(texts: Mapping[int, str], text: str) -> Sequence[Step]:
    """The steps that make one line of entries: a joined one, or the one of them that says what all of them say."""
    if text.strip():
        return (Join(tuple(texts), text.strip()),)
    stays = next((seq for seq in texts if says_all(texts[seq], texts.values())), 0)
    stays = stays or max(texts, key=lambda seq: (len(facts_of(texts[seq])), -seq))  # the rules say what it lacks
    return tuple(Retire(seq, stays, "duplicate") for seq in texts if seq != stays)


def says_all(text: str, others: Iterable[str]) -> bool:
    """Whether a text says every number, name and negation of the others."""
    return all(not ungrounded(other, [text], exact=False) for other in others)
