"""mem0's memories: what `get_all` or `history` gives, as an array or with the array in `results`."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from infinimem.exchange.inputs import Input
from infinimem.exchange.json_stream import JsonStream
from infinimem.exchange.message import Message, Reading, Skipped, Unread, list_in, record_in, text_in, time_of
from infinimem.exchange.walk import begins_json, each_record

LONGEST_FIELD = 300
MEMORY = re.compile(r'"memory"\s*:\s*"')
INSIDE = ("results", "memories", "count", "next", "previous", "total", "total_memories", "relations")
OWN = ("user_id", "agent_id", "run_id", "app_id", "actor_id")


def recognises(name: str, head: str) -> bool:
    """Whether a file begins like memories."""
    is_history = '"memory_id"' in head and '"new_memory"' in head
    is_list = MEMORY.search(head) is not None and ('"id"' in head or '"hash"' in head)
    return begins_json(head) and (is_history or is_list)


def read(source: Input, *, branches: bool = False) -> Reading:
    """Each memory, with the time at which it was last changed and whose it is; of a history every version."""
    history: list[tuple[str, dict[str, Any]]] = []

    def read_memory(stream: JsonStream, number: int) -> Reading:
        record = record_in(stream.value())
        place = f"{source.name}, memory {number}"
        if text_in(record.get("memory_id")) and "memory" not in record:
            history.append((place, record))
            return
        text = record.get("memory", record.get("data"))
        if not isinstance(text, str):
            yield Unread(place, "a memory without text")
            return
        if not text.strip():
            yield Skipped("empty")
            return
        time = time_of(record.get("updated_at")) or time_of(record.get("created_at"))
        who = text_in(record.get("role"))
        ident = text_in(record.get("id"))
        key = f"mem0 {ident or text} {text_in(record.get('hash'))}"
        yield Message(
            key, text, place, {"assistant": "AI"}.get(who, who), time, key, fields=fields_of(record),
            of=f"mem0 {ident}" if ident else "", expires=time_of(record.get("expiration_date")),
        )  # fmt: skip

    yield from each_record(source, read_memory, kind="memory", inside=INSIDE)
    yield from versions(history)


def fields_of(record: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Whose a memory is, its categories, and what else is noted with it."""
    fields = [(name, text_in(record.get(name))) for name in OWN]
    labels = [text_in(one) for one in list_in(record.get("categories"))]
    fields.append(("label", "+".join(label for label in labels if label)))
    taken = {"data", "hash", "source", "time", *OWN}
    fields += [(name, as_text(value)) for name, value in record_in(record.get("metadata")).items() if name not in taken]
    return tuple(pair for pair in fields if pair[1])


def as_text(value: Any) -> str:
    """A value as a field holds it: a text as it is, the rest as JSON; "" for nothing and for what is very long."""
    text = value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
    return text if isinstance(value, str) or len(text) <= LONGEST_FIELD else ""


def versions(history: list[tuple[str, dict[str, Any]]]) -> Reading:
    """What a memory said from time to time; the last words of a deleted one hold until it was deleted."""
    rows = sorted(history, key=lambda pair: changed_at(pair[1]))
    number = Counter(text_in(row["memory_id"]) for _, row in rows)
    ended: dict[str, str] = {}
    found: list[Message | Skipped | Unread] = []
    for place, row in reversed(rows):
        memory = text_in(row["memory_id"])
        gone = text_in(row.get("event")).upper() == "DELETE" or bool(row.get("is_deleted"))
        if gone:
            ended.setdefault(memory, changed_at(row))
        if gone and number[memory] > 1:
            found.append(Skipped("deleted"))
        else:
            found.append(version(place, row, memory, ended.pop(memory, "")))
    yield from reversed(found)


def version(place: str, row: dict[str, Any], memory: str, end: str) -> Message | Skipped | Unread:
    """One version of a memory, which holds until `end` where that is known."""
    text = row.get("new_memory") or row.get("old_memory")
    if not isinstance(text, str):
        return Unread(place, "a version without text")
    if not text.strip():
        return Skipped("empty")
    key = f"mem0 {memory} {text_in(row.get('id')) or text} {end}".rstrip()
    who, fields = text_in(row.get("role")), (("memory", memory),)
    return Message(
        key, text, place, {"assistant": "AI"}.get(who, who), changed_at(row), key, fields=fields, of=f"mem0 {memory}",
        expires=end,
    )  # fmt: skip


def changed_at(row: dict[str, Any]) -> str:
    """When a version came to be."""
    return time_of(row.get("updated_at")) or time_of(row.get("created_at"))
