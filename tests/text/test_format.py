"""Invariants 1 and 2 of the format, on any file at all: what is read is what is there, and a write is read back."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from infinimem.model import CURRENT, Document, Entry, Signature, Span
from infinimem.store.append import render_draft
from infinimem.store.buffer import highest_seq, seqs_in
from infinimem.store.layout import BUFFER_HEAD
from infinimem.text.document import edit, entry_lines, parse, parse_lines, render
from infinimem.text.lines import ending_of, join_lines, split_lines
from tests.text.hostile import files, indents, lines, signatures, texts

PATHS = st.sampled_from(("CURRENT.md", "topics/a.md", "topics/x/y.md"))


def said(entry: Entry) -> tuple[Signature, str]:
    """What an entry says, wherever it stands."""
    return entry.signature, entry.text


@given(PATHS, files)
def test_any_file_survives_reading_and_writing_byte_for_byte(path: str, content: bytes) -> None:
    assert render(parse(path, content)) == content


@given(st.binary(max_size=60))
def test_any_bytes_survive(content: bytes) -> None:
    assert render(parse("topics/a.md", content)) == content


@given(PATHS, files)
def test_spans_are_in_order_and_headings_are_those_above(path: str, content: bytes) -> None:
    document = parse(path, content)
    at = document.header.span.stop
    for entry in document.entries:
        assert at <= entry.span.start < entry.span.stop <= len(document.lines)
        at = entry.span.stop
        block = next(b for b in document.blocks if b.span.start <= entry.span.start < b.span.stop)
        assert entry.headings == block.headings and entry.span.stop <= block.span.stop
    edges = [document.header.span.stop, *(block.span.stop for block in document.blocks)]
    assert [block.span.start for block in document.blocks] == edges[:-1] and edges[-1] == len(document.lines)


@given(PATHS, files)
def test_a_problem_names_a_line_that_is_there(path: str, content: bytes) -> None:
    document = parse(path, content)
    for problem in document.problems:
        assert 0 < problem.line <= len(document.lines) and problem.path == path


def appended(content: bytes, signature: Signature, text: str) -> bytes:
    """What `write` leaves: the entry after everything else, in the document's own line ending."""
    before = split_lines(content)
    ending = ending_of(before)
    lead = ending.encode() if content and not content.endswith(b"\n") else b""
    return (content or BUFFER_HEAD) + lead + join_lines(entry_lines(signature, text, ending))


@given(PATHS, files, signatures, texts)
@example("CURRENT.md", b"abc\r", Signature((1,)), "x\r")
@example("CURRENT.md", b"```\n", Signature((1,)), "x\n```\ny")
@example("CURRENT.md", b"---\nid: x\n", Signature((1,)), "x\n---\ny")
@example("CURRENT.md", b"  ~~~\n", Signature((1,)), "<seq=7> y\n\n\n  ~~~\n")
@example("CURRENT.md", b"", Signature((1,)), "x\r\ny\r")
def test_what_is_written_is_read_back_and_changes_no_other_entry(
    path: str, content: bytes, signature: Signature, text: str
) -> None:
    before = parse(path, content)
    after = parse(path, appended(content, signature, text))
    assert said(after.entries[-1]) == (signature, text)
    assert after.entries[:-1] == before.entries
    assert after.header == before.header and (not content or after.blocks[:-1] == before.blocks[:-1])
    assert {(p.line, p.code) for p in before.problems} == {(p.line, p.code) for p in after.problems}


@given(files, st.lists(st.tuples(signatures, texts), min_size=2, max_size=4))
def test_many_writes_are_read_back_in_their_order(content: bytes, drafts: list[tuple[Signature, str]]) -> None:
    count = len(parse("CURRENT.md", content).entries)
    for signature, text in drafts:
        content = appended(content, signature, text)
    assert [said(entry) for entry in parse("CURRENT.md", content).entries[count:]] == drafts


@given(signatures, texts, st.sampled_from(("\n", "\r\n")))
def test_the_fast_way_to_render_a_write_gives_the_same_bytes(signature: Signature, text: str, ending: str) -> None:
    assert render_draft(signature, text, signature.seqs, ending) == "".join(entry_lines(signature, text, ending))


@given(st.lists(lines, max_size=6), st.data())
def test_edits_are_carried_out_in_the_order_given_and_touch_nothing_else(body: list[str], data: st.DataObject) -> None:
    document = parse_lines("topics/a.md", tuple(f"{line}\n" for line in body))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=4)))
    edits = [(Span(at, at), [f"new {number}\n"]) for number, at in enumerate(cuts)]
    changed = edit(document, edits)
    expected = list(document.lines)
    for number, at in reversed(list(enumerate(cuts))):
        expected.insert(at, f"new {number}\n")
    assert list(changed.lines) == expected


@given(files, indents, signatures, texts)
def test_an_indented_entry_is_read_like_any_other(content: bytes, indent: str, signature: Signature, text: str) -> None:
    """A person may indent a whole entry, as editors do; its words stay the same."""
    block = [indent + line for line in entry_lines(signature, text)]
    document = parse("topics/a.md", b"prose\n" + join_lines(tuple(block)))
    assert [said(entry) for entry in document.entries] == [(signature, text)]


@given(files)
def test_the_fast_scan_for_the_next_seq_misses_none_that_is_read(content: bytes) -> None:
    read = [seq for entry in parse("CURRENT.md", content).entries for seq in entry.seqs]
    assert highest_seq(content) >= max(read, default=0)
    assert set(read) <= set(seqs_in(content))


def test_the_buffer_and_a_topic_read_alike() -> None:
    content = b"- <seq=1> a\n- <seq=2> b\n"
    buffer: Document = parse("CURRENT.md", content)
    assert buffer.id == CURRENT and [entry.text for entry in buffer.entries] == ["a", "b"]
