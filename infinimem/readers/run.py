"""One ask with a model: look for evidence, gather it, have the answer written; and what to do when the model fails."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from infinimem.ask import Answer, Evidence, Round, ask, evidence_of
from infinimem.errors import ModelFailed
from infinimem.llm.port import Model
from infinimem.model import Unit, Usage
from infinimem.readers.agentic import Limits, Looked, look
from infinimem.readers.answer import write_answer
from infinimem.readers.evidence import FEW, Gathered, Switches, gather
from infinimem.readers.links import Walk
from infinimem.readers.memory import Memory
from infinimem.readers.select import select

READERS = ("agentic", "hybrid", "summary")
NEAREST = 3
"""Entries that are shown beside *not in memory*."""


def answer(
    memory: Memory,
    question: str,
    model: Model,
    *,
    reader: str = "agentic",
    k: int = 8,
    limits: Limits = Limits(),
    switches: Switches = Switches(),
    walk: Walk = Walk(),
    hear: Callable[[str], None] | None = None,
    watch: Callable[[Round], None] = lambda round: None,
) -> Answer:
    """What memory says to a question, by one of the `READERS`. Never raises because of the model.

    A model that fails while it looks leaves the looking to BM25; one that fails to write an answer leaves the
    evidence, and `failed` says why. `hear` is told the answer as it comes, `watch` each round when it is over.
    """
    started = time.monotonic()
    if reader == "agentic":
        looked = look(memory, question, model, limits, watch)
    else:
        looked = select(memory, question, model, limits, k, watch)
    if reader == "summary" and not looked.failed:
        switches = replace(switches, supplement=False, complete=False)
    units = looked.pointed or looked.shown
    gathered = gather(
        memory,
        question,
        units,
        sure=bool(looked.pointed) or (reader != "agentic" and bool(units)),
        listed=looked.listed,
        k=k,
        least=len(units) + math.ceil(FEW * k) if reader == "hybrid" else 0,
        room=limits.tokens,
        switches=switches,
        walk=walk,
    )
    found = Answer("", False, gathered.pieces, rounds=looked.rounds, stop=looked.stop, reader=reader)
    if not gathered.pieces:
        done = replace(found, usage=looked.usage, why="no entry shares a word with the question", failed=looked.failed)
        if looked.failed:
            done = replace(done, fallback=True)
        return timed(done, started)
    return timed(written(memory, question, model, found, looked, gathered, k, hear), started)


def written(
    memory: Memory,
    question: str,
    model: Model,
    found: Answer,
    looked: Looked,
    gathered: Gathered,
    k: int,
    hear: Callable[[str], None] | None,
) -> Answer:
    """The answer as the model writes it from the evidence; without it, the evidence as BM25 orders it."""
    try:
        said = write_answer(
            question, gathered.pieces, model, complete=gathered.complete, total=gathered.total, hear=hear
        )
    except ModelFailed as error:
        plain = ask(memory.index, question, k, memory.filter)
        pieces = plain.evidence or gathered.pieces
        return replace(
            found,
            evidence=pieces,
            found=bool(pieces),
            citations=tuple(piece.place for piece in pieces),
            usage=looked.usage,
            failed=str(error),
            fallback=True,
        )
    return replace(
        found,
        text=said.text,
        found=said.found,
        citations=said.citations,
        usage=looked.usage + said.usage,
        why=said.why,
        nearest=() if said.found else nearest(memory, question, gathered.pieces, looked.pointed),
        dropped=said.dropped,
        removed=said.removed,
        fallback=bool(looked.failed),
    )


def nearest(memory: Memory, question: str, pieces: Sequence[Evidence], pointed: Sequence[Unit]) -> tuple[Evidence, ...]:
    """What comes nearest to a question that memory does not answer: the likeliest entries, else the first shown."""
    hits = (
        []
        if memory.index.missing(question, retired=memory.filter.retired)
        else memory.index.search(question, NEAREST, memory.filter)
    )
    return tuple(map(evidence_of, hits)) or (tuple(pieces[:NEAREST]) if pointed else ())


def timed(answer: Answer, started: float) -> Answer:
    """An answer with the time that the whole took."""
    usage = answer.usage
    seconds = time.monotonic() - started
    return replace(answer, usage=Usage(usage.calls, usage.tokens_in, usage.tokens_out, seconds))
