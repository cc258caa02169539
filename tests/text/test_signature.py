"""Signatures and seqs: what is rendered is read back, what is no signature is only text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infinimem.model import Signature
from infinimem.text.document import parse
from infinimem.text.signature import (
    WIDEST_RANGE,
    parse_fields,
    parse_seqs,
    parse_signature,
    render_fields,
    render_seqs,
    render_signature,
    with_field,
    without_field,
)
from tests.text.hostile import Dice, dice, phrases, signatures, texts


@given(signatures, texts)
def test_a_rendered_signature_is_read_back_whatever_follows_it(signature: Signature, text: str) -> None:
    rendered = render_signature(signature)
    assert "\n" not in rendered
    assert parse_signature(f"{rendered} {text}") == (signature, len(rendered))


@given(dice)
def test_any_value_survives_in_a_field(die: Dice) -> None:
    fields = (("event", die.value()), ("seq", die.value()), ("why", die.value()))
    assert parse_fields(render_fields(fields)) == (fields, len(render_fields(fields)))


@given(st.text(max_size=30))
def test_any_text_at_all_survives_as_a_value(value: str) -> None:
    signature = Signature((1,), (("label", value),))
    assert parse_signature(render_signature(signature)) == (signature, len(render_signature(signature)))


@given(st.lists(st.tuples(st.integers(1, 10**18 - 100), st.integers(0, 90)), min_size=1, max_size=50))
def test_seqs_in_any_order_are_read_back(runs: list[tuple[int, int]]) -> None:
    seqs = tuple(dict.fromkeys(seq for first, more in runs for seq in range(first, first + more + 1)))
    assert parse_seqs(render_seqs(seqs)) == seqs


@pytest.mark.parametrize("count", [1, 2, WIDEST_RANGE - 1, WIDEST_RANGE])
def test_a_range_of_ten_thousand_is_one(count: int) -> None:
    seqs = tuple(range(12, 12 + count))
    assert parse_seqs(render_seqs(seqs)) == seqs


@pytest.mark.parametrize(
    "text",
    [
        "", "0", "a", "1-", "-1", "5-3", "1--2", "1+", "1++2", "1,2", "1 2", " 1", "1-10002", "1-999999999999999999",
        "1+1", "1-3+2", "1" * 19, "１２", "٣", "1²", "1e3", "0x1f", "+1", "1_0", "1\n",
    ],
)  # fmt: skip
def test_what_is_no_seq_is_none(text: str) -> None:
    assert parse_seqs(text) == ()


@given(phrases)
def test_reading_any_text_as_a_signature_never_fails(text: str) -> None:
    for frame in ("{}", "<{}>", "<seq={}>", "<seq=1, {}>", '<seq=1, a="{}">', "<seq=1, a={}>"):
        candidate = frame.replace("{}", text)
        found = parse_signature(candidate)
        if found is not None:
            assert parse_signature(render_signature(found[0])) == (found[0], len(render_signature(found[0])))


@given(signatures, dice)
def test_setting_a_field_changes_that_field_only(signature: Signature, die: Dice) -> None:
    key, value = die.key(), die.value()
    after = with_field(signature, key, value)
    assert after.get(key) == value and after.seqs == signature.seqs
    assert without_field(after, key) == without_field(signature, key)
    assert [name for name, _ in after.fields][: len(signature.fields)] == [name for name, _ in signature.fields]


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("- <seq=12,time=empty,source=AI> x", (("time", "empty"), ("source", "AI"))),
        ("- <source=user, seq=12> x", (("source", "user"),)),
        ('- <seq=12, label="a, b > c"> x', (("label", "a, b > c"),)),
        ('- <seq=12, label="say \\"hi\\"\\nthere"> x', (("label", 'say "hi"\nthere'),)),
        ("- <seq=12, note=> x", (("note", ""),)),
        ("- <seq=12, a=b=c> x", (("a", "b=c"),)),
        ("- <seq=12, a=1, a=2> x", (("a", "1"), ("a", "2"))),
        ("- <seq=12,  a=b,   c=d> x", (("a", "b"), ("c", "d"))),
        ("* <seq=12> x", ()),
        ("+ <seq=12> x", ()),
        ("- <seq=12>x", ()),
    ],
)  # fmt: skip
def test_signatures_that_people_and_programs_write(line: str, fields: tuple[tuple[str, str], ...]) -> None:
    (entry,) = parse("CURRENT.md", f"{line}\n".encode()).entries
    assert (entry.seqs, entry.signature.fields, entry.text) == ((12,), fields, "x")


@pytest.mark.parametrize(
    "line",
    [
        "- <seq=1-20000> x", "- <seq=0> x", "- <seq=> x", "- <seq=4-2> x", "- <seq =1> x", "- < seq=1> x",
        "- <seq=1 > x", "- <seq=1", "-<seq=1> x", "- seq=1 x", "1. <seq=1> x", "> - <seq=1> x", "- <time=2026> x",
        "- <seq=1, seq=2> x", "- <seq=1,,a=b> x", '- <seq=1, a="b> x', "- <seq=1; a=b> x",
        "- <event=retire, seq=1> x", "- text <seq=1> x", "- <seq=１> x",
    ],
)  # fmt: skip
def test_what_is_no_entry_is_prose(line: str) -> None:
    document = parse("topics/a.md", f"{line}\n".encode())
    assert document.entries == () and document.problems == ()
