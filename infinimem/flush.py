"""Consolidation: CURRENT's entries go into topic documents; one function per pass.

    recover, snapshot → rewrite → route → update → split → merge → refresh → commit

A planner proposes steps, `plan.rules` refuses what breaks a rule, `plan.desk` carries out the rest on values,
and one transaction puts the result on disk. What is refused or has gone stale stays where it is and is said.
"""

from __future__ import annotations

import difflib
import re
import time as clock_time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from infinimem.config import Settings
from infinimem.errors import BadPlan, ChangedOnDisk, NeedsAttention, Unreadable
from infinimem.model import (
    CURRENT,
    Change,
    Create,
    Document,
    Entry,
    Extend,
    Join,
    Merge,
    Outcome,
    Retire,
    Signature,
    Span,
    Split,
    Step,
    Summarise,
    Unit,
    path_of,
    topic_of,
)
from infinimem.plan import lexical, rules
from infinimem.plan.desk import Desk, apply, refresh
from infinimem.plan.paper import Plan, to_values
from infinimem.store import transaction
from infinimem.store.buffer import hold, next_seq, note_state, write_log
from infinimem.store.evidence import (
    Record,
    append_to_evidence,
    event_line,
    evidence_conflicts,
    evidence_path,
    read_records,
    retire_line,
)
from infinimem.store.files import digest_of, read_bytes
from infinimem.store.layout import BUFFER, FLUSH_LOCK, LOG, UNDO
from infinimem.store.lock import exclusive
from infinimem.store.read import read_file, read_log
from infinimem.text.document import (
    edit,
    entry_lines,
    parse,
    parse_lines,
    parse_piece,
    render,
    title_of,
    unsigned_entries,
)
from infinimem.text.lines import BOM, ending_of, join_lines, split_lines
from infinimem.text.signature import parse_seqs, render_seqs
from infinimem.text.tokens import estimate

CANDIDATES = 8
ATTEMPTS = 4
PORTION = 500
"""Entries that one transaction takes: a larger buffer goes in several, each seeing the topics of those before."""

DATE = re.compile(r"[0-9]{4}(-[0-9]{2}(-[0-9]{2}(T[0-9:.]+Z?)?)?)?")
SUMMARY_LENGTH = 240


class Finder(Protocol):
    """What a flush asks the index."""

    def similar(self, text: str, k: int) -> Sequence[tuple[str, float, Sequence[Unit]]]:
        """Topics whose entries are most like a text, best first."""
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

    def words(self, seq: int) -> Sequence[str]:
        """The words that evidence has of a seq, oldest first."""
        ...

    def expiring(self) -> Sequence[Unit]:
        """Visible entries that say when they expire."""
        ...

    def fate(self, seq: int) -> str:
        """What evidence says of a seq: "" nothing, `kept` its words, `retired` that it left."""
        ...

    def smallest(self, k: int) -> Sequence[str]:
        """The ids of the smallest topics of ours."""
        ...

    def topics(self) -> Collection[str]:
        """Every topic id."""
        ...


@dataclass(frozen=True, slots=True)
class Report:
    """What a flush did. `outcomes` are in order; `seqs` left CURRENT, `left` are still in it."""

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

    @property
    def skipped(self) -> tuple[Outcome, ...]:
        """The steps that were refused or had gone stale."""
        return tuple(outcome for outcome in self.outcomes if outcome.status == "skipped")

    @property
    def exit_code(self) -> int:
        """0, or 5 when something was skipped or stayed behind (`notes` say what)."""
        return 5 if self.skipped or self.notes else 0


@dataclass(frozen=True, slots=True)
class Buffer:
    """CURRENT as a flush saw it: its entries by first seq, and those that are only waiting to be dropped."""

    document: Document
    entries: Mapping[int, Entry]
    again: tuple[Entry, ...] = ()
    notes: tuple[str, ...] = ()
    recorded: frozenset[int] = frozenset()

    @property
    def whole(self) -> frozenset[tuple[int, ...]]:
        """The lines of CURRENT by the seqs that they stand for."""
        return frozenset(entry.seqs for entry in self.entries.values())


@dataclass(slots=True)
class Run:
    """The state of one run: the desk so far, the outcome of each step, and the files it was made from."""

    root: Path
    buffer: Buffer
    now: str
    gates: rules.Gates
    desk: Desk
    outcomes: list[Outcome] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)
    originals: dict[str, Document] = field(default_factory=dict)

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
        if why:
            outcome = Outcome(step, "skipped", why)
        else:
            try:
                self.desk = apply(self.desk, step, self.now)
                outcome = Outcome(step, "executed")
            except Unreadable as error:
                outcome = Outcome(step, "skipped", str(error))
        self.outcomes.append(outcome)
        return outcome


def is_due(document: Document, settings: Settings, now: datetime) -> str:
    """Why CURRENT is due for a flush; "" when it is not."""
    if not document.entries and not unsigned_entries(document):
        return ""
    tokens = estimate("".join(document.lines))
    if tokens >= settings.count("flush.max_tokens"):
        return f"CURRENT holds {tokens} tokens"
    age = buffer_age(document, now)
    if age >= settings.number("flush.max_age"):
        return f"its oldest entry is {readable_age(age)} old"
    return ""


def buffer_age(document: Document, now: datetime) -> float:
    """Seconds since the oldest entry was written, by its own `observed`; never negative."""
    oldest = min((entry.observed for entry in document.entries if entry.observed), default="")
    try:
        written = datetime.fromisoformat(oldest) if oldest else now
    except ValueError:
        return 0.0
    if written.tzinfo is None:
        written = written.replace(tzinfo=UTC)
    return max(0.0, (now - written).total_seconds())


def readable_age(seconds: float) -> str:
    """`3 h`, `2 days`."""
    for size, name in ((86400, "day"), (3600, "h"), (60, "min")):
        if seconds >= size:
            number = int(seconds // size)
            return f"{number} {name}{'s' if name == 'day' and number > 1 else ''}"
    return f"{int(seconds)} s"


def timestamp(now: datetime) -> str:
    """UTC to the second, as signatures carry it."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def flush(
    root: Path,
    finder: Callable[[], Finder],
    settings: Settings,
    now: datetime,
    *,
    plan: Plan | None = None,
    dry_run: bool = False,
    if_due: bool = False,
    rewrite: bool = True,
    splitting: bool = True,
    merging: bool = True,
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> Report:
    """Consolidate CURRENT. With `plan`, its steps are carried out instead of a planner's.

    Raises `NeedsAttention` when CURRENT itself cannot be understood; whatever concerns only one document
    is skipped and said in the report.
    """
    started = clock_time.monotonic()
    with exclusive(root / FLUSH_LOCK, doing="flush"):
        at = timestamp(now)
        with hold(root) as note:
            if not dry_run and not if_due:
                sign_buffer(root, note, at)
            document = read_file(root, BUFFER).document
        refuse_unreadable(root, document)
        reason = is_due(document, settings, now)
        if if_due:
            if not reason:
                return Report(due=False, reason="not due", left=seqs_of(document.entries))
            with hold(root) as note:
                sign_buffer(root, note, at)
                document = read_file(root, BUFFER).document
        index = finder()
        buffer = read_buffer(root, document, index)
        if plan is not None:
            refuse_other_buffer(plan, buffer)
        if not buffer.entries and not buffer.again and plan is None:
            left = seqs_of(document.entries)
            return Report(reason="" if left else "CURRENT is empty", left=left, notes=buffer.notes)
        more = 0
        if plan is None and len(buffer.entries) > PORTION:
            more = len(buffer.entries) - PORTION
            buffer = replace(buffer, entries=dict(list(buffer.entries.items())[:PORTION]))
        run = begin(root, buffer, settings, at)
        if plan is None:
            plan_lexically(run, index, settings, rewrite, splitting, merging, progress)
        else:
            carry_out(run, plan.steps, index)
            place_unmentioned(run, plan.steps)
        if not dry_run:
            progress("commit", 0, 1)
        report = conclude(run, index, dry_run=dry_run)
        return replace(report, reason=reason, more=more, seconds=clock_time.monotonic() - started)


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
    )


def refuse_unreadable(root: Path, document: Document) -> None:
    """A CURRENT or evidence that cannot be understood stops what would change it."""
    problems = [*document.blocking, *evidence_conflicts(root)]
    if problems:
        raise NeedsAttention(str(problems[0]))


def seqs_of(entries: Iterable[Entry]) -> tuple[int, ...]:
    """All seqs of some entries, in order."""
    return tuple(seq for entry in entries for seq in entry.seqs)


def sign_buffer(root: Path, note: int, at: str) -> list[int]:
    """Give the plain bullets that a person typed into CURRENT a signature. Under the lock."""
    file = read_file(root, BUFFER)
    if file.document.blocking:
        return []
    loose = unsigned_entries(file.document)
    if not loose:
        return []
    first = next_seq(root, note)
    signed, seqs = sign(file.document, loose, first, at)
    transaction.commit(root, [Change(BUFFER, file.digest, render(signed))], [])
    for entry in signed.entries:
        if entry.seq in seqs:
            write_log(root, join_lines(entry_lines(entry.signature, entry.text)))
    note_state(root, note, first + len(seqs))
    return seqs


def sign(document: Document, loose: Sequence[Entry], first: int, at: str) -> tuple[Document, list[int]]:
    """The document with plain bullets signed from `first` on; only the head of each line changes."""
    edits = []
    seqs = []
    for seq, entry in enumerate(loose, first):
        line = document.lines[entry.span.start]
        body = line[1:].lstrip(" \t")
        signature = Signature((seq,), (("source", "hand"), ("observed", at)))
        head = line[0] + entry_lines(signature, "")[0].removesuffix(" \n")[1:]
        edits.append((Span(entry.span.start, entry.span.start + 1), [f"{head} {body}"]))
        seqs.append(seq)
    return edit(document, edits), seqs


def read_buffer(root: Path, document: Document, index: Finder) -> Buffer:
    """CURRENT's entries, told apart from those that a git merge brought back although topics hold them."""
    entries: dict[int, Entry] = {}
    again: list[Entry] = []
    notes: list[str] = []
    taken: set[int] = set()
    recorded: set[int] = set()
    notes += lost_entries(root, document, index)
    for entry in document.entries:
        if taken.intersection(entry.seqs):
            notes.append(
                f"{BUFFER}:{entry.span.start + 1}: seq {render_seqs(entry.seqs)} stands there twice; "
                "this one stays. `infinimem check --fix` renumbers it"
            )
            continue
        taken.update(entry.seqs)
        held = index.locate(entry.seq)
        if held is None or held.topic == CURRENT:
            fate = index.fate(entry.seq)
            if fate == "retired" and entry.text in index.words(entry.seq):
                again.append(entry)
                continue
            if fate == "retired":
                notes.append(
                    f"{BUFFER}:{entry.span.start + 1}: seq {entry.seq} was retired with other words; it stays. "
                    "`infinimem check --fix` renumbers it"
                )
                continue
            if fate:
                recorded.add(entry.seq)
            entries[entry.seq] = entry
        elif held.text == entry.text:
            again.append(entry)
        else:
            notes.append(
                f"{BUFFER}:{entry.span.start + 1}: seq {entry.seq} is also {held.path}:{held.line} with other words; "
                "it stays. `infinimem check --fix` renumbers it"
            )
    return Buffer(document, entries, tuple(again), tuple(notes), frozenset(recorded))


def lost_entries(root: Path, document: Document, index: Finder) -> list[str]:
    """A line for each entry that was written but that neither CURRENT nor evidence holds any more."""
    there = set(seqs_of(document.entries))
    return [
        f"seq {entry.seq} was written but is gone from {BUFFER}; bring it back: infinimem recover {entry.seq}"
        for entry in read_log(root).document.entries
        if there.isdisjoint(entry.seqs) and index.locate(entry.seq) is None and not index.fate(entry.seq)
    ]


def refuse_other_buffer(plan: Plan, buffer: Buffer) -> None:
    """A plan is for the entries it was made for; entries written since simply wait."""
    gone = [
        seq for seq in plan.seqs if seq not in {s for entry in buffer.entries.values() for s in entry.seqs}
    ]
    if gone:
        raise BadPlan(f"the plan is for another buffer: {render_seqs(gone)} not in {BUFFER}. Make a new plan")


def begin(root: Path, buffer: Buffer, settings: Settings, at: str) -> Run:
    """A run with every buffered entry waiting."""
    gates = rules.Gates(
        settings.number("gate.supersede"),
        settings.number("gate.join"),
        settings.number("gate.split"),
        settings.number("gate.merge"),
    )
    return Run(root, buffer, at, gates, Desk(dict(buffer.entries)))


# The lexical plan, pass by pass


def plan_lexically(
    run: Run,
    index: Finder,
    settings: Settings,
    rewrite: bool,
    splitting: bool,
    merging: bool,
    progress: Callable[[str, int, int], None],
) -> None:
    """All passes with the built-in planner, each on the result of the one before."""
    waiting = list(run.desk.waiting.values())
    if rewrite:
        progress("rewrite", 0, len(waiting))
        for step in lexical.duplicates(waiting):
            run.take(step)
    supersede_in_buffer(run)
    expire(run)
    talks, notes = lexical.part(list(run.desk.waiting.values()))
    taken = set(index.topics())
    for number, block in enumerate(talks):
        progress("route", number, len(talks) + 1)
        route_block(run, block, index, taken, settings)
    progress("route", len(talks), len(talks) + 1)
    place_notes(run, notes, index, taken, settings)
    progress("update", 0, 1)
    supersede_in_topics(run, index)
    expire_in_topics(run, index)
    if splitting:
        progress("split", 0, 1)
        sort_odds(run, index, taken, settings)
        split_large(run, taken, settings)
    if merging:
        progress("merge", 0, 1)
        merge_small(run, index, taken, settings)


def supersede_in_buffer(run: Run) -> None:
    """Corrections of entries that have not left CURRENT yet."""
    for entry in sorted(run.desk.waiting.values(), key=lambda entry: entry.seq):
        for seq in parse_seqs(entry.signature.get("supersedes")):
            if run.desk.buffered(seq) is not None:
                spare_for(run, seq)
                run.take(Retire(seq, entry.seq, "superseded"))


def supersede_in_topics(run: Run, index: Finder) -> None:
    """Where the writer said what an entry replaces, the old one leaves the visible surface, wherever it stands."""
    for entry in sorted(run.buffer.entries.values(), key=lambda entry: entry.seq):
        for seq in parse_seqs(entry.signature.get("supersedes")):
            if seq in run.buffer.entries or any(gone.seq == seq for gone in run.desk.retired):
                continue
            places = index.standing(seq)
            run.load(unit.topic for unit in places)
            if not places:
                record = read_records(run.root, [seq]).get(seq)
                if record is not None and (record.entries or record.events):
                    run.outcomes.append(
                        Outcome(Retire(seq, entry.seq, "superseded"), "no-op", "it is retired already")
                    )
                    continue
            spare_for(run, seq)
            run.take(Retire(seq, entry.seq, "superseded"))


def spare_for(run: Run, seq: int) -> None:
    """Have the verbatim members of a joined line at hand before one of them is retired."""
    line = run.desk.buffered(seq) or run.desk.holding(seq)
    if line is None or len(line.seqs) < 2:
        return
    records = read_records(run.root, line.seqs)
    found = {one: record.newest for one, record in records.items() if record.newest is not None}
    run.desk = replace(run.desk, spare={**run.desk.spare, **found})


def expire(run: Run) -> None:
    """Buffered entries whose `expires` date has passed go straight to evidence."""
    for entry in list(run.desk.waiting.values()):
        if is_past(entry.signature.get("expires"), run.now):
            run.take(Retire(entry.seq, 0, "expired"))


def is_past(date: str, now: str) -> bool:
    """Whether an ISO date, possibly partial, lies wholly before a timestamp. What is no date never does."""
    return DATE.fullmatch(date) is not None and date < now[: len(date)]


def expire_in_topics(run: Run, index: Finder) -> None:
    """Entries in topics whose `expires` date has passed leave the visible surface."""
    for unit in index.expiring():
        if unit.topic != CURRENT and unit.seqs and is_past(unit.get("expires"), run.now):
            run.load([unit.topic])
            for seq in unit.seqs:
                run.take(Retire(seq, 0, "expired"))


def route_block(run: Run, block: Sequence[Entry], index: Finder, taken: set[str], settings: Settings) -> None:
    """Find the document that a block belongs to, or make one."""
    text = "\n".join(entry.text for entry in block)
    near = {topic: score for topic, score, _ in index.similar(text, CANDIDATES)}
    run.load(near)
    made = [topic for topic in run.desk.documents if topic not in run.originals]
    candidates = [
        candidate(run.desk.documents[topic], near.get(topic, 0.0))
        for topic in [*near, *made]
        if topic in run.desk.documents and changeable(run.desk.documents[topic])
    ]
    for step in lexical.route(
        block, candidates, taken | set(run.desk.documents), settings.count("split.max_tokens")
    ):
        outcome = run.take(step)
        if isinstance(step, Create) and outcome.status == "executed":
            taken.add(step.topic)


def place_notes(run: Run, notes: Sequence[Entry], index: Finder, taken: set[str], settings: Settings) -> None:
    """Find for each independent note the document that it belongs to, or make one."""
    near: dict[str, float] = {}
    for note in notes:
        for topic, score, _ in index.similar(f"{note.text}\n{note.source}", CANDIDATES):
            near[topic] = max(score, near.get(topic, 0.0))
        for seq in parse_seqs(note.signature.get("supersedes")):
            unit = index.locate(seq)
            if unit is not None and unit.topic != CURRENT:
                near.setdefault(unit.topic, 0.0)
    run.load([*near, *sorted(topic for topic in taken if lexical.is_odds(topic))[-2:]])
    candidates = [
        candidate(document, near.get(topic, 0.0))
        for topic, document in run.desk.documents.items()
        if changeable(document)
    ]
    for step in lexical.place(
        notes, candidates, frequencies(index), taken | set(run.desk.documents), settings.count("split.max_tokens")
    ):
        outcome = run.take(step)
        if isinstance(step, Create) and outcome.status == "executed":
            taken.add(step.topic)


def frequencies(index: Finder) -> lexical.Frequencies:
    """How common words are in the library."""
    return lexical.Frequencies(index.visible(), index.holding)


def changeable(document: Document) -> bool:
    """Whether the document is ours and can be understood."""
    return not document.is_guest and not document.blocking


def candidate(document: Document, score: float) -> lexical.Candidate:
    """A document as the lexical planner sees it."""
    return lexical.Candidate(
        document.id,
        title_of(document),
        str(document.header.fields.get("summary", "") or ""),
        estimate("".join(document.lines[document.header.span.stop :])),
        score,
        tuple(block.headings[-1] for block in document.blocks if block.level > 1),
        document.entries,
    )


def sort_odds(run: Run, index: Finder, taken: set[str], settings: Settings) -> None:
    """Let odds and ends at hand go where they have come to belong."""
    for topic in [name for name in run.desk.documents if lexical.is_odds(name)]:
        document = run.desk.documents[topic]
        if not changeable(document):
            continue
        others = [
            candidate(other, 0.0)
            for name, other in run.desk.documents.items()
            if name != topic and changeable(other)
        ]
        names = taken | set(run.desk.documents)
        limit = settings.count("split.max_tokens")
        for step in lexical.plan_sort(candidate(document, 0.0), others, frequencies(index), names, limit):
            if run.take(step).status != "executed":
                break


def split_large(run: Run, taken: set[str], settings: Settings) -> None:
    """Split what has grown over the limit, until nothing is; let sections that became a subject stand alone."""
    limit = settings.count("split.max_tokens")
    pending = [topic for topic in run.desk.touched if topic in run.desk.documents]
    while pending:
        document = run.desk.documents[pending.pop(0)]
        if not changeable(document):
            continue
        names = taken | set(run.desk.documents)
        if estimate("".join(document.lines[document.header.span.stop :])) > limit:
            step = lexical.plan_split(document, limit, names)
        else:
            step = lexical.plan_promote(document, names) if lexical.is_talk(document.entries) else None
        if step is not None and run.take(step).status == "executed":
            taken.update(part.topic for part in step.parts)
            pending += [part.topic for part in step.parts]


def merge_small(run: Run, index: Finder, taken: set[str], settings: Settings) -> None:
    """Merge small documents that this run touched with what shares their scope."""
    small = settings.count("merge.max_tokens")
    limit = settings.count("split.max_tokens")
    smallest = index.smallest(CANDIDATES)
    for topic in list(run.desk.touched):
        document = run.desk.documents.get(topic)
        if document is None or not changeable(document):
            continue
        here = candidate(document, 1.0)
        if here.tokens >= small:
            continue
        text = "\n".join(entry.text for entry in document.entries)
        near = {name: score for name, score, _ in index.similar(text, CANDIDATES)}
        run.load([*near, *smallest])
        others = [
            candidate(run.desk.documents[name], near.get(name, 0.0))
            for name in dict.fromkeys([*near, *smallest, *run.desk.touched])
            if name != topic and name in run.desk.documents and changeable(run.desk.documents[name])
        ]
        steps: Sequence[Step]
        if lexical.is_talk(document.entries):
            step = lexical.plan_merge(here, others, small, limit)
            steps = [] if step is None else [step]
        else:
            names = taken | set(run.desk.documents)
            made = set(run.desk.documents) - set(run.originals)
            steps = lexical.plan_union(here, others, frequencies(index), small, limit, names, made)
        for one in steps:
            run.take(one)


# Plans given from outside


def carry_out(run: Run, steps: Sequence[Step], index: Finder) -> None:
    """Carry out the steps of a given plan, in order."""
    for step in steps:
        if isinstance(step, Extend):
            step = without_placed(run, step)
            if not step.seqs:
                continue
        prepare(run, step, index)
        run.take(step)


def without_placed(run: Run, step: Extend) -> Extend:
    """The step without the entries that an earlier one placed: a repeated seq keeps its first place."""
    placed = tuple(seq for seq in step.seqs if seq in run.desk.placed)
    if placed:
        why = f"{render_seqs(placed)} has a place already"
        run.outcomes.append(Outcome(replace(step, seqs=placed), "skipped", why))
    return replace(step, seqs=tuple(seq for seq in step.seqs if seq not in placed))


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
        case Join():
            pass


def mentioned(steps: Iterable[Step]) -> set[int]:
    """Every buffered seq that some step of a plan names."""
    seqs: set[int] = set()
    for step in steps:
        match step:
            case Extend() | Join():
                seqs.update(step.seqs)
            case Retire():
                seqs.add(step.seq)
    return seqs


def place_unmentioned(run: Run, steps: Sequence[Step]) -> None:
    """Entries that a plan forgot are kept verbatim in the block of their nearest neighbour."""
    named = mentioned(steps)
    blocks = [
        outcome.step
        for outcome in run.outcomes
        if outcome.status == "executed" and isinstance(outcome.step, Extend)
    ]
    for seq in list(run.desk.waiting):
        if seq in named or not blocks:
            continue
        near = min(blocks, key=lambda step: min((abs(seq - other), other) for other in step.seqs))
        if near.topic in run.desk.documents:
            run.take(Extend(near.topic, near.heading, (seq,)))


# The end of a run: values become changes, and the changes one transaction


def conclude(run: Run, index: Finder, *, dry_run: bool) -> Report:
    """Commit what the run made, leaving out what went stale while it was thinking."""
    stale_seqs: set[int] = set()
    stale_topics: dict[str, str] = {}
    for _ in range(ATTEMPTS):
        finished = finish_documents(run)
        if dry_run:
            return report_of(run, finished, diff=diff_of(run, finished))
        try:
            notes = put_on_disk(run, finished)
        except StaleEntries as stale:
            stale_seqs.update(stale.seqs)
        except ChangedOnDisk:
            pass
        else:
            keep_proposals(run)
            return report_of(run, finished, notes=tuple(notes))
        for topic, digest in run.digests.items():
            if read_file(run.root, path_of(topic)).digest != digest:
                stale_topics[topic] = f"{path_of(topic)} was changed while flush was thinking"
        for topic in list(run.desk.documents):
            if topic not in run.digests and read_file(run.root, path_of(topic)).digest:
                stale_topics[topic] = f"{path_of(topic)} was made while flush was thinking"
        run = again_without(run, index, stale_seqs, stale_topics)
    raise ChangedOnDisk(
        "the library keeps changing while flush is thinking; nothing was written. Run flush again"
    )


class StaleEntries(Exception):
    """Entries that CURRENT no longer holds as the plan saw them."""

    def __init__(self, seqs: Collection[int]) -> None:
        super().__init__()
        self.seqs = seqs


def again_without(
    run: Run, index: Finder, stale_seqs: Collection[int], stale_topics: Mapping[str, str]
) -> Run:
    """The same steps once more, without those that went stale: hand edits win."""
    fresh = {seq: entry for seq, entry in run.buffer.entries.items() if seq not in stale_seqs}
    new = Run(run.root, replace(run.buffer, entries=fresh), run.now, run.gates, Desk(fresh))
    for outcome in run.outcomes:
        step = outcome.step
        if outcome.status != "executed":
            new.outcomes.append(outcome)
            continue
        topic = next((topic for topic in topics_in(step) if topic in stale_topics), "")
        if topic:
            new.outcomes.append(Outcome(step, "skipped", stale_topics[topic]))
            continue
        if isinstance(step, Extend):
            seqs = tuple(seq for seq in step.seqs if seq not in stale_seqs)
            if len(seqs) < len(step.seqs):
                gone = replace(step, seqs=tuple(seq for seq in step.seqs if seq in stale_seqs))
                why = f"{render_seqs(gone.seqs)} changed in {BUFFER} while flush was thinking"
                new.outcomes.append(Outcome(gone, "skipped", why))
            if not seqs:
                continue
            step = replace(step, seqs=seqs)
        prepare(new, step, index)
        new.take(step)
    return new


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


@dataclass(frozen=True, slots=True)
class Finished:
    """The end state as values: documents by topic, removed topics, and what evidence is to gain."""

    documents: Mapping[str, Document]
    removed: tuple[str, ...]
    consumed: tuple[Entry, ...]
    evidence: tuple[str, ...]


def finish_documents(run: Run) -> Finished:
    """Bring summary, token count and log of every touched document up to date; collect evidence."""
    documents: dict[str, Document] = {}
    for topic, ops in run.desk.touched.items():
        document = run.desk.documents[topic]
        summary = run.desk.summaries.get(topic) or extract(document)
        documents[topic] = refresh(document, summary, ops, run.now)
    for topic, text in run.desk.summaries.items():
        if topic not in documents and topic in run.desk.documents:
            documents[topic] = refresh(run.desk.documents[topic], text, (("summary", ()),), run.now)
    left = {seq for entry in run.desk.waiting.values() for seq in entry.seqs}
    gone = {*run.desk.placed, *(step.seq for step in run.desk.retired)} - left
    consumed = tuple(entry for entry in run.buffer.entries.values() if set(entry.seqs) <= gone)
    removed = tuple(topic for topic in run.desk.removed if topic in run.originals)
    lines = [line for entry in consumed for line in first_words(run, entry)]
    lines += revisions(run)
    lines += [line for entry in joined_lines(run) for line in revision_lines(entry, Record(entry.seq, (), ()), run.now)]
    lines += [retire_line([step.seq], step.by, step.why, run.now) for step in run.desk.retired]
    return Finished(documents, removed, consumed, tuple(lines))


def extract(document: Document) -> str:
    """A summary in the document's own words; where it would say what no entry says, its first entry's instead."""
    summary = lexical.summarise(title_of(document), document.entries)
    if summary and rules.bad_summary(Summarise(document.id, summary), Desk({}, {document.id: document})):
        summary = " ".join(document.entries[0].text.split())[:SUMMARY_LENGTH] if document.entries else ""
    return summary


def first_words(run: Run, entry: Entry) -> tuple[str, ...]:
    """What evidence is to gain of an entry that leaves CURRENT: it, or what an edit after an undo changed."""
    if entry.seq not in run.buffer.recorded:
        return entry_lines(entry.signature, entry.text)
    return revision_lines(entry, read_records(run.root, [entry.seq])[entry.seq], run.now)


def joined_lines(run: Run) -> list[Entry]:
    """The lines that this run made of several entries; their wording is in evidence beside their sources."""
    old = {seq for entry in run.buffer.entries.values() for seq in entry.seqs}
    return [
        entry
        for document in run.desk.documents.values()
        for entry in document.entries
        if len(entry.seqs) > 1 and old.issuperset(entry.seqs) and entry.seqs not in run.buffer.whole
    ]


def revisions(run: Run) -> list[str]:
    """Words that a person changed in a line that this run moves or retires: evidence notes them first."""
    moved: list[Entry] = []
    for topic, document in run.originals.items():
        after = run.desk.documents.get(topic)
        kept = {entry.seqs for entry in after.entries} if after is not None else set()
        moved += [entry for entry in document.entries if entry.seqs not in kept]
    records = read_records(run.root, [seq for entry in moved for seq in entry.seqs])
    return [line for entry in moved for line in revision_lines(entry, records[entry.seq], run.now)]


def revision_lines(entry: Entry, record: Record, at: str) -> tuple[str, ...]:
    """What evidence lacks of a visible line: all of it, a revision of its words, or nothing."""
    known = [one for _, one in record.entries if one.seqs == entry.seqs]
    if not known and len(entry.seqs) == 1:
        return entry_lines(entry.signature, entry.text)
    if known and known[-1].text == entry.text:
        return ()
    signature = Signature(entry.seqs, (("rev", str(len(known) + 1)), ("at", at)))
    return entry_lines(signature, entry.text)


def put_on_disk(run: Run, finished: Finished) -> list[str]:
    """One transaction: evidence, topics, and last CURRENT without exactly the consumed lines."""
    with hold(run.root) as note:
        file = read_file(run.root, BUFFER)
        shorter = without_entries(file.document, [*finished.consumed, *run.buffer.again])
        changes = document_changes(run, finished)
        following = next_seq(run.root, note)
        appends = []
        if finished.evidence or finished.consumed:
            high = event_line("flush", run.now, high=str(following - 1))
            appends.append(append_to_evidence(run.root, run.now, [*finished.evidence, high]))
        if shorter is not file.document:
            changes.append(Change(BUFFER, file.digest, render(shorter)))
            changes += shorter_log(run.root, finished.consumed)
        if not changes and not appends:
            return []
        about = {
            "kind": "flush",
            "at": run.now,
            "seqs": render_seqs(sorted(seqs_of(finished.consumed))),
            "retired": render_seqs(sorted(step.seq for step in run.desk.retired)),
            "lines": ["".join(entry_lines(entry.signature, entry.text)) for entry in finished.consumed],
            "void": void_lines(run, finished, following - 1),
        }
        kept = transaction.commit(run.root, changes, appends, about, undoable=True)
        note_state(run.root, note, following)
        return kept


def void_lines(run: Run, finished: Finished, high: int) -> list[str]:
    """What evidence says should the commit have to be taken back because of a hand edit."""
    consumed = set(seqs_of(finished.consumed))
    older = sorted({step.seq for step in run.desk.retired} - consumed)
    lines = [event_line("unflush", run.now, seq=render_seqs(sorted(consumed)))] if consumed else []
    lines += [event_line("restore", run.now, seq=render_seqs(older))] if older else []
    return [*lines, event_line("flush", run.now, high=str(high))] if lines else []


def without_entries(document: Document, entries: Sequence[Entry]) -> Document:
    """CURRENT without some entries. Raises `StaleEntries` when one is not there as it was seen."""
    if not entries:
        return document
    there = {(entry.seqs, entry.signature, entry.text): entry.span for entry in reversed(document.entries)}
    spans = []
    missing: list[int] = []
    for entry in entries:
        span = there.get((entry.seqs, entry.signature, entry.text))
        if span is None:
            missing += entry.seqs
        else:
            spans.append(span)
    if missing:
        raise StaleEntries(missing)
    return edit(document, [(span, ()) for span in spans])


def document_changes(run: Run, finished: Finished) -> list[Change]:
    """The topic documents' changes, guarded by the digests that they were read with."""
    changes = [
        Change(document.path, run.digests.get(topic, ""), render(document))
        for topic, document in finished.documents.items()
        if topic not in run.originals or document.lines != run.originals[topic].lines
    ]
    return changes + [Change(path_of(topic), run.digests[topic], None) for topic in finished.removed]


def shorter_log(root: Path, consumed: Sequence[Entry]) -> list[Change]:
    """The second copy without what is now in evidence."""
    file = read_log(root)
    gone = set(seqs_of(consumed))
    spans = [entry.span for entry in file.document.entries if gone.issuperset(entry.seqs)]
    return (
        [Change(LOG, file.digest, render(edit(file.document, [(span, ()) for span in spans])))]
        if spans
        else []
    )


def keep_proposals(run: Run) -> None:
    """What only a gate held back waits for a person's review."""
    held = [
        outcome
        for outcome in run.outcomes
        if outcome.status == "skipped" and outcome.why.startswith("confidence ")
    ]
    if held:
        from infinimem.store.proposals import add_proposals

        add_proposals(run.root, to_values(outcome.step for outcome in held), run.now)


def report_of(run: Run, finished: Finished, *, diff: str = "", notes: tuple[str, ...] = ()) -> Report:
    """What the run did, in the words of the report."""
    created = tuple(topic for topic in finished.documents if topic not in run.originals)
    consumed = seqs_of(finished.consumed)
    gone = set(consumed) if diff else set()
    left = tuple(seq for seq in seqs_of(read_file(run.root, BUFFER).document.entries) if seq not in gone)
    return Report(
        flushed=bool(consumed or finished.documents or finished.removed or run.buffer.again),
        outcomes=tuple(run.outcomes),
        seqs=consumed,
        left=left,
        created=created,
        changed=tuple(topic for topic in finished.documents if topic in run.originals),
        removed=finished.removed,
        retired=run.desk.retired,
        notes=(*run.buffer.notes, *notes),
        diff=diff,
        plan=Plan(
            tuple(outcome.step for outcome in run.outcomes if outcome.status == "executed"),
            seqs_of(run.buffer.entries.values()),
            digest_of(render(run.buffer.document)),
        ),
    )


def diff_of(run: Run, finished: Finished) -> str:
    """What a commit would change, as a unified diff."""
    pieces: list[str] = []
    for topic, document in finished.documents.items():
        before = run.originals[topic].lines if topic in run.originals else ()
        pieces += diff_lines(document.path, before, document.lines)
    for topic in finished.removed:
        pieces += diff_lines(path_of(topic), run.originals[topic].lines, ())
    if finished.evidence:
        path = evidence_path(run.root, run.now)
        known = read_file(run.root, path).document.lines
        pieces += diff_lines(path, known, (*known, *finished.evidence))
    shorter = without_entries(run.buffer.document, [*finished.consumed, *run.buffer.again])
    pieces += diff_lines(BUFFER, run.buffer.document.lines, shorter.lines)
    return "".join(pieces)


def diff_lines(path: str, before: Sequence[str], after: Sequence[str]) -> list[str]:
    """One file's part of a unified diff."""
    old = f"a/{path}" if before else "/dev/null"
    new = f"b/{path}" if after else "/dev/null"
    lines = difflib.unified_diff(before, after, old, new)
    return [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines]


# By hand


def run_steps(
    root: Path,
    finder: Callable[[], Finder],
    settings: Settings,
    now: datetime,
    steps: Callable[[Run, Finder], Sequence[Step]],
    *,
    dry_run: bool = False,
) -> Report:
    """Carry out steps that concern no buffered entry: a split, a merge, a retirement by hand."""
    with exclusive(root / FLUSH_LOCK, doing="flush"):
        with hold(root):
            document = read_file(root, BUFFER).document
        index = finder()
        run = begin(root, Buffer(document, {}), settings, timestamp(now))
        carry_out(run, steps(run, index), index)
        return conclude(run, index, dry_run=dry_run)


def undo(root: Path, finder: Callable[[], Finder], now: datetime, *, dry_run: bool = False) -> Report:
    """Revert the last flush as one transaction.

    Documents go back to what they were, entries go back into CURRENT before later writes, evidence gains an
    `unflush` event. A document edited since is left alone, and with it those that share entries with it.
    """
    with exclusive(root / FLUSH_LOCK, doing="flush"):
        index = finder()
        with hold(root) as note:
            return undo_last(root, note, index, timestamp(now), dry_run=dry_run)


def undo_last(root: Path, note: int, index: Finder, at: str, *, dry_run: bool) -> Report:
    """The undo itself, under the lock."""
    name, record = transaction.read_undo(root)
    if not name:
        return Report(reason="there is no flush to undo")
    file = read_file(root, BUFFER)
    refuse_unreadable(root, file.document)
    rows = [(number, row) for number, row in enumerate(record["changes"]) if row["path"].startswith("topics/")]
    states = [read_state(root, name, number, row) for number, row in rows]
    groups = groups_of(states)
    back = [state for group in groups if not any(state.edited for state in group) for state in group]
    skipped = [state for group in groups if any(state.edited for state in group) for state in group]
    paths = {state.path for state in back}
    returning = [
        entry
        for entry in recorded_entries(record["about"])
        if all(unit.path in paths for seq in entry.seqs for unit in index.standing(seq))
    ]
    changes = [Change(state.path, state.new_digest, state.old) for state in back]
    longer = with_entries_first(file.document, returning)
    if returning:
        changes.append(Change(BUFFER, file.digest, render(longer)))
    seqs = seqs_of(returning)
    restored = set(parse_seqs(record["about"].get("retired", "")))
    older = sorted(seq for seq in restored - set(seqs) if any(seq in state.old_seqs for state in back))
    report = Report(
        flushed=bool(changes),
        outcomes=tuple(Outcome(Summarise(state.topic, ""), "skipped", why_left(state)) for state in skipped),
        seqs=seqs,
        changed=tuple(state.topic for state in back if state.old is not None),
        removed=tuple(state.topic for state in back if state.old is None),
    )
    if dry_run:
        pieces = [diff_lines(state.path, split_lines(state.now), split_lines(state.old or b"")) for state in back]
        pieces.append(diff_lines(BUFFER, file.document.lines, longer.lines))
        return replace(report, diff="".join(line for piece in pieces for line in piece))
    following = next_seq(root, note)
    lines = [event_line("unflush", at, seq=render_seqs(seqs))] if seqs else []
    lines += [event_line("restore", at, seq=render_seqs(older))] if older else []
    appends = []
    if lines:
        appends = [append_to_evidence(root, at, [*lines, event_line("flush", at, high=str(following - 1))])]
    if changes or appends:
        transaction.commit(root, changes, appends, drop=name)
        for entry in returning:
            write_log(root, join_lines(entry_lines(entry.signature, entry.text)))
        note_state(root, note, following)
    else:
        transaction.drop_undo(root, name)
    return report


@dataclass(frozen=True, slots=True)
class State:
    """A document before and after the flush that is to be undone, and what it is now."""

    path: str
    new_digest: str
    old: bytes | None
    now: bytes
    edited: bool
    old_seqs: frozenset[int]
    new_seqs: frozenset[int]

    @property
    def topic(self) -> str:
        return topic_of(self.path)


def read_state(root: Path, name: str, number: int, row: Mapping[str, Any]) -> State:
    """One changed document of an undo record."""
    path = row["path"]
    link = root / UNDO / name / str(number)
    old = read_bytes(link) or b"" if row["old"] else None
    content = read_bytes(root / path) or b""
    digest = transaction.digest_at(root / path)
    before = frozenset(seqs_of(parse(path, old or b"").entries))
    after = frozenset(seqs_of(parse(path, content).entries))
    return State(path, row["new"], old, content, digest != row["new"], before, after)


def groups_of(states: Sequence[State]) -> list[list[State]]:
    """The documents that exchanged entries, together: they are undone together or not at all."""
    groups: list[list[State]] = []
    for state in states:
        seqs = state.old_seqs | state.new_seqs
        mine = [group for group in groups if any(seqs & (one.old_seqs | one.new_seqs) for one in group)]
        groups = [group for group in groups if group not in mine]
        groups.append([*(one for group in mine for one in group), state])
    return groups


def recorded_entries(about: Mapping[str, Any]) -> Sequence[Entry]:
    """The flushed entries as they stood in CURRENT."""
    return parse_piece(BUFFER, "".join(about.get("lines", ())).encode("utf-8", "surrogateescape")).entries


def with_entries_first(document: Document, entries: Sequence[Entry]) -> Document:
    """CURRENT with entries put before the later ones."""
    if not entries:
        return document
    ending = ending_of(document.lines)
    lines = [line for entry in entries for line in entry_lines(entry.signature, entry.text, ending)]
    if not document.lines:
        return parse_lines(document.path, (*(line + "\n" for line in ("# CURRENT", "")), *lines))
    at = document.entries[0].span.start if document.entries else len(document.lines)
    if at == 0 and document.lines[0].startswith(BOM):
        at = document.entries[0].span.stop
    return edit(document, [(Span(at, at), lines)])


def why_left(state: State) -> str:
    """Why a document was not put back."""
    if state.edited:
        return f"{state.path} was changed since; it is left as it is"
    return f"{state.path} exchanged entries with a document that was changed since; it is left as it is"


def split_by_hand(topic: str) -> Callable[[Run, Finder], Sequence[Step]]:
    """The steps of a split that a person asked for: by subjects, whatever the size."""

    def steps(run: Run, index: Finder) -> Sequence[Step]:
        run.load([topic])
        document = run.desk.documents.get(topic)
        if document is None:
            return ()
        tokens = estimate("".join(document.lines[document.header.span.stop :]))
        step = lexical.plan_split(document, max(1, tokens // 2 + 1), set(index.topics()))
        return (step,) if step is not None else ()

    return steps


def plan_template(root: Path, rows: Sequence[tuple[str, int, str]], settings: Settings) -> str:
    """What a person or an agent needs to write a plan for CURRENT: the task, the topics, the new entries.

    `rows` are topics as id, tokens and summary. Their answer goes to `flush --plan`.
    """
    from infinimem.llm.prompts import fill, load_prompt

    document = read_file(root, BUFFER).document
    entries = "".join("".join(entry_lines(entry.signature, entry.text)) for entry in document.entries)
    values = {
        "seqs": render_seqs(seqs_of(document.entries)),
        "gate": f"{settings.number('gate.supersede'):g}",
        "topics": "\n".join(f"{topic} · {tokens} · {summary}" for topic, tokens, summary in rows) or "(none yet)",
        "entries": fenced_data(entries).rstrip("\n") or "(none)",
    }
    return fill(load_prompt("plan"), values)


def fenced_data(text: str) -> str:
    """Text that cannot close the fence it stands in."""
    return text.replace("~~~", "~ ~ ~")
