"""`infinimem mcp` as its clients meet it: the SDK's own client, real processes, real libraries."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from mcp import Client, ClientSession, MCPError
from mcp.types import CallToolResult

from infinimem import Library
from infinimem.agents.server import server_for
from infinimem.agents.tools import EXAMPLES, FOR_AGENTS, TOOLS, run
from infinimem.model import Filter
from infinimem.text.tokens import estimate
from tests.agents.client import call, session_of, with_session
from tests.conftest import NIGHTLY
from tests.faults.test_writers import assert_written_once
from tests.readers.scripts import library_of


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A job that changed, a boat, and something said a moment ago."""
    library = library_of(
        tmp_path_factory.mktemp("mcp") / "memory",
        {
            "maya-work/Employers": [{"text": "Maya works at Fjord Labs.", "time": "2025-09-01", "source": "user"}],
            "boat": ["The boat Terna has berth 12.", "Its engine is a Sabb, number KX7-44192."],
            "zürich/Häuser": ["Das Haus in Zürich hat ein blaues Dach."],
        },
    )
    [seq] = library.write("Maya joined Nordlys.", time="2026-05-01", supersedes=1, source="user")
    plan = library.root.parent / "next.yaml"
    plan.write_text(
        f"plan: 1\nsteps:\n- extend: {{topic: maya-work, heading: Employers, seqs: {seq}}}\n"
        f"- retire: {{seq: 1, by: {seq}, why: superseded}}\n"
    )
    library.flush(plan=plan)
    library.write("The ferry leaves at seven.", source="Eirik")
    return library


# What a client is told


def test_the_definitions_take_little_room_and_say_what_each_tool_does(library: Library) -> None:
    async def look(session: ClientSession, said: Any) -> list[dict[str, Any]]:
        tools = (await session.list_tools()).tools
        return [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in tools]

    tools = with_session(library.root, look)
    assert [tool["name"] for tool in tools] == ["catalog", "search", "grep", "read", "trace", "write", "consolidate"]
    sent = json.dumps(tools, ensure_ascii=False)
    assert estimate(sent) <= 1_500
    assert len(sent) / 4 <= 1_500
    for tool in tools:
        jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
        jsonschema.Draft202012Validator.check_schema(tool["outputSchema"])
        looks = tool["name"] not in ("write", "consolidate")
        assert tool["annotations"] == {
            "readOnlyHint": looks, "destructiveHint": False, "idempotentHint": looks, "openWorldHint": False,
        }  # fmt: skip


def test_the_instructions_name_the_size_and_the_topics_and_are_bounded(library: Library, tmp_path: Path) -> None:
    async def look(session: ClientSession, said: Any) -> str:
        return str(said.instructions)

    told = with_session(library.root, look)
    assert "4 entries in 3 documents, 1 wait in CURRENT." in told
    assert "Documents: boat, maya-work, zürich" in told
    many = Library.open(tmp_path / "many", create=True)
    for number in range(400):
        name = f"a-rather-long-name-{number:03}"
        (many.root / "topics" / f"{name}.md").write_text(f"---\nid: {name}\nsummary: Of {number}.\n---\n# {number}\n")
    told = with_session(many.root, look)
    assert re.search(r"… \(3\d\d more: `catalog`\)$", told)
    assert estimate(told) < 600


def test_the_library_is_chosen_as_on_the_command_line(library: Library, tmp_path: Path) -> None:
    async def look(session: ClientSession, said: Any) -> str:
        return (await call(session, "search", query="berth"))[0]

    assert "Terna" in with_session(None, look, INFINIMEM_LIBRARY=str(library.root))
    data = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "INFINIMEM_LIBRARY": ""}
    assert "no entry" in with_session(None, look, **data)
    assert any(tmp_path.rglob("infinimem.yaml")), "the user's own, made as `write` makes it"


def test_without_the_sdk_one_line_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['mcp'] = None; sys.modules['mcp_types'] = None\n"
        f"from infinimem.cli import main; raise SystemExit(main(['-L', {str(tmp_path / 'm')!r}, 'mcp']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert (
        done.stderr == "infinimem: `infinimem mcp` needs the MCP SDK; install it with: pip install 'infinimem[mcp]'\n"
    )
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("entries", [1, 20_000])
def test_nothing_but_the_protocol_is_on_standard_output(tmp_path: Path, entries: int) -> None:
    """Nor does the server end otherwise than well where the client goes while it still loads or indexes."""
    library = Library.open(tmp_path / "memory", create=True)
    library.write([f"Jar {number} stands on shelf {number * 7}." for number in range(entries)])
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]
    done = subprocess.run(
        [sys.executable, "-m", "infinimem", "-L", str(library.root), "mcp"],
        input="".join(f"{json.dumps(line)}\n" for line in lines), capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    [answer] = map(json.loads, done.stdout.splitlines())
    assert answer["result"]["serverInfo"]["name"] == "infinimem"
    assert (done.returncode, done.stderr) == (0, "")


# The tools


LOOKS: list[tuple[str, dict[str, Any], str]] = [
    ("catalog", {}, "3 documents; 1-3:\n~~~\nboat: "),
    ("catalog", {"query": "engine"}, "boat: "),
    ("search", {"query": "where does Maya work"}, "#5 · 2026-05-01 · user (replaces #1): Maya joined Nordlys.\n"),
    ("search", {"query": "Terna", "all": True}, "1 entry match, in order of time; 1-1:"),
    ("search", {"query": "ferry"}, "[CURRENT:3] #6"),
    ("grep", {"pattern": r"KX7-\d+"}, "number KX7-44192"),
    ("read", {"topic": "zürich"}, "Das Haus in Zürich hat ein blaues Dach."),
    ("read", {"topic": "maya-work", "heading": "employers"}, "Nordlys"),
    ("trace", {"seq": 5}, "it replaced: [evidence/2026-05:"),
]


def test_every_tool_that_looks(library: Library) -> None:
    async def look(session: ClientSession, said: Any) -> None:
        for name, arguments, words in LOOKS:
            text, values = await call(session, name, **arguments)
            assert words in text, (name, text)
            assert values["note"] == text.split("\n")[0]
            assert values["topics" if name == "catalog" else "entries"]

    with_session(library.root, look)


def test_values_and_text_say_the_same(library: Library) -> None:
    found = run(library, "search", {"query": "where does Maya work"})
    [entry] = found.values["entries"]
    assert entry == {
        "place": f"maya-work:{library.search('Nordlys')[0].line}",
        "under": "Maya-Work > Employers",
        "seq": "5",
        "time": "2026-05-01",
        "source": "user",
        "text": "Maya joined Nordlys.",
    }
    past = run(library, "trace", {"seq": 5}).values["entries"][1]
    assert (past["seq"], past["retired"]) == ("1", "superseded by #5")
    rows = run(library, "catalog").values["topics"]
    assert [row["topic"] for row in rows] == ["boat", "maya-work", "zürich"]
    assert rows[0]["entries"] == 2


FAULTS: list[tuple[str, dict[str, Any] | None, str]] = [
    ("serch", {"query": "x"}, 'there is no tool "serch"; did you mean search?'),
    ("finish", {}, "The tools are catalog, search, grep, read, trace, write, consolidate."),
    ("search", {}, 'query is missing; write for example {"query"'),
    ("search", None, "query is missing"),
    ("search", {"query": {"a": 1}}, "query is a text, not an object"),
    ("search", {"query": "boat", "since": "last week"}, "since is a date such as 2026, 2026-05"),
    ("search", {"query": "boat", "topic": "bota"}, 'there is no document "bota"; the nearest: boat'),
    ("grep", {"pattern": "(a+"}, "cannot be read: missing ): (a+; put a \\ before a character that is meant itself"),
    ("read", {"topic": "boat:9", "start": 9000}, "characters; start is 1 to"),
    ("write", {"entries": [{"text": "a", "supersedes": "bota:3"}]}, 'there is no document "bota"; the nearest: boat'),
    ("read", {"topic": "../../etc/passwd"}, "there is no document"),
    ("read", {"topic": "boat", "first": 900}, "has lines 1-"),
    ("read", {"topic": "boat", "heading": "Sails"}, "boat has no such heading"),
    ("trace", {"seq": 999}, "no entry has the number 999; take one that stands behind a #"),
    ("catalog", {"start": 90}, "start is 1 to 3"),
    ("write", {}, 'entries is missing; write for example {"entries": [{"text"'),
    ("write", {"entries": []}, "entries is missing"),
    ("write", {"entries": [{"time": "2026"}]}, "entry 1 has no text; nothing was written; write for example"),
    ("write", {"entries": [{"text": "a"}, {"text": " "}]}, "entry 2 has no text; nothing was written"),
    ("write", {"entries": [{"text": "a", "time": "May"}]}, "time is a date such as 2026, 2026-05"),
    ("write", {"entries": [{"text": "a", "supersedes": "the old one"}]}, "supersedes is a seq such as 12"),
    ("write", {"entries": [7]}, "an entry is an object with a text, not 7"),
    ("write", {"entries": ["a"] * 1001}, "these are 1,001 entries; write at most 1,000 at once"),
    ("consolidate", {"plan": "I'd rather not."}, "this is no plan; it needs `plan: 1` and `steps:`"),
    ("consolidate", {"plan": "plan: 1\nsteps:\n- extnd: {topic: a}"}, "'extnd' is no step; use one of create"),
    ("consolidate", {"plan": "plan: 1\nbuffer: {seqs: 77}\nsteps: []"}, "the plan is for another buffer: 77"),
]


def test_every_error_is_one_line_that_says_what_to_do(library: Library) -> None:
    before = (library.root / "CURRENT.md").read_bytes()

    async def err(session: ClientSession, said: Any) -> list[CallToolResult]:
        return [await session.call_tool(name, arguments) for name, arguments, _ in FAULTS]

    for (name, arguments, remedy), result in zip(FAULTS, with_session(library.root, err), strict=True):
        [content] = result.content
        assert result.is_error, (name, arguments)
        assert content.type == "text"
        assert remedy in content.text, (name, arguments, content.text)
        assert "could not do that" not in content.text
        if "heading" not in (arguments or {}):  # which lists the headings that there are, behind a fence
            assert "\n" not in content.text
    assert (library.root / "CURRENT.md").read_bytes() == before, "no faulty call wrote anything"


def test_a_library_that_refuses_says_why(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True)
    library.write("a")
    (library.root / "CURRENT.md").write_text("<<<<<<< ours\n- <seq=1> a\n=======\n- <seq=1> b\n>>>>>>> theirs\n")
    told = run(library, "consolidate", {"plan": "plan: 1\nsteps:\n- create: {topic: a, title: A}"})
    assert told.is_fault
    assert "CURRENT.md:1" in told.text and "conflict" in told.text


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_in_an_error_is_one_that_works(library: Library, tmp_path: Path, name: str) -> None:
    own = Library.open(tmp_path / "memory", create=True) if name in ("write", "consolidate") else library
    told = run(own, name, EXAMPLES[name].replace("41", "5"))
    assert not told.is_fault, told.text


def test_what_models_write_for_entries_is_understood(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True)
    ways: list[dict[str, Any]] = [
        {"entries": "one"},
        {"entries": ["two", {"text": "three", "time": None, "source": "", "supersedes": []}]},
        {"entries": '[{"text": "four"}]'},
        {"text": "five", "source": "user"},
        {"entries": {"text": "six", "supersedes": "#1, #2", "ns": "home"}},
        {"entries": [{"text": "seven", "supersedes": [3, 4]}]},
    ]
    assert [run(library, "write", way).values["seqs"] for way in ways] == [[1], [2, 3], [4], [5], [6], [7]]
    found = {hit.text: hit.unit for hit in library.search("one two three four five six seven", k=9)}
    assert found["one"].source == "AI"
    assert found["five"].source == "user"
    assert (found["six"].get("supersedes"), found["six"].get("ns")) == ("1-2", "home")
    assert found["seven"].get("supersedes") == "3-4"


def test_a_repeated_key_stores_nothing_and_a_future_seq_is_named(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True)
    first = run(library, "write", {"entries": ["a"], "key": "k1"})
    again = run(library, "write", {"entries": ["a"], "key": "k1"})
    assert (first.values["seqs"], again.values["seqs"]) == ([1], [1])
    assert again.text == 'key "k1": stored before as #1'
    assert library.status().buffered == 1
    told = run(library, "write", {"entries": [{"text": "b", "supersedes": "99"}]})
    assert told.text == "written as #2; there is no #99 that it could replace"


def test_a_secret_that_slipped_in_is_said_without_its_words(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True)
    told = run(library, "write", {"entries": ["It rains.", "The PIN is 4711."]})
    assert told.text == "written as #1-2; #2 looks like it holds a secret (PIN): tell the user"


# A session


def test_an_agent_writes_consolidates_and_cites(tmp_path: Path) -> None:
    """Nobody else touches the library, and there is no key: memory maintains itself through its client."""
    root = tmp_path / "memory"

    async def first(session: ClientSession, said: Any) -> None:
        assert "It is empty so far." in said.instructions
        facts = [
            {"text": "Maya works at Fjord Labs.", "time": "2025-09-01", "source": "user"},
            {"text": "The boat Terna lies at berth 14.", "source": "user"},
        ]
        told, values = await call(session, "write", entries=facts)
        assert (told, values["seqs"]) == ("written as #1-2", [1, 2])
        _, values = await call(session, "consolidate")
        assert 'seqs: "1-2"' in values["task"]
        plan = """plan: 1
buffer: {seqs: "1-2"}
steps:
- create: {topic: maya-work, title: "Maya's work"}
- extend: {topic: maya-work, heading: Employers, seqs: 1}
- create: {topic: boat, title: Boat}
- extend: {topic: boat, heading: "", seqs: 2}
"""
        told, values = await call(session, "consolidate", plan=f"Here it is:\n\n```yaml\n{plan}```\n")
        assert told == "2 entries sorted, 0 retired; documents: maya-work, boat"
        assert values["skipped"] == []

    async def second(session: ClientSession, said: Any) -> str:
        assert "2 entries in 2 documents" in said.instructions
        _, values = await call(session, "search", query="where does Maya work")
        [old] = [entry for entry in values["entries"] if "Fjord" in entry["text"]]
        fact = {"text": "Maya joined Nordlys.", "time": "2026-05-01", "source": "user", "supersedes": old["seq"]}
        await call(session, "write", entries=[fact, "Maya has a cat."])
        _, values = await call(session, "consolidate")
        assert "[1] maya-work · 2025-09-01 · user: Maya works at Fjord Labs." in values["task"]
        await call(session, "write", entries=["Written by another agent meanwhile."])
        plan = {
            "plan": 1,
            "buffer": {"seqs": "3-4"},
            "steps": [
                {"extend": {"topic": "maya-work", "heading": "Employers", "seqs": 3}},
                {"retire": {"seq": 1, "by": 3, "why": "superseded", "conf": 0.95}},
                {"retire": {"seq": 2, "by": 4, "why": "superseded", "conf": 0.2}},
                {"extend": {"topic": "pets", "heading": "", "seqs": 4}},
            ],
        }
        told, values = await call(session, "consolidate", plan=json.dumps(plan))
        assert values["skipped"] == [
            "retire 2: confidence 0.2 is below the gate of 0.9", "extend pets 4: there is no topic pets",
        ]  # fmt: skip
        assert "wait in CURRENT: call consolidate for the next task" in told
        _, values = await call(session, "search", query="where does Maya work")
        [now] = [entry for entry in values["entries"] if "Nordlys" in entry["text"]]
        text, _ = await call(session, "trace", seq=3)
        assert "(superseded by #3): Maya works at Fjord Labs." in text
        return str(now["place"])

    with_session(root, first)
    place = with_session(root, second)
    topic, line = place.split(":")
    page = Library.open(root).read(topic, int(line), int(line))
    assert page.lines[0].endswith("> Maya joined Nordlys."), "what was cited opens at its line"
    current = (root / "CURRENT.md").read_text()
    assert "Written by another agent meanwhile." in current, "a plan does not place what it was not made for"
    assert Library.open(root).check() == []


def test_a_large_buffer_is_given_in_parts(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True)
    library.write([f"Fact {number} of the long day, with some words more about it." for number in range(500)])
    told = run(library, "write", {"entries": ["One more."]})
    assert told.text == "written as #501; CURRENT is full: call consolidate"
    sizes = []
    for _ in range(9):
        task = run(library, "consolidate").values.get("task", "")
        if not task:
            break
        assert estimate(task) < 10_000
        [seqs] = re.findall(r'buffer: \{seqs: "([^"]+)"\}', task)
        title = "" if sizes else "- create: {topic: day, title: Day}\n"
        plan = (
            f'plan: 1\nbuffer: {{seqs: "{seqs}"}}\nsteps:\n{title}- extend: {{topic: day, heading: "", seqs: {seqs}}}\n'
        )
        done = run(library, "consolidate", {"plan": plan})
        sizes.append(len(done.values["seqs"]))
    assert sum(sizes) == 501
    assert len(sizes) > 2
    assert library.status().buffered == 0


def test_a_whole_working_session_wastes_no_call(tmp_path: Path) -> None:
    """Whatever an agent is told is short, right, and names the next call where one is needed."""
    library = library_of(
        tmp_path / "memory",
        {
            "maya": [{"text": "Maya works at Fjord Labs.", "source": "user", "time": "2025-09-01"}, "Maya has a cat."],
            "harbour": [f"Berth {number} is taken by boat KX7-{number}." for number in range(400)],
            "log": ["Start of the log. " + " ".join(f"word{number}" for number in range(3000)) + " The end is blue."],
        },
    )

    async def work(session: ClientSession, said: Any) -> None:
        sizes: list[int] = []

        async def ask(name: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
            text, values = await call(session, name, **arguments)
            sizes.append(max(estimate(text), estimate(json.dumps(values, ensure_ascii=False))))
            return text, values

        assert "403 entries in 3 documents" in said.instructions
        _, values = await ask("catalog")
        assert [row["topic"] for row in values["topics"]] == ["harbour", "log", "maya"]
        _, values = await ask("search", query="where does Maya work")
        works = next(entry for entry in values["entries"] if "Fjord" in entry["text"])
        text, _ = await ask("grep", pattern="kx7-39[0-9]")
        assert text.startswith("10 match, by document; 1-10:")
        seen = 0
        arguments: dict[str, Any] = {"topic": "harbour"}
        while arguments:  # page by page, as each answer says
            text, values = await ask("read", **arguments)
            seen += len(values["entries"])
            found = re.search(r"go on with first=([0-9]+)", text.split("\n")[0])
            arguments = {"topic": "harbour", "first": int(found[1])} if found else {}
        assert seen == 400
        whole = ""
        arguments = {"topic": "log"}
        while arguments:  # a long entry piece by piece
            text, values = await ask("read", **arguments)
            whole += values["entries"][0]["text"].removesuffix(" … (cut)")
            found = re.search(r"start=([0-9]+)", text.split("\n")[0])
            place = values["entries"][0]["place"]
            arguments = {"topic": place, "start": int(found[1])} if found else {}
        assert whole == library.search("log word1")[0].text
        told, values = await ask(
            "write",
            entries=[
                {"text": "Maya joined Nordlys.", "source": "user", "time": "2026-05-01", "supersedes": works["place"]},
                {"text": "Ola is the new harbour master.", "source": "user"},
                {"text": "A long report. " + "Nothing happened at berth 3. " * 2000},
            ],
        )
        seqs = values["seqs"]
        assert told.startswith(f"written as #{seqs[0]}-{seqs[-1]}")
        text, _ = await ask("trace", seq=works["seq"])
        assert text.startswith("it is no longer true") and f"replaced by: [CURRENT:3] #{seqs[0]}" in text
        _, values = await ask("consolidate")
        assert f'seqs: "{seqs[0]}-{seqs[-1]}"' in values["task"]
        assert f"[{works['seq']}] maya · 2025-09-01 · user: Maya works at Fjord Labs." in values["task"]
        steps = (
            f"- extend: {{topic: maya, heading: '', seqs: {seqs[0]}}}\n"
            f"- retire: {{seq: {works['seq']}, by: {seqs[0]}, why: superseded, conf: 0.95}}\n"
            f"- extend: {{topic: harbour, heading: People, seqs: {seqs[1]}-{seqs[2]}}}\n"
        )
        told, values = await ask(
            "consolidate", plan=f"plan: 1\nbuffer: {{seqs: '{seqs[0]}-{seqs[-1]}'}}\nsteps:\n{steps}"
        )
        assert told == "3 entries sorted, 1 retired; documents: maya, harbour"
        text, values = await ask("search", query="where does Maya work")
        now = next(entry for entry in values["entries"] if entry["text"] == "Maya joined Nordlys.")
        assert "Fjord" not in text
        _, values = await ask("read", topic=now["place"])
        assert values["entries"][0]["text"] == "Maya joined Nordlys.", "what is cited opens at its line"
        told, _ = await ask("consolidate")
        assert told == "CURRENT is empty: there is nothing to consolidate"
        assert max(sizes) < 6_000, sizes
        answer = await session.read_resource("infinimem://topics/harbour")
        [content] = answer.contents
        assert len(content.text) < 101_000  # type: ignore[union-attr]

    with_session(library.root, work)
    assert library.check() == []


# Resources


def test_topics_are_resources(library: Library) -> None:
    async def look(session: ClientSession, said: Any) -> None:
        listed = (await session.list_resources()).resources
        assert [one.name for one in listed] == ["CURRENT", "boat", "maya-work", "zürich"]
        assert (await session.list_resource_templates()).resource_templates[0].uri_template == "infinimem://topics/{id}"
        for one in listed:
            [content] = (await session.read_resource(one.uri)).contents
            path = library.root / ("CURRENT.md" if one.name == "CURRENT" else f"topics/{one.name}.md")
            assert content.text + "\n" == path.read_text("utf-8")  # type: ignore[union-attr]
        for wrong in ("infinimem://topics/bota", "infinimem://topics/..%2F..%2Fetc%2Fpasswd", "file:///etc/passwd"):
            with pytest.raises(MCPError, match="list the resources, or call catalog"):
                await session.read_resource(wrong)

    with_session(library.root, look)


def test_many_resources_are_paged(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True)
    for number in range(450):
        (library.root / "topics" / f"t{number:03}.md").write_text(f"# Topic {number}\n\nA guest.\n")

    async def look() -> list[str]:
        async with Client(server_for(library)) as client:
            page = await client.list_resources()
            names = [one.name for one in page.resources]
            while page.next_cursor:
                page = await client.list_resources(cursor=page.next_cursor)
                names += [one.name for one in page.resources]
            return names

    assert anyio.run(look) == ["CURRENT", *(f"t{number:03}" for number in range(450))]


# What agents may not see


def test_what_does_not_pass_the_filter_is_shown_nowhere(tmp_path: Path) -> None:
    """Every tool, resource and instruction looks through the one filter of the server."""
    assert Filter() == FOR_AGENTS
    library = library_of(
        tmp_path / "memory",
        {
            "maya/Quarrels": [{"text": "Maya has a Quarrels debt.", "ns": "private"}],
            "boat": [{"text": "The boat Terna has berth 12.", "ns": "open"}],
        },
    )
    library.write({"text": "The debt is 900 crowns, from Quarrels.", "ns": "private"})
    library.write({"text": "The boat was painted.", "ns": "open"})
    only = Filter(where=(("ns", "open"),))

    async def look() -> str:
        async with Client(server_for(library, only)) as client:
            told = [client.instructions or ""]
            calls: list[tuple[str, dict[str, Any]]] = [
                ("catalog", {}), ("catalog", {"query": "quarrel debt"}), ("search", {"query": "quarrel debt boat"}),
                ("search", {"query": "", "all": True}), ("grep", {"pattern": "."}), ("read", {"topic": "maya"}),
                ("read", {"topic": "maya", "heading": "none"}), ("read", {"topic": "CURRENT"}), ("trace", {"seq": 1}),
                ("trace", {"seq": 3}), ("consolidate", {}),
            ]  # fmt: skip
            for name, arguments in calls:
                result = await client.call_tool(name, arguments)
                told += [str(result.content), str(result.structured_content)]
            listed = (await client.list_resources()).resources
            told.append(str(listed))
            for uri in [*(one.uri for one in listed), "infinimem://topics/maya"]:
                told.append(str((await client.read_resource(uri)).contents))
            return "\n".join(told)

    told = anyio.run(look)
    assert "painted" in told and "berth 12" in told
    assert "ebt" not in told.replace('"quarrel debt"', "")
    assert "uarrel" not in told.replace('"quarrel debt"', "")
    plan = "plan: 1\nbuffer: {seqs: 4}\nsteps:\n- extend: {topic: boat, heading: '', seqs: 4}\n"
    assert run(library, "consolidate", {"plan": plan}, only).values["seqs"] == [4]
    assert "debt" in (library.root / "CURRENT.md").read_text(), "what was not shown waits"


# Many at once


def test_eight_clients_write_at_once(tmp_path: Path) -> None:
    clients, each = (16, 500) if NIGHTLY else (8, 100)
    root = tmp_path / "memory"
    Library.open(root, create=True)
    seqs: dict[int, list[int]] = {}

    async def client(number: int) -> None:
        async with session_of(root) as (session, _):
            mine = seqs.setdefault(number, [])
            for turn in range(each):
                _, values = await call(session, "write", entries=[f"client {number} says {turn}"])
                mine += values["seqs"]

    async def whole() -> None:
        async with anyio.create_task_group() as group:
            for number in range(clients):
                group.start_soon(client, number)

    anyio.run(whole)
    texts = [f"client {number} says {turn}" for number in range(clients) for turn in range(each)]
    assert len(texts) in (800, 8_000)
    assert_written_once(root, list(seqs.values()), texts)


def test_calls_of_one_client_run_side_by_side(tmp_path: Path) -> None:
    """Fifty calls sent before the first answer: writes, searches and tasks, each answered, none lost."""
    root = tmp_path / "memory"
    Library.open(root, create=True).write([f"An old fact, number {number}." for number in range(200)])

    async def whole(session: ClientSession, said: Any) -> list[int]:
        seqs: list[int] = []

        async def one(number: int) -> None:
            _, values = await call(session, "write", entries=[f"new {number}", f"newer {number}"])
            seqs.extend(values["seqs"])
            text, _ = await call(session, "search", query=f"newer {number}")
            assert f"newer {number}\n" in text
            if not number % 10:
                await call(session, "consolidate")

        async with anyio.create_task_group() as group:
            for number in range(50):
                group.start_soon(one, number)
        return seqs

    assert sorted(with_session(root, whole)) == list(range(201, 301))


def test_every_tool_has_a_runner_and_an_example() -> None:
    assert {one.tool.name for one in TOOLS} == set(EXAMPLES)
    assert len(TOOLS) <= 7
