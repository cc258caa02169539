"""One `Library` and many threads: what each reads is whole, and what each writes is there once."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from infinimem import Library
from infinimem.text.words import analyse
from tests.conftest import NIGHTLY
from tests.faults.test_writers import assert_written_once

THREADS = 8


@pytest.fixture(autouse=True)
def often() -> Iterator[None]:
    """Threads take turns after 10 microseconds: with an index that they share, what follows fails within seconds."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(usual)


def together(work: Callable[[int], object], threads: int = THREADS) -> list[object]:
    """What each thread gives, all let go at one moment; raises what any of them raised."""
    gate = threading.Barrier(threads)

    def run(number: int) -> object:
        gate.wait()
        return work(number)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, range(threads)))


def test_threads_search_write_and_flush_on_one_library(tmp_path: Path) -> None:
    """Each finds what it has just written, while others write, flush and search."""
    library = Library.open(tmp_path / "memory", create=True)
    turns = 200 if NIGHTLY else 10

    def work(number: int) -> list[int]:
        chance = random.Random(number)
        seqs: list[int] = []
        for turn in range(turns):
            [seq] = library.write(f"writer {number} says word{number}x{turn}\nand goes on")
            seqs.append(seq)
            assert [hit.seqs for hit in library.search(f"word{number}x{turn}", k=1)] == [(seq,)]
            old = chance.choice(seqs)
            story = library.trace(old)
            assert story.here is not None and f"word{number}x{seqs.index(old)}\n" in story.here.text
            if number == 0 and turn % 4 == 3:
                library.flush(planner="lexical")
            elif number == 1:
                assert all(row.entries for row in library.catalog() if row.topic != "CURRENT")
        return seqs

    printed = [seqs for seqs in together(work) if isinstance(seqs, list)]
    texts = [
        f"writer {number} says word{number}x{turn}\nand goes on" for number in range(THREADS) for turn in range(turns)
    ]
    library.flush(planner="lexical")
    assert_written_once(library.root, printed, texts)


def test_a_new_index_is_built_by_all_threads_at_once(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True)
    library.write([f"Note {number} of the pantry, jar{number}." for number in range(3_000)])
    found = together(lambda number: [hit.text for hit in library.search(f"jar{number * 7}", k=1)])
    assert found == [[f"Note {number * 7} of the pantry, jar{number * 7}."] for number in range(THREADS)]


def test_each_thread_has_an_index_of_its_own(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True)
    library.write("a fact")
    gate = threading.Barrier(3)

    def work(number: int) -> int:
        first = library.index()
        gate.wait()
        assert library.index() is first
        return id(first)

    assert len(set(together(work, 3))) == 3
    library.close()
    assert library.search("fact")


def test_the_analyser_gives_every_thread_the_same_terms() -> None:
    words = [f"{stem}{end}" for stem in ("walk", "runn", "berth", "organis") for end in ("ing", "ed", "ers", "ation")]
    text = " ".join(f"{word}{number}x {word}" for number in range(400) for word in words)
    expected = [analyse(text, "german"), analyse(text, "english")]
    assert together(lambda _: [analyse(text, "german"), analyse(text, "english")]) == [expected] * THREADS
