"""The MCP reference memory server's `memory.jsonl`: entities with observations, and relations between them."""

from __future__ import annotations

import re
from typing import Any

from infinimem.exchange.inputs import Input
from infinimem.exchange.message import Message, Reading, Skipped, Unread, text_in
from infinimem.exchange.walk import records_of

KINDS = re.compile(r'"type"\s*:\s*"(?:entity|relation)"')


def recognises(name: str, head: str) -> bool:
    """Whether a file begins like this memory."""
    lines = [line for line in head.split("\n", 20)[:20] if line.strip()]
    return any(
        line.lstrip()[:1] == "{" and KINDS.search(line) and ('"observations"' in line or '"relationType"' in line)
        for line in lines
    )


def read(source: Input, *, branches: bool = False) -> Reading:
    """Each observation with the name of what it is about, each relation as the three words that it is."""
    for row in records_of(source):
        if isinstance(row, Unread):
            yield row
            continue
        place, record = row
        if record.get("type") == "entity":
            yield from observations(record, place)
        elif record.get("type") == "relation":
            yield relation(record, place)
        else:
            yield Unread(place, "neither an entity nor a relation")


def observations(record: dict[str, Any], place: str) -> Reading:
    """What is known of one entity; of one without observations that it exists."""
    name, kind = text_in(record.get("name")).strip(), text_in(record.get("entityType")).strip()
    observed = record.get("observations")
    if not name or not isinstance(observed, list):
        yield Unread(place, "an entity without a name or observations")
        return
    fields = tuple(pair for pair in (("type", kind), ("label", name)) if pair[1])
    if not observed:
        yield Message(f"mcp {name}", f"{name} ({kind})" if kind else name, place, conversation=name, fields=fields)
    for number, text in enumerate(observed, 1):
        if not isinstance(text, str):
            yield Unread(f"{place}, observation {number}", "this is no text")
        elif not text.strip():
            yield Skipped("empty")
        else:
            yield Message(f"mcp {name}\n{text}", f"{name}: {text}", place, conversation=name, fields=fields)


def relation(record: dict[str, Any], place: str) -> Message | Unread:
    """A relation as a sentence of its own three words."""
    words = [text_in(record.get(name)).strip() for name in ("from", "relationType", "to")]
    if not all(words):
        return Unread(place, "a relation without its two ends and its name")
    sentence = " ".join(words)
    return Message(f"mcp {sentence}", sentence, place, conversation=words[0], fields=(("type", "relation"),))
