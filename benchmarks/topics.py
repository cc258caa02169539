"""How good are the lexical planner's topics on LoCoMo-shaped conversations?

    python benchmarks/topics.py PATH [--only SAMPLE] [--show N] [--observations] [--json FILE]
    python benchmarks/topics.py --notes tools/sample/entries.jsonl [--show N]

Each conversation is written to a library of its own, session by session, with a flush after each. Printed: documents,
their tokens, the share under 100 tokens, how many neighbouring turns of a session share a document, in how many
documents the evidence of multi-hop questions lies, beside a chronological cut into as many documents, and how many old
lines the flushes moved: by split or merge, and otherwise (which should be none).

With `--notes`, independent notes instead: JSON lines as for tools/make_sample_library.py, each with a `subject` that
a person gave it. Printed: B-cubed precision, recall and F of the topics against the subjects (Bagga and Baldwin 1998).
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.report import table, write_json
from infinimem import Library
from infinimem.consolidate.run import Report
from infinimem.model import Document, Merge, Split
from infinimem.text.document import entry_lines, parse, title_of
from infinimem.text.tokens import estimate
from tools.make_sample_library import make_library, read_entries

LIMITS = (
    "without a model; the planner's constants were chosen on these notes and on these conversations",
    "subjects were given by one person, conversations are of two people",
)
MONTHS = "January February March April May June July August September October November December".split()


@dataclass(frozen=True, slots=True)
class Turn:
    """What one entry is made of."""

    speaker: str
    label: str
    text: str
    day: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, help="a LoCoMo-shaped JSON file, or JSON lines with --notes")
    parser.add_argument("--notes", action="store_true", help="independent notes labelled with a subject")
    parser.add_argument("--only", default="", help="one sample_id")
    parser.add_argument("--show", type=int, default=0, help="print so many titles, headings and summaries of each")
    parser.add_argument("--observations", action="store_true", help="extracted facts instead of turns")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = notes(options.path, options.show) if options.notes else conversations(options)
    print(table(list(rows[0]), [[f"{v:.3g}" if isinstance(v, float) else v for v in row.values()] for row in rows]))
    write_json(options.json, "topics", rows, limits=LIMITS, packages=("tantivy",), observations=options.observations)


def conversations(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The figures of each conversation, and their mean."""
    rows: list[dict[str, Any]] = []
    for sample in json.loads(options.path.read_text(encoding="utf-8")):
        if options.only not in ("", sample["sample_id"]):
            continue
        sessions = sessions_of(sample, options.observations)
        with tempfile.TemporaryDirectory() as folder:
            moved = fill(Path(folder), sessions)
            documents = list(documents_of(Path(folder)))
        rows.append({"sample": sample["sample_id"], **measure(sample, documents, sessions), **moved})
        show(documents, options.show)
    if len(rows) > 1:
        rows.append({"sample": "mean", **{k: fmean(row[k] for row in rows) for k in rows[0] if k != "sample"}})
    return rows


def notes(path: Path, count: int) -> list[dict[str, Any]]:
    """Write labelled notes as the sample library is made, and hold the topics against the labels."""
    entries = read_entries(path)
    with tempfile.TemporaryDirectory() as folder:
        make_library(Path(folder) / "library", entries)
        documents = list(documents_of(Path(folder) / "library"))
    homes = {seq: each.id for each in documents for entry in each.entries for seq in entry.seqs}
    subjects = {seq: entries[seq - 1]["subject"] for seq in homes}
    precision, recall = overlap(homes, subjects), overlap(subjects, homes)
    figures = {"sample": path.name, "documents": len(documents), "notes": len(homes)}
    for each in sorted(documents, key=lambda each: -len(each.entries))[:count]:
        held = Counter(subjects[seq] for entry in each.entries for seq in entry.seqs)
        named = ", ".join(f"{subject} {often}" for subject, often in held.most_common(5))
        print(f"\n{each.id} · # {title_of(each)} · {named}\n{each.header.fields.get('summary', '')}")
    f1 = 2 * precision * recall / (precision + recall)
    return [{**figures, "precision": precision, "recall": recall, "F": f1}]


def overlap(groups: Mapping[int, str], labels: Mapping[int, str]) -> float:
    """The mean share, over all notes, of a note's group that bears its label."""
    sizes = Counter(groups.values())
    both = Counter((groups[seq], labels[seq]) for seq in groups)
    return fmean(both[groups[seq], labels[seq]] / sizes[groups[seq]] for seq in groups)


def fill(root: Path, sessions: list[list[Turn]]) -> dict[str, float]:
    """Write and flush every session; how many old entries were moved by split or merge, and how many otherwise."""
    homes: dict[int, str] = {}
    allowed = astray = 0
    with Library.open(root, create=True) as library:
        for session in sessions:
            library.write([{"text": t.text, "source": t.speaker, "time": t.day, "label": t.label} for t in session])
            named = named_in_moves(library.flush(planner="lexical"))
            now = {seq: each.id for each in documents_of(root) for entry in each.entries for seq in entry.seqs}
            for seq, home in homes.items():
                if now[seq] != home:
                    allowed += home in named
                    astray += home not in named
            homes = now
    return {"moved": allowed, "astray": astray}


def named_in_moves(report: Report) -> set[str]:
    steps = [outcome.step for outcome in report.outcomes if outcome.status == "executed"]
    split = {step.topic for step in steps if isinstance(step, Split)}
    return split | {topic for step in steps if isinstance(step, Merge) for topic in step.topics}


def documents_of(root: Path) -> Iterator[Document]:
    for file in sorted((root / "topics").rglob("*.md")):
        yield parse(file.relative_to(root).as_posix(), file.read_bytes())


def sessions_of(sample: dict[str, Any], observations: bool) -> list[list[Turn]]:
    """For each session its turns, or the facts extracted from them."""
    talk = sample["conversation"]
    numbers = sorted(int(found[1]) for key in talk if (found := re.fullmatch(r"session_(\d+)", key)) and talk[key])
    sessions = []
    for number in numbers:
        said = [(turn["speaker"], turn["dia_id"], turn["text"]) for turn in talk[f"session_{number}"]]
        if observations:
            facts = sample["observation"].get(f"session_{number}_observation", {})
            said = [(who, str(label), text) for who, found in facts.items() for text, label in found]
        day = iso_date(talk[f"session_{number}_date_time"])
        sessions.append([Turn(speaker, label, text, day) for speaker, label, text in said])
    return sessions


def iso_date(text: str) -> str:
    """`1:56 pm on 8 May, 2023` → `2023-05-08`."""
    day, month, year = re.findall(r"(\d+) (\w+), (\d{4})", text)[0]
    return f"{year}-{MONTHS.index(month) + 1:02}-{int(day):02}"


def measure(sample: dict[str, Any], documents: list[Document], sessions: list[list[Turn]]) -> dict[str, float]:
    """The figures of one conversation."""
    entries = {entry.seq: entry for each in documents for entry in each.entries}
    home = {entry.signature.get("label"): entry.topic for entry in entries.values()}
    tokens = sorted(body_tokens(each) for each in documents)
    neighbours = [home[one.label] == home[other.label] for session in sessions for one, other in pairwise(session)]
    size = {seq: estimate("".join(entry_lines(entry.signature, entry.text))) for seq, entry in entries.items()}
    cut: dict[str, int] = {}
    before, total = 0, sum(size.values())
    for seq in sorted(entries):
        cut[entries[seq].signature.get("label")] = before * len(documents) // total
        before += size[seq]
    evidence = []
    for question in sample["qa"]:
        named = {label for text in question["evidence"] for label in re.findall(r"D\d+:\d+", text)} & home.keys()
        if question["category"] == 1 and len({label.split(":")[0] for label in named}) > 1:
            evidence.append(named)
    in_topics = fmean(len({home[label] for label in named}) for named in evidence)
    in_cut = fmean(len({cut[label] for label in named}) for named in evidence)
    return {
        "documents": len(documents),
        "min": tokens[0],
        "median": median(tokens),
        "max": tokens[-1],
        "under_100": sum(count < 100 for count in tokens) / len(tokens),
        "neighbours": fmean(neighbours),
        "evidence": in_topics,
        "chronological": in_cut,
        "ratio": in_topics / in_cut,
    }


def body_tokens(document: Document) -> int:
    """What a document costs to read, without its front matter."""
    return estimate("".join(document.lines[document.header.span.stop :]))


def show(documents: list[Document], count: int) -> None:
    """Some documents by what a reader sees first; evenly spread over the catalogue."""
    step = max(1, len(documents) // max(1, count))
    for document in documents[::step][:count]:
        print(f"\n{document.path} · {body_tokens(document)} tokens\n# {title_of(document)}")
        print(document.header.fields.get("summary", ""))
        headings = [block.headings[-1] for block in document.blocks if block.level == 2]
        print("  ## " + "\n  ## ".join(headings[:6]))


if __name__ == "__main__":
    main()
