"""How a library got here and what changed since: from git where it keeps the library, else from evidence."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from infinimem.consolidate.commit import diff_lines
from infinimem.errors import BadInput
from infinimem.git import chronicle, log
from infinimem.git.chronicle import Row, Standing
from infinimem.git.compare import Difference, compare
from infinimem.git.numbers import as_numbered
from infinimem.git.states import Past, is_kept_by_git, moment_of, since_commit, since_date, since_flush
from infinimem.model import path_of
from infinimem.store.evidence import Record, read_records, records_in

DATE = re.compile(r"[0-9]{4}(-[0-9]{2}(-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2})?Z?)?)?)?")


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed since `label` (and since which commit); `text` is the same as a unified diff."""

    label: str
    commit: str
    differences: tuple[Difference, ...]
    text: str = ""


def read_history(
    root: Path, standing: Callable[[], Standing], *, topic: str = "", seq: int = 0, most: int = 20
) -> list[Row]:
    """The newest rows, newest first: of the library, of a topic, or of an entry."""
    by_git = is_kept_by_git(root) and log.has_commits(root)
    if seq:
        rows = chronicle.seq_history(root, seq) + (log.seq_commits(root, seq, most) if by_git else [])
        return chronicle.newest_first(rows)[:most]
    if by_git:
        rows = log.topic_commits(root, topic, most) if topic else log.commits(root, most)
        return [*log.uncommitted(root, topic), *rows][:most]
    if topic:
        return chronicle.topic_history(root, topic, most)
    return chronicle.history(root, chronicle.places_in(root, standing), most)


def is_date(text: str) -> bool:
    """Whether a text is a date, perhaps partial."""
    return DATE.fullmatch(text.strip()) is not None


def read_diff(root: Path, standing: Callable[[], Standing], *, since: str = "", topic: str = "") -> Comparison:
    """What changed since a revision, a date, or (without either) the last commit or flush."""
    by_git = is_kept_by_git(root)
    if since and is_date(since):
        if not by_git or not log.has_commits(root):
            at = moment_of(since)
            found = chronicle.differences_since(root, at, chronicle.places_in(root, standing))
            label = f"{since}, as evidence tells it"
            return Comparison(label, "", tuple(one for one in found if concerns(one, topic)))
        past = since_date(root, since)
    elif by_git:
        past = since_commit(root, since or "HEAD")
    elif since:
        raise BadInput(f"{since!r} is no date, and without git there are no revisions; give a date such as 2026-05-01")
    else:
        past = since_flush(root)

    def records(seqs: Sequence[int]) -> Mapping[int, Record]:
        return read_records(root, seqs) if past.evidence is None else records_in(past.evidence)

    found = [one for one in compare(as_numbered(past.old, past.numbers), past.new, records) if concerns(one, topic)]
    return Comparison(past.label, past.commit, tuple(found), text_of(past, topic))


def concerns(difference: Difference, topic: str) -> bool:
    """Whether a difference has to do with a topic; "" stands for all."""
    return not topic or topic in (difference.topic, difference.source)


def text_of(past: Past, topic: str) -> str:
    """Two states as a unified diff."""
    pieces: list[str] = []
    for path in sorted({*past.old, *past.new}):
        if topic and path != path_of(topic):
            continue
        before, after = (state[path].lines if path in state else () for state in (past.old, past.new))
        if before != after:
            pieces += diff_lines(path, before, after)
    return "".join(pieces)
