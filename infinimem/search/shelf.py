"""The inverted index itself: records in tantivy, on disk or in memory.

tantivy sees only terms that `infinimem.text.words` made, joined by spaces, so that both stages of a search
agree on what a word is. It finds candidates; `rank` orders them.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import tantivy
from tantivy import FieldType, Occur, Query

from infinimem.model import Filter, Unit, path_of
from infinimem.search.records import (
    Record,
    asked_interval,
    happened,
    is_announced,
    looks_back,
    path_in,
    restore,
    stored_line,
)
from infinimem.text.signature import parse_links, parse_seqs

if TYPE_CHECKING:
    from infinimem.search.sources import Line

VERSION = 7
"""Changes with the schema or with what is stored; an index of another version is rebuilt."""

VISIBLE, RETIRED, EVIDENCE, GENERATION = 1, 2, 3, 4
SMALL_HEAP, LARGE_HEAP = 15_000_000, 120_000_000  # bytes; tantivy refuses less than the first
_LONGEST_FACT = 500
_LONGEST_RANGE = 1_000  # seqs of one link that lead back to it
_ABOVE = 0.5  # the weight of a word in a heading among candidates; `rank.Weights.heading` decides in the end
_ANNOUNCED = " announced=yes"  # no field of an entry is called so
_NUMBERED = "#"  # the path of the record that holds the generation; no file is called so
_REMEMBERED = 16_384  # records, some 2 kB each, and as many frequencies, that a shelf need not fetch again

_SMALL = 1_000
_ANSWERS = 1_024
_MANY = 20_000  # postings of a question from which on it pays to look first who can be among the best
_TELLING_PART = 0.25  # of these postings, those of the rarest terms, by which that is seen
_MOST_BY_ONE = 2.2  # times its rarity: tantivy's BM25 never gives more for a term, however often it stands there


class Shelf:
    """One tantivy index. What it found is remembered until a commit or a mask makes it untrue."""

    def __init__(self, index: tantivy.Index, folder: Path | None = None) -> None:
        self._index = index
        self._schema = index.schema
        self._folder = folder
        self._masked: list[str] = []
        self._seen = b""
        self._written = 0  # records on disk, those deleted among them, which count for tantivy's scores; 0 in memory
        self._records: dict[tuple[int, int], Record] = {}
        self._paths: dict[tuple[int, int], str] = {}
        self._standing: dict[int, dict[int, tuple[Record, ...]]] = {}
        self._frequencies: dict[tuple[str, str], int] = {}
        self._vocabularies: dict[str, dict[str, int]] = {}
        self._answers: dict[tuple[tuple[str, ...], str, int], list[tuple[float, tantivy.DocAddress]]] = {}
        self.reload()

    @classmethod
    def create(cls, folder: Path | None) -> Shelf:
        """An empty shelf, in memory if there is no folder."""
        if folder is None:
            return cls(tantivy.Index(_schema()))
        folder.mkdir(exist_ok=True)
        with _disk_errors():
            return cls(tantivy.Index(_schema(), path=str(folder)), folder)

    @classmethod
    def open(cls, folder: Path) -> Shelf:
        """The shelf kept in a folder; ValueError if there is none that can be read."""
        return cls(tantivy.Index.open(str(folder)), folder)

    def reload(self) -> None:
        """See what has been committed since, by whatever process."""
        # read first: what is loaded is this or newer, and then the next look differs and loads again
        seen = (self._folder / "meta.json").read_bytes() if self._folder is not None else b""
        if seen and seen == self._seen:  # it names segments and deletions: equal bytes are the same records
            return
        self._seen = seen
        self._written = sum(segment["max_doc"] for segment in json.loads(seen)["segments"]) if seen else 0
        self._index.reload()
        self._searcher = self._index.searcher()
        self._records.clear()
        self._paths.clear()
        self._forget_counts()

    def mask(self, paths: Iterable[str]) -> None:
        """Take the records of these paths, and of no others, as gone."""
        masked = [_safe(path) for path in paths]
        if masked != self._masked:
            self._masked = masked
            self._forget_counts()

    def _forget_counts(self) -> None:
        self._standing.clear()
        self._frequencies.clear()
        self._vocabularies.clear()
        self._answers.clear()

    def writer(self, heap: int) -> Writer:
        """A writer; OSError while another process has one, or if the disk refuses."""
        return Writer(self._index, heap)

    def generation(self) -> int:
        """The number of the last commit; 0 if there was none, or only half of one."""
        stored = [self._stored(address)[2] for address in self._find(self._kind(GENERATION), 1)]
        return int(stored[0]) if stored else 0

    def holding(self, term: str, field: str = "words") -> int:
        """How many visible units hold a term; with the field `past`, how many retired ones."""
        if self._is_small:
            return self._vocabulary(field).get(term, 0)
        known = self._frequencies.get((field, term))
        if known is None:
            found = self._searcher.search(self._unmasked([(Occur.Must, self._term(field, term))]), 1)
            known = int(found.count or 0)  # type: ignore[attr-defined]  # not in its stubs
            if len(self._frequencies) >= _REMEMBERED:
                self._frequencies.clear()
            self._frequencies[field, term] = known
        return known

    @property
    def _is_small(self) -> bool:
        """Whether it is made anew so often that its words are rather listed once than looked up one by one."""
        return self._folder is None and self._searcher.num_docs <= _SMALL

    def _vocabulary(self, field: str) -> dict[str, int]:
        """How many records hold each term of a field."""
        found = self._vocabularies.get(field)
        if found is None:
            everything = self._unmasked([(Occur.Must, Query.all_query())])
            found = dict(self._searcher.terms_with_prefix(field, "", everything))
            self._vocabularies[field] = found
        return found

    def _holds_any(self, terms: Sequence[str], fields: Sequence[str]) -> bool:
        """Whether a search for the terms can find anything, as far as that is known without it."""
        if not self._is_small:
            return True
        return any(term in self._vocabulary(field) for field in fields for term in terms)

    def match(self, terms: Sequence[str], filter: Filter, depth: int) -> list[tuple[float, Record]]:
        """The records that share most with the terms, by tantivy's own BM25."""
        if not terms:
            return []
        fields = ("words", "above", "past") if looks_back(filter) else ("words", "above")
        if not self._holds_any(terms, fields):
            return []
        found = self._best(terms, fields, self._narrow(filter), depth)
        return [(score, self._record(address)) for score, address in found]

    def match_visible(self, terms: Sequence[str], depth: int) -> list[tuple[float, Record]]:
        """As `match`, over everything visible; best first, ties by place."""
        found = self._best_visible(terms, "", depth)
        return sorted([(score, self._record(address)) for score, address in found], key=by_score)

    def match_paths(self, terms: Sequence[str], without: str, depth: int) -> list[tuple[float, str]]:
        """In which files the entries stand that share most with the terms, but in one path (""): best first."""
        found = self._best_visible(terms, without, depth)
        return sorted([(score, self._path(address)) for score, address in found], key=lambda pair: (-pair[0], pair[1]))

    def _best_visible(self, terms: Sequence[str], without: str, depth: int) -> list[tuple[float, tantivy.DocAddress]]:
        """What is visible, in all files but one ("" = none is left out); remembered."""
        if not self._holds_any(terms, ("words", "above")):
            return []
        asked = (tuple(terms), without, depth)
        known = self._answers.get(asked)
        if known is None:
            narrowed = [(Occur.MustNot, Query.term_query(self._schema, "path", _safe(without)))] if without else []
            known = self._best(terms, ("words", "above"), narrowed, depth)
            if len(self._answers) >= _ANSWERS:
                self._answers.clear()
            self._answers[asked] = known
        return known

    def _best(
        self, terms: Sequence[str], fields: Sequence[str], narrowed: list[tuple[Occur, Query]], depth: int
    ) -> list[tuple[float, tantivy.DocAddress]]:
        """The records that share most with the terms.

        tantivy scores every record that holds any of them, which for a word that every third entry holds is every
        third entry. So the rarest terms are asked first: what holds only words that together cannot weigh as much as
        the last of those found is not among the best, and need not be looked at (MaxScore, Turtle & Flood 1995).
        """
        common = self._too_common(terms, fields, narrowed, depth)
        asked = [(term, field) for term in terms for field in fields if (term, field) not in common]
        clauses = [(Occur.Must, self._any(asked)), *narrowed]
        clauses += [(Occur.Should, self._weighed(term, field)) for term, field in common]
        found: list[tuple[float, tantivy.DocAddress]]
        found = self._searcher.search(self._unmasked(clauses), depth, count=False).hits
        return found

    def _too_common(
        self, terms: Sequence[str], fields: Sequence[str], narrowed: list[tuple[Occur, Query]], depth: int
    ) -> list[tuple[str, str]]:
        """Of terms in fields those that bring no record among the best by themselves; none where few hold any."""
        if not self._written:
            return []
        held = {(term, field): self.holding(term, field) for term in terms for field in fields}
        ordered = sorted((pair for pair in held if held[pair]), key=lambda pair: held[pair])
        postings = sum(held.values())
        if postings < _MANY or len(ordered) < 2 or len(held) < len(terms) * len(fields):
            return []
        telling, counted = 0, 0
        while telling < 1 or counted + held[ordered[telling]] <= _TELLING_PART * postings:
            counted += held[ordered[telling]]
            telling += 1
        clauses = [(Occur.Must, self._any(ordered[:telling])), *narrowed]
        found = self._searcher.search(self._unmasked(clauses), depth, count=False).hits
        least = found[-1][0] if len(found) == depth else 0.0
        common: list[tuple[str, str]] = []
        for term, field in reversed(ordered[telling:]):
            rarity = math.log1p((self._written - held[term, field] + 0.5) / (held[term, field] + 0.5))
            least -= _MOST_BY_ONE * rarity * (_ABOVE if field == "above" else 1.0)
            if least <= 0:
                break
            common.append((term, field))
        return common

    def match_all(self, terms: Sequence[str], filter: Filter, limit: int) -> list[Record]:
        """The records that hold every one of the terms, in headings or not; without terms, all that may be recalled."""
        fields = ("words", "above", "past") if looks_back(filter) else ("words", "above")
        kinds = (VISIBLE, RETIRED) if looks_back(filter) else (VISIBLE,)
        holding = [(Occur.Must, self._any([(term, field) for field in fields])) for term in terms]
        recalled = [(Occur.Should, self._kind(kind)) for kind in kinds]
        clauses = [*holding, (Occur.Must, Query.boolean_query(recalled)), *self._narrow(filter)]
        return [self._record(address) for address in self._find(self._unmasked(clauses), limit)]

    def at_seqs(self, seqs: Iterable[int], kind: int = VISIBLE) -> list[Record]:
        """Every record of a kind that stands for one of these seqs, by place."""
        wanted = sorted(seq for seq in set(seqs) if seq >= 0)
        if not wanted:
            return []
        known = self._standing.setdefault(kind, {})  # what was looked up before
        unknown = [seq for seq in wanted if seq not in known]
        if unknown and len(known) + len(unknown) > _REMEMBERED:
            known.clear()
            unknown = wanted
        if unknown:
            found: dict[int, list[Record]] = {seq: [] for seq in unknown}
            for record in self._look_up(unknown, kind):
                for seq in record.unit.seqs:
                    if seq in found:
                        found[seq].append(record)
            known.update((seq, tuple(records)) for seq, records in found.items())
        places = {(one.unit.path, one.unit.line): one for seq in wanted for one in known[seq]}
        return [places[place] for place in sorted(places)]

    def _look_up(self, wanted: list[int], kind: int) -> list[Record]:
        field = "evidence" if kind == EVIDENCE else "seq"
        clauses = [(Occur.Must, Query.term_set_query(self._schema, field, wanted))]
        if kind != EVIDENCE:
            clauses.append((Occur.Must, self._kind(kind)))
        addresses = self._find(self._unmasked(clauses), max(1, self._searcher.num_docs))
        records = [self._record(address) for address in addresses]
        return sorted(records, key=lambda record: (record.unit.path, record.unit.line))

    def with_field(self, key: str, path: str = "", part: str = "", kind: int = VISIBLE) -> list[Record]:
        """Every record of a kind, of one file or of all, that has a field of this name ("" = any), by place.

        `part` is a regular expression for a part of its value.
        """
        clauses = [(Occur.Must, self._kind(kind))]
        if key:
            value = f".*{part}.*" if part else ".*"
            clauses.append((Occur.Must, Query.regex_query(self._schema, "facts", f"{re.escape(key)}={value}")))
        if path:
            clauses.append((Occur.Must, Query.term_query(self._schema, "path", _safe(path))))
        addresses = self._find(self._unmasked(clauses), max(1, self._searcher.num_docs))
        records = [self._record(address) for address in addresses]
        return sorted(records, key=lambda record: (record.unit.path, record.unit.line))

    def with_fact(self, key: str, value: str, kind: int, most: int = 0, without: str = "") -> list[Record]:
        """Every record of a kind whose signature field `key` is `value`, by place; of very many, only `most`.

        `without` is the path of a file of which none is wanted.
        """
        says_it = Query.term_query(self._schema, "facts", _safe(f"{key}={value}"))
        clauses = [(Occur.Must, says_it), (Occur.Must, self._kind(kind))]
        if without:
            clauses.append((Occur.MustNot, Query.term_query(self._schema, "path", _safe(without))))
        addresses = self._find(self._unmasked(clauses), most or max(1, self._searcher.num_docs))
        records = [self._record(address) for address in addresses]
        return sorted(records, key=lambda record: (record.unit.path, record.unit.line))

    def announced(self) -> list[Record]:
        """Every visible record of what was announced to take another's place before it began, by place."""
        says_it = Query.term_query(self._schema, "facts", _ANNOUNCED)
        clauses = [(Occur.Must, says_it), (Occur.Must, self._kind(VISIBLE))]
        addresses = self._find(self._unmasked(clauses), max(1, self._searcher.num_docs))
        records = [self._record(address) for address in addresses]
        return sorted(records, key=lambda record: (record.unit.path, record.unit.line))

    def pointing_to(self, key: str, seqs: Iterable[int], relation: str = "", kind: int = VISIBLE) -> list[Record]:
        """Every record of a kind whose signature field `key` names one of some seqs, by place."""
        wanted = [fact_of(key, seq, relation) for seq in sorted(set(seqs))]
        if not wanted:
            return []
        clauses = [(Occur.Must, Query.term_set_query(self._schema, "facts", wanted)), (Occur.Must, self._kind(kind))]
        addresses = self._find(self._unmasked(clauses), max(1, self._searcher.num_docs))
        records = [self._record(address) for address in addresses]
        return sorted(records, key=lambda record: (record.unit.path, record.unit.line))

    def _narrow(self, filter: Filter) -> list[tuple[Occur, Query]]:
        """What a filter says that tantivy can tell; `records.allows` has the last word."""
        queries = [Query.term_query(self._schema, "facts", _safe(f"{key}={value}")) for key, value in filter.pairs]
        if filter.topic:
            queries.append(Query.term_query(self._schema, "path", _safe(path_of(filter.topic))))
        if filter.since:
            queries.append(self._range("last", asked_interval(filter.since)[0], None))
        if filter.until:
            queries.append(self._range("first", None, asked_interval(filter.until)[1]))
        return [(Occur.Must, Query.const_score_query(query, 0.0)) for query in queries]

    def _range(self, field: str, low: int | None, high: int | None) -> Query:
        return Query.range_query(self._schema, field, FieldType.Integer, low, high)

    def _any(self, asked: Sequence[tuple[str, str]]) -> Query:
        """Records that hold any of the terms in the field beside it."""
        return Query.boolean_query([(Occur.Should, self._weighed(term, field)) for term, field in asked])

    def _weighed(self, term: str, field: str) -> Query:
        """Records that hold a term; in a heading it counts less."""
        found = self._term(field, term)
        return Query.boost_query(found, _ABOVE) if field == "above" else found

    def _term(self, field: str, term: str) -> Query:
        return Query.term_query(self._schema, field, term, index_option="freq")

    def _kind(self, kind: int) -> Query:
        return Query.const_score_query(Query.term_query(self._schema, "kind", kind), 0.0)

    def _unmasked(self, clauses: list[tuple[Occur, Query]]) -> Query:
        if self._masked:
            masked = Query.term_set_query(self._schema, "path", self._masked)
            clauses = [*clauses, (Occur.MustNot, masked)]
        elif len(clauses) == 1:
            return clauses[0][1]
        return Query.boolean_query(clauses)

    def _find(self, query: Query, limit: int) -> list[tantivy.DocAddress]:
        found = self._searcher.search(query, limit, count=False)
        return [address for _, address in found.hits]

    def _record(self, address: tantivy.DocAddress) -> Record:
        """The record at an address, which stays the same until something else is committed."""
        place = (address.segment_ord, address.doc)
        known = self._records.get(place)
        if known is None:
            known = restore(*self._stored(address))
            if len(self._records) >= _REMEMBERED:
                self._records.clear()
            self._records[place] = known
        return known

    def _path(self, address: tantivy.DocAddress) -> str:
        """The path of the record at an address, without all that a record is."""
        place = (address.segment_ord, address.doc)
        known = self._paths.get(place)
        if known is None:
            known = path_in(self._searcher.doc(address).get_first("stored") or b"")
            if len(self._paths) >= _REMEMBERED:
                self._paths.clear()
            self._paths[place] = known
        return known

    def _stored(self, address: tantivy.DocAddress) -> tuple[str, str, bytes]:
        document = self._searcher.doc(address)
        words = document.get_first("words") or document.get_first("past") or ""
        return words, document.get_first("above") or "", document.get_first("stored") or b""


class Writer:
    """Additions and removals that become visible, all at once, with `commit`."""

    def __init__(self, index: tantivy.Index, heap: int) -> None:
        with _disk_errors():
            self._writer = index.writer(heap, 1)

    def drop(self, path: str) -> None:
        """Remove everything that was read from a file."""
        self._writer.delete_documents_by_term("path", _safe(path))

    def add(self, record: Record, kind: int, path: str) -> None:
        """Add a record that was read from a file."""
        unit = record.unit
        document = tantivy.Document()
        document.add_text("path", _safe(path))
        document.add_unsigned("kind", kind)
        document.add_bytes("stored", record.stored)
        for seq in unit.seqs:
            document.add_unsigned("evidence" if kind == EVIDENCE else "seq", seq)
        if kind != EVIDENCE:
            document.add_text("words" if kind == VISIBLE else "past", record.words)
            if record.headings:
                document.add_text("above", record.above)
            for fact in facts_of(unit):
                document.add_text("facts", _safe(fact))
            if is_announced(unit):
                document.add_text("facts", _ANNOUNCED)
            when = happened(unit)
            if when is not None:
                document.add_integer("first", when[0])
                document.add_integer("last", when[1])
        self._add(document)

    def add_line(self, line: Line, path: str) -> None:
        """Add an entry of evidence as it stands there."""
        document = tantivy.Document()
        document.add_text("path", _safe(path))
        document.add_unsigned("kind", EVIDENCE)
        document.add_unsigned("evidence", line.seq)
        document.add_bytes("stored", stored_line(path, line.line, line.content))
        self._add(document)

    def _add(self, document: tantivy.Document) -> None:
        try:  # without `_disk_errors`, which costs a tenth of adding a record
            self._writer.add_document(document)
        except ValueError as error:
            raise _refused(error) from error

    def number(self, generation: int) -> None:
        """Let the next commit carry this number."""
        self._writer.delete_documents_by_term("path", _NUMBERED)
        document = tantivy.Document()
        document.add_text("path", _NUMBERED)
        document.add_unsigned("kind", GENERATION)
        document.add_bytes("stored", str(generation).encode())
        self._writer.add_document(document)

    def commit(self) -> None:
        """Make everything since the last commit visible."""
        with _disk_errors():
            self._writer.commit()

    def close(self) -> None:
        """Finish merging small segments and let the next writer in."""
        with _disk_errors():
            self._writer.wait_merging_threads()


@contextlib.contextmanager
def _disk_errors() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise _refused(error) from error


def _refused(error: ValueError) -> OSError:
    """What tantivy means: it gives a ValueError for everything, also for a disk that is full."""
    return OSError(f"the index cannot be written: {error}")


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    # Apart, so that `holding` counts neither the words of what was retired nor those of headings, which stand
    # above many entries: a flush, which adds headings, would move every frequency.
    for words in ("words", "above", "past"):
        builder.add_text_field(words, stored=True, tokenizer_name="whitespace", index_option="freq")
    for name in ("path", "facts"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    for number in ("kind", "seq", "evidence"):
        builder.add_unsigned_field(number, indexed=True)
    for moment in ("first", "last"):
        builder.add_integer_field(moment, fast=True)
    builder.add_bytes_field("stored", stored=True)
    return builder.build()


def facts_of(unit: Unit) -> Iterator[str]:
    """What can be asked of a unit: each signature field as it stands, and each seq that it is linked or gave way to."""
    for key, value in unit.fields:
        if len(value) <= _LONGEST_FACT:
            yield f"{key}={value}"
        if key == "links":
            for tie in parse_links(value):
                for seq in tie.seqs[:_LONGEST_RANGE]:
                    yield fact_of(key, seq)
                    if tie.relation:
                        yield fact_of(key, seq, tie.relation)
        elif key == "retired_by":
            yield from (fact_of(key, seq) for seq in parse_seqs(value)[:_LONGEST_RANGE])


def fact_of(key: str, seq: int, relation: str = "") -> str:
    """That a field names a seq; no field's own name begins so."""
    return f"→{key}={seq}:{relation}" if relation else f"→{key}={seq}"


def by_score(match: tuple[float, Record]) -> tuple[float, str, int]:
    """The order of matches: best first, ties by place."""
    return -match[0], match[1].unit.path, match[1].unit.line


def _safe(text: str) -> str:
    """A text that is valid UTF-8, whatever bytes a file name holds."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
