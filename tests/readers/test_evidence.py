"""What evidence is gathered: what holds now, what stands around it, all of it where the question counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from infinimem import Library
from infinimem.model import Filter, Unit
from infinimem.readers.evidence import Gathered, Switches, gather
from infinimem.readers.links import Walk
from infinimem.readers.questions import NEWEST, OLDEST, kind_of, subject_words
from tests.readers.scripts import library_of, memory_of


def units(library: Library, *queries: str, filter: Filter = Filter()) -> list[Unit]:
    return [library.search(query, 1, filter=filter)[0].unit for query in queries]


def texts(gathered: Gathered) -> list[str]:
    return [piece.text for piece in gathered.pieces]


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return library_of(
        tmp_path / "memory",
        {
            "maya/Work": [
                {"text": "Maya works at Fjord Labs.", "time": "2025-09-01"},
                "The office is in an old ice store.",
                "Bring a jumper.",
            ],
            "maya/Food": ["Maya eats no cashews."],
            "boat": ["The boat Terna has berth 12."],
        },
    )


def gathered(library: Library, question: str, *found: str, filter: Filter = Filter(), **more: Any) -> Gathered:
    more.setdefault("sure", True)
    return gather(memory_of(library, filter), question, units(library, *found, filter=filter), **more)


def test_a_snippet_grows_to_its_heading_block_within_the_room(library: Library) -> None:
    found = gathered(library, "cold office", "jumper")
    assert texts(found)[0] == "Bring a jumper."
    assert set(texts(found)) >= {"Maya works at Fjord Labs.", "The office is in an old ice store."}
    assert "Maya eats no cashews." not in texts(found)
    alone = gathered(library, "jumper", "jumper", switches=Switches(expand=False, supplement=False, recent=False))
    assert texts(alone) == ["Bring a jumper."]
    tight = gathered(library, "jumper", "jumper", room=40)
    assert len(tight.pieces) == 1


def test_what_a_flush_has_not_replaced_yet_is_replaced_all_the_same(library: Library) -> None:
    library.write("Maya joined Nordlys.", time="2026-05-01", supersedes=1)
    library.write("Maya left Nordlys for Vestnett.", time="2026-06-01", supersedes=6)
    now = gathered(library, "Where does Maya work?", "Fjord Labs")
    assert texts(now)[0] == "Maya left Nordlys for Vestnett."
    assert "Maya works at Fjord Labs." not in texts(now)
    assert "Maya joined Nordlys." not in texts(now), "nor does the list of what is recent bring it back"


def test_the_old_value_comes_along_marked_when_the_question_is_about_history(library: Library) -> None:
    library.write("Maya joined Nordlys.", time="2026-05-01", supersedes=1)
    for flushed in (False, True):
        if flushed:
            plan = library.root.parent / "next.yaml"
            plan.write_text(
                "plan: 1\nsteps:\n- extend: {topic: maya, heading: Work, seqs: 6}\n"
                "- retire: {seq: 1, by: 6, why: superseded}\n"
            )
            library.flush(plan=plan)
        then = gathered(library, "Where did Maya work before?", "Nordlys")
        old = next(piece for piece in then.pieces if piece.text == "Maya works at Fjord Labs.")
        assert (old.retired, old.by) == ("superseded", 6)
        new = next(piece for piece in then.pieces if piece.text == "Maya joined Nordlys.")
        assert not new.retired
        assert "Maya works at Fjord Labs." not in texts(gathered(library, "Where does Maya work?", "Nordlys"))
        added = gathered(library, "Where did Maya work before Nordlys?", "berth", switches=Switches(recent=False))
        assert "Maya works at Fjord Labs." in texts(added), "what BM25 added has a history, too"
    assert any(piece.retired for piece in gathered(library, "Maya work", "Nordlys", filter=Filter(retired=True)).pieces)


def test_as_of_a_date_what_held_then_holds(library: Library) -> None:
    library.write("Maya joined Nordlys.", time="2026-05-01", supersedes=1)
    then = gathered(library, "Where did Maya work?", "Maya works", filter=Filter(as_of="2026-01"))
    assert texts(then)[0] == "Maya works at Fjord Labs."
    assert not then.pieces[0].retired
    assert "Maya joined Nordlys." not in texts(then)


def test_links_are_walked_as_far_as_the_hops_go(library: Library) -> None:
    library.write({"text": "See the berth list.", "links": "5"})
    library.write({"text": "The list is in the blue folder.", "links": "6"})
    found = gathered(library, "blue folder", "blue folder", walk=Walk(hops=1),
                     switches=Switches(supplement=False, recent=False))  # fmt: skip
    assert texts(found) == ["The list is in the blue folder.", "See the berth list."]
    cut = gathered(library, "folder", "blue folder", switches=Switches(supplement=False, recent=False, links=False))
    assert texts(cut) == ["The list is in the blue folder."]


def test_too_little_is_supplemented_without_repeats(library: Library) -> None:
    found = gathered(library, "Maya cashews", "berth", switches=Switches(expand=False, recent=False))
    assert texts(found)[0] == "The boat Terna has berth 12."
    assert "Maya eats no cashews." in texts(found)
    assert len(set(texts(found))) == len(texts(found))
    alone = gathered(library, "Maya cashews", "berth", switches=Switches(False, False, False, False))
    assert texts(alone) == ["The boat Terna has berth 12."]


def test_what_was_written_last_is_always_there_and_never_too_much(library: Library) -> None:
    library.write([f"Note number {number} of this evening." for number in range(200)])
    found = gathered(library, "cashews", "cashews", switches=Switches(expand=False, supplement=False))
    assert "Note number 199 of this evening." in texts(found)
    assert "Note number 1 of this evening." not in texts(found)
    filter = Filter(where=(("source", "nobody"),))
    assert not gather(memory_of(library, filter), "anything", []).pieces


def test_the_tail_of_a_buffer_that_was_never_flushed_is_read_alone(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "m", create=True)
    library.write([f"Line {number}\nwith a second one about number {number}." for number in range(3000)])
    found = gather(memory_of(library), "xylophone", [])
    assert found.pieces[0].text.startswith("Line 2999\n")
    [hit] = library.search("2999", 1)
    assert found.pieces[0].place == f"CURRENT:{hit.line}"


def test_more_than_the_room_is_never_gathered(library: Library) -> None:
    library.write([f"Maya wrote a long note about work: {'word ' * 50}{number}" for number in range(50)])
    found = gather(memory_of(library), "Maya work", [], room=500)
    assert sum(len(piece.text) for piece in found.pieces) < 4 * 600
    assert found.pieces


SWIMS = [
    {"text": f"Jonas swam {number} lengths today.", "time": f"2026-{1 + number * 5 % 12:02}-01"}
    for number in range(1, 13)
]


@pytest.fixture
def swims(tmp_path: Path) -> Library:
    return library_of(tmp_path / "swims", {"jonas": SWIMS, "liv": ["Liv swam to the island.", "Liv has a cat."]})


def test_a_counting_question_gets_all_that_match_in_order_of_time(swims: Library) -> None:
    found = gather(memory_of(swims), "How many times did Jonas swim lengths?", units(swims, "Liv cat"), k=4)
    assert found.total == 13, "twelve that match, and what a model found besides"
    assert found.complete
    dated = [piece.time for piece in found.pieces if piece.time]
    assert dated == sorted(dated)
    assert len(dated) == 12


@pytest.mark.parametrize(
    ("question", "end"),
    [("When was the last time Jonas swam lengths?", -1), ("How long has Jonas been swimming lengths?", 0)],
)
def test_where_not_all_fit_the_end_that_matters_is_kept(swims: Library, question: str, end: int) -> None:
    found = gather(memory_of(swims), question, [], room=150)
    assert not found.complete
    assert found.total == 12
    assert 0 < len(found.pieces) < 12
    times = sorted(str(swim["time"]) for swim in SWIMS)
    assert found.pieces[end].time == times[end]


def test_the_models_own_complete_list_comes_before_a_guessed_one(swims: Library) -> None:
    memory = memory_of(swims)
    listed = memory.index.entries(("liv",))
    found = gather(memory, "How many things are there?", [], listed=listed, k=1)
    assert found.complete
    assert {piece.text for piece in found.pieces} >= {"Liv swam to the island.", "Liv has a cat."}


def test_a_replaced_entry_is_counted_once(swims: Library) -> None:
    swims.write("Jonas swam 99 lengths today, not 1.", time="2026-06-01", supersedes=1)
    now = gather(memory_of(swims), "How many times did Jonas swim lengths?", [])
    assert "Jonas swam 1 lengths today." not in texts(now)
    assert now.total == 12
    both = gather(memory_of(swims), "How often did the lengths that Jonas swam change?", [])
    assert [piece.text for piece in both.pieces if piece.retired] == ["Jonas swam 1 lengths today."]


def test_filters_hold_for_everything_that_is_gathered(swims: Library) -> None:
    swims.write({"text": "Jonas swam in the sea.", "links": "3", "source": "Eirik"})
    filter = Filter(where=(("source", "Eirik"),))
    memory = memory_of(swims, filter)
    for question in ("How many times did Jonas swim?", "Where does Jonas swim?"):
        found = gather(memory, question, units(swims, "sea", filter=filter), sure=True)
        assert texts(found) == ["Jonas swam in the sea."]


@pytest.mark.parametrize("question", [
    "How many books did Liv read?", "How often does Jonas swim?", "When was the last time we saw Anke?",
    "Wie viele Züge?", "Wie oft war Jonas krank?", "Wann waren wir zuletzt in Kiel?", "Combien de livres ?",
    "Since when is Dr Sheikh our GP?",
    "Seit wann wohnt Liv hier?", "List all birds", "¿Cuántas veces?", "How long has the boiler been broken?",
])  # fmt: skip
def test_counting_questions_are_known(question: str) -> None:
    assert kind_of(question).counts


@pytest.mark.parametrize("question", [
    "Where does Maya work?", "What is on the shopping list?", "How much does the flat cost?",
    "What did we do last week?",
    "Was kostet die Fähre?", "Who is Ines?", "At last, what is the code?",
])  # fmt: skip
def test_other_questions_are_not(question: str) -> None:
    assert not kind_of(question).counts


def test_kinds() -> None:
    assert kind_of("the last time?").end == NEWEST
    assert kind_of("since when?").end == OLDEST
    assert kind_of("Where did Maya work before?").history
    assert kind_of("Wo wohnte Oma früher?").history
    assert kind_of("Où habitait-elle avant ?").history
    assert not kind_of("Was kostet die Fähre?").history
    assert not kind_of("Where does Maya work?").history
    assert subject_words("How many times did Jonas swim in the last month?", "english")[:2] == ["jona", "swim"]
