"""ChatGPT's export: `conversations.json`, each conversation a tree of messages with edits and hidden nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from infinimem.exchange.inputs import Input
from infinimem.exchange.json_stream import Broken, JsonStream
from infinimem.exchange.message import (
    Found,
    Message,
    Reading,
    Skipped,
    Unread,
    list_in,
    named,
    record_in,
    text_in,
    time_of,
    title_of,
    with_attached,
)
from infinimem.exchange.tree import left_aside, path_to
from infinimem.exchange.walk import begins_json, each_record

ROLES = {"user": "user", "assistant": "AI"}
REASONING = ("thoughts", "reasoning_recap")
INSTRUCTIONS = ("user_editable_context", "model_editable_context")
SPOKEN = ("audio_transcription",)
MEDIA = {
    "image_asset_pointer": "image",
    "audio_asset_pointer": "audio",
    "video_container_asset_pointer": "video",
    "real_time_user_audio_video_asset_pointer": "audio and video",
}


def recognises(name: str, head: str) -> bool:
    """Whether a file begins like this export."""
    return begins_json(head) and '"mapping"' in head and '"parent"' in head


def read(source: Input, *, branches: bool = False) -> Reading:
    """The messages of each conversation, in the order in which they were shown; with `branches` also the others."""

    def read_conversation(stream: JsonStream, number: int) -> Reading:
        return Conversation(source.name, number).read(stream, branches)

    yield from each_record(source, read_conversation, inside=("conversations",))


class Conversation:
    """A conversation as far as it has been read: its nodes in the order of the file."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number
        self.fields: dict[str, Any] = {}
        self.parents: dict[str, str] = {}
        self.found: dict[str, Found] = {}

    def read(self, stream: JsonStream, branches: bool) -> Reading:
        """All of it; of a broken one what stands before the fault."""
        fault = None
        try:
            for key in stream.members():
                self.take(key, stream)
        except Broken as error:
            fault = error
        yield from self.messages(branches)
        if fault is not None:
            raise fault

    def take(self, key: str, stream: JsonStream) -> None:
        """One member of the conversation. Raises `Broken`."""
        if key != "mapping" or stream.peek() != "{":
            self.fields[key] = stream.value()
            return
        for node in stream.members():
            value = stream.value()
            self.parents[node] = text_in(record_in(value).get("parent"))
            found = self.read_node(node, value)
            if found is not None:
                self.found[node] = found

    def read_node(self, node: str, value: Any) -> Found | None:
        """What a node holds; None for one that only holds the tree together."""
        message = value.get("message") if isinstance(value, dict) else value
        if message is None and isinstance(value, dict):
            return None
        place = f"message {text_in(record_in(message).get('id')) or node}"
        if not isinstance(message, dict):
            return Unread(place, "this is no message")
        content = message.get("content")
        if content is not None and not isinstance(content, dict):
            return Unread(place, "its content is neither text nor parts")
        kind = kind_of(message)
        if kind:
            return Skipped(kind)
        role = text_in(record_in(message.get("author")).get("role"))
        role = "assistant" if role == "tool" else role
        if role not in ROLES:
            return Unread(place, f"a role that is not known: {role[:40]!r}")
        attached = attached_to(record_in(content), message)
        text = words_of(record_in(content), attached)
        if text is None:
            return Unread(
                place, f"a content that is not known: {text_in(record_in(content).get('content_type'))[:40]!r}"
            )
        if not text.strip():
            return Skipped("empty")
        label = (("label", "memory"),) if message.get("recipient") == "bio" else ()
        key = text_in(message.get("id")) or node
        time = time_of(message.get("create_time"))
        return Message(key, text, place, ROLES[role], time, fields=label, attached=attached)

    def messages(self, branches: bool) -> Reading:
        """What was found, in the order shown."""
        leaf = text_in(self.fields.get("current_node"))
        if leaf not in self.parents:
            leaf = next(reversed(self.found), "")
        aside = left_aside(leaf, self.parents)
        path = path_to(leaf, self.parents)
        on_path = set(path)
        order = [*path, *(node for node in self.found if node not in on_path)]
        for node in order:
            if node in self.found:
                yield from self.finished(self.found[node], node in aside, branches)

    def finished(self, found: Found, is_aside: bool, branches: bool) -> Reading:
        """A message with what the conversation says of it."""
        if isinstance(found, Skipped):
            yield found
            return
        title = title_of(self.fields.get("title"))
        place = f"{self.name}, {named(self.number, title)}, {found.place}"
        if isinstance(found, Unread):
            yield Unread(place, found.why)
        elif is_aside and not branches:
            yield Skipped("other branch")
        else:
            own = text_in(self.fields.get("conversation_id")) or text_in(self.fields.get("id"))
            fields = (*found.fields, ("branch", "other")) if is_aside else found.fields
            began = time_of(self.fields.get("create_time"))[:10]
            yield Message(
                f"chatgpt {own} {found.key}", found.text, place, found.source, found.time or began,
                f"{own or self.number}", title, fields, attached=found.attached,
            )  # fmt: skip


def kind_of(message: dict[str, Any]) -> str:
    """What a message is that is no part of the conversation; "" for one that is."""
    role = record_in(message.get("author")).get("role")
    about = record_in(message.get("metadata"))
    form = record_in(message.get("content")).get("content_type")
    recipient = message.get("recipient")
    if about.get("is_user_system_message") or form in INSTRUCTIONS:
        return "custom instructions"
    if role in ("system", "developer"):
        return "system"
    if role == "tool" and not painted(message):
        return "tool"
    if about.get("is_visually_hidden_from_conversation"):
        return "hidden"
    if form in REASONING:
        return "reasoning"
    if role == "assistant" and recipient not in (None, "", "all", "bio"):
        return "tool"
    return ""


def painted(message: dict[str, Any]) -> list[str]:
    """What the pictures that a message shows were asked to show."""
    parts = map(record_in, list_in(record_in(message.get("content")).get("parts")))
    asked = (record_in(record_in(part.get("metadata")).get("dalle")).get("prompt") for part in parts)
    return [f"image: {text_in(words).strip()}" for words in asked if text_in(words).strip()]


def attached_to(content: dict[str, Any], message: dict[str, Any]) -> tuple[str, ...]:
    """The names of what was attached; of what has none, what kind it is, or what a picture was asked to show."""
    rows = list_in(record_in(message.get("metadata")).get("attachments"))
    names = [text_in(record_in(one).get("name")) or "file" for one in rows]
    forms = (record_in(part).get("content_type") for part in list_in(content.get("parts")) if isinstance(part, dict))
    media = [MEDIA.get(str(form), "file") for form in forms if form is not None and form not in SPOKEN]
    return tuple(names or painted(message) or media)


def words_of(content: dict[str, Any], attached: Sequence[str]) -> str | None:
    """The words of a message and the names of what was attached; None where its form is not known."""
    pieces: list[str] = []
    if isinstance(content.get("parts"), list):
        for part in content["parts"]:
            if isinstance(part, str):
                pieces.append(part)
                continue
            form = record_in(part).get("content_type")
            if form in SPOKEN or (form is None and isinstance(record_in(part).get("text"), str)):
                pieces.append(text_in(record_in(part).get("text")))
    elif isinstance(content.get("text"), str):
        pieces.append(content["text"])
    elif isinstance(content.get("result"), str):
        pieces.append(content["result"])
    elif content and content.get("content_type") != "text":
        return None
    return with_attached("\n\n".join(piece for piece in pieces if piece.strip()), attached)
