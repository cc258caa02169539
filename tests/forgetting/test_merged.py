"""One machine forgets; another has named, split or renamed a topic after it meanwhile. Merged, nothing tells of it."""

from __future__ import annotations

import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from infinimem import Library
from infinimem.model import Create, Extend
from infinimem.plan.paper import Plan
from tests.conftest import NIGHTLY
from tests.exchange.shapes import dumped
from tests.exchange.test_import import conversation, saved
from tests.faults.library_state import copied, drive
from tests.forgetting.test_everywhere import commit, holding, infinimem_git
from tests.git.clones import git

MAY = datetime(2026, 5, 1, 9, 0, 0, 7, tzinfo=UTC)
JUNE = datetime(2026, 6, 1, 12, 0, 0, 8, tzinfo=UTC)
WORD = "Zorblatt"


@pytest.fixture
def two(tmp_path: Path) -> tuple[Library, Library]:
    """Two clones of a library in which one entry says a word, among others of its topic."""
    here = Library.open(tmp_path / "here", create=True, clock=lambda: MAY)
    here.write([f"{WORD} has the key.", "Maya works at Fjord Labs.", "The boat has berth 12.", "Ines sings."])
    here.flush(plan=Plan((Create("people", "People"), Extend("people", "Of boats", (1, 3)),
                          Extend("people", "Of work", (2, 4)))))  # fmt: skip
    infinimem_git(here.root)
    commit(here.root)
    git(tmp_path, "clone", "-q", str(here.root), "there")
    there = Library.open(tmp_path / "there", clock=lambda: JUNE)
    infinimem_git(there.root)
    return Library.open(here.root, clock=lambda: JUNE), there


def named_after_it(there: Library) -> None:
    path = there.root / "topics" / "people.md"
    path.write_text(path.read_text().replace("## Of boats", f"## {WORD}'s boats"))


def titled_after_it(there: Library) -> None:
    path = there.root / "topics" / "people.md"
    path.write_text(path.read_text().replace("# People", f"# People and {WORD}"))


def renamed_after_it(there: Library) -> None:
    (there.root / "topics" / "people.md").rename(there.root / "topics" / "zorblatt-and-people.md")
    there.check(fix=True)


def split_off(there: Library) -> None:
    path = there.root / "topics" / "people.md"
    lines = path.read_text().splitlines(keepends=True)
    moved = [line for line in lines if "<seq=1," in line or "<seq=3," in line]
    path.write_text("".join(line for line in lines if line not in moved and "Of boats" not in line))
    front = "---\nid: zorblatt-boats\nsummary: Of Zorblatt.\ntoken_count: 9\ncreated_time: 2026-06-01\nupdate_log: []\n"
    (there.root / "topics" / "zorblatt-boats.md").write_text(
        f"{front}aux: {{}}\n---\n# Boats of {WORD}\n\n## {WORD}\n\n{''.join(moved)}"
    )
    there.check(fix=True)


def summarised(there: Library) -> None:
    there.write(f"{WORD} bought a second key.", supersedes=1)
    there.flush(planner="lexical")


@pytest.mark.parametrize("what", [named_after_it, titled_after_it, renamed_after_it, split_off, summarised])
@pytest.mark.parametrize("puller", ["here", "there"])
def test_merged_with(two: tuple[Library, Library], what: object, puller: str) -> None:
    here, there = two
    here.forget([1], copies=True)
    commit(here.root)
    what(there)  # type: ignore[operator]
    commit(there.root)
    assert holding(there.root, WORD)
    target, other = (here, there) if puller == "here" else (there, here)
    git(target.root, "pull", "-q", "--no-rebase", "--no-edit", str(other.root), "main", fails=True)
    if git(target.root, "diff", "--name-only", "--diff-filter=U"):  # git's own conflict: a person takes theirs
        git(target.root, "checkout", "--theirs", ".", fails=True)
        commit(target.root)
    target.flush(planner="lexical")
    target.check(fix=True)
    held = holding(target.root, WORD)
    if what is summarised:  # another entry says the word, and that one stays
        assert [hit.seqs for hit in target.search(f"{WORD} second", 1)] == [(5,)]
        assert "has the key" not in "".join(path.read_text() for path in target.root.rglob("*.md"))
    else:
        assert held == []
    found = {hit.text for hit in target.search("Maya Fjord boat berth Ines", 9)}
    assert {"Maya works at Fjord Labs.", "The boat has berth 12."} <= found
    assert not [one for one in target.check() if one.problem.code not in ("unsettled", "link")]


def test_pulled_without_a_merge(two: tuple[Library, Library]) -> None:
    """What a clone made of the words, its logs and what audiences read, goes when it hears of the forgetting."""
    here, there = two
    (there.root / "infinimem.yaml").write_text("format: 1\naccess: {mcp: {deny: {sensitivity: private}}}\n")
    there.write(f"{WORD} bought a second key.")
    there.flush(planner="lexical")
    commit(there.root)
    assert Library.open(there.root, audience="mcp").search(WORD)
    git(here.root, "pull", "-q", "--ff-only", str(there.root), "main")
    here.forget([1, 5])
    commit(here.root)
    assert holding(there.root / ".infinimem", WORD)
    git(there.root, "pull", "-q", "--ff-only", str(here.root), "main")
    there.check(fix=True)
    assert holding(there.root, WORD) == []


def test_what_got_another_number_elsewhere_meanwhile(two: tuple[Library, Library]) -> None:
    """Both gave one number, and both forgot theirs: the entry that the other had given a new one does not come back."""
    here, there = two
    there = Library.open(there.root, clock=lambda: JUNE + timedelta(minutes=1))
    there.write([f"{WORD} sings.", "The mast is of ash."])
    there.flush(plan=Plan((Extend("people", "Of boats", (5, 6)),)))
    commit(there.root)
    here.write("Kwame has a kayak.")
    here.forget([5])
    commit(here.root)
    git(here.root, "pull", "-q", "--no-rebase", "--no-edit", str(there.root), "main")
    here.check(fix=True)
    commit(here.root)
    assert [hit.seqs != (5,) for hit in here.search(f"{WORD} sings", 1)] == [True]
    there.forget([1, 5], copies=True)
    commit(there.root)
    git(there.root, "pull", "-q", "--no-rebase", "--no-edit", str(here.root), "main", fails=True)
    commit(there.root)
    there.check(fix=True)
    assert holding(there.root, WORD) == []
    assert [hit.text for hit in there.search("mast ash", 1)] == ["The mast is of ash."]
    assert not [one for one in there.check() if one.problem.code not in ("unsettled", "link")]


def parted(tmp_path: Path) -> tuple[Library, Library, Path]:
    """A library and a clone of it that parted before an entry was written, and an export that holds that entry."""
    here = Library.open(tmp_path / "here", create=True, clock=lambda: MAY)
    here.write(["Maya works at Fjord Labs.", "The boat has berth 12."])
    here.flush(planner="lexical")
    infinimem_git(here.root)
    commit(here.root)
    git(tmp_path, "clone", "-q", str(here.root), "there")
    there = Library.open(tmp_path / "there", clock=lambda: JUNE)
    infinimem_git(there.root)
    here = Library.open(here.root, clock=lambda: MAY + timedelta(days=1))
    here.write([f"{WORD} has the key.", "Ines sings."])
    here.flush(planner="lexical")
    here.export("jsonl", tmp_path / "export.jsonl")
    return Library.open(here.root, clock=lambda: JUNE), there, tmp_path / "export.jsonl"


def merged(target: Library, other: Library) -> tuple[str, ...]:
    """What finishing a merge of another clone says."""
    git(target.root, "pull", "-q", "--no-rebase", "--no-edit", str(other.root), "main", fails=True)
    commit(target.root)
    said = target.finish_merges()
    commit(target.root)
    return said


@pytest.mark.parametrize("flushed", [False, True])
@pytest.mark.parametrize("puller", ["here", "there"])
def test_loaded_elsewhere_from_an_export_made_before(tmp_path: Path, puller: str, flushed: bool) -> None:
    """It has another number there, and does not come back with it; what came along with it does."""
    here, there, export = parted(tmp_path)
    there.write("Kwame has a kayak.")
    there.import_(export)
    there.write(f"{WORD} has the key.")
    if flushed:
        there.flush(planner="lexical")
    commit(there.root)
    assert [hit.unit.get("origin")[:2] for hit in there.search(f"{WORD} key", 9)].count("3@") == 1
    here.forget([3])
    commit(here.root)
    target, other = (here, there) if puller == "here" else (there, here)
    said = merged(target, other)
    assert any("was forgotten on another machine; import --again brings it back" in line for line in said)
    target.flush(planner="lexical")
    found = target.search(f"{WORD} key", 9)
    assert [(hit.text, hit.unit.get("origin")) for hit in found] == [(f"{WORD} has the key.", "")]  # a person's own
    assert {hit.text for hit in target.search("Ines Kwame Maya boat", 9)} >= {"Kwame has a kayak.", "Ines sings."}
    assert not [one for one in target.check() if one.problem.code not in ("unsettled", "link")]
    merged(other, target)
    assert [hit.text for hit in other.search(f"{WORD} key", 9)] == [f"{WORD} has the key."]
    assert other.import_(export).added == 0


def test_brought_back_in_the_knowledge_that_it_was_forgotten(tmp_path: Path) -> None:
    """A machine that had heard of the forgetting and asked for the entry again keeps it."""
    here, there, export = parted(tmp_path)
    here.forget([3])
    commit(here.root)
    there.write("Kwame has a kayak.")
    commit(there.root)
    merged(there, here)
    assert there.import_(export).added == 0
    assert there.import_(export, again=True).added == 1
    commit(there.root)
    here.write("Hilde sails.")
    commit(here.root)
    assert not any("forgotten" in line for line in merged(here, there))
    assert [hit.text for hit in here.search(f"{WORD} key", 1)] == [f"{WORD} has the key."]


@pytest.mark.parametrize("puller", ["here", "there"])
def test_a_chat_that_both_imported_and_one_forgot(tmp_path: Path, puller: str) -> None:
    """The import of the other machine would have left it out, had it known."""
    here, there, _ = parted(tmp_path)
    chat = saved(tmp_path, dumped([conversation("c", "The Quetzal has landed.", "Noted.")]))
    for library in (here, there):
        library.import_(chat)
        library.flush(planner="lexical")
    here.forget([hit.seqs[0] for hit in here.search("Quetzal", 1)])
    for library in (here, there):
        commit(library.root)
    target, other = (here, there) if puller == "here" else (there, here)
    assert any("was forgotten on another machine" in line for line in merged(target, other))
    target.flush(planner="lexical")
    assert holding(target.root, "Quetzal") == []
    assert {hit.text for hit in target.search("Noted", 2)} == {"Noted."}


def test_what_an_export_tells_of_a_forgetting_elsewhere_forgets_nothing_in_a_merge(tmp_path: Path) -> None:
    """One machine loaded an older export, the other a newer one that tells of it: as in one library, it stays."""
    here, there, _ = parted(tmp_path)
    source = Library.open(tmp_path / "source", create=True, clock=lambda: MAY)
    source.write(["The Quetzal has landed.", "The mast is of ash."])
    source.export("jsonl", tmp_path / "older.jsonl")
    source.forget([1])
    source.export("jsonl", tmp_path / "newer.jsonl")
    there.import_(tmp_path / "older.jsonl")
    here.import_(tmp_path / "newer.jsonl")
    for library in (here, there):
        commit(library.root)
    assert not any("forgotten on another" in line for line in merged(here, there))
    assert [hit.text for hit in here.search("Quetzal", 1)] == ["The Quetzal has landed."]


def test_killed_while_the_merge_is_finished(tmp_path: Path) -> None:
    """Whatever was done by then, the next command does the rest."""
    here, there, export = parted(tmp_path)
    there.write("Kwame has a kayak.")
    there.import_(export)
    commit(there.root)
    here.forget([3])
    commit(here.root)
    git(here.root, "pull", "-q", "--no-rebase", "--no-edit", str(there.root), "main", fails=True)
    commit(here.root)
    whole = copied(here.root, tmp_path / "whole")
    assert drive(0, "kill", "fix", whole, count=tmp_path / "count").returncode == 0
    assert holding(whole, WORD) == []
    total = int((tmp_path / "count").read_text())
    for number in range(2, total + 1, 1 if NIGHTLY else 31):
        root = copied(here.root, tmp_path / "one")
        assert drive(number, "kill", "fix", root).returncode == -signal.SIGKILL
        Library.open(root, clock=lambda: JUNE).check(fix=True)
        assert holding(root, WORD) == [], f"killed at {number} of {total}"
