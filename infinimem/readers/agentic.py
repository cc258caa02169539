"""The agentic reader (Infini Memory-A): a model looks for evidence with tools, round by round.

The messages are the state: nothing is carried beside them but what was shown. Every round's observations are
budgeted and never repeat an entry, so that an ask costs about the same whatever the size of the library.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from infinimem.ask import Round
from infinimem.errors import ModelFailed
from infinimem.llm.port import Call, Message, Model, Reply, Request
from infinimem.llm.prompts import prompt_for
from infinimem.llm.reply import read_json
from infinimem.model import Unit, Usage
from infinimem.readers.arguments import is_nothing, places_in
from infinimem.readers.lines import fenced, flat
from infinimem.readers.memory import Memory, catalog
from infinimem.readers.tools import (
    FEWEST,
    RESULT,
    TOOLS,
    Observation,
    Shown,
    row_lines,
    rows_like,
    run_tool,
)
from infinimem.text.tokens import estimate

CATALOGUE = 1_500
"""Tokens of catalogue that a model is shown at first; of a larger one, a shortlist."""
SHORTLIST = 0.6
"""Share of that for a shortlist: documents far from the question are noise."""
REPLY = 400
"""Tokens of a round's reply."""
MOST_CALLS = 6
"""Calls of one round that are carried out."""
MARGIN = 0.95
"""Share of the context that is used: token counts are estimates."""
SEQ = re.compile(r"#(\d{1,18})\b")


@dataclass(frozen=True, slots=True)
class Limits:
    """How far a search may go: rounds, tokens of evidence shown, tokens that the model reads at once."""

    rounds: int = 7  # Infini Memory 4.1
    tokens: int = 3_000
    context: int = 8_192
    catalogue: int = CATALOGUE


@dataclass(frozen=True, slots=True)
class Looked:
    """What a search found: the units that were shown in order, those that the model pointed to, and a complete list.

    `stop` says why it ended, `finished` whether the model said so itself, `failed` why the model could not go on.
    """

    rounds: tuple[Round, ...] = ()
    stop: str = ""
    finished: bool = False
    failed: str = ""
    shown: tuple[Unit, ...] = ()
    pointed: tuple[Unit, ...] = ()
    listed: tuple[Unit, ...] = ()
    usage: Usage = field(default_factory=Usage)


def look(
    memory: Memory,
    question: str,
    model: Model,
    limits: Limits = Limits(),
    watch: Callable[[Round], None] = lambda round: None,
) -> Looked:
    """Let a model look for what answers a question; it stops by itself or is stopped, and a failure ends it early.

    `watch` is told each round when it is over.
    """
    shown = Shown()
    messages = first_messages(memory, question, shown, min(limits.catalogue, limits.context // 5))
    fixed = sum(estimate(tool.about) + estimate(json.dumps(tool.parameters)) for tool in TOOLS)
    rounds: list[Round] = []
    pointed: tuple[Unit, ...] = ()
    usage = Usage()
    stop = f"round limit ({limits.rounds})"
    finished, grace = False, True
    failed = ""
    for number in range(1, limits.rounds + 1):
        left = int(limits.context * MARGIN) - fixed - REPLY - sum(map(cost_of, messages))
        if left < FEWEST:
            stop = f"the model's context is full (model.context: {limits.context:,})"
            break
        started = time.monotonic()
        try:
            reply = model.complete(Request("search", messages, tools=TOOLS, max_tokens=REPLY))
        except ModelFailed as error:
            failed = str(error)
            stop = f"the model failed in round {number}: {failed}"
            break
        usage += reply.usage
        calls = sound_calls(reply, number)
        if not calls:
            pointed = pointed_in(shown, reply.text, seqs_in_text(reply.text))
            stop, finished = "the model stopped", True
            rounds.append(Round((), 0, spent(reply), time.monotonic() - started))
            watch(rounds[-1])
            break
        observations, pointing = carry_out(memory, calls, shown, number, min(left, limits.tokens - shown.tokens))
        lines = tuple(f"{called(call)}: {told.brief}" for call, told in zip(calls, observations, strict=True))
        new = sum(len(told.units) for told in observations)
        rounds.append(Round(lines, new, spent(reply), time.monotonic() - started))
        watch(rounds[-1])
        if pointing is not None:
            pointed, finished = pointing, True
            stop = "the model found enough" if pointed else "the model found no answer"
            break
        if limits.tokens - shown.tokens < FEWEST:
            stop = f"evidence budget ({limits.tokens:,} tokens)"
            break
        # what a first such round told the model is what to do instead: it may try that, once
        if not any(told.is_news for told in observations):
            if not grace:
                stop = "a round brought nothing new"
                break
            grace = False
        messages = (*messages, *exchange(reply, calls, observations, limits.rounds - number))
    return Looked(tuple(rounds), stop, finished, failed, tuple(shown.units.values()), pointed, shown.listed, usage)


def first_messages(memory: Memory, question: str, shown: Shown, room: int) -> tuple[Message, ...]:
    """The rules, the catalogue or its shortlist, and last the question: a server can cache what comes before it."""
    documents, scope, topics = documents_for(memory, question, room)
    shown.topics.update(topics)
    values = {"scope": scope, "documents": documents, "question": flat(question, 4_000)}
    system, user = prompt_for("search", values)
    return Message("system", system), Message("user", user)


def documents_for(memory: Memory, question: str, room: int) -> tuple[str, str, tuple[str, ...]]:
    """The catalogue, whole if a room of tokens holds it, else those documents nearest to the question.

    Gives the fenced lines, a remark on what they are, and the ids.
    """
    rows = catalog(memory)
    lines, fitted = row_lines(rows, room)
    if fitted == len(rows):
        return fenced(lines or ["(none yet)"]), "", tuple(row.topic for row in rows)
    near = rows_like(memory, question, rows)
    lines, fitted = row_lines(near, int(room * SHORTLIST))
    scope = f" ({fitted} of {len(rows):,}, those nearest to the question; `catalog` shows the others)"
    return fenced(lines or ["(none is near)"]), scope, tuple(row.topic for row in near[:fitted])


def carry_out(
    memory: Memory, calls: Iterable[Call], shown: Shown, round: int, room: int
) -> tuple[list[Observation], tuple[Unit, ...] | None]:
    """What the calls of a round bring, and the units that `finish` pointed to; None if it was not called."""
    observations: list[Observation] = []
    pointed: tuple[Unit, ...] | None = None
    for at, call in enumerate(calls):
        if call.name == "finish":
            pointed = pointed_by(shown, call)
            told = Observation("finished.", brief=f"{len(pointed)} pointed to")
        elif at >= MOST_CALLS:
            told = Observation(
                f"only {MOST_CALLS} calls a round are carried out; ask again.", fault=True, brief="too many"
            )
        else:
            told = run_tool(memory, call, shown, min(RESULT, room), round)
            shown.take(told)
            room -= estimate(told.text)
        observations.append(told)
    return observations, pointed


def pointed_by(shown: Shown, call: Call) -> tuple[Unit, ...]:
    """The shown units that a call of `finish` names."""
    value = read_json(call.arguments)
    places = value.get("places") if isinstance(value, Mapping) else value
    if is_nothing(places):
        return ()
    text = json.dumps(places, ensure_ascii=False)
    return pointed_in(shown, places, seqs_in_text(text))


def pointed_in(shown: Shown, places: object, seqs: Iterable[int] = ()) -> tuple[Unit, ...]:
    """The shown units that places and seqs name, in that order."""
    found: dict[int, Unit] = {}
    units = list(shown.units.values())
    for topic, first, last in places_in(places):
        for unit in units:
            if unit.topic == topic and unit.line <= last and first <= unit.stop:
                found.setdefault(id(unit), unit)
    for seq in seqs:
        for unit in units:
            if seq in unit.seqs:
                found.setdefault(id(unit), unit)
    return tuple(found.values())


def seqs_in_text(text: str) -> list[int]:
    """The numbers behind a `#`."""
    return [int(match) for match in SEQ.findall(text)]


def exchange(reply: Reply, calls: list[Call], observations: list[Observation], left: int) -> list[Message]:
    """A round as messages: what the model called, and what came of each call."""
    found = [Message("assistant", flat(reply.text, 600), tuple(map(resent, calls)))]
    found += [Message("tool", told.text, call_id=call.id) for call, told in zip(calls, observations, strict=True)]
    if left == 1:
        last = found[-1]
        found[-1] = Message("tool", f"{last.content}\n\nOne round is left: call finish.", call_id=last.call_id)
    return found


def sound_calls(reply: Reply, round: int) -> list[Call]:
    """The calls of a reply, each with an id of its own: servers refuse a conversation where two share one."""
    ids: set[str] = set()
    calls = []
    for at, call in enumerate(reply.calls):
        id = call.id if call.id and call.id not in ids and not call.id.startswith("call-") else f"call-{round}-{at}"
        ids.add(id)
        calls.append(Call(id, call.name.strip(), call.arguments))
    return calls


def resent(call: Call) -> Call:
    """A call as it goes back to the server, which may refuse arguments that are no JSON object."""
    value = read_json(call.arguments)
    arguments = json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping) else "{}"
    return Call(call.id, call.name or "unknown", arguments if len(arguments) < 2_000 else "{}")


def called(call: Call) -> str:
    """A call as a person reads it: `search(query=ferry Kiel, all=true)`."""
    value = read_json(call.arguments)
    if not isinstance(value, Mapping):
        return f"{flat(call.name, 40)}({flat(call.arguments, 60)})"
    parts = [f"{key}={spelt(one)}" for key, one in value.items() if not is_nothing(one)]
    return f"{flat(call.name, 40)}({flat(', '.join(parts), 160)})"


def spelt(value: object) -> str:
    """An argument's value in short."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def cost_of(message: Message) -> int:
    """Tokens of a message, its calls included."""
    return estimate(message.content) + sum(estimate(call.arguments) + 8 for call in message.calls) + 4


def spent(reply: Reply) -> int:
    """Tokens of one call of the model."""
    return reply.usage.tokens_in + reply.usage.tokens_out
