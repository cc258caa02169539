"""The state of one run: what it works on, the steps it has taken, and what it reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from infinimem.config import Settings
from infinimem.errors import Unreadable
from infinimem.model import (
    CURRENT,
    Create,
    Divide,
    Document,
    Entry,
    Extend,
    Join,
    Link,
    Merge,
    Outcome,
    Retire,
    Split,
    Step,
    Summarise,
    Unit,
    Usage,
    path_of,
)
from infinimem.plan import rules
from infinimem.plan.desk import Desk, apply
from infinimem.plan.lexical import Candidate
from infinimem.plan.paper import Plan
from infinimem.search.records import Record, interval, is_about_a_date, is_coming
from infinimem.store.buffer import hold, next_seq, reserve_seqs
from infinimem.store.evidence import read_records
from infinimem.store.read import read_file
from infinimem.text.signature import parse_seqs


class Finder(Protocol):
    """What a flush asks the index."""

    def similar(self, text: str, k: int) -> Sequence[tuple[str, float]]:
        """Topics whose entries are most like a text, best first, with how like they are."""
        ...

    def like(self, text: str, k: int) -> Sequence[Record]:
        """The visible entries, CURRENT's among them, that share most with a text, best first, with their words."""
        ...

    def holding(self, term: str) -> int:
        """How many visible units hold a term."""
        ...

    def visible(self) -> int:
        """How many visible units there are."""
        ...

    def locate(self, seq: int) -> Unit | None:
        """Where a topic shows a seq; where CURRENT holds it if no topic does."""
        ...

    def standing(self, seq: int) -> Sequence[Unit]:
        """Every visible place of a seq, CURRENT's last."""
        ...

    def met(self, seqs: Iterable[int]) -> Collection[int]:
        """Those of some seqs that stand in a topic, or of which evidence says something."""
        ...

    def words(self, seq: int) -> Sequence[str]:
        """The words that evidence has of a seq, oldest first."""
        ...

    def expiring(self) -> Sequence[Unit]:
        """Visible entries that say when they expire."""
        ...

    def with_field(self, key: str, *, retired: bool = False) -> Sequence[Unit]:
        """Visible entries, or on demand retired ones, that have a field of this name; "" = all."""
        ...

    def titled(self, title: str) -> Collection[str]:
        """Topics that show entries with this title; not every one of them where there are very many."""
        ...

    def fate(self, seq: int) -> str:
        """What evidence says of a seq: "" nothing, `kept` its words, `retired` that it left."""
        ...

    def unsettled(self) -> Sequence[tuple[Unit, int]]:
        """Entries of topics that say what they replace, and a seq of that still shown; none that a hand put back."""
        ...

    def smallest(self, k: int) -> Sequence[str]:
        """The ids of the smallest topics of ours."""
        ...

    def topics(self) -> Collection[str]:
        """Every topic id."""
        ...


@dataclass(frozen=True, slots=True)
class Report:
    """What a flush did. `outcomes` are in order; `seqs` left CURRENT, `left` are still in it.

    `settled` is what git merges had left to be done before it.
    `signed` are topics in which bullets that somebody typed became entries.
    `forgotten` are entries that were forgotten before and had come back, `erased` those that a retention rule forgot.
    """

    flushed: bool = False
    due: bool = True
    reason: str = ""
    outcomes: tuple[Outcome, ...] = ()
    seqs: tuple[int, ...] = ()
    left: tuple[int, ...] = ()
    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    retired: tuple[Retire, ...] = ()
    notes: tuple[str, ...] = ()
    more: int = 0
    diff: str = ""
    plan: Plan = field(default_factory=lambda: Plan(()))
    seconds: float = 0.0
    planner: str = "lexical"
    failures: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    settled: tuple[str, ...] = ()
    commit: str = ""
    uncommitted: str = ""
    forgotten: tuple[int, ...] = ()
    signed: tuple[str, ...] = ()
    erased: tuple[int, ...] = ()

    @property
    def skipped(self) -> tuple[Outcome, ...]:
        """The steps that were refused or had gone stale."""
        return tuple(outcome for outcome in self.outcomes if outcome.status == "skipped")

    @property
    def exit_code(self) -> int:
        """0; 4 when the model failed at a step (`failures`); 5 when something was skipped, stayed (`notes`) or
        could not be committed."""
        if self.failures:
            return 4
        return 5 if self.skipped or self.notes or self.uncommitted else 0


@dataclass(frozen=True, slots=True)
class Buffer:
    """CURRENT as a flush saw it: its entries by first seq, and those that are only waiting to be dropped.

    `unseen` is how many more stand in `document` that nobody has looked at.
    """

    document: Document
    entries: Mapping[int, Entry]
    again: tuple[Entry, ...] = ()
    notes: tuple[str, ...] = ()
    recorded: frozenset[int] = frozenset()
    bare: tuple[Entry, ...] = ()
    unseen: int = 0

    @property
    def whole(self) -> frozenset[tuple[int, ...]]:
        """The lines of CURRENT by the seqs that they stand for."""
        return frozenset(entry.seqs for entry in self.entries.values())


@dataclass(slots=True)
class Run:
    """The state of one run: the desk so far, the outcome of each step, and the files it was made from.

    It is `apart` when the index that it asks knows nothing of CURRENT.
    """

    root: Path
    buffer: Buffer
    now: str
    gates: rules.Gates
    desk: Desk
    outcomes: list[Outcome] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)
    originals: dict[str, Document] = field(default_factory=dict)
    dry: bool = False
    apart: bool = False
    by: str = "hand"
    """Who planned it: hand, lexical, model or plan."""
    described: dict[str, tuple[Document, Candidate]] = field(default_factory=dict)
    own: Counter[str] | None = None

    def load(self, topics: Iterable[str]) -> None:
        """Put documents that exist on disk onto the desk."""
        documents = dict(self.desk.documents)
        for topic in topics:
            if topic in documents or topic in self.desk.removed or topic == CURRENT or rules.bad_id(topic):
                continue
            file = read_file(self.root, path_of(topic))
            if file.digest:
                documents[topic] = file.document
                self.digests[topic] = file.digest
                self.originals[topic] = file.document
        self.desk = replace(self.desk, documents=documents)

    def take(self, step: Step) -> Outcome:
        """Carry a step out if no rule forbids it; say what became of it."""
        why = rules.violation(step, self.desk, self.gates)
        later = self.later(step)
        if why:
            outcome = Outcome(step, "skipped", why)
        elif later:
            outcome = Outcome(step, "no-op", later)
        else:
            try:
                self.desk = apply(self.desk, step, self.now)
                outcome = Outcome(step, "executed")
            except Unreadable as error:
                outcome = Outcome(step, "skipped", str(error))
        self.outcomes.append(outcome)
        return outcome

    def later(self, step: Step) -> str:
        """That an entry holds still, until what says that it replaces it has begun; "" where a step need not wait."""
        if not isinstance(step, Retire) or step.why != "superseded":
            return ""
        new = self.desk.buffered(step.by) or self.desk.holding(step.by) or self.desk.gone.get(step.by)
        if new is None or step.seq not in parse_seqs(new.signature.get("supersedes")) or not waits(new.time, self.now):
            return ""
        old = self.desk.buffered(step.seq) or self.desk.holding(step.seq)
        moment = interval(self.now)
        if old is not None and moment is not None and is_about_a_date(old.text, old.time, moment[1]):
            return ""
        return f"it holds until {new.time}, when {step.by} begins; a flush from then on retires it"


def waits(time: str, now: str) -> bool:
    """Whether what begins at a time has not begun yet."""
    moment = interval(now)
    return moment is not None and is_coming(time, moment[1])


def siblings(run: Run, topic: str) -> set[str]:
    """The topics that a split in this run has parted one from: they are not to be merged again at once."""
    done = (outcome.step for outcome in run.outcomes if outcome.status == "executed")
    groups = [{part.topic for part in step.parts} for step in done if isinstance(step, Split)]
    return {name for group in groups if topic in group for name in group if name != topic}


def together(first: Report, second: Report) -> Report:
    """Two portions of one buffer as one report."""
    created = dict.fromkeys([*first.created, *second.created])
    gone = {*first.removed, *second.removed}
    changed = dict.fromkeys([*first.changed, *(topic for topic in second.changed if topic not in created)])
    return replace(
        second,
        flushed=first.flushed or second.flushed,
        reason=first.reason,
        outcomes=(*first.outcomes, *second.outcomes),
        seqs=(*first.seqs, *second.seqs),
        created=tuple(topic for topic in created if topic not in gone),
        changed=tuple(topic for topic in changed if topic not in gone),
        removed=tuple(topic for topic in gone if topic not in created),
        retired=(*first.retired, *second.retired),
        notes=tuple(dict.fromkeys([*first.notes, *second.notes])),
        plan=Plan((*first.plan.steps, *second.plan.steps), (*first.plan.seqs, *second.plan.seqs), first.plan.digest),
        seconds=first.seconds + second.seconds,
        failures=tuple(dict.fromkeys([*first.failures, *second.failures])),
        usage=first.usage + second.usage,
        forgotten=(*first.forgotten, *second.forgotten),
        signed=tuple(dict.fromkeys([*first.signed, *second.signed])),
        erased=(*first.erased, *second.erased),
    )


def for_all(report: Report) -> Report:
    """The estimate of a first portion, with the cost of those that would follow at the same rate."""
    if not report.more or not report.plan.seqs:
        return report
    share = 1 + report.more / len(report.plan.seqs)
    used = report.usage
    return replace(
        report, usage=Usage(*(round(share * part) for part in (used.calls, used.tokens_in, used.tokens_out)))
    )


def seqs_of(entries: Iterable[Entry]) -> tuple[int, ...]:
    """All seqs of some entries, in order."""
    return tuple(seq for entry in entries for seq in entry.seqs)


def begin(root: Path, buffer: Buffer, settings: Settings, at: str) -> Run:
    """A run with every buffered entry waiting."""
    gates = rules.Gates(
        settings.number("gate.supersede"),
        settings.number("gate.join"),
        settings.number("gate.split"),
        settings.number("gate.merge"),
        settings.number("gate.link"),
    )
    return Run(root, buffer, at, gates, Desk(dict(buffer.entries)))


def with_seqs(run: Run, step: Step) -> Step:
    """A division with seqs for its pieces: taken from the library for good, or in a dry run only looked at."""
    if not isinstance(step, Divide):
        return step
    with hold(run.root, reading=run.dry) as note:
        taken = [seq for parts in run.desk.made.values() for part in parts for seq in part.seqs]
        first = max([next_seq(run.root, note), *(seq + 1 for seq in taken)])
        if not run.dry:
            reserve_seqs(run.root, note, first + len(step.texts))
    return replace(step, seqs=tuple(range(first, first + len(step.texts))))


def spare_for(run: Run, seq: int) -> None:
    """Have the verbatim members of a joined line at hand before one of them is retired."""
    line = run.desk.buffered(seq) or run.desk.holding(seq)
    if line is None or len(line.seqs) < 2:
        return
    records = read_records(run.root, line.seqs)
    found = {one: record.newest for one, record in records.items() if record.newest is not None}
    run.desk = replace(run.desk, spare={**run.desk.spare, **found})


def prepare(run: Run, step: Step, index: Finder) -> None:
    """Have on the desk what a step names."""
    match step:
        case Create() | Extend() | Summarise():
            run.load([step.topic])
        case Split():
            run.load([step.topic, *(part.topic for part in step.parts)])
        case Merge():
            run.load(step.topics)
        case Retire():
            for seq in (step.seq, step.by):
                run.load(unit.topic for unit in index.standing(seq))
            spare_for(run, step.seq)
        case Link():
            for end in (step.source, step.to):
                seqs = parse_seqs(end)
                run.load(unit.topic for unit in index.standing(seqs[0])) if seqs else run.load([end])
        case Divide():
            run.load(unit.topic for unit in index.standing(step.seq))
        case Join():
            run.load(unit.topic for seq in step.seqs for unit in index.standing(seq))


def topics_in(step: Step) -> tuple[str, ...]:
    """The topics that a step changes."""
    match step:
        case Create() | Extend() | Summarise():
            return (step.topic,)
        case Split():
            return (step.topic, *(part.topic for part in step.parts))
        case Merge():
            return step.topics
        case _:
            return ()
