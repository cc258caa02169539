"""From settings to a model, and what is kept in the library of it: what it cost, what its server understands."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from infinimem.config import load_settings
from infinimem.errors import BadInput, ModelFailed
from infinimem.llm.connect import connect, is_configured
from infinimem.llm.port import Call, Message, Request, Tool
from infinimem.llm.replay import Recording, Replay, Scripted
from infinimem.store.usage import USAGE, note_server, note_usage, read_servers, read_usage
from tests.llm.server import Behaviour, serving
from tests.llm.test_client import ASKED, GOOD, always

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    (tmp_path / "memory" / ".infinimem").mkdir(parents=True)
    return tmp_path / "memory"


def test_a_key_alone_asks_nobody(library: Path) -> None:
    assert not is_configured(load_settings())
    assert connect(load_settings(), library, "flush", lambda: NOW) is None


def test_a_call_is_noted_and_the_server_remembered_without_its_address(library: Path) -> None:
    behaviour = Behaviour(always(GOOD), understands=frozenset({"object", "max_tokens", "temperature"}))
    with serving(behaviour) as url:
        settings = load_settings(flags={"model.url": url.replace("http://", "http://someone:password@")})
        for _ in range(2):
            meter = connect(settings, library, "flush", lambda: NOW)
            assert meter is not None
            assert meter.complete(ASKED).text == GOOD
    assert len(behaviour.requests) == 3 + 1, "found out once"
    [first, _] = read_usage(library)
    assert first.pop("seconds") >= 0
    assert first == {
        "at": "2026-05-01T12:00:00Z",
        "command": "flush",
        "step": "rewrite",
        "model": "scripted",
        "tokens_in": 100,
        "tokens_out": 10,
        "outcome": "ok",
    }
    kept = "".join(path.read_text() for path in (library / ".infinimem").iterdir())
    assert "127.0.0.1" not in kept and "password" not in kept and "very-secret" not in kept
    assert stat.S_IMODE((library / USAGE).stat().st_mode) == 0o600


def test_a_failed_call_is_noted_too(library: Path) -> None:
    with serving(Behaviour(always(GOOD), fault=lambda number, payload: "login")) as url:
        meter = connect(load_settings(flags={"model.url": url, "model.name": "m"}), library, "ask", lambda: NOW)
        assert meter is not None
        with pytest.raises(ModelFailed):
            meter.complete(ASKED)
    [row] = read_usage(library)
    assert row["outcome"].startswith("failed: 127.0.0.1") and row["tokens_in"] == 0
    assert "very-secret" not in json.dumps(row)


@pytest.mark.parametrize(
    "url", ["localhost:8080", "ftp://host/v1", "http://", "http:///v1", "http://host:port/v1", "http://[::1/v1"]
)
def test_an_address_that_is_none_is_said(url: str, library: Path) -> None:
    with pytest.raises(BadInput, match=r"model\.url"):
        connect(load_settings(flags={"model.url": url}), library, "ask", lambda: NOW)


def test_a_row_that_was_cut_costs_no_other(library: Path) -> None:
    note_usage(library, {"step": "one"})
    with (library / USAGE).open("a") as file:
        file.write('{"step": "cu')
    note_usage(library, {"step": "two", "outcome": "failed: \u2028 \x85 \ud800"})
    assert [row["step"] for row in read_usage(library)] == ["one", "two"]


def test_a_log_that_cannot_be_written_stops_nothing(library: Path) -> None:
    (library / USAGE).mkdir()
    note_usage(library, {"step": "one"})
    assert read_usage(library) == []
    note_usage(library / "nowhere", {"step": "one"})


def test_what_is_remembered_of_servers_may_be_rubbish(library: Path) -> None:
    (library / ".infinimem" / "servers.json").write_text('{"a": ')
    assert read_servers(library) == {}
    note_server(library, "a", {"json": "schema"})
    assert read_servers(library) == {"a": {"json": "schema"}}
    (library / ".infinimem" / "servers.json").write_text("[" * 100_000)
    assert read_servers(library) == {}


def test_any_text_is_recorded_and_replayed(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    odd = "a\u2028b\x85c\x0cd \ud800 船\n"
    asked = Request(
        "ask",
        (Message("user", odd), Message("assistant", "", (Call("c", "search", odd),)), Message("tool", odd, (), "c")),
        tools=(Tool("search", odd, {"type": "object"}),),
    )
    replies = [Recording(Scripted(lambda request: odd + request.step), path).complete(one) for one in (asked, ASKED)]
    replay = Replay(path)
    assert [replay.complete(one) for one in (asked, ASKED)] == replies


def test_no_command_that_asks_no_model_loads_the_client(tmp_path: Path) -> None:
    """A second of import on every write would be felt."""
    code = """
import contextlib, sys
from infinimem.cli import main
for words in (["write", "Maya joined Nordlys."], ["flush"], ["search", "Maya"], ["ask", "Where is Maya?"]):
    sys.argv = ["infinimem", *words]
    with contextlib.suppress(SystemExit):
        main()
loaded = [name for name in ("openai", "httpx", "httpx2", "json_repair") if name in sys.modules]
assert not loaded, loaded
"""
    environment: dict[str, Any] = {**os.environ, "HOME": str(tmp_path), "INFINIMEM_LIBRARY": str(tmp_path / "memory")}
    environment.pop("XDG_CONFIG_HOME", None)
    environment["OPENAI_API_KEY"] = "sk-set-for-something-else"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
