"""Machines that share one memory through git: whatever each does, after a sync all agree and nothing is lost."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from infinimem import Library
from infinimem.errors import NeedsAttention
from infinimem.model import CURRENT
from infinimem.text.signature import parse_seqs
from tests.git.clones import Clone, assert_kept, git, make_clones, words_in

NIGHTLY = bool(os.environ.get("INFINIMEM_NIGHTLY"))
SUBJECTS = ("Maya works at Nordlys", "The Bergen office", "Ines and the budget", "Hydra pump 3", "Trip to Lisbon")
ENDS = ("", " again", "\nsame tail\n  and more", "\nsame tail\n  and more")
clones = st.integers(0, 1)
choices = st.integers(0, 1000)


class Machines(RuleBasedStateMachine):
    """Two machines work, a third only syncs. Each edits only what it wrote itself: other conflicts would be real."""

    rebase = False

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="infinimem-clones-"))
        self.clones = make_clones(self.folder, ["one", "two", "three"])
        self.written: dict[str, int] = {}
        self.replaced: set[str] = set()

    def own(self, number: int) -> list[int]:
        """The visible entries that a machine wrote, alone on their line."""
        shown = self.clones[number].shown()
        words = {seq: words_in(text) for seq, (_, text) in shown.items()}
        return [seq for seq, found in words.items() if len(found) == 1 and self.written.get(*found) == number]

    def new_word(self, number: int) -> str:
        word = f"zq{len(self.written)}z"
        self.written[word] = number
        return word

    def topics(self, number: int) -> list[str]:
        return [row.topic for row in self.clones[number].library.catalog() if row.topic != CURRENT]

    @rule(number=clones, subject=st.sampled_from(SUBJECTS), end=st.sampled_from(ENDS), pick=choices)
    def write(self, number: int, subject: str, end: str, pick: int) -> None:
        own = self.own(number)
        supersedes = [own[pick % len(own)]] if own and pick % 3 == 0 else []
        self.clones[number].library.write(
            f"{subject} {self.new_word(number)}{end}", source="user", supersedes=supersedes
        )

    @rule(number=clones)
    def flush(self, number: int) -> None:
        self.clones[number].library.flush("lexical")

    @rule(number=clones, pick=choices)
    def edit_by_hand(self, number: int, pick: int) -> None:
        own = self.own(number)
        if own:
            seq = own[pick % len(own)]
            text = self.clones[number].shown()[seq][1]
            (old,) = words_in(text)
            self.replaced.add(old)
            self.clones[number].change_words(seq, text.replace(old, self.new_word(number)))
            self.clones[number].library.check(fix=True)

    @rule(number=clones, pick=choices)
    def delete_by_hand(self, number: int, pick: int) -> None:
        own = self.own(number)
        if own:
            self.clones[number].delete(own[pick % len(own)])
            self.clones[number].library.check(fix=True)

    @rule(number=clones, subject=st.sampled_from(SUBJECTS), pick=choices)
    def type_a_bullet(self, number: int, subject: str, pick: int) -> None:
        topics = self.topics(number)
        if topics:
            path = self.clones[number].root / "topics" / f"{topics[pick % len(topics)]}.md"
            with path.open("a") as file:
                file.write(f"- {subject} {self.new_word(number)}, by hand\n")

    @rule(pick=choices)
    def rename(self, pick: int) -> None:
        topics = self.topics(0)
        if topics:
            old = self.clones[0].root / "topics" / f"{topics[pick % len(topics)]}.md"
            old.rename(old.with_name(f"renamed-{pick}-{old.name}"))
            self.clones[0].library.check(fix=True)

    @rule(number=clones, pick=choices)
    def split(self, number: int, pick: int) -> None:
        topics = self.topics(number)
        if topics:
            self.clones[number].library.split(topics[pick % len(topics)])

    @rule(number=clones, pick=choices)
    def merge(self, number: int, pick: int) -> None:
        topics = self.topics(number)
        if len(topics) > 1:
            first = pick % len(topics)
            self.clones[number].library.merge([topics[first], topics[first - 1]])

    @rule(number=st.integers(0, 2))
    def sync(self, number: int) -> None:
        self.clones[number].sync(rebase=self.rebase)

    @invariant()
    def every_file_reads(self) -> None:
        for clone in self.clones:
            assert not [found for found in clone.library.check() if found.problem.blocking]

    def teardown(self) -> None:
        for _ in range(2):
            for clone in self.clones:
                clone.sync(rebase=self.rebase)
        files = [clone.files() for clone in self.clones]
        assert files[0] == files[1] == files[2]
        last = self.clones[2]
        assert_kept(last, self.written.keys() - self.replaced)
        # a summary of what was deleted by hand since waits for the topic's next flush
        assert [str(found.problem) for found in last.library.check() if found.problem.code != "summary"] == []
        assert_references_hold(last)
        shutil.rmtree(self.folder)


class RebasingMachines(Machines):
    """The same, with `git pull --rebase`."""

    rebase = True


def assert_references_hold(clone: Clone) -> None:
    """What an entry says to replace is known, and is not shown."""
    shown = clone.shown()
    for path, content in clone.files().items():
        for line in content.decode().splitlines():
            if path.startswith("topics/") and "supersedes=" in line:
                old = parse_seqs(line.partition("supersedes=")[2].partition(",")[0].partition(">")[0])
                assert old, line
                for seq in old:
                    assert clone.library.trace(seq) is not None
                    assert seq not in shown, f"{line} is shown beside {seq}"


SETTINGS = settings(
    max_examples=80 if NIGHTLY else 3,
    stateful_step_count=30 if NIGHTLY else 14,
    deadline=None,
    derandomize=not NIGHTLY,
    suppress_health_check=list(HealthCheck),
)
Machines.TestCase.settings = SETTINGS
RebasingMachines.TestCase.settings = SETTINGS
TestMachines = Machines.TestCase
TestRebasingMachines = RebasingMachines.TestCase


@pytest.fixture
def pair(tmp_path: Path) -> Callable[..., list[Clone]]:
    """Two clones with three entries flushed into one topic, in step."""

    def make(*, drivers: bool = True) -> list[Clone]:
        both = make_clones(tmp_path, ["one", "two"], drivers=drivers)
        both[0].library.write([f"Maya works at Nordlys zq{number}z." for number in range(3)], source="user")
        both[0].library.flush("lexical")
        for _ in range(2):
            for clone in both:
                clone.sync()
        return both

    return make


def merged(one: Clone, two: Clone) -> None:
    """One pushes, two takes it in, and both are in step."""
    for clone in (one, two, one):
        clone.sync()
    assert one.files() == two.files()
    assert [str(found.problem) for found in two.library.check()] == []


def test_two_clones_that_each_wrote_have_all_entries_without_a_conflict(pair: Callable[..., list[Clone]]) -> None:
    one, two = pair()
    one.library.write("Ines is in Bergen zq10z.\nsame line\n  and its end", source="user")
    two.library.write("Kwame is in Oslo zq11z.\nsame line\n  and its end", source="user")
    merged(one, two)
    current = (one.root / "CURRENT.md").read_text()
    assert current.count("same line\n    and its end") == 2
    assert sorted(entry.seq for entry in one.library.index().superseding()) == []
    assert_kept(one, {"zq10z", "zq11z", "zq0z"})


def test_a_clone_without_the_driver_loses_no_continuation_line(pair: Callable[..., list[Clone]]) -> None:
    """git's union merge keeps a line that two added entries share only once."""
    one, two = pair(drivers=False)
    one.library.write("Ines is in Bergen zq10z.\nsame line\n  and its end", source="user")
    two.library.write("Kwame is in Oslo zq11z.\nsame line\n  and its end", source="user")
    merged(one, two)
    assert (one.root / "CURRENT.md").read_text().count("same line\n    and its end") == 2


def test_a_clone_without_the_driver_brings_nothing_back_that_was_flushed(pair: Callable[..., list[Clone]]) -> None:
    one, two = pair(drivers=False)
    one.library.write("Ines is in Bergen zq10z.", source="user")
    one.sync()
    two.sync()
    one.library.flush("lexical")
    two.library.write("Kwame is in Oslo zq11z.", source="user")
    merged(one, two)
    assert words_in((one.root / "CURRENT.md").read_text()) == {"zq11z"}
    assert_kept(one, {"zq10z", "zq11z"})


def test_what_both_flushed_stands_once(pair: Callable[..., list[Clone]]) -> None:
    one, two = pair()
    one.library.write([f"Ines is in Bergen zq1{number}z." for number in range(3)], source="user")
    one.sync()
    two.sync()
    one.library.flush("lexical")
    two.library.write("Trip to Lisbon zq20z", source="user")
    two.library.flush("lexical")
    merged(one, two)
    assert_kept(one, {"zq10z", "zq11z", "zq12z", "zq20z"})


def test_numbers_that_both_gave_are_given_anew_with_all_that_refers_to_them(pair: Callable[..., list[Clone]]) -> None:
    one, two = pair()
    assert one.library.write("Ines is in Bergen zq10z.", source="user") == [4]
    assert two.library.write("Kwame is in Oslo zq11z.", source="user") == [4]
    assert two.library.write("Kwame has moved to Oslo zq12z.", source="user", supersedes=[4]) == [5]
    two.library.flush("lexical")
    one.sync()
    two.commit("work")
    two.pull()
    said = two.library.flush("lexical").settled
    assert said == ("two machines had given the same numbers to different entries: 4 is now 6, 5 is now 7",)
    two.commit("finish")
    trace = two.library.trace(7)
    assert trace is not None
    assert two.library.trace(6) is not None
    assert words_in(two.shown()[7][1]) == {"zq12z"}
    assert 6 not in two.shown()
    merged(one, two)
    assert_kept(one, {"zq10z", "zq11z", "zq12z"})


def test_what_one_replaced_and_the_other_edited_stays_replaced_and_keeps_its_words(
    pair: Callable[..., list[Clone]],
) -> None:
    one, two = pair()
    one.library.write("Maya has left Nordlys zq10z.", source="user", supersedes=[1])
    one.library.flush("lexical")
    two.change_words(1, "Maya works at Nordlys zq11z.")
    merged(one, two)
    assert 1 not in one.shown()
    assert "zq11z" in (one.root / "evidence").glob("*.md").__next__().read_text()


def with_lisbon(one: Clone, two: Clone) -> str:
    """A second topic, `lisbon`, with entry 4, in both clones; gives the first topic's id."""
    one.library.write("Trip to Lisbon in May zq10z", source="user")
    plan = one.root / "plan.yaml"
    plan.write_text(
        "plan: 1\nsteps:\n- create: {topic: lisbon, title: Lisbon}\n- extend: {topic: lisbon, heading: '', seqs: 4}\n"
    )
    one.library.flush(plan=plan)
    plan.unlink()
    one.sync()
    two.sync()
    return one.shown()[1][0]


def test_an_entry_that_one_took_back_and_the_other_edited_stands_once_with_the_new_words(
    pair: Callable[..., list[Clone]],
) -> None:
    one, two = pair()
    one.library.write("Maya works at Nordlys zq9z.")
    one.library.flush("lexical")
    merged(one, two)
    one.library.undo()
    two.change_words(4, "Maya works at Nordlys zq9z, on the pier.")
    merged(one, two)
    assert "zq9z" not in (one.root / "CURRENT.md").read_text()
    assert one.shown()[4][1] == "Maya works at Nordlys zq9z, on the pier."
    assert_kept(one, {"zq0z", "zq1z", "zq2z", "zq9z"})


def test_what_one_adds_to_a_topic_that_the_other_merged_away_follows_it(pair: Callable[..., list[Clone]]) -> None:
    one, two = pair()
    topic = with_lisbon(one, two)
    one.library.merge([topic, "lisbon"])
    two.library.write("Lisbon again zq11z", source="user")
    plan = two.root / "plan.yaml"
    plan.write_text("plan: 1\nsteps:\n- extend: {topic: lisbon, heading: '', seqs: 5}\n")
    two.library.flush(plan=plan)
    plan.unlink()
    merged(one, two)
    assert one.shown()[5][0] == topic
    assert {row.topic for row in one.library.catalog()} - {CURRENT} == {topic}
    assert one.library.read("lisbon").topic == topic


def test_two_edits_of_one_entry_are_a_conflict_there_alone(pair: Callable[..., list[Clone]]) -> None:
    one, two = pair()
    one.change_words(2, "Maya works at Nordlys in Oslo zq1z.")
    two.change_words(2, "Maya works at Nordlys in Bergen zq1z.")
    one.sync()
    two.commit("work")
    said = git(two.root, "pull", "-q", "--no-rebase", "--no-edit", "origin", "main", fails=True)
    assert "1 place to decide" in said
    topic = next((two.root / "topics").glob("*.md")).read_text()
    assert topic.count("<<<<<<<") == 1
    assert topic.partition("<<<<<<< ours\n")[2].partition("\n=======")[0].endswith("in Bergen zq1z.")
    with pytest.raises(NeedsAttention, match="in the middle of a merge"):
        two.library.flush("lexical")
    assert two.library.search("Nordlys")
    assert any(found.problem.code == "conflict" for found in two.library.check())


def test_a_clone_ignores_its_derived_files(pair: Callable[..., list[Clone]]) -> None:
    """`git clone` does not bring .infinimem/.gitignore: whoever makes the folder makes it."""
    _, two = pair()
    Library.open(two.root).search("Nordlys")
    assert git(two.root, "status", "--porcelain") == ""
    assert git(two.root, "ls-files", ".infinimem") == ""


def test_what_both_sides_replaced_is_said(pair: Callable[..., list[Clone]]) -> None:
    one, two = pair()
    one.library.write("Maya is at Fjord Labs zq10z.", source="user", supersedes=[1])
    one.library.flush("lexical")
    two.library.write("Maya is at Havbanken zq11z.", source="user", supersedes=[1])
    two.library.flush("lexical")
    one.sync()
    two.commit("work")
    two.pull()
    assert [found.problem.code for found in two.library.check()][:1] == ["merge"]
    said = [found.problem.message for found in two.library.check(fix=True) if found.problem.code == "merge"]
    assert said[-1] == "both sides replaced 1, by 4 and by 5; both are shown: see which holds"
    two.commit("finish")
    assert_kept(two, {"zq10z", "zq11z"})


def test_a_merge_that_left_nothing_to_do_is_not_finished_again_elsewhere(pair: Callable[..., list[Clone]]) -> None:
    """A fresh clone took an entry out of its topic that a person had brought back after the merge."""
    one, two = pair()
    one.library.write("Maya has left Nordlys zq10z.", source="user", supersedes=[1])
    one.library.flush("lexical")
    (two.root / "README.md").write_text("two\n")
    merged(one, two)
    one.library.recover([1])
    one.library.flush("lexical")
    one.sync()
    git(one.root.parent, "clone", "-q", str(one.root.parent / "origin.git"), str(one.root.parent / "fresh"))
    fresh = Clone(one.root.parent / "fresh")
    fresh.library.check(fix=True)
    assert fresh.files() == one.files()


def test_an_entry_is_not_lost_when_two_merges_are_finished_at_once_and_one_number_was_given_twice(
    tmp_path: Path,
) -> None:
    """The first merge left nothing to do where it was made; the clone that finishes both gave the number, too."""
    one, two, three = make_clones(tmp_path, ["one", "two", "three"])
    three.library.write("zqboatz is blue.")
    one.library.write("zqtilez is red.")
    one.sync()
    (two.root / "note.txt").write_text("Not of memory.")
    two.commit("a note")
    two.pull()
    git(two.root, "push", "-q", "origin", "HEAD:main")
    three.sync()
    for clone in (one, two, three):
        clone.sync()
        assert words_in((clone.root / "CURRENT.md").read_text()) == {"zqboatz", "zqtilez"}
        assert not clone.library.check()


def test_tables_that_both_sides_add_in_one_place_stay_whole(pair: Callable[..., list[Clone]]) -> None:
    one, two = pair()
    topic = next((one.root / "topics").glob("*.md")).name
    tables = {}
    for clone, name in ((one, "berths"), (two, "keels")):
        tables[name] = f"\n| {name} | m |\n|---|---|\n| Terna | 7 |\n\n```\n# {name}\n\ncode\n```\n"
        with (clone.root / "topics" / topic).open("a") as file:
            file.write(tables[name])
    merged(one, two)
    text = (one.root / "topics" / topic).read_text()
    assert all(table.strip("\n") in text for table in tables.values()), text


def test_what_one_side_takes_out_of_the_front_matter_stays_out(pair: Callable[..., list[Clone]]) -> None:
    one, two = pair()
    path = next((one.root / "topics").glob("*.md"))
    path.write_text(path.read_text().replace("aux: {}", "aux: {pinned: true, tags: [work, oslo]}\nowner: Maya"))
    one.sync()
    two.sync()
    other = two.root / "topics" / path.name
    path.write_text(
        path.read_text().replace("pinned: true, tags: [work, oslo]", "tags: [work]").replace("\nowner: Maya", "")
    )
    other.write_text(other.read_text().replace("oslo]", "oslo, norway]"))
    merged(one, two)
    text = path.read_text()
    assert "aux: {tags: [work, norway]}\n" in text
    assert "owner" not in text


def test_a_plain_merge_that_git_can_make_gives_what_the_driver_gives(tmp_path: Path) -> None:
    """Entries that both wrote, one topic that each changed: with and without the driver, times of the clock apart."""
    results = []
    for drivers in (True, False):
        folder = tmp_path / str(drivers)
        folder.mkdir()
        one, two = make_clones(folder, ["one", "two"], drivers=drivers)
        plan = folder / "plan.yaml"
        plan.write_text(
            "plan: 1\nsteps:\n- create: {topic: boat, title: Boat}\n- extend: {topic: boat, heading: '', seqs: 1-2}\n"
            "- create: {topic: work, title: Work}\n- extend: {topic: work, heading: '', seqs: 3-4}\n"
        )
        texts = ["The boat zq1z.", "Her berth zq2z.", "The office zq3z.", "Ines zq4z."]
        one.library.write(texts, source="user", observed="2026-05-01T08:00:00Z")
        one.library.flush(plan=plan)
        one.sync()
        two.sync()
        one.change_words(1, "The boat zq5z.")
        one.library.write("Written here zq6z.\nand on", source="user", observed="2026-05-02T08:00:00Z")
        two.change_words(3, "The office zq7z.")
        two.library.write("Written there zq8z.\nand on", source="user", observed="2026-05-02T09:00:00Z")
        merged(one, two)
        kept = {path: text for path, text in one.files().items() if not path.startswith("evidence/")}
        results.append({path: re.sub(rb"time: [0-9TZ:-]+", b"time: then", text) for path, text in kept.items()})
    assert results[0].keys() == results[1].keys()
    for path, content in results[0].items():
        assert results[1][path] == content, path


def test_words_edited_in_a_topic_that_the_other_merged_away_are_kept(pair: Callable[..., list[Clone]]) -> None:
    one, two = pair()
    topic = with_lisbon(one, two)
    one.library.merge([topic, "lisbon"])
    two.change_words(4, "Trip to Lisbon in June zq10z")
    merged(one, two)
    assert one.shown()[4] == (topic, "Trip to Lisbon in June zq10z")
