"""Reading JSON through a window gives what reading it whole gives, wherever it ends, and goes on after a fault."""

from __future__ import annotations

import io
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infinimem.exchange import json_stream
from infinimem.exchange.json_stream import Broken, JsonStream

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(autouse=True)
def small_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "WINDOW", 7)


def walked(stream: JsonStream) -> Any:
    """A value, walked through down to its leaves."""
    if stream.peek() == "[":
        return [walked(stream) for _ in stream.elements()]
    if stream.peek() == "{":
        return {name: walked(stream) for name in stream.members()}
    return stream.value()


@given(VALUES, st.sampled_from([None, 1]), st.booleans(), st.booleans())
def test_walking_and_decoding_agree_with_the_standard_library(
    value: Any, indent: int | None, is_ascii: bool, bom: bool
) -> None:
    content = json.dumps(value, indent=indent, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    file = (b"\xef\xbb\xbf" if bom else b"") + content
    stream = JsonStream(io.BytesIO(file))
    assert stream.value() == value
    assert stream.peek() == ""
    assert stream.byte == len(file)
    assert walked(JsonStream(io.BytesIO(file))) == value


@given(VALUES, st.integers(0, 200))
def test_what_is_cut_off_is_broken_and_never_something_else(value: Any, at: int) -> None:
    content = json.dumps([value, "the end"]).encode()
    at %= len(content)
    with pytest.raises(Broken):
        walked(JsonStream(io.BytesIO(content[:at])))


def test_nan_and_numbers_at_the_edge_of_the_window_are_whole() -> None:
    content = b"[123456789012345, NaN, -Infinity, 1.25e-7, true, null, false]"
    numbers = walked(JsonStream(io.BytesIO(content)))
    assert math.isnan(numbers.pop(1))
    assert numbers == [123456789012345, -math.inf, 1.25e-7, True, None, False]


def test_after_a_broken_element_the_next_one_like_the_first_is_read() -> None:
    content = (
        b'[{"id": 1, "t": "a"}, {"id": 2, "t": "un"finished"}, {"id": "3", "t": {"id": 4}}, '
        b'{"id": 5, "t": "b"} {"id": 6, "t": ""}]'
    )
    stream = JsonStream(io.BytesIO(content))
    faults: list[tuple[int, int]] = []
    found = []
    for _ in stream.elements(lambda number, error: faults.append((number, error.byte))):
        try:
            found.append(stream.value()["id"])
        except Broken as error:
            stream.fail(error)
    assert found == [1, "3", 5, 6]
    assert [number for number, _ in faults] == [1, 3]
    assert content[faults[0][1] :].startswith(b"finished")


def test_a_fault_early_in_a_large_file_does_not_read_the_rest_into_memory() -> None:
    class Endless(io.RawIOBase):
        """A file of which nobody can read the end."""

        taken = 0

        def readable(self) -> bool:
            return True

        def read(self, size: int = -1) -> bytes:
            self.taken += size
            assert self.taken < 10_000, "read on and on"
            return b'[{"a": oops}, ' if self.taken == size else b'{"a": 1}, '

    with pytest.raises(Broken):
        JsonStream(Endless()).value()  # type: ignore[arg-type]


def test_nested_too_deep_is_a_fault_like_others() -> None:
    with pytest.raises(Broken, match="nested too deep"):
        JsonStream(io.BytesIO(b"[" * 100_000)).value()
