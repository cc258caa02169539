"""A CURRENT that five years of chats came into is flushed portion by portion, and read no further than needed."""

from __future__ import annotations

import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infinimem import Library
from infinimem.consolidate import commit, flush
from infinimem.text.document import parse, parse_leading, render
from tests.faults.library_state import assert_conserved, visible_files
from tests.text.hostile import files

WRITTEN = st.lists(
    st.sampled_from([
        b"- <seq=%d> one line\n", b"- <seq=%d, source=Ann> two\n  lines\n", b"- <seq=%d> a blank one\n  \n  inside\n",
        b"- <seq=%d> ```\n  code\n  ```\n", b"\n", b"```\n", "- <seq=%d> 会議\r\n".encode(), b"prose\n", b"# Current\n",
        b"<<<<<<< HEAD\n", b"- <seq=%d> caf\xe9\n", b"  ```\n", b" ```\n", b"- typed\n", b"- <seq=%d,\n", b"> quoted\n",
    ]),
    max_size=14,
).map(
    lambda pieces: b"".join(piece % at if b"%d" in piece else piece for at, piece in enumerate(pieces, 1))
)  # fmt: skip


@given(content=st.one_of(WRITTEN, files), most=st.integers(0, 6))
def test_the_beginning_of_a_file_says_what_it_says_in_the_whole(content: bytes, most: int) -> None:
    whole = parse("CURRENT.md", content)
    lead, rest = parse_leading("CURRENT.md", content, most)
    assert render(lead) + rest == content
    assert lead.entries == whole.entries[: len(lead.entries)]
    assert len(lead.entries) >= min(most, len(whole.entries)) or not rest
    assert lead.problems == whole.problems
    assert lead.header == whole.header


def chats(library: Library, number: int) -> None:
    """Talk of some days, notes, an expired one, one said twice, and corrections across portions."""
    days = [f"2026-03-{day:02}" for day in range(1, 1 + number // 10)]
    subjects = ("boat", "choir", "owl", "tram", "oak")
    for at, day in enumerate(days):
        what = subjects[at % len(subjects)]
        library.write([
            {"text": f"{'Where is' if turn % 2 == 0 else 'There lies'} the {what} {at}?\nTurn {turn}", "time": day,
             "source": "user" if turn % 2 == 0 else "AI"}
            for turn in range(8)
        ])  # fmt: skip
        library.write([f"the {what} has berth {at}", f"the {what} is ready"])
    library.write({"text": "the boat is sold", "supersedes": 9})
    library.write({"text": "gone by now", "expires": "2026-01-01"})


def clock() -> datetime:
    return datetime(2026, 5, 1, 9, tzinfo=UTC)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes as if a few dozen entries were many."""
    monkeypatch.setattr(flush, "PORTION", 16)
    monkeypatch.setattr(flush, "LARGE", 1)
    monkeypatch.setattr(commit, "BEGINNING", 32)


@pytest.mark.usefixtures("small")
def test_everything_is_sorted_or_retired_and_nothing_is_lost(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True, clock=clock)
    chats(library, 120)
    report = library.flush()
    assert (report.left, report.more, report.notes) == ((), 0, ())
    assert sorted(report.seqs) == list(range(1, 123))
    assert library.trace(9).by == 121
    assert library.trace(122).fate == "expired"
    assert_conserved(library.root, set(range(1, 123)))
    assert not library.check()
    assert library.search("boat berth", 3)


@pytest.mark.usefixtures("small")
def test_reading_the_beginning_or_all_of_it_comes_to_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library.open(tmp_path / "memory", create=True, clock=clock)
    chats(library, 120)
    shutil.copytree(library.root, tmp_path / "other")
    library.flush()
    monkeypatch.setattr(commit, "BEGINNING", 10**6)
    monkeypatch.setattr(flush, "read_leading", lambda root, path, most: flush.read_file(root, path))
    Library.open(tmp_path / "other", clock=clock).flush()
    assert visible_files(library.root) == visible_files(tmp_path / "other")


@pytest.mark.usefixtures("small")
def test_what_is_written_and_typed_meanwhile_stays_for_the_next(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True, clock=clock)
    chats(library, 120)
    other = Library.open(tmp_path / "memory", clock=clock)
    current = library.root / "CURRENT.md"
    done = []

    def meanwhile(stage: str, at: int, total: int) -> None:
        if stage != "commit" or done:
            return
        done.append(at)
        other.write("written while it was thinking")
        lines = current.read_text("utf-8").splitlines(keepends=True)
        at = next(number for number, line in enumerate(lines) if line.startswith("- <seq=90,"))
        lines[at] = lines[at].replace("is ready", "is quite ready").replace("lies", "stands")
        lines.insert(at, "typed in the middle of it\n\n")
        current.write_text("".join(lines), "utf-8")

    report = library.flush(progress=meanwhile)
    assert done
    assert 123 in {*report.seqs, *report.left}
    assert_conserved(library.root, set(range(1, 124)))
    assert "typed in the middle of it" in current.read_text("utf-8")
    words = "".join(path.read_text("utf-8") for path in (library.root / "topics").rglob("*.md"))
    assert re.search("quite ready|stands", words)
    assert not [finding for finding in library.check() if finding.problem.blocking]


@pytest.mark.usefixtures("small")
def test_what_cannot_be_placed_is_named_and_does_not_stop_the_rest(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True, clock=clock)
    chats(library, 60)
    current = library.root / "CURRENT.md"
    first = "".join(f"- <seq=3> another number three {at}\n" for at in range(40))
    current.write_text(current.read_text("utf-8").replace("- <seq=4,", first + "- <seq=4,", 1), "utf-8")
    report = library.flush()
    assert len([note for note in report.notes if "stands there twice" in note or "other words" in note]) >= 40
    assert current.read_text("utf-8").count("another number three") == 40
    assert set(range(1, 63)) <= {*report.seqs}
    assert report.exit_code == 5
