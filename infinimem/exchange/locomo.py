"""LoCoMo: conversations of two people in dated sessions, with questions that are left alone."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from infinimem.exchange.inputs import Input
from infinimem.exchange.json_stream import JsonStream
from infinimem.exchange.message import Message, Reading, Skipped, Unread, record_in, text_in, time_of, with_attached
from infinimem.exchange.walk import begins_json, each_record

SESSION = re.compile(r"session_([0-9]+)")


def recognises(name: str, head: str) -> bool:
    """Whether a file begins like this data set, whose questions may come first."""
    told = '"dia_id"' in head or ('"speaker_a"' in head and '"speaker_b"' in head)
    return begins_json(head) and (told or is_questions(head))


def is_questions(text: str) -> bool:
    """Whether a file begins with LoCoMo's questions."""
    return re.match(r'\[?\s*\{\s*"qa"\s*:\s*\[', text) is not None and '"evidence"' in text


def read(source: Input, *, branches: bool = False) -> Reading:
    """Every turn of every session, with its `dia_id` as label; what pictures show stands in words behind it."""

    def read_sample(stream: JsonStream, number: int) -> Reading:
        sample, talk = str(number), {}
        for key in stream.members():
            value = stream.value()
            if key == "sample_id":
                sample = str(value)
            elif key == "conversation":
                talk = record_in(value)
            elif SESSION.match(key) or key.startswith("speaker_"):  # a conversation alone, without the sample about it
                talk[key] = value
        yield from turns(talk, sample, f"{source.name}, conversation {number} «{sample}»")

    yield from each_record(source, read_sample)


def turns(talk: dict[str, Any], sample: str, where: str) -> Reading:
    """The turns of a conversation, session by session."""
    sessions = sorted((int(match[1]), key) for key in talk if (match := SESSION.fullmatch(key)))
    for number, key in sessions:
        time = session_time(text_in(talk.get(f"{key}_date_time")))
        if not isinstance(talk[key], list):
            yield Unread(f"{where}, session {number}", "this is no list of turns")
            continue
        for at, turn in enumerate(talk[key], 1):
            place = f"{where}, session {number}, turn {at}"
            if not isinstance(turn, dict) or not isinstance(turn.get("text", ""), str):
                yield Unread(place, "this is no turn")
                continue
            caption = text_in(turn.get("blip_caption")).strip()
            text = with_attached(text_in(turn.get("text")), [caption] if caption else [])
            if not text.strip():
                yield Skipped("empty")
                continue
            label = text_in(turn.get("dia_id"))
            fields = tuple(pair for pair in (("label", label), ("conversation", sample)) if pair[1])
            key_of_turn = f"locomo {sample} {label or f'{number}:{at}'}"
            yield Message(
                key_of_turn,
                text,
                place,
                text_in(turn.get("speaker")),
                time,
                f"{sample} {number}",
                fields=fields,
                attached=(caption,) if caption else (),
            )


def session_time(text: str) -> str:
    """`1:56 pm on 8 May, 2023` as ISO 8601; "" where it is nothing of the kind."""
    try:
        moment = datetime.strptime(" ".join(text.replace(",", " ").split()), "%I:%M %p on %d %B %Y")
    except ValueError:
        return time_of(text)
    return moment.isoformat(timespec="minutes")
