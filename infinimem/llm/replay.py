"""Models that need no server: scripted ones, and conversations recorded once and replayed for ever."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from infinimem.errors import ModelFailed
from infinimem.llm.port import Call, Model, Reply, Request
from infinimem.model import Usage
from infinimem.text.tokens import estimate


class Scripted:
    """A model whose replies are a function of the request. `requests` are those it was asked, in order."""

    def __init__(self, answer: Callable[[Request], Reply | str]) -> None:
        self.answer = answer
        self.requests: list[Request] = []

    def complete(self, request: Request) -> Reply:
        """What the script says; a text counts as one call with estimated tokens."""
        self.requests.append(request)
        answer = self.answer(request)
        if isinstance(answer, Reply):
            return answer
        if request.hear is not None:
            request.hear(answer)
        return Reply(answer, usage=Usage(1, sent_tokens(request), estimate(answer)), model="scripted")


class Recording:
    """A model that is listened to: every request and its reply go to a file, one JSON line each."""

    def __init__(self, model: Model, path: Path) -> None:
        self.model = model
        self.path = path

    def complete(self, request: Request) -> Reply:
        """The other model's reply, noted."""
        reply = self.model.complete(request)
        row = {
            "digest": digest_of(request),
            "step": request.step,
            "messages": [message_values(message) for message in request.messages],
            "reply": {
                "text": reply.text,
                "calls": [[call.id, call.name, call.arguments] for call in reply.calls],
                "cut": reply.cut,
                "model": reply.model,
                "usage": [reply.usage.calls, reply.usage.tokens_in, reply.usage.tokens_out, reply.usage.seconds],
            },
        }
        with self.path.open("a", encoding="utf-8", errors="backslashreplace") as file:  # half a surrogate pair
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
        return reply


class Replay:
    """A model that answers what was recorded. Raises `ModelFailed` for a request that was not."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.replies: dict[str, dict[str, Any]] = {}
        for line in path.read_text("utf-8").split("\n"):  # words may hold what `splitlines` also cuts at
            if line:
                row = json.loads(line)
                self.replies[row["digest"]] = row["reply"]

    def complete(self, request: Request) -> Reply:
        """The recorded reply."""
        row = self.replies.get(digest_of(request))
        if row is None:
            raise ModelFailed(f"{self.path} holds no reply to this {request.step} request; record it anew")
        if request.hear is not None:
            request.hear(row["text"])
        calls = tuple(Call(*call) for call in row["calls"])
        return Reply(row["text"], calls, Usage(*row["usage"]), row["cut"], row["model"])


def sent_tokens(request: Request) -> int:
    """About how many tokens a request's messages are."""
    return sum(estimate(message.content) for message in request.messages)


def message_values(message: Any) -> list[Any]:
    """A message as plain values."""
    calls = [[call.name, call.arguments] for call in message.calls]
    return [message.role, message.content, calls, message.call_id]


def digest_of(request: Request) -> str:
    """What tells a request from others: its step, messages, schema and tools."""
    content = [
        request.step,
        [message_values(message) for message in request.messages],
        request.schema,
        [[tool.name, tool.about, tool.parameters] for tool in request.tools],
    ]
    text = json.dumps(content, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
