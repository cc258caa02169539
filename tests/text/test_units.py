"""What can be found in a document, what may be signed in it, and what it costs."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from infinimem.consolidate.hand import sign
from infinimem.model import Document
from infinimem.text.document import parse, units, unsigned_entries
from infinimem.text.lines import CONFLICT
from infinimem.text.tokens import estimate
from tests.text.hostile import Dice, dice, files, lines, ours, texts

PATHS = st.sampled_from(("CURRENT.md", "topics/a.md"))
SIGNED = re.compile(r"[-*+] <seq=(?P<seq>\d+), source=hand, observed=2026-05-01T00:00:00Z> (?P<body>.*)", re.DOTALL)


def prose_lines(document: Document) -> set[int]:
    """The lines that hold words and are neither header, heading, entry nor a mark that git left."""
    first = 0 if document.blocking and "id" not in document.header.fields else document.header.span.stop
    headings = {block.span.start for block in document.blocks if block.level}
    entries = {at for entry in document.entries for at in range(entry.span.start, entry.span.stop)}
    return {
        at
        for at, line in enumerate(document.lines)
        if at >= first
        and at not in headings | entries
        and any(letter.isalnum() for letter in line)
        and not CONFLICT.match(line)
    }


@given(PATHS, files)
def test_every_entry_and_every_line_of_prose_is_found_once(path: str, content: bytes) -> None:
    document = parse(path, content)
    found = units(document)
    assert [(unit.line, unit.stop, unit.text, unit.seqs, unit.headings) for unit in found if unit.seqs] == [
        (entry.span.start + 1, entry.span.stop, entry.text, entry.seqs, entry.headings) for entry in document.entries
    ]
    covered = [at for unit in found for at in range(unit.line - 1, unit.stop)]
    assert len(covered) == len(set(covered)) and covered == sorted(covered)
    assert prose_lines(document) <= set(covered)
    assert set(covered) <= set(range(len(document.lines)))
    for unit in found:
        if not unit.seqs:
            assert unit.text == "".join(document.lines[unit.line - 1 : unit.stop]).strip(" \t\r\n") != ""


def test_a_comment_in_code_is_no_heading() -> None:
    content = b"# Title\n\n```sh\n# install it\nmake\n```\n"
    (unit,) = units(parse("topics/a.md", content))
    assert "# install it" in unit.text and unit.headings == ("Title",)


typed = st.lists(lines, max_size=14).map(lambda body: parse("CURRENT.md", "".join(f"{x}\n" for x in body).encode()))


@given(typed | ours())
def test_signing_changes_only_the_heads_of_plain_bullets(document: Document) -> None:
    loose = unsigned_entries(document)
    signed, seqs = sign(document, loose, 5000, "2026-05-01T00:00:00Z")
    assert len(signed.lines) == len(document.lines) and len(seqs) == len(loose)
    heads = {entry.span.start: seq for entry, seq in zip(loose, seqs, strict=True)}
    for at, (old, new) in enumerate(zip(document.lines, signed.lines, strict=True)):
        if at not in heads:
            assert old == new
            continue
        match = SIGNED.fullmatch(new)
        assert match and int(match["seq"]) == heads[at]
        assert old[1:].lstrip(" \t") == match["body"]
    mine = dict(zip(seqs, loose, strict=True))
    assert {entry.seq: (entry.text, entry.span) for entry in signed.entries if entry.seq in mine} == {
        seq: (entry.text, entry.span) for seq, entry in mine.items()
    }
    others = [entry for entry in signed.entries if entry.seq not in mine]
    assert [(e.signature, e.text, e.span) for e in others] == [(e.signature, e.text, e.span) for e in document.entries]
    assert unsigned_entries(signed) == ()


@given(files)
def test_a_guest_is_never_signed(content: bytes) -> None:
    document = parse("topics/guest.md", content)
    assert not document.is_guest or unsigned_entries(document) == ()


@given(texts, texts)
def test_tokens_grow_with_the_text(one: str, more: str) -> None:
    assert (estimate(one) > 0) == bool(one)
    assert estimate(one + "\n" + more) >= max(estimate(one), estimate(more)) - 1
    assert estimate(one + "\n" + more) <= estimate(one) + estimate(more) + 2


@given(dice)
def test_tokens_are_never_far_below_a_quarter_of_the_bytes(die: Dice) -> None:
    text = die.text()
    assert estimate(text) >= round(len(text.encode()) / 4)
    assert estimate("") == 0
