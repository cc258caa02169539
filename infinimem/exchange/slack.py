"""Slack's export: a folder or zip with a folder a channel, in each a file a day; who is who stands in `users.json`."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any

from infinimem.exchange.inputs import Input
from infinimem.exchange.json_stream import JsonStream
from infinimem.exchange.message import (
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
from infinimem.exchange.walk import each_record

DAY = re.compile(r"(?:^|/)(?:[^/]+/)?[0-9]{4}-[0-9]{2}-[0-9]{2}\.json$")
LISTS = frozenset(
    f"{name}.json" for name in "users org_users channels groups dms mpims integration_logs canvases lists".split()
)
SYSTEM = frozenset(
    "pinned_item unpinned_item bot_add bot_remove reminder_add huddle_thread sh_room_created joiner_notification "
    "ekm_access_denied app_conversation_join".split()
)
MARKED = re.compile(r"<([^<>|]*)(?:\|([^<>]*))?>")


def recognises(name: str, head: str) -> bool:
    """Whether a file is one of a channel's days."""
    return head[:1] == "[" and DAY.search(name) is not None and '"ts"' in head and '"type"' in head


def read(source: Input, *, branches: bool = False) -> Reading:
    """What was said on one day of one channel; joins, topics and other lines of the program are left out."""
    place = PurePosixPath(source.within)
    if place.name in LISTS:
        yield Skipped("lists of people and channels")
        return
    channel = place.parent.name or place.stem
    people = names_in(source.beside(str(place.parent.parent / "users.json")))

    def read_one(stream: JsonStream, number: int) -> Reading:
        yield read_message(record_in(stream.value()), f"{source.name}, message {number}", channel, people)

    yield from each_record(source, read_one, kind="message")


@lru_cache(maxsize=2)
def names_in(users: bytes) -> Mapping[str, str]:
    """The name that people go by, by their id."""
    try:
        rows = json.loads(users) if users else []
    except (ValueError, RecursionError):
        rows = []
    known = {text_in(row.get("id")): name_of(row) for row in list_in(rows) if isinstance(row, dict)}
    return {ident: name for ident, name in known.items() if ident and name}


def name_of(user: Mapping[str, Any]) -> str:
    """The name of a person or an app."""
    profile = record_in(user.get("profile"))
    names = (profile.get("real_name"), user.get("real_name"), profile.get("display_name"), user.get("name"))
    return next((text_in(name).strip() for name in names if text_in(name).strip()), "")


def read_message(
    message: dict[str, Any], place: str, channel: str, people: Mapping[str, str]
) -> Message | Skipped | Unread:
    """One message of a channel."""
    if message.get("type") != "message":
        return Unread(place, f"a kind of record that is not known: {text_in(message.get('type'))[:40]!r}")
    kind = text_in(message.get("subtype"))
    if kind == "tombstone":
        return Skipped("deleted")
    if kind in SYSTEM or kind.startswith(("channel_", "group_")):
        return Skipped("system")
    attached = [
        text_in(one.get("title")) or text_in(one.get("name")) or "file"
        for one in map(record_in, list_in(message.get("files")))
    ]
    words = text_in(message.get("text"))
    if not words.strip():  # apps say what they have to say in cards
        cards = [record_in(one) for one in list_in(message.get("attachments"))]
        words = "\n\n".join(text_in(one.get("text")) or text_in(one.get("fallback")) for one in cards)
    text = with_attached(as_shown(words, people), attached)
    if not text.strip():
        return Skipped("empty")
    user, moment = text_in(message.get("user")) or text_in(message.get("bot_id")), text_in(message.get("ts"))
    own = name_of({"profile": message.get("user_profile")}) or text_in(message.get("username"))
    who = people.get(user) or own or user
    thread = text_in(message.get("thread_ts"))
    one = f"slack {channel} {moment} {user or who}"
    edited = text_in(record_in(message.get("edited")).get("ts"))
    return Message(
        f"{one} {edited}".rstrip(), text, place, who, time_of(seconds(moment)), channel, channel,
        (("thread", thread),) if thread and thread != moment else (), attached=tuple(attached), of=one,
    )  # fmt: skip


def seconds(moment: str) -> float | None:
    """`1700000000.000200` as a number."""
    try:
        return float(moment)
    except ValueError:
        return None


def as_shown(text: str, people: Mapping[str, str]) -> str:
    """Text as Slack shows it: names for ids, links in words, and the three characters that it escapes."""

    def shown(match: re.Match[str]) -> str:
        target, label = match[1], match[2] or ""
        if target.startswith("@"):
            return f"@{label or people.get(target[1:], target[1:])}"
        if target.startswith("#"):
            return f"#{label or target[1:]}"
        if target.startswith("!"):
            return f"@{label or target[1:]}"
        return f"{label} ({target})" if label and label != target else target

    return html.unescape(MARKED.sub(shown, text))
