"""Telegram's export: `result.json` of one chat, or of all of them below `chats` and `left_chats`."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from infinimem.exchange.inputs import Input
from infinimem.exchange.json_stream import Broken, JsonStream
from infinimem.exchange.message import (
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

SEVERAL = ("chats", "left_chats")
LEFT_OUT = "(File"
"""How Telegram begins a path that it did not export."""


def recognises(name: str, head: str) -> bool:
    """Whether a file begins like this export."""
    told = '"date_unixtime"' in head or '"from_id"' in head or '"actor_id"' in head
    return head[:1] == "{" and '"messages"' in head and told


def read(source: Input, *, branches: bool = False) -> Reading:
    """Every message of every chat; what the program says in between (calls, members, pins) is left out."""
    chats = 0
    with source.open() as file:
        stream = JsonStream(file)
        try:
            chat = Chat(source.name, 1)
            for key in stream.members():
                if key in SEVERAL and stream.peek() == "{":
                    for inner in stream.members():
                        if inner != "list" or stream.peek() != "[":
                            stream.value()
                            continue
                        for _ in stream.elements():
                            chats += 1
                            yield from Chat(source.name, chats).read(stream)
                else:
                    yield from chat.take(key, stream)
        except Broken as error:
            yield Unread(source.name, f"{error}; nothing is read from there on")


class Chat:
    """A chat as far as it has been read: its name and number come before its messages."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number
        self.fields: dict[str, Any] = {}

    def read(self, stream: JsonStream) -> Reading:
        """All of the chat that comes next. Raises `Broken`."""
        if stream.peek() != "{":
            stream.value()
            yield Unread(f"{self.name}, chat {self.number}", "this is no chat")
            return
        for key in stream.members():
            yield from self.take(key, stream)

    def take(self, key: str, stream: JsonStream) -> Reading:
        """One member of the chat. Raises `Broken`."""
        if key != "messages" or stream.peek() != "[":
            self.fields[key] = stream.value()
            return
        title = title_of(self.fields.get("name"))
        where = f"{self.name}, {named(self.number, title, 'chat')}"
        ident = str(self.fields.get("id", "")) or title or str(self.number)
        for at in stream.elements():
            yield read_message(stream.value(), f"{where}, message {at + 1}", ident, title)


def read_message(value: Any, place: str, chat: str, title: str) -> Message | Skipped | Unread:
    """One message of a chat."""
    if not isinstance(value, dict):
        return Unread(place, "this is no message")
    kind = value.get("type")
    if kind == "service":
        return Skipped("system")
    if kind != "message":
        return Unread(place, f"a kind of message that is not known: {text_in(kind)[:40]!r}")
    attached = attached_to(value)
    text = with_attached(words_of(value.get("text")), attached)
    if not text.strip():
        return Skipped("empty")
    who = text_in(value.get("from")) or text_in(value.get("from_id"))
    moment = text_in(value.get("date_unixtime"))
    time = time_of(int(moment)) if moment.isdecimal() and len(moment) < 12 else time_of(value.get("date"))
    one = f"telegram {chat} {value.get('id')}"
    edited = text_in(value.get("edited_unixtime")) or text_in(value.get("edited"))
    forwarded = text_in(value.get("forwarded_from"))
    return Message(
        f"{one} {edited}".rstrip(), text, place, who, time, chat, title,
        (("forwarded", forwarded),) if forwarded else (), attached=tuple(attached), of=one,
    )  # fmt: skip


def words_of(text: Any) -> str:
    """A text, or the pieces that links, names and emphasis cut it into."""
    if isinstance(text, str):
        return text
    return "".join(
        piece if isinstance(piece, str) else text_in(record_in(piece).get("text")) for piece in list_in(text)
    )


def attached_to(message: dict[str, Any]) -> list[str]:
    """What came with the words: files by name, the rest by what it is."""
    found: list[str] = []
    sticker = text_in(message.get("sticker_emoji"))
    path = text_in(message.get("file"))
    if message.get("media_type") == "sticker":
        found.append(f"sticker {sticker}".rstrip())
    elif path:
        own = text_in(message.get("file_name")) or ("" if path.startswith(LEFT_OUT) else PurePosixPath(path).name)
        found.append(own or text_in(message.get("media_type")).replace("_", " ") or "file")
    if text_in(message.get("photo")):
        found.append("photo")
    poll = record_in(message.get("poll"))
    if poll:
        choices = [text_in(record_in(one).get("text")) for one in list_in(poll.get("answers"))]
        found.append(f"poll: {text_in(poll.get('question'))} ({' / '.join(choices)})")
    spot = record_in(message.get("location_information"))
    if spot:
        found.append(f"place {text_in(message.get('place_name'))} {spot.get('latitude')}, {spot.get('longitude')}")
    person = record_in(message.get("contact_information"))
    if person:
        names = (text_in(person.get(key)) for key in ("first_name", "last_name", "phone_number"))
        found.append(f"contact {' '.join(name for name in names if name)}")
    return [" ".join(one.split()) for one in found]
