"""The versions of each topic's summary and headings, one JSON line each, in `.infinimem/`.

They are interpretation, which can be made again and which git versions; evidence holds words and what became of
them, and the two do not mix. So without git their history lies here: deleting it loses no memory, only how it was put.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from infinimem.store.files import write_private
from infinimem.store.layout import STATE
from infinimem.store.usage import append_row, rows_in

SUMMARIES = f"{STATE}/summaries.jsonl"
MOST_SUMMARIES = 2 << 20
"""Bytes of the log that are read, newest last; at twice that it is cut to it."""


def note_versions(root: Path, key: str, changed: Mapping[str, tuple[Any, Any]], at: str, op: str, by: str = "") -> None:
    """Note summaries or headings (the `key`) that changed, by topic: what they were, if not known, and what they are.

    `op` is what changed them (flush, undo), `by` who planned it.
    """
    changed = {topic: pair for topic, pair in changed.items() if pair[0] != pair[1]}
    if not changed:
        return
    last = {str(row.get("topic")): row[key] for row in read_versions(root) if key in row}
    for topic, (old, new) in changed.items():
        if old and last.get(topic) != old:
            append_row(root / SUMMARIES, {"at": "", "topic": topic, key: old, "op": "found"})
        append_row(root / SUMMARIES, {"at": at, "topic": topic, key: new, "op": op, **({"by": by} if by else {})})
    cut_log(root)


def cut_log(root: Path) -> None:
    """Keep the log from growing without end: its oldest half goes."""
    path = root / SUMMARIES
    with suppress(OSError):
        if path.stat().st_size > 2 * MOST_SUMMARIES:
            beside = root / f"{SUMMARIES}.{os.getpid()}.tmp"
            write_private(beside, path.read_bytes()[-MOST_SUMMARIES:].partition(b"\n")[2])
            beside.replace(path)


def read_versions(root: Path) -> list[dict[str, Any]]:
    """The rows, oldest first."""
    return rows_in(root / SUMMARIES, MOST_SUMMARIES)
