"""Facts that change, in the shape of FactConsolidation: what a perfect judge leaves visible.

    python benchmarks/revision.py [--tokens 6000,32000,262000] [--seed 1] [--json FILE]

Numbered facts are written one after the other and flushed whenever 5,000 tokens are waiting. Later facts contradict
earlier ones; chains of one to three hops lead through facts whose links stand in different topics. Negative controls
must not be touched: another person of the same first name, a second value of a thing that may have several, a fact
said twice, a plan and what came of it. The judge is scripted and perfect, so what is measured is the pipeline: whether
the judge is asked about every pair that matters, wherever it stands, and whether its word is carried out. Answers are
known by construction. It says nothing of how well a real model judges.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from infinimem import Library, __version__
from infinimem.llm.port import Request
from infinimem.llm.replay import Scripted
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


def run(tokens: int, seed: int) -> dict[str, object]:
    """Write, flush and look: what is visible against what should be."""
    dice = random.Random(seed)
    facts = generate(tokens, dice)
    by_text = {fact.text: fact for fact in facts}
    started = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        library = Library.open(Path(folder, "memory"), create=True, model=perfect(by_text))
        waiting: list[str] = []
        size = calls = sent = received = 0
        for number, fact in enumerate(facts, 1):
            waiting.append(fact.text)
            size += estimate(fact.text)
            if size >= 5000 or number == len(facts):
                library.write(waiting)
                report = library.flush(planner="model")
                calls += report.usage.calls
                sent += report.usage.tokens_in
                received += report.usage.tokens_out
                assert not report.failures, report.failures
                waiting, size = [], 0
        visible = [
            line.split("> ", 1)[1]
            for row in library.catalog()
            for line in library.read(row.topic).lines
            if line.startswith("- <seq=")
        ]
        topics = len(library.catalog())
    return {
        "tokens": tokens,
        "facts": len(facts),
        "topics": topics,
        **score(facts, visible, dice),
        "calls": calls,
        "tokens_in": sent,
        "tokens_out": received,
        "cpu_seconds": round(time.process_time() - started, 1),
    }


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
    parser.add_argument("--json", type=Path, help="write the results there")
    given = parser.parse_args()
    results = []
    for tokens in map(int, given.tokens.split(",")):
        results.append(run(tokens, given.seed))
        print(json.dumps(results[-1]), flush=True)
    if given.json:
        content = {"version": __version__, "seed": given.seed, "python": sys.version.split()[0], "results": results}
        given.json.write_text(json.dumps(content, indent=2))


if __name__ == "__main__":
    main()
