"""A library full of one private person, and everything that an audience could try: not one word of them comes out."""

from __future__ import annotations

import contextlib
import inspect
import io
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession

from infinimem import Library
from infinimem.agents.memory_tool import MemoryTool
from infinimem.agents.tools import NAMES, run
from infinimem.cli import main
from infinimem.cli.commands import COMMANDS
from infinimem.errors import InfinimemError
from infinimem.model import Create, Extend, Join, Merge, Summarise
from infinimem.plan.paper import Plan
from tests.access.test_laws import told
from tests.agents.client import with_session
from tests.conftest import NIGHTLY
from tests.git.clones import git

START = datetime(2026, 5, 1, 9, tzinfo=UTC)
WORDS = ("zorblatt", "quetzal", "kx7-113", "chemotherapy", "ünterwegs")
"""Words that only private entries say."""
PRIVATE = {"sensitivity": "private"}
NAMES_TRIED = (
    "zorblatt", "Zorblatt", "x/zorblatt", "x/zorblatt-and-quetzal", "zorblat", "quetzal", "CURRENT", "evidence/2026-05",
    "../.infinimem/written", ".infinimem/summaries", "open", "guest", "1", "2-3", "99", "../CURRENT",
    "topics/x/zorblatt",
)  # fmt: skip


def clock() -> Callable[[], datetime]:
    ticks = itertools.count()
    return lambda: START + timedelta(seconds=next(ticks))


def flush(library: Library, *steps: Any) -> None:
    assert not library.flush(plan=Plan(steps)).skipped


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library in which a private person stands in every kind of place."""
    root = tmp_path_factory.mktemp("hostile") / "memory"
    library = Library.open(root, create=True, clock=clock())
    (root / "infinimem.yaml").write_text(
        "format: 1\naccess: {mcp: {deny: {sensitivity: private}}, export: {deny: {sensitivity: private}}}\n"
    )
    library.write(["Zorblatt has chemotherapy on Tuesdays.", "The gate code is KX7-113."],
                  source="Dr. Quetzal", meta=PRIVATE)  # fmt: skip
    library.write(["Maya works at Fjord Labs.", "Maya cycles.", "The boat has berth 12."])
    flush(library, Create("x/zorblatt", "Zorblatt and Quetzal"), Extend("x/zorblatt", "Of Zorblatt", (1, 2, 3)),
          Create("open", "What is open"), Extend("open", "Quetzal's boat", (4, 5)),
          Summarise("x/zorblatt", "Zorblatt has chemotherapy on Tuesdays."))  # fmt: skip
    library.write("Zorblatt sings.", meta={**PRIVATE, "label": "Quetzal"})
    library.write("Maya sings.")
    flush(library, Join((6, 7), "Zorblatt and Maya sing."), Extend("open", "Songs of Zorblatt", (6, 7)))
    topic = root / "topics" / "x" / "zorblatt.md"
    topic.write_text(topic.read_text().replace("Zorblatt has chemotherapy", "Zorblatt, Ünterwegs, has chemotherapy"))
    (root / "topics" / "guest.md").write_text("# A guest\n\nOn Zorblatt.\n\nOn ferries.\n")
    remarks = "\nMy remark on Quetzal.\n\n| a | Zorblatt |\n"
    (root / "topics" / "open.md").write_text((root / "topics" / "open.md").read_text() + remarks)
    library.check(fix=True)
    library.write("Zorblatt is well again.", supersedes=1, meta=PRIVATE)
    library.write("The ferry leaves at nine.", meta={"links": "1:about+x/zorblatt+2:contradicts"})
    library.write("Maya has left Fjord Labs.", supersedes=[3, 2])
    library.flush(planner="lexical")
    library.write("A choir.")
    flush(library, Create("quetzal", "Quetzal"), Extend("quetzal", "", (11,)))
    flush(library, Merge(("quetzal", "open"), "open", "What is open"))
    library.ask("Who is Zorblatt?")
    library.feedback("good")
    (root / ".infinimem" / "proposals.yaml").write_text(
        "- at: x\n  step: {join: {seqs: 1-2, text: Zorblatt has code KX7-113}}\n"
    )
    library.write("Zorblatt waits for Quetzal.", meta=PRIVATE, key="zorblatt-1")
    library.write("Maya waits for the ferry.")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "On Zorblatt")
    library.close()
    return root


def assert_silent(asked: str, answer: str, *said: str) -> None:
    """Nothing private is in an answer, besides what was said in asking."""
    low = answer.casefold()
    for one in sorted(said, key=len, reverse=True):
        low = low.replace(one.casefold(), "…")
    found = [word for word in WORDS if word in low]
    assert not found, f"{asked}: {answer[:2000]}"


def command_lines() -> Iterator[list[str]]:
    """Every command that reads, with everything that it could be asked."""
    for query in ("Zorblatt", "Maya boat", "Quetzal code", "who has therapy"):
        for more in ([], ["--all"], ["--as-of", "2026-05-01"], ["--known-at", "2026-05"]):
            yield ["search", query, *more]
            yield ["ask", query, *more]
        yield ["ask", query, "--trace"]
        yield ["catalog", query]
        yield ["timeline", query]
    for pattern in ("(?i)z.rblatt", ".", "(?i)kx7", "seq=1,"):
        yield ["grep", pattern]
        yield ["grep", pattern, "--all", "-C", "3"]
    for name in NAMES_TRIED if NIGHTLY else NAMES_TRIED[:7]:
        for command in ("read", "history", "timeline", "trace", "diff", "split", "merge", "recover", "forget", "edit"):
            yield [command, name]
    yield ["merge", "zorblatt", "open"]
    yield ["forget", "1", "--dry-run"]
    yield ["forget", "--pattern", "(?i)zorblatt", "--dry-run"]
    yield ["write", "Maya has the same key.", "--key", "zorblatt-1"]
    yield ["write", "Maya has news.", "--supersedes", "1-9"]
    yield ["import", "heard.md", "--flush"]
    for line in ("catalog", "catalog --as-of 2026-05", "status", "stats", "stats --cost", "check", "check --for-commit",
                 "check --fix --dry-run", "undo --dry-run", "history", "diff", "diff HEAD", "diff 2026-05", "review",
                 "reconsolidate --dry-run", "feedback good", "flush --dry-run", "flush --plan-template", "config",
                 "flush --estimate", "export", "export --out memory.md", "flush --planner lexical"):  # fmt: skip
        yield line.split()


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_command_tells(root: Path, form: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("INFINIMEM_AUDIENCE", "mcp")
    monkeypatch.setenv("EDITOR", "cat")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "heard.md").write_text("# Heard\n\nMaya cycles to Fjord Labs on Sundays.\n")
    tried = set()
    for line in command_lines():
        output = io.StringIO()
        arguments = ["-L", str(root), *line, *(["--json"] if form == "json" else [])]
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output), contextlib.suppress(SystemExit):
            main(arguments)
        tried.add(line[0])
        assert_silent(" ".join(arguments), output.getvalue(), *line[1:])
    assert tried >= set(COMMANDS) - {"init", "watch", "merge-driver", "mcp", "schema", "demo"}
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert_silent(f"the file {path.name}", path.read_text("utf-8", "replace"))


def test_no_method_tells(root: Path) -> None:
    """Every public method, with whatever fits its first parameter."""
    reader = Library.open(root, audience="mcp", clock=clock())
    asked = 0
    for name, method in inspect.getmembers(reader, inspect.ismethod):
        if name.startswith("_") or name in ("write", "write_all", "extract", "import_", "close", "open"):
            continue
        needed = [
            one for one in inspect.signature(method).parameters.values()
            if one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
        ]  # fmt: skip
        values: list[Any] = [*NAMES_TRIED, 1, 2, 6, [1, 2], ["zorblatt", "open"], ["1"]] if needed else [None]
        for value in values:
            given = [value] * len(needed)
            try:
                answer = told(method(*given))
            except InfinimemError as error:
                answer = str(error)
            except (TypeError, ValueError, AttributeError, KeyError):  # what is no value for it
                continue
            asked += 1
            assert_silent(f"{name} {value}", answer.replace(str(root), ""), *map(str, given))
    assert asked > 200


def test_no_agent_s_tool_tells(root: Path) -> None:
    reader = Library.open(root, audience="mcp", clock=clock())
    asked: list[tuple[str, dict[str, Any]]] = []
    for text in (*NAMES_TRIED, "Maya", "(?i)zor|kx", ".*"):
        asked += [("catalog", {"query": text}), ("search", {"query": text}),
                  ("search", {"query": text, "retired": True}),
                  ("grep", {"pattern": text}), ("read", {"topic": text}), ("read", {"topic": text, "lines": "1-99"}),
                  ("trace", {"seq": text}), ("read", {"topic": "open", "heading": text})]  # fmt: skip
    asked += [("trace", {"seq": seq}) for seq in range(15)]
    plan = "plan: 1\nsteps:\n- "
    asked += [("consolidate", {}), ("consolidate", {"plan": plan + "extend: {topic: x/zorblatt, seqs: 12}\n"}),
              ("consolidate", {"plan": plan + "join: {seqs: 12-13, text: both}\n"}),
              ("write", {"entries": [{"text": "Maya.", "supersedes": "1"}], "key": "zorblatt-1"})]  # fmt: skip
    assert {name for name, _ in asked} == set(NAMES)
    for name, arguments in asked:
        answer = run(reader, name, arguments)
        said = [*map(str, arguments.values()), *(["x/zorblatt"] if "plan" in arguments else [])]
        assert_silent(f"{name} {arguments}", answer.text + json.dumps(answer.values, ensure_ascii=False), *said)
    with pytest.raises(InfinimemError):
        MemoryTool(reader)


def test_the_server_of_agents_does_not_tell(root: Path) -> None:
    async def look(session: ClientSession, said: Any) -> list[str]:
        told = [str(said)]
        told.append(str(await session.list_tools()))
        listed = await session.list_resources()
        told.append(str(listed))
        told += [str(await session.read_resource(one.uri)) for one in listed.resources]
        for name in ("x/zorblatt", "zorblatt", "CURRENT", "../evidence/2026-05"):
            with contextlib.suppress(Exception):
                told.append(str(await session.read_resource(f"infinimem://topics/{name}")))  # type: ignore[arg-type]
        for tool in ("catalog", "search", "grep", "consolidate"):
            told.append(str(await session.call_tool(tool, {"query": "Maya", "pattern": "."})))
        return told

    for answer in with_session(root, look):
        assert_silent("the server", answer, "x/zorblatt")


def test_the_place_holds_no_byte_of_it(root: Path) -> None:
    place = Library.open(root, audience="mcp", clock=clock()).place()
    for path in place.rglob("*"):
        name = path.relative_to(place).as_posix()
        content = path.read_bytes().decode("utf-8", "replace") if path.is_file() else ""
        assert_silent(name, f"{name}\n{content}")


def test_a_shell_that_claims_another_audience_learns_what_that_one_may(root: Path) -> None:
    command = [sys.executable, "-m", "infinimem", "-L", str(root), "search", "Zorblatt", "--json"]
    for audience, exit_code in (("export", 1), ("mcp", 1), ("MCP", 2), ("nobody", 2)):
        done = subprocess.run(
            command, capture_output=True, env={**os.environ, "INFINIMEM_AUDIENCE": audience}, check=False
        )
        assert done.returncode in (exit_code, 0), (audience, done)
        assert_silent(audience, (done.stdout + done.stderr).decode())
