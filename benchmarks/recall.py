"""Recall of `search` on conversations with questions: python benchmarks/recall.py LOCOMO.json [--flushed] [--loco]

Every turn (or, in the second table, every extracted fact) of a conversation is one entry, written session by
session into a library of its own; every question is searched for as it stands. Reported are recall and NDCG
at 5 over the turns that the data names as evidence, by the data's categories: 1 multi-hop, 2 temporal,
3 open-domain, 4 single-hop; 5 cannot be answered as asked and is shown beside. A joined hit fills as many places
as it has seqs. Captions of shared images are not written unless asked for.

`--flushed` consolidates after every session with the lexical planner. `--loco` chooses the ranking's weights
anew for each conversation, by the other conversations alone, and reports what that gives.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from infinimem import Library
from infinimem.model import Filter
from infinimem.search.rank import Weights

K = 5
CATEGORIES = (1, 2, 3, 4, 5)
ANSWERABLE = (1, 2, 3, 4)
VARIATIONS: dict[str, tuple[float, ...]] = {
    "k1": (0.6, 1.2),
    "b": (0.2, 0.5),
    "near": (0.2, 0.4),
    "decay": (0.35, 0.7),
    "answer": (0.3, 0.7),
    "speaker": (0.1, 0.3),
    "when": (0.1, 0.3),
    "asking": (0.0, 0.2),
}
DIA_ID = re.compile(r"D\d+:\d+")


@dataclass(frozen=True)
class Written:
    """A conversation in a library: which turns each seq stands for, and the questions about it."""

    name: str
    library: Library
    labels: dict[int, frozenset[str]]
    questions: tuple[dict[str, Any], ...]
    turns: frozenset[str]


@dataclass(frozen=True)
class Score:
    """Of one question. `strict` counts evidence that no entry holds as missed."""

    category: int
    recall: float
    ndcg: float
    strict: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--json", type=Path, help="write the figures there too")
    parser.add_argument("--flushed", action="store_true")
    parser.add_argument("--loco", action="store_true")
    parser.add_argument("--captions", action="store_true")
    asked = parser.parse_args()
    conversations = json.loads(asked.data.read_bytes())
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for kind in ("turns", "facts"):
            written = [
                write_conversation(Path(scratch) / kind, conversation, kind, asked.flushed, asked.captions)
                for conversation in conversations
            ]
            started = time.process_time()
            scores = [score for conversation in written for score in measure(conversation, [Weights()])[0]]
            seconds = (time.process_time() - started) / max(1, len(scores))
            title = f"{kind}, {'flushed' if asked.flushed else 'in the buffer'}"
            figures[kind] = show(title, scores) | {"milliseconds": round(seconds * 1000, 1)}
            print(f"{'':22}{len(scores)} questions, {seconds * 1000:.1f} ms CPU each")
            if asked.loco and kind == "turns":
                figures["loco"] = leave_one_out(written)
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=1) + "\n")


def write_conversation(folder: Path, conversation: dict[str, Any], kind: str, flushed: bool, captions: bool) -> Written:
    """Write a conversation into a library, session by session."""
    library = Library.open(folder / conversation["sample_id"], create=True)
    labels: dict[int, frozenset[str]] = {}
    for entries in sessions_of(conversation, kind, captions):
        seqs = library.write([{key: entry[key] for key in ("text", "source", "time", "label")} for entry in entries])
        labels |= {seq: frozenset(DIA_ID.findall(entry["label"])) for seq, entry in zip(seqs, entries, strict=True)}
        if flushed:
            library.flush(planner="lexical")
    talk = conversation["conversation"]
    turns = frozenset(turn["dia_id"] for key in talk if re.fullmatch(r"session_\d+", key) for turn in talk[key])
    return Written(conversation["sample_id"], library, labels, tuple(conversation["qa"]), turns)


def sessions_of(conversation: dict[str, Any], kind: str, captions: bool) -> Iterable[list[dict[str, str]]]:
    """The entries of each session that has text."""
    talk = conversation["conversation"]
    numbers = sorted(int(found[1]) for key in talk if (found := re.fullmatch(r"session_(\d+)", key)))
    for number in numbers:
        spoken = datetime.strptime(talk[f"session_{number}_date_time"].replace(",", ""), "%I:%M %p on %d %B %Y")
        moment = spoken.isoformat(timespec="minutes")
        if kind == "turns":
            rows = [(turn["speaker"], text_of(turn, captions), turn["dia_id"]) for turn in talk[f"session_{number}"]]
        else:
            facts = conversation["observation"].get(f"session_{number}_observation", {})
            rows = [(who, fact[0], " ".join(DIA_ID.findall(str(fact[1])))) for who in facts for fact in facts[who]]
        entries = [{"source": who, "text": text, "time": moment, "label": label} for who, text, label in rows]
        if entries:
            yield entries


def text_of(turn: dict[str, str], captions: bool) -> str:
    """What was said; with captions, also what the image shown with it holds."""
    caption = turn.get("blip_caption", "")
    return f"{turn['text']} [{caption}]" if captions and caption else turn["text"]


def measure(written: Written, settings: Sequence[Weights]) -> list[list[Score]]:
    """For each setting one score for every question whose evidence exists."""
    held = frozenset().union(*written.labels.values())
    index = written.library.index()
    scores: list[list[Score]] = [[] for _ in settings]
    for question in written.questions:
        named = [turn for text in question["evidence"] for turn in DIA_ID.findall(text) if turn in written.turns]
        evidence = set(named) & held
        if not evidence:
            continue
        gathered = index.gather(question["question"], K)
        for own, weights in zip(scores, settings, strict=True):
            hits = index.choose(gathered, K, Filter(), weights)
            places = [written.labels.get(seq, frozenset()) for hit in hits for seq in hit.seqs][:K]
            recall, ndcg, found = judge(places, evidence)
            own.append(Score(question["category"], recall, ndcg, found / len(set(named))))
    return scores


def judge(places: Sequence[frozenset[str]], evidence: set[str]) -> tuple[float, float, int]:
    """Recall, NDCG and the number found; a turn counts at the first place that holds it."""
    found: set[str] = set()
    gained = 0.0
    for place, labels in enumerate(places):
        if new := (labels & evidence) - found:
            gained += 1 / math.log2(place + 2)
            found |= new
    ideal = sum(1 / math.log2(place + 2) for place in range(min(K, len(evidence))))
    return len(found) / len(evidence), gained / ideal, len(found)


def show(title: str, scores: Sequence[Score]) -> dict[str, Any]:
    """Print a row, and return it."""
    answerable = [score for score in scores if score.category in ANSWERABLE]
    row: dict[str, Any] = {
        "R@5": percent(score.recall for score in answerable),
        "N@5": percent(score.ndcg for score in answerable),
        "R@5 of all evidence": percent(score.strict for score in answerable),
    }
    cells = []
    for category in CATEGORIES:
        own = [score for score in scores if score.category == category]
        row[str(category)] = [percent(score.recall for score in own), percent(score.ndcg for score in own)]
        cells.append("{} {:.1f}/{:.1f}".format(category, *row[str(category)]))
    print(f"{title:22}R@5 {row['R@5']:.1f}  N@5 {row['N@5']:.1f}   by category {'  '.join(cells)}")
    print(f"{'':22}R@5 {row['R@5 of all evidence']:.1f} if evidence that no entry holds counts as missed")
    sys.stdout.flush()
    return row


def leave_one_out(written: Sequence[Written]) -> dict[str, Any]:
    """Choose each conversation's weights by the others: the defaults, or one of them changed."""
    settings = [Weights()] + [
        replace(Weights(), **{name: value}) for name, values in VARIATIONS.items() for value in values
    ]
    measured = [measure(conversation, settings) for conversation in written]
    tried = [[scores[setting] for scores in measured] for setting in range(len(settings))]
    for weights, results in zip(settings, tried, strict=True):
        flat = [score for scores in results for score in scores if score.category in ANSWERABLE]
        recall, ndcg = percent(score.recall for score in flat), percent(score.ndcg for score in flat)
        print(f"{difference(weights):22}R@5 {recall:.1f}  N@5 {ndcg:.1f}")
    chosen: dict[str, str] = {}
    held_out: list[Score] = []
    for left, conversation in enumerate(written):
        others = [
            percent(
                (score.recall + score.ndcg) / 2
                for other, scores in enumerate(results)
                if other != left
                for score in scores
                if score.category in ANSWERABLE
            )
            for results in tried
        ]
        best = max(range(len(settings)), key=others.__getitem__)
        chosen[conversation.name] = difference(settings[best])
        held_out += tried[best][left]
    print("chosen by the others:", "; ".join(f"{name} {what}" for name, what in chosen.items()))
    return show("leave one out", held_out) | {"chosen": chosen}


def difference(weights: Weights) -> str:
    """A setting as what it changes."""
    changed = [name for name in VARIATIONS if getattr(weights, name) != getattr(Weights(), name)]
    return ", ".join(f"{name}={getattr(weights, name)}" for name in changed) or "defaults"


def percent(values: Iterable[float]) -> float:
    listed = list(values)
    return round(100 * sum(listed) / max(1, len(listed)), 2)


if __name__ == "__main__":
    main()
