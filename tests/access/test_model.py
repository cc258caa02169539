"""What the rules keep from the audience `model` leaves the machine in no request; a real server keeps every byte."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from infinimem import Library
from infinimem.cli import main
from infinimem.llm.client import OpenAIModel
from infinimem.model import CURRENT, Create, Extend, Filter
from infinimem.plan.paper import Plan
from tests.conftest import NIGHTLY
from tests.llm.planner import given, sensible, step_of
from tests.llm.server import Answer, Behaviour, Payload, serving

START = datetime(2026, 5, 1, 9, tzinfo=UTC)
RULE = "access: {model: {deny: {sensitivity: private}}}"
PRIVATE = {"sensitivity": "private"}
MARK = "zorblatt"
PUBLIC = (
    "Maya works at Nordlys since May {n}.",
    "The boat Terna has berth {n}.",
    "The choir sings piece {n} on Tuesday.",
    "Maya's choir has {n} voices.",
)
HIDDEN = (
    "Maya sees Dr. Zorblatt for the {n}th time.",
    "Zorblatt owns boat {n}.",
    "Maya told the choir of Zorblatt, number {n}.",
)
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("search", {"query": "Maya doctor Zorblatt", "all": True}),
    ("grep", {"pattern": "(?i)maya|blatt"}),
    ("catalog", {}),
    ("trace", {"seq": 1}),
    ("trace", {"seq": 2}),
    ("read", {"topic": CURRENT}),
)


def model(merging: bool = True) -> Callable[[Payload], Answer]:
    """A model that plans sensibly, merges what it may, summarises all, and looks everywhere when asked."""
    plan = sensible(lambda new, words, old, others: "replaces" if words.split()[:2] == others.split()[:2] else "")

    def answer(payload: Payload) -> Answer:
        if payload.get("tools"):
            turns = sum(message["role"] == "assistant" for message in payload["messages"])
            name, arguments = CALLS[turns] if turns < len(CALLS) else ("finish", {"places": []})
            function = {"name": name, "arguments": json.dumps(arguments)}
            return {"content": None, "tool_calls": [{"id": f"c{turns}", "type": "function", "function": function}]}
        step = step_of(payload)
        if step == "merge" and merging:
            ids = [line.split(" (")[0] for line in given(payload).split("\n") if " (" in line][:2]
            return json.dumps({"merges": [{"topics": ids, "into": ids[0], "conf": 0.95}] if len(ids) == 2 else []})
        if step in ("rewrite", "route", "update", "split", "merge", "summary"):
            return plan(payload)
        return json.dumps({"entries": []}) if step.startswith("extract") else "I cannot tell."

    return answer


def library_at(path: Path, url: str, monkeypatch: pytest.MonkeyPatch, *rules: str) -> Library:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(path / "config"))
    now = [START]

    def clock() -> datetime:
        now[0] += timedelta(hours=1)
        return now[0]

    library = Library.open(path / "memory", create=True, clock=clock, model=OpenAIModel("scripted", url, ""))
    (library.root / "infinimem.yaml").write_text("\n".join(["format: 1", *rules]) + "\n")
    return library


def sent(behaviour: Behaviour) -> str:
    return json.dumps(behaviour.requests, ensure_ascii=False).casefold()


@pytest.mark.parametrize("number", range(30 if NIGHTLY else 3))
def test_no_request_holds_a_word_that_only_withheld_entries_say(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(number)
    behaviour = Behaviour(model())
    with serving(behaviour) as url:
        small = ("split: {max_tokens: 90}", "merge: {max_tokens: 60}")
        library = library_at(tmp_path, url, monkeypatch, RULE, *small)
        written: set[int] = set()
        for _ in range(4):
            for at in range(chance.randint(2, 7)):
                secret = chance.random() < 0.4
                text = chance.choice(HIDDEN if secret else PUBLIC).format(n=chance.randint(10, 99))
                old = [chance.choice(sorted(written))] if written and chance.random() < 0.2 else []
                written.update(library.write(text, meta=PRIVATE if secret else {}, supersedes=old))
                if at == 2:
                    library.extract(f"And Zorblatt is back, {at}.", meta=PRIVATE)
            if chance.random() < 0.3:
                library.flush(planner="lexical")
            library.flush()
            library.ask("Which doctor does Maya see?")
            library.ask("Where does Maya work?", reader="hybrid")
        assert {step_of(one) for one in behaviour.requests} >= {"rewrite", "route", "summary"}
    assert "maya" in sent(behaviour)
    assert MARK not in sent(behaviour).replace("doctor zorblatt", ""), "but for what the model itself looked for"
    visible = {seq for unit in library.index().entries((), Filter()) for seq in unit.seqs}
    assert written <= visible | {seq for seq in written if library.trace(seq).fate}
    assert library.search("Zorblatt"), "the owner sees it all"
    assert library.check() == []


def test_without_a_rule_the_model_is_shown_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    behaviour = Behaviour(model())
    with serving(behaviour) as url:
        library = library_at(tmp_path, url, monkeypatch)
        library.write("Maya sees Dr. Zorblatt.", meta=PRIVATE)
        library.flush()
    assert MARK in sent(behaviour)
    assert not (library.root / ".infinimem" / "views").exists()


def test_what_the_model_may_not_see_is_sorted_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    behaviour = Behaviour(model())
    with serving(behaviour) as url:
        library = library_at(tmp_path, url, monkeypatch, RULE, "on_failure: keep")
        library.write("Maya sees Dr. Zorblatt.", meta=PRIVATE)
        library.write("The boat Terna has berth 12.")
        report = library.flush()
    assert (report.exit_code, report.left, report.seqs) == (0, (), (1, 2))
    assert MARK not in sent(behaviour)


def test_an_agents_ask_is_bound_by_both_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    behaviour = Behaviour(model())
    with serving(behaviour) as url:
        both = "access: {model: {deny: {sensitivity: private}}, mcp: {deny: {ns: health}}}"
        owner = library_at(tmp_path, url, monkeypatch, both)
        owner.write([{"text": "Maya sees Dr. Zorblatt.", **PRIVATE}, {"text": "Maya has a quorbit.", "ns": "health"}])
        owner.write("Maya works at Nordlys.")
        owner.flush(planner="lexical")
        agent = Library.open(owner.root, model=OpenAIModel("scripted", url, ""), audience="mcp")
        assert agent.ask("Where does Maya work?").evidence
    assert "nordlys" in sent(behaviour)
    assert MARK not in sent(behaviour).replace("doctor zorblatt", "")
    assert "quorbit" not in sent(behaviour)


def test_an_answer_names_topics_as_the_owner_knows_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(payload: Payload) -> Answer:
        if step_of(payload).startswith("answer"):
            place = next(line for line in given(payload).split("\n") if "berth" in line).split("]")[0].lstrip("[")
            return f"The boat has berth 12 [{place}]."
        return model()(payload)

    behaviour = Behaviour(answer)
    with serving(behaviour) as url:
        library = library_at(tmp_path, url, monkeypatch, RULE)
        library.write("Zorblatt lends the boat.", meta=PRIVATE)
        library.write("The boat has berth 12.")

        library.flush(plan=Plan((Create("zorblatt", "Zorblatt"), Extend("zorblatt", "", (1, 2)))))
        found = library.ask("Which berth has the boat?")
    assert MARK not in sent(behaviour).replace("doctor zorblatt", "")
    assert found.found, found
    assert found.citations == tuple(piece.place for piece in found.evidence if piece.seqs == (2,))
    assert found.citations[0].startswith("zorblatt:")
    assert f"[{found.citations[0]}]" in found.text


def test_an_ask_says_that_something_was_kept_from_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A count for who may see it all, no word of it; nothing where nothing that fits was kept back."""
    behaviour = Behaviour(model())
    with serving(behaviour) as url:
        library = library_at(tmp_path, url, monkeypatch, RULE)
        library.write(["Maya sees Dr. Zorblatt.", "Maya sings of Zorblatt."], meta=PRIVATE)
        library.write(["Maya works at Nordlys.", "The boat Terna has berth 12."])
        library.flush(planner="lexical")
        monkeypatch.setenv("INFINIMEM_MODEL", "scripted")
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        assert library.ask("Where does Maya work?").withheld == 2
        assert library.ask("Which berth has the boat Terna?").withheld == 0
        main(["-L", str(library.root), "ask", "Where does Maya work?"])
        told = capsys.readouterr()
        main(["-L", str(library.root), "ask", "Where does Maya work?", "--json"])
        assert json.loads(capsys.readouterr().out)["withheld"] == 2
    assert "2 entries that fit were kept from the model by the setting access" in told.err
    assert MARK not in told.out.casefold()


def test_who_may_not_see_it_either_is_told_no_count_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else an agent could ask for one word after another and learn which of them are hidden."""
    behaviour = Behaviour(model())
    with serving(behaviour) as url:
        both = "access: {model: {deny: {sensitivity: private}}, mcp: {deny: {sensitivity: private}}}"
        owner = library_at(tmp_path, url, monkeypatch, both)
        owner.write("Maya sees Dr. Zorblatt.", meta=PRIVATE)
        owner.write("Maya works at Nordlys.")
        owner.flush(planner="lexical")
        assert owner.ask("Does Maya see Zorblatt?").withheld == 1
        agent = Library.open(owner.root, model=OpenAIModel("scripted", url, ""), audience="mcp")
        assert agent.ask("Does Maya see Zorblatt?").withheld == 0
