"""What an index remembers between questions is never what somebody else has changed since."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from infinimem import Library
from infinimem.agents.tools import run
from infinimem.model import Filter
from infinimem.search.folder import held

WORDS = "ferry boat Kiel Maya Nordlys engine roof dinner Ines kettle harbour letter garden violin May 2026".split()
QUESTIONS = ("ferry Kiel", "Maya Nordlys", "kettle", "garden letter May", "engine roof dinner")


def everything(library: Library) -> list[object]:
    """What a library says to all kinds of questions."""
    index = library.index()
    told: list[object] = [index.catalog(), index.visible(), library.plan_template()]
    for question in QUESTIONS:
        words = question.casefold().split()
        told += [index.search(question, 9), index.search(question, 9, Filter(retired=True))]
        told += [index.similar(question, 5), [(record.unit, record.own) for record in index.like(question, 9)]]
        told += [index.entries(words[:1]), [index.holding(word) for word in words], index.missing(question)]
        told += [run(library, "grep", {"pattern": words[0]}), run(library, "catalog", {"query": question})]
    told += [index.standing(seq) for seq in range(1, 60)] + [index.standing(*range(1, 60))]
    return [*told, *(run(library, "read", {"topic": row.topic}) for row in index.catalog())]


@pytest.mark.parametrize("seed", range(2))
def test_whoever_keeps_a_library_open_is_told_what_one_is_told_who_opens_it_now(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    root = tmp_path / "memory"
    kept = Library.open(root, create=True)
    kept.write([said(chance) for _ in range(40)], source="user", time="2026-05-01")
    for _ in range(9):
        by = kept if chance.random() < 0.4 else Library.open(root)  # or another process
        change(by, chance, root)
        told = everything(kept)
        assert told == everything(kept)
        assert told == everything(Library.open(root))
    shutil.rmtree(root / ".infinimem" / "index")
    anew = everything(Library.open(root))
    assert everything(kept)[0] == anew[0]


def said(chance: random.Random) -> str:
    """A statement of a few words."""
    return " ".join(chance.choices(WORDS, k=chance.randint(3, 7))) + "."


def change(library: Library, chance: random.Random, root: Path) -> None:
    """Something that happens to a library."""
    kind = chance.choice(("write", "write", "supersede", "flush", "edit", "remove", "undo"))
    topics = sorted((root / "topics").rglob("*.md"))
    if kind == "write":
        library.write([said(chance) for _ in range(chance.randint(1, 5))], source="user")
    elif kind == "supersede":
        library.write(said(chance), supersedes=chance.randint(1, 30))
    elif kind == "flush":
        library.flush()
    elif kind == "undo":
        library.undo()
    elif topics and kind == "edit":
        page = chance.choice(topics)
        page.write_text(page.read_text("utf-8").replace("Kiel", "Oslo") + f"\n{said(chance)}\n", "utf-8")
    elif len(topics) > 2:
        page = chance.choice(topics)
        shutil.copy(page, page.with_name(f"{page.stem}-copy.md")) if chance.random() < 0.5 else page.unlink()


def test_words_of_a_page_that_was_changed_are_gone_while_somebody_else_writes_the_index(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True)
    page = library.root / "topics" / "harbour.md"
    page.write_text("# Harbour\n\n- The kettle whistles in Kiel.\n\n- A violin in the garden.\n", "utf-8")
    library.write("A kettle for Ines.")
    assert (library.index().holding("kettl"), len(library.index().like("kettle Kiel violin"))) == (2, 1)
    page.write_text("# Harbour\n\n- The ferry leaves Kiel.\n", "utf-8")
    with held(library.root / ".infinimem" / "index", 1.0):
        index = library.index()
        assert (index.holding("kettl"), index.holding("violin"), index.holding("ferri")) == (1, 0, 1)
        assert [hit.text for hit in index.search("violin")] == []
        assert not index.similar("violin")
    assert [hit.text for hit in library.search("ferry")] == ["- The ferry leaves Kiel."]
