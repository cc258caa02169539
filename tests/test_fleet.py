"""Many libraries below one folder: all that are due are flushed, and none suffers from another."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from infinimem import Library
from infinimem.fleet import flush_below, libraries_below

OLD = "2026-01-01T00:00:00Z"


def make(root: Path, number: int) -> None:
    """So many libraries with two entries each that are due."""
    for at in range(number):
        library = Library.open(root / f"group-{at % 3}" / f"agent-{at}", create=True)
        library.write([f"Agent {at} likes jar {at}.", f"Its shelf is {at * 7}."], source="user", observed=OLD)


def buffered(root: Path) -> int:
    """How many entries still wait, in all libraries."""
    return sum(path.read_text().count("- <seq=") for path in root.rglob("CURRENT.md"))


def children_of(pid: int) -> list[str]:
    """The processes that a process has started, as `ps` tells everywhere."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in listed.splitlines() if line.split()[1] == str(pid)]


def test_libraries_are_found_and_nothing_inside_them(tmp_path: Path) -> None:
    make(tmp_path, 4)
    Library.open(tmp_path / "group-0" / "agent-0" / "topics" / "inside", create=True)
    Library.open(tmp_path / ".hidden", create=True)
    (tmp_path / "group-0" / "notes").mkdir()
    names = [path.name for path in libraries_below(tmp_path)]
    assert names == ["agent-0", "agent-3", "agent-1", "agent-2"]


def test_a_poisoned_library_stops_no_other(tmp_path: Path) -> None:
    make(tmp_path, 12)
    poisoned = tmp_path / "group-1" / "agent-4"
    with (poisoned / "CURRENT.md").open("a") as file:
        file.write("<<<<<<< ours\n- one\n=======\n- two\n>>>>>>> theirs\n")
    (tmp_path / "group-2" / "agent-5" / "infinimem.yaml").write_text("format: 1\nflush: {max_tokens: many}\n")
    found = {Path(one.path).name: one for one in flush_below(tmp_path, "lexical", processes=2)}
    assert len(found) == 12
    assert found["agent-4"].status == "failed"
    assert "conflict" in found["agent-4"].why
    assert found["agent-5"].status == "failed"
    assert "max_tokens" in found["agent-5"].why
    assert sum(one.status == "flushed" for one in found.values()) == 10
    assert buffered(tmp_path) == 4
    again = list(flush_below(tmp_path, "lexical", processes=2))
    assert sum(one.status == "nothing" for one in again) == 10


def test_a_killed_process_takes_no_library_with_it(tmp_path: Path) -> None:
    make(tmp_path, 40)
    process = subprocess.Popen(
        [sys.executable, "-m", "infinimem", "flush", "--root", str(tmp_path), "--json"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while buffered(tmp_path) == 80 and time.monotonic() < deadline:
        time.sleep(0.01)
    for child in children_of(process.pid)[-1:]:
        os.kill(int(child), signal.SIGKILL)
    printed, _ = process.communicate(timeout=300)
    told = json.loads(printed)
    assert told["flushed"] + told["nothing"] + told["failed"] == 40
    assert told["failed"] == 0
    assert buffered(tmp_path) == 0
    for library in libraries_below(tmp_path):
        assert not [found for found in Library.open(library).check() if found.problem.blocking]
