"""The use case: consolidate CURRENT, and carry out steps by hand.

    recover, snapshot → rewrite → route → update → split → merge → refresh → commit

A planner proposes steps, `plan.rules` refuses what breaks a rule, `plan.desk` carries out the rest on values,
and one transaction puts the result on disk. What is refused or has gone stale stays where it is and is said.
"""

from __future__ import annotations

import time as clock_time
from collections.abc import Callable, Sequence
from dataclasses import replace
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
    place_unmentioned,
    plan_lexically,
    to_forget,
)
from infinimem.consolidate.run import Buffer, Finder, Report, Run, begin, seqs_of
from infinimem.errors import BadInput, NeedsAttention
from infinimem.forgetting.forget import forget_again, forget_held
from infinimem.forgetting.survey import Wanted
from infinimem.model import Step, Usage
from infinimem.plan import lexical
from infinimem.plan.paper import Plan
from infinimem.store.buffer import hold
from infinimem.store.layout import BUFFER, FLUSH_LOCK
from infinimem.store.lock import exclusive
from infinimem.store.read import read_file
from infinimem.text.document import body_tokens

if TYPE_CHECKING:
    from infinimem.consolidate.thinking import Thinker

PORTION = 500
"""Entries that one transaction takes: a larger buffer goes in several, each seeing the topics of those before."""


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
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> Report:
    """Consolidate CURRENT. With `plan`, its steps are carried out instead of a planner's; a `thinker` is the planner.

    Raises `NeedsAttention` when CURRENT itself cannot be understood; whatever concerns only one document
    is skipped and said in the report.
    """
    started = clock_time.monotonic()
    with exclusive(root / FLUSH_LOCK, doing="flush"):
        at = timestamp(now)
        signed: tuple[str, ...] = ()
        with hold(root) as note:
            if not dry_run and not if_due:
                sign_buffer(root, note, at)
                signed = sign_topics(root, note, at)
            document = read_file(root, BUFFER).document
        refuse_unreadable(root, document)
        reason = is_due(document, settings, now)
        if if_due:
            if not reason:
                return Report(due=False, reason="not due", left=seqs_of(document.entries))
            with hold(root) as note:
                if not dry_run:
                    sign_buffer(root, note, at)
                    signed = sign_topics(root, note, at)
                document = read_file(root, BUFFER).document
        index = finder()
        again = () if dry_run else forget_again(root, index, at)
        if again:
            document = read_file(root, BUFFER).document
            index = finder()
        buffer = read_buffer(root, document, index)
        if plan is not None:
            refuse_other_buffer(plan, buffer)
            buffer = part_planned(buffer, plan)
        over = plan is None and bool(expired_units(index, at, settings))
        if not buffer.entries and not buffer.again and plan is None and not over:
            left = seqs_of(document.entries)
            empty = "" if left else "CURRENT is empty"
            report = Report(reason=empty, left=left, notes=buffer.notes, forgotten=again, signed=signed)
            return forget_old(root, index, settings, at, report, dry_run=dry_run)
        more = 0
        if plan is None and len(buffer.entries) > PORTION:
            more = len(buffer.entries) - PORTION
            buffer = replace(buffer, entries=dict(list(buffer.entries.items())[:PORTION]))
        run = begin(root, buffer, settings, at)
        run.dry = dry_run
        if plan is None and thinker is not None:
            from infinimem.access.sight import MODEL, sight
            from infinimem.consolidate.model_passes import Planning, plan_by_model

            seen = sight(root, settings.access(MODEL))
            planning = Planning(run, index, settings, thinker, set(index.topics()), progress, seen)
            plan_by_model(planning, rewrite=rewrite, splitting=splitting, merging=merging)
        elif plan is None:
            plan_lexically(run, index, settings, rewrite, splitting, merging, progress)
        else:
            carry_out(run, plan.steps, index)
            place_unmentioned(run, plan.steps)
        if not dry_run:
            progress("commit", 0, 1)
        report = conclude(run, index, dry_run=dry_run)
        if thinker is not None and plan is None:
            report = replace(report, planner="model", failures=tuple(thinker.failures), usage=thinker.usage)
            thinker.failures, thinker.usage = [], Usage()
        seconds = clock_time.monotonic() - started
        report = replace(report, reason=reason, more=more, forgotten=again, signed=signed, seconds=seconds)
        return report if plan is not None else forget_old(root, finder(), settings, at, report, dry_run=dry_run)


def forget_old(root: Path, index: Finder, settings: Settings, at: str, report: Report, *, dry_run: bool) -> Report:
    """The report, with what the retention rules want forgotten by now; outside a dry run that is done."""
    seqs = to_forget(index, at, settings)
    if not seqs:
        return report
    try:
        done = forget_held(root, Wanted(tuple(seqs)), at, dry_run=dry_run)
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
