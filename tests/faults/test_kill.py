"""Killed at any instant, the next command finds the state before or the state after, and nothing is lost."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from infinimem import Library
from tests.faults.library_state import DRIVER, NIGHTLY, assert_conserved, copied, drive, prepare, visible_files

LATER = datetime(2026, 6, 1, 12, tzinfo=UTC)
EVERY = 1 if NIGHTLY else 3
"""In CI every third step, a different third for each mode; all of them in the nightly setting."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("base") / "memory"
    prepare(root)
    return root


def steps(base: Path, tmp_path: Path, operation: str, *texts: str) -> tuple[int, dict[str, bytes]]:
    """How many changes the operation makes when nothing goes wrong, and the files after it."""
    root = copied(base, tmp_path / "whole")
    done = drive(0, "kill", operation, root, *texts, count=tmp_path / "count")
    assert done.returncode == 0, done.stderr
    return int((tmp_path / "count").read_text()), visible_files(root)


def assert_before_or_after(root: Path, before: dict[str, bytes], after: dict[str, bytes], step: str) -> bool:
    """Open the library as the next command would; say whether the state is the one after."""
    library = Library.open(root, clock=lambda: LATER)
    findings = [finding for finding in library.check() if finding.problem.code != "deleted"]
    now = visible_files(root)
    assert now in (before, after), f"{step}: neither before nor after; {sorted(now)}"
    assert not findings, f"{step}: {[str(finding.problem) for finding in findings]}"
    return now == after


@pytest.mark.parametrize("mode", ["kill", "half"])
@pytest.mark.parametrize("operation", ["flush", "undo", "fix"])
def test_kill_at_every_step(base: Path, tmp_path: Path, operation: str, mode: str) -> None:
    start = base
    if operation == "undo":
        start = copied(base, tmp_path / "flushed")
        assert drive(0, "kill", "flush", start).returncode == 0
    if operation == "fix":
        start = copied(base, tmp_path / "edited")
        topic = next((start / "topics").glob("*.md"))
        topic.write_text(topic.read_text() + "- typed by hand\n")
        Library.open(start, clock=lambda: LATER).index()
    total, after = steps(start, tmp_path, operation)
    before = visible_files(start)
    offset = 1 if mode == "kill" else 2
    seen = set()
    for number in range(min(offset, total), total + 1, EVERY):
        root = copied(start, tmp_path / "one")
        died = drive(number, mode, operation, root)
        assert died.returncode == -signal.SIGKILL
        if operation == "fix":
            now_after = recovered_fix(root, before, after)
        else:
            now_after = assert_before_or_after(root, before, after, f"{operation} killed at {number}/{total}")
        seen.add(now_after)
        if operation == "flush":
            assert drive(0, "kill", "flush", root).returncode == 0
            assert visible_files(root) == after
            assert_conserved(root, set(range(1, 11)))
    assert seen == {False, True}, "the kills met only one side of the commit point"


def recovered_fix(root: Path, before: dict[str, bytes], after: dict[str, bytes]) -> bool:
    """A killed repair: the hand edit is still there, signed or not."""
    Library.open(root, clock=lambda: LATER).check()
    now = visible_files(root)
    assert now in (before, after)
    return now == after


@pytest.mark.parametrize("mode", ["kill", "half"])
def test_kill_at_every_step_of_a_write(base: Path, tmp_path: Path, mode: str) -> None:
    texts = ("a first new fact\nof two lines", "a second new fact")
    total, after = steps(base, tmp_path, "write", *texts)
    before = visible_files(base)
    for number in range(1, total + 1):
        root = copied(base, tmp_path / "one")
        assert drive(number, mode, "write", root, *texts).returncode == -signal.SIGKILL
        assert_before_or_after(root, before, after, f"write killed at {number}/{total}")
        seqs = Library.open(root, clock=lambda: LATER).write("after the kill")
        assert seqs in ([11], [13])
        assert_conserved(root, set(range(1, seqs[0] + 1)))


def test_kill_at_every_step_of_the_first_write(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    assert drive(0, "kill", "write", whole, "a fact", count=tmp_path / "count").returncode == 0
    for number in range(1, int((tmp_path / "count").read_text()) + 1):
        root = tmp_path / f"library-{number}"
        assert drive(number, "kill", "write", root, "a fact").returncode == -signal.SIGKILL
        library = Library.open(root, create=True, clock=lambda: LATER)
        seqs = library.write("after the kill")
        assert seqs in ([1], [2])
        assert not library.check()
        assert_conserved(root, set(range(1, seqs[0] + 1)))


def test_kill_at_every_step_of_indexing(base: Path, tmp_path: Path) -> None:
    start = copied(base, tmp_path / "start")
    subprocess.run(["rm", "-rf", str(start / ".infinimem" / "index")], check=True)
    total, _ = steps(start, tmp_path, "search")
    expected = [hit.seqs for hit in Library.open(base).search("staff engineer at Nordlys", 3)]
    for number in range(1, total + 1, EVERY):
        root = copied(start, tmp_path / "one")
        assert drive(number, "kill", "search", root).returncode == -signal.SIGKILL
        assert [hit.seqs for hit in Library.open(root).search("staff engineer at Nordlys", 3)] == expected


def test_a_reader_never_sees_half_a_commit(base: Path, tmp_path: Path) -> None:
    """Killed between two renames, the next search finds every entry once: the commit is finished first."""
    total, _ = steps(base, tmp_path, "flush")
    half_way = 0
    for number in range(1, total + 1, EVERY):
        root = copied(base, tmp_path / "one")
        drive(number, "kill", "flush", root)
        if not (root / ".infinimem" / "commit.json").exists():
            continue
        half_way += 1
        hits = Library.open(root, clock=lambda: LATER).search("Brahms Nordlys tiles Flo boxes choir Hilde", 50)
        seqs = [seq for hit in hits for seq in hit.seqs]
        assert len(seqs) == len(set(seqs))
        assert {6, 7, 10} <= set(seqs)
        assert 1 not in seqs, "superseded"
    assert half_way > 3


@pytest.mark.parametrize("mode", ["full", "readonly"])
@pytest.mark.parametrize("operation", ["write", "flush", "undo"])
def test_disk_full_or_read_only_at_every_step(base: Path, tmp_path: Path, operation: str, mode: str) -> None:
    start = base
    if operation == "undo":
        start = copied(base, tmp_path / "flushed")
        assert drive(0, "kill", "flush", start).returncode == 0
    texts = ("a new fact",) if operation == "write" else ()
    total, after = steps(start, tmp_path, operation, *texts)
    before = visible_files(start)
    for number in range(1, total + 1, EVERY):
        root = copied(start, tmp_path / "one")
        done = drive(number, mode, operation, root, *texts)
        assert done.returncode in (0, 3), f"{operation} {mode} at {number}: {done.stderr[-800:]}"
        assert "Traceback" not in done.stderr
        assert done.returncode == 0 or len(done.stderr.strip().splitlines()) == 1
        was_after = assert_before_or_after(root, before, after, f"{operation} {mode} at {number}/{total}")
        assert was_after or done.returncode == 3, "success was reported, but nothing happened"


def test_kill_at_random_times(base: Path, tmp_path: Path) -> None:
    """Writers and flushes killed at any time, on one library that lives on through all of it."""
    root = copied(base, tmp_path / "memory")
    chance = random.Random(20261130)
    promised: set[int] = set(range(1, 11))
    for number in range(300 if NIGHTLY else 20):
        operation = chance.choice(["write", "flush", "flush", "undo"])
        texts = [f"fact {number} about the ferry\nsecond line {number}"] if operation == "write" else []
        command = [sys.executable, str(DRIVER), "0", "kill", operation, str(root), *texts]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            time.sleep(chance.uniform(0.02, 0.35))
            process.send_signal(signal.SIGKILL)
        library = Library.open(root, clock=lambda: LATER)
        [seq] = library.write(f"after {number}: the boat Terna, berth {number}")
        assert seq not in promised, "a seq was given twice"
        promised.add(seq)
        findings = library.check()
        assert not findings, [str(finding.problem) for finding in findings]
        buffer = (root / "CURRENT.md").read_text() + "".join(p.read_text() for p in (root / "evidence").glob("*.md"))
        assert all(f"seq={one}," in buffer or f"seq={one}>" in buffer for one in promised)
