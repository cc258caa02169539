"""Recall of `search` on conversations with questions, beside others' rankings of the same entries.

    python benchmarks/recall.py LOCOMO.json [--dev 1,3,5] [--test 2,4] [--json FILE]
    python benchmarks/recall.py LONGMEMEVAL_S.json --limit 50
    python benchmarks/recall.py …/memory_arena/data/longmemeval-s/processed
    python benchmarks/recall.py LOCOMO.json --only ablation    # or ours, peers, loco

Every turn (`--entries facts`: every extracted fact) is one entry, written session by session into a library of its
own; every question is searched for as it stands. Levels: the turn; the block, five turns of a session one after the
other; the session; and the library's own blocks after a flush, what stands under one heading. Of a ranking of turns a
block's place is that of its best turn. R@k is the share of a question's evidence among the first k, N@k is NDCG, all@k
the share of questions with all their evidence there. Intervals: questions drawn anew within each conversation, 2,000
times, seed 1; paired for differences.

LoCoMo's conversations are parted into dev, for choosing, and test, for reporting; a file that is neither is all test.
Of a peer its best way is taken as dev shows it (or the data itself, where there is no dev: to its advantage): which of
text and `speaker: text` it reads, and whether it ranks blocks and sessions as documents or by their best turn, as the
embedding model, which is slow, always does. Each ranking runs in a process of its
own: CPU and peak memory are the process's. `--only loco` chooses the weights anew for each conversation, by the others
alone. `--only replies` makes questions of a user's own questions, and looks for them and for the assistant's replies.
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.conversations import Conversation, Question, Turn, read
from benchmarks.peers import PACKAGES, PEERS, fused
from benchmarks.report import table, write_json
from benchmarks.scores import KS, MEASURES, SEED, Judged, Places, interval, judge, percent
from infinimem import Library
from infinimem.model import Filter, Unit
from infinimem.search.rank import Candidate, Statistics, Weights, read_question, score
from infinimem.search.records import describe
from infinimem.text.words import STOP_WORDS, analyse, date_terms, is_date_term

DEEP = 100
"""Places of turns from which blocks and sessions are ranked."""
BLOCK = 5
FORMS: dict[str, Callable[[Turn], str]] = {
    "text": lambda turn: turn.text,
    "speaker: text": lambda turn: f"{turn.speaker}: {turn.text}",
}
OURS = "infinimem"
MODEL = "all-MiniLM-L6-v2"
SPOKEN = "speaker: text"
ABLATIONS: dict[str, Mapping[str, float]] = {
    "the words of neighbours": {"near": 0.0, "answer": 0.0},
    "the weight after a question": {"answer": 0.0},
    "date and source as words": {"signature": 0.0},
    "the speaker named": {"speaker": 0.0},
    "when, if asked for": {"when": 0.0},
    "less for what only asks": {"asking": 0.0},
    "headings": {"heading": 0.0},
    "its own k1 and b (1.5, 0.75 instead)": {"k1": 1.5, "b": 0.75},
    "all of these": {"near": 0, "answer": 0, "signature": 0, "speaker": 0, "when": 0, "asking": 0, "heading": 0},
}
SELF = "what `I` asks for"
VARIATIONS: dict[str, tuple[float, ...]] = {
    "k1": (0.6, 1.2),
    "b": (0.2, 0.5),
    "near": (0.2, 0.4),
    "decay": (0.35, 0.7),
    "answer": (0.3, 0.7),
    "speaker": (0.1, 0.3),
    "when": (0.1, 0.3),
    "asking": (0.0, 0.2),
    "signature": (0.7, 1.3),
}


@dataclass(frozen=True)
class Ran:
    """What a ranking gave, question by question: 10 places of entries, `DEEP` places, and what it cost.

    `blocks` names the own block of each label, where the ranking has such.
    """

    places: list[Places]
    deep: list[Places]
    ready: float = 0.0
    each: float = 0.0
    peak: float = 0.0
    blocks: tuple[dict[str, str], ...] = ()


@dataclass(frozen=True)
class Asked:
    """The questions that have evidence, with their conversations and whether they are of the dev part."""

    conversations: Sequence[Conversation]
    questions: tuple[tuple[int, Question], ...]
    dev: tuple[bool, ...]

    def answerable(self, part: str) -> list[bool]:
        """Which questions of a part the conversation answers as they are asked."""
        parted = zip(self.dev, self.questions, strict=True)
        return [of_dev == (part == "dev") and question.answerable for of_dev, (_, question) in parted]

    def judged(self, places: Sequence[Places], level: str, blocks: Sequence[Mapping[str, str]] = ()) -> Judged:
        """Each question's figures at a level."""
        import numpy as np

        values = []
        for (at, question), ranked in zip(self.questions, places, strict=True):
            units = blocks[at] if blocks else units_of(self.conversations[at], level)
            evidence = frozenset(units[label] for label in question.evidence if label in units)
            values.append(judge(lifted(ranked, units), evidence, question.any_of))
        strata = tuple(self.conversations[at].stratum for at, _ in self.questions)
        return Judged(np.array(values), strata, tuple(question.category for _, question in self.questions))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument(
        "--dev", default="", help="conversations to choose on, by number or name; default 1,3,5 of LoCoMo"
    )
    parser.add_argument("--test", default="", help="conversations to report; default: the others")
    parser.add_argument("--halves", action="store_true", help="every second question is for choosing instead")
    parser.add_argument("--entries", choices=("turns", "facts"), default="turns")
    parser.add_argument("--limit", type=int, default=0, help="the first so many conversations only")
    parser.add_argument("--only", choices=("all", "ours", "peers", "ablation", "loco", "replies"), default="all")
    parser.add_argument("--jobs", type=int, default=1, help="rankings at a time; their CPU is counted one by one")
    parser.add_argument("--quick", action="store_true", help="peers rank turns alone")
    parser.add_argument("--json", type=Path, help="write the figures there too")
    given = parser.parse_args()
    found = read(given.data, given.entries)[: given.limit or None]
    asked = asked_of(found, given.dev, given.test)
    if given.halves:
        asked = replace(asked, dev=tuple(at % 2 == 0 for at in range(len(asked.questions))))
    print(told(asked), flush=True)
    results: dict[str, Any] = {"part": told(asked)}
    if given.only in ("all", "ours", "peers"):
        results |= compare(asked, given.only != "ours", given.quick, given.jobs)
    if given.only in ("all", "ablation"):
        results["ablation"] = ablate(asked)
    if given.only == "loco":
        results["leave one out"] = leave_one_out(asked)
    if given.only == "replies":
        results["replies"] = replies(asked)
    write_json(
        given.json,
        "recall",
        results,
        limits=LIMITS,
        packages=PACKAGES,
        seed=SEED,
        entries=given.entries,
        block=BLOCK,
        data=given.data.name,
    )


LIMITS = (
    "the ranking's constants were chosen on LoCoMo's five conversations before they were parted: the leave-one-out row "
    "and LongMemEval's questions, never looked at while choosing, are the honest ones",
    "English; a turn is an entry; the ranking looks at 100 candidates of the inverted index",
    "a peer's text form and way are chosen on dev, or on the data itself where there is no dev",
)


def asked_of(found: Sequence[Conversation], dev: str, test: str) -> Asked:
    """The questions with evidence; of LoCoMo the odd conversations are dev unless told otherwise."""

    def named(text: str) -> set[str]:
        names = [word for word in text.split(",") if word]
        return {found[int(word) - 1].name if word.isdigit() else word for word in names}

    is_locomo = len(found) > 1 and all(each.stratum == each.name for each in found)
    for_choosing = named(dev) or ({each.name for each in found[::2]} if is_locomo else set())
    for_report = named(test) or {each.name for each in found} - for_choosing
    kept = [each for each in found if each.name in for_choosing | for_report]
    held = [frozenset(label for turn in each.turns for label in turn.labels) for each in kept]
    questions = tuple(
        (at, replace(question, evidence=question.evidence & held[at]))
        for at, each in enumerate(kept)
        for question in each.questions
        if question.evidence & held[at]
    )
    return Asked(kept, questions, tuple(kept[at].name in for_choosing for at, _ in questions))


def told(asked: Asked) -> str:
    """What is measured, in one line."""
    entries = sum(len(each.turns) for each in asked.conversations)
    return (
        f"{len(asked.conversations)} conversations, {entries:,} entries; questions with evidence: "
        f"{sum(asked.dev)} for choosing, {len(asked.dev) - sum(asked.dev)} reported"
    )


# Comparing


def compare(asked: Asked, peers: bool, quick: bool, jobs: int) -> dict[str, Any]:
    """Everybody's table at each level; the rows as JSON."""
    context = get_context("spawn")
    with ThreadPoolExecutor(jobs) as pool:
        started = {
            f"{OURS}, in CURRENT": {("", "turn"): pool.submit(alone, context, rank_ours, asked, False)},
            f"{OURS}, flushed": {("", "turn"): pool.submit(alone, context, rank_ours, asked, True)},
        } | {
            name: {way: pool.submit(alone, context, rank_peer, name, asked, *way) for way in ways_of(name, quick)}
            for name in (PEERS if peers else ())
        }
        ran: dict[str, dict[tuple[str, str], Ran]] = {}
        absent: list[str] = []
        for name, ways in started.items():
            try:
                ran[name] = {way: job.result() for way, job in ways.items()}
            except ImportError as error:
                absent.append(name)
                print(f"{name}: absent ({error})", flush=True)
    ours = ran[f"{OURS}, in CURRENT"]["", "turn"]
    curves: list[dict[str, Any]] = []
    categories: list[dict[str, Any]] = []
    for level in ("turn", "block", "session", "own block"):
        rows = []
        base = asked.judged(ours.deep if level != "turn" else ours.places, level) if level != "own block" else None
        chosen: dict[str, Ran] = {}
        for name, ways in ran.items():
            way = best_way(asked, ways, level)
            if way is None:
                continue
            chosen[name] = ways[way]
            rows.append((name, way, judged_of(asked, ways[way], way, level), ways[way]))
        if level == "turn" and MODEL in chosen:
            rows.append(fusion(asked, ours, chosen[MODEL]))
        if rows:
            parts = {part: judged_rows(asked, rows, base, level, part) for part in ("dev", "test")}
            for listed in parts.values():
                curves += [curve for row in listed for curve in row["curve"]]
                categories += [row["categories"] for row in listed if level == "turn"]
            show_level(level, parts["test"], asked)
    show_categories([row for row in categories if row["part"] == "test"])
    return {"curves": curves, "categories": categories, "absent": absent}


def ways_of(name: str, quick: bool = False) -> list[tuple[str, str]]:
    """What a peer may read and rank; the model, which is slow, ranks turns alone."""
    turns = [(form, "turn") for form in FORMS]
    return turns if quick or name == MODEL else [*turns, (SPOKEN, "block"), (SPOKEN, "session")]


def judged_of(asked: Asked, ran: Ran, way: tuple[str, str], level: str) -> Judged:
    """The figures of one way of a ranking at a level."""
    if level == "own block":
        return asked.judged(ran.deep, level, ran.blocks)
    return asked.judged(ran.places if level == way[1] else ran.deep, level)


def best_way(asked: Asked, ways: Mapping[tuple[str, str], Ran], level: str) -> tuple[str, str] | None:
    """The way with the best R@5 and N@5 at a level on dev; None where a ranking has no such level."""
    if level == "own block":
        return next((way for way, ran in ways.items() if ran.blocks), None)
    fit = [way for way in ways if way[1] in ("turn", level)]
    on_dev = asked.answerable("dev" if any(asked.dev) else "test")

    def worth(way: tuple[str, str]) -> float:
        own = judged_of(asked, ways[way], way, level).only(on_dev)
        return percent(own.at(5)) + percent(own.at(5, "ndcg"))

    return max(fit, key=worth) if len(fit) > 1 else fit[0]


def fusion(asked: Asked, ours: Ran, theirs: Ran) -> tuple[str, tuple[str, str], Judged, Ran]:
    """Ours and MiniLM by reciprocal rank, a hundred places of each."""
    places = [fused(pair) for pair in zip(ours.deep, theirs.deep, strict=True)]
    both = Ran(places, places, ours.ready + theirs.ready, ours.each + theirs.each, max(ours.peak, theirs.peak))
    return "both by rank (RRF 60)", ("", "turn"), asked.judged(places, "turn"), both


def judged_rows(
    asked: Asked,
    rows: Sequence[tuple[str, tuple[str, str], Judged, Ran]],
    base: Judged | None,
    level: str,
    part: str,
) -> list[dict[str, Any]]:
    """The figures of one part; nothing where it has no question."""
    of_part = [of_dev == (part == "dev") for of_dev in asked.dev]
    keep = asked.answerable(part)
    found = []
    for name, way, judged, ran in rows if any(keep) else ():
        own, every = judged.only(keep), judged.only(of_part)
        figures = {f"{measure}@{k}": percent(own.at(k, measure)) for k in KS for measure in MEASURES}
        row: dict[str, Any] = {"ranking": name, "part": part, "level": level, "reads": way[0], "ranks": way[1]}
        row |= {"questions": len(own.strata), "ready": ran.ready, "ms": ran.each, "peak_mb": ran.peak}
        difference = {}
        if base is not None:
            change = own.at(5) - base.only(keep).at(5)
            difference = {"difference": percent(change), "difference_interval": interval(change, own.strata)}
        curve = [
            {**row, **difference, "k": k, **{measure: figures[f"{measure}@{k}"] for measure in MEASURES}}
            | {"interval": interval(own.at(k), own.strata)}
            for k in KS
        ]
        kinds = {
            kind: every.only([each == kind for each in every.categories]) for kind in sorted(set(every.categories))
        }
        by_kind = {
            kind: {
                "questions": len(each.strata),
                "recall@5": percent(each.at(5)),
                "ndcg@5": percent(each.at(5, "ndcg")),
                "interval": interval(each.at(5), each.strata),
            }
            for kind, each in kinds.items()
        }
        categories = {"ranking": name, "part": part, "categories": by_kind}
        found.append({**row, **figures, **difference, "curve": curve, "categories": categories})
    return found


def show_level(level: str, rows: Sequence[Mapping[str, Any]], asked: Asked) -> None:
    """The table of one level, reported part."""
    head = ["R@1", "R@3", "R@5", "95 %", "R@10", "N@5", "all@5", "all@10", "R@5 less ours", "95 %"]
    if level == "turn":
        head += ["ready, CPU s", "a question, CPU ms", "peak MB"]
    print(f"\nLevel: {level}" + ("" if level != "block" else f" of {BLOCK} turns"))
    lines = []
    for row in rows:
        by_five = row["curve"][KS.index(5)]["interval"]
        line = [row["ranking"] + way_told(row), row["recall@1"], row["recall@3"], row["recall@5"], span(by_five)]
        line += [row["recall@10"], row["ndcg@5"], row["all@5"], row["all@10"]]
        line += [f"{row['difference']:+.1f}", span(row["difference_interval"])] if "difference" in row else ["", ""]
        line += [round(row["ready"], 1), round(row["ms"], 1), round(row["peak_mb"])] if level == "turn" else []
        lines.append(line)
    print(table(["ranking", *head], lines), flush=True)


def way_told(row: Mapping[str, Any]) -> str:
    parts = [row["reads"]] if row["reads"] else []
    if row["level"] in ("block", "session") and row["reads"]:
        parts.append("as documents" if row["ranks"] == row["level"] else "by best turn")
    return f" ({'; '.join(parts)})" if parts else ""


def show_categories(rows: Sequence[Mapping[str, Any]]) -> None:
    """R@5 of turns by category, reported part."""
    if not rows:
        return
    kinds = list(rows[0]["categories"])
    head = ["R@5 by category", *(f"{kind} ({rows[0]['categories'][kind]['questions']})" for kind in kinds)]
    print()
    print(table(head, [[row["ranking"], *(row["categories"][kind]["recall@5"] for kind in kinds)] for row in rows]))


def span(edges: Sequence[float]) -> str:
    return f"[{edges[0]:.1f}, {edges[1]:.1f}]"


# Rankings, each in a process of its own


def alone(context: BaseContext, job: Callable[..., Ran], *given: Any) -> Ran:
    """What a job gives in a fresh process, so that its CPU and memory are its own."""
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(job, *given).result()


def rank_peer(name: str, asked: Asked, form: str, unit: str) -> Ran:
    """A peer over documents that are turns, blocks or sessions."""
    searches = []
    labels: list[list[frozenset[str]]] = []
    for conversation in asked.conversations:
        documents = documents_of(conversation, form, unit)
        labels.append([each for each, _ in documents])
        searches.append(PEERS[name]([text for _, text in documents]))
    ready = time.process_time()
    near = [searches[at](question.text, max(KS)) for at, question in asked.questions]
    each = (time.process_time() - ready) / max(1, len(near))
    deep = [searches[at](question.text, DEEP) for at, question in asked.questions] if unit == "turn" else near
    owners = [at for at, _ in asked.questions]

    def labelled(found: Sequence[Sequence[int]]) -> list[Places]:
        return [[labels[at][place] for place in places] for at, places in zip(owners, found, strict=True)]

    return Ran(labelled(near), labelled(deep), ready, each * 1000, peak())


def rank_ours(asked: Asked, flushed: bool) -> Ran:
    """The library's own search."""
    with tempfile.TemporaryDirectory() as scratch:
        libraries = [written(Path(scratch, str(at)), each, flushed) for at, each in enumerate(asked.conversations)]
        indexes = [library.index() for library, _ in libraries]
        ready = time.process_time()
        near = [indexes[at].search(question.text, max(KS)) for at, question in asked.questions]
        each = (time.process_time() - ready) / max(1, len(near))
        deep = [indexes[at].search(question.text, DEEP) for at, question in asked.questions]
        owners = [libraries[at][1] for at, _ in asked.questions]
        blocks = tuple(own_blocks(index, labels) for index, (_, labels) in zip(indexes, libraries, strict=True))
        near_places, deep_places = (
            [[labels[seq] for hit in hits for seq in hit.seqs] for labels, hits in zip(owners, found, strict=True)]
            for found in (near, deep)
        )
        return Ran(near_places, deep_places, ready, each * 1000, peak(), blocks if flushed else ())


def written(folder: Path, conversation: Conversation, flushed: bool) -> tuple[Library, dict[int, frozenset[str]]]:
    """A conversation in a library, session by session; which labels each seq stands for."""
    library = Library.open(folder, create=True)
    labels: dict[int, frozenset[str]] = {}
    for session in conversation.sessions:
        entries = [
            {"text": turn.text}
            | {key: value for key, value in (("source", turn.speaker), ("time", turn.time)) if value}
            for turn in session
        ]
        labels |= {seq: turn.labels for seq, turn in zip(library.write(entries), session, strict=True)}
        if flushed:
            library.flush(planner="lexical")
    return library, labels


def own_blocks(index: Any, labels: Mapping[int, frozenset[str]]) -> dict[str, str]:
    """The document and heading under which each label's entry stands."""
    return {
        label: f"{unit.path} {' / '.join(unit.headings)}"
        for unit in index.entries([], Filter())
        for seq in unit.seqs
        for label in labels.get(seq, ())
    }


def peak() -> float:
    """Largest resident memory of this process, in MB."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1 << 20 if sys.platform == "darwin" else 1 << 10)


# Levels


def documents_of(conversation: Conversation, form: str, unit: str) -> list[tuple[frozenset[str], str]]:
    """(labels, text) of each turn, block or session."""
    groups: dict[str, list[Turn]] = {}
    for number, turn in enumerate(conversation.turns):
        groups.setdefault(str(number) if unit == "turn" else "", []).append(turn)
    if unit != "turn":
        groups = {}
        for name, turn in unit_names(conversation, unit):
            groups.setdefault(name, []).append(turn)
    return [
        (frozenset(label for turn in turns for label in turn.labels), "\n".join(FORMS[form](turn) for turn in turns))
        for turns in groups.values()
    ]


def units_of(conversation: Conversation, level: str) -> dict[str, str]:
    """The unit of each label; a label that several entries bear (facts) belongs to its first."""
    if level == "turn":
        return {label: label for turn in conversation.turns for label in turn.labels}
    found: dict[str, str] = {}
    for name, turn in unit_names(conversation, level):
        for label in turn.labels:
            found.setdefault(label, name)
    return found


def unit_names(conversation: Conversation, level: str) -> Iterator[tuple[str, Turn]]:
    """Each turn with the name of its block or session."""
    for session in conversation.sessions:
        for at, turn in enumerate(session):
            yield (turn.session if level == "session" else f"{turn.session}/{at // BLOCK}"), turn


def lifted(places: Places, units: Mapping[str, str]) -> list[frozenset[str]]:
    """A ranking of turns as one of units: each stands where its first turn does."""
    seen: set[str] = set()
    found = []
    for labels in places:
        own = frozenset(units[label] for label in labels if label in units)
        if not own <= seen or not own:
            found.append(own)
            seen |= own
    return found


# What each ingredient is worth


def ablate(asked: Asked) -> list[dict[str, Any]]:
    """A row for each ingredient left out, on both parts, in CURRENT and flushed."""
    found = []
    for flushed in (False, True):
        with tempfile.TemporaryDirectory() as scratch:
            libraries = [written(Path(scratch, str(at)), each, flushed) for at, each in enumerate(asked.conversations)]
            settings = [Weights(), *(replace(Weights(), **changes) for changes in ABLATIONS.values())]
            ranked = dict(zip(("everything", *ABLATIONS), weighed(asked, libraries, settings), strict=True))
            ranked[SELF] = weighed(asked, libraries, [Weights()], of_self=False)[0]
            if not flushed:
                ranked |= {name: analysed(asked, libraries, terms) for name, terms in ANALYSES.items()}
        judged = {name: asked.judged(places, "turn") for name, places in ranked.items()}
        rows = []
        for name, own in judged.items():
            base = judged[WHOLE] if name in ANALYSES else judged["everything"]
            rows.append(ablation_row(asked, name, own, base) | {"flushed": flushed})
        found += rows
        print(f"\nWithout …, {'flushed' if flushed else 'in CURRENT'}")
        head = [title for part in parts_of(asked) for title in (f"{part} R@5", "change", "95 %", "N@5")]
        print(table(["without", *head], [row["line"] for row in rows]), flush=True)
    return [{key: value for key, value in row.items() if key != "line"} for row in found]


def ablation_row(asked: Asked, name: str, own: Judged, base: Judged) -> dict[str, Any]:
    """R@5 and its change on each part."""
    row: dict[str, Any] = {"without": name}
    line: list[object] = [name]
    for part in parts_of(asked):
        keep = asked.answerable(part)
        here = own.only(keep)
        change = here.at(5) - base.only(keep).at(5)
        row[part] = {
            "recall@1": percent(here.at(1)),
            "recall@5": percent(here.at(5)),
            "ndcg@5": percent(here.at(5, "ndcg")),
            "change": percent(change),
            "interval": interval(change, here.strata),
        }
        line += [row[part]["recall@5"], f"{row[part]['change']:+.1f}", span(row[part]["interval"]), row[part]["ndcg@5"]]
    return row | {"line": line}


def parts_of(asked: Asked) -> list[str]:
    """The parts that have a question."""
    return [part for part in ("dev", "test") if any(asked.answerable(part))]


def weighed(
    asked: Asked,
    libraries: Sequence[tuple[Library, dict[int, frozenset[str]]]],
    settings: Sequence[Weights],
    *,
    of_self: bool = True,
) -> list[list[Places]]:
    """For each setting every question's ranking, from the candidates that the index gathers once.

    Without `of_self` who asks means nothing by `I`.
    """
    indexes = [library.index() for library, _ in libraries]
    found: list[list[Places]] = [[] for _ in settings]
    for at, question in asked.questions:
        gathered = indexes[at].gather(question.text, max(KS))
        if not of_self:
            gathered = replace(gathered, question=replace(gathered.question, of_self=False))
        for own, weights in zip(found, settings, strict=True):
            hits = indexes[at].choose(gathered, max(KS), Filter(), weights)
            own.append([libraries[at][1][seq] for hit in hits for seq in hit.seqs])
    return found


Terms = Callable[[str], list[str]]


def analysed(
    asked: Asked, libraries: Sequence[tuple[Library, dict[int, frozenset[str]]]], terms: Terms
) -> list[Places]:
    """Every question's ranking where words are made by `terms`: all entries are candidates, not the index's hundred."""
    pools = []
    for library, _ in libraries:
        units = [unit for unit in library.index().entries([], Filter()) if unit.seqs]
        pool = [candidate_of(unit, terms) for unit in sorted(units, key=lambda unit: unit.seqs)]
        holding: dict[str, int] = {}
        for candidate in pool:
            for term in {*candidate.own, *candidate.signature}:
                holding[term] = holding.get(term, 0) + 1
        mean = sum(len(candidate.own) for candidate in pool) / max(1, len(pool))
        pools.append((pool, mean, holding))
    found: list[Places] = []
    for at, question in asked.questions:
        pool, mean, holding = pools[at]
        asking = replace(read_question(question.text), terms=tuple(dict.fromkeys(terms(question.text))))
        statistics = Statistics(len(pool), mean, {term: holding.get(term, 0) for term in asking.terms})
        scores = score(asking, pool, statistics)
        order = sorted((place for place, value in enumerate(scores) if value > 0), key=lambda place: -scores[place])
        labels = libraries[at][1]
        found.append([labels[seq] for place in order[: max(KS)] for seq in pool[place].seqs])
    return found


def candidate_of(unit: Unit, terms: Terms) -> Candidate:
    own = describe(unit, "english").candidate
    signature = (*date_terms(unit.time or unit.observed), *terms(unit.source))
    return replace(own, own=tuple(terms(unit.text)), signature=signature)


def unstemmed(text: str) -> list[str]:
    """Stop words left out, no stems."""
    return [term for term in analyse(text, "") if term not in STOP_WORDS["english"]]


def with_stop_words(text: str) -> list[str]:
    """Stems, and stop words too."""
    import Stemmer

    stem = Stemmer.Stemmer("english").stemWord
    return [
        made
        for term in analyse(text, "")
        for made in ([term] if is_date_term(term) else analyse(term, "english") or [stem(term)])
    ]


WHOLE = "nothing (every entry a candidate)"
ANALYSES: dict[str, Terms] = {
    WHOLE: lambda text: analyse(text, "english"),
    "stems": unstemmed,
    "stop words": with_stop_words,
    "stems and stop words": lambda text: analyse(text, ""),
    "any analysis (lower case, split at spaces)": lambda text: text.lower().split(),
}


# What `I` asks for, where an assistant replies

ASKED = (
    ("user", "When did I ask: {}"),
    ("assistant", "What did you recommend when I asked: {}"),
    ("assistant", "What did you tell me about this: {}"),
    ("assistant", "{}"),
)
"""Who said what is looked for, and the question made of what a user asked."""
ITSELF = re.compile(r"[^.!?\n]*\?")


def replies(asked: Asked) -> list[dict[str, Any]]:
    """R@1 and R@5 of what users asked and of the replies to it, with what `I` asks for and without."""
    made = [list(exchanges(conversation)) for conversation in asked.conversations]
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        libraries = [written(Path(scratch, str(at)), each, False) for at, each in enumerate(asked.conversations)]
        for who, form in ASKED:
            questions = tuple(
                (at, Question(form.format(text), form, (), (user if who == "user" else reply).labels))
                for at, own in enumerate(made)
                for text, user, reply in own
            )
            these = Asked(asked.conversations, questions, (False,) * len(questions))
            row: dict[str, Any] = {"wanted": who, "asked": form, "questions": len(questions)}
            for name, of_self in (("", True), (f" without {SELF}", False)):
                judged = these.judged(weighed(these, libraries, [Weights()], of_self=of_self)[0], "turn")
                row |= {f"recall@{k}{name}": percent(judged.at(k)) for k in (1, 5)}
            rows.append(row)
    print(table(list(rows[0]), [list(row.values()) for row in rows]))
    return rows


def exchanges(conversation: Conversation) -> Iterator[tuple[str, Turn, Turn]]:
    """Each question of a user's (the last of its turn, of 4 to 25 words), its turn and the reply; 150, by seed."""
    found = []
    for session in conversation.sessions:
        for user, reply in itertools.pairwise(session):
            text = (ITSELF.findall(user.text) or [""])[-1].strip()
            if (user.speaker, reply.speaker) == ("user", "assistant") and 4 <= len(text.split()) <= 25:
                found.append((text, user, reply))
    random.Random(SEED).shuffle(found)
    yield from found[:150]


# Leave one conversation out


def leave_one_out(asked: Asked) -> dict[str, Any]:
    """Choose each conversation's weights by the others, dev and test alike: the defaults, or one of them changed."""
    settings = [Weights()] + [
        replace(Weights(), **{name: value}) for name, values in VARIATIONS.items() for value in values
    ]
    with tempfile.TemporaryDirectory() as scratch:
        libraries = [written(Path(scratch, str(at)), each, False) for at, each in enumerate(asked.conversations)]
        judged = [asked.judged(places, "turn") for places in weighed(asked, libraries, settings)]
    answerable = [question.answerable for _, question in asked.questions]
    owners = [at for at, _ in asked.questions]
    tried = [
        {"weights": difference(weights), "recall@5": percent(own.only(answerable).at(5))}
        | {"ndcg@5": percent(own.only(answerable).at(5, "ndcg"))}
        for weights, own in zip(settings, judged, strict=True)
    ]
    print(table(list(tried[0]), [list(row.values()) for row in tried]))
    chosen: dict[str, str] = {}
    recall = judged[0].at(5).copy()
    ndcg = judged[0].at(5, "ndcg").copy()
    for left, conversation in enumerate(asked.conversations):
        others = [owner != left and fit for owner, fit in zip(owners, answerable, strict=True)]
        worth = [percent(own.only(others).at(5)) + percent(own.only(others).at(5, "ndcg")) for own in judged]
        best = max(range(len(settings)), key=worth.__getitem__)
        chosen[conversation.name] = difference(settings[best])
        here = [owner == left for owner in owners]
        recall[here], ndcg[here] = judged[best].at(5)[here], judged[best].at(5, "ndcg")[here]
    strata = [name for name, fit in zip(judged[0].strata, answerable, strict=True) if fit]
    row = {
        "recall@5": percent(recall[answerable]),
        "interval": interval(recall[answerable], strata),
        "ndcg@5": percent(ndcg[answerable]),
        "chosen": chosen,
        "tried": tried,
    }
    print(f"leave one out, answerable questions: R@5 {row['recall@5']} {row['interval']}, N@5 {row['ndcg@5']}")
    print("chosen by the others:", "; ".join(f"{name} {what}" for name, what in chosen.items()))
    return row


def difference(weights: Weights) -> str:
    """A setting as what it changes."""
    changed = [name for name in VARIATIONS if getattr(weights, name) != getattr(Weights(), name)]
    return ", ".join(f"{name}={getattr(weights, name)}" for name in changed) or "defaults"


if __name__ == "__main__":
    main()
