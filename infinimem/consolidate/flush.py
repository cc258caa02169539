"""The use case: consolidate CURRENT, and carry out steps by hand.

    recover, snapshot → rewrite → route → update → split → merge → refresh → commit

A planner proposes steps, `plan.rules` refuses what breaks a rule, `plan.desk` carries out the rest on values,
and one transaction puts the result on disk. What is refused or has gone stale stays where it is and is said.
"""

from __future__ import annotations

import time as clock_time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from infinimem.config import Settings
from infinimem.consolidate.buffer import read_buffer, refuse_other_buffer, refuse_unreadable
from infinimem.consolidate.commit import conclude
from infinimem.consolidate.due import is_due, timestamp
from infinimem.consolidate.hand import sign_buffer, sign_topics
from infinimem.consolidate.passes import (
    carry_out,
    expired_units,
    mentioned,
    overdue,
    place_unmentioned,
    plan_lexically,
    supersede_overdue,
    to_forget,
)
from infinimem.consolidate.run import Buffer, Finder, Report, Run, begin, prepare, seqs_of
from infinimem.errors import BadInput, NeedsAttention
from infinimem.forgetting.forget import forget_again, forget_held
from infinimem.forgetting.survey import Wanted
from infinimem.model import Document, Step, Usage
from infinimem.plan import lexical, rules
from infinimem.plan.paper import Plan
from infinimem.store.buffer import hold
from infinimem.store.layout import BUFFER, FLUSH_LOCK
from infinimem.store.lock import exclusive
from infinimem.store.read import read_file, read_leading
from infinimem.text.document import body_tokens

if TYPE_CHECKING:
    from infinimem.consolidate.thinking import Thinker

PORTION = 500
"""Entries that one transaction takes: a larger buffer goes in several, each seeing the topics of those before."""


LARGE = 1 << 20
"""Bytes of CURRENT from which on a flush in portions leaves it out of the index that it asks."""


def is_large(root: Path) -> bool:
    """Whether CURRENT is so large that it is better not read into the index before each portion."""
    try:
        return (root / BUFFER).stat().st_size > LARGE
    except FileNotFoundError:
        return False


def waiting(root: Path) -> tuple[int, ...]:
    """The seqs in CURRENT."""
    return seqs_of(read_file(root, BUFFER).document.entries)


def flush(
    root: Path,
    finder: Callable[[], Finder],
    settings: Settings,
    now: datetime,
    *,
    plan: Plan | None = None,
    thinker: Thinker | None = None,
    dry_run: bool = False,
    if_due: bool = False,
    rewrite: bool = True,
    splitting: bool = True,
    merging: bool = True,
    following: bool = False,
    apart: bool = False,
    lessons: Callable[[], Sequence[Step]] = tuple,
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> Report:
    """Consolidate CURRENT. With `plan`, its steps are carried out instead of a planner's; a `thinker` is the planner.

    One that is `following` another in the same command sees no more of CURRENT than it needs: what only all of it
    tells was said by the first. `apart` says that the index of `finder` leaves CURRENT out.
    `lessons` gives what else is to be done by the way, as far as the rules still allow it then.

    Raises `NeedsAttention` when CURRENT itself cannot be understood; whatever concerns only one document
    is skipped and said in the report.
    """
    started = clock_time.monotonic()
    with exclusive(root / FLUSH_LOCK, doing="flush", reading=dry_run):
        taken = take_buffer(root, now, following=following, sign=not dry_run and not if_due)
        refuse_unreadable(root, taken.document)
        reason = is_due(taken.document, settings, now)
        if if_due and not reason:
            return Report(due=False, reason="not due", left=seqs_of(taken.document.entries))
        if if_due:
            taken = take_buffer(root, now, following=following, sign=not dry_run)
        index = finder()
        again = () if dry_run else forget_again(root, index, now)
        if again:
            taken = replace(taken, document=read_file(root, BUFFER).document, rest=b"")
            index = finder()
        buffer = read_buffer(root, taken.document, index, PORTION if plan is None else 0, whole=not following)
        if taken.rest and len(buffer.entries) < PORTION:  # much of what comes first cannot be placed
            taken = replace(taken, document=read_file(root, BUFFER).document, rest=b"")
            buffer = read_buffer(root, taken.document, index, PORTION, whole=False)
        if plan is not None:
            refuse_other_buffer(plan, buffer)
            buffer = part_planned(buffer, plan)
        elif not buffer.entries and not buffer.again and not is_anything_over(root, taken, index, settings, now):
            left = seqs_of(taken.document.entries)
            empty = "" if left else "CURRENT is empty"
            report = Report(reason=empty, left=left, notes=buffer.notes, forgotten=again, signed=taken.signed)
            return forget_old(root, index, settings, now, report, dry_run=dry_run)
        run = begin(root, buffer, settings, timestamp(now))
        run.dry, run.apart = dry_run, apart
        run.by = "plan" if plan is not None else "lexical" if thinker is None else "model"
        if plan is not None:
            carry_out(run, plan.steps, index)
            place_unmentioned(run, plan.steps)
        else:
            passes = {"rewrite": rewrite, "splitting": splitting, "merging": merging}
            plan_passes(run, index, settings, thinker, progress, **passes)
            supersede_overdue(run, index)
            take_allowed(run, index, lessons())
        if not dry_run:
            progress("commit", 0, 1)
        report = conclude(run, index, dry_run=dry_run)
        if thinker is not None and plan is None:
            report = replace(report, planner="model", failures=tuple(thinker.failures), usage=thinker.usage)
            thinker.failures, thinker.usage = [], Usage()
        more = buffer.unseen + taken.behind
        seconds = clock_time.monotonic() - started
        report = replace(report, reason=reason, more=more, forgotten=again, signed=taken.signed, seconds=seconds)
        return report if plan is not None else forget_old(root, finder(), settings, now, report, dry_run=dry_run)


@dataclass(frozen=True, slots=True)
class Taken:
    """CURRENT as a flush takes it: what was parsed, the bytes behind that, and the topics whose bullets were signed."""

    document: Document
    rest: bytes
    signed: tuple[str, ...]

    @property
    def behind(self) -> int:
        """How many entries stand in the bytes that were not parsed, about."""
        return self.rest.count(b"\n- <") + 1 if self.rest else 0


def take_buffer(root: Path, now: datetime, *, following: bool, sign: bool) -> Taken:
    """Read CURRENT, of one that follows another only the beginning; with `sign`, plain bullets get their seqs first."""
    signed: tuple[str, ...] = ()
    with hold(root, reading=not sign) as note:
        if sign:
            if not following:
                sign_buffer(root, note, now)
            signed = sign_topics(root, note, now)
        if following:
            file = read_leading(root, BUFFER, 2 * PORTION)
            return Taken(file.document, file.rest, signed)
        return Taken(read_file(root, BUFFER).document, b"", signed)


def is_anything_over(root: Path, taken: Taken, index: Finder, settings: Settings, now: datetime) -> bool:
    """Whether something has expired, or waits to be replaced, though CURRENT has nothing to place."""
    bare = begin(root, Buffer(taken.document, {}), settings, timestamp(now))
    return bool(expired_units(index, timestamp(now), settings) or overdue(bare, index))


def plan_passes(
    run: Run,
    index: Finder,
    settings: Settings,
    thinker: Thinker | None,
    progress: Callable[[str, int, int], None],
    *,
    rewrite: bool,
    splitting: bool,
    merging: bool,
) -> None:
    """Have the buffer planned, by a model where there is one that thinks, and carry the steps out on values."""
    if thinker is None:
        plan_lexically(run, index, settings, rewrite, splitting, merging, progress)
        return
    from infinimem.access.sight import MODEL, sight
    from infinimem.consolidate.model_passes import Planning, plan_by_model

    seen = sight(run.root, settings.access(MODEL))
    planning = Planning(run, index, settings, thinker, set(index.topics()), progress, seen)
    plan_by_model(planning, rewrite=rewrite, splitting=splitting, merging=merging)


def take_allowed(run: Run, index: Finder, steps: Sequence[Step]) -> None:
    """Carry out what the rules still allow of some steps; the rest is no loss."""
    for step in steps:
        prepare(run, step, index)
        if not rules.violation(step, run.desk, run.gates):
            run.take(step)


def forget_old(
    root: Path, index: Finder, settings: Settings, now: datetime, report: Report, *, dry_run: bool
) -> Report:
    """The report, with what the retention rules want forgotten by now; outside a dry run that is done."""
    seqs = to_forget(index, timestamp(now), settings)
    if not seqs:
        return report
    try:
        done = forget_held(root, Wanted(tuple(seqs)), now, dry_run=dry_run)
    except (BadInput, NeedsAttention) as error:  # what was flushed is flushed
        return replace(report, notes=(*report.notes, f"retention: {error}"))
    remains = tuple(f"{one.path}:{one.line}: still holds what was forgotten ({one.what})" for one in done.remains)
    flushed = report.flushed or not dry_run
    return replace(report, flushed=flushed, reason="", erased=done.seqs, notes=(*report.notes, *remains))


def part_planned(buffer: Buffer, plan: Plan) -> Buffer:
    """The entries that a plan was made for or names: those written since wait for the next one."""
    if not plan.seqs:
        return buffer
    planned = {*plan.seqs, *mentioned(plan.steps)}
    return replace(
        buffer, entries={seq: entry for seq, entry in buffer.entries.items() if planned.intersection(entry.seqs)}
    )


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
        run.dry = dry_run
        carry_out(run, steps(run, index), index)
        return conclude(run, index, dry_run=dry_run)


def split_by_hand(topic: str) -> Callable[[Run, Finder], Sequence[Step]]:
    """The steps of a split that a person asked for: by subjects, whatever the size."""

    def steps(run: Run, index: Finder) -> Sequence[Step]:
        run.load([topic])
        document = run.desk.documents.get(topic)
        if document is None:
            return ()
        tokens = body_tokens(document)
        step = lexical.plan_split(document, max(1, tokens // 2 + 1), set(index.topics()))
        return (step,) if step is not None else ()

    return steps
