"""Entries out of JSON lines and chat transcripts, each with the place that a message can name."""

from __future__ import annotations

import json
from typing import Any

from infinimem.errors import BadInput

SOURCES = {"assistant": "AI", "model": "AI"}
"""What a role is called as a source; any other role is its own name."""
TIMES = ("time", "timestamp", "created_at", "create_time")
Placed = tuple[str, dict[str, Any]]


def read_json_lines(content: str, place: str) -> list[Placed]:
    """One JSON object a line, blank lines skipped. Raises `BadInput` naming the line."""
    entries: list[Placed] = []
    for number, line in enumerate(content.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{place}:{number}"
        value = load(line, where)
        if not isinstance(value, dict):
            raise BadInput(f'{where}: an entry is a JSON object such as {{"text": "…"}}; nothing was written')
        entries.append((where, value))
    return entries


def load(text: str, where: str) -> Any:
    """The JSON value of one line."""
    try:
        return parse_json(text)
    except (ValueError, RecursionError) as error:
        place = f", column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        raise BadInput(f"{where}: this is no JSON ({reason_of(error)}{place}); nothing was written") from error


def parse_json(text: str) -> Any:
    """A JSON value in which nothing silently becomes something else: no key twice, no NaN. Raises `ValueError`."""
    return json.loads(text, object_pairs_hook=without_doubles, parse_constant=refuse_constant)


def without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, unless a key occurs twice."""
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise ValueError(f"the key {key!r} occurs twice")
    return dict(pairs)


def refuse_constant(name: str) -> Any:
    """NaN and Infinity are no JSON."""
    raise ValueError(f"{name} is no number")


def reason_of(error: ValueError | RecursionError) -> str:
    """What is wrong, in a few words."""
    if isinstance(error, json.JSONDecodeError):
        return error.msg
    return "nested too deep" if isinstance(error, RecursionError) else str(error).split(";")[0]


def read_chat(content: str, place: str) -> list[Placed]:
    """Messages as a JSON array, as `{"messages": […]}` or as JSON lines; those without text are left out."""
    entries: list[Placed] = []
    for where, message in messages_in(content, place):
        text = text_of(message, where)
        if text.strip():
            entries.append((where, {"text": text, **fields_of(message, where)}))
    return entries


def messages_in(content: str, place: str) -> list[tuple[str, Any]]:
    """Each message and its place."""
    if is_lines(content):
        return list(read_json_lines(content, place))
    if not content.strip():
        return []
    try:
        value = parse_json(content)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        raise BadInput(f"{place}:{line}: this is no JSON ({reason_of(error)}); nothing was written") from error
    messages = value.get("messages", [value] if "role" in value else None) if isinstance(value, dict) else value
    if not isinstance(messages, list):
        raise BadInput(f"{place}: a chat is a list of messages with role and content; nothing was written")
    return [(f"{place}: message {number}", message) for number, message in enumerate(messages, 1)]


def is_lines(content: str) -> bool:
    """Whether the first line is a message of its own."""
    first = next((line for line in content.split("\n") if line.strip()), "")
    try:
        value = parse_json(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "messages" not in value


def text_of(message: Any, where: str) -> str:
    """What a message says: its content, or the text parts of it."""
    if not isinstance(message, dict) or "content" not in message:
        raise BadInput(f"{where}: a message is an object with role and content; nothing was written")
    content = message["content"]
    if content is None:  # a message that only calls tools
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise BadInput(f"{where}: content is a text or a list of parts; nothing was written")
    texts = [part if isinstance(part, str) else part.get("text") for part in content if isinstance(part, str | dict)]
    return "\n".join(text for text in texts if isinstance(text, str))


def fields_of(message: dict[str, Any], where: str) -> dict[str, Any]:
    """A message's source and time."""
    role = message.get("role")
    name = message.get("name")
    if not isinstance(role, str) and not isinstance(name, str):
        raise BadInput(f"{where}: a message has a role such as user or assistant; nothing was written")
    fields: dict[str, Any] = {"source": name if isinstance(name, str) and name else SOURCES.get(str(role), role)}
    stamp = next((message[key] for key in TIMES if message.get(key) not in (None, "")), None)
    if stamp is not None:
        fields["time"] = time_of(stamp)
    return fields


def time_of(stamp: Any) -> str:
    """An ISO text as it is; seconds since 1970 as an ISO text."""
    from datetime import UTC, datetime

    if isinstance(stamp, int | float) and not isinstance(stamp, bool):
        try:
            return datetime.fromtimestamp(stamp, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        except (OverflowError, ValueError, OSError):
            return str(stamp)
    return str(stamp)
