"""A folder of notes that is imported again after notes were moved, edited and cut short."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infinimem import Library
from infinimem.text.document import parse
from tests.conftest import NIGHTLY

few = settings() if NIGHTLY else settings(max_examples=15)
TERNA = "The boat Terna lies in berth 12.\n\n- Call the harbour\n- Oil change in May\n\nShe was built in 1978.\n"


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library.open(tmp_path / "memory", create=True)


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    (tmp_path / "vault" / "boats").mkdir(parents=True)
    (tmp_path / "vault" / "Terna.md").write_text(TERNA)
    (tmp_path / "vault" / "Bread.md").write_text("Hubert is the starter.\n\nBread wants time.\n")
    return tmp_path / "vault"


def shown(library: Library) -> list[str]:
    """The words of every entry in CURRENT or a topic."""
    paths = [library.root / "CURRENT.md", *sorted((library.root / "topics").rglob("*.md"))]
    return [entry.text for path in paths if path.exists() for entry in parse(path.name, path.read_bytes()).entries]


@pytest.mark.parametrize("flushed", [False, True])
def test_a_note_that_was_moved_is_known_again(library: Library, vault: Path, flushed: bool) -> None:
    library.import_(vault)
    if flushed:
        library.flush(planner="lexical")
    before = shown(library)
    (vault / "Terna.md").rename(vault / "boats" / "Our boat.md")
    for _ in range(2):
        done = library.import_(vault)
        assert (done.added, done.known, done.gone) == (0, 6, ())
    assert shown(library) == before


def test_a_copy_of_a_note_comes_in_beside_it(library: Library, vault: Path) -> None:
    library.import_(vault)
    (vault / "boats" / "Copy.md").write_text(TERNA)
    done = library.import_(vault)
    assert (done.added, done.known) == (4, 6)


def test_a_note_in_a_file_by_itself_does_not_take_the_place_of_another_one(library: Library, vault: Path) -> None:
    library.import_(vault)
    alone = vault.parent / "Another.md"
    alone.write_text(TERNA)
    assert library.import_(alone).added == 4


@pytest.mark.parametrize("flushed", [False, True])
def test_a_paragraph_that_was_edited_in_place_replaces_the_old_one(
    library: Library, vault: Path, flushed: bool
) -> None:
    library.import_(vault)
    if flushed:
        library.flush(planner="lexical")
    (vault / "Terna.md").write_text(TERNA.replace("berth 12", "berth 14") + "\nSold in November.\n")
    done = library.import_(vault)
    assert (done.added, done.edited, done.known, done.gone) == (2, 1, 5, ())
    assert library.import_(vault).added == 0
    library.flush(planner="lexical")
    assert "The boat Terna lies in berth 14." in shown(library)
    assert "The boat Terna lies in berth 12." not in shown(library)
    evidence = "".join(path.read_text() for path in sorted((library.root / "evidence").glob("*.md")))
    assert "The boat Terna lies in berth 12." in evidence
    again = library.import_(vault)
    assert (again.added, again.known, again.gone) == (0, 7, ())
    assert not library.check()


def test_an_edit_that_is_taken_back_stands_again(library: Library, vault: Path) -> None:
    library.import_(vault)
    for berth in ("14", "12", "14", "12"):
        (vault / "Terna.md").write_text(TERNA.replace("12", berth))
        done = library.import_(vault)
        assert (done.added, done.edited) == (1, 1)
        assert library.import_(vault).added == 0
        library.flush(planner="lexical")
        assert sum("lies in berth" in text for text in shown(library)) == 1
        assert f"The boat Terna lies in berth {berth}." in shown(library)


def test_an_edit_that_is_taken_back_before_the_flush_stands_again(library: Library, vault: Path) -> None:
    library.import_(vault)
    for berth in ("14", "12"):
        (vault / "Terna.md").write_text(TERNA.replace("12", berth))
        assert library.import_(vault).edited == 1
        assert library.import_(vault).added == 0
    library.flush(planner="lexical")
    assert [text for text in shown(library) if "lies in berth" in text] == ["The boat Terna lies in berth 12."]


def test_what_is_gone_from_a_note_is_listed_and_stays(library: Library, vault: Path) -> None:
    library.import_(vault)
    library.flush(planner="lexical")
    (vault / "Terna.md").write_text("The boat Terna lies in berth 12.\n\n- Call the harbour\n")
    done = library.import_(vault)
    names = dict(zip(shown(library), seqs(library), strict=True))
    gone = tuple(sorted((names["Oil change in May"], names["She was built in 1978."])))
    assert (done.added, done.gone) == (0, (("Terna.md", gone),))
    assert "She was built in 1978." in shown(library)


def test_what_a_person_changed_in_memory_is_not_brought_back(library: Library, vault: Path) -> None:
    library.import_(vault)
    library.flush(planner="lexical")
    old = library.search("berth of Terna", k=1)[0].seqs[0]
    library.write("Terna was sold to Ben.", supersedes=[old])
    library.flush(planner="lexical")
    assert library.import_(vault).added == 0
    assert "The boat Terna lies in berth 12." not in shown(library)


def seqs(library: Library) -> list[int]:
    paths = sorted((library.root / "topics").rglob("*.md"))
    return [entry.seq for path in paths for entry in parse(path.name, path.read_bytes()).entries]


WORDS = "boat berth Terna harbour oil winter sail mast rope paint bread time starter oven".split()


@few
@given(st.randoms(use_true_random=False), st.integers(1, 4))
def test_whatever_happens_to_notes_memory_has_each_of_their_paragraphs_once(chance: random.Random, rounds: int) -> None:
    """Notes are edited, cut, moved and added to; what each then says is visible after an import and a flush."""
    with tempfile.TemporaryDirectory() as scratch:
        vault = Path(scratch) / "vault"
        vault.mkdir()
        library = Library.open(Path(scratch) / "memory", create=True)
        notes = {f"{name}.md": [sentence(chance) for _ in range(chance.randint(1, 5))] for name in "abc"}
        for _ in range(rounds):
            for name, paragraphs in notes.items():
                (vault / name).write_text("\n\n".join(paragraphs) + "\n")
            done = library.import_(vault)
            assert done.messages == sum(map(len, notes.values()))
            again = library.import_(vault)
            assert (again.added, again.known) == (0, done.messages)
            if chance.random() < 0.7:
                library.flush(planner="lexical", merge=False)
                assert Counter(shown(library)) >= Counter(set().union(*notes.values()))
            notes = {meddled(name, chance): edited(paragraphs, chance) for name, paragraphs in notes.items()}
            for path in vault.glob("*.md"):
                path.unlink()


def sentence(chance: random.Random) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(chance.randint(3, 8))) + f" {chance.randint(0, 10**9)}."


def meddled(name: str, chance: random.Random) -> str:
    """The name of a note, which may have been moved."""
    return name if chance.random() < 0.7 else f"{name[0]}{chance.randint(0, 99)}.md"


def edited(paragraphs: list[str], chance: random.Random) -> list[str]:
    """The paragraphs after some were changed, cut and added."""
    result = []
    for text in paragraphs:
        deed = chance.random()
        if deed < 0.2:
            result.append(text.replace(chance.choice(WORDS), "tiller"))
        elif deed < 0.9:
            result.append(text)
        if chance.random() < 0.2:
            result.append(sentence(chance))
    return result or [sentence(chance)]
