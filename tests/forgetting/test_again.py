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
