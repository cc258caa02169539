"""A view that grew with its library shows what one made anew would, and no word more."""

from __future__ import annotations

import itertools
import multiprocessing
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infinimem import Library
from infinimem.access.mask import MASK
from infinimem.access.view import rules_in, view
from infinimem.config import Access
from infinimem.errors import StorageFailed
from tests.access.test_access import DENY, PRIVATE
from tests.conftest import NIGHTLY

DENIED = Access((("sensitivity", "private"),))
NAMES = "Zorblatt Quetzal Maya Ines Brandenburg 东京塔的 1234567".split()
SAYINGS = (
    "{a} has therapy with {b} on Tuesdays.",
    "{a}",
    "{a} and {b}\n```\ncode of {a}",
    "The boat is in the harbour.",
)


def files_in(place: Path) -> dict[str, list[str]]:
    found = [*place.glob("*.md"), *place.glob("topics/**/*.md"), *place.glob("evidence/*.md")]
    return {path.relative_to(place).as_posix(): path.read_text("utf-8").split("\n") for path in found}


saying = st.builds(lambda frame, a, b: frame.format(a=a, b=b), st.sampled_from(SAYINGS), *[st.sampled_from(NAMES)] * 2)
kinds = st.sampled_from(["private", "private", "public", "quote", "unsay", "flush", "edit"])


@settings(max_examples=400 if NIGHTLY else 15)
@given(steps=st.lists(st.tuples(kinds, saying), min_size=2, max_size=9))
def test_a_view_that_grew_is_the_one_made_anew_or_keeps_more_back(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str]]
) -> None:
    root = tmp_path_factory.mktemp("growth") / "memory"
    ticks = itertools.count()
    clock = lambda: datetime(2026, 5, 1, tzinfo=UTC) + timedelta(minutes=next(ticks))  # noqa: E731 - a clock of one line
    library = Library.open(root, create=True, clock=clock)
    (root / "infinimem.yaml").write_text(f"format: 1\n{DENY}\n")
    current = root / "CURRENT.md"
    for number, (kind, text) in enumerate(steps):
        match kind:
            case "private" | "public":
                library.write(text, meta=PRIVATE if kind == "private" else {})
            case "flush":
                library.flush(planner="lexical")
            case "quote":
                (root / "topics" / f"guest-{number}.md").write_text(f"# A guest\n\nOn {text}\n\nOf ferries.\n", "utf-8")
            case "edit":
                for path in sorted((root / "topics").rglob("*.md"))[:1]:
                    path.write_text(path.read_text("utf-8") + f"\nA remark on {text}\n", "utf-8")
            case "unsay" if current.exists():
                current.write_text("".join(current.read_text("utf-8").splitlines(True)[:-1]), "utf-8")
        anew = root.with_name("anew")
        shutil.copytree(root, anew, ignore=shutil.ignore_patterns("views", "lock", "flush.lock"))
        grown, whole = files_in(view(root, "mcp", DENIED)), files_in(view(anew, "mcp", DENIED))
        shutil.rmtree(anew)
        for path in grown.keys() & whole.keys():
            assert len(grown[path]) == len(whole[path])
            for line, other in zip(grown[path], whole[path], strict=True):
                assert line in (other, MASK) or not other.startswith("- <"), path
                assert line != MASK or other == MASK or not other.startswith("- <"), path


def held_back(root: Path, word: str) -> bool:
    """Whether no byte of the view says a word."""
    place = view(root, "mcp", DENIED)
    return not any(word in path.read_text("utf-8").casefold() for path in place.rglob("*.md"))


def library_at(folder: Path) -> Library:
    library = Library.open(folder / "memory", create=True)
    (library.root / "infinimem.yaml").write_text(f"format: 1\n{DENY}\n")
    return library


def test_a_word_is_kept_back_once_nothing_shown_says_it_any_more(tmp_path: Path) -> None:
    library = library_at(tmp_path)
    (library.root / "topics" / "guest.md").write_text("# A guest\n\nOn Zorblatt.\n\nOn ferries.\n")
    library.write("Zorblatt has therapy.", meta=PRIVATE)
    library.write("Zorblatt sings.")
    assert not held_back(library.root, "on zorblatt")
    current = library.root / "CURRENT.md"
    current.write_text("".join(current.read_text().splitlines(True)[:-1]))
    assert held_back(library.root, "zorblatt")
    assert not held_back(library.root, "ferries")


def test_what_is_added_to_a_long_buffer_is_shown_below_it(tmp_path: Path) -> None:
    library = library_at(tmp_path)
    whole: list[str] = []
    for number in range(12):
        private = number % 3 == 1
        library.write(f"Fact {number} of Maya,\n\n- in lines\n  of its own.", meta=PRIVATE if private else {})
        if number == 7:
            library.write("A fence\n```\nleft open")
        lines = (view(library.root, "mcp", DENIED) / "CURRENT.md").read_text().split("\n")
        owner = (library.root / "CURRENT.md").read_text().split("\n")
        assert len(lines) == len(owner)
        assert lines[: max(0, len(whole) - 1)] == whole[:-1]
        assert all(line in (other, MASK) for line, other in zip(lines, owner, strict=True))
        whole = lines
    text = "\n".join(whole)
    assert [number for number in range(12) if f"Fact {number} of" in text] == [0, 2, 3, 5, 6, 8, 9, 11]
    assert "sensitivity" not in text


def test_lines_below_a_fence_that_somebody_opened_are_no_entries(tmp_path: Path) -> None:
    library = library_at(tmp_path)
    library.write("Maya sings.")
    assert not held_back(library.root, "maya")
    current = library.root / "CURRENT.md"
    current.write_text(current.read_text() + "\n```\nmine\n")
    assert not held_back(library.root, "mine")
    library.write("Zorblatt has therapy.", meta=PRIVATE)
    assert held_back(library.root, "zorblatt")


def test_a_ledger_that_is_gone_or_of_another_view_is_made_anew(tmp_path: Path) -> None:
    library = library_at(tmp_path)
    library.write("Zorblatt has therapy.", meta=PRIVATE)
    assert held_back(library.root, "zorblatt")
    ledger = library.root / ".infinimem" / "views" / "mcp.words"
    kept = ledger.read_bytes()
    ledger.unlink()
    place = view(library.root, "mcp", DENIED)
    assert rules_in(place, DENIED)[0].hidden == {1}
    ledger.write_bytes(kept)
    with pytest.raises(StorageFailed, match="run the command again"):
        rules_in(place, DENIED)
    assert rules_in(view(library.root, "mcp", DENIED), DENIED)[0].hidden == {1}


def look(root: Path, seen: Any) -> None:
    for _ in range(15):
        rules, _ = rules_in(view(root, "mcp", DENIED), DENIED)
        seen.put(sorted(rules.hidden))


def test_whoever_asks_what_is_withheld_while_a_view_is_made_is_not_told_nothing(tmp_path: Path) -> None:
    library = library_at(tmp_path)
    library.write(["Zorblatt has therapy."], meta=PRIVATE)
    view(library.root, "mcp", DENIED)
    seen: Any = multiprocessing.Queue()
    readers = [multiprocessing.Process(target=look, args=(library.root, seen)) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(20):
        library.write(f"Quetzal {number}.", meta=PRIVATE)
    found = [seen.get() for _ in range(45)]
    for reader in readers:
        reader.join()
    assert all(1 in hidden for hidden in found)
