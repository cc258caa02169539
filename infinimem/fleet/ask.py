"""A question asked of every library below a folder: evidence as from one library, each piece with its library's name.

The best hits of all tell which libraries have an answer. Only those are asked as `ask` asks one: for what took the
place of what was found, for the other side of what contradicts itself and, for a model, for what stands around it.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from infinimem.ask import Answer, Evidence, ask, evidence_of, successors
from infinimem.config import Settings, load_settings
from infinimem.errors import BadInput, ModelFailed
from infinimem.fleet.crew import MOST, Crew, cores
from infinimem.fleet.search import (
    LIMIT,
    Ask,
    Ranked,
    Trouble,
    Workers,
    check_dates,
    in_order_of_path,
    is_left_over,
    lost_after,
    opened,
    pieces_of,
    rank_below,
    told,
)
from infinimem.library import MOST_HITS, utc_now
from infinimem.model import Filter, Hit, Usage
from infinimem.readers.evidence import Switches, gather
from infinimem.readers.links import with_both_sides
from infinimem.readers.memory import led_to_now, open_memory
from infinimem.readers.questions import kind_of
from infinimem.text.words import content_words, is_date_term, query_words

if TYPE_CHECKING:
    from infinimem.llm.meter import Metered
    from infinimem.llm.port import Model

NEAREST = 3
"""Entries that are shown beside *not in memory*."""
ALONE = Switches(recent=False, complete=False)
"""What was written last in each of many libraries, and complete lists of one, say nothing of all."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What many libraries say to a question; `folders` are those that evidence is from, by the name in `library`.

    Of `searched` libraries `holding` held any of the words; those in `troubles` were not asked.
    """

    answer: Answer
    folders: Mapping[str, Path]
    searched: int
    holding: int
    troubles: tuple[Trouble, ...]


class Told(NamedTuple):
    """A library's evidence: what its search finds, and that with what stands around it, for a model."""

    path: str
    plain: tuple[Evidence, ...]
    gathered: tuple[Evidence, ...]


def ask_below(
    root: Path,
    question: str,
    *,
    reader: str = "auto",
    k: int = 0,
    filter: Filter = Filter(),
    audience: str = "",
    processes: int = 0,
    limit: float = LIMIT,
    hear: Callable[[str], None] | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> Answered:
    """What all libraries below a folder say to a question, each piece of evidence with its library's name.

    `reader` is `bm25`, or `auto`: where a model is configured it writes the answer from the evidence. Which model, and
    `k`, say the user's settings and the environment, not those of any library. Each library's `access` rules hold, for
    `audience` and for a model. One that cannot be asked is among the troubles and stops no other. Raises `BadInput`; a
    model that fails is no error: `.answer.failed` says why. No library notes that it was asked.
    """
    with Crew(processes or min(cores(), MOST), limit) as crew:
        return ask_by(
            crew, root, question, reader=reader, k=k, filter=filter, audience=audience, limit=limit, hear=hear,
            progress=progress,
        )  # fmt: skip


def ask_by(
    workers: Workers,
    root: Path,
    question: str,
    *,
    reader: str = "auto",
    k: int = 0,
    filter: Filter = Filter(),
    audience: str = "",
    limit: float = LIMIT,
    hear: Callable[[str], None] | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> Answered:
    """The same, the libraries asked by whoever does the work."""
    started = time.monotonic()
    check_dates(filter)
    settings = load_settings()
    model = model_for(reader, settings)
    k = min(k or settings.count("ask.k"), MOST_HITS)
    asked = Ask("", question, k, filter, audience, by_model=model is not None)
    ranked = rank_below(workers, root, asked, limit, progress)
    troubles = list(ranked.troubles)
    found: list[Told] = []
    if not is_missing(question, ranked):
        asks = asks_for(asked, ranked, settings.count("ask.tokens"))
        for one in workers.work_through(evidence_one, pieces_of(asks), lost_after(limit)):
            if isinstance(one, Trouble):
                troubles.append(one)
            else:
                found.append(one)
    folders = {os.path.relpath(one.path, root): Path(one.path) for one in found}
    order = list(dict.fromkeys(hit.library for hit in ranked.hits))
    found.sort(key=lambda one: order.index(one.path))
    plain = best_of(k, (named(one.plain, root, one.path) for one in found))
    gathered = [piece for one in found for piece in named(one.gathered, root, one.path)]
    if kind_of(question).counts:
        gathered.sort(key=lambda piece: piece.time or "9")
    answer = Answer(
        "",
        bool(plain),
        plain,
        citations=tuple(piece.place for piece in plain),
        stop="evidence" if plain else "no content word of the question occurs",
    )
    if model is not None and plain:
        answer = written(answer, question, gathered, model, hear)
    withheld = 0
    if ranked.is_restricted:
        withheld, missed = withheld_below(workers, root, asked._replace(by_model=False), limit)
        known = {one.path for one in troubles}
        troubles += [one for one in missed if one.path not in known]
    usage = replace(answer.usage, seconds=time.monotonic() - started)
    answer = replace(answer, usage=usage, reader="bm25" if model is None else "gathered", withheld=withheld)
    return Answered(answer, folders, ranked.searched, len(ranked.holding), in_order_of_path(troubles))


def model_for(reader: str, settings: Settings) -> Metered | None:
    """The model that writes the answer; None where none is to. Raises `BadInput`."""
    if reader not in ("auto", "bm25"):
        raise BadInput(f"many libraries are read by auto or bm25, not by {reader}; ask one of them with -L DIR")
    if reader == "bm25" or settings.text("ask.reader") == "bm25":
        return None
    from infinimem.llm.connect import connect

    return connect(settings, None, "ask", utc_now)


def is_missing(question: str, ranked: Ranked) -> bool:
    """Whether none of the words that a question asks about occurs in anything visible, in any library."""
    for language, statistics in ranked.together.items():
        asked = content_words(question, language) or query_words(question, language)
        sought = [term for term in asked if not is_date_term(term)] or asked
        if any(statistics.holding.get(term) for term in sought):
            return False
    return True


def withheld_below(workers: Workers, root: Path, asked: Ask, limit: float) -> tuple[int, tuple[Trouble, ...]]:
    """How many of the best hits that whoever asks may see are kept from the model; and who could not be asked."""
    ranked = rank_below(workers, root, asked, limit)
    if is_missing(asked.query, ranked):
        return 0, ranked.troubles
    hits: dict[str, list[Hit]] = {}
    for found in ranked.hits:
        hits.setdefault(found.library, []).append(found.hit)
    asks = (asked._replace(path=path, hits=tuple(here)) for path, here in hits.items())
    number = 0
    troubles = list(ranked.troubles)
    for one in workers.work_through(withheld_one, pieces_of(asks), lost_after(limit)):
        if isinstance(one, Trouble):
            troubles.append(one)
        else:
            number += one
    return number, tuple(troubles)


@told
def withheld_one(asked: Ask) -> int:
    """How many of a library's hits are kept from the model."""
    from infinimem.access.view import rules_in

    library, place = opened(asked)
    seen = library.place_for_model()
    if seen == place:
        return 0
    rules, _ = rules_in(seen, library.settings.access("model"))
    return sum(not rules.hidden.isdisjoint(hit.unit.seqs) for hit in asked.hits)


def asks_for(asked: Ask, ranked: Ranked, room: int) -> Iterator[Ask]:
    """What the libraries of the best hits are asked: each for its share of them, with its share of the room."""
    for path, share in Counter(hit.library for hit in ranked.hits).items():
        tokens = room * share // len(ranked.hits)
        yield asked._replace(path=path, statistics=ranked.statistics(path), share=share, room=tokens)


@told
def evidence_one(asked: Ask) -> Told:
    """The evidence of one library, by the statistics of all."""
    library, place = opened(asked)
    index = library.index_at(asked.filter, place)
    index.common = asked.statistics
    memory = open_memory(
        place, index, asked.filter, library.settings.text("language"), library.clock, library.settings.retention
    )
    answer = with_both_sides(
        memory, ask(index, asked.query, asked.k, asked.filter, lambda hits: led_to_now(memory, hits))
    )
    gathered: tuple[Evidence, ...] = ()
    if asked.by_model:
        hits = index.search(asked.query, asked.share, asked.filter)
        hits = [*successors(index, asked.query, hits, asked.filter), *hits]
        units = [hit.unit for hit in hits]
        gathered = gather(
            memory, asked.query, units, sure=True, k=len(units), room=asked.room, switches=ALONE
        ).pieces or tuple(map(evidence_of, hits))
    if place != library.place():
        from infinimem.access.sight import under_real_names
        from infinimem.access.view import names_in

        answer = under_real_names(replace(answer, nearest=gathered), names_in(place))
        gathered = answer.nearest
    return Told(asked.path, answer.evidence, gathered)


def named(pieces: Iterable[Evidence], root: Path, path: str) -> list[Evidence]:
    """Pieces with the name of their library."""
    name = os.path.relpath(path, root)
    return [replace(piece, library=name) for piece in pieces]


def best_of(k: int, several: Iterable[Sequence[Evidence]]) -> tuple[Evidence, ...]:
    """The best pieces of several libraries, each followed by what it stands beside for: the other side of it."""
    groups: list[list[Evidence]] = []
    for pieces in several:
        for has_score, run in groupby(pieces, key=lambda piece: piece.score > 0):
            if has_score:
                groups += [[piece] for piece in run]
            elif groups:
                groups[-1] += run
    groups.sort(key=lambda group: (is_left_over(group[0].path, group[0].retired), -group[0].score))
    return tuple(piece for group in groups[:k] for piece in group)


def written(
    plain: Answer, question: str, pieces: Sequence[Evidence], model: Model, hear: Callable[[str], None] | None
) -> Answer:
    """The answer as the model writes it from the evidence; where it fails, the evidence as BM25 orders it."""
    from infinimem.readers.answer import write_answer

    try:
        said = write_answer(question, pieces, model, hear=hear)
    except ModelFailed as error:
        return replace(plain, failed=str(error), fallback=True, usage=Usage())
    return Answer(
        said.text,
        said.found,
        tuple(pieces),
        said.citations,
        stop=plain.stop,
        usage=said.usage,
        why=said.why,
        nearest=() if said.found else plain.evidence[:NEAREST],
        dropped=said.dropped,
        removed=said.removed,
    )
