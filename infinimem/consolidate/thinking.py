"""One question to a planning model: the prompt filled, the reply read, one repair round, and what it all costs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from infinimem.consolidate.replies import Reading
from infinimem.errors import ModelFailed
from infinimem.llm.port import Message, Model, Request
from infinimem.llm.prompts import harmless, prompt_for
from infinimem.llm.reply import read_json
from infinimem.model import Entry, Usage
from infinimem.text.lines import cut_at_word
from infinimem.text.signature import render_seqs
from infinimem.text.tokens import estimate

T = TypeVar("T")
LONGEST_ECHO = 4000
"""Characters of a faulty reply that are shown again to the model."""
LONGEST_LINE = 1200
"""Characters of an entry that a planner sees."""
MARGIN = 0.95
"""Share of the context that is used: token counts are estimates."""


@dataclass(slots=True)
class Thinker:
    """A model at work on one flush. `failures` are the steps it could not do, in words, for the report."""

    model: Model
    context: int
    failures: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)

    def ask(
        self,
        step: str,
        values: Mapping[str, str],
        schema: Mapping[str, Any],
        read: Callable[[Any], Reading[T]],
        *,
        reply_tokens: int,
        likely: Callable[[], Any] = dict,
    ) -> T | None:
        """What the reply to a step's prompt says; None when the model failed or twice said nothing usable.

        `likely` is a reply such as may be expected: `Estimating` counts it instead of asking anybody.
        """
        system, user = prompt_for(step, values)
        messages: tuple[Message, ...] = (Message("system", system), Message("user", user))
        best: T | None = None
        complaints: tuple[str, ...] = ()
        for _ in range(2):
            request = Request(step, messages, schema, max_tokens=reply_tokens)
            try:
                if isinstance(self.model, Estimating):
                    reply = self.model.expect(request, json.dumps(likely(), ensure_ascii=False))
                else:
                    reply = self.model.complete(request)
            except ModelFailed as error:
                if best is None:
                    self.failures.append(f"{step}: {error}")
                return best
            self.usage += reply.usage
            reading = read(read_json(reply.text))
            complaints = reading.complaints
            if reading.value is not None:
                best = reading.value
            if best is not None and not complaints:
                return best
            repair = f"That breaks the rules: {'; '.join(complaints)}. Answer again, with the whole JSON object."
            echo = Message("assistant", reply.text[:LONGEST_ECHO] or "(nothing)")
            messages = (*messages[:2], echo, Message("user", repair))
        if best is None:
            self.failures.append(f"{step}: the model gave no usable answer ({'; '.join(complaints)})")
        return best

    def room(self, step: str, reply_tokens: int) -> int:
        """Tokens that a step's input may have."""
        system, user = prompt_for(step, {})
        return int(self.context * MARGIN) - estimate(system) - estimate(user) - reply_tokens


class Estimating:
    """Stands where a model would: takes a likely reply for its own, so that a run's cost is known beforehand."""

    def complete(self, request: Request) -> Any:
        """Nobody is asked."""
        raise ModelFailed("an estimate asks no model")

    def expect(self, request: Request, text: str) -> Any:
        """The likely reply, with what it would cost."""
        from infinimem.llm.port import Reply

        sent = sum(estimate(message.content) for message in request.messages)
        return Reply(text, usage=Usage(1, sent, estimate(text)))


def data(lines: Sequence[str]) -> str:
    """Lines of stored text as they stand between fences: none of them can close one."""
    return "\n".join(map(harmless, lines)) or "(none)"


def entry_line(entry: Entry, longest: int = LONGEST_LINE) -> str:
    """An entry as a planner sees it: `[seq] date · source: text`, on one line; what the user said has no source."""
    about = " · ".join(word for word in (entry.time, "" if entry.source == "user" else entry.source) if word)
    text = cut_at_word(entry.text, longest)
    return f"[{render_seqs(entry.seqs)}] {about}: {text}" if about else f"[{render_seqs(entry.seqs)}]: {text}"


def portions(lines: Sequence[str], room: int, per_line: int) -> list[range]:
    """Consecutive lines in parts that fit a room of tokens, each line's share of the reply counted too."""
    parts: list[range] = []
    start, used = 0, 0
    for at, line in enumerate(lines):
        cost = estimate(line) + 1 + per_line
        if used and used + cost > room:
            parts.append(range(start, at))
            start, used = at, 0
        used += cost
    if start < len(lines):
        parts.append(range(start, len(lines)))
    # the last part is often a remnant: two of equal size cost the same and see more of each other
    if len(parts) > 1 and len(parts[-1]) * 3 < len(parts[-2]):
        first, last = parts[-2].start, parts[-1].stop
        middle = (first + last) // 2
        parts[-2:] = [range(first, middle), range(middle, last)]
    return parts
