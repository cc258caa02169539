"""What an ask costs in tokens, in libraries of 300 and of 10,000 documents."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from infinimem import Library
from infinimem.llm.replay import sent_tokens
from infinimem.readers.agentic import Limits, look
from infinimem.readers.tools import row_line
from infinimem.text.tokens import estimate
from tests.readers.scripts import agent, memory_of

NAMES = "Ada Bo Cy Dag Eli Fay Gil Hal Ida Jon Kai Liv Moe Nan Ole Pia Rut Sam Tor Una".split()
THINGS = "boat garden kettle ledger piano ticket violin window bicycle camera".split()


def large_library(root: Path, documents: int) -> Library:
    """Documents with summaries of about 70 tokens, as the paper's have (23,000 tokens for 322 of them)."""
    library = Library.open(root, create=True)
    chance = random.Random(4)
    seq = 0
    for number in range(documents):
        name, thing = NAMES[number % 20], THINGS[number // 20 % 10]
        topic = f"{name.lower()}-{thing}-{number}"
        words = " ".join(f"{chance.choice(THINGS)} {chance.randint(1, 99_999)}," for _ in range(12))
        summary = f"{name} and the {thing} of house {number}, with {words}"
        entries = []
        for _ in range(3):
            seq += 1
            text = f"{name} said that the {thing} of house {number} costs {chance.randint(1, 9_999)} kroner."
            entries.append(f"- <seq={seq}, time=2026-0{1 + seq % 9}-1{seq % 9}, source={name}> {text}\n")
        head = f"---\nid: {topic}\nsummary: {summary}\ntoken_count: 90\n---\n# {name} {thing}\n\n## House\n\n"
        (library.root / "topics" / f"{topic}.md").write_text(head + "".join(entries))
    return library


def tokens_of_an_ask(library: Library) -> tuple[int, int]:
    """Tokens sent by an ask of six rounds, and what the whole catalogue alone costs in each of them."""
    rounds = [
        [("search", {"query": "Liv garden house costs"}), ("catalog", {"query": "garden"})],
        [("search", {"query": "Liv garden", "all": True})],
        [("read", {"topic": "liv-garden-31"}), ("grep", {"pattern": "garden of house 3"})],
        [("search", {"query": "kroner Liv"})],
        [("search", {"query": "Liv costs kroner", "all": True, "start": 40})],
        [("finish", {"places": []})],
    ]
    model = agent(*rounds)
    memory = memory_of(library)
    look(memory, "What does the garden of house 31 cost Liv?", model, Limits(tokens=6_000, context=32_000))
    assert len(model.requests) == 6
    sent = sum(sent_tokens(request) for request in model.requests)
    whole = sum(estimate(row_line(row, 10_000)) for row in library.catalog())
    return sent, 6 * whole


@pytest.mark.timeout(300)
def test_an_ask_costs_about_the_same_in_a_library_thirty_times_as_large(tmp_path: Path) -> None:
    small, resent = tokens_of_an_ask(large_library(tmp_path / "small", 322))
    assert small <= resent / 4, (small, resent)
    large, _ = tokens_of_an_ask(large_library(tmp_path / "large", 10_000))
    assert large <= 1.3 * small, (small, large)
    print(f"322 documents: {small:,} tokens, resending the catalogue {resent:,}; 10,000 documents: {large:,}")
