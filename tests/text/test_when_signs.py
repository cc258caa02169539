"""Patterns for words of time are looked for only where one of their signs stands: no phrase may slip through."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import product
from re import _parser as parser  # type: ignore[attr-defined]  # the standard library's own reading of a pattern
from typing import Any

import pytest

from infinimem.text import when
from infinimem.text.when import Phrases, dates_shown


def phrases() -> Iterator[Phrases]:
    """Every pattern of the module's tables."""

    def inside(value: Any) -> Iterator[Phrases]:
        if isinstance(value, Phrases):
            yield value
        elif isinstance(value, tuple):
            for part in value:
                yield from inside(part)

    for value in vars(when).values():
        yield from inside(value)


def spelled(pieces: Iterable[Any]) -> Iterator[str]:
    """Every text that a pattern's pieces match, repeats once or not at all, any digit as 7."""
    parts = [list(spellings(kind, value)) for kind, value in pieces]
    yield from map("".join, product(*parts))


def spellings(kind: Any, value: Any) -> Iterator[str]:
    name = str(kind)
    if name == "LITERAL":
        yield chr(value)
    elif name == "IN":
        yield from (chr(code) if str(one) == "LITERAL" else "7" for one, code in value)
    elif name == "BRANCH":
        for branch in value[1]:
            yield from spelled(branch)
    elif name == "SUBPATTERN":
        yield from spelled(value[-1])
    elif name == "MAX_REPEAT":
        low, _, repeated = value
        if low == 0:
            yield ""
        yield from spelled(repeated)
    elif name == "AT":  # a word boundary
        yield ""
    else:
        raise NotImplementedError(name)


@pytest.mark.parametrize("one", list(dict.fromkeys(phrases())), ids=lambda one: one.source[:30])
def test_whatever_a_pattern_matches_holds_its_signs(one: Phrases) -> None:
    found = 0
    for text in spelled(parser.parse(one.source)):
        if re.compile(one.source).search(text):
            found += 1
            assert one.may_stand_in(text), text
            match = one.search(text)
            assert match is not None and [again[0] for again in one.finditer(text)][:1] == [match[0]]
    assert found


def test_a_pattern_is_compiled_when_it_is_first_needed() -> None:
    one = Phrases(r"\bplum\b", "plum")
    assert one.search("a pear") is None and list(one.finditer("a pear")) == [] and one._compiled is None
    assert one.search("a plum") and one._compiled is not None


def test_all_tables_are_met() -> None:
    assert len(set(phrases())) >= 40
    assert dates_shown("we met last friday, two days ago", "2026-05-06") == [
        ("last friday", "2026-05-01"),
        ("two days ago", "2026-05-04"),
    ]
