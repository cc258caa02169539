"""Edits that only a gate, or a file that may not be changed, held back: for a person to take or drop."""

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


def add_proposals(root: Path, steps: Sequence[dict[str, Any]], at: str, *, held: bool = False) -> None:
    """Add steps (as plan values) that are not there yet; those that are `held` up a flush takes as soon as it can."""
    rows = read_proposals(root)
    known = [row.get("step") for row in rows]
    mark = {"held": True} if held else {}
    new = [{"at": at, "step": step, **mark} for step in steps if step not in known]
    if new:
        write_proposals(root, [*rows, *new])


def drop_held(root: Path, steps: Sequence[dict[str, Any]]) -> None:
    """Take off the list what was held up and has been carried out now."""
    done = {(step["retire"].get("seq"), step["retire"].get("by")) for step in steps if "retire" in step}
    rows = read_proposals(root) if done else []
    left = [row for row in rows if not row.get("held") or place_in(row) not in done]
    if len(left) < len(rows):
        write_proposals(root, left)


def place_in(row: dict[str, Any]) -> tuple[Any, Any]:
    """What a kept replacement is about: the old entry and the one that takes its place."""
    step = row.get("step")
    retire = step.get("retire") if isinstance(step, dict) else None
    return (retire.get("seq"), retire.get("by")) if isinstance(retire, dict) else (None, None)
