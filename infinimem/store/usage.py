"""The usage log: one JSON line for each call of a model; and the log of recalls: what each question brought.

Both lie in `.infinimem/` and hold no words: a question is known by a digest of what it asks about.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from infinimem.store.files import write_private
from infinimem.store.layout import STATE

USAGE = f"{STATE}/usage.jsonl"
RECALLS = f"{STATE}/recalls.jsonl"
MOST_RECALLS = 4 << 20
"""Bytes of the log of recalls that are read, newest last; at twice that it is cut to it."""
SERVERS = f"{STATE}/servers.json"


def note_usage(root: Path, row: Mapping[str, Any]) -> None:
    """Append a row. A disk that refuses it stops nothing: what was spent is spent."""
    append_row(root / USAGE, row)


def append_row(path: Path, row: Mapping[str, Any]) -> None:
    """Append a row to a log, in one write."""
    line = (json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")
    with suppress(OSError):
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o600)
        try:
            size = os.fstat(file).st_size
            if size and os.pread(file, 1, size - 1) != b"\n":  # a disk that was full cut the last row
                line = b"\n" + line
            os.write(file, line)
        finally:
            os.close(file)


def why_unwritable(path: Path) -> str:
    """Why no row can be appended to a log; "" where one can."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o600))
    except OSError as error:
        return str(error.strerror)
    return ""


def read_usage(root: Path) -> list[dict[str, Any]]:
    """The rows, oldest first; what cannot be read is left out."""
    return rows_in(root / USAGE)


def rows_in(path: Path, most: int = 0) -> list[dict[str, Any]]:
    """The rows of a log, oldest first; only the last `most` bytes of it unless that is 0."""
    try:
        content = path.read_bytes()
    except OSError:
        return []
    if most and len(content) > most:
        content = content[-most:].partition(b"\n")[2]
    rows = []
    for line in content.decode("utf-8", "replace").split("\n"):
        with suppress(ValueError, RecursionError):
            row = json.loads(line)
            if isinstance(row, dict):
                rows.append(row)
    return rows


def note_recall(root: Path, row: Mapping[str, Any]) -> None:
    """Append a row to the log of recalls, which is kept from growing without end."""
    path = root / RECALLS
    append_row(path, row)
    with suppress(OSError):
        if path.stat().st_size > 2 * MOST_RECALLS:
            beside = root / f"{RECALLS}.{os.getpid()}.tmp"
            write_private(beside, path.read_bytes()[-MOST_RECALLS:].partition(b"\n")[2])
            beside.replace(path)


def read_recalls(root: Path) -> list[dict[str, Any]]:
    """What questions brought, and what was said of it, oldest first."""
    return rows_in(root / RECALLS, MOST_RECALLS)


def read_servers(root: Path) -> dict[str, Any]:
    """What is known of the servers that were asked, by a digest of their address."""
    try:
        content = json.loads((root / SERVERS).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def note_server(root: Path, digest: str, known: Mapping[str, Any]) -> None:
    """Remember what a server understands."""
    content = {**read_servers(root), digest: dict(known)}
    beside = root / f"{SERVERS}.{os.getpid()}.tmp"
    with suppress(OSError):
        write_private(beside, json.dumps(content).encode())
        beside.replace(root / SERVERS)
