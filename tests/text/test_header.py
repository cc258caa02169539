"""Front matter: only a key's own lines change, or nothing does."""

from __future__ import annotations

import difflib
import math

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from infinimem.errors import Unreadable
from infinimem.text.header import load_yaml, parse_header, render_scalar, set_key
from infinimem.text.lines import split_lines
from tests.text.hostile import NAMES, VALUES, Dice, careful_header, careful_headers, dice, endings, messy_headers

OURS = ("id", "summary", "token_count", "created_time", "update_log", "aux")
NEW_VALUES = (
    "7",
    "''",
    "a-b",
    "'12'",
    "{}",
    "[]",
    "{merged_from: [x, y], pinned: true}",
    "\n- {op: add, seq: 1-3}\n- {op: b}",
)

keys = st.sampled_from(OURS)
new_values = st.sampled_from(NEW_VALUES)


def file_of(inner: str, ending: str = "lf") -> tuple[str, ...]:
    """A whole file with `inner` for front matter."""
    text = f"---\n{inner}---\n# Title\n\n- <seq=1> x\n"
    return split_lines((text.replace("\n", "\r\n") if ending == "crlf" else text).encode("utf-8", "surrogateescape"))


def meaning(lines: tuple[str, ...]) -> dict[str, str]:
    """What a header says, in a form that compares (.nan is not .nan)."""
    return {key: repr(value) for key, value in parse_header("a.md", lines)[0].fields.items()}


def shared(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """How many lines two files begin with alike."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def changed_lines(before: tuple[str, ...], after: tuple[str, ...]) -> list[str]:
    """The lines that a diff shows."""
    return [line for line in difflib.ndiff(before, after) if line[:2] in ("+ ", "- ")]


@given(messy_headers | careful_headers, keys, new_values, endings)
def test_setting_a_key_changes_nothing_else_or_is_refused(inner: str, key: str, rendered: str, ending: str) -> None:
    before = file_of(inner, ending)
    try:
        after = set_key("a.md", before, key, rendered)
    except Unreadable:
        return
    said, says = meaning(before), meaning(after)
    assert says.pop(key) == meaning(file_of(f"{key}: {rendered}\n"))[key]
    said.pop(key, None)
    assert says == said and list(says) == list(said)
    above = shared(before, after)
    below = shared(before[above:][::-1], after[above:][::-1])
    own = set_key("a.md", file_of("", ending), key, rendered)[1:-4]
    assert "".join(after[above : len(after) - below]) in "".join(own), "only the key's own lines are new"
    assert not parse_header("a.md", after)[1]
    assert set_key("a.md", after, key, rendered) == after, "twice is once"


@given(dice, keys, new_values, endings)
@example(Dice(0), "aux", "{}", "lf")
def test_a_key_on_lines_of_its_own_can_always_be_set(die: Dice, key: str, rendered: str, ending: str) -> None:
    inner = careful_header(die)
    before = file_of(inner, ending)
    if parse_header("a.md", before)[1] or "&anchor" in inner:
        return
    after = set_key("a.md", before, key, rendered)
    kept = [line for line in before if line.strip() and line.lstrip()[0] == "#" and line[0] == "#"]
    assert [line for line in after if line in kept] == kept, "comments between keys stay"


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("name", NAMES)
def test_any_neighbour_survives_an_edit(name: str, value: str) -> None:
    colon = ":" if value.startswith("\n") or not value else ": "
    neighbour = "" if name in ("aux", "summary") else f"{name}{colon}{value}\n"
    inner = f"aux: {{}}\n{neighbour}summary: x\n"
    before = file_of(inner)
    if parse_header("a.md", before)[1]:
        return
    after = set_key("a.md", set_key("a.md", before, "aux", "{a: 1}"), "summary", "y")
    assert changed_lines(before, after) == ["- aux: {}\n", "+ aux: {a: 1}\n", "- summary: x\n", "+ summary: y\n"]


@given(dice)
def test_any_string_survives_as_one_line_of_yaml(die: Dice) -> None:
    for value in (die.phrase(), die.value(), die.text()):
        line = render_scalar(value)
        assert "\n" not in line
        lines = set_key("a.md", file_of("id: a\n"), "summary", line)
        assert parse_header("a.md", lines)[0].fields["summary"] == value


@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=20))
def test_any_text_at_all_survives_as_one_line_of_yaml(value: str) -> None:
    lines = set_key("a.md", file_of("id: a\n"), "summary", render_scalar(value))
    assert parse_header("a.md", lines)[0].fields["summary"] == value and len(lines) == len(file_of("id: a\n")) + 1


@given(messy_headers)
def test_a_broken_header_has_no_fields_one_problem_and_is_never_edited(inner: str) -> None:
    lines = file_of(inner)
    header, problems = parse_header("a.md", lines)
    if not problems:
        return
    assert not header.fields and len(problems) == 1 and problems[0].blocking
    with pytest.raises(Unreadable):
        set_key("a.md", lines, "id", "a")


@given(st.text(st.sampled_from("ab1:-#&*!|>'\"%@`{}[],?~= \n\t\x0c\u2028<\\."), max_size=25))
def test_reading_any_header_never_fails(inner: str) -> None:
    parse_header("a.md", file_of(inner + "\n"))


@pytest.mark.parametrize(
    "inner",
    ['a: !!int ""', 'a: !!float ""', "a: !!bool maybe", "a: !!timestamp x", "a: !!binary é", "a: =", "? [a]\n: b"],
)
def test_yaml_that_its_own_reader_stumbles_over_is_a_problem_not_a_crash(inner: str) -> None:
    _, problems = parse_header("a.md", file_of(f"id: a\n{inner}\n"))
    assert [problem.code for problem in problems] == ["front-matter"]


@pytest.mark.parametrize(
    ("inner", "line"),
    [
        ("id: a\nid: b\n", 3),
        ("id: a\nx: [1\ny: 2\n", 4),
        ("id: a\n\ttab: 1\n", 3),
        ("id: a\ntitle: one: two\n", 3),
        ("id: 'a\u2028 b'\nx: [1\ny: 2\n", 4),
        ("id: a\nx: \x0c\n", 3),
        ("id: 'a\rb'\nid: c\n", 3),
        ("- a\n- b\n", 2),
        ("just words\n", 2),
    ],
)  # fmt: skip
def test_a_problem_names_the_line_that_an_editor_shows(inner: str, line: int) -> None:
    _, problems = parse_header("a.md", file_of(inner))
    assert [problem.line for problem in problems] == [line]


def test_an_id_is_text_even_where_yaml_sees_something_else() -> None:
    for written in ("0123", "no", "2025_01", "2025-01-15", "1e3", "12:30", "~"):
        header, _ = parse_header(f"topics/{written}.md", file_of(f"id: {written}\n"))
        assert header.fields["id"] == written


def test_a_header_that_unfolds_without_end_is_a_problem() -> None:
    inner = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
    _, problems = parse_header("a.md", file_of(inner))
    assert [problem.code for problem in problems] == ["front-matter"]


def test_not_a_number_is_a_value_like_any_other() -> None:
    lines = set_key("a.md", file_of("weight: .nan\nid: a\n"), "id", "b")
    assert math.isnan(parse_header("a.md", lines)[0].fields["weight"])


def test_a_value_that_is_no_yaml_is_refused() -> None:
    with pytest.raises(Unreadable):
        set_key("a.md", file_of("id: a\n"), "summary", "[a")
    with pytest.raises(Unreadable):
        set_key("a.md", file_of("id: a\n"), "summary", "a\nid: b")


def test_yaml_of_the_fast_and_the_plain_reader_agree_on_the_values() -> None:
    for value in VALUES:
        colon = ":" if value.startswith("\n") or not value else ": "
        assert repr(load_yaml(f"a{colon}{value}\n")) == repr(yaml.load(f"a{colon}{value}\n", yaml.SafeLoader))
