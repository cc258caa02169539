"""What a command may spend on a model, and what it has spent."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from infinimem.errors import BudgetSpent, InfinimemError, ModelFailed
from infinimem.llm.port import Model, Reply, Request
from infinimem.model import Usage
from infinimem.text.tokens import estimate

LONGEST = 300
"""Characters of what is told of an error of a model of the user's own."""
PATIENCE = 2
"""Failures in a row after which a model is not asked again by the same command."""


class Metered:
    """A model whose calls are counted, noted, and bounded in tokens and time.

    `budget` is tokens for the command (0: no limit), `seconds` its time; `note` takes a row for the usage log.
    """

    def __init__(
        self,
        model: Model,
        *,
        budget: int = 0,
        seconds: float = 600.0,
        note: Callable[[dict[str, Any]], None] = lambda row: None,
    ) -> None:
        self.model = model
        self.budget = budget
        self.seconds = seconds
        self.note = note
        self.usage = Usage()
        self.until = time.monotonic() + seconds
        self.failures = 0

    def complete(self, request: Request) -> Reply:
        """The model's reply. Raises `BudgetSpent` before a call that is not to be, `ModelFailed` whatever it raises."""
        if self.failures >= PATIENCE:
            raise ModelFailed(f"the model failed {PATIENCE} times in a row and was not asked again")
        if time.monotonic() >= self.until:
            raise BudgetSpent(f"the command's {self.seconds:g} s for the model are over (model.deadline)")
        asked = tokens_asked(request)
        spent = self.usage.tokens_in + self.usage.tokens_out
        if self.budget and spent + asked > self.budget:
            raise BudgetSpent(f"{spent:,} of {self.budget:,} tokens are spent, this call may take {asked:,}")
        started = time.monotonic()
        row: dict[str, Any] = {"step": request.step, "model": "", "tokens_in": 0, "tokens_out": 0}
        outcome = "broken off"
        listener = Listener(request.hear)
        try:
            reply = self.model.complete(request if request.hear is None else replace(request, hear=listener))
            if not isinstance(reply, Reply):
                raise TypeError(f"it gave a {type(reply).__name__}, not a Reply")
            outcome = "cut" if reply.cut else "ok"
            self.failures = 0
            used = reply.usage
            self.usage += used
            row.update(model=reply.model, tokens_in=used.tokens_in, tokens_out=used.tokens_out)
            return reply
        except ModelFailed as error:
            self.failures += 1
            outcome = f"failed: {error}"
            raise
        except (InfinimemError, AssertionError):  # an assertion is of whoever tests with a model
            raise
        except Exception as error:  # a model of the user's own fails in words of its own
            if listener.failed is error:
                raise
            self.failures += 1
            said = " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST].removesuffix(": ")
            outcome = f"failed: {said}"
            raise ModelFailed(f"the model raised {said}") from error
        finally:
            row.update(seconds=round(time.monotonic() - started, 3), outcome=outcome)
            self.note(row)


class Listener:
    """Passes on what is heard, and remembers what went wrong there: that is no failure of the model."""

    def __init__(self, hear: Callable[[str], None] | None) -> None:
        self.hear = hear
        self.failed: Exception | None = None

    def __call__(self, piece: str) -> None:
        """A piece of a reply, as it comes."""
        assert self.hear is not None
        try:
            self.hear(piece)
        except Exception as error:
            self.failed = error
            raise


def tokens_asked(request: Request) -> int:
    """About how many tokens a call may take: all that is sent, and the longest reply."""
    shapes: list[Any] = [dict(tool.parameters) for tool in request.tools]
    if request.schema is not None:
        shapes.append(request.schema)
    texts = [message.content for message in request.messages] + [tool.about for tool in request.tools]
    calls = [call.arguments for message in request.messages for call in message.calls]
    described = [json.dumps(shape, ensure_ascii=False) for shape in shapes]
    return sum(map(estimate, texts + calls + described)) + request.max_tokens
