"""The tools of the agentic reader. Whatever a model calls, the answer is an observation and never an exception.

Observations are what the model reads: a line that says how much there is and how to go on, then entries behind a
fence. What was shown before is named, not sent again.
"""

from __future__ import annotations

import difflib
import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from infinimem.errors import BadPattern, InfinimemError
from infinimem.grep import Match, compile_pattern, grep
from infinimem.llm.port import Call, Tool
from infinimem.model import CURRENT, Filter, Unit, path_of
from infinimem.readers.arguments import (
    PLACE,
    Fault,
    arguments_of,
    canonical,
    number_in,
    places_in,
    seq_in,
    short,
    text_in,
    truth_in,
)
from infinimem.readers.lines import LONGEST_ENTRY, LONGEST_LINE, entry_line, fenced, flat, head_of, lines_of
from infinimem.readers.memory import (
    Memory,
    Place,
    allowed,
    allowed_old,
    catalog,
    cited,
    marked,
    older,
    place_of,
    successor,
    units_of,
)
from infinimem.reading import read_page, resolve_topic
from infinimem.search.index import LONGEST_LIST, CatalogRow
from infinimem.search.records import asked_interval, interval, looks_back
from infinimem.store.read import list_files
from infinimem.text.lines import counted
from infinimem.text.tokens import estimate
from infinimem.text.words import content_words, query_words

RESULT = 700
"""Tokens of one observation."""
BEST_FIRST = 8
"""Entries that one search shows, best first."""
BREADTH = 33
"""Entries that a search ranks; as many as the index gathers candidates for anyway."""
DEPTH = 60
"""Entries that it ranks where those were shown already."""
ROWS = 15
"""Documents that one page of the catalogue shows."""
MOST_MATCHES = 2_000
LONGEST_GREP = 5.0
"""Seconds after which a search by pattern shows what it has."""
SUMMARY = 160
"""Characters of a summary in the catalogue."""
FEWEST = 40
"""Tokens under which nothing worth reading can be shown."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What a call brought. `units` and `topics` are shown in it for the first time.

    `listed` is a complete list of entries, shown in it or not. `fault` says that the call could not be carried
    out, `again` that it was made before. `brief` is the whole in a few words, for people.
    """

    text: str
    units: tuple[Unit, ...] = ()
    topics: tuple[str, ...] = ()
    listed: tuple[Unit, ...] = ()
    fault: bool = False
    again: bool = False
    brief: str = ""

    @property
    def is_news(self) -> bool:
        """Whether it shows anything that was not shown before."""
        return bool(self.units or self.topics)


@dataclass(slots=True)
class Shown:
    """What a model has been shown on one ask: units by place, topics of the catalogue, and what it asked."""

    units: dict[Place, Unit] = field(default_factory=dict)
    topics: set[str] = field(default_factory=set)
    asked: dict[tuple[str, str], int] = field(default_factory=dict)
    listed: tuple[Unit, ...] = ()
    tokens: int = 0

    def take(self, observation: Observation) -> None:
        """Note what an observation shows."""
        self.units.update((place_of(unit), unit) for unit in observation.units)
        self.topics.update(observation.topics)
        self.listed = observation.listed or self.listed
        self.tokens += estimate(observation.text)


def tool(name: str, about: str, needed: Sequence[str], **arguments: Mapping[str, Any]) -> Tool:
    """A tool and its arguments."""
    parameters = {"type": "object", "properties": arguments, "required": list(needed), "additionalProperties": False}
    return Tool(name, about, parameters)


TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
TOOLS = (
    tool(
        "search",
        "Entries that share words with the query, best first. With all=true every entry that holds all its words, "
        "counted and in order of time: for how many, how often, first, last, since when.",
        ["query"],
        query=TEXT,
        all={"type": "boolean"},
        topic=TEXT,
        since={"type": "string", "description": "date, e.g. 2026-05"},
        until={"type": "string", "description": "date"},
        start={"type": "integer", "description": "go on from this number"},
    ),
    tool(
        "grep",
        "Entries with a line that matches a regular expression: names, numbers, codes, exact spellings.",
        ["pattern"],
        pattern=TEXT,
        topic=TEXT,
        start=NUMBER,
    ),
    tool(
        "read",
        "A document, some of its lines, or what stands under one of its headings.",
        ["topic"],
        topic={"type": "string", "description": "id, or topic:line"},
        first=NUMBER,
        last=NUMBER,
        heading=TEXT,
        start={"type": "integer", "description": "character of a long entry"},
    ),
    tool("trace", "What an entry replaced and what replaced it.", ["seq"], seq=NUMBER),
    tool("catalog", "More documents, searched or page by page.", [], query=TEXT, start=NUMBER),
    tool(
        "finish",
        "Stop looking. places: the topic:line of the entries that answer the question, best first; "
        "empty when memory does not hold it.",
        ["places"],
        places={"type": "array", "items": TEXT},
    ),
)
EXAMPLES = {
    "search": '{"query": "ferry Kiel"}',
    "grep": '{"pattern": "KX7-\\\\d+"}',
    "read": '{"topic": "maya-work"}',
    "trace": '{"seq": 41}',
    "catalog": "{}",
    "finish": '{"places": ["maya-work:12"]}',
}


def run_tool(memory: Memory, call: Call, shown: Shown, room: int = RESULT, round: int = 0) -> Observation:
    """What a call brings, in at most about `room` tokens; a call that makes no sense brings the remedy."""
    run = RUNNERS.get(call.name)
    if run is None:
        near = difflib.get_close_matches(call.name.casefold(), EXAMPLES, 1, 0.5)
        meant = f"; did you mean {near[0]}?" if near else ""
        return fault(f"there is no tool {short(call.name)}{meant} The tools are {', '.join(EXAMPLES)}.")
    try:
        arguments = arguments_of(call.arguments, EXAMPLES[call.name])
        key = (call.name, canonical(arguments))
        if key in shown.asked:
            text = (
                f"you asked that already, in round {shown.asked[key]}; its result stands above and does not change. "
                "Now call finish with the places of the entries above that answer the question, or ask something else."
            )
            return Observation(text, again=True, brief="asked already")
        shown.asked[key] = round
        if room < FEWEST:
            return Observation("there is no room for more; call finish.", brief="no room")
        return run(memory, arguments, shown, room)
    except Fault as problem:
        return fault(str(problem))
    except InfinimemError as error:
        return fault(one_line(error))
    except Exception as error:  # the tool runner's edge: no call may end an ask
        return fault(f"{call.name} could not do that ({type(error).__name__}); try another tool")


def fault(message: str) -> Observation:
    """A call that could not be carried out."""
    return Observation(message, fault=True, brief=message)


def one_line(error: BaseException) -> str:
    """An error's own words on one line."""
    return flat(str(error), 300)


# search


def run_search(memory: Memory, arguments: Mapping[str, Any], shown: Shown, room: int) -> Observation:
    """Entries best first, or all of them in order of time."""
    whole = truth_in(arguments, "all")
    query = text_in(arguments, "query", "" if whole else EXAMPLES["search"])
    filter = narrowed(memory, arguments)
    start = max(1, number_in(arguments, "start", 1))
    if whole:
        return all_entries(memory, query, filter, shown, start, room)
    hits, ranks = ranked(memory, query, filter, shown, start, BREADTH)
    deep = len(ranks) < BEST_FIRST and len(hits) == BREADTH
    if deep:
        hits, ranks = ranked(memory, query, filter, shown, start, DEPTH)
    if not hits:
        return Observation(f"no entry shares a word with {short(query)}; try other words.", brief="nothing")
    if start > len(hits):
        raise Fault(f"there are {len(hits)}; start is 1 to {len(hits)}")
    if not ranks:
        return Observation(f"all {len(hits)} are shown above already; try other words.", brief="all shown already")
    lines, fitted = lines_of(memory, [hits[at] for at in ranks], room)
    after = ranks[fitted - 1] + 1
    seen = tuple(hits[at] for at in ranks[:fitted])
    known = [hits[at] for at in range(start - 1, after) if at not in ranks]
    if known:
        lines.append(f"as good, and shown above already: {named(known)}")
    total = f"{len(hits)} or more" if len(hits) >= (DEPTH if deep else BREADTH) else str(len(hits))
    head = f"{len(seen)} of {total}, best first{goes_on(after + 1, len(hits))}:"
    return Observation(f"{head}\n{fenced(lines)}", seen, brief=f"{len(seen)} of {total}")


def ranked(
    memory: Memory, query: str, filter: Filter, shown: Shown, start: int, most: int
) -> tuple[list[Unit], list[int]]:
    """The entries best first, and the ranks from `start` on of the first few that were not shown yet."""
    hits = [hit.unit for hit in memory.index.search(query, most, filter)]
    fresh = (at for at in range(start - 1, len(hits)) if place_of(hits[at]) not in shown.units)
    return hits, list(itertools.islice(fresh, BEST_FIRST))


def all_entries(memory: Memory, query: str, filter: Filter, shown: Shown, start: int, room: int) -> Observation:
    """Every entry that holds the words of the query, with their number, in order of time."""
    terms = content_words(query, memory.language) or query_words(query, memory.language)
    if query and not terms:
        raise Fault(f"{short(query)} has no word to look for; name the thing or the person")
    units = memory.index.entries(terms, filter)
    holding = "match" if units else "hold most of the words (none holds all)"
    if not units and len(terms) > 1:
        units = memory.index.nearly(terms, filter)
    if not units:
        return Observation(f"0 entries match {short(query)}; try fewer or other words.", brief="0 entries")
    if start > len(units):
        raise Fault(f"there are {len(units)}; start is 1 to {len(units)}")
    known = frozenset(shown.units)
    lines, fitted = lines_of(memory, units[start - 1 :], room, LONGEST_LINE // 3, known)
    seen = units[start - 1 : start - 1 + fitted]
    number = f"{len(units):,}" if len(units) < LONGEST_LIST else f"{len(units):,} or more"
    more = goes_on(start + fitted, len(units))
    noun = "entry" if len(units) == 1 else "entries"
    head = f"{number} {noun} {holding}, in order of time; {start}-{start + fitted - 1}{more}:"
    fresh = tuple(unit for unit in seen if place_of(unit) not in known)
    return Observation(f"{head}\n{fenced(lines)}", fresh, listed=tuple(units), brief=f"{number} {noun}, all counted")


def narrowed(memory: Memory, arguments: Mapping[str, Any]) -> Filter:
    """The filter of the ask, narrowed further by a call; never widened."""
    filter = memory.filter
    topic = text_in(arguments, "topic")
    if topic:
        filter = replace(filter, topic=topic_named(memory, topic))
    since, until = date_in(arguments, "since"), date_in(arguments, "until")
    if since and (not filter.since or asked_interval(since)[0] > asked_interval(filter.since)[0]):
        filter = replace(filter, since=since)
    if until and (not filter.until or asked_interval(until)[1] < asked_interval(filter.until)[1]):
        filter = replace(filter, until=until)
    return filter


def date_in(arguments: Mapping[str, Any], name: str) -> str:
    """A date argument. Raises `Fault`."""
    date = text_in(arguments, name)
    if date and interval(date) is None:
        raise Fault(f"{name} is a date such as 2026, 2026-05 or 2026-05-01, not {short(date)}")
    return date


def topic_named(memory: Memory, name: str) -> str:
    """The id of a topic, however it is named. Raises `Fault` with the nearest ones."""
    place = PLACE.fullmatch(name)
    bare = (place[1] if place is not None else name).strip("[]<>\"' ").partition("#")[0]
    found = resolve_topic(memory.root, bare, memory.index.named_before) if bare else None
    if found is None:
        ids = [row.topic for row in catalog(memory) if not any(char.isspace() for char in row.topic)]
        near = difflib.get_close_matches(bare.casefold().replace(" ", "-"), [CURRENT, *ids], 3, 0.4)
        remedy = f"the nearest: {', '.join(near)}" if near else "search without a topic, or call catalog"
        raise Fault(f"there is no document {short(bare)}; {remedy}")
    if memory.filter.topic and found != memory.filter.topic:
        raise Fault(f"this ask is about the document {memory.filter.topic} alone; leave topic out")
    return found


def goes_on(start: int, total: int) -> str:
    """How to see the rest."""
    return f"; go on with start={start}" if start <= total else ""


def named(units: Sequence[Unit]) -> str:
    """Where some units stand."""
    places = ", ".join(f"{flat(unit.topic, 80)}:{unit.line}" for unit in units[:5])
    return f"{places}, …" if len(units) > 5 else places


# grep


def run_grep(memory: Memory, arguments: Mapping[str, Any], shown: Shown, room: int) -> Observation:
    """The entries with a line that matches a pattern, with their number."""
    pattern = text_in(arguments, "pattern", EXAMPLES["grep"])
    topic = text_in(arguments, "topic")
    start = max(1, number_in(arguments, "start", 1))
    try:
        compiled = compile_pattern(pattern, ignore_case=True)
    except BadPattern as error:
        raise Fault(f"{one_line(error)}; put a \\ before a character that is meant itself, or search") from error
    files = list_files(memory.root)
    if topic or memory.filter.topic:
        paths = [path_of(topic_named(memory, topic) if topic else memory.filter.topic)]
    else:
        paths = [path for path in files if looks_back(memory.filter) or not path.startswith("evidence/")]
    units, broken_off = matching(memory, grep(memory.root, paths, compiled, limit=MOST_MATCHES))
    if not units:
        return Observation(f"nothing matches {short(pattern)}; try search with words.", brief="nothing")
    if start > len(units):
        raise Fault(f"there are {len(units)}; start is 1 to {len(units)}")
    known = frozenset(shown.units)
    lines, fitted = lines_of(memory, units[start - 1 :], room, LONGEST_LINE // 2, known)
    seen = units[start - 1 : start - 1 + fitted]
    number = f"{len(units)} or more" if broken_off else str(len(units))
    head = f"{number} match, by document; {start}-{start + fitted - 1}{goes_on(start + fitted, len(units))}:"
    fresh = tuple(unit for unit in seen if place_of(unit) not in known)
    listed = () if broken_off else tuple(units)
    return Observation(f"{head}\n{fenced(lines)}", fresh, listed=listed, brief=f"{number} match")


def matching(memory: Memory, matches: Iterable[Match]) -> tuple[list[Unit], bool]:
    """The units that matching lines belong to, each once; and whether there was no time for all of them."""
    by_file: dict[str, list[Match]] = {}
    until = time.monotonic() + LONGEST_GREP
    number = 0
    for match in matches:
        by_file.setdefault(match.path, []).append(match)
        number += 1
        if time.monotonic() > until:
            break
    seqs = {match.seqs[0] for match in itertools.chain(*by_file.values()) if match.seqs}
    standing: dict[str, list[Unit]] = {}
    for unit in () if looks_back(memory.filter) else memory.index.standing(*seqs):  # of then, lines may be others
        standing.setdefault(unit.path, []).append(unit)
    found: dict[Place, Unit] = {}
    for path, lines in by_file.items():
        for unit in units_at(memory, path, lines, standing.get(path, ())):
            found[place_of(unit)] = unit
        if time.monotonic() > until:
            return list(found.values()), True
    return list(found.values()), number >= MOST_MATCHES


def units_at(memory: Memory, path: str, lines: Sequence[Match], standing: Sequence[Unit]) -> list[Unit]:
    """The units of a file on whose lines something matched; of evidence, what was retired.

    `standing` are those of its entries that the index knows by their seqs: where they hold all of the lines, the file
    need not be parsed.
    """
    if path.startswith("evidence/"):
        seqs = {seq for match in lines for seq in match.seqs}
        return allowed(memory, memory.index.retired(seqs)) if seqs else []
    wanted = sorted(match.line for match in lines)
    known, missed = over(standing, wanted)
    return over(units_of(memory, path), wanted)[0] if missed else allowed(memory, known)


def over(units: Sequence[Unit], wanted: Sequence[int]) -> tuple[list[Unit], bool]:
    """Those of some units, in the order of their file, that hold one of some lines; and whether a line is in none."""
    found: list[Unit] = []
    missed = False
    at = 0
    for line in wanted:
        while at < len(units) and units[at].stop < line:
            at += 1
        if at == len(units) or units[at].line > line:
            missed = True
        elif not found or found[-1] is not units[at]:
            found.append(units[at])
    return found, missed


# read


def run_read(memory: Memory, arguments: Mapping[str, Any], shown: Shown, room: int) -> Observation:
    """What stands in a document."""
    name = text_in(arguments, "topic", EXAMPLES["read"])
    heading = text_in(arguments, "heading") or name.partition("#")[2]
    first, last = max(1, number_in(arguments, "first", 1)), number_in(arguments, "last")
    place = PLACE.fullmatch(name)
    if place is not None and first == 1 and not last:
        first, last = max(1, int(place[2])), int(place[3] or 0)
    topic = topic_named(memory, name)
    path = path_of(topic)
    try:
        page = read_page(memory.root, topic, first, last, heading)
    except InfinimemError:
        if not heading:
            raise
        return no_heading(memory, topic, heading)
    units = [unit for unit in units_of(memory, path) if page.first <= unit.stop and unit.line <= page.last]
    where = f"lines {page.first}-{page.last} of {page.total}"
    if not units:
        why = " that passes the filters" if memory.filter != Filter() else ""
        return Observation(f"{where}: no entry{why}; try other lines, or search.", brief="no entry")
    longest = max(FEWEST, min(LONGEST_ENTRY, 3 * room - 300))
    start = number_in(arguments, "start", 1)
    if start > 1:
        return rest_of(memory, units[0], start, longest)
    known = frozenset(shown.units)
    cut = [replace(unit, text=f"{unit.text[:longest]} … (cut)") if len(unit.text) > longest else unit for unit in units]
    lines, fitted = lines_of(memory, cut, room, longest + 100, known)
    seen = units[:fitted]
    more = f"; go on with first={units[fitted].line}" if fitted < len(units) else ""
    long = next((unit for unit in seen if len(unit.text) > longest and place_of(unit) not in known), None)
    if long is not None:
        more = f"; the rest of {cited(long)}: topic={cited(long)}, start={longest + 1}{more}"
    fresh = tuple(unit for unit in seen if place_of(unit) not in known)
    return Observation(f"{where}{more}:\n{fenced(lines)}", fresh, brief=f"{len(seen)} of {len(units)}")


def rest_of(memory: Memory, unit: Unit, start: int, longest: int) -> Observation:
    """A long entry from some character on."""
    whole = len(unit.text)
    if start > whole:
        raise Fault(f"{cited(unit)} has {whole:,} characters; start is 1 to {whole}")
    end = min(whole, start - 1 + longest)
    more = f"; go on with start={end + 1}" if end < whole else ""
    line = f"{head_of(marked(memory, unit))}: {flat(unit.text[start - 1 : end], 2 * longest)}"
    return Observation(f"characters {start}-{end} of {whole}{more}:\n{fenced([line])}", (unit,), brief=f"from {start}")


def no_heading(memory: Memory, topic: str, heading: str) -> Observation:
    """Which headings there are."""
    names = dict.fromkeys(unit.headings[-1] for unit in units_of(memory, path_of(topic)) if unit.headings)
    near = difflib.get_close_matches(heading, names, 3, 0.3) or list(names)[:8]
    told = flat(", ".join(near), 300) or "none"
    text = f"{topic} has no such heading; it has:\n{fenced([told])}"
    return Observation(text, fault=True, brief=f"no heading {short(heading)}")


# trace


def run_trace(memory: Memory, arguments: Mapping[str, Any], shown: Shown, room: int) -> Observation:
    """What became of an entry."""
    unit = unit_asked(memory, arguments)
    past = older(memory, unit)
    later = successor(memory, unit) or by_event(memory, unit)
    rows = [("replaced by", later)] if later is not None else []
    rows = [("the entry", unit), *rows, *(("it replaced", old) for old in past)]
    lines: list[str] = []
    fresh: list[Unit] = []
    for what, one in rows:
        line = f"{what}: {entry_line(memory, one, LONGEST_LINE)}"
        if place_of(one) in shown.units:
            line = f"{what}: {head_of(one)}, shown above"
        elif estimate("\n".join((*lines, line))) > room and lines:
            break
        else:
            fresh.append(one)
        lines.append(line)
    state = "is no longer true" if unit.retired or later is not None else "holds"
    told = f"it {state}; {len(past)} replaced by it" if past else f"it {state}; it replaced nothing"
    return Observation(f"{told}:\n{fenced(lines)}", tuple(fresh), brief=told)


def unit_asked(memory: Memory, arguments: Mapping[str, Any]) -> Unit:
    """The entry that a seq, or a place given for one, means. Raises `Fault`."""
    value = arguments.get("seq")
    places = places_in(value)
    for topic, line, _ in places:
        for unit in units_of(memory, path_of(topic_named(memory, topic))):
            if unit.line <= line <= unit.stop:
                return unit
    if places:
        topic, line, _ = places[0]
        raise Fault(f"no entry stands at {topic}:{line}; lines move: search again, or name its seq")
    seq = seq_in(arguments, "seq")
    if not seq:
        raise Fault(f"seq is an entry's number, such as the 41 of #41; write for example {EXAMPLES['trace']}")
    here = [*memory.index.standing(seq), *memory.index.retired((seq,))]
    if not here:
        raise Fault(f"no entry has the number {seq}; take one that stands behind a #")
    seen = allowed_old(memory, here)
    if not seen:
        raise Fault(f"#{seq} does not pass the filters of this ask")
    return seen[0]


def by_event(memory: Memory, unit: Unit) -> Unit | None:
    """What took the place of a retired unit, whatever the filter looks back on."""
    by = unit.retired_by if unit.retired else 0
    if not by:
        return None
    return next(iter(allowed_old(memory, [*memory.index.standing(by), *memory.index.retired((by,))])), None)


# catalog


def run_catalog(memory: Memory, arguments: Mapping[str, Any], shown: Shown, room: int) -> Observation:
    """Documents with their summaries."""
    query = text_in(arguments, "query")
    start = max(1, number_in(arguments, "start", 1))
    rows = catalog(memory)
    if query:
        rows = rows_like(memory, query, rows)
    if not rows:
        about = f" like {short(query)}" if query else ""
        return Observation(f"there is no document{about}; try search.", brief="no document")
    if start > len(rows):
        raise Fault(f"there are {len(rows)}; start is 1 to {len(rows)}")
    page = rows[start - 1 : start - 1 + ROWS]
    lines, fitted = row_lines(page, room, shown.topics)
    topics = tuple(row.topic for row in page[:fitted] if row.topic not in shown.topics)
    head = f"{counted(len(rows), 'document')}; {start}-{start + fitted - 1}{goes_on(start + fitted, len(rows))}:"
    return Observation(f"{head}\n{fenced(lines)}", topics=topics, brief=f"{fitted} of {len(rows)} documents")


def rows_like(memory: Memory, query: str, rows: Sequence[CatalogRow]) -> list[CatalogRow]:
    """The documents that share words with a text, best first."""
    by_topic = {row.topic: row for row in rows}
    found = dict.fromkeys(match.topic for match in memory.index.similar(query, 4 * ROWS))
    for hit in memory.index.search(query, BREADTH, memory.filter):
        found.setdefault(hit.topic)
    return [by_topic[topic] for topic in found if topic in by_topic]


def row_lines(
    rows: Sequence[CatalogRow], room: int, known: set[str] | frozenset[str] = frozenset(), longest: int = SUMMARY
) -> tuple[list[str], int]:
    """The rows of a catalogue as far as a room of tokens goes; and how many fitted."""
    lines: list[str] = []
    used = 0
    for at, row in enumerate(rows):
        line = f"{row.topic}: shown above" if row.topic in known else row_line(row, longest)
        used += estimate(line) + 1
        if used > room and lines:
            return lines, at
        lines.append(line)
    return lines, len(rows)


def row_line(row: CatalogRow, longest: int = SUMMARY) -> str:
    """A document in a line: `id: summary`."""
    about = flat(row.summary or row.title, longest)
    return f"{flat(row.topic, 120)}: {about} ({row.entries})" if about else f"{flat(row.topic, 120)} ({row.entries})"


Runner = Callable[[Memory, Mapping[str, Any], Shown, int], Observation]
RUNNERS: dict[str, Runner] = {
    "search": run_search,
    "grep": run_grep,
    "read": run_read,
    "trace": run_trace,
    "catalog": run_catalog,
}
