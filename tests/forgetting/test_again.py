"""What a git merge, an old copy or an editor brings back of a forgotten entry is forgotten again; nothing else is."""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from infinimem import Library
from infinimem.store.layout import create_library
from tests.forgetting.test_forget import holding

MAY = datetime(2026, 5, 1, 9, tzinfo=UTC)
JUNE = datetime(2026, 6, 1, 12, tzinfo=UTC)


def git(root: Path, *words: str, fails: bool = False) -> None:
    names = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", "-C", str(root), *names, *words], capture_output=True, text=True, check=False)
    assert fails or done.returncode == 0, done.stderr


def commit(root: Path, why: str) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-qm", why)


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """A library in git, flushed; `there` is a clone of it that has gone on by itself."""
    library = Library.open(tmp_path / "here", create=True, clock=lambda: MAY)
    library.write(["Zorblatt has the key.", "Maya works at Fjord Labs.", "The boat has berth 12."])
    library.flush()
    (library.root / ".gitattributes").write_text(
        "CURRENT.md merge=union\nevidence/*.md merge=union\ntopics/*.md merge=union\n"
    )
    git(library.root, "init", "-q")
    git(library.root, "add", "-A")
    git(library.root, "commit", "-qm", "before")
    return library


def branch_that_edits(library: Library) -> None:
    """On a branch the topic gains a line right below the entry; on main the entry is forgotten."""
    git(library.root, "checkout", "-qb", "side")
    for path in (library.root / "topics").glob("*.md"):
        text = path.read_text().replace(
            "has the key.\n", "has the key.\n- <seq=9, observed=2026-05-02T09:00:00Z> Typed on the side.\n"
        )
        path.write_text(text)
    git(library.root, "commit", "-qam", "side")
    git(library.root, "checkout", "-q", "main")
    library.forget([1])
    git(library.root, "commit", "-qam", "forgot")
    git(library.root, "merge", "-q", "side", "-m", "merged", fails=True)


@pytest.mark.parametrize("by", ["flush", "check"])
def test_a_merge_that_brings_it_back(library: Library, by: str) -> None:
    branch_that_edits(library)
    assert holding(library, "zorblatt"), "the merge brought nothing back: the test is worth nothing"
    library.write("Something new.")
    found = [finding for finding in library.check() if finding.problem.code == "forgotten"]
    assert found
    assert all("seq 1 was forgotten" in finding.problem.message and finding.fixable for finding in found)
    if by == "flush":
        assert library.flush(planner="lexical").forgotten == (1,)
    else:
        fixed = [finding for finding in library.check(fix=True) if finding.problem.code == "forgotten"]
        assert fixed
        assert all(finding.fixed for finding in fixed)
    assert holding(library, "zorblatt") == []
    assert [hit.text for hit in library.search("typed on the side", 1)] == ["Typed on the side."]
    library.check(fix=True)
    assert not library.check()


def test_an_old_current_and_old_evidence_come_back(library: Library, tmp_path: Path) -> None:
    shutil.copytree(library.root / "evidence", tmp_path / "evidence")
    library.forget([1])
    old = (tmp_path / "evidence" / "2026-05.md").read_text()
    new = (library.root / "evidence" / "2026-05.md").read_text()
    (library.root / "evidence" / "2026-05.md").write_text(old + new.split("\n\n", 1)[1])
    (library.root / "CURRENT.md").write_text(
        "# CURRENT\n\n- <seq=1, observed=2026-05-01T09:00:00Z> Zorblatt has the key.\n"
    )
    report = library.flush(planner="lexical")
    assert report.forgotten == (1,)
    assert holding(library, "zorblatt") == []
    assert library.trace(1).fate == "forgotten"


def test_another_entry_that_a_branch_gave_the_same_number_stays(tmp_path: Path) -> None:
    """Both branches wrote a seq 4; the one of them was forgotten."""
    library = Library.open(tmp_path / "here", create=True, clock=lambda: JUNE)
    create_library(library.root)
    library.write(["a fact", "b fact", "c fact", "Zorblatt has the key."])
    library.forget([4])
    text = (library.root / "CURRENT.md").read_text()
    (library.root / "CURRENT.md").write_text(text + "- <seq=4, observed=2026-05-07T10:00:00Z> Hilde turns ninety.\n")
    report = library.flush(planner="lexical")
    assert report.forgotten == ()
    assert any("check --fix` renumbers it" in note for note in report.notes)
    fixed = library.check(fix=True)
    assert [finding.problem.code for finding in fixed] == ["clash"]
    assert "Hilde turns ninety." in (library.root / "CURRENT.md").read_text()
    library.flush(planner="lexical")
    assert [hit.seqs for hit in library.search("Hilde", 1)] == [(5,)]
    assert not library.check()


def test_another_entry_of_that_number_in_a_topic_stays(library: Library) -> None:
    library.forget([1])
    topic = next((library.root / "topics").glob("*.md"))
    topic.write_text(topic.read_text() + "- <seq=1, observed=2026-04-07T10:00:00Z> Hilde turns ninety.\n")
    assert library.flush().forgotten == ()
    assert "clash" in [finding.problem.code for finding in library.check(fix=True)]
    assert "seq=4, observed=2026-04-07T10:00:00Z> Hilde" in topic.read_text()
    assert not library.check()


def test_a_dry_flush_leaves_what_came_back(library: Library) -> None:
    branch_that_edits(library)
    before = holding(library, "zorblatt")
    library.flush(dry_run=True)
    assert set(before) <= set(holding(library, "zorblatt"))


def test_another_entry_of_that_number_written_in_the_same_second_stays(library: Library, tmp_path: Path) -> None:
    """Two machines wake at nine o'clock and write; both give 4, one forgets his, and the merge brings the other's."""
    nine = datetime(2026, 6, 1, 9, 0, 0, 120_001, tzinfo=UTC)
    theirs = tmp_path / "theirs"
    git(tmp_path, "clone", "-q", str(library.root), str(theirs))
    here = Library.open(library.root, clock=lambda: nine)
    there = Library.open(theirs, clock=lambda: nine.replace(microsecond=120_457))
    assert here.write("Quetzal has the key.") == there.write("Hilde turns ninety.") == [4]
    here.forget([4])
    commit(here.root, "forgot")
    commit(there.root, "wrote")
    git(here.root, "pull", "-q", "--no-rebase", str(theirs))
    assert here.flush(planner="lexical").forgotten == ()
    here.check(fix=True)
    here.flush(planner="lexical")
    assert [hit.seqs for hit in here.search("Hilde", 1)] == [(5,)]
    assert holding(here, "quetzal") == []
    assert not here.check()


def test_two_clones_that_sign_a_typed_line_in_one_second(library: Library, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    git(tmp_path, "clone", "-q", str(library.root), str(theirs))
    for root, text, micro in ((library.root, "Quetzal has it.", 7), (theirs, "Hilde turns ninety.", 8)):
        with (root / "CURRENT.md").open("a") as file:
            file.write(f"- {text}\n")
        Library.open(root, clock=lambda at=micro: JUNE.replace(microsecond=at)).check(fix=True)  # type: ignore[misc]
        commit(root, "typed")
    here = Library.open(library.root, clock=lambda: JUNE)
    here.forget(pattern="Quetzal has it")
    commit(here.root, "forgot")
    git(here.root, "pull", "-q", "--no-rebase", str(theirs), fails=True)
    here.check(fix=True)
    here.flush(planner="lexical")
    assert holding(here, "quetzal has it") == []
    assert [hit.text for hit in here.search("Hilde", 1)] == ["Hilde turns ninety."]


def test_its_revisions_come_back_and_are_told_from_those_of_another_entry(library: Library) -> None:
    """Evidence of the forgotten one comes back without its first words; a second entry has the number and revisions."""
    evidence = library.root / "evidence" / "2026-05.md"
    library.forget([1])
    bare = evidence.read_text()
    evidence.write_text(bare + "- <seq=1, rev=2, at=2026-05-03T09:00:00Z> Zorblatt has two keys.\n")
    assert library.flush().forgotten == (1,)
    assert holding(library, "zorblatt") == []
    other = (
        "- <seq=1, observed=2026-04-07T10:00:00Z> Hilde turns ninety.\n"
        "- <seq=1, rev=2, at=2026-05-03T09:00:00Z> Hilde turns ninety-one.\n"
    )
    evidence.write_text(bare + other)
    assert library.flush().forgotten == ()
    assert other in evidence.read_text()
