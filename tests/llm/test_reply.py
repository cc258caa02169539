"""What is read of a model's reply: as much as it says, never more, and soon, whatever it is."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infinimem.llm.reply import LONGEST_REPLY, MOST_SEQS, items_of, number_of, read_json, seqs_in, text_of

GOOD = {"blocks": [{"topic": "Maya", "seqs": [1, 2]}, {"topic": "船", "seqs": [3]}], "joins": []}
WHOLE = json.dumps(GOOD, ensure_ascii=False)


@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        json.dumps(GOOD, indent=2),
        f"\ufeff{WHOLE}\n",
        f"```json\n{WHOLE}\n```",
        f"```\r\n{WHOLE}\r\n```\r\n",
        f"Here you are:\n\n```json\n{WHOLE}\n```\nAsk me if anything is unclear.",
        f"Sure! {WHOLE} I hope that helps.",
        f"As asked [1] for {{these}} entries: {WHOLE}",
        f"<think>Is it {{'a': 1}}? Or [2]?</think>\n{WHOLE}",
        f"<thinking>\nhm\n</thinking>{WHOLE}",
        f'first I thought of {{"blocks": []}}\n</think>\n\n{WHOLE}',
        f"{WHOLE}\n{WHOLE[:40]}",
        f"{WHOLE}\n\nUser: and now?\nAssistant: {{}}",
        WHOLE.replace("]}", "],}"),
        WHOLE.replace('"', "'"),
        WHOLE[:-1],
        f"Sure: {WHOLE[:-2]}",
        f"```json\n{WHOLE[:-1]}",
        json.dumps(WHOLE, ensure_ascii=False),
    ],
)
def test_the_object_is_found_in_whatever_stands_around_it(text: str) -> None:
    assert read_json(text) == GOOD


@pytest.mark.parametrize(
    "text", ["", " ", "I cannot do that.", "[Rest of the content remains unchanged]", "12", "null", '"words"', "<html>"]
)
def test_prose_is_no_reply(text: str) -> None:
    assert not read_json(text)


def test_what_looks_like_a_thought_inside_a_text_is_text() -> None:
    value = {"text": "The tag <think> opens, </think> closes.", "seqs": [1]}
    assert read_json(json.dumps(value)) == value


def test_a_list_of_objects_is_one_whether_or_not_it_is_cut() -> None:
    assert read_json('The rows: [{"seq": 1}, {"seq": 2}].') == [{"seq": 1}, {"seq": 2}]
    assert items_of(read_json('[{"seq": 1}, {"seq": 2}, {"se'), "rows")[:2] == [{"seq": 1}, {"seq": 2}]


def test_a_number_that_was_cut_is_no_number() -> None:
    whole = '{"seqs": [12, 13, 145'
    assert read_json(whole) == {"seqs": [12, 13]}
    assert "of" not in read_json('{"seq": 3, "of": 1') or not seqs_in(read_json('{"seq": 3, "of": 1')["of"])


@given(st.integers(0, len(WHOLE)))
def test_a_reply_cut_anywhere_gives_no_seq_that_the_whole_has_not(at: int) -> None:
    said = [seqs_in(block.get("seqs")) for block in items_of(read_json(WHOLE[:at]), "blocks")]
    for found, whole in zip(said, [[1, 2], [3]], strict=False):
        assert found == whole[: len(found)]


HOSTILE = {
    "10 MB of brackets": "[" * 10_000_000,
    "10 MB of objects": '{"a":' * 2_000_000,
    "brackets that do not match": "".join(random.Random(1).choices("{]", k=60_000)),
    "a fence that does not end": "```\nx" + "\n" * 390_000 + "y",
    "fences": "```\n" * 100_000 + "x",
    "spaces after a fence": "```" + " " * 390_000 + "x",
    "thoughts": "<think>" * 50_000 + "{",
    "braces and spaces": ("{" + " " * 500) * 700,
    "quotes": '{"a": "' + '\\"' * 30_000,
    "odd quotes": '{"a": ' + '"' * 59_000,
    "parentheses": '{"a": ' + "(1" * 29_000,
    "talk": '{"a": "' + 'word": "' * 7_000,
    "digits": '{"a": ' + "9" * 100_000,
    "depth": ("[" * 150 + "]" * 150) * 150 + "x",
    "nul and surrogates": '{"a": "\0\ud800' * 3_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_reply_takes_long(name: str) -> None:
    started = time.thread_time()
    read_json(HOSTILE[name])
    assert time.thread_time() - started < 2.5


PIECES = st.sampled_from(
    ["{", "}", "[", "]", '"', "'", ",", ":", "\\", "\n", "```", "null", "1", "-", "“", "<think>", "</think>", " ", "(",
     "\\u", "é", "0.9", "//", "/*", "#", "\0", '"seqs"', '"blocks":[{', "\ud800"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=80).map("".join))
def test_any_reply_at_all_can_be_read(text: str) -> None:
    value = read_json(text)
    assert value is None or isinstance(value, dict | list)
    for row in items_of(value, "blocks"):
        seqs_in(row.get("seqs"))
        number_of(row.get("conf"), 0.0)
        text_of(row.get("topic"))


def test_a_reply_is_looked_at_up_to_a_length() -> None:
    assert read_json(" " * LONGEST_REPLY + WHOLE) is None


@pytest.mark.parametrize(
    ("value", "seqs"),
    [
        (12, [12]),
        (12.0, [12]),
        ("12", [12]),
        ("12-15+18", [12, 13, 14, 15, 18]),
        ("12 - 14", [12, 13, 14]),
        ("12–14", [12, 13, 14]),
        ("12, 13", [12, 13]),
        ("[12]", [12]),
        ("#12", [12]),
        ("seq 12", [12]),
        ([12, "13-14", "#15"], [12, 13, 14, 15]),
        ([1, None, "x", {}, [2], True, 3], [1, 3]),
        ("1-99999999", []),
        ("15-12", []),
        ("-3", []),
        (0, []),
        (1.5, []),
        (float("nan"), []),
        (float("inf"), []),
        (10**30, []),
        (True, []),
        (None, []),
        ({"seq": 3}, []),
    ],
)
def test_seqs_are_read_however_they_are_spelt(value: Any, seqs: list[int]) -> None:
    assert seqs_in(value) == seqs


def test_ranges_are_not_unfolded_for_ever() -> None:
    assert len(seqs_in(["1-9999"] * 20_000)) == MOST_SEQS
    assert len(seqs_in("1-9999," * 2_000)) == MOST_SEQS


@pytest.mark.parametrize(
    ("value", "number"),
    [(0.95, 0.95), ("0.95", 0.95), ("95%", 0.95), ("95 %", 0.95), (1, 1.0), (95, -1), ("high", -1), (True, -1),
     (None, -1), (float("nan"), -1), ("nan", -1), ([0.9], -1)],
)  # fmt: skip
def test_confidence_is_read_however_it_is_spelt_and_else_the_default(value: Any, number: float) -> None:
    assert number_of(value, -1) == number
