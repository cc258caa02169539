"""Invariants 2 and 3 for documents: an operation moves what it says, and every other line stays as it was, in order."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from infinimem.errors import Unreadable
from infinimem.model import Create, Document, Entry, Extend, Merge, Part, Retire, Signature, Split
from infinimem.plan import rules
from infinimem.plan.desk import (
    Desk,
    absorb,
    apply,
    aux_list,
    come_back,
    insert_entries,
    new_document,
    refresh,
    retire,
    set_aux,
    set_header,
)
from infinimem.text.document import parse, render, title_of
from infinimem.text.header import render_scalar
from infinimem.text.lines import ending_of, strip_ending
from tests.text.hostile import Dice, dice, ours

NOW = "2026-05-02T08:00:11Z"
HEADINGS = ("", "A", "a", "Employers", "A # b", "C#", "x #", "日本", "  spaced  ", "`code`", "#", "Title")

headings = st.sampled_from(HEADINGS)


def drafts(die: Dice, first: int = 5000) -> list[Entry]:
    """Entries that wait in the buffer."""
    return [
        Entry("CURRENT", replace(die.signature(), seqs=(first + 10 * number,)), die.text())
        for number in range(die.randrange(1, 5))
    ]


new_entries = dice.map(drafts)


def said(entries: object) -> list[tuple[Signature, str]]:
    """What entries say, in order."""
    return [(entry.signature, entry.text) for entry in entries]  # type: ignore[attr-defined]


def words_of(document: Document) -> list[str]:
    """The lines without their terminators."""
    ending = ending_of(document.lines)
    return [strip_ending(line, ending) for line in document.lines]


def prose(document: Document) -> list[str]:
    """The lines that are neither header nor entry nor blank nor heading: what a person wrote between entries."""
    taken = {at for entry in document.entries for at in range(entry.span.start, entry.span.stop)}
    taken |= {block.span.start for block in document.blocks if block.level} | set(range(document.header.span.stop))
    return [line for at, line in enumerate(words_of(document)) if at not in taken and line.strip(" \t\r")]


def without(lines: list[str], part: list[str]) -> bool:
    """Whether `part` stands in `lines` in that order, other lines between them or not."""
    rest = iter(lines)
    return all(any(line == other for other in rest) for line in part)


@given(ours(), headings, new_entries)
def test_inserting_adds_lines_and_changes_none(document: Document, heading: str, entries: list[Entry]) -> None:
    after = insert_entries(document, heading, entries)
    assert sorted(said(after.entries), key=repr) == sorted([*said(document.entries), *said(entries)], key=repr)
    kept = [entry for entry in after.entries if entry.seq < 5000 or entry.seq not in {e.seq for e in entries}]
    assert said(kept) == said(document.entries)
    assert said(entry for entry in after.entries if entry not in kept) == said(entries)
    assert without(words_of(after), words_of(document)), "a diff shows additions only"
    assert prose(after) == prose(document)
    assert len(after.lines) <= len(document.lines) + sum(len(e.text.split("\n")) for e in entries) + 5


@given(ours(), headings, new_entries)
def test_a_second_insertion_finds_the_heading_of_the_first(
    document: Document, heading: str, entries: list[Entry]
) -> None:
    once = insert_entries(document, heading, entries[:1])
    twice = insert_entries(once, heading, [replace(entries[0], signature=Signature((9000,)))])
    made = {entry.seq: entry.headings for entry in twice.entries}
    assert made[9000] == made[entries[0].seq]
    assert len(twice.blocks) == len(once.blocks)


@given(ours(), headings, new_entries, st.booleans())
def test_retiring_takes_away_the_lines_of_one_entry(
    document: Document, heading: str, entries: list[Entry], joined: bool
) -> None:
    if joined:
        line = replace(entries[0], signature=Signature(tuple(range(7000, 7003)), entries[0].signature.fields))
        entries = [line, *entries[1:]]
    document = insert_entries(document, heading, entries)
    for number, entry in enumerate(document.entries):
        if sum(set(other.seqs) & set(entry.seqs) != set() for other in document.entries) > 1:
            continue
        spare = {seq: Entry("CURRENT", Signature((seq,)), f"member {seq}\n\n  of it\n") for seq in entry.seqs}
        desk = retire(Desk({}, {document.id: document}, spare=spare), Retire(entry.seq, 0, "deleted"))
        after = desk.documents[document.id]
        members = [come_back(entry, seq, spare) for seq in entry.seqs[1:]]
        expected = [*document.entries[:number], *members, *document.entries[number + 1 :]]
        assert said(after.entries) == said(expected)
        assert prose(after) == prose(document)
        assert [row.seq for row in desk.retired] == [entry.seq]


def parted(document: Document, die: Dice) -> Split | None:
    """Some exact partition of a document's entries into two or three."""
    seqs = [entry.seq for entry in document.entries]
    if len(seqs) < 2 or len({seq for entry in document.entries for seq in entry.seqs}) < sum(
        len(e.seqs) for e in document.entries
    ):
        return None
    groups: list[list[int]] = [[], [], []]
    for seq in seqs:
        groups[die.randrange(3)].append(seq)
    names = ("b", document.id, "c")
    parts = tuple(Part(name, f"Part {name}", tuple(group)) for name, group in zip(names, groups, strict=True) if group)
    return Split(document.id, parts) if len(parts) > 1 and any(part.topic == document.id for part in parts) else None


@given(ours(), headings, new_entries, dice)
def test_a_split_is_an_exact_partition(document: Document, heading: str, entries: list[Entry], die: Dice) -> None:
    document = insert_entries(document, heading, entries)
    step = parted(document, die)
    assume(step is not None)
    assert step is not None
    desk = Desk({}, {document.id: document})
    assert rules.violation(step, desk) == ""
    after = apply(desk, step, NOW).documents
    for part in step.parts:
        assert Counter(e.seq for e in after[part.topic].entries) == Counter(part.seqs)
    everything = [pair for part in step.parts for pair in said(after[part.topic].entries)]
    assert Counter(map(repr, everything)) == Counter(map(repr, said(document.entries)))
    assert prose(after[document.id]) == prose(document)
    for part in step.parts:
        if part.topic != document.id:
            assert aux_list(after[part.topic], "split_from") == [document.id]
            assert title_of(after[part.topic]) == part.title


@given(ours("a", 1000), ours("b", 2000), new_entries)
def test_a_merge_is_the_union_and_keeps_what_people_wrote(
    target: Document, source: Document, entries: list[Entry]
) -> None:
    source = insert_entries(source, "A", entries)
    desk = Desk({}, {"a": target, "b": source})
    step = Merge(("a", "b"), "a", "Both")
    assert rules.violation(step, desk) == ""
    try:
        done = apply(desk, step, NOW)
    except Unreadable:
        assert any(line.lstrip(" \t-1.>").startswith(("```", "~~~")) for line in target.lines), (
            "only an open fence may refuse it"
        )
        return
    after = done.documents["a"]
    assert list(done.documents) == ["a"] and done.removed == ("b",) and aux_list(after, "merged_from") == ["b"]
    assert Counter(map(repr, said(after.entries))) == Counter(map(repr, [*said(target.entries), *said(source.entries)]))
    body = words_of(after)
    there = words_of(target)[target.header.span.stop :]
    if "# Both" in body:  # the title that the step gives, where the page has a line for one
        line = next(block.span.start for block in target.blocks if block.level == 1)
        there[line - target.header.span.stop] = "# Both"
    assert without(body, there)
    for line in prose(source):
        assert line in body
    assert Counter(prose(after)) >= Counter(prose(target)) + Counter(prose(source))


@given(ours("a", 1000), ours("b", 2000))
def test_absorbing_keeps_each_block_of_the_source_in_order(target: Document, source: Document) -> None:
    try:
        after = absorb(target, source)
    except Unreadable:
        return
    written = words_of(source)
    apart = prose(source)
    for block in source.blocks:
        part = [line for line in written[block.span.start : block.span.stop] if line in apart]
        assert without(words_of(after), part)


@given(ours(), headings, new_entries, st.sampled_from(("", "A summary: with `marks`", "日本 # x", "0123")))
def test_refreshing_twice_is_refreshing_once(
    document: Document, heading: str, entries: list[Entry], summary: str
) -> None:
    document = insert_entries(document, heading, entries)
    once = refresh(document, summary, [("add", (1, 2)), ("add", (3,))], NOW)
    assert once.lines[once.header.span.stop :] == document.lines[document.header.span.stop :]
    assert once.entries != () and said(once.entries) == said(document.entries)
    assert once.header.fields["summary"] == summary
    assert refresh(once, summary, (), NOW) == once
    again = refresh(once, summary, [("add", (4,))], NOW)
    added = [line for line in again.lines if line not in once.lines]
    assert len(added) == 1 and "seq: 4" in added[0]
    assert render(parse(again.path, render(again))) == render(again)


@settings(max_examples=30)
@given(ours(), st.integers(1, 45))
def test_the_update_log_keeps_its_newest_twenty_rows(document: Document, runs: int) -> None:
    before = document.header.fields.get("update_log") or []
    for run in range(runs):
        document = refresh(document, "s", [("update", (run + 1,))], NOW)
    log = document.header.fields["update_log"]
    assert len(log) == min(20, runs + len(before))
    assert log[-1]["seq"] == runs and parse(document.path, render(document)) == document


LOGS = (
    "update_log: [{time: 2026-05-01, op: add, seq: 1}, {op: b}]\n",
    "update_log:\n- time: 2026-05-01\n  op: add\n  more:\n    nested: [1,\n     2]\n",
    "update_log:\n    - {op: a}\n    # mine\n    - {op: b}\n",
    "update_log:\n# mine\n- op: |\n    two\n    lines\n- op: c\n",
    "update_log: # newest last\n- {op: a}\n",
    "update_log:\n\n- {op: a}\n\n- {op: b}\n",
)


@given(st.sampled_from(LOGS), st.sampled_from(("\n", "\r\n")))
def test_old_rows_of_the_log_keep_their_meaning_however_they_are_written(log: str, ending: str) -> None:
    text = f"---\nid: a\ntoken_count: 1\n{log}---\n# A\n".replace("\n", ending)
    document = parse("topics/a.md", text.encode())
    assert not document.problems
    after = refresh(document, "", [("add", (5,))], NOW)
    rows = after.header.fields["update_log"]
    assert rows[:-1] == document.header.fields["update_log"] and rows[-1]["seq"] == 5


@given(ours(), dice)
def test_setting_aux_keeps_what_else_stands_there(document: Document, die: Dice) -> None:
    given_before = document.header.fields.get("aux") or {}
    after = set_aux(document, "links", [die.phrase(), die.value()])
    aux = dict(after.header.fields["aux"])
    assert len(aux.pop("links")) == 2 and aux == {key: value for key, value in given_before.items() if key != "links"}
    assert after.lines[after.header.span.stop :] == document.lines[document.header.span.stop :]


def test_aux_that_is_no_mapping_is_refused_not_replaced() -> None:
    document = parse("topics/a.md", b"---\nid: a\naux: see the other file\n---\n")
    try:
        set_aux(document, "links", [])
    except Unreadable as error:
        assert "aux" in str(error)
    else:
        raise AssertionError("a person's aux was replaced")


def test_a_document_renamed_by_hand_keeps_its_old_id_findable() -> None:
    document = parse("topics/new.md", b"---\nid: 0123\ntoken_count: 0\n---\n# T\n")
    once = refresh(document, "", (), NOW)
    assert once.header.fields["id"] == "new" and aux_list(once, "former_ids") == ["0123"]
    assert refresh(once, "", (), NOW) == once


@given(dice, st.sampled_from(("topic", "0123", "2025-01-15", "no", "2025-01-15_14-30-00_abc123", "日本/x", "a.b")))
def test_a_new_document_is_ours_whatever_it_is_called(die: Dice, topic: str) -> None:
    title = die.phrase().replace("\r", " ")
    made = new_document(topic, title, NOW)
    assert not made.problems and not made.is_guest and made.header.fields["id"] == topic
    assert not made.entries and len(made.blocks) == 2
    after = set_header(made, "summary", render_scalar(title))
    assert after.header.fields["summary"] == title


@given(new_entries, headings)
def test_extending_places_waiting_entries_verbatim_and_in_order(entries: list[Entry], heading: str) -> None:
    desk = apply(Desk({entry.seq: entry for entry in entries}), Create("t", "T"), NOW)
    step = Extend("t", heading, tuple(entry.seq for entry in reversed(entries)))
    after = apply(desk, step, NOW)
    assert said(after.documents["t"].entries) == said(reversed(entries))
    assert not after.waiting and set(after.placed) == {entry.seq for entry in entries}


UNEDITABLE = (
    "{id: a, summary: s, token_count: 1}\n",
    "  id: a\n  token_count: 1\n",
    "id: a\ntoken_count: &n 1\nother: *n\n",
    "id: old\ntoken_count: 1\naux: see the other file\n",
)


@pytest.mark.parametrize("inner", UNEDITABLE)
def test_a_header_that_cannot_be_edited_stops_its_own_step_not_the_whole_flush(inner: str) -> None:
    document = parse("topics/a.md", f"---\n{inner}---\n# A\n\n- <seq=1> x\n".encode())
    assert not document.blocking and not document.is_guest
    waiting = Entry("CURRENT", Signature((2,)), "y")
    desk = Desk({2: waiting}, {"a": document})
    with pytest.raises(Unreadable, match=r"topics/a\.md"):
        apply(desk, Extend("a", "", (2,)), NOW)
    with pytest.raises(Unreadable, match=r"topics/a\.md"):
        apply(desk, Retire(1, 0, "deleted"), NOW)
