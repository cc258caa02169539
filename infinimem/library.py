"""The Python API: a library as an object. The command line is a thin layer over it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infinimem.errors import BadInput, NoLibrary, UnknownSeq, UnknownTopic
from infinimem.model import CURRENT, Filter, Hit, Signature, Step, path_of
from infinimem.store.buffer import Appended, Draft, append
from infinimem.store.layout import create_library, is_library
from infinimem.text.signature import KEY_ALONE, parse_seqs, render_seqs

if TYPE_CHECKING:
    from infinimem.ask import Answer, Round
    from infinimem.check import Finding
    from infinimem.config import Settings
    from infinimem.consolidate.extract import Extracted
    from infinimem.consolidate.run import Report
    from infinimem.consolidate.thinking import Thinker
    from infinimem.evolve.reconsolidate import Learned
    from infinimem.evolve.review import Edit, Review
    from infinimem.evolve.timeline import Held
    from infinimem.grep import Match
    from infinimem.llm.meter import Metered
    from infinimem.llm.port import Model
    from infinimem.plan.paper import Plan
    from infinimem.readers.evidence import Switches
    from infinimem.reading import Page, Status, Trace
    from infinimem.search.index import CatalogRow, Index
    from infinimem.search.past import PastIndex
    from infinimem.stats import Spent, Stats

TIME = re.compile(
    r"(?!0000)[0-9]{4}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12][0-9]|3[01])"
    r"(?:[T ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]+)?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?)?)?"
)
ORDER = ("time", "source", "supersedes", "links", "expires")
MOST_HITS = 10_000
READERS = ("auto", "agentic", "hybrid", "summary", "bm25")
NO_MODEL_TO_EXTRACT = (
    "no model is configured, so nothing was written; set INFINIMEM_MODEL, and OPENAI_BASE_URL or OPENAI_API_KEY, "
    "or write without extracting"
)
RESERVED = {"seq", "rev", "event", "observed", "key"}


def utc_now() -> datetime:
    """The clock, where none is given."""
    return datetime.now(UTC)


class Library:
    """A memory folder. Open one with `Library.open`; all methods may be used by many processes at once."""

    def __init__(self, root: Path, clock: Callable[[], datetime] = utc_now, model: Model | None = None) -> None:
        self.root = root
        self.clock = clock
        self._model = model
        self._index: Index | None = None
        self._settings: Settings | None = None
        self._replayed: tuple[object, PastIndex] | None = None

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        create: bool = False,
        clock: Callable[[], datetime] = utc_now,
        model: Model | None = None,
    ) -> Library:
        """The library in a folder. With `create` it is made if missing, else `NoLibrary` is raised.

        `clock` gives the current time as an aware datetime; `model` answers instead of the configured one.
        """
        root = Path(path).expanduser().absolute()
        if create:
            create_library(root)
        elif not is_library(root):
            raise NoLibrary(f"{root} is not a library; make it one with: infinimem init '{root}'")
        return cls(root, clock, model)

    def __enter__(self) -> Library:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the index."""
        self._index = self._replayed = None

    @property
    def settings(self) -> Settings:
        """The effective settings; raises `BadInput` for a setting that cannot be understood."""
        if self._settings is None:
            from infinimem.config import load_settings

            self._settings = load_settings(self.root)
        return self._settings

    def model_for(self, command: str) -> Metered | None:
        """The model that a command may ask, its calls bounded and noted; None when there is none."""
        from infinimem.llm.connect import connect, metered

        if self._model is not None:
            return metered(self._model, self.settings, self.root, command, self.clock)
        return connect(self.settings, self.root, command, self.clock)

    # write

    def write(
        self,
        entries: str | Mapping[str, Any] | Iterable[str | Mapping[str, Any]],
        *,
        source: str = "",
        time: str = "",
        observed: str = "",
        supersedes: Iterable[int] | int | str = (),
        meta: Mapping[str, str] | None = None,
        key: str = "",
    ) -> list[int]:
        """Append entries to CURRENT; gives their seqs in order, and they are on disk.

        `entries` is a text, a mapping, or several of either; a mapping has `text` and any signature fields
        (`time`, `source`, `supersedes`, `label`, …), which override the arguments. One lock, one write and
        one fsync for all. Raises `BadInput` (nothing is written) or `StorageFailed` (the state is as before).
        """
        return list(
            self.write_all(
                entries,
                source=source,
                time=time,
                observed=observed,
                supersedes=supersedes,
                meta=meta,
                key=key,
            ).seqs
        )

    def write_all(
        self,
        entries: str | Mapping[str, Any] | Iterable[str | Mapping[str, Any]],
        *,
        source: str = "",
        time: str = "",
        observed: str = "",
        supersedes: Iterable[int] | int | str = (),
        meta: Mapping[str, str] | None = None,
        key: str = "",
    ) -> Appended:
        """Like `write`, and also says whether anything was stored (a repeated `key` stores nothing)."""
        shared = {
            "time": time,
            "source": source,
            "supersedes": supersedes,
            "observed": observed or self.clock().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        if isinstance(entries, str | Mapping):
            entries = [entries]
        if not isinstance(entries, Iterable) or isinstance(entries, bytes):
            raise BadInput(f"write takes a text, a mapping or several of them, not {type(entries).__name__}")
        if not isinstance(key, str) or not isinstance(meta or {}, Mapping):
            raise BadInput("`key` is a text and `meta` a mapping; nothing was written")
        drafts = [
            draft_of(entry, shared, meta or {}, key, f"entry {number}") for number, entry in enumerate(entries, 1)
        ]
        if not drafts:
            return Appended((), stored=False)
        return append(self.root, drafts, key)

    def extract(
        self,
        entries: str | Mapping[str, Any] | Iterable[str | Mapping[str, Any]],
        *,
        source: str = "",
        time: str = "",
        observed: str = "",
        supersedes: Iterable[int] | int | str = (),
        meta: Mapping[str, str] | None = None,
        key: str = "",
        progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
    ) -> Extracted:
        """Write entries as `write` does, then have a model take from them what they say, as entries of their own.

        The words are on disk before a model is asked. What it proposes is stored with `source=AI`, a time and `links`
        to where it comes from, if its quote stands there and it says nothing more. Raises `BadInput` (nothing is
        written), also where no model is configured; a model that fails is no error: `.failures` says why.
        """
        from infinimem.consolidate.extract import Extracted, entry_values, extract, recalled, turns_of
        from infinimem.consolidate.thinking import Thinker
        from infinimem.store.buffer import find_key

        model = self.model_for("write")
        if model is None:
            raise BadInput(NO_MODEL_TO_EXTRACT)
        if isinstance(entries, Iterable) and not isinstance(entries, str | Mapping | bytes):
            entries = list(entries)
        observed = observed or self.clock().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        written = self.write_all(
            entries, source=source, time=time, observed=observed, supersedes=supersedes, meta=meta, key=key
        )
        if written.differs or not written.seqs:
            return Extracted(written)
        second_key = f"{key}:extract" if key else ""
        earlier = {} if written.stored else find_key(self.root, second_key)
        if earlier:
            return Extracted(written, tuple(earlier), recalled(self.index(), earlier))
        shared = {"source": source, "time": time, "observed": observed}
        several = [entries] if isinstance(entries, str | Mapping) else entries
        turns = turns_of(written.seqs, [draft_of(entry, shared, meta or {}, "", "") for entry in several])
        thinker = Thinker(model, self.settings.count("model.context"))
        found = extract(written, turns, thinker, self.settings.text("language"), progress)
        values = [entry_values(fact, turns) for fact in found.facts]
        return replace(found, seqs=tuple(self.write(values, meta=meta, key=second_key)))

    # consolidate

    def flush(
        self,
        planner: str = "auto",
        *,
        plan: Plan | str | Path | None = None,
        dry_run: bool = False,
        if_due: bool = False,
        rewrite: bool = True,
        split: bool = True,
        merge: bool = True,
        estimate: bool = False,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> Report:
        """Consolidate CURRENT into topic documents; one atomic transaction for every 500 entries.

        `planner` is `model`, `lexical`, or `auto`: the model where one is configured. With `estimate` nothing is
        asked or changed, and the report's `usage` says what a model would cost.

        `plan` is a plan, or the path of a plan file (`-` for standard input), to carry out instead of planning.
        Entries written meanwhile stay in CURRENT. What is refused or stale is listed in the report; nothing is lost.
        """
        from infinimem.consolidate.flush import flush
        from infinimem.consolidate.run import for_all, together

        if planner not in ("auto", "lexical", "model"):
            raise BadInput(f"there is no planner {planner!r}; use auto, lexical or model")
        if isinstance(plan, str | Path):
            plan = plan_in(plan)
        if estimate:
            dry_run = True
        thinker = self._thinker(planner, estimate=estimate) if plan is None else None

        def portion() -> Report:
            return flush(
                self.root,
                self._finder,
                self.settings,
                self.clock(),
                plan=plan,
                thinker=thinker,
                dry_run=dry_run,
                if_due=if_due,
                rewrite=rewrite,
                splitting=split,
                merging=merge,
                progress=progress or (lambda stage, done, total: None),
            )

        report = portion()
        if estimate:
            return for_all(report)
        while report.more and report.seqs and not dry_run:
            before = len(report.seqs)
            if_due = False
            report = together(report, portion())
            if len(report.seqs) == before:  # what is left cannot be placed
                break
        return report

    def _thinker(self, planner: str, *, estimate: bool) -> Thinker | None:
        """Who plans a flush: a model at work, or None for the lexical planner. Raises `BadInput`."""
        from infinimem.llm.connect import is_configured

        wanted = planner if planner != "auto" else self.settings.text("flush.planner")
        if wanted == "lexical" or (wanted == "auto" and self._model is None and not is_configured(self.settings)):
            return None
        from infinimem.consolidate.thinking import Estimating, Thinker

        context = self.settings.count("model.context")
        if estimate:
            return Thinker(Estimating(), context)
        model = self.model_for("flush")
        if model is None:
            raise BadInput("no model is configured; set INFINIMEM_MODEL, and OPENAI_BASE_URL or OPENAI_API_KEY")
        return Thinker(model, context)

    def plan_template(self) -> str:
        """The task of planning the next flush, as a prompt: answer it and give the answer to `flush(plan=…)`."""
        from infinimem.consolidate.template import plan_template

        rows = [(row.topic, row.tokens, row.summary) for row in self.catalog() if not row.guest]
        return plan_template(self.root, self._finder(), rows, self.settings)

    def undo(self, *, dry_run: bool = False) -> Report:
        """Revert the last flush (or split or merge by hand) as one transaction."""
        from infinimem.consolidate.undo import undo

        return undo(self.root, self._finder, self.clock(), dry_run=dry_run)

    def split(self, topic: str, *, dry_run: bool = False) -> Report:
        """Split a topic document by its subjects, whatever its size. Raises `UnknownTopic`."""
        from infinimem.consolidate.flush import run_steps, split_by_hand

        topic = self._require(topic)
        return run_steps(self.root, self._finder, self.settings, self.clock(), split_by_hand(topic), dry_run=dry_run)

    def merge(self, topics: Sequence[str], *, into: str = "", dry_run: bool = False) -> Report:
        """Merge topic documents into `into` (default: the first). Raises `UnknownTopic`."""
        from infinimem.consolidate.flush import run_steps
        from infinimem.model import Merge

        topics = [self._require(topic) for topic in topics]
        target = self._require(into) if into else topics[0]
        names = tuple(dict.fromkeys([target, *topics]))
        if len(names) < 2:
            raise BadInput("a merge needs two topics")
        steps: tuple[Step, ...] = (Merge(names, target, ""),)
        return run_steps(
            self.root, self._finder, self.settings, self.clock(), lambda run, index: steps, dry_run=dry_run
        )

    def divide(self, seq: int, texts: Sequence[str] = (), *, dry_run: bool = False) -> Report:
        """Divide an entry that holds several facts into lines with seqs of their own; it stays in evidence.

        `texts` are exact pieces of its words, in order; without them, its sentences.
        """
        from infinimem.consolidate.flush import run_steps
        from infinimem.model import Divide
        from infinimem.plan.lexical import pieces_of

        here = self.trace(seq).here
        pieces = tuple(texts) or tuple(pieces_of(here.text if here is not None else ""))
        steps: tuple[Step, ...] = (Divide(seq, pieces),)
        return run_steps(
            self.root, self._finder, self.settings, self.clock(), lambda run, index: steps, dry_run=dry_run
        )

    def join(self, seqs: Sequence[int], text: str = "", *, dry_run: bool = False) -> Report:
        """Make entries that say the same one line: in the words of `text`, which says what they say and no more.

        Without `text` the first entry that says all that the others say stays, and they are its duplicates.
        """
        from infinimem.consolidate.flush import run_steps
        from infinimem.evolve.redundant import joining

        seqs = list(dict.fromkeys(seqs))
        require(len(seqs) > 1, "it takes two entries to make one")
        traces = [self.trace(seq) for seq in seqs]
        texts = {trace.seq: trace.here.text if trace.here is not None else "" for trace in traces}
        steps = joining(texts, text)
        return run_steps(
            self.root, self._finder, self.settings, self.clock(), lambda run, index: steps, dry_run=dry_run
        )

    def recover(self, seqs: Iterable[int]) -> list[int]:
        """Bring back entries that neither CURRENT nor a topic shows any more: saved over, or deleted.

        Raises `UnknownSeq` when neither the log of writes nor evidence holds one of them.
        """
        from infinimem.check import recover

        require(not isinstance(seqs, str | int), "recover takes several seqs, as a list")
        return recover(self.root, list(seqs))

    # evolve

    def review(self, most: int = 20) -> Review:
        """What waits for a person: proposals that a gate held back, and the `most` newest edits with their verdicts."""
        from infinimem.evolve.review import review

        return review(self.root, self._finder(), self.settings, self.clock(), most)

    def take(self, numbers: Sequence[int], *, dry_run: bool = False) -> Report:
        """Carry out proposals, by their numbers in `review`: the rules hold, the gate does not. Can be undone."""
        from infinimem.evolve.review import take

        return take(self.root, self._finder, self.settings, self.clock(), numbers, dry_run=dry_run)

    def drop(self, numbers: Sequence[int]) -> int:
        """Forget proposals, by their numbers in `review`; gives how many."""
        from infinimem.evolve.review import drop

        return drop(self.root, numbers)

    def feedback(self, verdict: str) -> tuple[int, ...]:
        """Say that the last ask was answered `good` or `bad`, for `reconsolidate`; gives the seqs that it showed.

        Raises `NotFound` where nothing was asked yet.
        """
        from infinimem.evolve.recall import note_verdict

        return note_verdict(self.root, verdict, self.clock())

    def reconsolidate(self, *, dry_run: bool = False) -> Learned:
        """Link entries that answered different questions together, unlink those that no longer do; can be undone."""
        from infinimem.evolve.reconsolidate import reconsolidate

        return reconsolidate(self.root, self._finder, self.index(), self.settings, self.clock(), dry_run=dry_run)

    def timeline(self, about: str | int, k: int = 10) -> list[Held]:
        """When statements held, in order of time: those of a topic, a seq's whole story, or what a query finds.

        What they replaced and what replaced them is among them, wherever it stands.
        """
        from infinimem.evolve.timeline import seqs_of_topic, timeline
        from infinimem.reading import resolve_topic

        index = self.index()
        seqs = list(parse_seqs(str(about).strip().removeprefix("#")))
        if not seqs:
            require(isinstance(about, str) and bool(about.strip()), "a timeline is about a topic, a seq or a query")
            topic = resolve_topic(self.root, str(about), lambda: self.index().catalog())
            if topic is not None:
                seqs = seqs_of_topic(index.entries((), Filter(topic=topic)))
            else:
                seqs = [seq for hit in self.search(str(about), k, filter=Filter(retired=True)) for seq in hit.seqs]
        found = timeline(self.root, index, seqs)
        if not found and parse_seqs(str(about)):
            raise UnknownSeq(f"no entry has seq {about}; `infinimem status` names the newest")
        return found

    def judge(self, edit: str, verdict: str) -> Edit:
        """Record in evidence that an edit (by its name in `review`) was `valid` or `harmful`. Raises `BadInput`."""
        from infinimem.evolve.review import judge

        return judge(self.root, self._finder(), self.clock(), edit, verdict)

    # read

    def search(self, query: str, k: int = 10, *, filter: Filter = Filter()) -> list[Hit]:
        """The entries most like a query, best first, one hit an entry (a joined one with all its seqs)."""
        require(isinstance(query, str), "a query is a text")
        k = min(k, MOST_HITS)
        if filter.topic:
            filter = replace(filter, topic=self._require(filter.topic))
        return self.index_at(filter).search(query, k, filter)

    def ask(
        self,
        question: str,
        *,
        reader: str = "auto",
        k: int = 0,
        filter: Filter = Filter(),
        switches: Switches | None = None,
        hear: Callable[[str], None] | None = None,
        watch: Callable[[Round], None] = lambda round: None,
    ) -> Answer:
        """What memory says to a question, with its evidence; `.found` is False for *not in memory*.

        `reader` is `agentic`, `hybrid`, `summary`, `bm25` (no model, no written answer), or `auto`: as configured,
        else agentic where there is a model and bm25 where not. `switches` leaves parts of a reader out. `hear` is told
        the answer piece by piece, `watch` each round of tool calls. Raises `BadInput`; a model that fails is no
        error: `.failed` says why, and the evidence is there.
        """
        require(isinstance(question, str), "a question is a text")
        if filter.topic:
            filter = replace(filter, topic=self._require(filter.topic))
        k = min(k or self.settings.count("ask.k"), MOST_HITS)
        from infinimem.readers.memory import open_memory

        reader, model = self._reader(reader)
        if model is None:
            from infinimem.ask import ask
            from infinimem.readers.links import with_both_sides

            memory = open_memory(self.root, self.index_at(filter), filter, self.settings.text("language"))
            return self._noted(question, filter, with_both_sides(memory, ask(memory.index, question, k, filter)))
        from infinimem.readers.agentic import Limits
        from infinimem.readers.evidence import Switches
        from infinimem.readers.links import Walk
        from infinimem.readers.run import answer

        memory = open_memory(self.root, self.index_at(filter), filter, self.settings.text("language"))
        count = self.settings.count
        limits = Limits(count("ask.rounds"), count("ask.tokens"), count("model.context"))
        found = answer(
            memory,
            question,
            model,
            reader=reader,
            k=k,
            limits=limits,
            switches=switches or Switches(),
            walk=Walk(*(count(f"links.{name}") for name in ("hops", "anchors", "candidates", "kept"))),
            hear=hear,
            watch=watch,
        )
        return self._noted(question, filter, found)

    def _noted(self, question: str, filter: Filter, answer: Answer) -> Answer:
        """The answer, once the log of recalls says what it showed; what is asked of the past teaches nothing."""
        if self.settings.text("ask.notes") == "yes" and not (filter.as_of or filter.known_at or filter.retired):
            from infinimem.evolve.recall import note_ask

            note_ask(self.root, question, answer, self.settings.text("language"), self.clock())
        return answer

    def _reader(self, reader: str) -> tuple[str, Metered | None]:
        """Who reads, and the model that it asks; None for bm25. Raises `BadInput`."""
        if reader not in READERS:
            raise BadInput(f"there is no reader {reader!r}; use {', '.join(READERS[:-1])} or {READERS[-1]}")
        wanted = reader if reader != "auto" else self.settings.text("ask.reader")
        model = None if wanted == "bm25" else self.model_for("ask")
        if model is None and wanted not in ("auto", "bm25"):
            raise BadInput("no model is configured; set INFINIMEM_MODEL, and OPENAI_BASE_URL or OPENAI_API_KEY")
        return ("agentic" if wanted == "auto" else wanted), model

    def catalog(self, *, filter: Filter = Filter()) -> list[CatalogRow]:
        """Every topic document with its summary, sorted by id; CURRENT is not among them.

        With `as_of` or `known_at` in the filter: the topics that had entries then, in the words of those.
        """
        past = self._past(filter)
        if past is not None:
            from infinimem.evolve.lives import past_catalog

            return past_catalog(past)
        return [row for row in self.index().catalog() if row.topic != CURRENT]

    def topics_like(self, text: str, k: int, *, filter: Filter = Filter()) -> list[str]:
        """The topics whose entries share most with a text, best first; those of then with a date in the filter."""
        past = self._past(filter)
        if past is None:
            return [match.topic for match in self.index().similar(text, k)]
        return list(dict.fromkeys(past.home(hit.unit) for hit in past.search(text, 10 * k)))[:k]

    def grep(
        self,
        pattern: str,
        topic: str = "",
        *,
        ignore_case: bool = False,
        context: int = 0,
        limit: int = 0,
        retired: bool = False,
    ) -> list[Match]:
        """The lines that match a regular expression (RE2 syntax, linear time), in CURRENT and the topics.

        With `retired`, evidence is searched too. Raises `BadPattern`, `UnknownTopic`.
        """
        from infinimem.grep import compile_pattern, grep
        from infinimem.store.read import list_files

        compiled = compile_pattern(pattern, ignore_case=ignore_case)
        if topic:
            self._require(topic)
            paths = [path_of(topic)]
        else:
            paths = [path for path in list_files(self.root) if retired or not path.startswith("evidence/")]
        return list(grep(self.root, paths, compiled, context=context, limit=limit))

    def read(self, topic: str, first: int = 1, last: int = 0, *, heading: str = "") -> Page:
        """Lines `first` to `last` (1-based, inclusive; 0 = to the end) of a topic, or the block of a heading."""
        from infinimem.reading import is_evidence, read_page

        name = topic if is_evidence(self.root, topic) else self._require(topic)
        return read_page(self.root, name, first, last, heading)

    def trace(self, seq: int) -> Trace:
        """Where a seq stands, its words in evidence, what it replaced and what replaced it."""
        from infinimem.reading import trace

        require(isinstance(seq, int) and 0 < seq < 10**18, "a seq is a whole number above 0")
        found = trace(self.root, self.index(), seq)
        if not found:
            raise UnknownSeq(f"no entry has seq {seq}; `infinimem status` names the newest")
        return found

    def status(self) -> Status:
        """Sizes, ages and health at a glance."""
        from infinimem.reading import status

        return status(self.root, self.index(), self.settings, self.clock())

    def stats(self) -> Stats:
        """Sizes, growth by month, entries by source, what was retired and why: the library in figures."""
        from infinimem.stats import stats

        return stats(self.root, self.index())

    def usage(self) -> tuple[Spent, ...]:
        """What models were asked and what it took, by month, command, step and model."""
        from infinimem.stats import usage

        return usage(self.root, self.settings.number("model.price_in"), self.settings.number("model.price_out"))

    def check(self, *, fix: bool = False) -> list[Finding]:
        """Every invariant over the whole library; with `fix`, what is safe is repaired and marked so."""
        from infinimem.check import check

        return check(self.root, self.clock(), fix=fix)

    def index(self, *, progress: Callable[[str, int, int], None] | None = None) -> Index:
        """The index, brought up to date with the files; `progress` is told how many of them are read."""
        from infinimem.indexing import fresh_index

        self._index = fresh_index(self.root, self._index, self.settings.text("language"), progress)
        return self._index

    def index_at(self, filter: Filter) -> Index:
        """The index that a filter asks: of now, or of what there was at its dates."""
        return self._past(filter) or self.index()

    def _past(self, filter: Filter) -> PastIndex | None:
        """What there was at the dates of a filter, replayed again where a file has changed; None where it has none."""
        if not (filter.as_of or filter.known_at):
            return None
        from infinimem.evolve.lives import past_index
        from infinimem.store.read import list_files

        key = (filter.as_of, filter.known_at, list_files(self.root))
        if self._replayed is None or self._replayed[0] != key:
            self._replayed = key, past_index(self.root, self.settings.text("language"), filter)
        return self._replayed[1]

    def _finder(self) -> Any:
        from infinimem.indexing import IndexFinder

        return IndexFinder(self.root, self.index())

    def _require(self, topic: str) -> str:
        """The id of a topic that exists; a former id or a path will do. Raises `UnknownTopic`."""
        require(isinstance(topic, str), "a topic is named by its id, a text")
        from infinimem.reading import resolve_topic

        found = resolve_topic(self.root, topic, lambda: self.index().catalog())
        if found is None:
            import difflib

            near = difflib.get_close_matches(topic, [row.topic for row in self.catalog()], 1, 0.4)
            raise UnknownTopic(
                f"there is no topic {topic!r}" + (f"; did you mean {near[0]}?" if near else "; see: infinimem catalog")
            )
        return found


def require(holds: bool, message: str) -> None:
    """Raise `BadInput` unless a condition holds: the edge of the API checks types once."""
    if not holds:
        raise BadInput(message)


def plan_in(place: str | Path) -> Plan:
    """The plan in a file, or on standard input for `-`. Raises `BadInput`, `BadPlan`."""
    from infinimem.plan.paper import parse_plan

    is_piped = str(place) == "-"
    try:
        text = sys.stdin.read() if is_piped else Path(place).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise BadInput(f"{place} cannot be read: {reason}") from error
    return parse_plan(text, "<stdin>" if is_piped else str(place))


def draft_of(
    entry: str | Mapping[str, Any], shared: Mapping[str, Any], meta: Mapping[str, str], key: str, where: str
) -> Draft:
    """One entry as signature fields and text, everything checked. Raises `BadInput` naming `where`."""
    given: dict[Any, Any] = dict(entry) if isinstance(entry, Mapping) else {"text": entry}
    text = given.pop("text", None)
    if not isinstance(text, str) or not text.strip():
        raise BadInput(f"{where} has no text; nothing was written")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadInput(f"{where} is not valid Unicode (character {error.start}); nothing was written") from error
    fields = {**shared, **meta, **given}
    observed = fields.pop("observed", "")
    if key:
        fields["key"] = key
    chosen: list[tuple[str, str]] = []
    for name in sorted(fields, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER)):
        value = field_value(name, fields[name], where, own=name == "key" and bool(key))
        if value:
            chosen.append((name, value))
    chosen.append(("observed", checked_time("observed", str(observed), where)))
    return Signature((), tuple(chosen)), text


def field_value(name: str, value: Any, where: str, *, own: bool = False) -> str:
    """A signature field's value as text; "" for none."""
    if not isinstance(name, str) or not KEY_ALONE.fullmatch(name):
        raise BadInput(f"{where}: {name!r} is no field name (letters, digits, _ . -); nothing was written")
    if name in RESERVED and not own:
        raise BadInput(f"{where}: {name} cannot be given; nothing was written")
    if value is None or value == "":
        return ""
    if name in ("supersedes",):
        return seqs_value(name, value, where)
    if name in ("time", "expires"):
        return checked_time(name, str(value), where)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple) and all(isinstance(one, str | int) for one in value):
        return "+".join(str(one) for one in value)
    if isinstance(value, list | dict | tuple):
        import json

        try:
            value = json.dumps(value, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise BadInput(f"{where}: {name} cannot be stored ({error}); nothing was written") from error
    if isinstance(value, float) and value != value:
        raise BadInput(f"{where}: {name} is not a number; nothing was written")
    text = str(value)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadInput(f"{where}: {name} is not valid Unicode; nothing was written") from error
    return text


def seqs_value(name: str, value: Any, where: str) -> str:
    """Seqs given as a number, a text or a list."""
    several = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
    pieces: list[Any] = list(value) if several else [value]
    if not pieces:
        return ""
    seqs: list[int] = []
    for piece in pieces:
        found = parse_seqs(str(piece).strip())
        if not found or isinstance(piece, bool):
            raise BadInput(f"{where}: {name} is a seq such as 12 or 12-15+18, not {piece!r}; nothing was written")
        seqs.extend(found)
    return render_seqs(dict.fromkeys(seqs))


def checked_time(name: str, value: str, where: str) -> str:
    """An ISO 8601 date, possibly partial, that exists in the calendar."""
    text = value.strip()
    if text in ("", "empty"):
        return ""
    match = TIME.fullmatch(text)
    if match and len(text) >= 10:
        try:
            datetime.fromisoformat(text.replace(" ", "T", 1))
        except ValueError:
            match = None
    if match is None:
        raise BadInput(
            f"{where}: {name} is a date such as 2026, 2026-05, 2026-05-01 or 2026-05-01T09:00, "
            f"not {value!r}; nothing was written"
        )
    return text.replace(" ", "T", 1)


__all__ = ["CURRENT", "Library"]
