"""docs/agents.md is run: every program, every configuration with the command that it names, every command in a text."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml
from mcp import ClientSession, StdioServerParameters, stdio_client

from infinimem import Library
from tests.cli.test_commands import PROGRAM, environment
from tests.llm.server import Answer, Behaviour, Payload, serving
from tests.readers.scripts import library_of

DOCS = (Path(__file__).resolve().parent.parent.parent / "docs" / "agents.md").read_text("utf-8")
BLOCKS = re.findall(r"^```([^\n]+)\n(.*?)^```$", DOCS, re.DOTALL | re.MULTILINE)
FILES = dict(re.findall(r"`(\.[\w./-]+)`:\n\n```[^\n]+\n(.*?)^```$", DOCS, re.DOTALL | re.MULTILINE))
PROGRAMS = {kind: code for kind, code in BLOCKS if kind.startswith("python")}


def run(code: str, folder: Path, **more: str) -> str:
    """What a program prints, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment(folder, **more), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# Configurations


async def connected(command: str, arguments: Sequence[str], folder: Path, **more: str) -> list[str]:
    """The tools of a server that is started as a configuration says."""
    path = {"PATH": f"{PROGRAM}:/usr/bin:/bin", "HOME": str(folder), **more}
    server = StdioServerParameters(command=str(PROGRAM / command), args=list(arguments), cwd=folder, env=path)
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        return [tool.name for tool in (await session.list_tools()).tools]


def test_the_entries_for_mcp_start_the_server(tmp_path: Path) -> None:
    """As each program documents its file: the keys it knows, the variables it fills in, the folder it starts from."""
    home = {"HOME": str(tmp_path / "home")}
    project, elsewhere = tmp_path / "a project", tmp_path / "elsewhere"
    project.mkdir()
    elsewhere.mkdir()
    [claude] = json.loads(FILES[".mcp.json"])["mcpServers"].values()
    [cursor] = json.loads(FILES[".cursor/mcp.json"])["mcpServers"].values()
    [codex] = tomllib.loads(FILES[".codex/config.toml"])["mcp_servers"].values()
    for known, server in (
        ({"type", "command", "args", "env"}, claude),
        ({"type", "command", "args", "env", "envFile"}, cursor),
        ({"command", "args", "env", "env_vars", "cwd", "startup_timeout_sec", "tool_timeout_sec", "enabled"}, codex),
    ):
        assert set(server) <= known
        assert isinstance(server["command"], str)
        assert all(isinstance(word, str) for word in server["args"])
    assert claude["type"] == cursor["type"] == "stdio"
    filled = [word.replace("${workspaceFolder}", str(project)) for word in cursor["args"]]
    for server, arguments, folder in ((claude, claude["args"], project), (cursor, filled, elsewhere)):
        tools = anyio.run(lambda: connected(server["command"], arguments, folder, **home))  # noqa: B023
        assert "consolidate" in tools
        library = project / ".memory"
        assert (library / "infinimem.yaml").exists(), "the project's own library, made by its first use"
        library.rename(tmp_path / f"library of {server['args'][1][:2]}")
    assert "consolidate" in anyio.run(lambda: connected(codex["command"], codex["args"], elsewhere, **home))
    assert list(elsewhere.iterdir()) == [], "yours, not one in the folder where it happened to be started"


def test_the_commands_that_add_the_server_name_the_same(tmp_path: Path) -> None:
    added = re.findall(r"(claude|codex) mcp add (\S+) -- (\S+) ([^`\n]*)", DOCS)
    assert [(program, name) for program, name, _, _ in added] == [("claude", "infinimem"), ("codex", "infinimem")]
    [codex] = tomllib.loads(FILES[".codex/config.toml"])["mcp_servers"].values()
    assert all((command, words.split()) == (codex["command"], codex["args"]) for _, _, command, words in added)


def test_the_number_of_tokens_is_the_one_that_is_told() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "infinimem", "mcp", "--json"], capture_output=True, text=True, check=True
    )
    assert len(json.loads(done.stdout)) == 7
    assert "about 1,070 tokens" in DOCS


# Claude Code


TRANSCRIPT: list[dict[str, Any]] = [
    {"type": "summary", "summary": "Desk numbers", "leafUuid": "u5"},
    {"type": "user", "uuid": "u1", "timestamp": "2026-05-01T09:00:00.123Z", "isSidechain": False,
     "message": {"role": "user", "content": "Maya joined Nordlys.\nShe starts in June."}},
    {"type": "user", "uuid": "u2", "timestamp": "2026-05-01T09:00:01Z", "isMeta": True,
     "message": {"role": "user", "content": "Caveat: the messages below were generated"}},
    {"type": "user", "uuid": "u3", "timestamp": "2026-05-01T09:00:02Z",
     "message": {"role": "user", "content": "<command-name>/clear</command-name>"}},
    {"type": "assistant", "uuid": "a1", "timestamp": "2026-05-01T09:00:03Z",
     "message": {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}]}},
    {"type": "user", "uuid": "u4", "timestamp": "2026-05-01T09:00:04Z", "toolUseResult": {},
     "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ls"}]}},
    {"type": "user", "uuid": "u5", "timestamp": "2026-05-01T09:00:05Z",
     "message": {"role": "user", "content": [{"type": "text", "text": "-- and her desk is 12 日本"}]}},
    {"type": "assistant", "uuid": "a2", "timestamp": "2026-05-01T09:00:06Z", "isSidechain": False,
     "message": {"role": "assistant", "content": [{"type": "text", "text": "Desk 12 it is."}]}},
    {"type": "user", "uuid": "u6", "timestamp": "2026-05-01T09:00:06Z", "isSidechain": True,
     "message": {"role": "user", "content": "A task for a helper."}},
]  # fmt: skip


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the documented files in it."""
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content, "utf-8")
    return tmp_path


def hook(project: Path, event: str, given: dict[str, Any], **more: str) -> subprocess.CompletedProcess[str]:
    """Run a hook as Claude Code does: a shell, JSON on standard input."""
    settings = json.loads((project / ".claude/settings.json").read_text())
    [[command]] = [entry["hooks"] for entry in settings["hooks"][event]]
    variables = {**settings["env"], "CLAUDE_PROJECT_DIR": str(project), **more}
    return subprocess.run(
        ["sh", "-c", command["command"]], cwd=project, env=environment(project, **variables),
        input=json.dumps({"hook_event_name": event, "cwd": str(project), **given}), capture_output=True, text=True,
    )  # fmt: skip


def test_the_hook_at_the_end_keeps_what_was_said_once(project: Path) -> None:
    transcript = project / 'it\'s a "project"' / "session.jsonl"
    transcript.parent.mkdir()
    given = {"session_id": "s", "transcript_path": str(transcript), "reason": "exit"}
    for rows in (TRANSCRIPT[:4], TRANSCRIPT, TRANSCRIPT):  # the session was resumed, and ended twice
        transcript.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        done = hook(project, "SessionEnd", given)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
    library = Library.open(project / "memory")
    found = library.index().entries(())
    assert [(unit.text, unit.time, unit.source) for unit in found] == [
        ("Maya joined Nordlys.\nShe starts in June.", "2026-05-01T09:00:00Z", "user"),
        ("-- and her desk is 12 日本", "2026-05-01T09:00:05Z", "user"),
        ("Desk 12 it is.", "2026-05-01T09:00:06Z", "AI"),
    ]


def test_the_settings_are_what_claude_code_documents(project: Path) -> None:
    settings = json.loads((project / ".claude/settings.json").read_text())
    assert set(settings) == {"env", "hooks"}
    assert all(isinstance(value, str) for value in settings["env"].values())
    assert set(settings["hooks"]) == {"SessionStart", "SessionEnd"}
    for entries in settings["hooks"].values():
        for entry in entries:
            assert set(entry) <= {"matcher", "hooks"}
            for one in entry["hooks"]:
                assert one["type"] == "command"
                assert set(one) <= {"type", "command", "timeout"}
                assert one.get("timeout", 1) <= 60, "Claude Code waits no longer than that at a session's end"


def test_the_skill_is_one(project: Path) -> None:
    """By the specification of skills: names, lengths, and a body that is worth its place in the context."""
    skill = project / ".claude/skills/memory/SKILL.md"
    _, head, body = skill.read_text("utf-8").split("---\n", 2)
    fields = yaml.safe_load(head)
    assert set(fields) == {"name", "description"}
    assert fields["name"] == skill.parent.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", fields["name"])
    assert 0 < len(fields["name"]) <= 64
    assert 0 < len(fields["description"]) <= 1024
    assert "Use it" in fields["description"], "when, not only what"
    assert len(body.splitlines()) < 500


def test_the_hook_at_the_start_gives_the_catalogue_within_its_limits(project: Path) -> None:
    given = {"session_id": "s", "transcript_path": str(project / "s.jsonl"), "source": "startup", "model": "scripted"}
    first = hook(project, "SessionStart", given)
    head = "What memory holds (topic, entries, tokens, summary):\n"
    assert (first.returncode, first.stderr) == (0, ""), "no error at the very first session"
    assert first.stdout.startswith(head)
    assert "infinimem init" in first.stdout
    root = project / "memory"
    Library.open(root, create=True)
    assert hook(project, "SessionStart", given).stdout == head
    for number in range(300):
        name = f"subject-{number:03}"
        (root / "topics" / f"{name}.md").write_text(f"---\nid: {name}\nsummary: {'Long words. ' * 20}\n---\n# {name}\n")
    told = hook(project, "SessionStart", given).stdout
    assert told.startswith(f"{head}subject-000\t")
    assert 20 < told.count("\n") <= 202
    assert re.search(r"^[0-9]+ more of 300 topics; name words to search for", told, re.MULTILINE), (
        "it is not all there is"
    )
    assert len(told) <= 10_000, "of more than that the model sees 2,000"
    (project / "memory/topics").rename(project / "gone")
    (root / "topics").mkdir()
    library_of(root, {"boat": ["The boat Terna has berth 12."]})
    assert hook(project, "SessionStart", {**given, "source": "compact"}).stdout.count("\n") == 2


def test_the_catalogue_for_a_memory_file_keeps_within_its_lines_and_bytes(project: Path) -> None:
    [command] = re.findall(r"`(infinimem catalog --max-lines 200 --max-bytes 25000)`", DOCS)
    root = project / "memory"
    Library.open(root, create=True)
    for number in range(300):
        words = "Ein Wört. 日本 " * (number % 12)
        (root / "topics" / f"subject-{number:03}.md").write_text(
            f"---\nid: subject-{number:03}\nsummary: {words}\n---\n# A\n"
        )
    for removed in (0, 250):
        for page in sorted((root / "topics").iterdir())[:removed]:
            page.unlink()
        done = subprocess.run(
            shlex.split(command), cwd=project, capture_output=True,
            env=environment(project, INFINIMEM_LIBRARY=str(root)), check=True,
        )  # fmt: skip
        told = done.stdout.decode("utf-8")
        assert told.count("\n") <= 200
        assert len(done.stdout) <= 25_000
        assert told.count("subject-") == (50 if removed else 200)


def commands_in(text: str) -> list[str]:
    return list(re.findall(r"`(infinimem [^`]+)`", text))


def test_every_command_that_a_skill_or_an_agents_file_names_works(tmp_path: Path) -> None:
    """Commands run in the order in which they are named, on a library that has what they ask for."""
    memory = library_of(
        tmp_path / "memory",
        {"maya": [{"text": "Maya works at Fjord Labs, badge KX7-12.", "source": "user", "time": "2025-09-01"}]},
    )
    memory.write("A new thing.")
    [snippet] = [text for kind, text in BLOCKS if kind == "markdown" and text.startswith("## Memory")]
    (tmp_path / "plan.yaml").write_text("plan: 1\nsteps:\n- extend: {topic: maya, heading: '', seqs: 2}\n")
    named = {"WORDS": "Maya", "TOPIC:LINE": f"maya:{memory.search('Fjord')[0].line}", "SEQ": "1"}
    seen = commands_in(FILES[".claude/skills/memory/SKILL.md"]) + commands_in(snippet)
    assert len(seen) >= 11
    for command in seen:
        for name, value in named.items():
            command = command.replace(name, value)
        done = subprocess.run(
            ["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True,
            env=environment(tmp_path, INFINIMEM_LIBRARY=str(tmp_path / "memory")), stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        assert shlex.split(command)[0] == "infinimem"
    assert Library.open(tmp_path / "memory").check() == []


# Programs


@contextmanager
def anthropic_server(replies: Sequence[list[dict[str, Any]]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server that speaks Anthropic's Messages API with these contents, one a request; and what it was sent."""
    requests: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            content = replies[min(len(requests), len(replies)) - 1]
            stop = "tool_use" if content[-1]["type"] == "tool_use" else "end_turn"
            body = json.dumps({
                "id": f"msg_{len(requests)}", "type": "message", "role": "assistant", "model": "scripted",
                "content": content, "stop_reason": stop, "stop_sequence": None,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            }).encode()  # fmt: skip
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("kind", ["python anthropic", "python anthropic async"])
def test_the_memory_tool_in_anthropics_own_runner(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("anthropic")

    def use(number: int, **command: Any) -> list[dict[str, Any]]:
        return [{"type": "tool_use", "id": f"t{number}", "name": "memory", "input": command}]

    replies = [
        use(1, command="view", path="/memories"),
        use(2, command="view", path="/memories/../../etc/passwd"),
        use(3, command="create", path="/memories/maya.md", file_text="- Maya works at Fjord Labs.\n"),
        use(
            4, command="str_replace", path="/memories/maya.md", old_str="works at Fjord Labs", new_str="joined Nordlys"
        ),
        use(5, command="insert", path="/memories/maya.md", insert_line=0, insert_text="- Her desk is 12.\n"),
        use(6, command="rename", old_path="/memories/maya.md", new_path="/memories/people/maya.md"),
        use(7, command="create", path="/memories/scratch.md", file_text="- A thought.\n"),
        use(8, command="delete", path="/memories/scratch.md"),
        use(9, command="view", path="/memories/people/maya.md"),
        [{"type": "text", "text": "I will remember it."}],
    ]
    with anthropic_server(replies) as (url, requests):
        told = run(PROGRAMS[kind], tmp_path, ANTHROPIC_BASE_URL=url, ANTHROPIC_API_KEY="none")
    assert told == "I will remember it.\n"
    assert requests[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    results = [request["messages"][-1]["content"][0] for request in requests[1:]]
    assert [number for number, one in enumerate(results, 1) if one.get("is_error")] == [2]
    assert "Here're the files and directories" in str(results[0]["content"])
    assert "would escape /memories" in str(results[1]["content"])
    assert "Successfully renamed" in str(results[5]["content"])
    assert "- Her desk is 12." in str(results[8]["content"])
    library = Library.open(tmp_path / "memory")
    [hit] = library.search("Nordlys")
    assert (hit.text, hit.topic, hit.source) == ("Maya joined Nordlys.", "people/maya", "AI")
    assert [unit.text for unit in library.index().with_field("", retired=True)] == [
        "Maya works at Fjord Labs.", "A thought.",
    ]  # fmt: skip
    assert library.check() == []


def test_the_loop_of_ones_own(tmp_path: Path) -> None:
    def answer(payload: Payload) -> Answer:
        told = [str(one["content"]) for one in payload["messages"] if one["role"] == "tool"]
        if len(told) < 2:
            name, arguments = [("search", '{"query": "Maya work"}'), ("serch", "{")][len(told)]
            call = {"id": f"c{len(told)}", "type": "function", "function": {"name": name, "arguments": arguments}}
            return {"content": None, "tool_calls": [call]}
        assert told[1].startswith('there is no tool "serch"; did you mean search?')
        [place] = re.findall(r"\[(CURRENT:\d+)\]", told[0])
        return f"At Nordlys [{place}]."

    behaviour = Behaviour(answer)
    with serving(behaviour) as url:
        told = run(PROGRAMS["python openai"], tmp_path, OPENAI_BASE_URL=url, OPENAI_API_KEY="none")
    assert told == "At Nordlys [CURRENT:3].\n"
    names = [tool["function"]["name"] for tool in behaviour.requests[0]["tools"]]
    assert names == ["catalog", "search", "grep", "read", "trace", "write", "consolidate"]


def test_threads_and_async_code(tmp_path: Path) -> None:
    assert run(PROGRAMS["python"], tmp_path) == "True\n"


def test_links_and_names_hold() -> None:
    assert {kind for kind, _ in BLOCKS} == {
        "sh", "json", "toml", "markdown", "python", "python anthropic", "python anthropic async", "python openai",
    }  # fmt: skip
