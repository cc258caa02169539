"""What a model wrote as a tool's arguments, taken for what it meant; a fault is one line that says the remedy."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from infinimem.llm.reply import read_json, seqs_in

NOTHING = frozenset(("", "null", "none", "undefined", "nil", "n/a"))
"""What models write for an argument that they leave out."""
LONGEST_TEXT = 500
"""Characters of a text argument; a longer query or pattern is a model that runs on."""
PLACE = re.compile(r"\[?([^\[\]\n]{1,200}?):(\d{1,9})(?:\s*[-–]\s*(\d{1,9}))?\]?")


class Fault(Exception):
    """A call that cannot be carried out; the message says what to write instead."""


def arguments_of(text: str, example: str) -> dict[str, Any]:
    """The arguments as a mapping. Raises `Fault` when they are none."""
    if not text.strip() or text.strip().casefold() in NOTHING:
        return {}
    value = read_json(text)
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], Mapping):
        value = value[0]
    if not isinstance(value, Mapping):
        raise Fault(f"the arguments are no JSON object; write for example {example}")
    return {str(key): one for key, one in value.items()}


def canonical(arguments: Mapping[str, Any]) -> str:
    """Arguments in one spelling, what was left out left out: by it a repeated call is known."""
    kept = {key: folded(value) for key, value in arguments.items() if not is_nothing(value)}
    return json.dumps(kept, ensure_ascii=False, sort_keys=True, default=str)


def folded(value: Any) -> Any:
    """A text without differences that make none."""
    if isinstance(value, str):
        return " ".join(value.casefold().split())
    if isinstance(value, Mapping):
        return {str(key): folded(one) for key, one in value.items()}
    return [folded(one) for one in value] if isinstance(value, list) else value


def is_nothing(value: Any) -> bool:
    """Whether an argument says nothing."""
    return (
        value is None or value == [] or value == {} or (isinstance(value, str) and value.strip().casefold() in NOTHING)
    )


def text_in(arguments: Mapping[str, Any], name: str, needed: str = "") -> str:
    """A text argument, "" when it is left out. With `needed`, an example, it may not be. Raises `Fault`."""
    value = arguments.get(name)
    if isinstance(value, list) and value and all(isinstance(one, str | int | float) for one in value):
        value = " ".join(str(one) for one in value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if is_nothing(value):
        if needed:
            raise Fault(f"{name} is missing; write for example {needed}")
        return ""
    if not isinstance(value, str):
        raise Fault(f"{name} is a text, not {kind_of(value)}" + (f"; write for example {needed}" if needed else ""))
    if len(value) > LONGEST_TEXT:
        raise Fault(f"{name} is {len(value):,} characters long; write at most {LONGEST_TEXT}")
    return value.strip()


def number_in(arguments: Mapping[str, Any], name: str, default: int = 0) -> int:
    """A whole number from 0 on, the default when it is left out. Raises `Fault`."""
    value = arguments.get(name)
    if is_nothing(value):
        return default
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str):
        digits = value.strip().lstrip("#L").strip()
        value = int(digits) if re.fullmatch(r"-?[0-9]{1,9}", digits) else value
    if isinstance(value, bool) or not isinstance(value, int):
        raise Fault(f"{name} is a whole number such as 12, not {short(value)}")
    if value < 0 or value >= 10**9:
        raise Fault(f"{name} counts from 1; {value} is out of range")
    return value


def truth_in(arguments: Mapping[str, Any], name: str) -> bool:
    """True or false, however it is spelt; false when it is left out."""
    value = arguments.get(name)
    if isinstance(value, str):
        return value.strip().casefold() in ("true", "yes", "1", "on")
    return bool(value) if isinstance(value, bool | int) else False


def seq_in(arguments: Mapping[str, Any], name: str) -> int:
    """An entry's number; 0 when there is none in it."""
    return next(iter(seqs_in(arguments.get(name))), 0)


def places_in(value: Any) -> list[tuple[str, int, int]]:
    """Places as topic, first and last line, however a model lists them."""
    if isinstance(value, str):
        texts: Sequence[Any] = re.findall(r"\[([^\[\]\n]{1,240})\]", value) or re.split(r"[,;\n]", value[:4000])
    else:
        texts = value if isinstance(value, list) else []
    found = []
    for text in texts[:200]:
        match = PLACE.fullmatch(text.strip()) if isinstance(text, str) else None
        if match is not None:
            first = int(match[2])
            found.append((match[1].strip(), first, max(first, int(match[3] or first))))
    return found


def kind_of(value: Any) -> str:
    """A JSON value's kind, in words."""
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    return "a list" if isinstance(value, list) else "an object" if isinstance(value, Mapping) else "nothing"


def short(value: Any) -> str:
    """A value as a message quotes it."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 40 else f"{text[:40]}…"
