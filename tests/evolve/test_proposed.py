"""Links and divisions that a planner proposes: what a writer names, what a model says, what a plan on paper holds."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from infinimem import Library
from infinimem.llm.client import OpenAIModel
from infinimem.model import Create, Extend, Filter
from infinimem.plan.lexical import Named, named_in
from infinimem.plan.paper import Plan
from infinimem.text.signature import parse_links
from tests.faults.library_state import assert_conserved
from tests.llm.planner import given, sensible, step_of
from tests.llm.server import Behaviour, Payload, serving

START = datetime(2026, 5, 1, 9, tzinfo=UTC)
PAGES = Plan((Create("maya", "Maya"), Extend("maya", "", (1, 2)), Create("boat", "Boat"), Extend("boat", "", (3,))))
PAGE_TEXTS = ["Maya works at Nordlys.", "Maya lives in Voss.", "The boat Terna has berth 12."]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Maya has left, see #12.", [Named("related", 12)]),
        ("Das widerspricht #7 und belegt #8.", [Named("contradicts", 7), Named("supports", 8)]),
        ("This contradicts entry #7.", [Named("contradicts", 7)]),
        ("参见 #3", [Named("related", 3)]),
        ("As in [[maya-work]], [[Maya's work|her job]] and [[boat#Berth]].",
         [Named("related", 0, "maya-work"), Named("related", 0, "Maya's work"), Named("related", 0, "boat")]),
        ("More in [the page](../topics/boat.md) or [here](topics/boat.md#berth) or [there](boat.md).",
         [Named("related", 0, "boat")]),
        ("Room #12, issue #7, the #1 choir, #maya, #12a; I can see #12a.", []),
        ("Overseas #12 is a ship; foresee #3.", []),
        ("![[picture]] and [site](https://example.org/boat.md) and [[ ]]", []),
    ],
)  # fmt: skip
def test_what_an_entry_names(text: str, named: list[Named]) -> None:
    assert list(named_in(text)) == named


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return at(tmp_path, None)


def at(path: Path, model: OpenAIModel | None) -> Library:
    now = [START]

    def clock() -> datetime:
        now[0] += timedelta(days=1)
        return now[0]

    library = Library.open(path / "memory", create=True, clock=clock, model=model)
    library.write(PAGE_TEXTS, source="user")
    library.flush(plan=PAGES)
    return library


def links(library: Library, seq: int) -> str:
    here = library.trace(seq).here
    return here.get("links") if here is not None else ""


def test_a_flush_without_a_model_links_what_a_writer_names_and_nothing_else(library: Library) -> None:
    library.write(
        [
            "Maya cycles to Nordlys, see #1.",
            "The conference room is 3; see #3 on the door.",
            "Maya lives in Bergen; this contradicts #2.",
            "Maya told Nordlys of [[boat]] and of [[Lighthouses]], she works there.",
            "Nobody knows about this, see #99.",
        ]
    )
    report = library.flush(planner="lexical")
    assert report.exit_code == 0, report.skipped
    assert [links(library, seq) for seq in range(4, 9)] == ["1:related", "", "2:contradicts", "boat:related", ""]
    assert library.check() == []
    assert [one.seqs for one in library.ask("Where does Maya live?").evidence if one.contradicts] != []
    library.undo()
    assert "links" not in (library.root / "CURRENT.md").read_text()


def model_saying(extra: dict[str, dict[str, Any]]) -> Behaviour:
    """A sensible planner whose replies to some steps also hold what is given here."""
    plan = sensible()

    def answer(payload: Payload) -> str:
        step = step_of(payload)
        return json.dumps({**json.loads(plan(payload)), **extra.get(step, {})})

    return Behaviour(answer)


def test_a_model_links_in_the_reply_that_it_gives_anyway(tmp_path: Path) -> None:
    said = [
        {"from": 4, "to": 2, "relation": "contradicts", "conf": 0.95},
        {"from": 1, "to": 4, "relation": "explains", "conf": 0.92},  # the same pair twice is not asked about
        {"from": 4, "to": 3, "relation": "causes", "conf": 0.99},  # not asked about
        {"from": 4, "to": 1, "relation": "loves", "conf": 0.99},
        {"from": 4, "to": 77, "relation": "causes", "conf": 0.99},
        "nonsense",
    ]
    calls = []
    for extra in ({}, {"update": {"links": said}}):
        behaviour = model_saying(extra)
        with serving(behaviour) as url:
            library = at(tmp_path / str(len(calls)), OpenAIModel("scripted", url, ""))
            library.write("Maya lives in Bergen and works at Nordlys.")
            report = library.flush()
        calls.append([step_of(one) for one in behaviour.requests])
        asked = next(given(one) for one in behaviour.requests if step_of(one) == "update")
        assert "4: " in asked
    assert calls[0] == calls[1], "links cost no call"
    assert links(library, 4) == "2:contradicts"
    assert links(library, 1) in ("", "4:explains"), "as far as that pair was asked about"
    assert report.exit_code == 0, report.skipped
    assert library.check() == []
    library.undo()
    assert links(library, 4) == ""


def test_what_a_model_is_not_sure_of_waits_for_a_person_and_nine_links_are_too_many(tmp_path: Path) -> None:
    unsure = [{"from": 4, "to": 2, "relation": "contradicts", "conf": 0.7}]
    with serving(model_saying({"update": {"links": unsure}})) as url:
        library = at(tmp_path, OpenAIModel("scripted", url, ""))
        full = "+".join(f"{seq}:related" for seq in range(100, 108))
        library.write([{"text": "Maya lives in Bergen.", "links": full}])
        library.flush()
    assert len(parse_links(links(library, 4))) == 8
    [proposal] = library.review().proposals
    assert "8 links already" in proposal.refused
    assert proposal.after == ("Maya lives in Bergen.", "Maya lives in Voss.")


def test_a_model_divides_an_entry_into_exact_pieces(tmp_path: Path) -> None:
    both = "Maya works in Oslo and the boat has a new mast."
    divisions = [
        {"seq": 4, "texts": ["Maya works in Oslo", "the boat has a new mast."], "conf": 0.95},
        {"seq": 5, "texts": ["The choir sings", "on Mondays."], "conf": 0.95},
        {"seq": 99, "texts": ["a", "b"], "conf": 1},
    ]
    with serving(model_saying({"rewrite": {"divisions": divisions}})) as url:
        library = at(tmp_path, OpenAIModel("scripted", url, ""))
        library.write([both, "The choir sings on Tuesdays."])
        report = library.flush()
    assert [one.why for one in report.skipped] == ["'on Mondays.' is no piece of the words of 5, or not in their order"]
    story = library.trace(4)
    assert (story.fate, story.parts, story.words[-1][1].text) == ("split", (6, 7), both)
    assert_conserved(library.root, set(range(1, 8)))
    assert library.check() == []
    assert library.stats().recoverability.share == 1
    library.undo()
    assert_conserved(library.root, set(range(1, 8)))
    assert [entry.seqs for entry in library.index().entries((), Filter()) if "Oslo" in entry.text] == [(4,)]
    assert library.trace(6).fate == "undone"


def test_a_plan_on_paper_places_divides_and_links_in_one_go(library: Library, tmp_path: Path) -> None:
    library.write("Maya works in Oslo and the boat has a new mast.")
    (tmp_path / "plan.yaml").write_text(
        "plan: 1\nbuffer: {seqs: 4}\nsteps:\n"
        "- extend: {topic: maya, seqs: 4}\n"
        "- link: {source: 4, to: 1, relation: contradicts, conf: 0.95}\n"
        "- link: {source: maya, to: boat, relation: related, conf: 0.5}\n"
        "- divide: {seq: 4, texts: [Maya works in Oslo, the boat has a new mast.], conf: 0.95}\n"
    )
    report = library.flush(plan=tmp_path / "plan.yaml")
    assert [one.why for one in report.skipped] == ["confidence 0.5 is below the gate of 0.9"]
    assert [links(library, seq) for seq in (5, 6)] == ["1:contradicts", "1:contradicts"]
    assert_conserved(library.root, set(range(1, 7)))
    assert library.check() == []
