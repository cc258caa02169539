"""Claude's export: `conversations.json`, each conversation a list of messages made of blocks."""

from __future__ import annotations

from typing import Any

from infinimem.exchange.inputs import Input
from infinimem.exchange.json_stream import Broken, JsonStream
from infinimem.exchange.message import (
    Found,
    Message,
    Reading,
    Skipped,
    Unread,
    file_text,
    list_in,
    named,
    record_in,
    text_in,
    time_of,
    title_of,
    with_attached,
)
from infinimem.exchange.tree import left_aside
from infinimem.exchange.walk import begins_json, each_record

ROLES = {"human": "user", "user": "user", "assistant": "AI"}
THINKING = ("thinking", "redacted_thinking")


def recognises(name: str, head: str) -> bool:
    """Whether a file begins like this export."""
    return begins_json(head) and '"chat_messages"' in head


def read(source: Input, *, branches: bool = False) -> Reading:
    """The messages of each conversation in order; with `branches` also those that were edited away."""

    def read_conversation(stream: JsonStream, number: int) -> Reading:
        return read_one(stream, source.name, number, branches)

    yield from each_record(source, read_conversation, inside=("conversations",))


def read_one(stream: JsonStream, name: str, number: int, branches: bool) -> Reading:
    """One conversation; of a broken one what stands before the fault, which is then raised."""
    fields: dict[str, Any] = {}
    found: list[tuple[str, str, Found, list[tuple[str, str]]]] = []
    fault = None
    try:
        for key in stream.members():
            if key == "chat_messages" and stream.peek() == "[":
                for at in stream.elements():
                    found.append(read_message(stream.value(), at + 1))
            else:
                fields[key] = stream.value()
    except Broken as error:
        fault = error
    yield from messages(fields, found, name, number, branches)
    if fault is not None:
        raise fault


def messages(
    fields: dict[str, Any],
    found: list[tuple[str, str, Found, list[tuple[str, str]]]],
    name: str,
    number: int,
    branches: bool,
) -> Reading:
    """What was found in a conversation, with what the conversation says of it."""
    title = title_of(fields.get("name"))
    own = text_in(fields.get("uuid"))
    parents = {uuid: parent for uuid, parent, _, _ in found if uuid}
    leaf = text_in(fields.get("current_leaf_message_uuid")) or (found[-1][0] if found else "")
    aside = left_aside(leaf, parents) if any(parents.values()) else set()
    for uuid, _, one, texts in found:
        if isinstance(one, Skipped):
            yield one
            continue
        place = f"{name}, {named(number, title)}, {one.place}"
        if isinstance(one, Unread):
            yield Unread(place, one.why)
        elif uuid in aside and not branches:
            yield Skipped("other branch", 1 + len(texts))
        else:
            extra = (("branch", "other"),) if uuid in aside else ()
            began = time_of(fields.get("created_at"))[:10]
            message = Message(
                f"claude {own} {one.key}", one.text, place, one.source, one.time or began, own or str(number), title,
                extra, attached=one.attached,
            )  # fmt: skip
            yield message
            for at, (file, text) in enumerate(texts, 1):
                yield file_text(message, at, file, text)


def read_message(value: Any, at: int) -> tuple[str, str, Found, list[tuple[str, str]]]:
    """A message with its id and its parent's, and the names and texts of the files that came with it."""
    message = record_in(value)
    uuid, parent = text_in(message.get("uuid")), text_in(message.get("parent_message_uuid"))
    place = f"message {at}"
    if not isinstance(value, dict):
        return uuid, parent, Unread(place, "this is no message"), []
    sender = text_in(message.get("sender"))
    if sender not in ROLES:
        if sender in ("system", "tool"):
            return uuid, parent, Skipped(sender), []
        return uuid, parent, Unread(place, f"a sender that is not known: {sender[:40]!r}"), []
    blocks = list_in(message.get("content"))
    texts = [text_in(block.get("text")) for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    words = "\n\n".join(text for text in texts if text.strip())
    if not words and not blocks:
        words = text_in(message.get("text"))
    attached = attached_to(message)
    text = with_attached(words, attached)
    if not text.strip():
        kinds = {text_in(record_in(block).get("type")) for block in blocks}
        kind = "reasoning" if kinds and kinds <= set(THINKING) else "tool" if kinds - {"text"} else "empty"
        return uuid, parent, Skipped(kind), []
    time = time_of(message.get("created_at"))
    found = Message(uuid or str(at), text, place, ROLES[sender], time, attached=tuple(attached))
    return uuid, parent, found, texts_in(message)


def attached_to(message: dict[str, Any]) -> list[str]:
    """The names of what was sent with a message, each once."""
    names: dict[str, None] = {}
    for key in ("attachments", "files", "files_v2"):
        for one in list_in(message.get(key)):
            names[text_in(record_in(one).get("file_name")) or "pasted text"] = None
    return list(names)


def texts_in(message: dict[str, Any]) -> list[tuple[str, str]]:
    """What the export says stands in the files that came with a message, and in pasted texts."""
    rows = map(record_in, list_in(message.get("attachments")))
    read = ((text_in(row.get("file_name")) or "pasted text", text_in(row.get("extracted_content"))) for row in rows)
    return [(name, text) for name, text in read if text.strip()]
