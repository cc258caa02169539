"""What a run did, in words: for its report and for the commit that keeps it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from infinimem.model import Divide, Extend, Join, Link, Merge, Outcome, Retire, Split, Step
from infinimem.text.lines import counted
from infinimem.text.signature import render_seqs

if TYPE_CHECKING:
    from infinimem.consolidate.run import Report


def gains(report: Report) -> dict[str, int]:
    """How many new entries each topic got, wherever splits and merges took them."""
    holds: dict[str, set[int]] = {}
    for outcome in report.outcomes:
        if outcome.status != "executed":
            continue
        match outcome.step:
            case Extend(topic=topic, seqs=seqs):
                holds.setdefault(topic, set()).update(seqs)
            case Split(topic=topic, parts=parts):
                new = holds.pop(topic, set())
                for part in parts:
                    holds.setdefault(part.topic, set()).update(new.intersection(part.seqs))
            case Merge(topics=topics, into=into):
                moved = [holds.pop(topic, set()) for topic in topics]
                holds[into] = set().union(*moved)
    return {topic: len(seqs) for topic, seqs in holds.items()}


def in_runs(skipped: Iterable[Outcome]) -> list[tuple[Step | str, str]]:
    """What was skipped, each with its reason; retirements refused for the same one together: `retire 4-30`."""
    lines: list[tuple[Step | str, str]] = []
    runs: dict[tuple[int, str], list[int]] = {}
    places: dict[tuple[int, str], int] = {}
    for outcome in skipped:
        step = outcome.step
        if not isinstance(step, Retire):
            lines.append((step, outcome.why))
            continue
        alike = (step.by, re.sub(rf"\b{step.seq}\b", "{}", outcome.why))
        if alike not in runs:
            places[alike] = len(lines)
            lines.append((step, outcome.why))
        runs.setdefault(alike, []).append(step.seq)
    for alike, seqs in runs.items():
        if len(seqs) > 1:
            together = render_seqs(sorted(set(seqs)))
            lines[places[alike]] = f"retire {together}", alike[1].replace("{}", together)
    return lines


def home_of(topic: str, later: Iterable[Step]) -> str:
    """Where a document is in the end, after the merges that came later in the run."""
    for step in later:
        if isinstance(step, Merge) and topic in step.topics:
            topic = step.into
    return topic


def deeds(steps: Sequence[Step], removed: Collection[str], seqs: Sequence[int]) -> list[str]:
    """What a change did, for its history: in numbers where it is much."""
    links = [step for step in steps if isinstance(step, Link)]
    lines = [f"{counted(len(seqs), 'entry', 'entries')} flushed"] if seqs else []
    lines += stories([step for step in steps if not isinstance(step, Link | Retire)], removed)
    retired = sum(isinstance(step, Retire) for step in steps)
    lines += [f"{retired} retired"] if retired else []
    for what, number in (
        ("made", sum(not one.remove for one in links)),
        ("taken away", sum(one.remove for one in links)),
    ):
        lines += [f"{counted(number, 'link')} {what}"] if number else []
    return lines


def stories(steps: Iterable[Step], removed: Collection[str]) -> list[str]:
    """The steps in words, retirements last; extending and creating show in the list of topics."""
    lines: list[str] = []
    gone: dict[tuple[str, int], list[int]] = {}
    steps = list(steps)
    for at, step in enumerate(steps):
        match step:
            case Split(topic=topic, parts=parts):
                homes = list(dict.fromkeys(home_of(part.topic, steps[at + 1 :]) for part in parts))
                lines += [f"split {topic} into {', '.join(homes)}"] if homes != [topic] else []
            case Merge(topics=topics, into=into):
                merged = [topic for topic in topics if topic in removed]  # not what this very run had made
                lines += [f"merged {', '.join(merged)} into {into}"] if merged else []
            case Retire(seq=seq, by=by, why=why):
                gone.setdefault((why, by), []).append(seq)
            case Join(seqs=seqs):
                lines.append(f"joined {render_seqs(seqs)}")
            case Divide(seq=seq, seqs=seqs):
                lines.append(f"split {seq} into {', '.join(map(str, seqs))}")
            case Link(source=source, to=to, relation=relation, remove=remove):
                gone_link = f"{source} is no longer linked to {to}"
                lines.append(gone_link if remove else f"linked {source} to {to}: {relation}")
    for (reason, successor), retired in gone.items():
        link = f" {'of' if reason == 'duplicate' else 'by'} {successor}" if successor else ""
        lines.append(f"retired {render_seqs(sorted(retired))}: {reason}{link}")
    return lines
