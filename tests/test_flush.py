"""Flush, undo and the plan by hand: small libraries, and what becomes of them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from infinimem import Library
from infinimem.consolidate import buffer, flush
from infinimem.consolidate.story import stories
from infinimem.errors import BadInput, BadPlan, UnknownTopic
from infinimem.model import Create, Extend, Filter, Join, Merge, Part, Retire, Split
from infinimem.plan.paper import Plan, parse_plan, render_plan
from tests.faults.library_state import assert_conserved, visible_files

START = datetime(2026, 5, 1, 9, tzinfo=UTC)


class Clock:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def library(tmp_path: Path, clock: Clock) -> Library:
    return Library.open(tmp_path / "memory", create=True, clock=clock)


def topic_of(library: Library, seq: int) -> str:
    here = library.trace(seq).here
    assert here is not None
    return here.topic


def into(topic: str, *seqs: int, heading: str = "") -> Plan:
    return Plan((Create(topic, topic.replace("-", " ").title()), Extend(topic, heading, seqs)))


def test_a_correction_retires_what_it_replaces_in_another_document(library: Library) -> None:
    library.write("Maya works at Fjord Labs.", time="2025-09-01")
    library.flush(plan=into("career", 1))
    library.write("Maya joined Nordlys.", supersedes=[1], time="2026-05-01")
    report = library.flush()
    assert [(gone.seq, gone.by, gone.why) for gone in report.retired] == [(1, 2, "superseded")]
    assert [hit.text for hit in library.search("Maya", 5)] == ["Maya joined Nordlys."]
    trace = library.trace(1)
    assert (trace.fate, trace.by, trace.here) == ("superseded", 2, None)
    assert library.trace(2).replaced == (1,)
    assert [entry.text for _, entry in trace.words] == ["Maya works at Fjord Labs."]
    assert {hit.seqs for hit in library.search("Maya", 5, filter=Filter(retired=True))} == {(1,), (2,)}
    assert_conserved(library.root, {1, 2})


def test_a_correction_of_something_still_in_current(library: Library) -> None:
    library.write("Dentist on Monday at 9.")
    library.write("Dentist on Tuesday at 9.", supersedes=1)
    library.flush()
    assert library.trace(1).by == 2
    assert_conserved(library.root, {1, 2})


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ({"time": "2026-05-01"}, {"time": "2026-04-01"}, "lies before"),
        ({"ns": "work"}, {"ns": "home"}, "different ns"),
        ({"source": "user"}, {"source": "AI"}, "not superseded by an AI"),
    ],
)
def test_what_may_not_supersede(library: Library, old: dict[str, str], new: dict[str, str], why: str) -> None:
    library.write([{"text": "The key is under the mat.", **old}])
    library.flush()
    library.write([{"text": "The key is with Solveig.", **new, "supersedes": [1]}])
    report = library.flush()
    assert [outcome.why for outcome in report.skipped if why in outcome.why]
    assert report.exit_code == 5
    assert {hit.seqs for hit in library.search("key", 5)} == {(1,), (2,)}
    assert_conserved(library.root, {1, 2})


def test_a_correction_of_a_seq_that_does_not_exist_is_said(library: Library) -> None:
    library.write("Corrected.", supersedes=77)
    report = library.flush()
    assert any("no visible entry has seq 77" in outcome.why for outcome in report.skipped)
    assert report.seqs == (1,)


def test_identical_entries_are_kept_once_and_the_other_is_retired(library: Library) -> None:
    library.write(["Buy oat milk.", "Buy oat milk."])
    report = library.flush()
    assert [(gone.seq, gone.by, gone.why) for gone in report.retired] == [(2, 1, "duplicate")]
    assert_conserved(library.root, {1, 2})


def test_an_expired_entry_goes_to_evidence(library: Library, clock: Clock) -> None:
    library.write([{"text": "Coupon LINOLJE20.", "expires": "2026-05-31"}, "Linseed oil for the windows."])
    clock.now = datetime(2026, 6, 1, tzinfo=UTC)
    library.flush()
    assert library.trace(1).fate == "expired"
    assert_conserved(library.root, {1, 2})


def test_an_entry_expires_after_it_was_flushed(library: Library, clock: Clock) -> None:
    library.write([{"text": "Coupon LINOLJE20.", "expires": "2026-05-31"}, "Linseed oil for the windows."])
    library.flush()
    assert topic_of(library, 1)
    clock.now = datetime(2026, 6, 1, tzinfo=UTC)
    library.write("Another note about linseed oil.")
    library.flush()
    assert library.trace(1).fate == "expired"
    assert_conserved(library.root, {1, 2, 3})


def test_a_flush_moves_no_old_line(library: Library) -> None:
    library.write([f"The tide clock Flo, step {step}: glue the oak case." for step in range(30)])
    library.flush()
    before = visible_files(library.root)
    library.write("The tide clock Flo got its stepper motor.")
    library.flush()
    for path, content in visible_files(library.root).items():
        if path.startswith("topics/") and path in before:
            old = [line for line in before[path].split(b"\n") if line.startswith(b"- <seq=")]
            new = [line for line in content.split(b"\n") if line.startswith(b"- <seq=")]
            assert [line for line in new if line in old] == old


def test_flush_is_deterministic(tmp_path: Path) -> None:
    states = []
    for name in ("one", "two"):
        library = Library.open(tmp_path / name, create=True, clock=lambda: START)
        library.write([f"{who} likes {what}." for who in ("Liv", "Jonas") for what in ("ferries", "owls", "rye bread")])
        library.flush()
        states.append(visible_files(library.root))
    assert states[0] == states[1]


def test_dry_run_shows_a_diff_and_changes_nothing(library: Library) -> None:
    library.write("Maya joined Nordlys.")
    before = visible_files(library.root)
    report = library.flush(dry_run=True)
    assert "+- <seq=1, observed=2026-05-01T09:00:00Z> Maya joined Nordlys." in report.diff
    assert "--- a/CURRENT.md" in report.diff
    assert visible_files(library.root) == before


def test_if_due_waits_for_age_or_size(library: Library, clock: Clock) -> None:
    library.write("Maya joined Nordlys.")
    assert not library.flush(if_due=True).due
    clock.now = START - timedelta(hours=5)
    assert not library.flush(if_due=True).due, "a clock set back makes nothing old"
    clock.now = START + timedelta(minutes=61)
    report = library.flush(if_due=True)
    assert (report.flushed, report.reason) == (True, "its oldest entry is 1 h old")
    library.write("A long entry. " * 3000)
    assert library.flush(if_due=True).flushed


def test_undo_puts_entries_back_before_later_ones(library: Library) -> None:
    library.write("Maya works at Fjord Labs.")
    library.flush()
    first = visible_files(library.root)
    library.write("Maya joined Nordlys.", supersedes=1)
    library.flush()
    library.write("Written after the flush.")
    report = library.undo()
    assert report.seqs == (2,)
    text = (library.root / "CURRENT.md").read_text()
    assert re.findall(r"<seq=(\d+)", text) == ["2", "3"]
    topics = {path: content for path, content in visible_files(library.root).items() if path.startswith("topics/")}
    assert topics == {path: content for path, content in first.items() if path.startswith("topics/")}
    assert_conserved(library.root, {1, 2, 3})
    assert not library.check()
    library.flush()
    assert_conserved(library.root, {1, 2, 3})
    evidence = next((library.root / "evidence").iterdir()).read_text()
    assert evidence.count("Maya joined Nordlys.") == 1, "evidence holds each revision once"


def test_undo_leaves_an_edited_document_alone(library: Library) -> None:
    library.write(["The choir sings Brahms.", "The boat Terna has berth 31."])
    library.flush(
        plan=Plan(
            (Create("choir", "Choir"), Extend("choir", "", (1,)), Create("boat", "Boat"), Extend("boat", "", (2,)))
        )
    )
    path = library.root / "topics" / "choir.md"
    path.write_text(path.read_text() + "\nMy own words.\n")
    report = library.undo()
    assert report.seqs == (2,)
    assert "My own words." in path.read_text()
    assert not (library.root / "topics" / "boat.md").exists()
    assert any("was changed since" in outcome.why for outcome in report.skipped)
    assert_conserved(library.root, {1, 2})


def test_undo_twice_goes_back_twice_and_then_says_so(library: Library) -> None:
    library.write("one fact")
    library.flush()
    library.write("another fact")
    library.flush()
    assert library.undo().seqs == (2,)
    assert library.undo().seqs == (1,)
    assert library.undo().reason.startswith("there is no flush left to undo")
    assert_conserved(library.root, {1, 2})


def test_undo_of_a_merge_and_of_a_split(library: Library) -> None:
    library.write(["The choir sings Brahms.", "Choir rehearsal is on Wednesday."])
    library.flush(
        plan=Plan(
            (Create("choir", "Choir"), Extend("choir", "", (1,)), Create("sing", "Singing"), Extend("sing", "", (2,)))
        )
    )
    before = {path: content for path, content in visible_files(library.root).items() if path.startswith("topics/")}
    library.merge(["choir", "sing"])
    assert [row.topic for row in library.catalog()] == ["choir"]
    assert library.read("sing").topic == "choir", "the old id stays findable"
    assert_conserved(library.root, {1, 2})
    library.undo()
    after = {path: content for path, content in visible_files(library.root).items() if path.startswith("topics/")}
    assert after == before
    assert_conserved(library.root, {1, 2})


def test_split_by_hand_is_an_exact_partition(library: Library) -> None:
    texts = [f"Choir: we rehearse Brahms movement {n} with Margrethe on Wednesday." for n in range(1, 8)]
    texts += [f"Boat: Terna's Sabb engine ran {n} hours to Askøy, diesel filled." for n in range(1, 8)]
    library.write(texts)
    library.flush(plan=into("mixed", *range(1, 15)))
    report = library.split("mixed")
    assert len(report.created) >= 1
    assert_conserved(library.root, set(range(1, 15)))
    with pytest.raises(UnknownTopic, match="did you mean mixed"):
        library.split("mixd")


def test_prose_and_front_matter_that_a_person_wrote_survive_everything(library: Library) -> None:
    library.write("The choir sings Brahms.")
    library.flush(plan=into("choir", 1))
    path = library.root / "topics" / "choir.md"
    own = "\n> a quotation\n\n| a | table |\n|---|---|\n\n```\n- <seq=1> not an entry\n```\n<!-- a comment -->\n"
    path.write_text(path.read_text().replace("aux: {}\n", "aux: {}\ntags: [music, 'no']\n") + own)
    library.write("The choir sings Brahms again, in Johanneskirken.")
    library.flush(plan=Plan((Extend("choir", "", (2,)),)))
    text = path.read_text()
    assert own in text
    assert "tags: [music, 'no']\n" in text
    assert not library.check()


# Plans from outside


def test_a_plan_written_out_and_read_back_does_the_same(tmp_path: Path) -> None:
    states = []
    for name in ("straight", "by-plan"):
        library = Library.open(tmp_path / name, create=True, clock=lambda: START)
        library.write(["The choir sings Brahms.", "Terna has berth 31.", "The choir has 38 singers."])
        if name == "straight":
            library.flush()
        else:
            plan = library.flush(dry_run=True).plan
            assert parse_plan(render_plan(plan), "plan") == plan
            library.flush(plan=parse_plan(render_plan(plan), "plan"))
        states.append(visible_files(library.root))
    assert states[0] == states[1]


def test_a_plan_that_forgets_an_entry_keeps_it_in_the_nearest_block(library: Library) -> None:
    library.write(["one", "two", "three"])
    report = library.flush(plan=into("numbers", 1, 3))
    assert report.seqs == (1, 2, 3)
    assert topic_of(library, 2) == "numbers"
    assert_conserved(library.root, {1, 2, 3})


def test_a_plan_for_another_buffer_is_refused(library: Library) -> None:
    library.write("one")
    with pytest.raises(BadPlan, match="another buffer: 5-6"):
        library.flush(plan=Plan((), (1, 5, 6)))
    assert_conserved(library.root, {1})


def test_what_a_plan_gets_wrong_is_skipped_and_the_rest_is_done(library: Library) -> None:
    library.write(["one", "two", "three"])
    plan = Plan(
        (
            Create("good", "Good"),
            Extend("good", "", (1,)),
            Extend("good", "", (1,)),
            Extend("nowhere", "", (2,)),
            Extend("good", "", (99,)),
            Retire(3, 42, "superseded"),
            Create("GOOD", "Clash"),
        )
    )
    report = library.flush(plan=plan)
    assert [outcome.status for outcome in report.outcomes] == ["executed"] * 2 + ["skipped"] * 5
    assert report.seqs == (1,)
    assert report.left == (2, 3)
    assert report.exit_code == 5
    assert_conserved(library.root, {1, 2, 3})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Ines reports 41 cases in Bergen.", "says what no source says: 41"),
        ("Ines reports cases.", "leaves out"),
        ("Ines does not report 40 cases in Bergen; 3 in Oslo.", "says what no source says: not"),
    ],
)
def test_joined_text_must_carry_its_sources_and_nothing_else(library: Library, text: str, why: str) -> None:
    library.write(["Ines reports 40 cases in Bergen.", "Ines reports 3 in Oslo."])
    plan = Plan((Join((1, 2), text), Create("cases", "Cases"), Extend("cases", "", (1, 2))))
    report = library.flush(plan=plan)
    assert report.outcomes[0].status == "skipped"
    assert why in report.outcomes[0].why
    assert {hit.seqs for hit in library.search("Ines reports", 2)} == {(1,), (2,)}


def test_a_joined_line_stands_for_its_sources_and_gives_them_back(library: Library) -> None:
    library.write(["Ines reports 40 cases in Bergen.", "Ines reports 3 in Oslo."], time="2026-05-01")
    text = "Ines reports 40 cases in Bergen and 3 in Oslo."
    library.flush(plan=Plan((Join((1, 2), text), Create("cases", "Cases"), Extend("cases", "", (1, 2)))))
    assert [hit.seqs for hit in library.search("cases", 5)] == [(1, 2)]
    assert_conserved(library.root, {1, 2})
    library.write("Ines reports 5 in Oslo.", supersedes=2)
    library.flush()
    assert {hit.text for hit in library.search("Ines reports", 5)} == {
        "Ines reports 40 cases in Bergen.",
        "Ines reports 5 in Oslo.",
    }
    assert_conserved(library.root, {1, 2, 3})


def test_below_the_gate_is_a_proposal(library: Library) -> None:
    library.write(["one fact", "two facts"])
    plan = Plan((Retire(1, 2, "superseded", conf=0.5), Create("facts", "Facts"), Extend("facts", "", (1, 2))))
    report = library.flush(plan=plan)
    assert "below the gate" in report.skipped[0].why
    assert "why: superseded" in (library.root / ".infinimem" / "proposals.yaml").read_text()
    assert_conserved(library.root, {1, 2})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "no YAML"),
        ("steps: []", "no plan"),
        ("plan: 1\nsteps:\n- fly: {}", "step 1: 'fly' is no step"),
        ("plan: 1\nsteps:\n- create: {topic: x}", "step 1: create lacks title"),
        ("plan: 1\nsteps:\n- extend: {topic: x, seqs: a}", "step 1: 'a' is no seq"),
        ("plan: 1\nsteps:\n- create: {topic: x, title: y, conf: 7}", "conf is a number"),
        ("plan: 1\nsteps:\n- create: {topic: x, title: y, colour: red}", "create has no colour"),
    ],
)
def test_a_plan_file_that_cannot_be_read_says_where(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadPlan, match=re.escape(message)):
        parse_plan(text, "plan.yaml")


# What write refuses


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"text": ""}, "has no text"),
        ({"text": "  \n "}, "has no text"),
        ({"source": "user"}, "has no text"),
        ({"text": "x", "time": "2026-13-01"}, "time is a date"),
        ({"text": "x", "time": "2026-02-30"}, "time is a date"),
        ({"text": "x", "time": "yesterday"}, "time is a date"),
        ({"text": "x", "supersedes": "all"}, "supersedes is a seq"),
        ({"text": "x", "seq": 5}, "seq cannot be given; nothing"),
        (
            {"text": "x", "key": "k"},
            r"key cannot be given here: one is for all that is written at once \(key=, --key\)",
        ),
        ({"text": "x", "two words": 1}, "is no field name"),
        ({"text": "x\ud800"}, "not valid Unicode"),
    ],
)
def test_bad_entries_are_refused_and_nothing_is_written(library: Library, entry: object, message: str) -> None:
    before = visible_files(library.root)
    with pytest.raises(BadInput, match=message):
        library.write(["a good one", entry])  # type: ignore[list-item]
    assert visible_files(library.root) == before


def test_a_large_buffer_goes_in_portions_each_whole(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    from infinimem.consolidate import flush

    monkeypatch.setattr(flush, "PORTION", 20)
    subjects = ("boat", "choir", "owl", "tram", "oak")
    library.write([f"{what} number {number} is ready" for number in range(10) for what in subjects])
    library.write("the boat is sold", supersedes=1)
    report = library.flush(dry_run=True)
    assert (len(report.seqs), report.more) == (20, 31)
    report = library.flush()
    assert (sorted(report.seqs), report.left, report.more) == (list(range(1, 52)), (), 0)
    assert set(report.created) == {row.topic for row in library.catalog()}
    assert library.trace(1).by == 51
    assert_conserved(library.root, set(range(1, 52)))
    assert not library.check()


MARKS = "<<<<<<< ours\nMy remark.\n=======\nYour remark.\n>>>>>>> theirs\n"


def test_what_could_not_be_replaced_for_conflict_marks_is_replaced_once_they_are_gone(library: Library) -> None:
    library.write("Maya works at Fjord Labs.")
    library.flush(plan=into("career", 1))
    career = library.root / "topics" / "career.md"
    whole = career.read_text()
    career.write_text(whole + MARKS)
    library.write("Maya joined Nordlys.", supersedes=[1])
    assert "conflict" in library.flush(planner="lexical").skipped[0].why
    assert library.flush(planner="lexical").retired == (), "the marks are still there"
    assert topic_of(library, 1) == "career"
    career.write_text(whole + "My remark.\n")
    assert [(gone.seq, gone.by) for gone in library.flush(planner="lexical").retired] == [(1, 2)]
    assert [hit.text for hit in library.search("Maya", 5)] == ["Maya joined Nordlys."]
    assert library.flush(planner="lexical").reason == "CURRENT is empty"
    assert not library.check()


def test_what_a_hand_put_back_is_not_replaced_again(library: Library) -> None:
    library.write("Maya works at Fjord Labs.")
    library.flush(plan=into("career", 1))
    line = next(line for line in (library.root / "topics/career.md").read_text().splitlines() if "<seq=1," in line)
    library.write("Maya joined Nordlys.", supersedes=[1])
    library.flush(planner="lexical")
    with (library.root / "topics/career.md").open("a") as file:
        file.write(f"\n{line}\n")
    library.write("Something else.")
    assert library.flush(planner="lexical").retired == ()
    library.check(fix=True)
    library.write("Something else again.")
    assert library.flush(planner="lexical").retired == ()
    assert topic_of(library, 1) == "career"


def test_what_a_run_says_of_a_split_is_where_entries_are_in_the_end() -> None:
    parts = (Part("notes", "Notes", (1, 2)), Part("bag", "Bag", (3, 4)), Part("rye", "Rye", (5, 6)))
    split = Split("notes", parts)
    back = [Merge(("notes", name), "notes", "Notes") for name in ("bag", "rye")]
    assert stories([split], ()) == ["split notes into notes, bag, rye"]
    assert stories([split, *back], ()) == []
    home = Merge(("baking", "rye"), "baking", "Baking")
    assert stories([split, back[0], home], ()) == ["split notes into notes, baking"]


def test_what_is_written_while_a_flush_begins_is_not_called_gone(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.write("Ines saw an owl.")
    read_buffer = buffer.read_buffer

    def later(*given: Any, **named: Any) -> Any:
        Library.open(library.root).write("Maya came by.")
        return read_buffer(*given, **named)

    monkeypatch.setattr(flush, "read_buffer", later)
    report = library.flush()
    assert (report.seqs, report.notes, report.exit_code) == ((1,), (), 0)


def test_a_heading_that_differs_in_marks_alone_is_no_second_one(library: Library) -> None:
    library.write(["Maya works at Nordlys.", "Maya reports to Ines.", "Maya has box 12.", "Maya has box 13."])
    plan = (
        Create("maya", "Maya"), Extend("maya", "Work & travel", (1,)), Extend("maya", "work, travel:", (2,)),
        Extend("maya", "Box 12", (3,)), Extend("maya", "Box 13", (4,)),
    )  # fmt: skip
    assert not library.flush(plan=Plan(plan)).skipped
    page = (library.root / "topics/maya.md").read_text()
    headings = [line for line in page.splitlines() if line.startswith("## ")]
    assert headings == ["## Work & travel", "## Box 12", "## Box 13"]


def test_a_merge_gives_the_page_the_title_that_its_plan_says(library: Library) -> None:
    library.write(["Maya works at Nordlys.", "Ines sells her boat.", "The choir sings."])
    steps = [step for seq, name in enumerate(("Maya", "Ines", "Choir"), 1)
             for step in (Create(name.lower(), name), Extend(name.lower(), "", (seq,)))]  # fmt: skip
    library.flush(plan=Plan(tuple(steps)))
    assert not library.flush(plan=Plan((Merge(("maya", "ines"), "maya", "Maya and Ines"),))).skipped
    assert {row.topic: row.title for row in library.catalog()} == {"choir": "Choir", "maya": "Maya and Ines"}
    page = library.root / "topics/choir.md"
    page.write_text(page.read_text().replace("aux: {}", "aux: {pinned: true}"))
    library.flush(plan=Plan((Merge(("choir", "maya"), "choir", "Everything"),)))
    assert [row.title for row in library.catalog()] == ["Choir"], "a person's own page keeps its title"
    assert not library.check()
