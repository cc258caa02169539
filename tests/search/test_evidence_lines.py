"""Evidence taken into the index unread gives, when asked for, the entries that reading all of it would have given."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from infinimem.indexing import parsed_lines, plain_lines
from infinimem.model import Unit
from infinimem.search.records import Record, restore, stored_line
from infinimem.search.sources import Line
from infinimem.text.document import parse_piece

PATH = "evidence/2026-01.md"
LINES = st.sampled_from(
    [
        "# Evidence 2026-01\n",
        "\n",
        "- <seq=1, time=2026-01-01, source=Maya Lind> The boat is red.\n",
        "- <seq=2, source=user> First line\n  second line\n    - third\n",
        "- <seq=3-4, source=user> joined\n",
        "- <seq=5, rev=2, at=2026-01-01T00:00:00Z> changed\n",
        '- <seq=6, source="a, b"> quoted\n',
        "- <seq=7, source= user> no entry\n",
        "- <seq=0> no seq\n",
        "- <seq=8,source=user>no spaces\n",
        "- <seq=9, label=a\u00a0> odd space\n",
        "- <seq=10, label=x, seq=11> two\n",
        "- <seq=12> text > with <marks> \x85 and \u2028 breaks\n",
        "- <event=retire, seq=1, by=2, why=superseded, at=2026-01-02T00:00:00Z>\n",
        "- <event=flush, high=12, at=2026-01-02T00:00:00Z>\n",
        "  more of it\n",
        " one space\n",
        "\tby a tab\n",
        "prose\n",
        "```\n",
        "  ```\n",
        "- ```\n",
        "- <seq=13> begins a fence\n  ```\n",
        "- <seq=14, source=user> no end",
        "---\n",
        "- <seq=15> carriage\r\n",
        "- <seq=16,\n  source=user> wrapped\n",
    ]
)


@given(st.lists(LINES, max_size=8).map("".join), st.integers(0, 3))
def test_unread_lines_are_the_entries_that_they_would_have_been(text: str, above: int) -> None:
    content = text.encode()
    lines = plain_lines(PATH, content, above)
    if lines is None:
        return
    read = [
        restore("", "", stored_line(PATH, one.line, one.content)).unit if isinstance(one, Line) else one
        for one in lines
    ]
    whole = list(parsed_lines(parse_piece(PATH, content, "\n"), above))
    place = [(unit.line, bool(unit.get("event"))) for unit in whole]
    assert sorted(read, key=key) == sorted(whole, key=key), place


def unit_of(line: Line) -> Unit:
    return restore("", "", stored_line(PATH, line.line, line.content)).unit


def key(unit: Unit) -> tuple[int, bool]:
    return unit.line, unit.get("event") != ""


def test_what_we_write_is_taken_in_unread() -> None:
    content = b"# Evidence 2026-01\n\n- <seq=1, time=2026-01-01, source=Maya Lind> One\n  and more.\n- <seq=2> Two.\n"
    lines = plain_lines(PATH, content, 0)
    assert lines is not None and [type(one) for one in lines] == [Line, Line]


@given(st.text(), st.lists(st.tuples(st.text(), st.text())), st.lists(st.text()), st.lists(st.integers(1, 10**18)))
def test_any_record_comes_back(text: str, fields: list[tuple[str, str]], headings: list[str], seqs: list[int]) -> None:
    unit = Unit("topics/a b.md", 1, 2, text, tuple(seqs), tuple(headings), tuple(fields))
    assert restore("", "", Record(unit, flags=3).stored) == Record(unit, flags=3)
