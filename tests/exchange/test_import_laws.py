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
from tests.exchange.shapes import SHAPES, Made

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
