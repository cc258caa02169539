"""Libraries of a few entries, and models that follow a script: what they call, round by round."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from infinimem import Library
from infinimem.llm.port import Call, Reply, Request
from infinimem.llm.replay import Scripted, sent_tokens
from infinimem.model import Filter, Usage
from infinimem.readers.memory import Memory, open_memory
from infinimem.readers.tools import RESULT, Observation, Shown, run_tool

NOW = datetime(2026, 5, 2, 8, tzinfo=UTC)
FENCED = re.compile(r"^~~~$.*?^~~~$", re.MULTILINE | re.DOTALL)

Calls = Sequence[tuple[str, Any]]
"""The calls of a round: a tool's name and its arguments, a text as it stands or a value as JSON."""


def library_of(root: Path, pages: dict[str, Sequence[dict[str, Any] | str]], **more: Any) -> Library:
    """A library with these topic documents; `topic/Heading` puts entries under a heading."""
    library = Library.open(root, create=True, clock=lambda: NOW, **more)
    for place, entries in pages.items():
        topic, _, heading = place.partition("/")
        if topic == "CURRENT":
            library.write(list(entries))
            continue
        seqs = library.write(list(entries))
        known = {row.topic for row in library.catalog()}
        steps = "" if topic in known else f"- create: {{topic: {topic}, title: {topic.title()}}}\n"
        steps += f'- extend: {{topic: {topic}, heading: "{heading}", seqs: {seqs[0]}-{seqs[-1]}}}\n'
        plan = root.parent / f"{root.name}-plan.yaml"
        plan.write_text(f"plan: 1\nsteps:\n{steps}")
        library.flush(plan=plan)
    return library


def memory_of(library: Library, filter: Filter = Filter()) -> Memory:
    """A library as a reader sees it."""
    return open_memory(library.root, library.index(), filter, "english")


def call_of(name: str, arguments: Any = None, id: str = "c1") -> Call:
    """A tool call."""
    return Call(id, name, arguments if isinstance(arguments, str) else json.dumps(arguments))


def use(
    memory: Memory, name: str, arguments: Any = None, shown: Shown | None = None, room: int = RESULT
) -> Observation:
    """What a call brings, noted as shown."""
    shown = Shown() if shown is None else shown
    told = run_tool(memory, call_of(name, arguments), shown, room, 1)
    shown.take(told)
    return told


def calling(*calls: tuple[str, Any], text: str = "") -> Reply:
    """A reply that calls tools."""
    return Reply(text, tuple(call_of(name, arguments, f"c{at}") for at, (name, arguments) in enumerate(calls)))


def agent(*rounds: Calls | str, answer: str | Callable[[Request], str] = "", last: Calls = ()) -> Scripted:
    """A model that calls these tools round by round, then `last` for ever; a text instead of calls is a reply.

    It answers with `answer`.
    """
    left = list(rounds)

    def script(request: Request) -> Reply:
        if not request.tools:
            text = answer if isinstance(answer, str) else answer(request)
            if request.hear is not None:
                request.hear(text)
            return Reply(text, usage=Usage(1, sent_tokens(request), len(text) // 4))
        now = left.pop(0) if left else last or [("finish", {"places": []})]
        reply = Reply(now) if isinstance(now, str) else calling(*now)
        return Reply(reply.text, reply.calls, Usage(1, sent_tokens(request), 20))

    return Scripted(script)


def outside(request: Request) -> str:
    """What of a request is no stored text: all that stands outside the fences."""
    return "\n".join(FENCED.sub("", message.content) for message in request.messages if message.role != "assistant")


def told(request: Request) -> str:
    """Everything that a request says."""
    return "\n".join(message.content for message in request.messages)
