"""Edits that only a gate held back, kept for a person to take or drop."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from infinimem.store.files import write_private
from infinimem.store.layout import STATE

PROPOSALS = f"{STATE}/proposals.yaml"


def read_proposals(root: Path) -> list[dict[str, Any]]:
    """The kept proposals, oldest first; what cannot be read counts as none."""
    import yaml

    from infinimem.text.header import load_yaml

    try:
        content = load_yaml((root / PROPOSALS).read_text("utf-8"))
    except (FileNotFoundError, yaml.YAMLError, UnicodeDecodeError):
        return []
    return [row for row in content if isinstance(row, dict)] if isinstance(content, list) else []


def write_proposals(root: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Replace the proposals."""
    beside = root / f"{PROPOSALS}.tmp"
    write_private(beside, render_proposals(rows))
    beside.replace(root / PROPOSALS)


def render_proposals(rows: Sequence[dict[str, Any]]) -> bytes:
    """The proposals as their file holds them."""
    import yaml

    return str(yaml.dump(list(rows), allow_unicode=True, sort_keys=False)).encode()


def add_proposals(root: Path, steps: Sequence[dict[str, Any]], at: str) -> None:
    """Add steps (as plan values) that are not there yet."""
    rows = read_proposals(root)
    known = [row.get("step") for row in rows]
    new = [{"at": at, "step": step} for step in steps if step not in known]
    if new:
        write_proposals(root, [*rows, *new])
