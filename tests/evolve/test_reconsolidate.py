"""Reconsolidation: links learned from use; bounded, the same for any order, deaf to repetition, undone like a flush."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infinimem import Library
from infinimem.ask import Answer, Evidence
from infinimem.cli import main
from infinimem.errors import NotFound
from infinimem.evolve.recall import asked, mark_of, note_ask
from infinimem.evolve.reconsolidate import learn, questions_in, weigh
from infinimem.model import Create, Extend, Span
from infinimem.plan.paper import Plan
from infinimem.plan.rules import MOST_LINKS
from infinimem.readers.evidence import Switches, gather
from infinimem.readers.links import Walk
from infinimem.store.usage import RECALLS, read_recalls
from infinimem.text.document import parse
from infinimem.text.signature import parse_links
from tests.faults.library_state import assert_conserved, visible_files
from tests.readers.scripts import memory_of

NOW = datetime(2026, 5, 1, 9, tzinfo=UTC)
NUMBER = 12


def make(folder: Path) -> Library:
    library = Library.open(folder / "memory", create=True, clock=lambda: NOW)
    library.write([f"The barrel number {number} holds herring." for number in range(1, NUMBER + 1)])
    seqs = tuple(range(1, NUMBER + 1))
    library.flush(plan=Plan((Create("a", "A"), Extend("a", "", seqs[:6]), Create("b", "B"), Extend("b", "", seqs[6:]))))
    return library


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return make(tmp_path)


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A library that nobody changes."""
    library = make(tmp_path_factory.mktemp("still"))
    library.index()
    return library


def row(question: int, cited: list[Any], *, days: float = 0, id: str = "", shown: list[Any] | None = None) -> Any:
    at = (NOW - timedelta(days=days)).isoformat()
    return {
        "at": at,
        "id": id or f"q{question}-{days}",
        "asked": f"{question}",
        "shown": shown or cited,
        "cited": cited,
    }


def put(library: Library, rows: list[Any]) -> None:
    (library.root / RECALLS).write_text("".join(json.dumps(row) + "\n" for row in rows))


def links(library: Library) -> dict[int, list[int]]:
    found = {}
    for path in sorted((library.root / "topics").rglob("*.md")):
        for entry in parse(path.name, path.read_bytes()).entries:
            ties = parse_links(entry.signature.get("links"))
            assert len(ties) <= MOST_LINKS
            if ties:
                found[entry.seq] = [tie.seqs[0] for tie in ties]
    return found


def words(library: Library) -> list[tuple[int, str]]:
    return [
        (entry.seq, entry.text)
        for path in sorted((library.root / "topics").rglob("*.md"))
        for entry in parse(path.name, path.read_bytes()).entries
    ]


ROWS = st.lists(
    st.builds(
        row,
        st.integers(1, 6),
        st.lists(st.integers(1, NUMBER + 2), max_size=4),
        days=st.sampled_from([0, 0.5, 30, 400]),
        id=st.sampled_from(["x", "y", "z"]),
    )
    | st.builds(
        lambda of, verdict, days: {"at": (NOW - timedelta(days=days)).isoformat(), "of": of, "verdict": verdict},
        st.sampled_from(["x", "y", "z"]), st.sampled_from(["good", "bad"]), st.sampled_from([0, 1, 2]),
    )
    | st.sampled_from([{}, {"at": "never", "asked": "1"}, {"at": 7}, {"asked": 3, "cited": "x"}]),
    max_size=14,
)  # fmt: skip


@given(ROWS, st.randoms(use_true_random=False))
def test_the_order_of_the_log_does_not_matter(still: Library, rows: list[Any], chance: random.Random) -> None:
    shuffled = list(rows)
    chance.shuffle(shuffled)
    lessons = learn(rows, still.index(), still.settings, NOW)
    assert lessons == learn(shuffled, still.index(), still.settings, NOW)
    assert lessons == learn([*rows, *shuffled, *rows], still.index(), still.settings, NOW)
    for weight in weigh(questions_in(rows), NOW, 3, 86400.0).values():
        assert 0 <= weight.weight <= 1


def test_a_question_that_is_repeated_a_thousand_times_changes_nothing(library: Library) -> None:
    before = visible_files(library.root)
    put(library, [row(1, [1, 8], days=day / 100, id=f"i{day}") for day in range(1000)])
    assert not library.reconsolidate().lessons
    put(library, [row(1, [1, 8], days=day / 100) for day in range(1000)] + [row(2, [1, 8])])
    assert not library.reconsolidate().lessons
    assert visible_files(library.root) == before


def test_a_thousand_junk_questions_link_nothing_and_move_no_ranking(library: Library) -> None:
    chance = random.Random(7)
    before = visible_files(library.root)
    ranking = [hit.seqs for hit in library.search("barrel herring number", NUMBER)]
    for number in range(1000):  # as the bm25 reader notes them: shown, nothing cited, nobody said it was good
        shown = chance.sample(range(1, NUMBER + 1), 8)
        put_more(library, row(number, [], shown=shown))
    library.reconsolidate()
    assert visible_files(library.root) == before
    assert [hit.seqs for hit in library.search("barrel herring number", NUMBER)] == ranking


def test_a_thousand_junk_questions_that_were_answered_displace_nothing_that_was_found(library: Library) -> None:
    """The stated bound: search does not look at links at all, and a reader adds to what it found at most a few."""
    chance = random.Random(11)
    questions = ["barrel herring number 3", "which barrel holds number 12", "herring"]
    memory = memory_of(library)
    found = [[hit.unit for hit in library.search(one, 4)] for one in questions]
    alone = Switches(expand=False, recent=False)
    plain = [
        gather(memory, one, units, k=4, switches=alone).pieces for one, units in zip(questions, found, strict=True)
    ]
    for number in range(1000):
        put_more(library, row(number, chance.sample(range(1, NUMBER + 1), chance.randint(2, 6))))
    assert library.reconsolidate().lessons, "so much junk does link"
    assert max(map(len, links(library).values())) <= MOST_LINKS
    for one, units, before in zip(questions, found, plain, strict=True):
        assert [hit.seqs for hit in library.search(one, 4)] == [unit.seqs for unit in units]
        now = [hit.unit for hit in library.search(one, 4)]
        after = {piece.seqs for piece in gather(memory_of(library), one, now, k=4, switches=alone).pieces}
        assert {piece.seqs for piece in before} <= after
        assert len(after) - len(before) <= Walk().room(4)


def test_a_flush_reconsolidates_only_where_the_setting_asks_for_it(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(library, [row(number, [1, 8]) for number in range(3)])
    library.write("Barrel number 77 holds tar.")
    library.flush(planner="lexical")
    assert links(library) == {}
    monkeypatch.setenv("INFINIMEM_LINKS_IN_FLUSH", "true")
    asking = Library.open(library.root, clock=lambda: NOW)
    asking.write("Barrel number 78 holds rope.")
    before = visible_files(library.root)
    asking.flush(planner="lexical", dry_run=True)
    assert visible_files(library.root) == before
    report = asking.flush(planner="lexical")
    assert report.exit_code == 0
    assert links(library) == {1: [8], 8: [1]}
    asking.undo()
    assert links(library) == {}, "one flush, one undo"


def put_more(library: Library, one: Any) -> None:
    with (library.root / RECALLS).open("a") as file:
        file.write(json.dumps(one) + "\n")


def test_what_answered_different_questions_together_is_linked_explained_and_undone(library: Library) -> None:
    put(library, [row(number, [1, 8]) for number in range(3)] + [row(9, [1, 9])])
    before, said = visible_files(library.root), words(library)
    dry = library.reconsolidate(dry_run=True)
    assert visible_files(library.root) == before
    assert [one.why for one in dry.lessons] == [
        "1 and 8 answered 3 different questions together: weight 1.00",
        "8 and 1 answered 3 different questions together: weight 1.00",
    ]
    learned = library.reconsolidate()
    assert learned.report.exit_code == 0
    assert links(library) == {1: [8], 8: [1]}
    assert words(library) == said
    assert library.check() == []
    assert_conserved(library.root, set(range(1, NUMBER + 1)))
    assert not library.reconsolidate().lessons
    library.undo()
    assert visible_files(library.root) == before


def test_summaries_stay_as_they_are_and_only_the_linked_lines_change(library: Library) -> None:
    page = library.root / "topics" / "a.md"
    page.write_text(re.sub("summary: .*", "summary: Six barrels of herring.", page.read_text()))
    before = page.read_text().splitlines()
    put(library, [row(number, [1, 8]) for number in range(3)])
    library.reconsolidate()
    after = page.read_text().splitlines()
    changed = [new for new in after if new not in before]
    assert [line[:30] for line in changed if line.startswith("- <")] == ["- <seq=1, observed=2026-05-01T"]
    assert "summary: Six barrels of herring." in after


def test_no_entry_gets_more_than_eight_links_and_the_strongest_win(library: Library) -> None:
    rows = [row(number, list(range(1, NUMBER + 1))) for number in range(3)]
    put(library, [*rows, *(row(10 + number, [1, 12], days=1) for number in range(3))])
    library.reconsolidate()
    assert all(len(there) == MOST_LINKS for there in links(library).values())
    assert 12 in links(library)[1]


def test_links_of_a_person_are_left_alone_and_count(library: Library) -> None:
    page = library.root / "topics" / "a.md"
    own = "+".join(f"{seq}:supports" for seq in range(2, 9))
    page.write_text(page.read_text().replace("<seq=1, ", f"<seq=1, links={own}, "))
    put(library, [row(number, [1, 8, 9, 10]) for number in range(3)])
    library.reconsolidate()
    assert links(library)[1] == [2, 3, 4, 5, 6, 7, 8, 8]
    put(library, [])
    library.reconsolidate()
    assert links(library) == {1: [2, 3, 4, 5, 6, 7, 8]}


def test_what_was_learned_fades_and_a_bad_word_weighs_against_it(library: Library) -> None:
    put(library, [row(number, [1, 8]) for number in range(3)])
    library.reconsolidate()
    put(library, [row(number, [1, 8], days=200) for number in range(3)])
    assert [one.why for one in library.reconsolidate().lessons] == [
        "1 is no longer linked to 8: it was useful too long ago, or was called bad since",
        "8 is no longer linked to 1: it was useful too long ago, or was called bad since",
    ]
    assert links(library) == {}
    bad = {"at": NOW.isoformat(), "verdict": "bad"}
    rows = [row(number, [1, 8], id=f"q{number}") for number in range(5)]
    put(library, [*rows, *({**bad, "of": f"q{number}"} for number in range(2))])
    assert not library.reconsolidate().lessons


def test_a_link_follows_what_took_an_entrys_place(library: Library) -> None:
    library.write("The barrel number 8 holds cod.", supersedes=[8])
    library.flush()
    put(library, [row(number, [1, 8]) for number in range(3)])
    library.reconsolidate()
    assert links(library) == {1: [13], 13: [1]}


def test_a_seq_that_has_other_words_now_is_another_entry(library: Library) -> None:
    marks = [[seq, mark_of(f"The barrel number {seq} holds herring.")] for seq in (1, 8)]
    put(library, [row(number, marks) for number in range(3)])
    assert [one.step.source for one in library.reconsolidate(dry_run=True).lessons] == ["1", "8"]
    put(library, [row(number, [marks[0], [8, mark_of("What stood there before a merge.")]]) for number in range(3)])
    assert not library.reconsolidate(dry_run=True).lessons


def test_entries_of_different_ns_and_those_in_current_are_not_linked(library: Library) -> None:
    library.write("The barrel number 13 holds cod.", meta={"ns": "home"})
    library.flush()
    library.write("The barrel number 14 holds eel.")
    put(library, [row(number, [1, 13, 14]) for number in range(4)])
    assert not library.reconsolidate().lessons


def answer_of(*seqs: int, cited: bool = True) -> Answer:
    pieces = tuple(Evidence("a", Span(seq, seq), "words", (seq,)) for seq in seqs)
    return Answer("said" if cited else "", True, pieces, tuple(piece.place for piece in pieces))


def test_an_ask_is_noted_without_a_word_of_it(library: Library) -> None:
    library.ask("Which barrel holds herring?", k=3)
    [noted] = read_recalls(library.root)
    assert (len(noted["shown"]), noted["cited"]) == (3, [])
    content = (library.root / RECALLS).read_text().casefold()
    assert "barrel" not in content
    assert "herring" not in content
    assert asked("Which barrel holds herring?", "english") == asked("herring: what barrels hold it", "english")
    note_ask(library.root, "Which barrel?", answer_of(4, 2), "english", NOW)
    assert [seq for seq, _ in read_recalls(library.root)[-1]["cited"]] == [4, 2]
    library.ask("Who plays the xylophone?")
    assert len(read_recalls(library.root)) == 2


def test_nothing_is_noted_where_the_settings_say_so(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFINIMEM_ASK_NOTES", "no")
    library = Library.open(library.root)
    library.ask("Which barrel holds herring?")
    assert not (library.root / RECALLS).exists()
    with pytest.raises(NotFound):
        library.feedback("good")


def test_a_good_word_without_a_model_teaches_and_a_bad_one_does_not(library: Library) -> None:
    questions = ["barrel number 1 herring", "herring in barrel 1", "number of the barrel 1", "barrel 1: does it hold"]
    for question in [*questions, *(f"{one} really true maybe" for one in questions)]:
        library.ask(question, k=2)
        library.feedback("good")
    learned = library.reconsolidate(dry_run=True)
    assert {one.step.source for one in learned.lessons}
    for row in read_recalls(library.root):
        if "asked" in row:
            put_more(library, {"at": NOW.isoformat(timespec="milliseconds"), "of": row["id"], "verdict": "bad"})
    assert not library.reconsolidate().lessons


def test_the_commands_explain_each_link(library: Library, capsys: pytest.CaptureFixture[str]) -> None:
    run: Callable[..., int] = lambda *arguments: main(["-L", str(library.root), *arguments])  # noqa: E731
    assert run("ask", "herring") == 0
    assert run("feedback", "good") == 0
    assert run("ask", "--bad") == 0
    assert run("ask", "herring barrel", "--good") == 0
    assert [one["verdict"] for one in read_recalls(library.root) if "verdict" in one] == ["good", "bad", "good"]
    assert run("ask", "--good", "--bad") == 2
    assert run("ask") == 2
    assert run("feedback", "so-so") == 2
    now = datetime.now(UTC).isoformat()
    put(library, [{**row(number, [1, 8]), "at": now} for number in range(3)])
    capsys.readouterr()
    assert run("reconsolidate", "--dry-run") == 0
    assert capsys.readouterr().out == (
        "+ 1 and 8 answered 3 different questions together: weight 1.00\n"
        "  1  The barrel number 1 holds herring.\n"
        "  8  The barrel number 8 holds herring.\n"
    )
    assert run("reconsolidate", "--json") == 0
    assert json.loads(capsys.readouterr().out)["lessons"][0]["step"] == {
        "link": {"source": 1, "to": 8, "relation": "recalled"}
    }
    assert run("undo") == 0
    assert links(library) == {}
