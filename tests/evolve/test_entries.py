"""All-Mem's operators on entries: divided into exact pieces, joined when they say the same; nothing is lost."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infinimem import Library
from infinimem.cli import main
from infinimem.model import Create, Divide, Extend, Filter, Unit
from infinimem.plan.lexical import pieces_of
from infinimem.plan.paper import Plan, parse_plan, render_plan
from infinimem.store.evidence import all_records, retirement
from infinimem.text.signature import parse_seqs
from tests.conftest import NIGHTLY
from tests.faults.library_state import assert_conserved, places, visible_files

START = datetime(2026, 5, 1, 9, tzinfo=UTC)
BOTH = "Maya works at Nordlys and Ines keeps the key 4711.\nThe office opens at nine."


@pytest.fixture
def library(tmp_path: Path) -> Library:
    now = [START]

    def clock() -> datetime:
        now[0] += timedelta(days=1)
        return now[0]

    library = Library.open(tmp_path / "memory", create=True, clock=clock)
    library.write([{"text": BOTH, "source": "user", "time": "2026-04-01", "ns": "work", "links": "2:related",
                    "supersedes": "99"}, {"text": "Ines keeps the key 4711 in a drawer.", "ns": "work"},
                   {"text": "Ines keeps a key.", "ns": "work"}])  # fmt: skip
    library.flush(plan=Plan((Create("work", "Work"), Extend("work", "Office", (1, 2, 3)))))
    return library


def texts(library: Library, filter: Filter = Filter()) -> dict[int, str]:
    units = library.index_at(filter).entries((), filter)
    return {seq: unit.text for unit in units for seq in unit.seqs}


def test_an_entry_is_divided_into_exact_pieces_with_seqs_and_lineage(library: Library) -> None:
    before = visible_files(library.root)
    pieces = ("Maya works at Nordlys", "Ines keeps the key 4711.", "The office opens at nine.")
    assert library.divide(1, pieces, dry_run=True).diff
    assert visible_files(library.root) == before
    report = library.divide(1, pieces)
    assert (report.exit_code, [(gone.seq, gone.why) for gone in report.retired]) == (0, [(1, "split")])
    assert {seq: texts(library)[seq] for seq in (4, 5, 6)} == dict(zip((4, 5, 6), pieces, strict=True))
    here = library.trace(5).here
    assert here is not None
    fields = dict(here.fields)
    assert (fields["time"], fields["source"], fields["ns"], fields["links"], fields["split_from"]) == (
        "2026-04-01", "user", "work", "2:related", "1",
    )  # fmt: skip
    assert "supersedes" not in fields
    story = library.trace(1)
    assert (story.fate, story.parts, story.words[-1][1].text) == ("split", (4, 5, 6), BOTH)
    assert [finding for finding in library.check() if finding.problem.code != "unsettled"] == []
    assert_conserved(library.root, set(range(1, 7)))
    assert library.write("Next.") == [7]
    assert {unit.seqs for seq in (4, 5, 6) for unit in library.index().replaced_by(seq)} == {(1,)}


def test_a_division_is_undone_and_its_seqs_are_never_given_again(library: Library) -> None:
    before = {path: content for path, content in visible_files(library.root).items() if "evidence" not in path}
    library.divide(1)
    assert sorted(texts(library)) == [2, 3, 4, 5]
    library.undo()
    after = {path: content for path, content in visible_files(library.root).items() if "evidence" not in path}
    assert after == before
    assert library.write("Next.") == [6]
    assert_conserved(library.root, set(range(1, 7)))
    assert library.trace(4).fate == "undone"
    assert library.check() == []


def test_what_was_divided_is_whole_at_dates_before_it_was(library: Library) -> None:
    library.divide(1)
    assert sorted(texts(library, Filter(known_at="2026-05-03"))) == [1, 2, 3]
    assert sorted(texts(library, Filter(as_of="2026-05-03"))) == [2, 3, 4, 5]
    library.undo()
    assert sorted(texts(library, Filter(as_of="2026-05-03"))) == [1, 2, 3]
    assert [row.why for row in library.timeline(1)] == [""]


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (Divide(1, ("Maya works at Nordlys", "Ines keeps the key 4712.")), "is no piece of the words"),
        (Divide(1, ("Ines keeps the key 4711.", "Maya works at Nordlys")), "is no piece of the words"),
        (Divide(1, ("Maya works", "The office opens at nine.")), "leaves out: at, Nordlys"),
        (Divide(1, (BOTH,)), "needs two pieces"),
        (Divide(1, (BOTH, " ")), "needs two pieces"),
        (Divide(9, ("a", "b")), "no topic shows seq 9"),
        (Divide(1, ("a", "b"), conf=0.5), "confidence 0.5 is below the gate"),
    ],
)
def test_what_may_not_be_divided(library: Library, step: Divide, why: str) -> None:
    before = visible_files(library.root)
    report = library.flush(plan=Plan((step,)))
    assert why in report.skipped[0].why
    assert visible_files(library.root) == before
    assert library.write("Next.") == [4], "and no seq is spent"


def test_a_plan_on_paper_divides_and_gives_the_seqs_itself(library: Library) -> None:
    plan = parse_plan(render_plan(Plan((Divide(1, ("Maya works at Nordlys", "x"), seqs=(1, 2)),))), "p")
    assert plan.steps == (Divide(1, ("Maya works at Nordlys", "x")),)
    first, _, rest = BOTH.partition(" and ")
    library.flush(plan=Plan((Divide(1, (first, rest), seqs=(2, 3)), Divide(2, ("Ines keeps the key 4711", "in a"
                            " drawer.")))))  # fmt: skip
    assert sorted(texts(library)) == [3, 4, 5, 6, 7]
    assert_conserved(library.root, set(range(1, 8)))


def test_entries_that_say_the_same_become_one(library: Library) -> None:
    report = library.join([3, 2])
    assert [(gone.seq, gone.by, gone.why) for gone in report.retired] == [(3, 2, "duplicate")]
    assert_conserved(library.root, {1, 2, 3})
    library.undo()
    assert sorted(texts(library)) == [1, 2, 3]
    refused = library.join([2, 3], "Ines keeps the key 4712 in a drawer.")
    assert "says what no source says: 4712" in refused.skipped[0].why
    line = "Ines keeps the key 4711 in a drawer of the desk."
    report = library.join([2, 3], line)
    assert report.exit_code == 0
    here = library.trace(3).here
    assert here is not None
    assert (here.seqs, here.text) == ((2, 3), line)
    assert [entry.text for _, entry in library.trace(3).words] == ["Ines keeps a key.", line]
    assert [edit.kind for edit in library.review().edits if not edit.undone] == ["joined"]
    assert library.check() == []
    assert_conserved(library.root, {1, 2, 3})
    assert texts(library, Filter(known_at="2026-05-03"))[3] == "Ines keeps a key."
    library.undo()
    assert texts(library)[3] == "Ines keeps a key."


def test_entries_of_different_ns_do_not_become_one(library: Library) -> None:
    library.write("Ines keeps a key.", meta={"ns": "home"})
    library.flush(plan=Plan((Extend("work", "", (4,)),)))
    assert "different ns" in library.join([2, 4], "Ines keeps the key 4711 in a drawer.").skipped[0].why
    assert "different ns" in library.join([2, 4]).skipped[0].why


def test_the_commands(library: Library, capsys: pytest.CaptureFixture[str]) -> None:
    here = ["-L", str(library.root)]
    pieces = ["Maya works at Nordlys", "Ines keeps the key 4711.", "The office opens at nine."]
    assert main([*here, "split", "1", *pieces]) == 0
    assert "split 1 into 4, 5, 6" in capsys.readouterr().out
    assert main([*here, "merge", "5", "3"]) == 0
    assert "retired 3: duplicate of 5" in capsys.readouterr().out
    assert main([*here, "trace", "1"]) == 0
    assert "divided into 5: Ines keeps the key 4711. [work:" in capsys.readouterr().out
    assert main([*here, "merge", "4", "5", "--text", "Maya is gone."]) == 5


@given(st.text(alphabet="Ab. !\n。?1", max_size=40))
def test_sentences_are_exact_pieces_in_order(text: str) -> None:
    at = 0
    for piece in pieces_of(text):
        at = text.index(piece, at) + len(piece)


@pytest.mark.parametrize("number", range(30 if NIGHTLY else 1))
def test_every_retired_entry_is_reached_after_many_rounds(number: int, tmp_path: Path) -> None:
    """Random flushes, divisions, joins, topic splits and merges, corrections, undos, forgetting: all are reached."""
    chance = random.Random(number)
    now = [START]
    library = Library.open(tmp_path / "memory", create=True, clock=lambda: now[0])
    said: dict[int, str] = {}
    for turn in range(120 if NIGHTLY else 50):
        now[0] += timedelta(hours=5)
        shown = sorted(texts(library))
        match chance.randrange(8) if turn > 2 else 0:
            case 0 | 1:
                old = [chance.choice(shown)] if shown and chance.random() < 0.6 else []
                library.write(
                    f"Box {turn} is red. It stands in room {turn * 3}. The lid {turn} is lost.", supersedes=old
                )
                library.write(f"Box {turn} is red.")
                said |= {seq: unit.text for seq, unit in shown_alone(library).items()}
                library.flush(planner="lexical")
            case 2 if shown:
                library.divide(chance.choice(shown))
            case 3 if len(shown) > 1:
                library.join(chance.sample(shown, 2))
            case 4 if library.catalog():
                library.split(chance.choice(library.catalog()).topic)
            case 5 if len(library.catalog()) > 1:
                library.merge([row.topic for row in library.catalog()[:2]])
            case 6:
                library.undo()
            case 7 if shown:
                library.forget([chance.choice(shown)])
    recoverability = library.stats().recoverability
    assert recoverability.share == 1.0
    assert library.check() == [] or {finding.problem.code for finding in library.check()} <= {"unsettled"}
    assert_each_is_one_hop_away(library, said)
    buffer, topics, retired, _ = places(library.root)
    assert recoverability.retired + library.stats().forgotten == len(retired - set(buffer) - set(topics))


def shown_alone(library: Library) -> dict[int, Unit]:
    """What stands in CURRENT or a topic as a line of its own, by seq."""
    return {unit.seqs[0]: unit for unit in library.index().entries((), Filter()) if len(unit.seqs) == 1}


def assert_each_is_one_hop_away(library: Library, said: dict[int, str]) -> None:
    """From what is gone one event leads to what took its place, or says why it is gone; its words are as written."""
    buffer, topics, retired, _ = places(library.root)
    records = all_records(library.root)
    for seq in sorted(retired - set(buffer) - set(topics)):
        event = retirement(records[seq])
        assert event is not None
        if event.kind == "forget":
            continue
        assert seq not in said or said[seq] in [entry.text for _, entry in records[seq].entries]
        why, by = event.get("why"), parse_seqs(event.get("by"))
        assert why in ("superseded", "duplicate", "split", "undone", "expired", "deleted")
        assert by or why in ("undone", "expired", "deleted"), (seq, why)
        for successor in by:
            known = successor in topics or successor in buffer or successor in records
            assert known, f"{seq} → {successor}: {why}"


def test_forgetting_what_was_divided_names_its_pieces(library: Library) -> None:
    library.divide(1, ("Maya works at Nordlys", "Ines keeps the key 4711.", "The office opens at nine."))
    report = library.forget([1], dry_run=True)
    assert [(copy.seq, copy.why) for copy in report.copies] == [(seq, "taken from it") for seq in (4, 5, 6)]
