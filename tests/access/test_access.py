"""What an audience is shown of a library: a document before, and as it may be seen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from infinimem import Library
from infinimem.config import load_settings
from infinimem.errors import BadInput, NeedsAttention, StorageFailed, UnknownSeq, UnknownTopic
from infinimem.model import Create, Extend, Join
from infinimem.plan.paper import Plan, parse_plan
from tests.forgetting.test_forget import holding

NOW = datetime(2026, 5, 2, 8, tzinfo=UTC)
AT = "2026-05-02T08:00:00Z"
DENY = "access: {mcp: {deny: {sensitivity: private}}}"
PRIVATE = {"sensitivity": "private"}


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    library = Library.open(tmp_path / "memory", create=True, clock=lambda: NOW)
    (library.root / "infinimem.yaml").write_text(f"format: 1\n{DENY}\n")
    return library


def seen_by(library: Library, audience: str = "mcp") -> Library:
    return Library.open(library.root, audience=audience, clock=lambda: NOW)


def flush(library: Library, *steps: object) -> None:
    assert not library.flush(plan=Plan(tuple(steps))).skipped  # type: ignore[arg-type]


def test_a_document_and_what_may_be_seen_of_it(library: Library) -> None:
    library.write("Zorblatt's therapy is on Tuesdays.", meta=PRIVATE)
    library.write("Maya works at Fjord Labs.")
    flush(library, Create("maya", "Maya and Zorblatt"), Extend("maya", "Therapy", (1,)), Extend("maya", "Work", (2,)))
    topic = library.root / "topics" / "maya.md"
    topic.write_text(topic.read_text() + "\nA remark on Zorblatt.\nA remark on Maya.\n")
    page = seen_by(library).read("maya")
    body = page.lines[page.lines.index("---", 1) + 1 :]
    assert body == (
        "# Fjord Labs, Maya",
        "",
        "## Notes",
        "",
        "<!-- … -->",
        "",
        "## Work",
        "",
        f"- <seq=2, observed={AT}> Maya works at Fjord Labs.",
        "",
        "<!-- … -->",
        "A remark on Maya.",
    )
    assert page.total == len(topic.read_text().splitlines())
    [row] = seen_by(library).catalog()
    assert (row.topic, row.entries) == ("maya", 1)
    assert "zorblatt" not in row.summary.lower()


def test_the_owner_and_other_audiences_see_everything(library: Library) -> None:
    library.write("Zorblatt's therapy is on Tuesdays.", meta=PRIVATE)
    assert library.search("therapy")
    assert seen_by(library, "export").search("therapy")
    assert not seen_by(library).search("therapy")
    assert not (library.root / ".infinimem" / "views" / "export").exists()
    with pytest.raises(BadInput, match="there is no audience 'mpc'; use mcp or export"):
        seen_by(library, "mpc")


def test_a_topic_named_after_a_withheld_entry_goes_by_another_name(library: Library) -> None:
    library.write("Zorblatt's therapy is on Tuesdays.", meta=PRIVATE)
    library.write("Maya works at Fjord Labs.")
    flush(library, Create("zorblatt", "Zorblatt"), Extend("zorblatt", "", (1, 2)))
    reader = seen_by(library)
    [row] = reader.catalog()
    assert row.topic.startswith("topic-")
    assert seen_by(library).catalog() == [row], "it is called so every time"
    assert "Maya works" in "".join(reader.read(row.topic).lines)
    with pytest.raises(UnknownTopic):
        reader.read("zorblatt")
    reader.write("Maya cycles.")
    plan = parse_plan(f"plan: 1\nsteps:\n- extend: {{topic: {row.topic}, heading: '', seqs: 3}}\n", "plan")
    assert reader.flush(plan=plan).changed == (row.topic,)
    assert "Maya cycles." in (library.root / "topics" / "zorblatt.md").read_text()


def test_a_topic_of_which_nothing_may_be_seen_is_none(library: Library) -> None:
    library.write("Zorblatt's therapy is on Tuesdays.", meta=PRIVATE)
    flush(library, Create("health", "Health"), Extend("health", "", (1,)))
    assert seen_by(library).catalog() == []
    assert seen_by(library).status().topics == 0


def test_a_joined_line_with_a_withheld_member_shows_the_others(library: Library) -> None:
    library.write("Zorblatt sings.", meta=PRIVATE)
    library.write("Maya cycles.")
    text = "Zorblatt sings and Maya cycles."
    flush(library, Create("both", "Both"), Join((1, 2), text), Extend("both", "", (1, 2)))
    assert [hit.text for hit in seen_by(library).search("Maya cycles sings", 5)] == ["Maya cycles."]
    assert not seen_by(library).grep("sings", retired=True)


def test_what_became_of_a_withheld_entry_is_told_without_its_words(library: Library) -> None:
    library.write("Zorblatt sings.", meta=PRIVATE)
    library.flush()
    library.write("Maya sings.", supersedes=[1])
    library.flush()
    story = seen_by(library).trace(1)
    assert (story.fate, story.by, story.words) == ("superseded", 2, ())
    library.write("Zorblatt again.", meta=PRIVATE)
    with pytest.raises(UnknownSeq):
        seen_by(library).trace(3)


def test_the_view_follows_every_change_at_once(library: Library) -> None:
    reader = seen_by(library)
    library.write("Maya works at Fjord Labs.")
    assert reader.search("Maya")
    library.write("Maya has a secret.", meta=PRIVATE)
    assert len(reader.search("Maya")) == 1
    library.flush()
    assert len(reader.search("Maya")) == 1
    for path in (library.root / "topics").glob("*.md"):  # marked by hand as private, in the same second
        path.write_text(path.read_text().replace("<seq=1,", "<seq=1, sensitivity=private,"))
    assert not reader.search("Maya")
    (library.root / "infinimem.yaml").write_text("format: 1\n")
    assert len(seen_by(library).search("Maya")) == 2


def test_a_view_that_grew_is_the_one_that_is_made_anew(library: Library) -> None:
    """What one private entry changes in titles and prose elsewhere, without all else being read again."""
    reader = seen_by(library)
    library.write(["Maya works at Fjord Labs.", "The boat has berth 12.", "Ines sings in cities."])
    flush(library, Create("maya", "Maya's year"), Extend("maya", "Regatta", (1, 3)),
          Create("boat", "The boat"), Extend("boat", "", (2,)))  # fmt: skip
    boat = library.root / "topics" / "boat.md"
    boat.write_text(boat.read_text() + "\nThe regatta was won by Zörblatt.\n\nA city by the sea.\n")
    assert "regatta" in " ".join(reader.read("boat").lines).lower()
    for text in ("Zorblatt won.", "The regatta is in June.", "A city of Maya's.", "鶴亀算 is hers.", "Yes."):
        library.write(text, meta=PRIVATE)
        reader.place()
    library.write("Hilde turns ninety.")
    place = reader.place()
    grown = {path.name: path.read_text() for path in place.rglob("*.md")}
    assert "Zörblatt" not in grown["boat.md"]
    assert "A city by the sea." in grown["boat.md"], "Ines' cities are shown"
    assert "regatta" not in grown["maya.md"].lower()
    (place.parent / "mcp.json").unlink()
    anew = {path.name: path.read_text() for path in seen_by(library).place().rglob("*.md")}
    assert grown == anew


def test_rules_add_up_whoever_made_them(library: Library, tmp_path: Path) -> None:
    (tmp_path / "config" / "infinimem").mkdir(parents=True)
    config = tmp_path / "config" / "infinimem" / "config.yaml"
    config.write_text("access: {mcp: {deny: {ns: own}, allow: {source: [Ines, Maya]}}}\n")
    access = load_settings(library.root).access("mcp")
    assert access.permits({"source": "Ines", "ns": "work"})
    assert not access.permits({"source": "Ines", "ns": "own"})
    assert not access.permits({"source": "Ines", "sensitivity": "Private"})
    assert not access.permits({"source": "Hilde"})
    assert not access.permits({})
    config.write_text("access: {}\n")
    assert not load_settings(library.root).access("mcp").permits(PRIVATE), "rules only restrict"
    assert load_settings(library.root).access("export").permits(PRIVATE)


def test_a_field_that_is_allowed_with_any_value_has_to_be_there(library: Library) -> None:
    (library.root / "infinimem.yaml").write_text('format: 1\naccess: {mcp: {allow: {ns: "*"}}}\n')
    library.write("Zorblatt sings.")
    library.write("Zorblatt dances.", meta={"ns": "work"})
    assert [hit.seqs for hit in seen_by(library).search("Zorblatt")] == [(2,)]


def test_a_rule_holds_from_when_it_is_saved_for_who_has_the_library_open(library: Library) -> None:
    settings = library.root / "infinimem.yaml"
    settings.write_text("format: 1\n")
    library.write("Zorblatt sings.", meta=PRIVATE)
    reader = seen_by(library)
    assert [hit.seqs for hit in reader.search("Zorblatt")] == [(1,)]
    settings.write_text(f"format: 1\n{DENY}\n")
    assert reader.is_restricted
    assert reader.search("Zorblatt") == []
    settings.write_text("format: 1\naccess: {mcp: {deny: [}}\n")
    with pytest.raises(BadInput):
        reader.search("Zorblatt")


def test_what_would_tell_more_is_for_the_owner(library: Library) -> None:
    library.write("Zorblatt sings.", meta=PRIVATE)
    reader = seen_by(library)
    told = reader.history, reader.diff
    for what in (*told, reader.check, reader.undo, lambda: reader.forget([1]), lambda: reader.recover([1])):
        with pytest.raises(BadInput, match="is for the library's owner"):
            what()
    report = reader.flush(planner="lexical")
    assert report.seqs == (1,)
    assert "zorblatt" not in repr(report).lower()
    library.write("Zorblatt dances.", meta=PRIVATE)
    assert reader.flush(dry_run=True).diff == ""


def test_who_planned_is_told_why_a_step_was_skipped_if_that_tells_nothing(library: Library) -> None:
    library.write("Zorblatt sings.", meta={**PRIVATE, "ns": "own"})
    library.write("Maya sings.", source="user")
    library.write("Maya sings no more.", source="AI")
    flush(library, Create("zorblatt", "Zorblatt"), Extend("zorblatt", "", (1, 2, 3)))
    library.write("Maya dances.")
    reader = seen_by(library)
    [row] = reader.catalog()
    steps = ("retire: {seq: 2, by: 3, why: superseded}", "retire: {seq: 1, by: 3, why: superseded}",
             "retire: {seq: 77, by: 3, why: superseded}", "extend: {topic: zorblatt, heading: '', seqs: 99}",
             f"create: {{topic: {row.topic}, title: Again}}")  # fmt: skip
    plan = parse_plan("plan: 1\nsteps:\n" + "".join(f"- {step}\n" for step in steps), "plan")
    report = reader.flush(plan=plan)
    told = [outcome.why for outcome in report.skipped]
    assert "was said by the user and is not superseded by an AI" in told[0]
    assert told[1] == "it concerns what you may not see"
    assert "no visible entry has seq 77" in told[2]
    assert "zorblatt" not in " ".join(told).lower()
    assert any(f"the topic {row.topic} exists already" in why for why in told)
    assert report.exit_code == 5


@pytest.mark.parametrize("topic", ["room-1", "zorblatt"])
def test_a_number_in_the_name_of_a_topic_that_may_be_seen_is_no_seq_that_may_not(library: Library, topic: str) -> None:
    library.write([f"Zorblatt sings song {number}." for number in range(99)], meta=PRIVATE)
    library.write("Maya sings.")
    flush(library, Create(topic, "Maya"), Extend(topic, "", tuple(range(1, 101))))
    library.write("Maya dances.")
    reader = seen_by(library)
    [row] = reader.catalog()
    steps = (f"create: {{topic: {row.topic}, title: Again}}", "create: {topic: zorblatt, title: Again}")
    plan = parse_plan("plan: 1\nsteps:\n" + "".join(f"- {step}\n" for step in steps[: 1 + (topic != "room-1")]), "plan")
    told = [outcome.why for outcome in reader.flush(plan=plan).skipped]
    assert told[0] == f"the topic {row.topic} exists already"
    assert "zorblatt" not in " ".join(told).lower()


def test_forgetting_takes_the_view_with_it(library: Library) -> None:
    library.write(["Zorblatt sings.", "Maya cycles."])
    assert seen_by(library).search("Zorblatt")
    library.forget([1])
    assert holding(library, "zorblatt") == []
    assert not seen_by(library).search("Zorblatt")
    assert seen_by(library).search("Maya")


def test_a_view_that_cannot_be_written_shows_nothing(library: Library) -> None:
    library.write("Zorblatt sings.", meta=PRIVATE)
    (library.root / ".infinimem" / "views").write_text("in the way")
    with pytest.raises((StorageFailed, BadInput)):
        seen_by(library).search("sings")


def test_a_link_in_the_place_of_a_view_is_not_followed(library: Library, tmp_path: Path) -> None:
    library.write("Maya cycles.")
    outside = tmp_path / "outside"
    outside.mkdir()
    views = library.root / ".infinimem" / "views" / "mcp"
    views.mkdir(parents=True)
    (views / "topics").symlink_to(outside)
    library.flush()
    with pytest.raises(NeedsAttention, match="symbolic link"):
        seen_by(library).search("Maya")
    assert list(outside.iterdir()) == []


def test_the_shell_of_an_agent_sees_what_mcp_sees(library: Library) -> None:
    library.write("Zorblatt sings.", meta=PRIVATE)
    library.write("Maya sings.")
    command = [sys.executable, "-m", "infinimem", "-L", str(library.root), "search", "sings", "--json"]
    for audience, seqs in (("", [1, 2]), ("mcp", [2])):
        environment = {**os.environ, "INFINIMEM_AUDIENCE": audience}
        done = subprocess.run(command, capture_output=True, check=True, env=environment)
        assert sorted(seq for hit in json.loads(done.stdout) for seq in hit["seqs"]) == seqs


def test_two_processes_make_one_view(library: Library) -> None:
    library.write([{"text": f"Fact {number} of Maya.", **(PRIVATE if number % 2 else {})} for number in range(40)])
    command = [sys.executable, "-m", "infinimem", "-L", str(library.root), "search", "Maya", "-k", "99", "--json"]
    environment = {**os.environ, "INFINIMEM_AUDIENCE": "mcp"}
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) for _ in range(3)]
    found = [json.loads(process.communicate()[0]) for process in running]
    assert [len(hits) for hits in found] == [20, 20, 20]


@pytest.mark.parametrize("form", ["jsonl", "md", "html"])
def test_an_export_holds_what_an_export_may(library: Library, tmp_path: Path, form: str) -> None:
    (library.root / "infinimem.yaml").write_text("format: 1\naccess: {export: {deny: {sensitivity: private}}}\n")
    library.write("Zorblatt's therapy is on Tuesdays.", meta=PRIVATE)
    library.write("Maya works at Fjord Labs.")
    flush(library, Create("zorblatt", "Zorblatt"), Extend("zorblatt", "Zorblatt", (1, 2)))
    library.write("Zorblatt again.", meta=PRIVATE)
    (library.root / "topics" / "guest.md").write_text("# A guest\n\nOn Zorblatt.\n\nOn ferries.\n")
    library.export(form, tmp_path / "out")
    files = [path for path in [tmp_path / "out", *(tmp_path / "out").rglob("*")] if path.is_file()]
    texts = [path.as_posix().lower().removeprefix(str(tmp_path).lower()) + path.read_text().lower() for path in files]
    assert not any("zorblatt" in text for text in texts)
    assert any("fjord labs" in text for text in texts)
    assert any("on ferries." in text for text in texts)


def test_agents_over_mcp_and_the_memory_tool(library: Library) -> None:
    from infinimem.agents.memory_tool import MemoryTool
    from infinimem.agents.tools import TOOLS, run

    library.write("Zorblatt's therapy is on Tuesdays.", meta=PRIVATE)
    library.write("Maya works at Fjord Labs.")
    flush(library, Create("zorblatt", "Zorblatt"), Extend("zorblatt", "Zorblatt", (1, 2)))
    library.write("Zorblatt again.", meta=PRIVATE)
    reader = seen_by(library)
    asked: dict[str, dict[str, object]] = {
        "catalog": {}, "search": {"query": "Tuesdays Maya"}, "grep": {"pattern": "orbl|Maya"},
        "read": {"topic": "CURRENT"}, "trace": {"seq": 1}, "consolidate": {}, "status": {},
    }  # fmt: skip
    told = {name: repr(run(reader, name, arguments)) for name, arguments in asked.items() if name in
            {one.tool.name for one in TOOLS}}  # fmt: skip
    assert len(told) >= 6
    assert not [name for name, answer in told.items() if "zorblatt" in answer.lower()]
    assert "Fjord Labs" in told["search"]
    with pytest.raises(BadInput, match="memory tool"):
        MemoryTool(reader)
