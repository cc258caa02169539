"""The usage log: one JSON line for each call of a model, in `.infinimem/`."""

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
SERVERS = f"{STATE}/servers.json"


def note_usage(root: Path, row: Mapping[str, Any]) -> None:
    """Append a row. A disk that refuses it stops nothing: what was spent is spent."""
    line = (json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")
    with suppress(OSError):
        file = os.open(root / USAGE, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o600)
        try:
            size = os.fstat(file).st_size
            if size and os.pread(file, 1, size - 1) != b"\n":  # a disk that was full cut the last row
                line = b"\n" + line
            os.write(file, line)
        finally:
            os.close(file)


def read_usage(root: Path) -> list[dict[str, Any]]:
    """The rows, oldest first; what cannot be read is left out."""
    try:
        lines = (root / USAGE).read_text("utf-8", "replace").split("\n")
    except OSError:
        return []
    rows = []
    for line in lines:
        with suppress(ValueError, RecursionError):
            row = json.loads(line)
            if isinstance(row, dict):
                rows.append(row)
    return rows


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
