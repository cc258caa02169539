"""A diff over a merge that gave numbers anew tells what changed, not what has another number now."""

from __future__ import annotations

from pathlib import Path

from infinimem.model import Link
from infinimem.plan.paper import Plan
from tests.git.clones import Clone, git, make_clones


def head(clone: Clone) -> str:
    return git(clone.root, "rev-parse", "HEAD").strip()


def told(clone: Clone, since: str) -> list[tuple[str, str]]:
    """The differences in words: numbers are not what this is about."""
    return [(one.kind, one.text) for one in clone.library.diff(since).differences if one.kind != "summary"]


def test_a_diff_over_a_merge_tells_only_what_the_other_machine_wrote(tmp_path: Path) -> None:
    one, two = make_clones(tmp_path, ["one", "two"])
    words = {"one": ["Maya keeps bees.", "Ines sells honey.", "The boat has a berth."],
             "two": ["Jonas plays chess.", "Terna leaks.", "The choir sings."]}  # fmt: skip
    before = {}
    for clone in (one, two):
        mine = words[clone.root.name]
        clone.library.write(mine[:2])
        clone.library.flush(planner="lexical")
        clone.library.flush(plan=Plan((Link("1", "2", "related"),)))
        clone.library.write(mine[2])
        clone.commit("work")
        before[clone.root.name] = head(clone)
    numbers = {clone.root.name: {text: seq for seq, (_, text) in clone.shown().items()} for clone in (one, two)}
    for clone in (one, two, one):
        clone.sync()
    assert one.shown() == two.shown()
    changed = 0
    for clone in (one, two):
        name = clone.root.name
        others = words["two" if name == "one" else "one"]
        now = {text: seq for seq, (_, text) in clone.shown().items()}
        changed += sum(now[text] != seq for text, seq in numbers[name].items())
        for since in (before[name], f"{before[name]}..HEAD"):
            found = told(clone, since)
            assert {text for kind, text in found if kind == "added"} == set(others), (since, found)
            assert {kind for kind, _ in found} <= {"added", "created", "prose"}, (since, found)
    assert changed, "one side was given other numbers"


def test_what_was_given_another_number_and_changed_since_is_told_once(tmp_path: Path) -> None:
    one, two = make_clones(tmp_path, ["one", "two"])
    for clone in (one, two):
        clone.library.write([f"{clone.root.name} keeps bees.", f"{clone.root.name} sells honey."])
        clone.library.flush(planner="lexical")
        clone.commit("work")
    before = {clone.root.name: head(clone) for clone in (one, two)}
    for clone in (one, two, one):
        clone.sync()
    for clone in (one, two):
        name = clone.root.name
        seqs = {text: seq for seq, (_, text) in clone.shown().items()}
        clone.change_words(seqs[f"{name} keeps bees."], f"{name} keeps wasps.")
        clone.delete(seqs[f"{name} sells honey."])
        own = [one for one in told(clone, before[name]) if one[1].startswith(name)]
        assert sorted(own) == [("changed", f"{name} keeps wasps."), ("retired", f"{name} sells honey.")]
