"""Reconsolidation: entries that were useful together, for different questions, are linked (REALM 3.4, kept honest).

What is learned is a function of the log of recalls alone, whatever its order: each distinct question adds at most 1 to
a pair, however often it is asked; fewer than `links.questions` of them link nothing; what a question added halves with
time; the sum is clipped. Words are never touched: the only result is `links=…:recalled` in signatures, as a plan.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infinimem.config import Settings
from infinimem.consolidate.flush import run_steps
from infinimem.consolidate.run import Finder, Report, Run
from infinimem.evolve.recall import mark_of
from infinimem.model import CURRENT, Link, Step, Tie, Unit
from infinimem.plan.rules import LEARNED, MOST_LINKS
from infinimem.store.usage import read_recalls
from infinimem.text.signature import parse_links, parse_seqs

if TYPE_CHECKING:
    from infinimem.search.index import Index

CITED, LIKED, DISLIKED = 1.0, 0.5, -1.0
"""What a question adds to a pair: both cited; both shown first where no answer was written, and called good; bad."""
FIRST = 3
"""Pieces of evidence without a written answer that a good word speaks for."""
MOST_CITED = 16
"""Entries of one answer that are paired."""
LONGEST_CHAIN = 50

Seen = tuple[int, str]
"""A seq, and the mark of the words that it had: a git merge may give the seq to another entry."""
Pair = tuple[Seen, Seen]
Lines = tuple[int, int]
"""Two lines of topics, each by its first seq."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A distinct question: since when, and what it adds to which pairs of seqs."""

    since: datetime
    pairs: Mapping[Pair, float]


@dataclass(frozen=True, slots=True)
class Weight:
    """How strongly two entries belong together (0 to 1), by how many questions for and against it."""

    weight: float
    questions: int
    against: int = 0


@dataclass(frozen=True, slots=True)
class Lesson:
    """A link that is learned or unlearned, and the sentence that says why."""

    step: Link
    why: str


@dataclass(frozen=True, slots=True)
class Learned:
    """What reconsolidation found: its lessons, and the report of the plan that they make."""

    lessons: tuple[Lesson, ...]
    report: Report


def reconsolidate(
    root: Path, finder: Callable[[], Finder], index: Index, settings: Settings, now: datetime, *, dry_run: bool = False
) -> Learned:
    """Link what was useful together and unlink what no longer is, as one plan that can be undone."""
    lessons: list[Lesson] = []

    def steps(run: Run, found: Finder) -> Sequence[Step]:
        lessons.extend(learn(read_recalls(root), index, settings, now))
        return [lesson.step for lesson in lessons]

    report = run_steps(root, finder, settings, now, steps, dry_run=dry_run)
    return Learned(tuple(lessons), report)


def learn(rows: Iterable[Mapping[str, Any]], index: Index, settings: Settings, now: datetime) -> list[Lesson]:
    """The links to add and to take away, in an order that depends on the library alone."""
    least, needed = settings.number("links.least"), settings.count("links.questions")
    weights = weigh(questions_in(rows), now, needed, settings.number("links.half_life"))
    lines = standing_lines(index, {seen for pair in weights for seen in pair})
    wanted: dict[Lines, Weight] = {}
    for (one, other), weight in sorted(weights.items()):
        here, there = lines.get(one), lines.get(other)
        if here is None or there is None or here.seqs == there.seqs or here.get("ns") != there.get("ns"):
            continue
        pair = (min(here.seqs[0], there.seqs[0]), max(here.seqs[0], there.seqs[0]))
        if weight.questions >= needed and weight.weight >= least:
            wanted[pair] = max(wanted.get(pair, weight), weight, key=lambda one: (one.weight, one.questions))
    units = {unit.seqs[0]: unit for unit in (*index.having("links"), *lines.values()) if is_ours(unit)}
    lessons = [lesson for seq, unit in sorted(units.items()) for lesson in lessons_for(unit, wanted)]
    return sorted(
        lessons, key=lambda lesson: (not lesson.step.remove, int(lesson.step.source), parse_seqs(lesson.step.to))
    )


def questions_in(rows: Iterable[Mapping[str, Any]]) -> list[Asked]:
    """The distinct questions of a log. The order of the rows does not matter, nor how often one is repeated."""
    asks: dict[str, list[Mapping[str, Any]]] = {}
    verdicts: dict[str, tuple[str, bool]] = {}
    for row in rows:
        at = row.get("at")
        if not isinstance(at, str) or moment(at) is None:
            continue
        if isinstance(row.get("asked"), str):
            asks.setdefault(row["asked"], []).append(row)
        elif isinstance(row.get("of"), str) and row.get("verdict") in ("good", "bad"):
            said = (at, row["verdict"] == "bad")  # the newest counts, of two at one moment the worse
            verdicts[row["of"]] = max(verdicts.get(row["of"], said), said)
    found = []
    for _, several in sorted(asks.items()):
        said_of = [verdicts[row["id"]] for row in several if isinstance(row.get("id"), str) and row["id"] in verdicts]
        since = min(at for row in several if (at := moment(row["at"])) is not None)
        verdict = ("bad" if max(said_of)[1] else "good") if said_of else ""
        found.append(Asked(since, pairs_of(several, verdict)))
    return found


def pairs_of(several: Sequence[Mapping[str, Any]], verdict: str) -> dict[Pair, float]:
    """What a question adds to pairs, over all the times that it was asked: the most that one of them did."""
    pairs: dict[Pair, float] = {}
    for row in several:
        cited, shown = seen_in(row.get("cited")), seen_in(row.get("shown"))
        if verdict == "bad":
            seen, value = cited or shown[:FIRST], DISLIKED
        elif cited:
            seen, value = cited, CITED
        else:
            seen, value = (shown[:FIRST] if verdict else []), LIKED
        for pair in itertools.combinations(sorted(seen[:MOST_CITED]), 2):
            pairs[pair] = max(pairs.get(pair, value), value)
    return pairs


def seen_in(value: Any) -> list[Seen]:
    """The entries in a row, each once."""
    found: dict[Seen, None] = {}
    for one in value if isinstance(value, list) else []:
        match one:
            case int(seq) | [int(seq)] if not isinstance(seq, bool) and seq > 0:
                found[seq, ""] = None
            case [int(seq), str(mark)] if not isinstance(seq, bool) and seq > 0:
                found[seq, mark] = None
    return list(found)


def moment(text: str) -> datetime | None:
    """A time in a row, as an aware datetime; None where it is none."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def weigh(asked: Iterable[Asked], now: datetime, needed: int, half_life: float) -> dict[Pair, Weight]:
    """The weight of each pair: what questions added, each halved every `half_life` seconds, clipped to 0…1.

    `needed` fresh questions make a weight of 1.
    """
    parts: dict[Pair, list[tuple[float, float]]] = {}
    for one in asked:
        age = max(0.0, (now - one.since).total_seconds())
        decay = 0.5 ** (age / half_life) if half_life else 1.0
        for pair, value in one.pairs.items():
            parts.setdefault(pair, []).append((value, decay))
    return {
        pair: Weight(
            min(1.0, max(0.0, math.fsum(value * decay for value, decay in several) / needed)),
            sum(value > 0 for value, _ in several),
            sum(value < 0 for value, _ in several),
        )
        for pair, several in parts.items()
    }


def standing_lines(index: Index, entries: Iterable[Seen]) -> dict[Seen, Unit]:
    """The line of a topic in which each entry, or what took its place, stands now; none for a seq with other words."""
    found: dict[Seen, Unit] = {}
    for entry in entries:
        at, passed = entry[0], set[int]()
        if entry[1] and entry[1] not in {mark_of(unit.text) for unit in (*index.standing(at), *index.evidence(at))}:
            continue
        while at not in passed and len(passed) < LONGEST_CHAIN:
            passed.add(at)
            here = [unit for unit in index.standing(at) if is_ours(unit)]
            if here:
                found[entry] = here[0]
                break
            gone = [unit for unit in index.retired((at,)) if parse_seqs(unit.get("retired_by"))]
            if not gone:
                break
            at = parse_seqs(gone[-1].get("retired_by"))[0]
    return found


def is_ours(unit: Unit) -> bool:
    """Whether a unit is an entry in a topic: what waits in CURRENT is linked once it has a place."""
    return bool(unit.seqs) and unit.topic != CURRENT and unit.path.startswith("topics/")


def lessons_for(unit: Unit, wanted: Mapping[Lines, Weight]) -> list[Lesson]:
    """What one line has to learn and to unlearn, so that it has no more links than allowed, the strongest first."""
    inside = set(unit.seqs)  # a joined line keeps what links its members to each other
    ties = [tie for tie in parse_links(unit.get("links")) if not tie.seqs or not inside.issuperset(tie.seqs)]
    learned = [tie for tie in ties if tie.relation == LEARNED and tie.seqs]
    here = unit.seqs[0]
    near = {other: weight for pair, weight in wanted.items() if here in pair for other in pair if other != here}
    room = max(0, MOST_LINKS - (len(ties) - len(learned)))
    best = sorted(near, key=lambda seq: (-near[seq].weight, -near[seq].questions, seq))[:room]
    lessons = [unlearned(here, tie, near) for tie in learned if tie.seqs[0] not in best or len(tie.seqs) > 1]
    there = {tie.seqs[0] for tie in learned if len(tie.seqs) == 1}
    return lessons + [lesson(here, seq, near[seq]) for seq in best if seq not in there]


def lesson(here: int, there: int, weight: Weight) -> Lesson:
    """A link to learn, explained."""
    against = f", {weight.against} against it" if weight.against else ""
    why = (
        f"{here} and {there} answered {weight.questions} different questions together{against}: "
        f"weight {weight.weight:.2f}"
    )
    return Lesson(Link(str(here), str(there), LEARNED, conf=round(weight.weight, 3)), why)


def unlearned(here: int, tie: Tie, near: Mapping[int, Weight]) -> Lesson:
    """A link to take away, explained."""
    weight = near.get(tie.seqs[0])
    why = "others weigh more" if weight is not None else "it was useful too long ago, or was called bad since"
    to = "-".join(map(str, dict.fromkeys((tie.seqs[0], tie.seqs[-1]))))
    return Lesson(Link(str(here), to, LEARNED, remove=True), f"{here} is no longer linked to {to}: {why}")
