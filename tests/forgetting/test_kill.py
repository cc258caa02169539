"""A forget that is killed anywhere: it was not, or it is finished by the next command, and no trace is left."""

from __future__ import annotations

import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest

from infinimem import Library
from infinimem.errors import InfinimemError
from tests.faults.library_state import NIGHTLY, copied, drive, visible_files

START = datetime(2026, 5, 1, 9, tzinfo=UTC)
LATER = datetime(2026, 6, 1, 12, tzinfo=UTC)
WORD = "Zorblatt"
EVERY = 1 if NIGHTLY else 4


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("base") / "memory"
    library = Library.open(root, create=True, clock=lambda: START)
    library.write([f"{WORD} has a key.", "Maya works at Fjord Labs.", "The boat has berth 12.", f"{WORD} sings."])
    library.flush()
    library.write([f"{WORD} moved the key.", "Hilde turns ninety."], supersedes=1)
    library.flush()
    library.write([f"{WORD} again.", "A last one."])
    library.search(WORD)
    (root / ".infinimem" / "usage.jsonl").write_text(f'{{"question": "{WORD}?"}}\n{{"question": "Maya?"}}\n')
    (root / "CURRENT.md~").write_bytes((root / "CURRENT.md").read_bytes())
    return root


def holding(root: Path) -> list[str]:
    """The files and names that hold the word."""
    word = WORD.lower()
    return sorted(
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if word in path.as_posix().lower() or (path.is_file() and word.encode() in path.read_bytes().lower())
    )


def test_killed_at_every_step(base: Path, tmp_path: Path) -> None:
    whole = copied(base, tmp_path / "whole")
    assert drive(0, "kill", "forget", whole, WORD, count=tmp_path / "count").returncode == 0
    assert holding(whole) == []
    total, after, before = int((tmp_path / "count").read_text()), visible_files(whole), visible_files(base)
    seen = set()
    for number in range(1, total + 1, EVERY):
        root = copied(base, tmp_path / "one")
        mode = "half" if number % 2 else "kill"
        assert drive(number, mode, "forget", root, WORD).returncode == -signal.SIGKILL
        [seq] = Library.open(root, clock=lambda: LATER).write("the next command")
        assert seq == 9
        now = visible_files(root)
        now["CURRENT.md"] = now["CURRENT.md"].rpartition(b"- <seq=9")[0]
        assert now in (before, after), f"killed at {number} of {total}"
        seen.add(now == after)
        if now == after:
            assert holding(root) == [], f"killed at {number} of {total}"
        else:
            assert Library.open(root, clock=lambda: LATER).forget(pattern=WORD).seqs == (1, 4, 5, 7)
            assert holding(root) == []
    assert seen == {False, True}


@pytest.mark.parametrize("mode", ["full", "readonly"])
def test_a_disk_that_refuses_at_any_step(base: Path, tmp_path: Path, mode: str) -> None:
    whole = copied(base, tmp_path / "whole")
    assert drive(0, "kill", "forget", whole, WORD, count=tmp_path / "count").returncode == 0
    total, after, before = int((tmp_path / "count").read_text()), visible_files(whole), visible_files(base)
    for number in range(1, total + 1, 3 * EVERY):
        root = copied(base, tmp_path / "one")
        done = drive(number, mode, "forget", root, WORD)
        assert "Traceback" not in done.stderr, done.stderr[-2000:]
        assert done.returncode in (0, 3, 5)
        Library.open(root, clock=lambda: LATER).check()
        now = visible_files(root)
        assert now in (before, after), f"refused at {number} of {total}"
        assert now == after or done.returncode == 3
        if now == after:
            assert holding(root) == []


def test_a_file_saved_by_an_editor_after_the_kill_is_not_overwritten(base: Path, tmp_path: Path) -> None:
    """Killed before the first file is in place; then a topic that still shows the words is edited and saved."""
    whole = copied(base, tmp_path / "whole")
    drive(0, "kill", "forget", whole, WORD, count=tmp_path / "count")
    total = int((tmp_path / "count").read_text())
    met = 0
    for number in range(total // 4, total + 1, EVERY):
        root = copied(base, tmp_path / "one")
        drive(number, "kill", "forget", root, WORD)
        if not (root / ".infinimem" / "commit.json").exists():
            continue
        topic = sorted((root / "topics").glob("*.md"))[0]
        topic.write_text(topic.read_text() + "\nMy own remark.\n")
        library = Library.open(root, clock=lambda: LATER)
        library.check()
        met += 1
        assert "My own remark." in topic.read_text()
        try:
            library.forget(pattern=WORD)
        except InfinimemError as error:  # pragma: no cover - says what went wrong
            pytest.fail(f"killed at {number}: {error}")
        assert holding(root) == [], f"killed at {number} of {total}"
        assert "My own remark." in topic.read_text()
    assert met > 2
