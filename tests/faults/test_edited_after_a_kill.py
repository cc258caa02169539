"""Killed after the commit point, and then somebody edits or restores files before the next command."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from infinimem import Library
from infinimem.store.transaction import COMMIT
from tests.faults.library_state import assert_conserved

NOW = datetime(2026, 5, 1, 9, tzinfo=UTC)
KILLED = """
import os, sys
from datetime import UTC, datetime
from infinimem import Library
from infinimem.model import Create, Extend, Merge, Part, Retire, Split
from infinimem.plan.paper import Plan
from infinimem.store import transaction
real = transaction.{step}
calls = []
def die(*args, **kwargs):
    calls.append(args)
    if {when}:
        os._exit(9)
    return real(*args, **kwargs)
transaction.{step} = die
library = Library.open(sys.argv[1], clock=lambda: datetime(2026, 5, 1, 9, tzinfo=UTC))
library.{call}
"""
EVERYTHING_IN_PLACE = ("write_undo_record", "True")
IN_COMMIT = "(args[0].parent / '.infinimem/commit.json').exists()"
BEFORE_CURRENT = ("digest_at", f"args[0].name == 'CURRENT.md' and {IN_COMMIT}")
PLAN = "flush(plan=Plan(({steps})))"


@pytest.fixture
def library(tmp_path: Path) -> Library:
    library = Library.open(tmp_path / "memory", create=True, clock=lambda: NOW)
    subprocess.run(["git", "init", "-q", str(library.root)], check=True)
    return library


def run(library: Library, call: str, point: tuple[str, str] | None = None) -> None:
    """Do something to the library in a process of its own, killed at a point of its transaction."""
    step, when = point or ("commit", "False")
    script = KILLED.format(step=step, when=when, call=call)
    done = subprocess.run(
        [sys.executable, "-c", script, str(library.root)], capture_output=True, text=True, check=False
    )
    assert done.returncode == (9 if point else 0), done.stderr
    assert (library.root / ".infinimem" / "commit.json").exists() == bool(point)


def plan(*steps: str) -> str:
    return PLAN.format(steps=", ".join(steps) + ",")


def git(library: Library, *words: str) -> None:
    names = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "-C", str(library.root), *names, *words], check=True, capture_output=True)


def prose(path: Path) -> None:
    path.write_text(path.read_text() + "\nSome prose of my own.\n")


def settle(library: Library, seqs: set[int]) -> None:
    """The next commands: nothing may be missing or doubled, before and after repairs."""
    [seq] = library.write("the next command")
    library.check(fix=True)
    library.flush()
    assert_conserved(library.root, seqs | {seq})
    assert "why=deleted" not in "".join(path.read_text() for path in (library.root / "evidence").iterdir())
    assert not [finding for finding in library.check() if finding.problem.code not in ("unsettled", "summary")]


def test_the_old_files_restored_by_git_after_a_killed_flush(library: Library) -> None:
    library.write("Cats like fish.")
    git(library, "add", "-A")
    git(library, "commit", "-qm", "before")
    run(library, plan("Create('cats', 'Cats')", "Extend('cats', '', (1,))"), BEFORE_CURRENT)
    git(library, "checkout", "-q", ".")
    git(library, "clean", "-qfd", "topics", "evidence")
    settle(library, {1})


@pytest.mark.parametrize("point", [EVERYTHING_IN_PLACE, BEFORE_CURRENT], ids=["in place", "before CURRENT"])
@pytest.mark.parametrize("edit", ["a", "b"])
def test_a_killed_split_and_a_topic_edited_since(library: Library, point: tuple[str, str], edit: str) -> None:
    library.write(["one", "two", "three", "four"])
    run(library, plan("Create('a', 'A')", "Extend('a', '', (1, 2, 3, 4))"))
    library.write("five")
    parts = "(Part('a', 'A', (1, 2, 5)), Part('b', 'B', (3, 4)))"
    run(library, plan("Extend('a', '', (5,))", f"Split('a', {parts})"), point)
    prose(library.root / "topics" / f"{edit}.md")
    settle(library, {1, 2, 3, 4, 5})
    assert "Some prose of my own." in (library.root / "topics" / f"{edit}.md").read_text()


@pytest.mark.parametrize("point", [EVERYTHING_IN_PLACE, BEFORE_CURRENT], ids=["in place", "before CURRENT"])
def test_a_killed_flush_and_words_edited_since(library: Library, point: tuple[str, str]) -> None:
    library.write("Cats like fish.")
    run(library, plan("Create('cats', 'Cats')", "Extend('cats', '', (1,))"), point)
    path = library.root / "topics" / "cats.md"
    path.write_text(path.read_text().replace("fish", "salmon"))
    settle(library, {1})
    assert [hit.text for hit in library.search("cats like", 5)][:1] == ["Cats like salmon."]


@pytest.mark.parametrize("name", ["topics/a.md", "CURRENT.md"])
def test_a_killed_undo_and_a_file_edited_since(library: Library, name: str) -> None:
    library.write("one")
    run(library, plan("Create('a', 'A')", "Extend('a', '', (1,))"))
    library.write("two")
    run(library, plan("Extend('a', '', (2,))"))
    run(library, "undo()", BEFORE_CURRENT)
    prose(library.root / name)
    settle(library, {1, 2})


def test_a_killed_merge_and_a_topic_edited_since(library: Library) -> None:
    library.write(["one", "two"])
    run(library, plan("Create('a', 'A')", "Extend('a', '', (1,))", "Create('b', 'B')", "Extend('b', '', (2,))"))
    run(library, "merge(['a', 'b'])", EVERYTHING_IN_PLACE)
    prose(library.root / "topics" / "a.md")
    settle(library, {1, 2})


def insert_at_top(path: Path) -> None:
    path.write_text(path.read_text().replace("\n", "\nA remark.\n", 1))


def to_crlf(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


@pytest.mark.parametrize("change", [insert_at_top, to_crlf])
def test_evidence_edited_after_a_killed_flush_is_neither_doubled_nor_left_false(
    library: Library, change: Callable[[Path], None]
) -> None:
    library.write("The key is under the mat.")
    run(library, plan("Create('key', 'Key')", "Extend('key', '', (1,))"))
    library.write("The key is with Solveig.", supersedes=1)
    steps = ("Extend('key', '', (2,))", "Retire(1, 2, 'superseded')")
    run(library, plan(*steps), ("move_into_place", "True"))
    [evidence] = (library.root / "evidence").iterdir()
    change(evidence)
    prose(library.root / "topics" / "key.md")
    library.write("the next command")
    library.flush()
    assert_conserved(library.root, {1, 2, 3})
    assert evidence.read_text().count("> The key is with Solveig.") == 1
    assert not library.check()


def test_no_staging_is_left_behind(library: Library) -> None:
    library.write("one")
    run(library, "flush()", EVERYTHING_IN_PLACE)
    library.write("two")
    assert not (library.root / COMMIT).exists()
