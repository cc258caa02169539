"""LongMemEval: for each question a haystack of dated sessions between a user and an assistant."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from infinimem.exchange.inputs import Input
from infinimem.exchange.json_stream import JsonStream
from infinimem.exchange.message import Message, Reading, Skipped, Unread, list_in, record_in, text_in, time_of
from infinimem.exchange.walk import begins_json, each_record

ROLES = {"user": "user", "assistant": "AI"}
DATE = re.compile(r"([0-9]{4})/([0-9]{2})/([0-9]{2})(?: \([^)]*\))?(?: ([0-9]{2}:[0-9]{2}))?")


def recognises(name: str, head: str) -> bool:
    """Whether a file begins like this data set."""
    return begins_json(head) and ('"haystack_' in head or ('"question_id"' in head and '"question_type"' in head))


def read(source: Input, *, branches: bool = False) -> Reading:
    """Every turn of every session, the sessions in the order of the file; one that several questions share is one."""

    def read_instance(stream: JsonStream, number: int) -> Reading:
        record = record_in(stream.value())
        where = f"{source.name}, question {number}"
        sessions = record.get("haystack_sessions")
        if not isinstance(sessions, list):
            yield Unread(where, "a question without sessions")
            return
        ids, dates = list_in(record.get("haystack_session_ids")), list_in(record.get("haystack_dates"))
        for at, session in enumerate(sessions):
            own = str(ids[at]) if at < len(ids) else digest_of(session)
            time = session_time(text_in(dates[at])) if at < len(dates) else ""
            yield from turns(session, own, time, f"{where}, session {at + 1}")

    yield from each_record(source, read_instance, kind="question")


def turns(session: Any, own: str, time: str, where: str) -> Reading:
    """The turns of one session."""
    if not isinstance(session, list):
        yield Unread(where, "this is no list of turns")
        return
    for number, turn in enumerate(session, 1):
        place = f"{where}, turn {number}"
        text = record_in(turn).get("content")
        if not isinstance(text, str):
            yield Unread(place, "a turn without text")
        elif not text.strip():
            yield Skipped("empty")
        else:
            role = text_in(turn.get("role"))
            label = (("label", own),)
            key = f"longmemeval {own} {number}\n{text}"
            yield Message(key, text, place, ROLES.get(role, role), time, own, fields=label)


def digest_of(session: Any) -> str:
    """A name for a session that has none."""
    return hashlib.blake2b(repr(session).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def session_time(text: str) -> str:
    """`2023/05/20 (Sat) 02:21` as ISO 8601."""
    match = DATE.match(text)
    if match is None:
        return time_of(text)
    day = "-".join(match.groups()[:3])
    return time_of(f"{day}T{match[4]}" if match[4] else day)
