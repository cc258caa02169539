"""mem0's memories: what `get_all` gives, as an array or with the array in `results`."""

from __future__ import annotations

import re

from infinimem.exchange.inputs import Input
from infinimem.exchange.json_stream import JsonStream
from infinimem.exchange.message import Message, Reading, Skipped, Unread, list_in, record_in, text_in, time_of
from infinimem.exchange.walk import each_record

MEMORY = re.compile(r'"memory"\s*:\s*"')
INSIDE = ("results", "memories", "count", "next", "previous", "total", "total_memories", "relations")
OWN = ("user_id", "agent_id", "run_id", "app_id", "actor_id")


def recognises(name: str, head: str) -> bool:
    """Whether a file begins like memories."""
    text = head.lstrip("\ufeff \t\r\n")
    return text[:1] in ("[", "{") and MEMORY.search(text) is not None and ('"id"' in text or '"hash"' in text)


def read(source: Input, *, branches: bool = False) -> Reading:
    """Each memory, with the time at which it was last changed and whose it is."""

    def read_memory(stream: JsonStream, number: int) -> Reading:
        record = record_in(stream.value())
        place = f"{source.name}, memory {number}"
        text = record.get("memory", record.get("data"))
        if not isinstance(text, str):
            yield Unread(place, "a memory without text")
            return
        if not text.strip():
            yield Skipped("empty")
            return
        about = record_in(record.get("metadata"))
        fields = [(name, text_in(record.get(name))) for name in OWN]
        labels = [text_in(one) for one in list_in(record.get("categories"))]
        fields.append(("label", "+".join(label for label in labels if label)))
        taken = {"data", "hash", "source", "time", *OWN}
        fields += [(name, value) for name, value in about.items() if isinstance(value, str) and name not in taken]
        time = time_of(record.get("updated_at")) or time_of(record.get("created_at"))
        who = text_in(record.get("role"))
        key = f"mem0 {text_in(record.get('id')) or text} {text_in(record.get('hash'))}"
        kept = tuple(pair for pair in fields if pair[1])
        yield Message(key, text, place, {"assistant": "AI"}.get(who, who), time, key, fields=kept)

    with source.open() as file:
        yield from each_record(file, source.name, read_memory, kind="memory", inside=INSIDE)
