"""Laws of the comparison of two states: complete, silent about what is the same, and the same backwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from infinimem.git.compare import Difference, State, compare
from infinimem.model import Document
from infinimem.store.evidence import Record
from infinimem.text.document import parse

TOPICS = ("topics/a.md", "topics/b.md", "topics/c d.md", "CURRENT.md")
WORDS = st.sampled_from(["Salt.", "The boat has berth 12.", "The boat has berth 31.", "Two\n  lines.", "- <seq=9> x"])
FIELDS = st.sampled_from(["", ", time=2026", ", source=Ines"])


def document(path: str, lines: Sequence[str], summary: str) -> Document:
    """A topic, or CURRENT, with some entries."""
    head = "" if path == "CURRENT.md" else f"---\nid: {path[7:-3]}\nsummary: {summary}\ntoken_count: 1\n---\n# T\n\n"
    return parse(path, (head + "".join(f"{line}\n" for line in lines)).encode())


@st.composite
def states(draw: st.DrawFn) -> State:
    """A library in which each seq stands in one line."""
    seqs = draw(st.lists(st.integers(1, 9), unique=True, max_size=7))
    lines: dict[str, list[str]] = {path: [] for path in draw(st.sets(st.sampled_from(TOPICS)))}
    while seqs and lines:
        several = seqs[: draw(st.integers(1, 2))]
        seqs = seqs[len(several) :]
        entry = f"- <seq={'+'.join(map(str, several))}{draw(FIELDS)}> {draw(WORDS)}"
        lines[draw(st.sampled_from(sorted(lines)))].append(entry)
    return {path: document(path, entries, draw(st.sampled_from(["x", "y"]))) for path, entries in lines.items()}


def shown(state: State) -> dict[int, tuple[tuple[int, ...], str, str]]:
    """Each seq with its line's seqs, its topic and its words."""
    return {
        seq: (entry.seqs, document.id, entry.text)
        for document in state.values()
        for entry in document.entries
        for seq in entry.seqs
    }


def nothing_known(seqs: Sequence[int]) -> Mapping[int, Record]:
    return {}


def told_of(found: Sequence[Difference], *kinds: str) -> set[int]:
    return {seq for one in found if one.kind in kinds for seq in one.seqs}


@given(states())
def test_nothing_differs_from_itself(state: State) -> None:
    assert compare(state, state, nothing_known) == []


@given(states(), states())
def test_every_entry_that_is_not_as_it_was_is_told_once(old: State, new: State) -> None:
    found = compare(old, new, nothing_known)
    before, after = shown(old), shown(new)
    assert told_of(found, "retired") == before.keys() - after.keys()
    renamed = {one.source: one.topic for one in found if one.kind == "renamed"}
    for seq, (seqs, topic, text) in after.items():
        kinds = [one.kind for one in found if seq in one.seqs and one.kind not in ("marked", "retired")]
        sources = {before[one][0] for one in seqs if one in before}
        if not sources:
            assert kinds == ["added"]
        elif seqs not in sources:
            assert kinds == ["joined"]
        else:
            was_topic, was_text = before[seqs[0]][1:]
            expected = ["moved"] * (renamed.get(was_topic, was_topic) != topic) + ["changed"] * (was_text != text)
            assert kinds == expected


@given(states(), states())
def test_what_came_one_way_goes_the_other(old: State, new: State) -> None:
    there, back = compare(old, new, nothing_known), compare(new, old, nothing_known)
    gone = shown(old).keys() - shown(new).keys()
    assert told_of(there, "retired") == gone
    assert {seq for seq in gone if seq in told_of(back, "added", "joined")} == gone
    assert {one.topic for one in there if one.kind == "created"} == {one.topic for one in back if one.kind == "removed"}
    assert {(one.topic, one.source) for one in there if one.kind == "renamed"} == {
        (one.source, one.topic) for one in back if one.kind == "renamed"
    }
