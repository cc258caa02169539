"""What every reader yields: a message, a message that it leaves out by kind, or one that it could not read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

LONGEST_TITLE = 80
"""Characters of a conversation's title that each of its entries carries."""
ATTACHMENT = "attachment"
"""The field of an entry that is the text of a file: its name."""
PARTIAL = re.compile(r"(?!0000)[0-9]{4}(?:-(?:0[1-9]|1[0-2]))?")
ISO = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ]([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:[.,][0-9]+)?)?\s?"
    r"(Z|UTC|[+-][0-9]{2}:?[0-9]{2})?)?"
)


@dataclass(frozen=True, slots=True)
class Message:
    """Something that was said. `key` is its identity where it comes from: the same on every reading of the file.

    `conversation` groups what belongs together; `fields` go into the signature as they are; `topic` is the title of
    the document that it stood in, if it stood in one, `heading` what it stood under there. `attached` names the files
    and pictures that came with it. `of` is the identity of the thing of which this is a version: a newer one takes the
    older one's place. `expires` is when it stops to hold. `known_as` is the id of the entry that it is known to be
    already, `replaces` the seq of the one that it was edited from.
    """

    key: str
    text: str
    place: str
    source: str = ""
    time: str = ""
    conversation: str = ""
    title: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    topic: str = ""
    heading: str = ""
    attached: tuple[str, ...] = ()
    of: str = ""
    expires: str = ""
    known_as: str = ""
    replaces: int = 0


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that is no part of what was said, by its kind: `tool`, `system`, `empty`…; `number` of them."""

    kind: str
    number: int = 1


@dataclass(frozen=True, slots=True)
class Unread:
    """Something that could not be read: where, and why."""

    place: str
    why: str

    def __str__(self) -> str:
        return f"{self.place}: {self.why}"


Found = Message | Skipped | Unread
Reading = Iterator[Found]


def text_in(value: Any) -> str:
    """A text as it is; "" for anything else."""
    return value if isinstance(value, str) else ""


def record_in(value: Any) -> dict[str, Any]:
    """A JSON object as it is; {} for anything else."""
    return value if isinstance(value, dict) else {}


def list_in(value: Any) -> list[Any]:
    """A JSON array as it is; [] for anything else."""
    return value if isinstance(value, list) else []


def time_of(value: Any) -> str:
    """A time as an entry carries it, in UTC where the zone is known; "" where there is none to be made out.

    Numbers are seconds since 1970, or milliseconds where seconds would be after the year 5000.
    """
    if isinstance(value, bool) or value is None:
        return ""
    if isinstance(value, int | float):
        return time_of_seconds(float(value))
    text = str(value).strip()
    if PARTIAL.fullmatch(text):
        return text
    match = ISO.match(text)
    if match is None:
        return ""
    day, minute, second, zone = match.groups()
    if minute is None:
        return day if is_moment(day) else ""
    written = f"{day}T{minute}" + (f":{second}" if second else "")
    if not is_moment(written):
        return ""
    if zone is None:
        return written
    if zone in ("Z", "UTC"):
        return f"{written}Z"
    try:
        moment = datetime.fromisoformat(written + zone).astimezone(UTC)
    except (ValueError, OverflowError):
        return ""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment.year >= 1000 else ""


def time_of_seconds(seconds: float) -> str:
    """Seconds (or milliseconds) since 1970 as ISO 8601; "" for NaN and what no calendar holds."""
    if abs(seconds) > 95_617_584_000:  # the year 5000
        seconds /= 1000
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return ""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment.year >= 1000 else ""


def is_moment(text: str) -> bool:
    """Whether a date, or a date and a time, exists in the calendar."""
    try:
        return datetime.fromisoformat(text).year >= 1
    except ValueError:
        return False


def title_of(value: Any) -> str:
    """A conversation's title on one line, cut short where it is very long."""
    title = " ".join(text_in(value).split())
    return title if len(title) <= LONGEST_TITLE else title[: LONGEST_TITLE - 1].rstrip() + "…"


def named(number: int, title: str, kind: str = "conversation") -> str:
    """A conversation as a place names it: `conversation 3 «Boat»`."""
    return f"{kind} {number}" + (f" «{title}»" if title else "")


def file_text(message: Message, number: int, name: str, text: str) -> Message:
    """What an export says stands in a file that came with a message, as an entry of its own."""
    fields = (*message.fields, (ATTACHMENT, name))
    key = f"{message.key} attachment {number}"
    return replace(message, key=key, text=text, source=f"file:{name}", fields=fields, attached=(), of="")


def with_attached(text: str, names: Sequence[str]) -> str:
    """The words, and on a last line what was attached to them."""
    attached = f"[attached: {', '.join(names)}]" if names else ""
    return "\n\n".join(piece for piece in (text, attached) if piece.strip())
