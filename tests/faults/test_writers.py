"""Many writers at once, while flushes run and are killed: every entry once, seqs unique and rising."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from infinimem import Library
from tests.faults.library_state import DRIVER, assert_conserved, places

WRITER = """
import sys
from infinimem import Library
library = Library.open(sys.argv[1], create=True)
for number in range(int(sys.argv[3])):
    [seq] = library.write(f"writer {sys.argv[2]} says {number}\\nand goes on")
    print(seq, flush=True)
"""
PROCESSES = 16


@contextmanager
def flushes_that_die(root: Path) -> Iterator[list[int]]:
    """Flushes one after the other, every second one killed at a random moment."""
    stop = threading.Event()
    ended: list[int] = []
    chance = random.Random(7)

    def run() -> None:
        while not stop.is_set():
            process = subprocess.Popen(
                [sys.executable, str(DRIVER), "0", "kill", "flush", str(root)],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            if len(ended) % 2:
                time.sleep(chance.uniform(0.1, 0.6))
                process.send_signal(signal.SIGKILL)
            ended.append(process.wait())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield ended
    finally:
        stop.set()
        thread.join()


def entries_of(root: Path) -> dict[int, str]:
    """Every entry of CURRENT and evidence by seq: what was written, wherever it is now."""
    from infinimem.store.evidence import all_records
    from infinimem.text.document import parse

    found = {seq: record.entries[0][1].text for seq, record in all_records(root).items() if record.entries}
    for entry in parse("CURRENT.md", (root / "CURRENT.md").read_bytes()).entries:
        assert entry.seq not in found or found[entry.seq] == entry.text
        found[entry.seq] = entry.text
    return found


def assert_written_once(root: Path, printed: list[list[int]], texts: list[str]) -> None:
    """Each writer's seqs rise, no seq is given twice, and each text is there exactly once."""
    assert all(seqs == sorted(seqs) for seqs in printed)
    every = [seq for seqs in printed for seq in seqs]
    assert len(set(every)) == len(every)
    found = entries_of(root)
    assert sorted(found[seq] for seq in every) == sorted(texts)
    assert set(found) == set(every)
    findings = Library.open(root).check()
    assert not findings, [str(finding.problem) for finding in findings[:5]]
    assert_conserved(root, set(every))


def test_sixteen_processes_write_while_flushes_are_killed(tmp_path: Path) -> None:
    root = tmp_path / "memory"
    each = 250
    with flushes_that_die(root) as ended:
        writers = [
            subprocess.Popen(
                [sys.executable, "-c", WRITER, str(root), str(number), str(each)], stdout=subprocess.PIPE, text=True
            )
            for number in range(PROCESSES)
        ]
        printed = [[int(line) for line in writer.communicate()[0].split()] for writer in writers]
        deadline = time.monotonic() + 120
        while len(ended) < 2 and time.monotonic() < deadline:  # where the writers were faster
            time.sleep(0.05)
    assert all(writer.returncode == 0 for writer in writers)
    assert len(ended) >= 2
    texts = [f"writer {number} says {turn}\nand goes on" for number in range(PROCESSES) for turn in range(each)]
    assert len(texts) == 4000
    Library.open(root).flush()
    assert_written_once(root, printed, texts)


def test_sixteen_shells_write_while_flushes_are_killed(tmp_path: Path) -> None:
    root = tmp_path / "memory"
    command = [sys.executable, "-m", "infinimem", "-L", str(root), "write"]
    environment = {**os.environ, "HOME": str(tmp_path)}
    with flushes_that_die(root):
        printed: list[list[int]] = [[] for _ in range(PROCESSES)]

        def shell(number: int) -> None:
            for turn in range(10):
                done = subprocess.run(
                    [*command, f"shell {number} says {turn}"],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    check=True,
                    env=environment,
                )
                printed[number].append(int(done.stdout))

        threads = [threading.Thread(target=shell, args=(number,)) for number in range(PROCESSES)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    texts = [f"shell {number} says {turn}" for number in range(PROCESSES) for turn in range(10)]
    assert_written_once(root, printed, texts)


def test_many_first_writes_at_once_make_one_library(tmp_path: Path) -> None:
    """A process that sees no library may find one made by another a moment later."""
    from infinimem.store import layout

    root = tmp_path / "memory"
    first_look = layout.is_library
    looks: list[bool] = []

    def look(folder: Path) -> bool:
        found = first_look(folder)
        if not looks:  # between this look and the next, somebody else makes the library
            looks.append(found)
            layout.create_library(root)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "is_library", look)
        layout.create_library(root)
    assert looks == [False]
    assert (root / "infinimem.yaml").read_text() == "format: 1\n"


def test_two_flushes_at_once_consume_each_entry_once(tmp_path: Path) -> None:
    root = tmp_path / "memory"
    library = Library.open(root, create=True)
    seqs = library.write([f"The ferry to Kiel leaves at {hour}:00 from pier {hour}" for hour in range(1, 24)])
    command = [sys.executable, str(DRIVER), "0", "kill", "flush", str(root)]
    flushes = [subprocess.Popen(command) for _ in range(4)]
    assert [process.wait() for process in flushes] == [0, 0, 0, 0]
    buffer, topics, _, _ = places(root)
    assert not buffer
    assert all(topics[seq] == 1 for seq in seqs)
    assert not library.check()


def test_a_writer_waits_for_no_planner(tmp_path: Path) -> None:
    """While one flush plans, it holds no lock that a writer needs."""
    from infinimem.store.layout import FLUSH_LOCK
    from infinimem.store.lock import exclusive

    root = tmp_path / "memory"
    library = Library.open(root, create=True)
    with exclusive(root / FLUSH_LOCK):
        assert library.write("written meanwhile") == [1]
        assert [hit.seqs for hit in library.search("meanwhile")] == [(1,)]


def test_a_repeated_key_stores_nothing(tmp_path: Path) -> None:
    root = tmp_path / "memory"
    library = Library.open(root, create=True)
    first = library.write(["one", "two"], key="call 7, part <a>")
    assert library.write(["one", "two"], key="call 7, part <a>") == first
    library.flush()
    assert library.write("another text, the same call", key="call 7, part <a>") == first
    assert library.write("other", key="call 7") == [3]
    assert_conserved(root, {1, 2, 3})


def test_a_repeated_key_from_many_processes_stores_once(tmp_path: Path) -> None:
    root = tmp_path / "memory"
    code = "import sys; from infinimem import Library as L; print(L.open(sys.argv[1], create=True).write('x', key='k'))"
    runs = [
        subprocess.Popen([sys.executable, "-c", code, str(root)], stdout=subprocess.PIPE, text=True) for _ in range(8)
    ]
    assert {run.communicate()[0].strip() for run in runs} == {"[1]"}
    assert len(entries_of(root)) == 1
