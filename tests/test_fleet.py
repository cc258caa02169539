"""Many libraries below one folder: all that are due are flushed, and none suffers from another."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from infinimem import Library
from infinimem.fleet.below import libraries_below
from infinimem.fleet.crew import Crew
from infinimem.fleet.flush import flush_below
from infinimem.store.lock import exclusive

OLD = "2026-01-01T00:00:00Z"


def make(root: Path, number: int) -> None:
    """So many libraries with two entries each that are due."""
    for at in range(number):
        library = Library.open(root / f"group-{at % 3}" / f"agent-{at}", create=True)
        library.write([f"Agent {at} likes jar {at}.", f"Its shelf is {at * 7}."], source="user", observed=OLD)


def buffers(root: Path) -> Iterator[str]:
    """Every CURRENT.md there is, what a commit has just put away left out."""
    for path in root.rglob("CURRENT.md"):
        with suppress(FileNotFoundError):
            yield path.read_text()


def buffered(root: Path) -> int:
    """How many entries still wait, in all libraries."""
    return sum(text.count("- <seq=") for text in buffers(root))


def children_of(pid: int) -> list[str]:
    """The processes that a process has started, as `ps` tells everywhere."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in listed.splitlines() if line.split()[1] == str(pid)]


def test_libraries_are_found_and_nothing_inside_them(tmp_path: Path) -> None:
    make(tmp_path, 4)
    inside = tmp_path / "group-0" / "agent-0" / "topics" / "inside"
    inside.mkdir()
    (inside / "infinimem.yaml").write_text("format: 1\n")
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


def due(root: Path) -> int:
    """How many libraries still hold entries in their buffers."""
    return sum("- <seq=" in text for text in buffers(root))


def run_fleet(root: Path) -> subprocess.Popen[str]:
    """`flush --root` as a process of its own."""
    command = [sys.executable, "-m", "infinimem", "flush", "--root", str(root), "--jobs", "2", "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait until something holds, two minutes at most."""
    deadline = time.monotonic() + 120
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert holds()


def test_processes_killed_again_and_again_cost_no_library(tmp_path: Path) -> None:
    make(tmp_path, 30)
    process = run_fleet(tmp_path)
    killed: set[str] = set()
    # by turns one that has only begun and one that is at work: every process that is seen first is killed, so that at
    # least two are, however fast the machine
    while len(killed) < 6 and process.poll() is None:
        left = due(tmp_path)
        new = [child for child in children_of(process.pid) if child not in killed]
        if not new or not left:
            continue
        if len(killed) % 2:
            wait_until(lambda left=left: due(tmp_path) < left or process.poll() is not None)  # type: ignore[misc]
        with suppress(ProcessLookupError):
            os.kill(int(new[0]), signal.SIGKILL)
        killed.add(new[0])
    told = json.loads(process.communicate(timeout=300)[0])
    assert len(killed) >= 2
    assert told["flushed"] + told["nothing"] + told["failed"] == 30
    assert (due(tmp_path), told["failed"]) == (0, 0)
    assert every_entry_once(tmp_path, 30)


def every_entry_once(root: Path, number: int) -> bool:
    """Whether each entry that `make` wrote stands once in what can be seen of its library, and its files are sound."""
    for at in range(number):
        library = root / f"group-{at % 3}" / f"agent-{at}"
        seen = "".join(path.read_text() for path in [library / "CURRENT.md", *(library / "topics").rglob("*.md")])
        if seen.count(f"> Agent {at} likes jar {at}.\n") != 1 or seen.count(f"> Its shelf is {at * 7}.\n") != 1:
            return False
        if [found for found in Library.open(library).check() if found.problem.blocking]:
            return False
    return True


def test_a_fleet_that_was_killed_does_only_the_rest(tmp_path: Path) -> None:
    make(tmp_path, 48)
    process = run_fleet(tmp_path)
    wait_until(lambda: due(tmp_path) < 48)
    children = children_of(process.pid)
    process.kill()
    process.communicate()
    wait_until(lambda: not set(children) & alive())
    left = due(tmp_path)
    assert 0 < left < 48
    told = json.loads(run_fleet(tmp_path).communicate(timeout=300)[0])
    assert (told["flushed"], told["nothing"], told["failed"]) == (left, 48 - left, 0)
    assert every_entry_once(tmp_path, 48)


def alive() -> set[str]:
    """The processes that there are."""
    return set(subprocess.run(["ps", "-A", "-o", "pid="], capture_output=True, text=True, check=True).stdout.split())


def test_an_interrupt_finishes_what_is_at_work_and_says_to_run_it_again(tmp_path: Path) -> None:
    make(tmp_path, 60)
    command = [sys.executable, "-m", "infinimem", "flush", "--root", str(tmp_path), "--planner", "lexical"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while due(tmp_path) > 57 and time.monotonic() < deadline:
        time.sleep(0.01)
    started = children_of(process.pid)
    process.send_signal(signal.SIGINT)
    printed, said = process.communicate(timeout=300)
    assert process.returncode == 130
    assert printed == ""
    stopping, done, ended = said.splitlines()
    assert stopping.startswith("stopping: the libraries at work are finished")
    assert done.endswith("run it again for the rest")
    assert ended.startswith("infinimem: interrupted")
    assert started
    wait_until(lambda: not set(started) & alive())
    left = due(tmp_path)
    assert 0 < left <= 57
    again = [one.status for one in flush_below(tmp_path, "lexical", processes=2)]
    assert (again.count("flushed"), again.count("failed")) == (left, 0)
    assert every_entry_once(tmp_path, 60)


def test_a_library_that_another_process_has_is_left_and_named(tmp_path: Path) -> None:
    make(tmp_path, 3)
    with exclusive(tmp_path / "group-1" / "agent-1" / ".infinimem" / "flush.lock"):
        found = {Path(one.path).name: one for one in flush_below(tmp_path, "lexical", processes=1)}
    assert [found[name].status for name in ("agent-0", "agent-1", "agent-2")] == ["flushed", "failed", "flushed"]
    assert "in use by another process" in found["agent-1"].why
    again = {Path(one.path).name: one.status for one in flush_below(tmp_path, "lexical", processes=1)}
    assert again == {"agent-0": "nothing", "agent-1": "flushed", "agent-2": "nothing"}


def handle(item: str) -> str:
    """Work that may go wrong in several ways."""
    if item == "die":
        os._exit(7)
    if item == "sleep":
        time.sleep(600)
    if item == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    return f"{item} done"


def lost(item: str, is_late: bool) -> str:
    return f"{item} {'late' if is_late else 'lost'}"


def test_what_dies_sleeps_or_stands_still_is_lost_alone() -> None:
    pieces = [["a", "b", "die", "c"], ["d", "sleep"], ["e", "f"], ["stop"]]
    with Crew(3, limit=1.5) as crew:
        done = sorted(crew.work_through(handle, pieces, lost))
    assert done == sorted([*(f"{name} done" for name in "abcdef"), "die lost", "sleep late", "stop late"])


def test_what_ends_every_process_is_named_and_the_others_are_flushed(tmp_path: Path) -> None:
    make(tmp_path, 4)
    poisoned = tmp_path / "group-0" / "agent-0"
    with (poisoned / "CURRENT.md").open("ab") as file:
        file.truncate(1 << 40)  # a terabyte of nothing: more than any process may have
    found = {Path(one.path).name: one for one in flush_below(tmp_path, "lexical", processes=2)}
    assert found["agent-0"].status == "failed"
    assert found["agent-0"].why
    assert [found[f"agent-{at}"].status for at in (1, 2, 3)] == ["flushed"] * 3


def test_a_folder_without_a_library_is_said(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "infinimem", "flush", "--root", str(tmp_path)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 1
    assert "no library lies below" in process.stderr


def test_many_troubles_are_cut_for_a_person_and_all_told_as_json(tmp_path: Path) -> None:
    make(tmp_path, 23)
    for settings in tmp_path.rglob("infinimem.yaml"):
        settings.write_text("format: 1\nflush: {max_tokens: many}\n")
    command = [sys.executable, "-m", "infinimem", "flush", "--root", str(tmp_path)]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 5
    assert told.stderr.count("max_tokens") == 20
    assert "and 3 more; --json lists them all" in told.stderr
    listed = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    assert len(json.loads(listed.stdout)["troubles"]) == 23
