"""The Python API: a library as an object. The command line is a thin layer over it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infinimem.errors import BadInput, NoLibrary, UnknownSeq, UnknownTopic
from infinimem.model import CURRENT, Filter, Hit, Step, Unit, path_of
from infinimem.store.append import Appended, append
from infinimem.store.buffer import noted_at
from infinimem.store.drafts import draft_of, drafts_of
from infinimem.store.layout import EVIDENCE, create_library, hide_state, is_library
from infinimem.text.signature import parse_seqs

if TYPE_CHECKING:
    import threading

    from infinimem.ask import Answer, Round
    from infinimem.check import Finding
    from infinimem.config import Settings
    from infinimem.consolidate.extract import Extracted
    from infinimem.consolidate.run import Report
    from infinimem.consolidate.thinking import Thinker
    from infinimem.evolve.interpretation import Outline, Strayed, Version
    from infinimem.evolve.reconsolidate import Learned
    from infinimem.evolve.review import Edit, Review
    from infinimem.evolve.timeline import Held
    from infinimem.exchange.export.load import Loaded
    from infinimem.exchange.export.run import Exported
    from infinimem.exchange.facts import Extracting
    from infinimem.exchange.revised import Remembered
    from infinimem.exchange.run import Imported
    from infinimem.forgetting.forget import Forgotten
    from infinimem.git.chronicle import Row
    from infinimem.git.history import Comparison
    from infinimem.grep import Match
    from infinimem.llm.meter import Metered
    from infinimem.llm.port import Model
    from infinimem.plan.paper import Plan
    from infinimem.readers.evidence import Switches
    from infinimem.reading import Page, Status, Trace
    from infinimem.saved import Edited
    from infinimem.search.index import CatalogRow, Index
    from infinimem.search.past import PastIndex
    from infinimem.stats import Spent, Stats

MOST_HITS = 10_000
PENDING = "a git merge has not been looked at across files yet; --fix does that (some of what follows may come of it)"
READERS = ("auto", "agentic", "hybrid", "summary", "bm25")
NO_MODEL_TO_EXTRACT = (
    "no model is configured, so nothing was written; set INFINIMEM_MODEL, and OPENAI_BASE_URL or OPENAI_API_KEY, "
    "or write without extracting"
)


def utc_now() -> datetime:
    """The clock, where none is given."""
    return datetime.now(UTC)


class Library:
    """A memory folder. Open one with `Library.open`.

    All methods may be used by many processes at once, and by many threads on one object: each thread has an index
    of its own over the same files. From async code, call them with `asyncio.to_thread`.
    """

    def __init__(
        self,
        root: Path,
        clock: Callable[[], datetime] = utc_now,
        model: Model | None = None,
        audience: str = "",
        keep_index: bool = True,
        settings: Settings | None = None,
    ) -> None:
        """`settings` are kept to, whatever their files come to say; without them the files are followed."""
        self.root = root
        self.clock = clock
        self.audience = audience
        self._keeps_index = keep_index
        self._model = model
        self._kept = settings
        self._read: tuple[object, Settings] | None = None
        self._replayed: tuple[object, PastIndex] | None = None

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        create: bool = False,
        clock: Callable[[], datetime] = utc_now,
        model: Model | None = None,
        audience: str = "",
        keep_index: bool = True,
    ) -> Library:
        """The library in a folder. With `create` it is made if missing, without it `open` raises `NoLibrary`.

        `clock` gives the current time as an aware datetime; `model` answers instead of the configured one.
        `audience` is who reads, `mcp`, `export` or `model`: what the setting `access` keeps from it is shown by no
        method. Without one everything is shown. With `keep_index` false no index is made on disk of a small library
        that has none: for one visit among thousands.
        """
        if audience:
            from infinimem.config import AUDIENCES

            if audience not in AUDIENCES:
                raise BadInput(f"there is no audience {audience!r}; use {' or '.join(AUDIENCES)}")
        root = Path(path).expanduser().absolute()
        if create:
            create_library(root)
        elif not is_library(root):
            raise NoLibrary(f"{root} is not a library; make it one with: infinimem init '{root}'")
        else:
            hide_state(root)
        return cls(root, clock, model, audience, keep_index)

    def __enter__(self) -> Library:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of every thread's index; a method called later opens a new one."""
        self.__dict__.pop("_indexes", None)
        self._replayed = None

    @property
    def settings(self) -> Settings:
        """The effective settings, as their files are now; raises `BadInput` for one that cannot be understood."""
        if self._kept is not None:
            return self._kept
        from infinimem.config import load_settings, looks_of

        looks, read = looks_of(self.root), self._read
        if read is None or read[0] != looks:  # a rule of access holds from when it is saved
            self._read = read = (looks, load_settings(self.root))
        return read[1]

    def _require_library(self) -> None:
        """Raise `NoLibrary` where the library that was opened is gone."""
        if not is_library(self.root):
            raise NoLibrary(f"{self.root} is no library any more: it was moved or deleted; open it where it is now")

    # access

    def place(self) -> Path:
        """The folder that is read: the library's own, or what its audience may see of it, up to date.

        Whatever reads files for an audience, such as an export, reads them here and nowhere else.
        """
        self._require_library()
        if not self.is_restricted:
            return self.root
        from infinimem.access.view import view

        return view(self.root, self.audience, self.settings.access(self.audience))

    def place_for_model(self) -> Path:
        """The folder in which a model reads for this library's audience: what both may see, up to date."""
        access = self.settings.access("model")
        if not access or self.audience == "model":
            return self.place()
        from infinimem.access.sight import MODEL
        from infinimem.access.view import view

        return view(self.place(), MODEL, access)

    @property
    def is_restricted(self) -> bool:
        """Whether a rule keeps anything from this library's audience."""
        return bool(self.audience and self.settings.access(self.audience))

    def owner_only(self, what: str) -> None:
        """Refuse what would tell an audience more than it may see. Raises `BadInput`."""
        self._require_library()
        require(
            not self.is_restricted,
            f"{what} is for the library's owner: the setting access keeps something from {self.audience}",
        )

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
        """Like `write`, and also says whether anything was stored: a repeated `key` stores nothing. Raises the same.

        `too_new` names the seqs that an entry says it replaces and that were given to no earlier one: no flush does it.
        """
        self._require_library()
        shared = {
            "time": time,
            "source": source,
            "supersedes": supersedes,
            "observed": observed or noted_at(self.clock()),
        }
        if isinstance(entries, str | Mapping):
            entries = [entries]
        if not isinstance(entries, Iterable) or isinstance(entries, bytes):
            raise BadInput(f"write takes a text, a mapping or several of them, not {type(entries).__name__}")
        if not isinstance(key, str) or not isinstance(meta or {}, Mapping):
            raise BadInput("`key` is a text and `meta` a mapping; nothing was written")
        drafts = drafts_of(entries, shared, meta or {}, key)
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
        from infinimem.consolidate.extract import Extracted, entry_values, extract, recalled, told, turns_of
        from infinimem.consolidate.thinking import Thinker
        from infinimem.store.buffer import find_key

        model = self.model_for("write")
        if model is None:
            raise BadInput(NO_MODEL_TO_EXTRACT)
        if isinstance(entries, Iterable) and not isinstance(entries, str | Mapping | bytes):
            entries = list(entries)
        observed = observed or noted_at(self.clock())
        written = self.write_all(
            entries, source=source, time=time, observed=observed, supersedes=supersedes, meta=meta, key=key
        )
        if written.differs or not written.seqs:
            return Extracted(written)
        second_key = f"{key}:extract" if key else ""
        earlier = {} if written.stored else find_key(self.root, second_key)
        if earlier:
            index = self.index()
            seen = {seq: text for seq, text in earlier.items() if not self.is_restricted or index.locate(seq)}
            return Extracted(written, tuple(earlier), recalled(index, seen))
        shared = {"source": source, "time": time, "observed": observed}
        several = [entries] if isinstance(entries, str | Mapping) else entries
        drafts = [draft_of(entry, shared, meta or {}, "", "") for entry in several]
        turns = turns_of(*told(written.seqs, drafts, self.settings.access("model")))
        thinker = Thinker(model, self.settings.count("model.context"))
        found = extract(written, turns, thinker, self.settings.text("language"), progress)
        values = [entry_values(fact, turns) for fact in found.facts]
        return replace(found, seqs=tuple(self.write(values, meta=meta, key=second_key)))

    # exchange

    def import_(
        self,
        paths: str | Path | Iterable[str | Path],
        *,
        form: str = "",
        branches: bool = False,
        again: bool = False,
        dry_run: bool = False,
        extract: bool = False,
        flush: bool = False,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> Imported:
        """Bring in what others wrote: exports, session logs, notes; only messages that are not in memory yet.

        Each path is a file, a zip archive or a folder. `form` names the format where its content does not tell;
        `branches` also brings in what an edit or a new answer took out of sight; with `dry_run` all is only read and
        counted. What was forgotten here stays so, unless it is to come in `again`. Entries carry the time and the
        speaker of their message and an `id`, by which the next import knows them. With `extract` a model takes facts
        out of everything in the files that none were taken from yet; with `flush` what comes in is sorted into topics
        on the way. Raises `BadInput` where there is nothing to read; what is wrong inside a file stands in
        `.problems`.
        """
        from infinimem.exchange import own
        from infinimem.exchange.place import place
        from infinimem.exchange.run import Hooks, import_files, nothing

        several = [paths] if isinstance(paths, str | Path) else list(paths)
        require(bool(several), "import takes the path of a file or a folder")
        observed = noted_at(self.clock())
        places = [Path(path).expanduser() for path in several]
        hooks = Hooks(
            load=lambda path: own.load(self.root, path, self.clock(), dry_run=dry_run, again=again),
            place=lambda placed: self._as_seen(
                place(self.root, self._finder, self.settings, self.clock(), placed), planned=False
            ),
            remembered=self._remembered,
            extracting=self._extracting(observed) if extract and not dry_run else None,
            flush=(lambda: self.flush(progress=progress)) if flush and not dry_run else None,
        )
        return import_files(
            self.root, places, observed, hooks, form=form, branches=branches, again=again, dry_run=dry_run,
            progress=progress or nothing,
        )  # fmt: skip

    def _remembered(self) -> Remembered:
        """What memory shows of notes that were imported."""
        from infinimem.exchange.revised import FILE, Remembered, remembered

        if not is_library(self.root):
            return Remembered({})
        index = self._finder().index
        return remembered(index.having("source", FILE), lambda seq: [unit.text for unit in index.replaced_by(seq)])

    def _extracting(self, observed: str) -> Extracting:
        """An import that asks a model. Raises `BadInput` where none is configured."""
        from infinimem.consolidate.thinking import Thinker
        from infinimem.exchange.facts import Extracting

        model = self.model_for("import")
        if model is None:
            raise BadInput(NO_MODEL_TO_EXTRACT)
        thinker = Thinker(model, self.settings.count("model.context"))
        language = self.settings.text("language")
        access = self.settings.access("model")
        return Extracting(self.root, thinker, language, lambda facts: self.write(facts, observed=observed), access)

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
        Entries written meanwhile stay in CURRENT. What is refused or stale is listed in the report; nothing is lost,
        also where a model fails (`.failures`). `progress` is told the stage, how much of it is done, and of how much.
        Raises `BadInput`, `BadPlan`, and `NeedsAttention` where CURRENT has conflict markers or a flush is at work.
        """
        from infinimem.consolidate.flush import flush, is_large, waiting
        from infinimem.consolidate.run import for_all, together

        if planner not in ("auto", "lexical", "model"):
            raise BadInput(f"there is no planner {planner!r}; use auto, lexical or model")
        if isinstance(plan, str | Path):
            plan = plan_in(plan)
        if plan is not None and self.is_restricted:
            plan = self._with_real_names(plan)
        if estimate:
            dry_run = True
        settled = () if dry_run else self.finish_merges()
        thinker = self._thinker(planner, estimate=estimate) if plan is None else None

        # of a large CURRENT each portion would be read into the index once more
        apart = plan is None and thinker is None and not dry_run and is_large(self.root)

        def portion(*, following: bool = False) -> Report:
            return flush(
                self.root,
                self._topic_finder if apart else self._finder,
                self.settings,
                self.clock(),
                plan=plan,
                thinker=thinker,
                dry_run=dry_run,
                if_due=if_due,
                rewrite=rewrite,
                splitting=split,
                merging=merge,
                following=following,
                apart=apart,
                lessons=self._lessons,
                progress=progress or (lambda stage, done, total: None),
            )

        report = portion()
        if estimate:
            return self._as_seen(for_all(report), planned=plan is not None)
        while report.more and report.seqs and not dry_run:
            before = len(report.seqs)
            if_due = False
            report = together(report, portion(following=True))
            if len(report.seqs) == before:  # what is left cannot be placed
                break
        if report.more and report.seqs and not dry_run:
            report = replace(report, left=waiting(self.root))
        report = self._committed(replace(report, settled=settled), dry_run=dry_run)
        return self._as_seen(report, planned=plan is not None)

    def _lessons(self) -> list[Step]:
        """What `reconsolidate` would do now, where a flush is to do it by the way."""
        if not self.settings.truth("links.in_flush"):
            return []
        from infinimem.evolve.reconsolidate import learn
        from infinimem.store.usage import read_recalls

        index = self._finder().index
        return [lesson.step for lesson in learn(read_recalls(self.root), index, self.settings, self.clock())]

    def finish_merges(self) -> tuple[str, ...]:
        """Do what git merges of this library have left to be done; gives a line for each thing done.

        Every command that changes topics does it first. Raises `NeedsAttention` while git is in the middle of one.
        """
        from infinimem.git.run import work_tree

        if work_tree(self.root) is None:
            return ()
        from infinimem.consolidate.due import timestamp
        from infinimem.git.settle import refuse_under_way, settle

        refuse_under_way(self.root)
        settled = settle(self.root, timestamp(self.clock()))
        if settled.paths and self.settings.truth("git.commit"):
            from infinimem.git.commits import commit_paths

            commit_paths(self.root, settled.paths, "memory: a merge finished", settled.said)
        return settled.said

    def merge_is_pending(self) -> bool:
        """Whether a git merge has left something that `finish_merges` would do."""
        from infinimem.git.run import work_tree

        if work_tree(self.root) is None:
            return False
        from infinimem.git.settle import is_pending

        return is_pending(self.root)

    def _committed(self, report: Report, *, dry_run: bool, undone: bool = False) -> Report:
        """The report of a run that is also a git commit, where the settings ask for one."""
        if dry_run or not (report.flushed or report.signed) or not self.settings.truth("git.commit"):
            return report
        from infinimem.git.commits import commit_flush

        commit = commit_flush(self.root, report, undone=undone)
        return replace(report, commit=commit.id, uncommitted=commit.why_not)

    def _with_real_names(self, plan: Plan) -> Plan:
        """A plan that an audience made, with the names that topics have in the library."""
        from infinimem.access.view import names_in
        from infinimem.plan.paper import with_topics

        return with_topics(plan, names_in(self.place()))

    def _as_seen(self, report: Report, *, planned: bool) -> Report:
        """A report as the audience may see it: numbers, and topics that it knows; no words, titles or diff.

        Of a plan that it gave itself (`planned`) it is told what was skipped, and why as far as that tells nothing.
        """
        if not self.is_restricted:
            return report
        from infinimem.access.view import names_in, untelling_outcomes
        from infinimem.plan.paper import Plan

        place = self.place()
        other = {real: shown for shown, real in names_in(place).items()}
        access = self.settings.access(self.audience)

        def seen(topics: Iterable[str]) -> tuple[str, ...]:
            names = (other.get(topic, topic) for topic in topics)
            return tuple(name for name in names if (place / path_of(name)).is_file())

        return replace(
            report,
            outcomes=untelling_outcomes(place, access, report.skipped, other) if planned else (),
            created=seen(report.created),
            changed=seen(report.changed),
            signed=seen(report.signed),
            removed=(),
            notes=(),
            failures=tuple("the model failed" for _ in report.failures[:1]),
            diff="",
            plan=Plan(()),
            settled=(),
            uncommitted="",
        )

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

    def plan_template(self, *, most_tokens: int = 0, filter: Filter = Filter()) -> str:
        """The task of planning the next flush, as a prompt: answer it and give the answer to `flush(plan=…)`.

        With `most_tokens` only CURRENT's first entries, about as many tokens of them; what does not pass the filter is
        not shown. The plan is for what is shown: the rest waits.
        """
        from infinimem.consolidate.template import plan_template
        from infinimem.indexing import IndexFinder
        from infinimem.readers.memory import catalog, open_memory

        index = self.index()
        memory = open_memory(
            index.root, index, filter, self.settings.text("language"), self.clock, self.settings.retention
        )
        rows = [(row.topic, row.tokens, row.summary) for row in catalog(memory) if not row.guest]
        passes = None if filter == Filter() else lambda units: index.passing(units, filter)
        return plan_template(index.root, IndexFinder(index.root, index), rows, self.settings, most_tokens, passes)

    def undo(self, *, dry_run: bool = False) -> Report:
        """Revert the last flush (or split or merge by hand) as one transaction; `.reason` says why not."""
        from infinimem.consolidate.undo import undo

        self.owner_only("undo")
        settled = () if dry_run else self.finish_merges()
        report = undo(self.root, self._finder, self.clock(), dry_run=dry_run)
        return self._committed(replace(report, settled=settled), dry_run=dry_run, undone=True)

    def split(self, topic: str, *, dry_run: bool = False) -> Report:
        """Split a topic document by its subjects, whatever its size, if it has several. Raises `UnknownTopic`."""
        from infinimem.consolidate.flush import run_steps, split_by_hand

        self.owner_only("split")
        settled = () if dry_run else self.finish_merges()
        steps = split_by_hand(self._require(topic))
        report = run_steps(self.root, self._finder, self.settings, self.clock(), steps, dry_run=dry_run)
        return self._committed(replace(report, settled=settled), dry_run=dry_run)

    def merge(self, topics: Sequence[str], *, into: str = "", dry_run: bool = False) -> Report:
        """Merge two or more topic documents into `into` (default: the first). Raises `UnknownTopic`, `BadInput`."""
        from infinimem.consolidate.flush import run_steps
        from infinimem.model import Merge

        self.owner_only("merge")
        settled = () if dry_run else self.finish_merges()
        topics = [self._require(topic) for topic in topics]
        target = self._require(into) if into else topics[0]
        names = tuple(dict.fromkeys([target, *topics]))
        if len(names) < 2:
            raise BadInput("a merge needs two topics")
        steps: tuple[Step, ...] = (Merge(names, target, ""),)
        report = run_steps(
            self.root, self._finder, self.settings, self.clock(), lambda run, index: steps, dry_run=dry_run
        )
        return self._committed(replace(report, settled=settled), dry_run=dry_run)

    def divide(self, seq: int, texts: Sequence[str] = (), *, dry_run: bool = False) -> Report:
        """Divide an entry that holds several facts into lines with seqs of their own; it stays in evidence.

        `texts` are exact pieces of its words, in order; without them, its sentences. Raises `UnknownSeq`.
        """
        from infinimem.consolidate.flush import run_steps
        from infinimem.model import Divide
        from infinimem.plan.lexical import pieces_of

        self.owner_only("split")
        settled = () if dry_run else self.finish_merges()
        here = self.trace(seq).here
        pieces = tuple(texts) or tuple(pieces_of(here.text if here is not None else ""))
        steps: tuple[Step, ...] = (Divide(seq, pieces),)
        report = run_steps(
            self.root, self._finder, self.settings, self.clock(), lambda run, index: steps, dry_run=dry_run
        )
        return self._committed(replace(report, settled=settled), dry_run=dry_run)

    def join(self, seqs: Sequence[int], text: str = "", *, dry_run: bool = False) -> Report:
        """Make entries that say the same one line: in the words of `text`, which says what they say and no more.

        Without `text` the first entry that says all that the others say stays, and they are its duplicates.
        Raises `UnknownSeq`, and `BadInput` for fewer than two.
        """
        from infinimem.consolidate.flush import run_steps
        from infinimem.evolve.redundant import joining

        self.owner_only("merge")
        seqs = list(dict.fromkeys(seqs))
        require(len(seqs) > 1, "it takes two entries to make one")
        traces = [self.trace(seq) for seq in seqs]
        texts = {trace.seq: trace.here.text if trace.here is not None else "" for trace in traces}
        settled = () if dry_run else self.finish_merges()
        steps = joining(texts, text)
        report = run_steps(
            self.root, self._finder, self.settings, self.clock(), lambda run, index: steps, dry_run=dry_run
        )
        return self._committed(replace(report, settled=settled), dry_run=dry_run)

    def edited_since(self, path: str, before: bytes) -> Edited:
        """What a hand has done to the entries of a file that held `before`: reworded, marked, deleted or moved."""
        from infinimem.saved import edited_between
        from infinimem.store.buffer import read_if_there

        self.owner_only("what was edited")
        return edited_between(path, before, read_if_there(self.root / path), self.index())

    def recover(self, seqs: Iterable[int]) -> list[int]:
        """Bring back entries that neither CURRENT nor a topic shows any more: saved over, or deleted.

        Gives their seqs. Raises `UnknownSeq` when neither the log of writes nor evidence holds one of them.
        """
        from infinimem.check import recover

        self.owner_only("recover")
        require(not isinstance(seqs, str | int), "recover takes several seqs, as a list")
        self.finish_merges()
        return recover(self.root, list(seqs))

    def forget(
        self,
        seqs: Iterable[int] = (),
        *,
        where: Mapping[str, str] | None = None,
        pattern: str = "",
        ignore_case: bool = False,
        copies: bool = False,
        dry_run: bool = False,
    ) -> Forgotten:
        """Erase entries, with what was made from them, from every file of the library; evidence keeps that it was done.

        Which: `seqs`, or all whose fields are `where` and whose words match `pattern`. With `copies` also the entries
        that repeat or quote them. Afterwards every file is searched: `.remains` is what still holds the words.
        It cannot be undone. Raises `BadInput`, `UnknownSeq`, `BadPattern`; then nothing was changed.
        """
        from infinimem.forgetting.forget import forget
        from infinimem.forgetting.survey import Wanted
        from infinimem.grep import compile_pattern

        self.owner_only("forget")
        require(not isinstance(seqs, str | int), "forget takes several seqs, as a list")
        numbers = tuple(seqs)
        require(not (numbers and (where or pattern)), "name seqs, or say where and what they are, not both")
        compiled = compile_pattern(pattern, ignore_case=ignore_case) if pattern else None
        wanted = Wanted(numbers, tuple((where or {}).items()), compiled, copies)
        if not dry_run:
            self.finish_merges()
        self.close()
        return forget(self.root, wanted, self.clock(), dry_run=dry_run)

    # exchange

    def export(
        self,
        format: str = "",
        out: str | Path | None = None,
        *,
        filter: Filter = Filter(),
        history: bool = False,
        progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
    ) -> Exported:
        """Write the library, or what a filter lets out, as `jsonl` (restores it), `md` (to read) or `html` (a site).

        Without a format the name of `out` says it; without `out` it goes to standard output. `history` also shows
        in `md` what was replaced. With `as_of` or `known_at` in the filter, what held or was known then goes out, as
        `md` or `html`. What the access rules deny to `export` never goes out, and only an earlier export is
        ever overwritten. Raises `BadInput`, `StorageFailed`.
        """
        from infinimem.exchange.export.run import export, format_for

        self.owner_only("export")
        place = None if out is None else Path(out).expanduser()
        if filter.topic:
            filter = replace(filter, topic=self._require(filter.topic))
        access = self.settings.access("export")
        form = format or format_for(place)
        past = self._past(filter)
        return export(self.root, form, place, filter, access, history=history, past=past, progress=progress)

    def load_export(self, path: str | Path) -> Loaded:
        """Load what `export` wrote as JSON lines: restored where this library is empty, else added with new seqs.

        One transaction; loading it again adds nothing. Raises `BadInput` where the file is no whole export.
        """
        from infinimem.exchange.export.load import load_export

        return load_export(self.root, Path(path).expanduser(), self.clock())

    # evolve

    def review(self, most: int = 20) -> Review:
        """What waits for a person: proposals that a gate held back, and the `most` newest edits with their verdicts."""
        from infinimem.evolve.review import review

        self.owner_only("review")
        return review(self.root, self._finder(), self.settings, self.clock(), most)

    def take(self, numbers: Sequence[int], *, dry_run: bool = False) -> Report:
        """Carry out proposals, by their numbers in `review`: the rules hold, the gate does not. Can be undone.

        Raises `BadInput` for a number that there is not.
        """
        from infinimem.evolve.review import take

        self.owner_only("review")
        settled = () if dry_run else self.finish_merges()
        report = take(self.root, self._finder, self.settings, self.clock(), numbers, dry_run=dry_run)
        return self._committed(replace(report, settled=settled), dry_run=dry_run)

    def drop(self, numbers: Sequence[int]) -> int:
        """Forget proposals, by their numbers in `review`; gives how many. Raises `BadInput` for another number."""
        from infinimem.evolve.review import drop

        self.owner_only("review")
        return drop(self.root, numbers)

    def feedback(self, verdict: str) -> tuple[int, ...]:
        """Say that the last ask was answered `good` or `bad`, for `reconsolidate`; gives the seqs that it showed.

        Raises `NotFound` where nothing was asked yet, `BadInput` for another verdict.
        """
        from infinimem.evolve.recall import note_verdict

        self.owner_only("feedback")
        return note_verdict(self.root, verdict, self.clock())

    def reconsolidate(self, *, dry_run: bool = False) -> Learned:
        """Link entries that answered different questions together, unlink those that no longer do; can be undone."""
        from infinimem.evolve.reconsolidate import reconsolidate

        self.owner_only("reconsolidate")
        settled = () if dry_run else self.finish_merges()
        learned = reconsolidate(self.root, self._finder, self.index(), self.settings, self.clock(), dry_run=dry_run)
        return replace(learned, report=self._committed(replace(learned.report, settled=settled), dry_run=dry_run))

    def timeline(self, about: str | int, k: int = 10) -> list[Held]:
        """When statements held, in order of time: those of a topic, a seq's whole story, or what a query finds.

        What they replaced and what replaced them is among them, wherever it stands. `k` is how many a query finds.
        Raises `UnknownSeq`, `BadInput`.
        """
        from infinimem.evolve.timeline import seqs_of_topic, timeline
        from infinimem.reading import resolve_topic
        from infinimem.search.records import moment_of

        index = self.index()
        seqs = list(parse_seqs(str(about).strip().removeprefix("#")))
        if not seqs:
            require(isinstance(about, str) and bool(about.strip()), "a timeline is about a topic, a seq or a query")
            topic = resolve_topic(self.place(), str(about), index.named_before)
            if topic is not None:
                seqs = seqs_of_topic(index.entries((), Filter(topic=topic)))
            else:
                seqs = [seq for hit in self.search(str(about), k, filter=Filter(retired=True)) for seq in hit.seqs]
        found = timeline(self.place(), index, seqs, moment_of(self.clock()))
        if not found and parse_seqs(str(about)):
            raise UnknownSeq(f"no entry has seq {about}; `infinimem status` names the newest")
        return found

    def judge(self, edit: str, verdict: str) -> Edit:
        """Record in evidence that an edit (by its name in `review`) was `valid` or `harmful`. Raises `BadInput`."""
        from infinimem.evolve.review import judge

        self.owner_only("review")
        return judge(self.root, self._finder(), self.clock(), edit, verdict)

    # read

    def search(self, query: str, k: int = 10, *, filter: Filter = Filter()) -> list[Hit]:
        """The entries most like a query, at most `k`, best first, one hit an entry (a joined one with all its seqs).

        Raises `UnknownTopic`, and `BadInput` for a date in the filter that is none.
        """
        require(isinstance(query, str), "a query is a text")
        require(isinstance(k, int) and k > 0, f"k is how many are wanted, a whole number above 0, not {k!r}")
        k = min(k, MOST_HITS)
        if filter.topic:
            filter = replace(filter, topic=self._require(filter.topic))
        from infinimem.readers.memory import marked_hits, open_memory

        index = self.index_at(filter)
        hits = index.search(query, k, filter)
        memory = open_memory(
            self.place(), index, filter, self.settings.text("language"), self.clock, self.settings.retention
        )
        return marked_hits(memory, hits)

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
        else agentic where there is a model and bm25 where not. `k` is pieces of evidence, 0 for the setting `ask.k`.
        `switches` leaves parts of a reader out. `hear` is told
        the answer piece by piece, `watch` each round of tool calls. Raises `BadInput`, `UnknownTopic`; a model that
        fails is no error: `.failed` says why, and the evidence is there.
        """
        require(isinstance(question, str), "a question is a text")
        require(isinstance(k, int) and k >= 0, f"k is pieces of evidence, a whole number (0: as set), not {k!r}")
        if filter.topic:
            filter = replace(filter, topic=self._require(filter.topic))
        k = min(k or self.settings.count("ask.k"), MOST_HITS)
        from infinimem.readers.memory import led_to_now, open_memory

        reader, model = self._reader(reader)
        if model is None:
            from infinimem.ask import ask
            from infinimem.readers.links import with_both_sides

            language = self.settings.text("language")
            memory = open_memory(
                self.place(), self.index_at(filter), filter, language, self.clock, self.settings.retention
            )
            shown = ask(memory.index, question, k, filter, lambda hits: led_to_now(memory, hits))
            return self._noted(question, filter, with_both_sides(memory, shown))
        from infinimem.readers.agentic import Limits
        from infinimem.readers.evidence import Switches
        from infinimem.readers.links import Walk
        from infinimem.readers.run import answer

        place = self.place_for_model()
        memory = open_memory(
            place,
            self.index_at(filter, place),
            filter,
            self.settings.text("language"),
            self.clock,
            self.settings.retention,
        )
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
        if place != self.place():
            from infinimem.access.sight import under_real_names
            from infinimem.access.view import names_in

            found = under_real_names(found, names_in(place))
            found = replace(found, withheld=self._withheld(question, k, filter, place))
        return self._noted(question, filter, found)

    def _withheld(self, question: str, k: int, filter: Filter, seen: Path) -> int:
        """How many of the best `k` hits that this audience may see are kept from the model, which reads in `seen`."""
        from infinimem.access.view import rules_in

        rules, _ = rules_in(seen, self.settings.access("model"))
        index = self.index_at(filter)
        hits = () if index.missing(question, retired=filter.retired) else index.search(question, k, filter)
        return sum(not rules.hidden.isdisjoint(hit.unit.seqs) for hit in hits)

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

    def disputes(
        self, units: Sequence[Unit] | None = None, *, filter: Filter = Filter(), look: bool = True
    ) -> list[tuple[Unit, Unit]]:
        """Pairs of entries that contradict each other, by `contradicts` links: of some units, or all there are.

        Without a `look` for changed files it answers from what the search of just now has read.
        """
        from infinimem.readers.links import disputes
        from infinimem.readers.memory import open_memory

        index = self.index_at(filter) if look else self._past(filter) or self._as_it_was("index") or self.index()
        memory = open_memory(
            self.place(), index, filter, self.settings.text("language"), self.clock, self.settings.retention
        )
        return disputes(memory, units)

    def catalog(self, *, filter: Filter = Filter()) -> list[CatalogRow]:
        """Every topic document with its summary and size in estimated tokens, sorted by id; CURRENT is not among them.

        With `as_of` or `known_at` in the filter: the topics that had entries then, in the words of those.
        """
        past = self._past(filter)
        if past is not None:
            from infinimem.evolve.lives import past_catalog

            return past_catalog(past)
        return [row for row in self.index().catalog() if row.topic != CURRENT]

    def topics_like(self, text: str, k: int, *, filter: Filter = Filter()) -> list[str]:
        """The ids of the `k` topics whose entries share most with a text, best first; with a date, of those then."""
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

        `context` is lines before and after, `limit` matches (0: all). With `retired`, evidence is searched too.
        Raises `BadPattern`, `UnknownTopic`.
        """
        from infinimem.grep import compile_pattern, grep
        from infinimem.store.read import list_files

        compiled = compile_pattern(pattern, ignore_case=ignore_case)
        place = self.place()
        if topic:
            paths = [path_of(self._require(topic))]
        else:
            paths = [path for path in list_files(place) if retired or not path.startswith("evidence/")]
        return list(grep(place, paths, compiled, context=context, limit=limit))

    def read(self, topic: str, first: int = 1, last: int = 0, *, heading: str = "") -> Page:
        """Lines `first` to `last` (1-based, inclusive; 0 = to the end) of a topic, or the block of a heading.

        `evidence/2026-05` is read like a topic. Raises `UnknownTopic`, and `BadInput` for lines or a heading it lacks.
        """
        from infinimem.reading import is_evidence, read_page

        place = self.place()
        name = topic if is_evidence(place, topic) else self._require(topic)
        return read_page(place, name, first, last, heading)

    def summaries(self, topic: str) -> list[Version]:
        """The versions of a topic's summary that are remembered without git, oldest first. Raises `UnknownTopic`."""
        from infinimem.evolve.interpretation import summary_versions
        from infinimem.store.read import read_file

        self.owner_only("the history of summaries")
        return summary_versions(self.root, read_file(self.root, path_of(self._require(topic))).document)

    def strayed_summaries(self) -> list[Strayed]:
        """Summaries that no longer say what they first said, though their pages do; farthest first."""
        from infinimem.evolve.interpretation import strayed

        self.owner_only("the history of summaries")
        return strayed(self.root)

    def outlines(self, topic: str) -> list[Outline]:
        """The versions of a topic's headings that the library remembers without git, oldest first."""
        from infinimem.evolve.interpretation import heading_versions
        from infinimem.store.read import read_file

        self.owner_only("the history of headings")
        return heading_versions(self.root, read_file(self.root, path_of(self._require(topic))).document)

    def trace(self, seq: int) -> Trace:
        """Where a seq stands, its words in evidence, what it replaced and what replaced it. Raises `UnknownSeq`."""
        from infinimem.reading import trace

        require(isinstance(seq, int) and 0 < seq < 10**18, "a seq is a whole number above 0")
        index = self.index()
        found = trace(index.root, index, seq)
        if not found:
            raise UnknownSeq(f"no entry has seq {seq}; `infinimem status` names the newest")
        return found

    def status(self) -> Status:
        """Sizes (estimated tokens), ages (seconds) and health at a glance."""
        from infinimem.reading import status

        index = self.index()
        return replace(status(index.root, index, self.settings, self.clock()), root=str(self.root))

    def history(self, topic: str = "", *, seq: int = 0, most: int = 20) -> list[Row]:
        """What happened to the library, a topic or an entry, at most `most` rows, newest first: from git where it is.

        Else from evidence, the topics' own logs and the undo journal. Raises `UnknownTopic`, `UnknownSeq`.
        """
        from infinimem.git.history import read_history

        self.owner_only("history")

        def read(topic: str) -> list[Row]:
            rows = read_history(self.root, lambda: self._finder().standing, topic=topic, seq=seq, most=most)
            if seq and not rows:
                raise UnknownSeq(f"no entry has seq {seq}; `infinimem status` names the newest")
            return rows

        try:
            return read(self._require(topic) if topic else "")
        except UnknownTopic:
            found = read(topic)  # one that is gone has a history all the same
            if not found:
                raise
            return found

    def diff(self, since: str = "", topic: str = "") -> Comparison:
        """What changed since a git revision, a date, or the last commit; without git, since before the last flush.

        Told by entry in `.differences`, as a unified diff in `.text`. Raises `BadInput`, `UnknownTopic`.
        """
        from infinimem.git.history import read_diff

        self.owner_only("diff")

        def read(topic: str) -> Comparison:
            return read_diff(self.root, lambda: self._finder().standing, since=since, topic=topic)

        try:
            return read(self._require(topic) if topic else "")
        except UnknownTopic:
            found = read(topic)  # one that is gone is among the differences
            if not found.differences:
                raise
            return found

    def stats(self) -> Stats:
        """Sizes (estimated tokens, bytes on disk), growth by month, sources, what was retired and why."""
        from infinimem.stats import stats

        index = self.index()
        return replace(stats(index.root, index), root=str(self.root))

    def usage(self) -> tuple[Spent, ...]:
        """What models were asked and what it took (tokens, seconds, price), by month, command, step and model."""
        from infinimem.stats import usage

        return usage(self.root, self.settings.number("model.price_in"), self.settings.number("model.price_out"))

    def check(self, *, fix: bool = False) -> list[Finding]:
        """Every invariant over the whole library, worst first; with `fix`, what is safe is repaired and marked so."""
        from infinimem.check import Finding, check
        from infinimem.model import Problem

        self.owner_only("check")
        settled = self.finish_merges() if fix else ()
        done = [Finding(Problem(EVIDENCE, 0, line, False, "merge"), fixable=True, fixed=True) for line in settled]
        if not fix and self.merge_is_pending():
            done = [Finding(Problem(EVIDENCE, 0, PENDING, False, "merge"), fixable=True)]
        findings = [*done, *check(self.root, self.clock(), fix=fix)]
        repairs = [(one.problem.path, one.problem.message) for one in findings if one.fixed]
        if not repairs or not self.settings.truth("git.commit"):
            return findings
        from infinimem.git.commits import commit_repairs

        why_not = commit_repairs(self.root, repairs).why_not
        return [
            *findings,
            *([Finding(Problem(EVIDENCE, 0, why_not, blocking=False, code="uncommitted"))] * bool(why_not)),
        ]

    def file_of(self, topic: str) -> str:
        """The library-relative path of a topic's file, of CURRENT's for `CURRENT`. Raises `UnknownTopic`."""
        return path_of(self._require(topic))

    def check_file(self, path: str) -> list[Finding]:
        """What is wrong in one file (a library-relative path), without reading the others."""
        from infinimem.saved import check_saved

        self.owner_only("check")
        return check_saved(self.root, path, self.index())

    def sign(self, path: str) -> list[int]:
        """Sign the plain bullets that a person typed into one file of ours; gives their seqs.

        Raises `ChangedOnDisk` when the file is saved meanwhile, `NeedsAttention` while a flush is at work.
        """
        from infinimem.saved import sign_saved

        return sign_saved(self.root, path, self.clock())

    def check_preview(self) -> tuple[list[Finding], str]:
        """The findings of `check`, and what `check(fix=True)` would change as a unified diff; nothing is written."""
        from infinimem.check import preview

        self.owner_only("check")
        return preview(self.root, self.clock())

    def index(self, *, progress: Callable[[str, int, int], None] | None = None, settled: bool = False) -> Index:
        """This thread's index of what may be read, up to date with the files; `progress` is told how many are read.

        An `Index` belongs to the thread that asked for it: no other may use it. Its `root` is the folder of `place`.
        A settled one has every change on disk; otherwise what was just written may be in memory only.
        """
        return self._fresh("index", self.place(), progress, settled=settled)

    def _fresh(
        self,
        name: str,
        place: Path,
        progress: Callable[[str, int, int], None] | None = None,
        *,
        settled: bool = False,
        without: Collection[str] = (),
    ) -> Index:
        """One of this thread's indexes, over a folder, brought up to date."""
        from infinimem.indexing import fresh_index

        known = self._as_it_was(name)
        known = known if known is not None and known.root == place else None
        language, kept = self.settings.text("language"), self._keeps_index
        fresh = fresh_index(place, known, language, progress, settled=settled, kept=kept, without=without)
        setattr(self._indexes_here(), name, fresh)
        return fresh

    def _as_it_was(self, name: str) -> Index | None:
        """One of this thread's indexes as the last call left it; None before the first."""
        found: Index | None = getattr(self._indexes_here(), name, None)
        return found

    def _indexes_here(self) -> threading.local:
        mine: threading.local | None = self.__dict__.get("_indexes")
        if mine is None:
            import threading  # here, because importing it costs `write` two milliseconds

            mine = self.__dict__.setdefault("_indexes", threading.local())  # one, whichever thread comes first
        return mine

    def index_at(self, filter: Filter, place: Path | None = None) -> Index:
        """The index that a filter asks, of `place` or `place_for_model`: of now, or of what there was at its dates."""
        own = self.place()
        if place is None or place == own:
            return self._past(filter, own) or self._fresh("index", own)
        return self._past(filter, place) or self._fresh("model", place)

    def _past(self, filter: Filter, place: Path | None = None) -> PastIndex | None:
        """What there was at the dates of a filter, replayed again where a file has changed; None where it has none."""
        if not (filter.as_of or filter.known_at):
            return None
        from infinimem.evolve.lives import past_index
        from infinimem.store.read import list_files

        place = self.place() if place is None else place
        key = (place, filter.as_of, filter.known_at, list_files(place))
        if self._replayed is None or self._replayed[0] != key:
            self._replayed = key, past_index(place, self.settings.text("language"), filter)
        return self._replayed[1]

    def _topic_finder(self) -> Any:
        """The index of topics and evidence; where CURRENT has been read into it, it is taken out."""
        from infinimem.indexing import IndexFinder

        name = "whole" if self.is_restricted else "index"
        return IndexFinder(self.root, self._fresh(name, self.root, settled=True, without=(path_of(CURRENT),)))

    def _finder(self) -> Any:
        """The index of everything, for what changes the library and tells nobody of it."""
        from infinimem.indexing import IndexFinder

        index = self._fresh("whole", self.root, settled=True) if self.is_restricted else self.index(settled=True)
        return IndexFinder(self.root, index)

    def _require(self, topic: str) -> str:
        """The id of a topic that exists; a former id or a path will do. Raises `UnknownTopic`."""
        require(isinstance(topic, str), "a topic is named by its id, a text")
        from infinimem.reading import resolve_topic

        found = resolve_topic(self.place(), topic, lambda name: self.index().named_before(name))
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


__all__ = ["CURRENT", "Library"]
