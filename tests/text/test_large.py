"""Files that somebody made large: reading stays linear, whatever is in them."""

from __future__ import annotations

import time

import pytest

from infinimem.text.document import entry_lines, parse, render, units, unsigned_entries
from infinimem.text.lines import join_lines
from infinimem.text.signature import Signature

MB = 1 << 20
PAGES = {
    "a line of one megabyte": b"- <seq=1> " + b"x " * (MB // 2) + b"\n- <seq=2> y\n",
    "a megabyte of prose in one line": "買った".encode() * (MB // 9) + b"\n",
    "a signature of one megabyte": b'- <seq=1, a="' + b"\\x" * (MB // 2) + b'"> x\n',
    "a signature that never ends": b'- <seq=1, a="' + b"\\x" * (MB // 2) + b"\n",
    "fields without number": b"- <seq=1" + b"".join(b", k%d=b" % n for n in range(60_000)) + b"> x\n",
    "spaces in a heading": b"# a" + b" " * MB + b"x\n",
    "marks in a heading": b"# " + b" #" * (MB // 2) + b"x\n",
    "spaces before a dash": b" " * MB + b"- <seq=1> x\n",
    "spaces in a value": b"- <seq=1, a=b" + b" " * MB + b"\n",
    "backticks": b"`" * MB + b"\n",
    "dashes": b"- " * (MB // 2) + b"x\n",
    "code fences that nobody closes": b"```python\n" * 20_000,
    "nested fences that nobody closes": b"  ```python\n" * 20_000,
    "two kinds of open fences": b"~~~~ a\n```b\n" * 10_000,
    "open fences in bullets": b"- a\n ```b\n" * 10_000,
    "open fences in entries": b"- <seq=1> a\n ```b\n" * 10_000,
    "blank lines": b"- <seq=1> a\n" + b"\n" * 200_000 + b"x\n",
    "entries": b"".join(b"- <seq=%d> some words\n" % n for n in range(1, 20_001)),
    "headings": b"# a\n## b\n" * 20_000,
    "blank lines in front matter": b"---\nid: a\n" + b"\n" * 200_000 + b"---\n",
}  # fmt: skip


@pytest.mark.parametrize("name", PAGES)
def test_a_large_page_is_read_in_the_time_that_its_size_asks_for(name: str) -> None:
    content = PAGES[name]
    for path in ("topics/a.md", "CURRENT.md"):
        started = time.process_time()
        document = parse(path, content)
        units(document)
        unsigned_entries(document)
        # Linear ones take 0.1 s here; the quadratic ones that these pages caught took 10 s and more.
        assert time.process_time() - started < 4
        assert render(document) == content


def test_a_text_of_one_megabyte_in_one_line_and_in_many() -> None:
    for text in ("x" * MB, "x\n" * (MB // 2), "\n" * (MB // 4)):
        content = join_lines(entry_lines(Signature((7,)), text))
        (entry,) = parse("CURRENT.md", b"# CURRENT\n\n" + content).entries
        assert entry.text == text
