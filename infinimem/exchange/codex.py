"""Codex's sessions: JSON lines below `~/.codex/sessions`, one file a session, in two generations of the format."""

from __future__ import annotations

import re
from typing import Any

from infinimem.exchange.inputs import Input
from infinimem.exchange.message import (
    Found,
    Message,
    Reading,
    Skipped,
    Unread,
    list_in,
    record_in,
    text_in,
    time_of,
    with_attached,
)
from infinimem.exchange.walk import records_of

ROLES = {"user": "user", "assistant": "AI"}
CONTEXT = re.compile(
    r"\s*(?:<(?:environment_context|user_instructions|INSTRUCTIONS|permissions instructions|collaboration_mode"
    r"|turn_aborted|skill|user_shell_command|subagent_notification|model_switch)\b|# AGENTS\.md instructions)"
)
TEXTS = ("input_text", "output_text", "text")
NO_MESSAGES = ("session_meta", "turn_context", "event_msg", "compacted", "world_state", "ghost_snapshot")
NEW = re.compile(r'"type"\s*:\s*"session_meta"|"type"\s*:\s*"response_item"')
OLD = re.compile(r'\{\s*"id"\s*:\s*"[^"]*"\s*,\s*"timestamp"\s*:\s*"[^"]*"\s*,\s*"instructions"')


def recognises(name: str, head: str) -> bool:
    """Whether a file begins like a session."""
    first = head.split("\n", 1)[0]
    if NEW.search(first) and '"payload"' in first:
        return True
    return bool(OLD.match(head)) or ('"record_type"' in head and '"input_text"' in head)


def read(source: Input, *, branches: bool = False) -> Reading:
    """What was typed and answered; tools, reasoning and the context that Codex adds are left out by kind."""
    session, folder, number = source.within, "", 0
    for row in records_of(source):
        if isinstance(row, Unread):
            yield row
            continue
        place, record = row
        payload = record["payload"] if isinstance(record.get("payload"), dict) else record
        kind = text_in(record.get("type"))
        if kind == "session_meta" or (not kind and "instructions" in record):
            session = text_in(payload.get("id")) or session
            folder = text_in(payload.get("cwd")).replace("\\", "/").rstrip("/").rpartition("/")[2]
        if kind in NO_MESSAGES or (not kind and ("instructions" in record or "record_type" in record)):
            yield Skipped("session notes")
            continue
        form = text_in(payload.get("type"))
        if form != "message":
            yield (
                Skipped("reasoning" if form == "reasoning" else "tool") if form else Unread(place, "no known record")
            )
            continue
        number += 1
        found = read_message(payload, place)
        if isinstance(found, Message):
            key = text_in(payload.get("id")) or str(number)
            time = time_of(record.get("timestamp"))
            fields = (("project", folder),) if folder else ()
            found = Message(
                f"codex {session} {key}", found.text, place, found.source, time, session, "", fields,
                attached=found.attached,
            )  # fmt: skip
        yield found


def read_message(payload: dict[str, Any], place: str) -> Found:
    """One message of a session."""
    role = text_in(payload.get("role"))
    if role in ("system", "developer"):
        return Skipped("system")
    if role not in ROLES:
        return Unread(place, f"a role that is not known: {role[:40]!r}")
    content = payload.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return Unread(place, "a message without content")
    parts = [record_in(part) for part in list_in(content)]
    texts = [text_in(part.get("text")) for part in parts if part.get("type") in TEXTS]
    media = ["image" for part in parts if part.get("type") == "input_image"]
    said = [text for text in texts if text.strip() and not (role == "user" and CONTEXT.match(text))]
    text = with_attached("\n\n".join(said), media)
    if text.strip():
        return Message("", text, place, ROLES[role], attached=tuple(media))
    return Skipped("system" if any(text.strip() for text in texts) else "empty")
