"""What links learned from use are worth: python benchmarks/links.py [LOCOMO.json] [--json FILE]

On the sample library, or on conversations with questions, each flushed. Of the questions every second one is taken as
asked and answered with the entries that really answer it (so this is the most that use can teach); `reconsolidate`
links from that, and the other questions are measured, which taught nothing. Whatever is chosen (how many different
questions a link needs, how much a linked entry's rank gains) is chosen inside the first half: learned on a quarter,
measured on the other. Reported on the second half, by category, with the 95 % interval of a paired bootstrap over
questions:

- R@5 of `search` in the library before and after it was taught, as the product ranks
- R@5 of `search` with `gain` times the score of a hit added to what it links to: what the product does not do
- the share of a question's entries among what a reader gathers (room of 3,000 tokens), without and with links

No category may lose more than half a point in what the product does; the last column says whether that holds.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from infinimem import Library
from infinimem.model import Filter, Hit, Unit
from infinimem.readers.evidence import Switches, gather
from infinimem.readers.links import Walk
from infinimem.readers.memory import open_memory
from infinimem.store.usage import RECALLS
from infinimem.text.signature import parse_links

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.answers import questions as sample_questions  # noqa: E402
from benchmarks.conversations import LOCOMO, locomo  # noqa: E402
from benchmarks.recall import written  # noqa: E402
from benchmarks.report import table, write_json  # noqa: E402

KINDS = {"1": "1 multi-hop", "2": "2 temporal", "3": "3 open-domain", "4": "4 single-hop"}
ALLOWED = 0.5
"""Points that a category may lose."""
LIMITS = (
    "links are learned from what really answers the questions of the first half: the most that use can teach",
    "English chat between two people; hardly any two turns answer three different questions together",
    "retrieval only: no answer is written or judged",
)
K = 5
NUMBERS = {name: str(number) for number, name in LOCOMO.items()}
NEEDED = (1, 2, 3)
GAINS = (0.0, 0.1, 0.2, 0.4)
SAMPLES = 2000


@dataclass(frozen=True)
class Asked:
    """A question and the seqs that answer it; of several seqs in a group any one will do."""

    text: str
    kind: str
    groups: tuple[frozenset[int], ...]

    @property
    def seqs(self) -> list[int]:
        """One seq for each thing that answers it."""
        return sorted({min(group) for group in self.groups})


@dataclass(frozen=True)
class Measured:
    """A question's shares: of `search` by gain, and of what a reader gathers without and with links."""

    kind: str
    untaught: float
    ranked: tuple[float, ...]
    plain: float
    walked: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--json", type=Path, help="write the figures there too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        libraries = conversations(given.data, Path(scratch)) if given.data else [sample(Path(scratch))]
        print(f"{len(libraries)} libraries, {sum(len(asked) for _, asked in libraries)} questions that have an answer")
        needed, gain = choose(libraries)
        print(f"chosen inside the first half: {needed} different questions for a link, gain {GAINS[gain]}")
        found = [row for count in dict.fromkeys((3, needed)) for row in report(libraries, count, gain)]
    write_json(
        given.json,
        "links",
        found,
        limits=LIMITS,
        seed=1,
        samples=SAMPLES,
        chosen={"needed": needed, "gain": GAINS[gain]},
    )


def sample(scratch: Path) -> tuple[Library, list[Asked]]:
    """A copy of the sample library, and its questions."""
    shutil.copytree(ROOT / "sample_library", scratch / "sample")
    library = Library.open(scratch / "sample")
    library.flush(planner="lexical")
    asked = [
        Asked(one.text, one.kind, tuple(frozenset((seq,)) for seq in one.seqs))
        for one in sample_questions(ROOT / "tools" / "sample")
        if one.seqs
    ]
    return library, asked


def conversations(data: Path, scratch: Path) -> list[tuple[Library, list[Asked]]]:
    """Each conversation, turn by turn and flushed, and its questions."""
    found = []
    for sample in json.loads(data.read_bytes()):
        conversation = locomo(sample)
        library, labels = written(scratch / conversation.name, conversation, True)
        seqs = {label: seq for seq, own in labels.items() for label in own}
        asked = []
        for question in conversation.questions:
            named = {seqs[label] for label in question.evidence}
            if named and question.answerable:
                groups = tuple(frozenset((seq,)) for seq in sorted(named))
                asked.append(Asked(question.text, NUMBERS[question.category], groups))
        found.append((library, asked))
    return found


def choose(libraries: Sequence[tuple[Library, list[Asked]]]) -> tuple[int, int]:
    """The setting that is best where it was not learned, within the first half of the questions."""
    best = (-1.0, 0, 0)
    for needed in NEEDED:
        scores = [one for library, asked in libraries for one in measure(library, asked[::4], asked[2::4], needed)]
        for gain in range(len(GAINS)):
            mean = sum(one.ranked[gain] for one in scores) / max(1, len(scores))
            print(f"  {needed} questions, gain {GAINS[gain]}: R@5 {100 * mean:.1f}")
            if mean > best[0]:
                best = (mean, needed, gain)
    return best[1], best[2]


def report(libraries: Sequence[tuple[Library, list[Asked]]], needed: int, gain: int) -> list[dict[str, Any]]:
    """What the second half shows, by category and in all."""
    scores = [one for library, asked in libraries for one in measure(library, asked[::2], asked[1::2], needed)]
    print(f"\nsecond half, {len(scores)} questions, links need {needed} different ones:\n")
    kinds = sorted({one.kind for one in scores})
    rows = []
    for kind in [*kinds, "all"]:
        own = [one for one in scores if kind in (one.kind, "all")]
        measures = (
            ("R@5 of search, as shipped", [(one.untaught, one.ranked[0]) for one in own]),
            ("gathered by a reader, as shipped", [(one.plain, one.walked) for one in own]),
            (f"R@5 of search, gain {GAINS[gain]} (not shipped)", [(one.ranked[0], one.ranked[gain]) for one in own]),
        )
        rows += [{"needed": needed, "kind": kind, "n": len(own), **compared(name, pairs)} for name, pairs in measures]
    rows.sort(key=lambda row: str(row["measure"]))
    print(table(HEAD, [cells(row) for row in rows]))
    return rows


HEAD = ("measure", "category", "n", "without", "with links", "difference, 95 % interval", "loses at most 0.5")


def cells(row: Mapping[str, Any]) -> tuple[object, ...]:
    """A row of the table."""
    kind = KINDS.get(row["kind"], row["kind"])
    interval = f"{row['difference']:+.2f} [{row['low']:+.2f}, {row['high']:+.2f}]"
    holds = "yes" if row["difference"] >= -ALLOWED else "no"
    return row["measure"], kind, row["n"], row["before"], row["after"], interval, holds


def compared(name: str, pairs: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Both means in percent, their difference and its interval."""
    chance = random.Random(1)
    differences = [after - before for before, after in pairs]
    means = sorted(sum(chance.choices(differences, k=len(differences))) / len(differences) for _ in range(SAMPLES))
    before, after = (100 * sum(values) / len(pairs) for values in zip(*pairs, strict=True))
    low, high = 100 * means[SAMPLES // 40], 100 * means[SAMPLES - SAMPLES // 40 - 1]
    return {
        "measure": name, "before": before, "after": after, "difference": after - before, "low": low, "high": high,
    }  # fmt: skip


def measure(library: Library, teaching: Sequence[Asked], asked: Sequence[Asked], needed: int) -> list[Measured]:
    """Learn from some questions, measure others, and take back what was learned."""
    untaught = [found_in(library, question) for question in asked]
    teach(library, teaching)
    os.environ["INFINIMEM_LINKS_QUESTIONS"] = str(needed)
    taught = Library.open(library.root)
    learned = taught.reconsolidate()
    print(f"    {len(learned.lessons)} links from {len(teaching)} questions", file=sys.stderr)
    scores = [measure_one(taught, question, before) for question, before in zip(asked, untaught, strict=True)]
    if learned.report.flushed:
        taught.undo()
    return scores


def teach(library: Library, questions: Sequence[Asked]) -> None:
    """Note questions as if each had been answered from what really answers it."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    rows = [
        {"at": at, "id": str(number), "asked": question.text, "shown": question.seqs, "cited": question.seqs}
        for number, question in enumerate(questions)
    ]
    (library.root / RECALLS).write_text("".join(json.dumps(row) + "\n" for row in rows))


def found_in(library: Library, question: Asked) -> float:
    """R@5 of search for one question, as the library is."""
    return share([hit.seqs for hit in library.index().search(question.text, K)], question)


def measure_one(library: Library, question: Asked, untaught: float) -> Measured:
    """One question in the library that was taught; `untaught` is its R@5 before."""
    index = library.index()
    hits = index.search(question.text, 100)
    memory = open_memory(library.root, index, Filter(), "english")
    found = [hit.unit for hit in hits[:8]]
    shares = []
    for switches in (Switches(links=False), Switches()):
        pieces = gather(memory, question.text, found, switches=switches, walk=Walk()).pieces
        shares.append(share([piece.seqs for piece in pieces], question))
    ranked = tuple(share([hit.seqs for hit in lifted(library, hits, gain)[:K]], question) for gain in GAINS)
    return Measured(question.kind, untaught, ranked, shares[0], shares[1])


def lifted(library: Library, hits: Sequence[Hit], gain: float) -> list[Hit]:
    """The hits, with part of its score added to what each of the first five links to."""
    if not gain:
        return list(hits)
    added: dict[int, float] = {}
    for hit in hits[:K]:
        for tie in parse_links(hit.unit.get("links")):
            for seq in tie.seqs:
                added[seq] = max(added.get(seq, 0.0), gain * hit.score)
    there = {seq for hit in hits for seq in hit.seqs}
    units: list[Unit] = [unit for seq in added if seq not in there for unit in library.index().standing(seq)[:1]]
    every = [*hits, *(Hit(unit, 0.0) for unit in units)]
    raised = [Hit(hit.unit, hit.score + max((added.get(seq, 0.0) for seq in hit.seqs), default=0.0)) for hit in every]
    return sorted(raised, key=lambda hit: (-hit.score, hit.unit.path, hit.line))


def share(shown: Sequence[tuple[int, ...]], question: Asked) -> float:
    """The share of what answers a question that is shown."""
    seqs = {seq for several in shown for seq in several}
    return sum(not group.isdisjoint(seqs) for group in question.groups) / len(question.groups)


if __name__ == "__main__":
    main()
