"""Summaries: their versions without git, whether they keep to the entries, how far they drift."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonschema
import pytest

from infinimem import Library
from infinimem.cli import main
from infinimem.cli.schemas import schema_of
from infinimem.evolve.interpretation import drift
from infinimem.llm.client import OpenAIModel
from infinimem.model import Create, Extend, Filter, Retire, Summarise
from infinimem.plan.paper import Plan
from infinimem.store.summaries import SUMMARIES
from tests.llm.planner import given, sensible, step_of
from tests.llm.server import Behaviour, Payload, serving


@pytest.fixture
def library(tmp_path: Path) -> Library:
    now = [datetime(2026, 5, 1, 9, tzinfo=UTC)]

    def clock() -> datetime:
        now[0] += timedelta(hours=1)
        return now[0]

    library = Library.open(tmp_path / "memory", create=True, clock=clock)
    library.write("Maya works at Fjord Labs in Bergen.")
    library.flush(
        plan=Plan((Create("work", "Work"), Extend("work", "", (1,)), Summarise("work", "Maya at Fjord Labs.")))
    )
    return library


def page(library: Library) -> Path:
    return library.root / "topics" / "work.md"


def codes(library: Library) -> list[str]:
    return [finding.problem.code for finding in library.check()]


def test_a_summary_has_its_versions_and_its_drift_from_the_first(library: Library) -> None:
    library.write("Maya left Fjord Labs for Nordlys.", supersedes=[1])
    library.flush(plan=Plan((Extend("work", "", (2,)), Summarise("work", "Maya left Fjord Labs."))))
    page(library).write_text(page(library).read_text().replace("Maya left Fjord Labs.", "Maya is at Nordlys.", 1))
    first, second, third = library.summaries("work")
    assert [(one.text, one.op) for one in (first, second, third)] == [
        ("Maya at Fjord Labs.", "flush"), ("Maya left Fjord Labs.", "flush"), ("Maya is at Nordlys.", "hand"),
    ]  # fmt: skip
    assert first.at < second.at
    assert (first.drift, third.at) == (0.0, "")
    assert 0 < second.drift < third.drift < 1


def test_the_command_shows_the_newest_first(library: Library, capsys: pytest.CaptureFixture[str]) -> None:
    page(library).write_text(page(library).read_text().replace("Maya at Fjord Labs.", "Maya in Bergen.", 1))
    assert main(["-L", str(library.root), "history", "work", "--summary"]) == 0
    newest, first = capsys.readouterr().out.splitlines()
    assert newest.split("\t") == ["", "hand", "0.75", "Maya in Bergen."]
    assert first.split("\t")[1:] == ["flush (plan)", "0.00", "Maya at Fjord Labs."]
    assert main(["-L", str(library.root), "history", "--summary"]) == 2


def test_an_undo_is_a_version_too_and_a_renamed_topic_keeps_its_history(library: Library) -> None:
    library.write("Ines works there, too.")
    library.flush(plan=Plan((Extend("work", "", (2,)), Summarise("work", "Maya and Ines."))))
    library.undo()
    assert [one.text for one in library.summaries("work")] == [
        "Maya at Fjord Labs.", "Maya and Ines.", "Maya at Fjord Labs.",
    ]  # fmt: skip
    page(library).rename(library.root / "topics" / "job.md")
    library.check(fix=True)
    assert len(library.summaries("job")) == 3


def test_without_its_log_a_summary_is_its_own_first_version(library: Library) -> None:
    (library.root / SUMMARIES).unlink()
    assert [(one.text, one.op, one.drift) for one in library.summaries("work")] == [
        ("Maya at Fjord Labs.", "found", 0.0)
    ]
    (library.root / SUMMARIES).write_bytes(b'{"topic": "work"}\n\xff\n[1]\n{"topic": "work", "summary": 7}\n')
    assert len(library.summaries("work")) == 1


@pytest.mark.parametrize("summary", ["Maya at Vestnett.", "Maya, since 2019.", "Maya does not work."])
def test_a_summary_that_says_more_than_the_entries_is_named(library: Library, summary: str) -> None:
    assert codes(library) == []
    page(library).write_text(re.sub("summary: .*", f"summary: '{summary}'", page(library).read_text()))
    [finding] = library.check()
    assert finding.problem.code == "summary"
    assert "the next flush of the topic writes a new one" in finding.problem.message
    page(library).write_text(page(library).read_text().replace("aux: {}", "aux: {pinned: true}"))
    assert "it is pinned" in library.check()[0].problem.message


def test_an_entry_that_was_changed_by_hand_leaves_its_summary_behind(library: Library) -> None:
    page(library).write_text(page(library).read_text().replace("works at Fjord Labs", "works at Nordlys"))
    assert set(codes(library)) == {"count", "edited", "summary"}


def test_stats_say_how_many_summaries_keep_to_their_topics(
    library: Library, capsys: pytest.CaptureFixture[str]
) -> None:
    told = library.stats().summaries
    assert (told.topics, told.faithful, told.drift) == (1, 1, 0.0)
    page(library).write_text(re.sub("summary: .*", "summary: Maya at Vestnett.", page(library).read_text()))
    told = library.stats().summaries
    assert (told.topics, told.faithful) == (1, 0)
    assert told.drift == drift("Maya at Fjord Labs.", "Maya at Vestnett.") > 0
    assert main(["-L", str(library.root), "stats"]) == 0
    assert "summaries 0 of 1 keep to what stands below them" in capsys.readouterr().out


def test_headings_have_their_versions_with_who_made_them(library: Library, capsys: pytest.CaptureFixture[str]) -> None:
    library.write(["Ines works there, too.", "The office opens at nine."])
    library.flush(plan=Plan((Extend("work", "People", (2,)), Extend("work", "Office", (3,)))))
    page(library).write_text(page(library).read_text().replace("## Office", "## The office"))
    library.write("Ines left.", supersedes=[2])
    library.flush(plan=Plan((Extend("work", "", (4,)), Retire(2, 4, "superseded"))))
    library.undo()
    told = [(one.op, one.by, one.added, one.removed) for one in library.outlines("work")]
    assert told == [
        ("flush", "plan", ("Work",), ()),
        ("flush", "plan", ("Work > People", "Work > Office"), ()),
        ("found", "", ("Work > The office",), ("Work > Office",)),
        ("flush", "plan", (), ("Work > People",)),
        ("undo", "", ("Work > People",), ()),
    ]
    assert main(["-L", str(library.root), "history", "work", "--headings"]) == 0
    assert [line.split("\t")[1:] for line in capsys.readouterr().out.splitlines()][:2] == [
        ["undo", "+ Work > People"], ["flush (plan)", "- Work > People"],
    ]  # fmt: skip
    assert main(["-L", str(library.root), "history", "work", "--headings", "--json"]) == 0
    jsonschema.validate(json.loads(capsys.readouterr().out), schema_of("history-headings"))
    assert main(["-L", str(library.root), "history", "work", "--headings", "--summary"]) == 2


def test_no_heading_of_a_pinned_page_comes_or_goes(library: Library) -> None:
    library.write("Ines works there, too.")
    library.flush(plan=Plan((Extend("work", "People", (2,)),)))
    page(library).write_text(page(library).read_text().replace("aux: {}", "aux: {pinned: true}"))
    library.write(["Ines left.", "The office opens at nine.", "The choir sings."])
    library.flush(
        plan=Plan((Extend("work", "Office", (3, 4)), Retire(2, 3, "superseded"), Create("choir", "Choir"),
                   Extend("choir", "", (5,))))
    )  # fmt: skip
    library.merge(["work", "choir"])
    assert library.outlines("work")[-1].headings == ("Work", "Work > People")
    assert {seq for unit in library.index().entries((), Filter()) for seq in unit.seqs} == {1, 3, 4, 5}


def test_what_a_model_says_of_a_page_keeps_to_it_whatever_the_model_says(tmp_path: Path) -> None:
    said = iter(["Maya at Vestnett since 2019.", "Maya does not work.", "Maya likes Nordlys."])

    def answer(payload: Payload) -> str:
        if step_of(payload) == "summary":
            topics = re.findall(r"^page (\S+):", given(payload), re.MULTILINE)
            return json.dumps(
                {"summaries": [{"topic": topic, "text": text} for topic in topics for text in [next(said)]]}
            )
        return sensible()(payload)

    with serving(Behaviour(answer)) as url:
        library = Library.open(tmp_path / "m", create=True, model=OpenAIModel("scripted", url, ""))
        library.write("Maya works at Nordlys.")
        library.flush()  # asked twice, and neither keeps to the page
        [row] = library.catalog()
        assert row.summary not in ("Maya at Vestnett since 2019.", "Maya does not work.")
        assert (codes(library), library.stats().summaries.faithful) == ([], 1)
        library.write("Maya likes Nordlys.")
        library.flush()
    [row] = library.catalog()
    assert row.summary == "Maya likes Nordlys."
    assert (codes(library), library.stats().summaries.faithful) == ([], 1)
    assert library.stats().summaries.drift > 0
    assert {one.by for one in library.summaries(row.topic)} == {"model"}


def test_check_notes_a_summary_that_left_what_it_first_said_while_the_page_says_it_still(
    library: Library, capsys: pytest.CaptureFixture[str]
) -> None:
    def checked() -> tuple[int, str]:
        code = main(["-L", str(library.root), "check"])
        return code, capsys.readouterr().err

    library.write("The office has a green door and opens at nine.")
    library.flush(plan=Plan((Extend("work", "", (2,)), Summarise("work", "The office has a green door."))))
    assert library.check() == [], "nothing is wrong with a file"
    far = drift("Maya at Fjord Labs.", "The office has a green door.")
    assert [(one.topic, one.drift) for one in library.strayed_summaries()] == [("work", far)]
    code, said = checked()
    assert code == 0 and said.startswith("all is well\nnote: the summary of 1 page no longer says")
    assert f"work (drift {far:.2f}); see: infinimem history work --summary" in said
    page(library).write_text(page(library).read_text().replace("aux: {}", "aux: {pinned: true}"))
    assert checked() == (0, "all is well\n"), "a person said that it is as it should be"
    page(library).write_text(page(library).read_text().replace("aux: {pinned: true}", "aux: {}"))
    library.flush(plan=Plan((Summarise("work", "Maya, and the office."),)))
    assert len(library.strayed_summaries()) == 1
    library.flush(plan=Plan((Summarise("work", "Maya of Fjord Labs, and the office."),)))
    assert library.strayed_summaries() == []


def test_a_summary_is_no_stray_where_the_entries_went_or_a_rule_made_it(library: Library, tmp_path: Path) -> None:
    library.write("Ines left for Nordlys.", supersedes=[1])
    library.flush(plan=Plan((Extend("work", "", (2,)), Retire(1, 2, "superseded"),
                             Summarise("work", "Ines left for Nordlys."))))  # fmt: skip
    assert library.strayed_summaries() == [], "what it said first holds no longer"
    other = Library.open(tmp_path / "other", create=True)
    for said in ("left early", "sells her boat", "has moved to Bergen", "knows Ines", "plays chess", "grows plums"):
        other.write(f"Maya of Fjord Labs {said}.")
        other.flush(planner="lexical")
    assert max(len(other.summaries(row.topic)) for row in other.catalog()) > 2
    assert other.strayed_summaries() == []
