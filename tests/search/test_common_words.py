"""Words that nearly everything holds cost a search next to nothing, and change nothing of what it finds."""

from __future__ import annotations

import random

import pytest

from infinimem.model import Filter, Unit
from infinimem.search import shelf
from infinimem.search.records import describe
from infinimem.search.shelf import VISIBLE, Shelf

COMMON = "garden boat letter".split()
RARE = [f"word{number}x" for number in range(400)]
ENTRIES = 12_000


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    """Entries of two common words and a few rarer ones each, in a hundred topics, some with a heading."""
    chance = random.Random(5)
    made = Shelf.create(tmp_path_factory.mktemp("shelf") / "shelf")
    writer = made.writer(shelf.SMALL_HEAP)
    for seq in range(1, ENTRIES + 1):
        topic = chance.randrange(100)
        rare = [RARE[int(len(RARE) * chance.random() ** 3)] for _ in range(chance.randint(1, 6))]
        text = " ".join([*chance.sample(COMMON, 2), *rare])
        headings = ("Garden",) if topic % 3 == 0 else ("Other",)
        unit = Unit(f"topics/{topic}.md", seq, seq, text, (seq,), headings, (("source", "user"),))
        writer.add(describe(unit, "english"), VISIBLE, unit.path)
    writer.commit()
    writer.close()
    made.reload()
    return made


def test_a_search_finds_the_same_with_and_without_them_looked_at(
    filled: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(6)
    common = [describe(Unit("", 1, 1, word), "english").own[0] for word in COMMON]
    asked = [
        list(dict.fromkeys([*chance.sample(common, 2), "user", *chance.choices(RARE, k=chance.randint(0, 5))]))
        for _ in range(60)
    ]
    spared = sum(bool(filled._too_common(terms, ("words", "above"), [], 20)) for terms in asked)
    assert spared > 20  # else nothing is tested here

    def answers() -> list[object]:
        filled._answers.clear()
        told: list[object] = []
        for terms in asked:
            paths = sorted((round(score, 3), path) for score, path in filled.match_paths(terms, "topics/7.md", 20))
            told += [[pair for pair in paths if pair[0] > paths[0][0]], [score for score, _ in paths]]
            narrowed = filled.match(terms, Filter(where={"source": "user"}), 20)
            told.append([round(score, 3) for score, _ in narrowed])
        return told

    quick = answers()
    monkeypatch.setattr(shelf, "_MANY", 10**9)
    assert quick == answers()
