"""While a writer waits for the disk others go on: what they do to its entries, and what a disk that refuses does."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from infinimem import Library
from infinimem.errors import StorageFailed
from infinimem.store import append
from infinimem.store.buffer import hold, reserve_seqs
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


def test_an_editor_saves_in_place_over_what_waits_for_the_disk(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    current = library.root / "CURRENT.md"
    old = current.read_text()
    while_waiting(monkeypatch, lambda: current.write_text(old + "\nA line typed by hand.\n" * 9))
    assert library.write([WORDS, "And another."]) == [3, 4]
    text = current.read_text()
    assert text.count(f"> {WORDS}") == text.count("And another.") == 1
    assert text.count("A line typed by hand.") == 9


def test_an_editor_that_is_in_the_middle_of_saving_is_waited_for(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    current = library.root / "CURRENT.md"

    def save() -> None:
        text = current.read_text()
        current.write_text("")
        threading.Timer(0.05, current.write_text, [text]).start()

    while_waiting(monkeypatch, save)
    assert library.write(WORDS) == [3]
    assert current.read_text().count(WORDS) == 1
    assert_sound(library)


def test_a_disk_that_refuses_after_an_editor_saved_over_it_leaves_nothing_to_recover(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    current = library.root / "CURRENT.md"
    old = current.read_text()
    saved: list[int] = []

    def refuse(descriptor: int) -> None:
        if not saved:
            saved.append(descriptor)
            beside = current.with_suffix(".tmp")
            beside.write_text(old)
            beside.replace(current)
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(append, "sync", refuse)
    with pytest.raises(StorageFailed, match="nothing was stored"):
        library.write(WORDS)
    monkeypatch.undo()
    assert WORDS not in everywhere(library)
    assert_sound(library)


@pytest.mark.parametrize("typed", ["ferry", "\n"])
def test_a_hand_that_edits_the_entry_in_that_moment_does_not_double_it(
    library: Library, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    current = library.root / "CURRENT.md"
    edited = {"ferry": "steamer", "\n": "\r\n"}[typed]

    def edit() -> None:
        current.write_bytes(current.read_bytes().decode().replace(typed, edited).encode())

    while_waiting(monkeypatch, edit)
    assert library.write(WORDS) == [3]
    assert everywhere(library).count("to Kiel") == 1
    assert_sound(library)


def test_a_seq_that_another_entry_only_quotes_does_not_pass_for_the_one_that_an_editor_dropped(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    current = library.root / "CURRENT.md"

    def save() -> None:
        library.write("What I mean:\n- <seq=3> is not here")
        beside = current.with_suffix(".tmp")
        beside.write_text(current.read_text().replace(f"- <seq=3, observed=2026-06-01T12:00:00Z> {WORDS}\n", ""))
        beside.replace(current)

    while_waiting(monkeypatch, save)
    assert library.write(WORDS) == [3]
    assert everywhere(library).count(f"> {WORDS}") == 1
    assert_sound(library)


@pytest.mark.parametrize("flushed", [False, True])
def test_a_seq_that_somebody_else_got_meanwhile_is_not_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, flushed: bool
) -> None:
    library = Library.open(tmp_path / "memory", create=True)
    library.write(["Nordlys sails on Monday.", "Maya has moved to Bergen."])
    current = library.root / "CURRENT.md"
    old = current.read_text()

    def begin_anew() -> None:
        shutil.rmtree(library.root / ".infinimem")
        beside = current.with_suffix(".tmp")
        beside.write_text(old)
        beside.replace(current)
        assert library.write("Somebody else's.") == [3]
        if flushed:
            library.flush(planner="lexical")

    while_waiting(monkeypatch, begin_anew)
    assert library.write(WORDS) == [4]
    text = everywhere(library)
    assert text.count(f"> {WORDS}") == text.count("Somebody else's.") == 1
    assert_sound(library)


def test_a_library_that_became_a_file_is_no_traceback(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    def replace() -> None:
        library.root.rename(library.root.with_name("elsewhere"))
        library.root.write_text("")

    while_waiting(monkeypatch, replace)
    with pytest.raises(StorageFailed, match="Not a directory"):
        library.write(WORDS)


def test_seqs_that_are_kept_for_a_division_stay_so_after_a_disk_that_refuses(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hold(library.root) as note:
        reserve_seqs(library.root, note, 8)
    while_waiting(monkeypatch, lambda: None, fails=True)
    with pytest.raises(StorageFailed, match="nothing was stored"):
        library.write(WORDS)
    assert library.write(WORDS)[0] >= 8


def test_seqs_that_are_kept_for_a_division_stay_so_after_a_kill_in_mid_append(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hold(library.root) as note:
        reserve_seqs(library.root, note, 8)
    child = os.fork()
    if not child:

        def die(*_: Any) -> None:
            os._exit(1)

        monkeypatch.setattr(append, "write_all", die)
        library.write(WORDS)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert library.write(WORDS) == [8]


def test_an_entry_that_was_edited_before_the_disk_refused_is_not_said_to_be_gone(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    current = library.root / "CURRENT.md"
    while_waiting(monkeypatch, lambda: current.write_text(current.read_text().replace("ferry", "boat")), fails=True)
    with pytest.raises(StorageFailed, match=r"may stand in CURRENT\.md; look there"):
        library.write(WORDS)
    assert "The boat to Kiel" in current.read_text()


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
