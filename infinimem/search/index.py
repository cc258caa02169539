"""The index: what every file of the library holds, brought up to date for changed files only.

It lives in `.infinimem/index/`, is derived from the files alone, and may be deleted at any time. The
inverted index carries a generation number, and `files-N.json` beside it, written before, says what generation
N had read: so a commit is one, wherever a process is killed. Whoever cannot write (a read-only folder,
another process writing) searches what is there, with the changed files read into memory over it.
"""

from __future__ import annotations

import contextlib
import heapq
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from infinimem.model import CURRENT, FileState, Filter, Hit, Unit, path_of, topic_of
from infinimem.search.folder import Busy, clear, held, read_catalog, read_rows, tidy, write_rows
from infinimem.search.sources import (
    EVIDENCE_FOLDER,
    Changes,
    Line,
    Parsed,
    Reader,
    ReadTail,
    ReadUnits,
    Row,
    Tail,
    changes_since,
    read_changes,
    size_of,
)
from infinimem.text import words
from infinimem.text.signature import parse_seqs

if TYPE_CHECKING:
    from infinimem.search.rank import Candidate, Question, Statistics, Weights
    from infinimem.search.records import Record
    from infinimem.search.shelf import Shelf

__all__ = [
    "CatalogRow",
    "FileState",
    "Gathered",
    "Index",
    "IndexStats",
    "Line",
    "Parsed",
    "ReadTail",
    "ReadUnits",
    "Tail",
    "TopicMatch",
]

DEPTH = 100
"""Candidates that the inverted index hands to the final ranking."""

LONGEST_LIST = 10_000
"""Entries that a complete list holds at most."""

_AROUND = 2  # steps in seq order from a candidate to entries that are ranked with it
_LARGE_CHANGE = 4_000_000  # bytes of changed files from which on a big write buffer pays
_LITTLE = 16_000  # bytes appended that are read at each refresh, 3 ms of it, rather than committed
_SMALL = 200_000  # bytes that are sooner read anew than an index of them is committed to disk
_READ_SPEED = 1_000_000  # bytes a second, roughly: what another writer must save us to be worth waiting for
_TELLING = 40  # terms of a long text that its topics are sought with
_BEST = 3  # entries that make up a topic's score

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class CatalogRow:
    """A document in one row."""

    topic: str
    path: str
    title: str
    summary: str
    tokens: int
    entries: int
    guest: bool


@dataclass(frozen=True, slots=True)
class Gathered:
    """The candidates for a query and, for context, their neighbours, which may not be eligible."""

    question: Question
    statistics: Statistics
    units: tuple[Unit, ...]
    candidates: tuple[Candidate, ...]
    eligible: tuple[bool, ...]


class TopicMatch(NamedTuple):
    """A topic that shares words with a text, and the BM25 score of its best entries together."""

    topic: str
    score: float


@dataclass(frozen=True, slots=True)
class IndexStats:
    """How big the index is: files and visible units read, bytes on disk (0 in memory)."""

    files: int
    units: int
    terms: int
    bytes: int
    in_memory: bool


class Index:
    """The searchable state of one library; `refresh` it before asking it anything."""

    def __init__(self, root: Path | str, language: str = "english", *, kept: bool = True) -> None:
        self.root = Path(root)
        self.language = language
        self.common: Statistics | None = None
        """Those of many libraries, of which this one's entries are ranked as a part; of the words that they count."""
        self._is_kept = kept
        self._folder = self.root / ".infinimem" / "index"
        self._base: Shelf | None = None  # on disk
        self._generation = 0
        self._base_rows: dict[str, Row] = {}
        self._has_catalog = True
        self._over: Shelf | None = None  # in memory, over what it masks of the base
        self._over_rows: dict[str, Row] = {}
        self._over_key: object = None
        self._counted: tuple[Mapping[str, Row], int, int] = ({}, 0, 0)
        self._reader: Reader | None = None

    # Freshness

    def refresh(
        self,
        listing: Mapping[str, FileState],
        read_units: ReadUnits,
        read_tail: ReadTail | None = None,
        *,
        settled: bool = True,
    ) -> None:
        """Bring the index up to date with the files listed: only those whose state changed are read.

        Unless it is to be settled, a little that was appended is read into memory only: a commit costs ten times that.
        """
        self._reader = Reader(self.root, listing, read_units, read_tail, self.language)
        self._load()
        changes = changes_since(self._base_rows, self._reader)
        if not changes:
            self._uncover()
            return
        if not settled and self._base is not None and self._is_little(changes, self._reader):
            self._load_catalog_or_forget()
            self._cover(changes_since(self._base_rows, self._reader), self._reader)
            return
        size = size_of(changes, self._base_rows, self._reader)
        if not self._is_kept and self._base is None and size <= _SMALL:
            self._cover(changes, self._reader)
            return
        patience = 0.3 + size / _READ_SPEED
        try:
            with held(self._folder, patience):
                self._load()
                self._load_catalog_or_forget()
                self._write(changes_since(self._base_rows, self._reader), self._reader)
        except (Busy, OSError):
            self._load_catalog_or_forget()
            self._cover(changes_since(self._base_rows, self._reader), self._reader)

    def _is_little(self, changes: Changes, reader: Reader) -> bool:
        return not (changes.removed or changes.whole) and size_of(changes, self._base_rows, reader) <= _LITTLE

    def destroy(self) -> None:
        """Remove the index from disk with every word in it; the next refresh builds it anew."""
        self._forget()
        self._uncover()
        if self._folder.exists():
            with held(self._folder, 10.0):
                clear(self._folder)

    @property
    def _place(self) -> Path:
        from infinimem.search import shelf

        return self._folder / f"{shelf.VERSION}.{words.VERSION}.{self.language}"

    def _load(self) -> None:
        """Open what is on disk, or see what another process has committed since."""
        try:
            if self._base is not None:
                self._base.reload()
            elif (self._place / "meta.json").exists():
                from infinimem.search.shelf import Shelf

                self._base = Shelf.open(self._place)
            else:
                self._forget()
                return
            self._load_rows(self._base)
        except BaseException as error:
            if not _means_damage(error):
                raise
            self._forget()

    def _load_rows(self, base: Shelf) -> None:
        for _ in range(5):
            generation = base.generation()
            if not generation:
                break
            if generation == self._generation:
                return
            try:
                self._base_rows = read_rows(self._place, generation)
            except FileNotFoundError:  # replaced by a newer generation just now
                base.reload()
                continue
            self._generation, self._has_catalog = generation, False
            return
        self._forget()

    def _forget(self) -> None:
        self._base, self._generation, self._base_rows, self._has_catalog = None, 0, {}, True

    def _uncover(self) -> None:
        if self._base is not None:
            self._base.mask(())
        self._over, self._over_rows, self._over_key = None, {}, None

    def _write(self, changes: Changes, reader: Reader) -> None:
        """Read the changed files into the index on disk, as one commit."""
        if not changes:
            self._uncover()
            return
        from infinimem.search.shelf import LARGE_HEAP, SMALL_HEAP, Shelf

        if self._base is None:
            clear(self._folder)
            self._base = Shelf.create(self._place)
        self._uncover()
        large = size_of(changes, self._base_rows, reader) > _LARGE_CHANGE
        writer = self._base.writer(LARGE_HEAP if large else SMALL_HEAP)
        rows = read_changes(changes, self._base_rows, reader, writer, [self._base])
        generation = max(self._generation + 1, time.time_ns())
        write_rows(self._place, generation, rows)
        writer.number(generation)
        writer.commit()
        writer.close()
        self._base.reload()
        self._generation, self._base_rows = generation, rows
        tidy(self._place)

    def _cover(self, changes: Changes, reader: Reader) -> None:
        """Read the changed files into memory, over what is on disk."""
        read = (*changes.whole, *changes.grown)
        key = (self._generation, tuple(changes.removed), tuple((path, reader.listing[path]) for path in read))
        if self._over is not None and self._over_key == key:
            return
        from infinimem.search.shelf import LARGE_HEAP, SMALL_HEAP, Shelf

        self._uncover()
        large = size_of(changes, self._base_rows, reader) > _LARGE_CHANGE
        over = Shelf.create(None)
        writer = over.writer(LARGE_HEAP if large else SMALL_HEAP)
        rows = read_changes(changes, self._base_rows, reader, writer, [*self._shelves, over])
        writer.commit()
        writer.close()
        over.reload()
        if self._base is not None:
            gone = [path for path in (*changes.removed, *changes.whole) if path in self._base_rows]
            self._base.mask(gone)
        self._over, self._over_rows, self._over_key = over, rows, key

    def _load_catalog(self) -> None:
        """Titles, summaries and counts, which a search does without; ValueError if they are damaged."""
        for _ in range(5):
            if self._has_catalog:
                return
            try:
                self._base_rows = read_catalog(self._place, self._generation, self._base_rows)
                self._has_catalog = True
            except FileNotFoundError:  # another process has committed since
                self._load()
            except (LookupError, TypeError) as error:
                raise ValueError(f"a catalog row is missing or damaged: {error}") from error
        raise ValueError("the catalog is gone")

    def _load_catalog_or_forget(self) -> None:
        try:
            self._load_catalog()
        except ValueError:
            self._forget()

    # Questions

    def search(self, query: str, k: int = 5, filter: Filter = Filter()) -> list[Hit]:
        """The best entries, one hit an entry, best first, ties by place; BadInput for a date that is none."""
        if k < 1:
            return []
        return self._mended(lambda: self._choose(self._gather(query, k, filter), k, filter, None))

    def gather(self, query: str, k: int = 5, filter: Filter = Filter()) -> Gathered:
        """The first half of a search: what `choose` ranks, under one set of weights or many."""
        return self._mended(lambda: self._gather(query, k, filter))

    def choose(self, gathered: Gathered, k: int, filter: Filter, weights: Weights) -> list[Hit]:
        """The second half of a search."""
        return self._mended(lambda: self._choose(gathered, k, filter, weights))

    def similar(self, text: str, k: int = 5) -> list[TopicMatch]:
        """The topics whose entries share most with a text, best first; neither CURRENT nor guests."""
        return self._mended(lambda: self._similar(text, k))

    def like(self, text: str, k: int = 10) -> list[Record]:
        """The visible entries, CURRENT's among them, that share most with a text, best first, with their words."""
        return self._mended(lambda: self._like(text, k))

    def missing(self, query: str, *, retired: bool = False) -> bool:
        """Whether none of the words that a question asks about occurs in anything visible, or in what is retired."""
        asked = words.content_words(query, self.language) or words.query_words(query, self.language)
        sought = [term for term in asked if not words.is_date_term(term)] or asked
        if self.common is not None and any(self.common.holding.get(term) for term in sought):
            return False
        if retired:
            held = self.gather(query, 1, Filter(retired=True)).statistics.holding
            return not any(held.get(term) for term in sought)
        return self._mended(lambda: not any(self._holding(term, "words", "above") for term in sought))

    def holding(self, term: str) -> int:
        """How many visible units hold a term, as `words.analyse` spells it."""
        return self._mended(lambda: self._holding(term))

    def visible(self) -> int:
        """How many visible units there are."""
        return self._units

    def locate(self, seq: int) -> Unit | None:
        """Where a seq stands now, alone or in a joined line; None if nowhere visible."""
        from infinimem.search.shelf import VISIBLE

        return self._mended(lambda: next(iter(self._at_seqs((seq,), VISIBLE)), None))

    def standing(self, *seqs: int) -> list[Unit]:
        """Every visible place of some seqs, by place: two of one where a file was copied or an old CURRENT is back."""
        from infinimem.search.shelf import VISIBLE

        return self._mended(lambda: self._at_seqs(seqs, VISIBLE))

    def met(self, seqs: Iterable[int]) -> list[Unit]:
        """Every visible place of some seqs and every line of evidence about them, all at once."""
        from infinimem.search.shelf import EVIDENCE, VISIBLE

        wanted = tuple(seqs)
        return self._mended(lambda: [*self._at_seqs(wanted, VISIBLE), *self._at_seqs(wanted, EVIDENCE)])

    def having(self, key: str, part: str = "") -> list[Unit]:
        """Every visible entry that has a signature field of this name, with `part` in its value if given, by place."""
        return self._mended(
            lambda: [record.unit for shelf in self._shelves for record in shelf.with_field(key, part=part)]
        )

    def expiring(self) -> list[Unit]:
        """Every visible entry that says when it expires, by place."""
        return self._mended(lambda: [record.unit for shelf in self._shelves for record in shelf.with_field("expires")])

    def with_field(self, key: str, *, retired: bool = False) -> list[Unit]:
        """Every visible entry, or every retired one, that has a signature field of this name; "" = all of them."""
        from infinimem.search.shelf import RETIRED, VISIBLE

        kind = RETIRED if retired else VISIBLE
        return self._mended(
            lambda: [
                record.unit
                for shelf in self._shelves
                for record in shelf.with_field(key, kind=kind)
                if record.unit.seqs
            ]
        )

    def in_topics(self, key: str, value: str, most: int) -> list[Unit]:
        """Entries of topics whose signature field `key` is `value`; of very many, only so many as are found first."""
        from infinimem.search.shelf import VISIBLE

        buffer = path_of(CURRENT)
        return self._mended(
            lambda: [
                record.unit
                for shelf in self._shelves
                for record in shelf.with_fact(key, value, VISIBLE, most, without=buffer)
            ]
        )

    def evidence(self, seq: int) -> list[Unit]:
        """Every line of evidence about a seq, entries and events, by file and line."""
        from infinimem.search.shelf import EVIDENCE

        return self._mended(lambda: self._at_seqs((seq,), EVIDENCE))

    def entries(self, terms: Sequence[str], filter: Filter = Filter(), most: int = LONGEST_LIST) -> list[Unit]:
        """Every unit that holds all of the analysed terms and passes the filter, in order of time; no top-k.

        What has no time comes last; without terms, everything that passes.
        """
        return self._mended(
            lambda: self._in_time(
                (record for shelf in self._shelves for record in shelf.match_all(terms, filter, most)), filter
            )
        )

    def nearly(self, terms: Sequence[str], filter: Filter = Filter(), most: int = LONGEST_LIST) -> list[Unit]:
        """The units that hold as many of the terms as any does, in order of time."""
        return self._mended(lambda: self._nearly(terms, filter, most))

    def passing(self, units: Iterable[Unit], filter: Filter) -> list[Unit]:
        """The units that a filter lets be recalled; one that was retired and stands again is not retired."""
        hits = [Hit(unit, 0.0) for unit in units]
        return self._mended(lambda: [hit.unit for hit in self._allowed(hits, filter)])

    def retired(self, seqs: Iterable[int]) -> list[Unit]:
        """What left the visible surface under these seqs, as it last did, by place."""
        from infinimem.search.shelf import RETIRED

        wanted = tuple(seqs)
        return self._mended(lambda: self._last(self._at_seqs(wanted, RETIRED)))

    def replaced_by(self, *seqs: int) -> list[Unit]:
        """The retired units whose place one of some seqs took last, alone or with others."""
        from infinimem.search.shelf import RETIRED

        def found() -> list[Unit]:
            gone = [one.unit for shelf in self._shelves for one in shelf.pointing_to("retired_by", seqs, kind=RETIRED)]
            last = self._last(self._at_seqs({one for unit in gone for one in unit.seqs}, RETIRED)) if gone else []
            return [unit for unit in last if not set(seqs).isdisjoint(parse_seqs(unit.get("retired_by")))]

        return self._mended(found)

    def linked_to(self, seqs: Iterable[int], relation: str = "") -> list[Unit]:
        """The visible entries that are linked to one of some seqs, by this relation or any, by place."""
        wanted = tuple(seqs)
        return self._mended(
            lambda: [one.unit for shelf in self._shelves for one in shelf.pointing_to("links", wanted, relation)]
        )

    def superseding(self) -> list[Unit]:
        """CURRENT's entries that take another's place, which a flush has not seen to yet."""
        path = path_of(CURRENT)
        return self._mended(
            lambda: [record.unit for shelf in self._shelves for record in shelf.with_field("supersedes", path)]
        )

    def announced(self) -> list[Unit]:
        """Visible entries that were to take another's place from a later date on, begun or not, by place."""
        return self._mended(lambda: [record.unit for shelf in self._shelves for record in shelf.announced()])

    def unsettled(self) -> list[tuple[Unit, int]]:
        """Entries of topics that say what they replace, each with a seq of that which a topic still shows."""
        from infinimem.search.shelf import VISIBLE

        def found() -> list[tuple[Unit, int]]:
            said = [record.unit for shelf in self._shelves for record in shelf.with_field("supersedes")]
            pairs = [
                (unit, seq)
                for unit in said
                if unit.topic != CURRENT and unit.seqs
                for seq in parse_seqs(unit.get("supersedes"))
                if seq not in unit.seqs
            ]
            old = self._at_seqs({seq for _, seq in pairs}, VISIBLE)
            shown = {seq for unit in old if unit.topic != CURRENT for seq in unit.seqs}
            return [(unit, seq) for unit, seq in pairs if seq in shown]

        return self._mended(found)

    def catalog(self, *, redirects: bool = False) -> list[CatalogRow]:
        """Every document by path, CURRENT among them; evidence is none.

        A page without even a title only says where its topic has gone; it is listed with `redirects` alone.
        """
        rows = self._mended(self._whole_rows)
        return [
            CatalogRow(topic_of(path), path, row.title, row.summary, row.tokens, row.entries, row.guest)
            for path, row in sorted(rows.items())
            if not path.startswith(EVIDENCE_FOLDER) and (row.title or redirects)
        ]

    def named_before(self, topic: str) -> str | None:
        """The topic of ours that had an id before, or took in the one that had it; None if there is none."""
        rows = self._mended(self._whole_rows)
        found = min((path for path, row in rows.items() if topic in row.former), default="")
        return topic_of(found) if found else None

    def topics(self) -> list[str]:
        """The id of every document, of a page that only says where its topic has gone, too; by path."""
        rows = self._mended(self._whole_rows)
        return [topic_of(path) for path in sorted(rows) if not path.startswith(EVIDENCE_FOLDER)]

    def smallest(self, k: int) -> list[str]:
        """The ids of the smallest topics that are no guests."""
        rows = self._mended(self._whole_rows)
        own = (
            (row.tokens, topic_of(path))
            for path, row in rows.items()
            if row.title and not row.guest and not path.startswith(EVIDENCE_FOLDER)
        )
        found = heapq.nsmallest(k + 1, own)
        return [topic for _, topic in found if topic != CURRENT][:k]

    def stats(self) -> IndexStats:
        """How much the index holds."""
        size = sum(file.stat().st_size for file in self._place.iterdir()) if self._base is not None else 0
        return IndexStats(len(self._rows), self._units, self._terms, size, self._over is not None)

    def _gather(self, query: str, k: int, filter: Filter) -> Gathered:
        from infinimem.search.rank import REACH, Statistics, read_question
        from infinimem.search.records import looks_back
        from infinimem.search.shelf import by_score

        question = read_question(query, self.language)
        depth = max(DEPTH, 3 * k)
        # each shelf's best: how rare a word is, and so a score, is another thing in a small one
        matches = [match for shelf in self._shelves for match in shelf.match(question.terms, filter, depth)]
        pool = {_place_of(record.unit): record for _, record in sorted(matches, key=by_score)}
        reachable = _seqs_around(pool.values(), _AROUND)
        for record in self._records_at(_seqs_around(pool.values(), REACH)):
            pool.setdefault(_place_of(record.unit), record)
        fields = ("words", "past") if looks_back(filter) else ("words",)
        holding = {term: self._holding(term, *fields) or self._holding(term, "above") for term in question.terms}
        own = Statistics(self._units, self._terms / max(1, self._units), holding)
        common = self.common if self.common is not None and holding.keys() <= self.common.holding.keys() else None
        return Gathered(
            question,
            common or own,
            tuple(record.unit for record in pool.values()),
            tuple(record.candidate for record in pool.values()),
            tuple(not record.unit.seqs or not reachable.isdisjoint(record.unit.seqs) for record in pool.values()),
        )

    def _choose(self, gathered: Gathered, k: int, filter: Filter, weights: Weights | None) -> list[Hit]:
        from infinimem.search.rank import Weights, score

        scores = score(gathered.question, gathered.candidates, gathered.statistics, weights or Weights())
        hits = [
            Hit(unit, value)
            for unit, value, eligible in zip(gathered.units, scores, gathered.eligible, strict=True)
            if value > 0 and eligible
        ]
        allowed = self._allowed(hits, filter)
        return sorted(allowed, key=lambda hit: (-hit.score, hit.unit.path, hit.unit.line))[:k]

    def _nearly(self, terms: Sequence[str], filter: Filter, most: int) -> list[Unit]:
        wanted = frozenset(terms)
        held = [
            (len(wanted.intersection((*record.own, *record.signature, *record.headings))), record)
            for shelf in self._shelves
            for _, record in shelf.match(terms, filter, most)
        ]
        top = max((number for number, _ in held), default=0)
        return self._in_time((record for number, record in held if number == top), filter)

    def _in_time(self, records: Iterable[Record], filter: Filter) -> list[Unit]:
        from infinimem.search.records import NEVER, happened

        allowed = self._allowed([Hit(record.unit, 0.0) for record in records], filter)
        never = (NEVER, NEVER)
        return sorted((hit.unit for hit in allowed), key=lambda unit: (happened(unit) or never, unit.path, unit.line))

    def _last(self, retired: Sequence[Unit]) -> list[Unit]:
        """Of each entry's retirements the last: those before it were undone, and what took its place then is gone."""
        from infinimem.search.shelf import EVIDENCE

        found: dict[tuple[int, ...], Unit] = {}
        again: set[tuple[int, ...]] = set()
        for unit in retired:
            if unit.seqs in found:
                again.add(unit.seqs)
            found[unit.seqs] = unit
        for seqs in again:
            told = [unit for unit in self._at_seqs(seqs, EVIDENCE) if unit.retired]
            is_last = {(unit.get("retired_at"), unit.get("retired_by")) for unit in told[-1:]}
            same = [unit for unit in retired if unit.seqs == seqs]
            last = [unit for unit in same if (unit.get("retired_at"), unit.get("retired_by")) in is_last]
            found[seqs] = (last or same)[-1]
        return list(found.values())

    def _allowed(self, hits: list[Hit], filter: Filter) -> list[Hit]:
        """The hits that pass a filter; an entry that was retired and stands again is not retired."""
        from infinimem.search.records import allows
        from infinimem.search.shelf import VISIBLE

        if filter == Filter() and not any(hit.unit.retired for hit in hits):
            return hits
        kept = [hit for hit in hits if not hit.unit.retired and allows(filter, hit.unit)]
        gone = {hit.unit: hit for hit in hits if hit.unit.retired}
        if not gone:
            return kept
        retired = sorted(map(gone.__getitem__, self._last(list(gone))), key=lambda hit: hit.unit.get("retired_at"))
        seqs = {seq for hit in retired for seq in hit.seqs}
        standing = {seq for unit in self._at_seqs(seqs, VISIBLE) for seq in unit.seqs}
        return kept + [
            hit
            for hit in retired
            if standing.isdisjoint(hit.seqs) and allows(filter, hit.unit, self._successor(hit.unit))
        ]

    def _successor(self, unit: Unit) -> Unit | None:
        """What took a retired unit's place, itself retired or not."""
        by = unit.retired_by
        if not by:
            return None
        told = [unit for unit in self.evidence(by) if unit.text]
        return self.locate(by) or next(reversed(told), None)

    def _telling(self, text: str) -> list[str]:
        """The terms that tell a text from others, at most `_TELLING`, the most telling first."""
        from infinimem.search.rank import idf

        counts = Counter(words.analyse(text, self.language))
        units = self._units
        weighed = {term: count * idf(units, self._holding(term)) for term, count in counts.items()}
        found = sorted((term for term in weighed if weighed[term]), key=lambda term: (-weighed[term], term))
        return found[:_TELLING]

    def _like(self, text: str, k: int) -> list[Record]:
        from infinimem.search.shelf import by_score

        terms, depth = self._telling(text), 2 * k + 8
        found = [match for shelf in self._shelves for match in shelf.match_visible(terms, depth)] if terms else []
        return [record for _, record in sorted(found, key=by_score) if record.unit.seqs][:k]

    def _similar(self, text: str, k: int) -> list[TopicMatch]:
        terms, depth = self._telling(text), max(DEPTH // 2, 25 * k)
        if not terms:
            return []
        matches = [match for shelf in self._shelves for match in shelf.match_paths(terms, path_of(CURRENT), depth)]
        rows = self._whole_rows()
        files: dict[str, list[float]] = {}
        for value, path in sorted(matches, key=lambda match: (-match[0], match[1])):
            files.setdefault(path, []).append(value)
        scores = {path: sum(best[:_BEST]) for path, best in files.items() if not rows[path].guest}
        found = [TopicMatch(topic_of(path), value) for path, value in scores.items()]
        return sorted(found, key=lambda match: (-match.score, match.topic))[:k]

    @property
    def _shelves(self) -> list[Shelf]:
        return [shelf for shelf in (self._base, self._over) if shelf is not None]

    @property
    def _rows(self) -> dict[str, Row]:
        return self._base_rows if self._over is None else self._over_rows

    @property
    def _units(self) -> int:
        return self._totals()[0]

    @property
    def _terms(self) -> int:
        return self._totals()[1]

    def _totals(self) -> tuple[int, int]:
        """Units and terms of all files, added up once for the same rows: these are never changed."""
        rows = self._rows
        if self._counted[0] is not rows:
            units = sum(row.units for row in rows.values())
            self._counted = (rows, units, sum(row.terms for row in rows.values()))
        return self._counted[1:]

    def _whole_rows(self) -> dict[str, Row]:
        self._load_catalog()
        return self._rows

    def _holding(self, term: str, *fields: str) -> int:
        if not fields:  # a flush asks it of every word
            below = self._base.holding(term) if self._base is not None else 0
            return below + self._over.holding(term) if self._over is not None else below
        return sum(shelf.holding(term, field) for shelf in self._shelves for field in fields)

    def _records_at(self, seqs: Iterable[int]) -> list[Record]:
        from infinimem.search.shelf import VISIBLE

        wanted = list(seqs)
        return [record for shelf in self._shelves for record in shelf.at_seqs(wanted, VISIBLE)]

    def _at_seqs(self, seqs: Iterable[int], kind: int) -> list[Unit]:
        wanted = list(seqs)
        return [record.unit for shelf in self._shelves for record in shelf.at_seqs(wanted, kind)]

    def _mended(self, ask: Callable[[], _Answer]) -> _Answer:
        """An answer, from a rebuilt index if the one on disk turns out to be damaged."""
        try:
            return ask()
        except BaseException as error:
            if self._base is None or self._reader is None or not _means_damage(error):
                raise
            reader = self._reader
        self._forget()
        self._uncover()
        with contextlib.suppress(Busy, OSError), held(self._folder, 1.0):
            clear(self._folder)
        self.refresh(reader.listing, reader.read_units, reader.read_tail)
        return ask()


def _means_damage(error: BaseException) -> bool:
    """Whether an error comes from index files that are not what was written; tantivy also panics then."""
    if isinstance(error, (ValueError, KeyError, TypeError, OSError)):
        return True
    return type(error).__name__ == "PanicException"


def _place_of(unit: Unit) -> tuple[str, int, tuple[int, ...]]:
    return unit.path, unit.line, unit.seqs


def _seqs_around(records: Iterable[Record], reach: int) -> set[int]:
    """The seqs of records and `reach` steps to either side of them."""
    seqs: set[int] = set()
    for record in records:
        if record.unit.seqs:
            first, last = min(record.unit.seqs), max(record.unit.seqs)
            seqs.update(range(first - reach, first + 1), range(last, last + reach + 1))
    return seqs
