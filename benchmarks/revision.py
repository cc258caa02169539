"""Facts that change, in the shape of FactConsolidation: what maintenance leaves visible, and what readers make of it.

    python benchmarks/revision.py [--tokens 6000,32000,262000] [--seed 1] [--json FILE]
    python benchmarks/revision.py --maintenance current,lexical,judged --reader bm25 [--asked 200]
    … revision.py --reader bm25,hybrid,agentic --tokens 6000 --asked 10       # with a model configured

Numbered facts are written one after the other and flushed whenever 5,000 tokens are waiting. Later facts contradict
earlier ones; chains of one to three hops lead through facts whose links stand in different topics. Negative controls
must not be touched: another person of the same first name, a second value of a thing that may have several, a fact
said twice, a plan and what came of it. Answers are known by construction.

`--maintenance`: `current` is never flushed; `lexical` is the planner without a model, which replaces only what a writer
says is replaced, and no writer does here; `judged` is the planner with a model, whose judge is scripted and perfect, so
that what is measured is the pipeline: whether the judge is asked about every pair that matters, wherever it stands, and
whether its word is carried out. It says nothing of how well a real model judges.

Readers are asked `--asked` questions of each number of hops, in words. Of bm25, which writes no answer, the first ten
pieces count: for one hop, whether the first piece about what is asked holds now (right), once held (stale), or none is
there; `newest` is the same for who takes the newest of them; for more hops, whether all facts of the chain as they hold
now are there. What it shows as replaced counts for nothing. A reader with a model is right if the value of now, and
none of before, stands in its answer.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.marks import holds
from benchmarks.report import table, write_json
from infinimem import Library
from infinimem.ask import Answer
from infinimem.llm.port import Request
from infinimem.llm.replay import Scripted
from infinimem.model import CURRENT
from infinimem.text.tokens import estimate
from tests.llm.planner import sensible

ONSETS, VOWELS, CODAS = (
    "b d f g h k l m n p r s t v w br dr kl st".split(),
    "a e i o u ei ou".split(),
    "l n r s th m".split(),
)
FUNCTIONAL = {
    "spouse": ("{s} is married to {o}.", "person", "person"),
    "employer": ("{s} is employed by {o}.", "person", "company"),
    "citizenship": ("{s} is a citizen of {o}.", "person", "country"),
    "seat": ("The company {s} is based in the city of {o}.", "company", "city"),
    "chief": ("The chief executive of {s} is {o}.", "company", "person"),
    "capital": ("The capital of {s} is {o}.", "country", "city"),
    "language": ("The official language of {s} is {o}.", "country", "language"),
    "mayor": ("The mayor of {s} is {o}.", "city", "person"),
}
SEVERAL = {
    "speaks": ("{s} speaks {o}.", "person", "language"),
    "twinned": ("The city of {s} is twinned with {o}.", "city", "city"),
}
PLAN = ("{s} plans to move to {o} next year.", "{s} has moved to {o}.")
QUESTIONS = {
    "spouse": ("Who is {s} married to?", "the person that {s} is married to"),
    "employer": ("By which company is {s} employed?", "the company that {s} is employed by"),
    "citizenship": ("Of which country is {s} a citizen?", "the country that {s} is a citizen of"),
    "seat": ("In which city is the company {s} based?", "the city that the company {s} is based in"),
    "chief": ("Who is the chief executive of {s}?", "the chief executive of {s}"),
    "capital": ("What is the capital of {s}?", "the capital of {s}"),
    "language": ("What is the official language of {s}?", "the official language of {s}"),
    "mayor": ("Who is the mayor of {s}?", "the mayor of {s}"),
}
"""How each relation is asked about, and how it stands inside another question."""
COUNTS = {"person": 8, "company": 3, "country": 3, "city": 4, "language": 2}
"""How many of each kind there are for a hundred facts."""


@dataclass(frozen=True)
class Fact:
    """`key` names what it is about; of facts with the same key only the last holds, "" means that all hold."""

    text: str
    key: tuple[str, str]
    value: str
    kind: str


def generate(tokens: int, dice: random.Random) -> list[Fact]:
    """Facts of about so many tokens, in the order in which they are written."""
    wanted = max(40, tokens // 11)
    names = {kind: people(share * wanted // 100 + 4, kind, dice) for kind, share in COUNTS.items()}
    facts: list[Fact] = []
    used = 0
    while used < tokens:
        fact = one_fact(names, facts, dice)
        facts.append(fact)
        used += estimate(fact.text)
    return facts


def people(count: int, kind: str, dice: random.Random) -> list[str]:
    """Distinct names; persons share first names."""
    found: dict[str, None] = {}
    first = [word(dice) for _ in range(max(2, count // 4))]
    while len(found) < count:
        found[f"{dice.choice(first)} {word(dice)}" if kind == "person" else word(dice)] = None
    return list(found)


def word(dice: random.Random) -> str:
    """A name that is no word."""
    parts = [dice.choice(ONSETS) + dice.choice(VOWELS) for _ in range(dice.choice((2, 2, 3)))]
    return ("".join(parts) + dice.choice(CODAS)).capitalize()


def one_fact(names: dict[str, list[str]], before: list[Fact], dice: random.Random) -> Fact:
    """The next fact: mostly functional, often about what has been said before."""
    roll = dice.random()
    if roll < 0.06 and before:  # said again
        return dice.choice(before[-200:])
    if roll < 0.14:
        relation = dice.choice(list(SEVERAL))
        form, subject_kind, object_kind = SEVERAL[relation]
        subject, value = dice.choice(names[subject_kind]), dice.choice(names[object_kind])
        return Fact(form.format(s=subject, o=value), (f"{relation} {value}", subject), value, relation)
    if roll < 0.18:
        subject, value = dice.choice(names["person"]), dice.choice(names["city"])
        form = dice.choice(PLAN)
        return Fact(form.format(s=subject, o=value), (f"{form} {value}", subject), value, "plan")
    relation = dice.choice(list(FUNCTIONAL))
    form, subject_kind, object_kind = FUNCTIONAL[relation]
    subject = dice.choice(names[subject_kind])
    value = dice.choice([name for name in names[object_kind] if name != subject])
    return Fact(form.format(s=subject, o=value), (relation, subject), value, relation)


def perfect(facts: dict[str, Fact]) -> Scripted:
    """A judge that knows every fact."""

    def judge(new: int, words: str, old: int, others: str) -> str:
        one, other = facts[words], facts[others]
        if one.key != other.key:
            return ""
        return "repeats" if one.value == other.value else "replaces"

    answer = sensible(judge, subject=lambda words: f"Facts-of-{facts[words].kind}")

    def reply(request: Request) -> str:
        messages = [{"role": message.role, "content": message.content} for message in request.messages]
        return answer({"messages": messages})

    return Scripted(reply)


def run(tokens: int, seed: int, maintenance: str, readers: Sequence[str], asked: int) -> dict[str, Any]:
    """Write, flush, look and ask: what is visible and what is answered against what should be."""
    dice = random.Random(seed)
    facts = generate(tokens, dice)
    started = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "memory")
        spent = maintained(root, facts, maintenance)
        seconds = time.process_time() - started
        library = Library.open(root)
        visible = [
            line.split("> ", 1)[1]
            for topic in (CURRENT, *(row.topic for row in library.catalog()))
            for line in library.read(topic).lines
            if line.startswith("- <seq=")
        ]
        topics = len(library.catalog())
        told = {reader: ask_all(library, facts, reader, asked, random.Random(seed)) for reader in readers}
    return {
        "maintenance": maintenance,
        "tokens": tokens,
        "facts": len(facts),
        "topics": topics,
        **score(facts, visible, dice),
        **spent,
        "cpu_seconds": round(seconds, 1),
        "readers": told,
    }


def maintained(root: Path, facts: Sequence[Fact], maintenance: str) -> dict[str, int]:
    """The facts written and flushed; calls and tokens of the judge."""
    model = perfect({fact.text: fact for fact in facts}) if maintenance == "judged" else None
    library = Library.open(root, create=True, model=model)
    waiting: list[str] = []
    size = calls = sent = received = 0
    for number, fact in enumerate(facts, 1):
        waiting.append(fact.text)
        size += estimate(fact.text)
        if size < 5000 and number < len(facts):
            continue
        library.write(waiting)
        if maintenance != "current":
            report = library.flush(planner="model" if model else "lexical")
            calls += report.usage.calls
            sent += report.usage.tokens_in
            received += report.usage.tokens_out
            assert not report.failures, report.failures
        waiting, size = [], 0
    return {"calls": calls, "tokens_in": sent, "tokens_out": received}


def ask_all(
    library: Library, facts: Sequence[Fact], reader: str, asked: int, dice: random.Random
) -> dict[str, dict[str, int]]:
    """How many questions of each number of hops were answered with what holds now, and how many with what did."""
    current = {fact.key: fact for fact in facts}
    before: dict[tuple[str, str], set[str]] = {}
    by_text: dict[str, Fact] = {}
    for fact in facts:
        by_text[fact.text] = fact
        before.setdefault(fact.key, set()).add(fact.value)
    counts: Counter[str] = Counter()
    for hops in (1, 2, 3):
        done: set[tuple[tuple[str, str], ...]] = set()
        for _ in range(50 * asked):
            chain = walk(current, hops, dice)
            if len(done) == asked or not chain or tuple(chain) in done:
                continue
            done.add(tuple(chain))
            answer = library.ask(question_about(chain), reader=reader, k=10)
            if answer.reader == "bm25":
                verdicts = shown(answer, chain, current, by_text)
            else:
                verdicts = [written(answer, current[chain[-1]].value, before[chain[-1]])]
            counts.update(f"{hops} hops {verdict}" for verdict in ("asked", *verdicts))
    return {
        f"{hops} hops": {
            name: counts[f"{hops} hops {name}"] for name in ("asked", "right", "stale", "newest", "abstained", "failed")
        }
        for hops in (1, 2, 3)
    }


def question_about(chain: Sequence[tuple[str, str]]) -> str:
    """A chain of facts as one question: each subject but the first is told by the fact before it."""
    subject = chain[0][1]
    for relation, _ in chain[:-1]:
        subject = QUESTIONS[relation][1].format(s=subject)
    return QUESTIONS[chain[-1][0]][0].format(s=subject)


def shown(
    answer: Answer,
    chain: Sequence[tuple[str, str]],
    current: Mapping[tuple[str, str], Fact],
    by_text: Mapping[str, Fact],
) -> list[str]:
    """What the evidence alone says: see the docstring above."""
    pieces = [piece for piece in answer.evidence if not piece.retired]
    if len(chain) > 1:
        held = {piece.text for piece in pieces}
        values = {(by_text[text].key, by_text[text].value) for text in held if text in by_text}
        return ["right"] * all((key, current[key].value) in values for key in chain)
    about = [piece for piece in pieces if piece.text in by_text and by_text[piece.text].key == chain[0]]
    if not about:
        return []
    value = current[chain[0]].value
    newest = max(about, key=lambda piece: max(piece.seqs))
    found = ["right" if by_text[about[0].text].value == value else "stale"]
    return found + ["newest"] * (by_text[newest.text].value == value)


def written(answer: Answer, value: str, ever: set[str]) -> str:
    """The verdict on an answer in words."""
    if answer.failed:
        return "failed"
    if not answer.found:
        return "abstained"
    if holds(answer.text, sorted(ever - {value})):
        return "stale"
    return "right" if holds(answer.text, [value]) else "wrong"


def score(facts: list[Fact], visible: list[str], dice: random.Random) -> dict[str, object]:
    """Stale facts still visible, current ones missing, controls lost; questions of one to three hops."""
    current = {fact.key: fact for fact in facts}
    shown: dict[tuple[str, str], set[str]] = {}
    by_text = {fact.text: fact for fact in facts}
    for text in visible:
        shown.setdefault(by_text[text].key, set()).add(by_text[text].value)
    stale = sum(len(values - {current[key].value}) for key, values in shown.items())
    missing = sum(current[key].value not in shown.get(key, set()) for key in current)
    controls = {fact.key for fact in facts if fact.kind in SEVERAL or fact.kind == "plan"}
    right = {key for key, fact in current.items() if shown.get(key) == {fact.value}}
    result: dict[str, object] = {
        "stale": stale,
        "missing": missing,
        "controls": len(controls),
        "controls_lost": len(controls - set(shown)),
        "doubled": len(visible) - len({*visible}),
    }
    for hops in (1, 2, 3):
        chains = [chain for _ in range(2000) for chain in [walk(current, hops, dice)] if chain]
        good = sum(all(key in right for key in chain) for chain in chains)
        result[f"hops_{hops}"] = f"{good}/{len(chains)}"
    return result


def walk(current: dict[tuple[str, str], Fact], hops: int, dice: random.Random) -> list[tuple[str, str]]:
    """A chain of current facts, each about what the one before it names; [] where it breaks off."""
    keys = [key for key in current if key[0] in FUNCTIONAL]
    chain = [dice.choice(keys)]
    while len(chain) < hops:
        value = current[chain[-1]].value
        onward = [(relation, value) for relation in FUNCTIONAL if (relation, value) in current]
        if not onward:
            return []
        chain.append(dice.choice(onward))
    return chain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", default="6000,32000,262000", help="sizes of the sets of facts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--maintenance", default="current,lexical,judged")
    parser.add_argument("--reader", default="bm25", help="bm25, hybrid, agentic, summary; several by comma")
    parser.add_argument("--asked", type=int, default=200, help="questions of each number of hops")
    parser.add_argument("--json", type=Path, help="write the results there")
    given = parser.parse_args()
    results = []
    for tokens in map(int, given.tokens.split(",")):
        for maintenance in given.maintenance.split(","):
            results.append(run(tokens, given.seed, maintenance, given.reader.split(","), given.asked))
            print(json.dumps(results[-1]), flush=True)
    show(results)
    write_json(given.json, "revision", results, limits=LIMITS, seed=given.seed)


LIMITS = (
    "the judge is scripted and perfect: nothing is said of how well a real model judges",
    "names are made up and facts are single sentences of ten forms",
    "bm25 writes no answer: what its evidence holds is counted",
)


def show(results: Sequence[Mapping[str, Any]]) -> None:
    """The library's table, and the readers'."""
    head = ["tokens", "maintenance", "facts", "stale visible", "current missing", "controls lost", "1, 2, 3 hops left"]
    lines = []
    for row in results:
        lost = f"{row['controls_lost']} of {row['controls']}"
        hops = ", ".join(str(row[f"hops_{hops}"]) for hops in (1, 2, 3))
        lines.append([row[key] for key in ("tokens", "maintenance", "facts", "stale", "missing")] + [lost, hops])
    print()
    print(table([*head, "CPU s"], [[*line, row["cpu_seconds"]] for line, row in zip(lines, results, strict=True)]))
    readers = [
        [row["tokens"], row["maintenance"], reader]
        + [f"{told['1 hops'][name]} of {told['1 hops']['asked']}" for name in ("right", "stale", "newest")]
        + [f"{told[f'{hops} hops']['right']} of {told[f'{hops} hops']['asked']}" for hops in (2, 3)]
        for row in results
        for reader, told in row["readers"].items()
    ]
    print()
    print(
        table(["tokens", "maintenance", "reader", "1 hop right", "stale", "newest right", "2 hops", "3 hops"], readers)
    )


if __name__ == "__main__":
    main()
