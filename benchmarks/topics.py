"""How good are the lexical planner's topics on LoCoMo-shaped conversations?

    python benchmarks/topics.py PATH [--show SAMPLE] [--observations]

Every session is written and flushed before the next one begins, in memory, by the planner's own functions. Printed per
conversation: documents, their tokens, the share under 100 tokens, how many neighbouring turns share a document, and
in how many documents the evidence of multi-hop questions lies, beside a chronological cut into documents as large.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from infinimem.model import Create, Document, Entry, Extend, Signature, path_of
from infinimem.plan.lexical import Candidate, duplicates, plan_merge, plan_promote, plan_split, route, segment, slug_of, summarise
from infinimem.text.document import entry_lines, parse_lines
from infinimem.text.tokens import estimate
from infinimem.text.words import analyse

LIMIT, MERGE = 5000, 1000
MONTHS = "January February March April May June July August September October November December".split()


@dataclass
class Topic:
    """A topic document in memory: entries under headings, in order."""

    title: str
    sections: dict[str, list[Entry]] = field(default_factory=dict)

    @property
    def entries(self) -> list[Entry]:
        return [entry for entries in self.sections.values() for entry in entries]

    def document(self, topic: str) -> Document:
        lines = [f"# {self.title}\n"]
        for heading, entries in self.sections.items():
            lines += ["\n", f"## {heading}\n", "\n"] if heading else ["\n"]
            for entry in entries:
                lines += entry_lines(entry.signature, entry.text)
        return parse_lines(path_of(topic), tuple(lines))

    def tokens(self, topic: str) -> int:
        return estimate("".join(self.document(topic).lines))

    def candidate(self, topic: str, score: float = 0.0) -> Candidate:
        document = self.document(topic)
        return Candidate(topic, self.title, "", self.tokens(topic), score, tuple(self.sections), document.entries)


def flush(topics: dict[str, Topic], buffer: list[Entry]) -> None:
    """One flush as the use case runs it: route, split, merge."""
    gone = {step.seq for step in duplicates(buffer)}
    touched: dict[str, None] = {}
    by_seq = {entry.seq: entry for entry in buffer}
    for block in segment([entry for entry in buffer if entry.seq not in gone]):
        for step in route(block, candidates_for(topics, block), list(topics), LIMIT):
            if isinstance(step, Create):
                topics[step.topic] = Topic(step.title)
            elif isinstance(step, Extend):
                section = topics[step.topic].sections.setdefault(step.heading, [])
                section += [by_seq[seq] for seq in step.seqs]
                touched[step.topic] = None
    for topic in list(touched):
        document = topics[topic].document(topic)
        split = plan_split(document, LIMIT, list(topics)) or plan_promote(document, list(topics))
        if split is None:
            continue
        old = topics.pop(topic)
        for part in split.parts:
            new = topics[part.topic] = Topic(part.title)
            for heading, entries in old.sections.items():
                kept = [entry for entry in entries if entry.seq in part.seqs]
                if kept:
                    new.sections[heading] = kept
            touched[part.topic] = None
    for topic in list(touched):
        if topic not in topics:
            continue
        near = candidates_for(topics, topics[topic].entries)
        smallest = sorted(topics, key=lambda name: (topics[name].tokens(name), name))[:8]
        near += [topics[name].candidate(name) for name in smallest if name not in {other.topic for other in near}]
        merge = plan_merge(topics[topic].candidate(topic), near, MERGE, LIMIT)
        if merge is not None:
            joined = [topics.pop(name) for name in merge.topics]
            new = topics[merge.into] = Topic(merge.title)
            for old in joined:
                for heading, entries in old.sections.items():
                    new.sections.setdefault(heading, []).extend(entries)


def candidates_for(topics: dict[str, Topic], block: list[Entry] | tuple[Entry, ...], count: int = 8) -> list[Candidate]:
    """The topics with the best BM25 for the block's words."""
    words = {term for entry in block for term in analyse(entry.text)}
    bags = {topic: Counter(t for e in each.entries for t in analyse(e.text)) for topic, each in topics.items()}
    average = sum(bag.total() for bag in bags.values()) / max(1, len(bags))
    held = Counter(term for bag in bags.values() for term in bag)

    def score(bag: Counter[str]) -> float:
        norm = 1.2 * (0.25 + 0.75 * bag.total() / average)
        return sum(math.log(1 + len(bags) / held[t]) * bag[t] * 2.2 / (bag[t] + norm) for t in words if bag[t])

    ranked = sorted(((score(bag), topic) for topic, bag in bags.items()), key=lambda pair: (-pair[0], pair[1]))
    return [topics[topic].candidate(topic, value) for value, topic in ranked[:count] if value > 0]


def sessions_of(sample: dict[str, Any], observations: bool) -> list[list[Entry]]:
    """A list of entries per session: its turns, or the facts extracted from them."""
    talk = sample["conversation"]
    numbers = sorted(int(found[1]) for key in talk if (found := re.fullmatch(r"session_(\d+)", key)) and talk[key])
    seq, sessions = 0, []
    for number in numbers:
        day = iso_date(talk[f"session_{number}_date_time"])
        said = [(turn["speaker"], turn["dia_id"], turn["text"]) for turn in talk[f"session_{number}"]]
        if observations:
            facts = sample["observation"].get(f"session_{number}_observation", {})
            said = [(who, str(label), text) for who, rows in facts.items() for text, label in rows]
        entries = []
        for speaker, label, text in said:
            seq += 1
            fields = (("time", day), ("source", speaker), ("label", label))
            entries.append(Entry("CURRENT", Signature((seq,), fields), text))
        sessions.append(entries)
    return sessions


def iso_date(text: str) -> str:
    """`1:56 pm on 8 May, 2023` → `2023-05-08`."""
    day, month, year = re.findall(r"(\d+) (\w+), (\d{4})", text)[0]
    return f"{year}-{MONTHS.index(month) + 1:02}-{int(day):02}"


def measure(sample: dict[str, Any], topics: dict[str, Topic], sessions: list[list[Entry]]) -> dict[str, float]:
    """The figures of one conversation."""
    home = {entry.signature.get("label"): topic for topic, each in topics.items() for entry in each.entries}
    tokens = sorted(each.tokens(topic) for topic, each in topics.items())
    neighbours = [
        home[one.signature.get("label")] == home[other.signature.get("label")]
        for session in sessions
        for one, other in pairwise(session)
    ]
    turns = [entry for session in sessions for entry in session]
    size = {entry.seq: estimate("".join(entry_lines(entry.signature, entry.text))) for entry in turns}
    cut, before, total = {}, 0, sum(size.values())
    for entry in turns:
        cut[entry.signature.get("label")] = before * len(topics) // total
        before += size[entry.seq]
    evidence = []
    for question in sample["qa"]:
        named = {label for text in question["evidence"] for label in re.findall(r"D\d+:\d+", text)} & home.keys()
        if question["category"] == 1 and len({label.split(":")[0] for label in named}) > 1:
            evidence.append(named)
    in_topics = sum(len({home[label] for label in named}) for named in evidence) / len(evidence)
    in_cut = sum(len({cut[label] for label in named}) for named in evidence) / len(evidence)
    return {
        "documents": len(topics),
        "min": tokens[0],
        "median": median(tokens),
        "max": tokens[-1],
        "under_100": sum(count < 100 for count in tokens) / len(tokens),
        "neighbours": sum(neighbours) / len(neighbours),
        "evidence": in_topics,
        "chronological": in_cut,
        "ratio": in_topics / in_cut,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, help="a LoCoMo-shaped JSON file")
    parser.add_argument("--show", default="", help="print this sample's titles, headings and summaries")
    parser.add_argument("--observations", action="store_true", help="extracted facts instead of turns")
    options = parser.parse_args()
    for sample in json.loads(options.path.read_text(encoding="utf-8")):
        sessions = sessions_of(sample, options.observations)
        topics: dict[str, Topic] = {}
        for session in sessions:
            flush(topics, session)
        figures = measure(sample, topics, sessions)
        print(sample["sample_id"], " ".join(f"{name} {round(value, 3):g}" for name, value in figures.items()))
        if options.show in (sample["sample_id"], "all"):
            show(topics)


def show(topics: dict[str, Topic]) -> None:
    for topic, each in topics.items():
        print(f"\n{slug_of(topic, ())}.md · {each.tokens(topic)} tokens\n# {each.title}")
        print(summarise(each.title, each.entries))
        for heading, entries in list(each.sections.items())[:6]:
            print(f"  ## {heading} ({len(entries)})")


if __name__ == "__main__":
    main()
