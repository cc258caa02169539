"""Reading what a model wrote: JSON with talk around it, cut off, fenced; numbers as texts and texts as numbers."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from infinimem.text.signature import parse_seqs

T = TypeVar("T")
LONGEST_REPLY = 400_000
"""Characters of a reply that are looked at."""
LONGEST_BROKEN = 60_000
"""Characters of a reply that is no JSON as it stands and so has to be repaired."""
LONGEST_MENDING = 1.0
"""Seconds of processor time that mending a reply may take."""
MOST_OPENED = 200
"""Brackets open at once from which on a text is no reply."""
THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
FENCED = re.compile(r"```[a-zA-Z0-9]*[ \t]*\r?\n(.*?)(?:\n[ \t]*```|\Z)", re.DOTALL)
START = re.compile(r"""\{\s*["']|\[\s*\{""")
"""How JSON begins that has something in it; braces and brackets of the talk around it look otherwise."""
SPACED_RANGE = re.compile(r"(?<=\d) *[-–] *(?=\d)")
MOST_SEQS = 20_000
"""Seqs of one reply that are looked at: ranges are short to write."""


def read_json(text: str) -> Any:
    """The JSON object or array in a model's reply, mended where it is cut off or careless; None without any."""
    text = text[:LONGEST_REPLY].strip().removeprefix("\ufeff")
    said = after_thought(text)
    fenced = FENCED.search(said)
    for piece in (text, said, fenced[1] if fenced else ""):
        found = strictly(piece)
        if found is not None:
            return found
    begin = START.search(said)
    # what is asked for is an object, so one in careless spelling is looked for before a mere list
    start = begin.start() if begin else max(said.find("{"), 0) if "{" in said else said.find("[")
    if start < 0:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(said, start)
    except (ValueError, RecursionError):
        return mended(said[start:])
    return value


def after_thought(text: str) -> str:
    """A reply without what the model thought aloud before it; some templates swallow the opening tag."""
    if text.startswith("<think"):
        return THOUGHT.sub("", text).strip()
    before, _, after = text.rpartition("</think>")
    return after.strip() if before and "<think" not in before and START.search(after) else text


def strictly(text: str) -> Any:
    """A text that is a JSON object or array as it stands; else None."""
    try:
        value = json.loads(text)
        if isinstance(value, str):  # JSON inside a JSON text
            value = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def mended(text: str) -> Any:
    """A JSON object or array that is cut off or careless; None where there is too little of one."""
    # a number at which the text ends may be half of one: seq 12 of 123
    text = text[:LONGEST_BROKEN].rstrip("0123456789.")
    if text.count("{") + text.count("[") - text.count("}") - text.count("]") > MOST_OPENED:
        return None
    from json_repair import loads

    try:
        value = within(LONGEST_MENDING, lambda: loads(text))
    except (ValueError, RecursionError, IndexError, TookTooLong):
        return None
    if isinstance(value, list) and not any(isinstance(one, dict | list) for one in value):
        return None
    return value if isinstance(value, dict | list) and value else None


class TookTooLong(Exception):
    """Work that was stopped."""


def within(seconds: float, work: Callable[[], T]) -> T:
    """What `work` gives. Raises `TookTooLong` at its next function call after that time.

    Mending takes the square of the length for texts such as `{]{{]`: minutes for what one reply may hold.
    """
    until = time.thread_time() + seconds

    def look(frame: object, event: str, argument: object) -> None:
        if time.thread_time() > until:
            raise TookTooLong

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        return work()
    finally:
        sys.setprofile(before)


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
    found: list[int] = []
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, str):
            for piece in re.split(r"[,;\s]+", SPACED_RANGE.sub("-", one[:20_000])):
                found += parse_seqs(piece.strip("[]()#."))
                if len(found) > MOST_SEQS:
                    break
        elif isinstance(one, int | float) and not isinstance(one, bool) and 0 < one < 10**18 and one == int(one):
            found.append(int(one))
        if len(found) > MOST_SEQS:
            break
    return found[:MOST_SEQS]
