"""Entries that stood in topic documents elsewhere go into documents of the same titles, under the same headings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from infinimem.config import Settings
from infinimem.consolidate.buffer import read_buffer, refuse_unreadable
from infinimem.consolidate.commit import conclude
from infinimem.consolidate.due import timestamp
from infinimem.consolidate.passes import carry_out
from infinimem.consolidate.run import Finder, Report, begin
from infinimem.model import Create, Extend, Step
from infinimem.plan.lexical.titles import slug_of
from infinimem.store.buffer import hold
from infinimem.store.layout import BUFFER, FLUSH_LOCK
from infinimem.store.lock import exclusive
from infinimem.store.read import read_file


class Placed(NamedTuple):
    """An entry in CURRENT, and where it stood."""

    seq: int
    title: str
    heading: str


def place(
    root: Path, finder: Callable[[], Finder], settings: Settings, now: datetime, placed: Sequence[Placed]
) -> Report:
    """Put entries where they stood, as one transaction; whatever else waits in CURRENT stays there.

    What cannot be placed stays in CURRENT, too, for the next flush.
    """
    with exclusive(root / FLUSH_LOCK, doing="flush"):
        with hold(root):
            document = read_file(root, BUFFER).document
        refuse_unreadable(root, document)
        index = finder()
        buffer = read_buffer(root, document, index)
        wanted = {one.seq for one in placed}
        ours = {seq: entry for seq, entry in buffer.entries.items() if wanted.issuperset(entry.seqs)}
        run = begin(root, replace(buffer, entries=ours, again=(), notes=(), bare=()), settings, timestamp(now))
        carry_out(run, steps_for([one for one in placed if one.seq in ours], set(index.topics())), index)
        return conclude(run, index, dry_run=False)


def steps_for(placed: Sequence[Placed], topics: set[str]) -> list[Step]:
    """A document for each title that has none yet, and the entries of each heading in their order."""
    steps: list[Step] = []
    there = {topic.casefold(): topic for topic in topics}
    blocks: dict[tuple[str, str], list[int]] = {}
    for seq, title, heading in placed:
        slug = slug_of(title, ())
        if slug.casefold() not in there:
            steps.append(Create(slug, title))
            there[slug.casefold()] = slug
        blocks.setdefault((there[slug.casefold()], heading), []).append(seq)
    return [*steps, *(Extend(topic, heading, tuple(seqs)) for (topic, heading), seqs in blocks.items())]
