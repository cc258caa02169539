"""Two laws for every format, on generated files: nothing is silently left out, and twice is once."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infinimem import Library
from infinimem.exchange.formats import FORMATS
from infinimem.text.document import parse
from tests.conftest import NIGHTLY
from tests.exchange.shapes import SHAPES, Made, earlier

few = settings() if NIGHTLY else settings(max_examples=25)


def written(library: Library) -> list[str]:
    """The words of every entry in CURRENT or a topic."""
    paths = [library.root / "CURRENT.md", *sorted((library.root / "topics").rglob("*.md"))]
    return [entry.text for path in paths if path.exists() for entry in parse(path.name, path.read_bytes()).entries]


def test_every_format_has_a_shape() -> None:
    assert {one.name for one in FORMATS if not one.is_library} == set(SHAPES)


@pytest.mark.parametrize("name", SHAPES)
@few
@given(st.data())
def test_entries_and_listed_problems_are_the_messages_of_the_file(name: str, data: st.DataObject) -> None:
    file, shape = SHAPES[name]
    made: Made = data.draw(shape)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / file
        path.write_bytes(made.content)
        library = Library.open(Path(scratch) / "memory", create=True)
        counted = library.import_(path, form=name, branches=True, dry_run=True)
        assert written(library) == []
        done = library.import_(path, form=name, branches=True)
        assert done.messages == made.messages, (done, made.content)
        assert Counter(written(library)) == Counter(dict.fromkeys(made.said, 1) if name == "mcp-memory" else made.said)
        assert (counted.added, counted.known, counted.skipped) == (done.added, done.known, done.skipped)


@pytest.mark.parametrize("name", SHAPES)
@few
@given(st.data())
def test_a_second_import_adds_nothing_and_more_of_the_same_only_what_is_new(name: str, data: st.DataObject) -> None:
    file, shape = SHAPES[name]
    made: Made = data.draw(shape)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / file
        path.write_bytes(made.content)
        library = Library.open(Path(scratch) / "memory", create=True)
        first = library.import_(path, form=name)
        before = written(library)
        again = library.import_(path, form=name)
        assert (again.added, again.known) == (0, first.added + first.known)
        assert again.messages == made.messages
        assert again.problems == first.problems
        assert written(library) == before
        more = library.import_(path, form=name, branches=True)  # what the first left out comes in now, and only that
        assert more.added == first.skipped.get("other branch", 0)


@pytest.mark.parametrize("name", SHAPES)
@few
@given(st.data())
def test_a_file_that_has_grown_adds_only_what_is_new(name: str, data: st.DataObject) -> None:
    file, shape = SHAPES[name]
    made: Made = data.draw(shape)
    before = earlier(name, made.content, data.draw(st.integers(0, 9)))
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / file
        path.write_bytes(before)
        library = Library.open(Path(scratch) / "memory", create=True)
        first = library.import_(path, form=name, branches=True)
        there = Counter(written(library))
        assert there <= Counter(made.said)
        path.write_bytes(made.content)
        done = library.import_(path, form=name, branches=True)
        everything = Counter(dict.fromkeys(made.said, 1) if name == "mcp-memory" else made.said)
        assert Counter(written(library)) == everything, (before, made.content)
        assert (done.messages, done.added) == (made.messages, sum(everything.values()) - first.added)
        assert library.import_(path, form=name, branches=True).added == 0
