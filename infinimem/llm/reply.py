"""Reading what a model wrote: JSON with talk around it, cut off, fenced; numbers as texts and texts as numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from infinimem.text.signature import parse_seqs

LONGEST_REPLY = 400_000
"""Characters of a reply that are looked at."""
LONGEST_BROKEN = 60_000
"""Characters of a reply that is no JSON as it stands and so has to be repaired."""
MOST_OPENED = 200
"""Brackets open at once from which on a text is no reply."""
THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
FENCED = re.compile(r"```[a-zA-Z0-9]*\s*\n(.*?)(?:\n\s*```|\Z)", re.DOTALL)


def read_json(text: str) -> Any:
    """The JSON object or array in a model's reply, mended where it is cut off or careless; None without any."""
    text = THOUGHT.sub("", text[:LONGEST_REPLY]).strip()
    fenced = FENCED.search(text)
    for piece in (text, fenced[1] if fenced else ""):
        found = strictly(piece)
        if found is not None:
            return found
    # a whole object with talk around it; what is asked for is always an object, so brackets of the talk come last
    starts = [at for at in (text.find("{"), text.find("[")) if at >= 0]
    for start in starts:
        try:
            value, _ = json.JSONDecoder().raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict | list):
            return value
    return next((value for start in starts for value in [mended(text[start:])] if value is not None), None)


def strictly(text: str) -> Any:
    """A text that is a JSON object or array as it stands; else None."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def mended(text: str) -> Any:
    """A JSON object or array that is cut off or careless; None where there is too little of one."""
    text = text[:LONGEST_BROKEN]
    if text.count("{") + text.count("[") - text.count("}") - text.count("]") > MOST_OPENED:
        return None
    from json_repair import loads

    try:
        value = loads(text)
    except (ValueError, RecursionError, IndexError):
        return None
    if isinstance(value, list) and not any(isinstance(one, dict | list) for one in value):
        return None
    return value if isinstance(value, dict | list) and value else None


def items_of(value: Any, key: str) -> list[Mapping[str, Any]]:
    """The objects listed under a key; of a bare list or a single object, those or that."""
    if isinstance(value, Mapping):
        value = value.get(key, [])
        if isinstance(value, Mapping):
            value = [value]
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def text_of(value: Any) -> str:
    """A text, or a number as one; "" for anything else."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def number_of(value: Any, default: float) -> float:
    """A number from 0 to 1 however it is spelt (0.95, "0.95", "95%"); the default for anything else."""
    if isinstance(value, bool):
        return default
    if isinstance(value, int | float):
        return float(value) if 0 <= value <= 1 else default
    if isinstance(value, str):
        text = value.strip()
        share = text.removesuffix("%")
        try:
            number = float(share) / (100 if share != text else 1)
        except ValueError:
            return default
        return number if 0 <= number <= 1 else default
    return default


def seqs_in(value: Any) -> list[int]:
    """Seqs however they are spelt: 12, "12", "12-15+18", "[12]", "#12, 13", a list of these. Rubbish is left out."""
    if isinstance(value, bool):
        return []
    if isinstance(value, int):
        return [value] if 0 < value < 10**18 else []
    if isinstance(value, float):
        return [int(value)] if value.is_integer() and 0 < value < 10**18 else []
    if isinstance(value, str):
        found: list[int] = []
        for piece in re.split(r"[,;\s]+", value[:20_000]):
            found += parse_seqs(piece.strip("[]()#.").replace("–", "-"))
        return found
    if isinstance(value, list):
        return [seq for one in value[:20_000] if not isinstance(one, list) for seq in seqs_in(one)]
    return []
