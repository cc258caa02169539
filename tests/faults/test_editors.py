"""An editor, a sync tool or git changes files while infinimem works: hand edits win, and nothing is lost."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from infinimem import Library
from infinimem.consolidate import commit
from infinimem.errors import BadInput, NeedsAttention, StorageFailed
from infinimem.store import transaction
from tests.faults.library_state import FIRST, assert_conserved, prepare, visible_files

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    prepare(tmp_path / "memory")
    return tmp_path / "memory"


def during(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any]) -> None:
    """Do something after a flush has planned, just before it takes the lock to commit."""
    real = commit.put_on_disk
    done: list[bool] = []

    def first_then_commit(*args: Any) -> Any:
        if not done:
            done.append(True)
            act()
        return real(*args)

    monkeypatch.setattr(commit, "put_on_disk", first_then_commit)


def topic_with(root: Path, words: str) -> Path:
    return next(path for path in (root / "topics").glob("*.md") if words in path.read_text())


def save_like_an_editor(path: Path, text: str) -> None:
    beside = path.with_name(f".{path.name}.tmp")
    beside.write_text(text)
    beside.replace(path)


def test_a_topic_saved_while_flush_is_thinking_is_not_overwritten(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = topic_with(root, "Fjord Labs")
    during(monkeypatch, lambda: save_like_an_editor(topic, topic.read_text() + "\nA thought of my own.\n"))
    report = Library.open(root, clock=lambda: NOW).flush()
    assert "A thought of my own." in topic.read_text()
    assert any("was changed while flush was thinking" in outcome.why for outcome in report.skipped)
    assert report.exit_code == 5
    assert_conserved(root, set(range(1, 11)))
    assert not Library.open(root, clock=lambda: NOW).flush().skipped
    assert "A thought of my own." in topic.read_text()
    assert_conserved(root, set(range(1, 11)))


def test_an_entry_reworded_in_current_while_flush_is_thinking_stays(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    current = root / "CURRENT.md"
    during(monkeypatch, lambda: save_like_an_editor(current, current.read_text().replace("two boxes", "three boxes")))
    report = Library.open(root, clock=lambda: NOW).flush()
    assert report.left == (7,)
    assert any("changed in CURRENT.md" in outcome.why for outcome in report.skipped)
    assert "three boxes" in current.read_text()
    assert_conserved(root, set(range(1, 11)))


def test_an_entry_deleted_from_current_while_flush_is_thinking_is_not_brought_back(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    current = root / "CURRENT.md"

    def delete() -> None:
        lines = [line for line in current.read_text().splitlines(True) if "two boxes" not in line]
        save_like_an_editor(current, "".join(lines))

    during(monkeypatch, delete)
    Library.open(root, clock=lambda: NOW).flush()
    assert all("two boxes" not in text.decode() for text in visible_files(root).values())


def test_an_entry_written_while_flush_is_thinking_stays_in_current(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    during(monkeypatch, lambda: Library.open(root).write("written meanwhile"))
    report = Library.open(root, clock=lambda: NOW).flush()
    assert report.seqs == (6, 7, 8, 9, 10)
    assert re.findall(r"<seq=(\d+)", (root / "CURRENT.md").read_text()) == ["11"]
    assert_conserved(root, set(range(1, 12)))


def test_a_topic_made_by_hand_under_the_planned_name_is_not_overwritten(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Library.open(root, clock=lambda: NOW)
    library.write("Zebra crossings in Wellington need fresh paint; the council meets about zebra crossings on Friday.")
    made = library.flush(dry_run=True)
    names = [outcome.step.topic for outcome in made.outcomes if type(outcome.step).__name__ == "Create"]
    assert names
    path = root / "topics" / f"{names[0]}.md"
    during(monkeypatch, lambda: path.write_text("my own note\n"))
    library.flush()
    assert path.read_text() == "my own note\n"
    assert_conserved(root, set(range(1, 12)))


def test_a_save_in_the_very_moment_of_the_rename_is_kept(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the comparison of digests and the rename an editor saves in place."""
    topic = topic_with(root, "Fjord Labs")
    real = transaction.link_old

    def save_then_link(path: Path, link: Path) -> None:
        real(path, link)
        if path == topic:
            with path.open("a") as file:
                file.write("- saved in the last moment\n")

    monkeypatch.setattr(transaction, "link_old", save_then_link)
    report = Library.open(root, clock=lambda: NOW).flush()
    assert any("is kept in" in note for note in report.notes)
    kept = list((root / ".infinimem" / "kept").iterdir())
    assert any("saved in the last moment" in path.read_text() for path in kept)
    assert any("kept" in str(finding.problem) for finding in Library.open(root).check())


def test_an_editor_replaces_current_during_a_write(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from infinimem.store import append

    current = root / "CURRENT.md"
    old = current.read_text()
    real = append.still_there
    calls: list[int] = []

    def replaced_once(path: Path, descriptor: int) -> bool:
        if not calls:
            calls.append(1)
            save_like_an_editor(current, old + "\nedited meanwhile\n")
        return real(path, descriptor)

    monkeypatch.setattr(append, "still_there", replaced_once)
    assert Library.open(root).write("new while an editor saved") == [11]
    text = current.read_text()
    assert "edited meanwhile" in text
    assert text.count("new while an editor saved") == 1


def test_current_saved_over_by_an_editor_that_had_it_open(root: Path) -> None:
    current = root / "CURRENT.md"
    old = current.read_text()
    library = Library.open(root, clock=lambda: NOW)
    [seq] = library.write("Anke's baby is called Frida.\nBorn on 3 May.")
    current.write_text(old + "\nMy own line.\n")
    findings = [str(finding.problem) for finding in library.check()]
    assert any(f"infinimem recover {seq}" in finding for finding in findings)
    report = library.flush()
    assert seq not in report.seqs
    assert any(f"seq {seq}" in note for note in report.notes), "flush names the loss too"
    assert library.recover([seq]) == [seq]
    assert library.search("Anke's baby")[0].text == "Anke's baby is called Frida.\nBorn on 3 May."
    assert library.recover([seq]) == []
    assert not library.check()
    assert library.write("the next") == [seq + 1]


def killed_flushes(root: Path, place: Path) -> Iterator[Path]:
    """A copy of the library for every step at which a killed flush leaves its manifest behind."""
    from tests.faults.library_state import copied, drive

    number = 1
    while True:
        one = copied(root, place)
        if drive(number, "kill", "flush", one).returncode == 0:
            return
        if (one / ".infinimem" / "commit.json").exists():
            yield one
        number += 2


def test_a_topic_edited_after_a_killed_flush_stays_as_edited_and_nothing_is_lost(root: Path) -> None:
    topic = topic_with(root, "Fjord Labs").relative_to(root)
    seen = 0
    for one in killed_flushes(root, root.with_name("one")):
        seen += 1
        edited = (one / topic).read_text() + "\nMy own words after the kill.\n"
        (one / topic).write_text(edited)
        [seq] = Library.open(one, clock=lambda: NOW).write("the next command just works")
        assert seq == 11
        assert (one / topic).read_text() == edited
        assert not (one / ".infinimem" / "commit.json").exists()
        library = Library.open(one, clock=lambda: NOW)
        library.check(fix=True)
        library.flush()
        assert "My own words after the kill." in (one / topic).read_text()
        assert_conserved(one, set(range(1, 12)))
        assert not library.check()
    assert seen > 5


def test_a_bullet_typed_into_current_after_a_killed_flush_stays(root: Path) -> None:
    for one in killed_flushes(root, root.with_name("one")):
        current = one / "CURRENT.md"
        current.write_text(current.read_text() + "- typed after the kill\n")
        library = Library.open(one, clock=lambda: NOW)
        library.write("the next command just works")
        assert "- typed after the kill\n" in current.read_text()
        library.flush()
        assert library.search("typed after the kill", 1)[0].text == "typed after the kill"
        assert_conserved(one, set(range(1, 13)))
        assert not library.check()


def test_a_branch_switched_under_a_killed_flush_loses_nothing(root: Path) -> None:
    topic = topic_with(root, "Fjord Labs").relative_to(root)
    for one in killed_flushes(root, root.with_name("one")):
        (one / topic).write_text("another branch's version\n")
        Library.open(one, clock=lambda: NOW).write("anything")
        assert (one / topic).read_text() == "another branch's version\n"
        written = "".join(text.decode() for text in visible_files(one).values())
        assert all(words in written for words in ("staff engineer", "two boxes broken", "Brahms Requiem", "240 mA"))


@pytest.mark.parametrize("name", ["../outside", "..", "/etc/passwd", "a/../../b", "", ".hidden", "a//b", "CON", "a\\b"])
def test_no_topic_name_leads_out_of_the_library(root: Path, name: str) -> None:
    from infinimem.model import Create, Extend
    from infinimem.plan.paper import Plan

    before = sorted(root.parent.iterdir())
    library = Library.open(root, clock=lambda: NOW)
    plan = Plan((Create(name, "Evil"), Extend(name, "", (6, 7, 8, 9, 10))))
    report = library.flush(plan=plan)
    assert len(report.skipped) == 2
    assert sorted(root.parent.iterdir()) == before
    assert_conserved(root, set(range(1, 11)))
    with pytest.raises(BadInput):
        library.read(name)


def test_a_symbolic_link_is_never_written_through(root: Path, tmp_path: Path) -> None:
    from infinimem.model import Create, Extend
    from infinimem.plan.paper import Plan

    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "note.md").write_text("---\nid: link/note\ntoken_count: 1\n---\n# Note\n")
    (root / "topics" / "link").symlink_to(outside)
    (root / "topics" / "single.md").symlink_to(outside / "note.md")
    library = Library.open(root, clock=lambda: NOW)
    plan = Plan((Create("link/new", "New"), Extend("link/new", "", (6,)), Extend("single", "", (7,))))
    try:
        report = library.flush(plan=plan)
        assert report.skipped
    except NeedsAttention as error:
        assert "symbolic link" in str(error)
    assert sorted(path.name for path in outside.iterdir()) == ["note.md"]
    assert (outside / "note.md").read_text().endswith("# Note\n")
    assert_conserved(root, set(range(1, 11)))
    assert any("symbolic link" in str(finding.problem) for finding in library.check())


def test_current_that_is_a_symbolic_link_is_refused(root: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.md"
    (root / "CURRENT.md").rename(elsewhere)
    (root / "CURRENT.md").symlink_to(elsewhere)
    before = elsewhere.read_bytes()
    with pytest.raises(StorageFailed, match="symbolic link"):
        Library.open(root).write("x")
    assert elsewhere.read_bytes() == before
    assert [(found.problem.code, found.problem.blocking) for found in Library.open(root).check()] == [("symlink", True)]


def test_who_linked_evidence_is_not_told_to_remove_it(root: Path, tmp_path: Path) -> None:
    (root / "evidence").rename(tmp_path / "evidence")
    (root / "evidence").symlink_to(tmp_path / "evidence")
    with pytest.raises(NeedsAttention, match="move the real folder here"):
        Library.open(root).flush()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_among_good_ones(root: Path) -> None:
    topic = topic_with(root, "Fjord Labs")
    topic.chmod(0)
    library = Library.open(root)
    assert library.search("choir rehearsal")
    assert any("no permission" in str(finding.problem) for finding in library.check())


@pytest.mark.parametrize(
    "spoiled",
    [
        b"---\nid: x\nid: y\n---\n# Two ids\n",
        b"---\nid: [\n---\n# Broken\n",
        b"<<<<<<< HEAD\n- one\n=======\n- two\n>>>>>>> branch\n",
        b"\xff\xfe latin \xe9\n",
    ],
    ids=["duplicate-keys", "broken-yaml", "conflict", "not-utf8"],
)
def test_a_file_that_cannot_be_understood_is_never_rewritten(root: Path, spoiled: bytes) -> None:
    topic = topic_with(root, "Fjord Labs")
    content = spoiled + topic.read_bytes()
    topic.write_bytes(content)
    library = Library.open(root, clock=lambda: NOW)
    report = library.flush()
    library.check(fix=True)
    assert topic.read_bytes() == content
    assert 6 in report.seqs or 6 in report.left
    findings = [finding.problem for finding in library.check()]
    assert any(problem.path == f"topics/{topic.name}" and problem.line for problem in findings)


def test_conflict_markers_in_current_stop_a_flush_but_no_write(root: Path) -> None:
    current = root / "CURRENT.md"
    ours = "- <seq=6, source=user> ours\n"
    current.write_text(current.read_text() + f"<<<<<<< HEAD\n{ours}=======\n- <seq=6, source=user> theirs\n>>>>>>> b\n")
    library = Library.open(root)
    assert library.write("still possible") == [11]
    with pytest.raises(NeedsAttention, match=r"CURRENT\.md:\d+: a git conflict"):
        library.flush()
    assert "<<<<<<< HEAD" in current.read_text()


def test_the_sample_is_what_it_was(root: Path) -> None:
    """The fixture itself: the first entries are flushed, the others wait."""
    assert len(FIRST) == 5
    assert_conserved(root, set(range(1, 11)))
