"""A search through every library below a folder, several at once, as if all were one library.

Scores of different libraries cannot be compared: a word that is rare in one may be common in the next. So each library
is first asked how many of its units hold each word; the sums are the statistics of them all, by which then each scores
its own entries. What comes out is the order that one library with all the entries would give.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from infinimem.errors import InfinimemError
from infinimem.fleet.below import libraries_below
from infinimem.fleet.crew import MOST, Crew, cores
from infinimem.fleet.glance import glance_of, is_small, keep_glance, known_glance, read_whole, visible_files
from infinimem.library import MOST_HITS, Library
from infinimem.model import Filter, Hit, Unit
from infinimem.search.rank import Statistics, Weights, idf, read_question, score
from infinimem.search.records import allows, asked_interval, is_coming, looks_back, moment_of
from infinimem.store.layout import EVIDENCE

LIMIT = 60.0
"""Seconds that one library may take: a first index of a large one needs some."""
TOGETHER = 40
"""Libraries that a process is handed at once: what it takes to hand them over is some tenth of what one takes."""
T = TypeVar("T")
DIED = "the process that searched it died, three times; search it alone to see why"
LATE = "it took longer than {limit:g} s and was left out; search it alone to see why"


@dataclass(frozen=True, slots=True)
class Found:
    """A hit in one of many libraries; scores compare across all of them.

    `facing` are entries of that library which cannot be true together with it.
    """

    library: str
    hit: Hit
    facing: tuple[Unit, ...] = ()


@dataclass(frozen=True, slots=True)
class Trouble:
    """A library, or a folder, that was not searched, and why."""

    path: str
    why: str


@dataclass(frozen=True, slots=True)
class Across:
    """What a search through many libraries found: `searched` ones, of which `holding` held any of the words."""

    hits: tuple[Found, ...]
    searched: int
    holding: int
    troubles: tuple[Trouble, ...]


class Ask(NamedTuple):
    """A library and what is asked of it; `statistics` are those of all, once they are known.

    `by_model` says that a model will read what is found, so that only what it may see counts; `share` is how many of
    the best hits are this library's, `room` the tokens that a model has for it. `hits` are those to be marked.
    """

    path: str
    query: str
    k: int
    filter: Filter
    audience: str
    statistics: Statistics | None = None
    by_model: bool = False
    share: int = 0
    room: int = 0
    hits: tuple[Hit, ...] = ()


class Marked(NamedTuple):
    """A library's hits in the order in which it shows them, with their marks, each with what contradicts it."""

    path: str
    found: tuple[Found, ...]


class Counted(NamedTuple):
    """A library's own statistics, and the language of its words."""

    path: str
    language: str
    statistics: Statistics
    is_restricted: bool = False
    """Whether a model may see less of it than whoever asks."""


class Workers(Protocol):
    """Whoever does the work: processes of this machine, or of many."""

    def work_through(
        self, task: Callable[[Any], Any], pieces: Iterable[Sequence[Any]], lost: Callable[[Any, bool], Any]
    ) -> Iterator[Any]:
        """Have `task` done to every item of every piece; one that cannot be done is `lost`, perhaps for being late."""
        ...


def search_below(
    root: Path,
    query: str,
    k: int = 10,
    *,
    filter: Filter = Filter(),
    audience: str = "",
    processes: int = 0,
    limit: float = LIMIT,
    progress: Callable[[int], None] = lambda done: None,
) -> Across:
    """The entries most like a query in all libraries below a folder, best first, each with its library's path.

    A library that cannot be searched is among the troubles and stops no other. What the setting `access` of a library
    keeps from `audience` neither is found nor counts. Raises `BadInput` for a date that is none.
    """
    with Crew(processes or min(cores(), MOST), limit) as crew:
        return search_by(crew, root, Ask("", query, min(k, MOST_HITS), filter, audience), limit, progress)


def search_by(
    workers: Workers, root: Path, ask: Ask, limit: float, progress: Callable[[int], None] = lambda done: None
) -> Across:
    """The same, the libraries searched by whoever does the work; `ask` names none yet."""
    check_dates(ask.filter)
    ranked = rank_below(workers, root, ask, limit, progress)
    by_library: dict[str, list[Hit]] = {}
    for one in ranked.hits:
        by_library.setdefault(one.library, []).append(one.hit)
    asks = (ask._replace(path=path, hits=tuple(hits)) for path, hits in by_library.items())
    marked: dict[str, Iterator[Found]] = {}
    troubles = list(ranked.troubles)
    for one in workers.work_through(mark_one, pieces_of(asks), lost_after(limit)):
        if isinstance(one, Trouble):
            troubles.append(one)
        else:
            marked[one.path] = iter(one.found)
    hits = [next(marked.get(one.library, iter(())), one) for one in ranked.hits]
    # stable: whatever a library shows last, because it has expired, comes last of all
    hits.sort(key=lambda one: is_left_over(one.hit.unit.path, one.hit.unit.retired))
    return Across(tuple(hits), ranked.searched, len(ranked.holding), in_order_of_path(troubles))


def is_left_over(path: str, retired: str) -> bool:
    """Whether something is shown still though it has expired."""
    return retired == "expired" and not path.startswith(f"{EVIDENCE}/")


def check_dates(filter: Filter) -> None:
    """Refuse a filter with a date that is none."""
    for date in (filter.since, filter.until, filter.as_of, filter.known_at):
        if date:
            asked_interval(date)


@dataclass(frozen=True, slots=True)
class Ranked:
    """The best hits of all libraries, the statistics of all by language, and what each library told."""

    hits: tuple[Found, ...]
    together: dict[str, Statistics]
    holding: dict[str, Counted]
    searched: int
    troubles: tuple[Trouble, ...]
    is_restricted: bool = False
    """Whether a model may see less of any library than whoever asks."""

    def statistics(self, path: str) -> Statistics:
        """Those of all libraries in the language of one that holds any of the words."""
        return self.together[self.holding[path].language]


def rank_below(
    workers: Workers, root: Path, ask: Ask, limit: float, progress: Callable[[int], None] = lambda done: None
) -> Ranked:
    """Have what is asked looked for in every library below a folder; `ask` names none yet."""
    troubles: list[Trouble] = []
    paths = libraries_below(root, lambda folder, why: troubles.append(Trouble(str(folder), why)))
    asks = (ask._replace(path=str(path)) for path in paths)
    counted: list[Counted] = []
    for number, one in enumerate(workers.work_through(count_one, pieces_of(asks), lost_after(limit)), 1):
        progress(number)
        if isinstance(one, Trouble):
            troubles.append(one)
        else:
            counted.append(one)
    together = sums(counted)
    holding = sorted(
        ((ceiling(one, together[one.language]), one) for one in counted if any(one.statistics.holding.values())),
        key=lambda pair: (-pair[0], pair[1].path),
    )
    best = Best(ask.k)
    worth = best.worth_asking(
        (most, ask._replace(path=one.path, statistics=together[one.language])) for most, one in holding
    )
    for hits in workers.work_through(search_one, pieces_of(worth), lost_after(limit)):
        if isinstance(hits, Trouble):
            troubles.append(hits)
        else:
            best.take(hits)
    restricted = any(one.is_restricted for one in counted)
    told = {one.path: one for _, one in holding}
    return Ranked(best.hits(), together, told, len(counted), tuple(troubles), restricted)


def in_order_of_path(troubles: Iterable[Trouble]) -> tuple[Trouble, ...]:
    """Troubles as they are listed."""
    return tuple(sorted(troubles, key=lambda one: one.path))


def lost_after(limit: float) -> Callable[[Ask, bool], Trouble]:
    """What to tell of a library that took its process with it, or more time than it may."""
    return lambda ask, is_late: Trouble(ask.path, LATE.format(limit=limit) if is_late else DIED)


def pieces_of(asks: Iterable[Ask]) -> Iterator[list[Ask]]:
    """Libraries in portions: small ones at first, so that no process waits for its first."""
    asks = iter(asks)
    size = 4
    while piece := list(islice(asks, size)):
        yield piece
        size = min(TOGETHER, size * 2)


class Best:
    """The best hits so far."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.found: list[Found] = []

    def take(self, more: Sequence[Found]) -> None:
        """Keep the best of what there was and of more."""
        self.found = heapq.nsmallest(self.k, [*self.found, *more], key=in_order)

    def worth_asking(self, asks: Iterable[tuple[float, Ask]]) -> Iterator[Ask]:
        """Those, from the most promising on, that may still have a hit better than the worst of the best."""
        for most, ask in asks:
            if len(self.found) == self.k and most < self.found[-1].hit.score:
                return
            yield ask

    def hits(self) -> tuple[Found, ...]:
        """Best first."""
        return tuple(self.found)


def in_order(found: Found) -> tuple[float, str, str, int]:
    """Best first, then by place."""
    return -found.hit.score, found.library, found.hit.unit.path, found.hit.line


def sums(counted: Iterable[Counted]) -> dict[str, Statistics]:
    """The statistics of all libraries together, by language: a word of another language is another word."""
    together: dict[str, Statistics] = {}
    for one in counted:
        own = one.statistics
        sum = together.get(one.language, Statistics(0, 0.0, {}))
        units = sum.units + own.units
        terms = sum.units * sum.mean_length + own.units * own.mean_length
        holding = {term: number + sum.holding.get(term, 0) for term, number in own.holding.items()}
        together[one.language] = Statistics(units, terms / max(1, units), holding)
    return together


def ceiling(one: Counted, together: Statistics) -> float:
    """A score that no entry of a library can exceed: of each word that it holds, as much as any entry could have."""
    weights = Weights()
    most = (weights.k1 + 1) * (1 + weights.speaker) * (1 + weights.when)
    held = (term for term, number in one.statistics.holding.items() if number)
    return most * sum(idf(together.units, together.holding[term]) for term in held)


def told(work: Callable[[Ask], T]) -> Callable[[Ask], T | Trouble]:
    """The same, with whatever happens to one library told, never raised."""

    @wraps(work)
    def tell(ask: Ask) -> T | Trouble:
        try:
            return work(ask)
        except (InfinimemError, OSError) as error:
            return Trouble(ask.path, str(error))
        except Exception as error:  # one library's trouble, of whatever kind, is not the others'
            return Trouble(ask.path, f"unexpected {type(error).__name__}: {error}")

    return tell


@told
def count_one(ask: Ask) -> Counted:
    """How many units a library has, how long they are, and how many hold each word of the query."""
    library, place = opened(ask)
    language = library.settings.text("language")
    restricted = place != library.place()
    terms = read_question(ask.query, language).terms
    listing = visible_files(place)
    if looks_back(ask.filter) or not is_small(listing):
        index = library.index_at(ask.filter, place)
        return Counted(ask.path, language, index.gather(ask.query, 1, ask.filter).statistics, restricted)
    glance = known_glance(place, language, listing)
    if glance is None:
        glance = glance_of(read_whole(place, language))
        keep_glance(place, language, listing, glance)
    return Counted(ask.path, language, glance.statistics(terms), restricted)


@told
def search_one(ask: Ask) -> list[Found]:
    """The best hits of a library by the statistics of all."""
    library, place = opened(ask)
    filter = own_filter(library, place, ask.filter)
    if looks_back(ask.filter) or not is_small(visible_files(place)):
        index = library.index_at(ask.filter, place)
        index.common = ask.statistics
        return [Found(ask.path, hit) for hit in index.search(ask.query, ask.k, filter)]
    assert ask.statistics is not None
    language = library.settings.text("language")
    records = read_whole(place, language)
    scores = score(read_question(ask.query, language), [record.candidate for record in records], ask.statistics)
    hits = [
        Found(ask.path, Hit(record.unit, value))
        for record, value in zip(records, scores, strict=True)
        if value > 0 and allows(filter, record.unit)
    ]
    return heapq.nsmallest(ask.k, hits, key=in_order)


@told
def mark_one(ask: Ask) -> Marked:
    """The hits of a library as its own search shows them: marked, and what holds before what is to come."""
    from infinimem.readers.links import disputes
    from infinimem.readers.memory import marked_hits, open_memory

    library, place = opened(ask)
    language = library.settings.text("language")
    rules = library.settings.retention
    if not rules and is_plain(ask, place, language, moment_of(library.clock())):
        return Marked(ask.path, tuple(Found(ask.path, hit) for hit in ask.hits))
    filter = own_filter(library, place, ask.filter)
    memory = open_memory(
        place, library.index_at(filter, place), filter, language, library.clock, library.settings.retention
    )
    hits = marked_hits(memory, ask.hits)
    facing: dict[tuple[str, int], list[Unit]] = {}
    for unit, other in disputes(memory, [hit.unit for hit in hits]):
        facing.setdefault((unit.path, unit.line), []).append(other)
    return Marked(
        ask.path, tuple(Found(ask.path, hit, tuple(facing.get((hit.unit.path, hit.line), ()))) for hit in hits)
    )


def is_plain(ask: Ask, place: Path, language: str, moment: int) -> bool:
    """Whether nothing in a library can mark its hits, as a look at its files tells without opening its index."""
    if looks_back(ask.filter) or not is_small(visible_files(place)):
        return False
    if any(hit.unit.get("expires") or is_coming(hit.time, moment) for hit in ask.hits):
        return False
    units = [record.unit for record in read_whole(place, language)]
    return not any(unit.get("supersedes") or "contradicts" in unit.get("links") for unit in units)


def own_filter(library: Library, place: Path, filter: Filter) -> Filter:
    """A filter with the id that the topic of this name has in a library, if it has one."""
    if not filter.topic:
        return filter
    from infinimem.reading import resolve_topic

    topic = resolve_topic(place, filter.topic, lambda name: library.index_at(Filter(), place).named_before(name))
    return replace(filter, topic=topic or filter.topic)


def opened(ask: Ask) -> tuple[Library, Path]:
    """The library as its audience may see it, and the folder in which whoever asks reads."""
    library = Library.open(ask.path, audience=ask.audience, keep_index=False)
    return library, library.place_for_model() if ask.by_model else library.place()
