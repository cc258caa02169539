"""While a writer waits for the disk others go on: what they do to its entries, and what a disk that refuses does."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from infinimem import Library
from infinimem.errors import StorageFailed
from infinimem.store import append
from infinimem.store.lock import is_free

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
WORDS = "The ferry to Kiel leaves at seven."


@pytest.fixture
def library(tmp_path: Path) -> Library:
    made = Library.open(tmp_path / "memory", create=True, clock=lambda: NOW)
    made.write(["Nordlys sails on Monday.", "Maya has moved to Bergen."])
    return made


def while_waiting(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any], *, fails: bool = False) -> None:
    """Have something happen once, just before the disk is asked for CURRENT; or have the disk refuse as well."""
    real = append.sync
    done: list[int] = []

    def slow(descriptor: int) -> None:
        if not done:
            done.append(descriptor)
            act()
            if fails:
                raise OSError(errno.EIO, "Input/output error")
        real(descriptor)

    monkeypatch.setattr(append, "sync", slow)


def everywhere(library: Library) -> str:
    """CURRENT and all topics."""
    return "".join(path.read_text() for path in [library.root / "CURRENT.md", *library.root.glob("topics/**/*.md")])


def assert_sound(library: Library) -> None:
    assert not [str(finding.problem) for finding in library.check()]


def test_others_write_while_one_waits_for_the_disk(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-m", "infinimem", "--library", str(library.root), "write", "Somebody else's."]
    while_waiting(monkeypatch, lambda: subprocess.run(command, check=True, capture_output=True))
    assert library.write(WORDS) == [3]
    text = everywhere(library)
    assert text.count(f"> {WORDS}") == text.count("Somebody else's.") == 1
    assert library.write("The next.") == [5]
    assert_sound(library)


def test_a_key_is_kept_from_others_until_it_is_on_disk(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    free: list[bool] = []
    while_waiting(monkeypatch, lambda: free.append(is_free(library.root / ".infinimem" / "lock")))
    assert library.write(WORDS, key="k") == [3]
    assert free == [False]


def test_a_repeated_key_is_told_of_what_is_on_disk(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wrote it may have been killed while it waited for the disk."""
    library.write(WORDS, key="k")
    while_waiting(monkeypatch, lambda: None, fails=True)
    with pytest.raises(StorageFailed, match=r"CURRENT\.md may not be on disk"):
        library.write(WORDS, key="k")
    assert library.write(WORDS, key="k") == [3]
    assert everywhere(library).count(f"> {WORDS}") == 1


def test_a_flush_takes_along_what_waits_for_the_disk(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    while_waiting(monkeypatch, lambda: library.flush(planner="lexical"))
    assert library.write(WORDS) == [3]
    assert everywhere(library).count(f"> {WORDS}") == 1
    assert WORDS not in (library.root / "CURRENT.md").read_text(), "the flush has put it into a topic"
    assert_sound(library)


def test_what_is_forgotten_while_its_writer_waits_does_not_come_back(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    while_waiting(monkeypatch, lambda: library.forget(pattern="ferry to Kiel"))
    assert library.write(WORDS) == [3]
    assert "Kiel" not in everywhere(library)
    assert_sound(library)


def test_an_editor_saves_over_what_waits_for_the_disk(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    current = library.root / "CURRENT.md"
    old = current.read_text()

    def save() -> None:
        beside = current.with_suffix(".tmp")
        beside.write_text(old + "\nA line typed by hand.\n")
        beside.replace(current)

    while_waiting(monkeypatch, save)
    assert library.write([WORDS, "And another."]) == [3, 4]
    text = current.read_text()
    assert text.count(f"> {WORDS}") == text.count("And another.") == text.count("A line typed by hand.") == 1
    assert_sound(library)


def test_a_flush_and_its_undo_while_a_writer_waits(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    while_waiting(monkeypatch, lambda: (library.flush(planner="lexical"), library.undo()))
    assert library.write(WORDS) == [3]
    assert everywhere(library).count(f"> {WORDS}") == 1
    assert_sound(library)


@pytest.mark.parametrize("others", [0, 1, 3])
def test_a_disk_that_refuses_leaves_nothing_and_what_others_wrote(
    library: Library, monkeypatch: pytest.MonkeyPatch, others: int
) -> None:
    before = everywhere(library)
    theirs: list[int] = []

    def write_too() -> None:
        for number in range(others):
            theirs.extend(library.write(f"Number {number} of somebody else."))

    while_waiting(monkeypatch, write_too, fails=True)
    with pytest.raises(StorageFailed, match="Input/output error; nothing was stored"):
        library.write([WORDS, "And another."])
    text = everywhere(library)
    assert WORDS not in text
    assert "And another." not in text
    assert text.startswith(before)
    assert [text.count(f"<seq={seq},") for seq in theirs] == [1] * others
    assert_sound(library)  # nor does the log of writes know of it, which would have it recovered
    assert library.write(WORDS)[0] > max([2, *theirs])


@pytest.mark.parametrize("before", ["", "# CURRENT\n\nA line without an end", "One line\r\nand another"])
def test_what_others_wrote_stays_on_lines_of_its_own(
    library: Library, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    current = library.root / "CURRENT.md"
    current.write_bytes(before.encode())
    while_waiting(monkeypatch, lambda: library.write("Somebody else's."), fails=True)
    with pytest.raises(StorageFailed, match="nothing was stored"):
        library.write(WORDS)
    text = current.read_bytes().decode()
    assert WORDS not in text
    assert text.startswith(before or "# CURRENT\n\n- <seq=")
    assert "\n- <seq=4, observed=2026-06-01T12:00:00Z> Somebody else's." in text


def test_a_disk_that_refuses_after_a_flush_took_the_entry(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    while_waiting(monkeypatch, lambda: library.flush(planner="lexical"), fails=True)
    assert library.write(WORDS) == [3], "the flush has it on disk"
    assert everywhere(library).count(f"> {WORDS}") == 1
    assert_sound(library)


def test_an_interrupt_while_the_disk_is_waited_for_stores_nothing(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    while_waiting(monkeypatch, interrupt)
    with pytest.raises(KeyboardInterrupt):
        library.write(WORDS)
    assert WORDS not in everywhere(library)
    assert_sound(library)


def test_a_disk_that_cannot_even_be_put_right_says_what_may_stand_there(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    def read_only() -> None:
        monkeypatch.setattr(os, "ftruncate", refuse)

    while_waiting(monkeypatch, read_only, fails=True)
    with pytest.raises(StorageFailed, match=r"may stand in CURRENT\.md; look there"):
        library.write(WORDS)
    monkeypatch.undo()
    assert everywhere(library).count(f"> {WORDS}") == 1
    assert library.write("The next.") == [4]
    assert_sound(library)


def test_a_lock_that_cannot_be_had_any_more_does_not_hide_the_disk(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = library.root / ".infinimem" / "lock"

    def spoil() -> None:
        lock.unlink()
        lock.mkdir()

    while_waiting(monkeypatch, spoil, fails=True)
    with pytest.raises(StorageFailed, match=r"Input/output error; part of it may stand in CURRENT\.md"):
        library.write(WORDS)


def test_no_file_stays_open(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    def next_descriptor() -> int:
        descriptor = os.open(os.devnull, os.O_RDONLY)
        os.close(descriptor)
        return descriptor

    before = next_descriptor()
    library.write(WORDS)
    while_waiting(monkeypatch, lambda: None, fails=True)
    with pytest.raises(StorageFailed):
        library.write(WORDS)
    assert next_descriptor() == before
