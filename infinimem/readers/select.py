"""The hybrid and summary readers (Infini Memory-H and its ablation): a model picks documents by their summaries."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from infinimem.ask import Round
from infinimem.errors import ModelFailed
from infinimem.llm.port import Message, Model, Request
from infinimem.llm.prompts import prompt_for
from infinimem.llm.reply import read_json
from infinimem.model import Unit, path_of
from infinimem.readers.agentic import Limits, Looked, documents_for, spent
from infinimem.readers.arguments import is_nothing
from infinimem.readers.lines import flat
from infinimem.readers.memory import Memory, place_of, units_of

MOST = 4
"""Documents that a model picks at most."""
CATALOGUE = 0.5
"""Share of the model's context for the catalogue: it is the only call, so it may show more than an agent's does."""


def select(
    memory: Memory,
    question: str,
    model: Model,
    limits: Limits = Limits(),
    k: int = 8,
    watch: Callable[[Round], None] = lambda round: None,
) -> Looked:
    """Let a model pick documents, and take from each the entries most like the question."""
    room = max(limits.catalogue, int(limits.context * CATALOGUE))
    documents, scope, topics = documents_for(memory, question, room)
    scope = scope.replace("; `catalog` shows the others", "")
    if not topics:
        return Looked(stop="there is no document yet", finished=True)
    values = {"scope": scope, "documents": documents, "question": flat(question, 4_000), "most": str(MOST)}
    system, user = prompt_for("select", values)
    started = time.monotonic()
    try:
        schema = schema_of(topics)
        request = Request("select", (Message("system", system), Message("user", user)), schema, max_tokens=200)
        reply = model.complete(request)
    except ModelFailed as error:
        return Looked(stop=f"the model failed: {error}", failed=str(error))
    picked = picked_in(reply.text, topics)
    units = best_of(memory, question, picked, k)
    told = f"select: {', '.join(picked) or 'no document'}"
    one = Round((flat(told, 300),), len(units), spent(reply), time.monotonic() - started)
    watch(one)
    stop = "the model picked documents" if picked else "the model picked no document"
    return Looked((one,), stop, bool(picked), shown=tuple(units), usage=reply.usage)


def schema_of(topics: tuple[str, ...]) -> Mapping[str, object]:
    """The schema of a reply: some of these ids."""
    ids = {"type": "array", "items": {"type": "string", "enum": list(topics)}, "maxItems": MOST}
    return {
        "type": "object",
        "properties": {"documents": ids},
        "required": ["documents"],
        "additionalProperties": False,
    }


def picked_in(text: str, topics: tuple[str, ...]) -> list[str]:
    """The documents that a reply names, as far as they were offered."""
    value = read_json(text)
    named = value.get("documents") if isinstance(value, Mapping) else value
    if isinstance(named, str):
        named = named.split(",")
    if is_nothing(named) or not isinstance(named, list):
        return []
    offered = {topic.casefold(): topic for topic in topics}
    texts = [one.partition(":")[0].strip(" []`'\"").casefold() for one in named if isinstance(one, str)]
    return list(dict.fromkeys(offered[text] for text in texts if text in offered))[:MOST]


def best_of(memory: Memory, question: str, topics: list[str], k: int) -> list[Unit]:
    """Of each document the entries most like a question, the documents in turn; its newest where none is like it."""
    share = max(2, k // max(1, len(topics)))
    found: list[list[Unit]] = []
    for topic in topics:
        here = replace(memory.filter, topic=topic)
        units = [hit.unit for hit in memory.index.search(question, share, here)]
        units += [unit for unit in reversed(units_of(memory, path_of(topic))) if unit.seqs][
            : max(0, share - len(units))
        ]
        found.append(list({place_of(unit): unit for unit in units}.values()))
    return [units[at] for at in range(max(map(len, found), default=0)) for units in found if at < len(units)]
