"""The client against a real HTTP server: what it finds out, what it survives, and how soon it is back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from infinimem.errors import BudgetSpent, ModelFailed
from infinimem.llm.client import OpenAIModel
from infinimem.llm.meter import Metered
from infinimem.llm.port import Call, Message, Request, Tool
from infinimem.llm.replay import Recording, Replay, Scripted
from tests.llm.server import Behaviour, Payload, serving

SCHEMA = {
    "type": "object",
    "properties": {"seqs": {"type": "array", "items": {"type": "integer"}}},
    "required": ["seqs"],
    "additionalProperties": False,
}
TOOL = Tool("search", "Find entries.", {"type": "object", "properties": {"query": {"type": "string"}}})
ASKED = Request("rewrite", (Message("system", "Sort."), Message("user", "[1] a")), SCHEMA)
CALLED = Request("search", (Message("system", "Find."), Message("user", "Where?")), tools=(TOOL,))
GOOD = '{"seqs": [1]}'


def model(url: str, **more: Any) -> OpenAIModel:
    return OpenAIModel("scripted", url, "", **{"timeout": 5.0, **more})


def always(text: str) -> Callable[[Payload], str]:
    return lambda payload: text


def test_a_reply_comes_with_what_it_cost() -> None:
    with serving(Behaviour(always(GOOD))) as url:
        reply = model(url).complete(ASKED)
    assert (reply.text, reply.usage.tokens_in, reply.usage.tokens_out, reply.cut) == (GOOD, 100, 10, False)


def test_a_server_that_counts_no_tokens_is_counted_for() -> None:
    with serving(Behaviour(always(GOOD), usage=False)) as url:
        reply = model(url).complete(ASKED)
    assert reply.usage.tokens_in > 0 and reply.usage.tokens_out > 0


@pytest.mark.parametrize("refusal", [400, 422, 500])
@pytest.mark.parametrize(
    ("understands", "form", "tried"),
    [
        ({"schema"}, "schema", 1),
        ({"object_schema"}, "object_schema", 2),
        ({"object"}, "object", 3),
        (set(), "text", 4),
    ],
)
def test_the_form_of_json_that_a_server_takes_is_found_out_once(
    understands: set[str], form: str, tried: int, refusal: int
) -> None:
    told: list[dict[str, Any]] = []
    behaviour = Behaviour(
        always(GOOD), understands=frozenset({*understands, "max_tokens", "temperature"}), refusal=refusal
    )
    with serving(behaviour) as url:
        first = model(url, learned=told.append, timeout=30.0)
        assert first.complete(ASKED).text == GOOD
        # the library itself tries a 500 three times
        assert len(behaviour.requests) == tried if refusal != 500 else len(behaviour.requests) == 3 * (tried - 1) + 1
        before = len(behaviour.requests)
        assert model(url, known=told[-1]).complete(ASKED).text == GOOD
        assert len(behaviour.requests) == before + 1, "remembered"
    assert told[-1]["json"] == form
    if form in ("object", "text"):
        assert '"additionalProperties": false' in behaviour.requests[-1]["messages"][0]["content"]


def test_names_of_parameters_are_found_out() -> None:
    told: list[dict[str, Any]] = []
    behaviour = Behaviour(always(GOOD), understands=frozenset({"schema"}))
    with serving(behaviour) as url:
        assert model(url, learned=told.append).complete(ASKED).text == GOOD
    assert "max_tokens" not in behaviour.requests[-1] and "temperature" not in behaviour.requests[-1]
    assert told[-1]["limit"] == "max_completion_tokens"


def test_a_model_that_calls_tools_is_asked_for_tool_calls() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"query": "Maya"}'}}
    with serving(Behaviour(lambda payload: {"content": None, "tool_calls": [call]})) as url:
        reply = model(url).complete(CALLED)
    assert reply.calls == (Call("c1", "search", '{"query": "Maya"}'),)


@pytest.mark.parametrize("refuses", [True, False])
def test_a_server_without_tools_is_asked_in_words(refuses: bool) -> None:
    def answer(payload: Payload) -> str:
        return (
            "I would search for Maya."
            if payload.get("tools")
            else json.dumps({"calls": [{"tool": "search", "arguments": {"query": "Maya"}}]})
        )

    can = {"schema", "max_tokens", "temperature"} | (set() if refuses else {"tools"})
    behaviour = Behaviour(answer, understands=frozenset(can))
    told: list[dict[str, Any]] = []
    with serving(behaviour) as url:
        client = model(url, learned=told.append)
        reply = client.complete(CALLED)
        assert [(call.name, json.loads(call.arguments)) for call in reply.calls] == [("search", {"query": "Maya"})]
        again = (*CALLED.messages, Message("assistant", "", reply.calls), Message("tool", "[x:1] Maya", call_id="c"))
        client.complete(Request("search", again, tools=(TOOL,)))
    assert told[-1]["tools"] == "words"
    sent = behaviour.requests[-1]["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "user"]
    assert '"tool": "search"' in sent[2]["content"] and "search: Find entries." in sent[0]["content"]


def test_an_answer_is_heard_as_it_comes() -> None:
    heard: list[str] = []
    text = "Maya works at Nordlys. She joined in May."
    with serving(Behaviour(always(text))) as url:
        reply = model(url).complete(Request("answer", ASKED.messages, hear=heard.append))
    assert "".join(heard) == reply.text == text and len(heard) > 3
    assert reply.usage.tokens_in == 100


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("500", "500"),
        ("429", "no answer within|429"),
        ("hang", "no answer within"),
        ("drip", "no answer within"),
        ("close", "cannot be reached"),
        ("midway", "cannot be reached"),
        ("huge", "more than 8 MB"),
        ("html", "no readable answer|without choices"),
        ("no-choices", "without choices"),
    ],
)
def test_a_server_that_misbehaves_is_one_line_and_soon_over(fault: str, said: str) -> None:
    behaviour = Behaviour(always(GOOD), fault=lambda number, payload: fault)
    with serving(behaviour) as url:
        started = time.monotonic()
        with pytest.raises(ModelFailed, match=said) as failed:
            model(url.replace("http://", "http://someone:secret@"), timeout=2.5).complete(ASKED)
        assert time.monotonic() - started < 6
    assert "\n" not in str(failed.value) and "secret" not in str(failed.value) and "127.0.0.1" in str(failed.value)


@pytest.mark.parametrize("fault", ["empty", "null", "prose", "placeholder"])
def test_a_reply_that_says_nothing_is_a_reply(fault: str) -> None:
    with serving(Behaviour(always(GOOD), fault=lambda number, payload: fault)) as url:
        assert model(url).complete(ASKED).text != GOOD


def test_a_reply_that_was_cut_says_so() -> None:
    with serving(Behaviour(always(GOOD), finish="length")) as url:
        assert model(url).complete(ASKED).cut


def test_nobody_listening_is_one_line() -> None:
    with pytest.raises(ModelFailed, match=r"cannot be reached.*is it running"):
        model("http://127.0.0.1:9/v1", timeout=4.0).complete(ASKED)


def test_without_a_name_the_servers_first_model_serves() -> None:
    behaviour = Behaviour(always(GOOD), models=("first", "second"))
    with serving(behaviour) as url:
        OpenAIModel("", url, "").complete(ASKED)
    assert behaviour.requests[0]["model"] == "first"


def test_a_key_goes_to_the_server_and_nowhere_else(capsys: pytest.CaptureFixture[str]) -> None:
    behaviour = Behaviour(always(GOOD), fault=lambda number, payload: "500")
    with serving(behaviour) as url, pytest.raises(ModelFailed) as failed:
        OpenAIModel("m", url, "sk-very-secret", timeout=3.0).complete(ASKED)
    assert behaviour.keys[0] == "Bearer sk-very-secret"
    assert "very-secret" not in str(failed.value) + "".join(capsys.readouterr())


# the meter


def test_a_budget_stops_before_it_is_exceeded() -> None:
    scripted = Scripted(lambda request: GOOD)
    meter = Metered(scripted, budget=1500)
    meter.complete(ASKED)
    with pytest.raises(BudgetSpent, match="1,500"):
        for _ in range(100):
            meter.complete(ASKED)
    assert meter.usage.tokens_in + meter.usage.tokens_out <= 1500 - ASKED.max_tokens + 100


def test_a_model_that_is_down_is_not_waited_for_again_and_again() -> None:
    def down(request: Request) -> str:
        raise ModelFailed("down")

    rows: list[dict[str, Any]] = []
    scripted = Scripted(down)
    meter = Metered(scripted, note=rows.append)
    for _ in range(5):
        with pytest.raises(ModelFailed):
            meter.complete(ASKED)
    assert len(scripted.requests) == 2 == len(rows)
    assert rows[0]["outcome"] == "failed: down"


def test_a_commands_time_ends() -> None:
    meter = Metered(Scripted(lambda request: GOOD), seconds=0)
    with pytest.raises(BudgetSpent, match=r"model\.deadline"):
        meter.complete(ASKED)


def test_what_was_recorded_can_be_replayed(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    first = Recording(Scripted(lambda request: GOOD), path).complete(ASKED)
    assert Replay(path).complete(ASKED) == first
    with pytest.raises(ModelFailed, match="no reply to this search request"):
        Replay(path).complete(CALLED)


def test_ctrl_c_ends_a_call_at_once(tmp_path: Path) -> None:
    behaviour = Behaviour(always(GOOD), fault=lambda number, payload: "hang")
    with serving(behaviour) as url:
        environment = {**os.environ, "OPENAI_BASE_URL": url, "INFINIMEM_MODEL": "scripted", "HOME": str(tmp_path)}
        run = [sys.executable, "-m", "infinimem", "-L", str(tmp_path / "memory")]
        subprocess.run([*run, "write", "Maya joined Nordlys.", "The boat has berth 12."], check=True, env=environment)
        before = (tmp_path / "memory" / "CURRENT.md").read_bytes()
        child = subprocess.Popen([*run, "flush"], env=environment, stderr=subprocess.PIPE, text=True)
        while not behaviour.requests:
            time.sleep(0.05)
            assert child.poll() is None
        started = time.monotonic()
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=20)
    assert child.returncode == 130 and "Traceback" not in said
    assert time.monotonic() - started < 5
    assert (tmp_path / "memory" / "CURRENT.md").read_bytes() == before


# what servers differ in, beyond the first three forms


@pytest.mark.parametrize(
    "complain",
    [
        lambda said: {"error": {"message": said}},
        lambda said: {"error": said},  # Ollama
        lambda said: {"message": said},  # vLLM
        lambda said: {"detail": said},
        lambda said: {"detail": [{"loc": ["body", "response_format"], "msg": said, "input": {"temperature": 0}}]},
    ],
)
def test_a_complaint_is_understood_in_any_error_body(complain: Callable[[str], Payload]) -> None:
    told: list[dict[str, Any]] = []
    can = frozenset({"object", "max_tokens", "temperature"})
    behaviour = Behaviour(always(GOOD), understands=can, refusal=500, complain=complain)
    with serving(behaviour) as url:
        assert model(url, learned=told.append, timeout=30.0).complete(ASKED).text == GOOD
    assert told[-1] == {"json": "object"}, "what a server repeats of the request is no complaint about it"


def test_a_500_that_is_not_about_the_form_is_a_failure_and_changes_nothing() -> None:
    told: list[dict[str, Any]] = []
    behaviour = Behaviour(always(GOOD), fault=lambda number, payload: "500")
    with serving(behaviour) as url, pytest.raises(ModelFailed, match="500"):
        model(url, learned=told.append, timeout=20.0).complete(ASKED)
    assert len(behaviour.requests) == 3 and not told


def test_one_schema_that_is_too_much_for_a_server_costs_the_others_nothing() -> None:
    many = {**SCHEMA, "description": "too many"}
    forms: list[str] = []

    def fault(number: int, payload: Payload) -> str:
        form = payload["response_format"]
        forms.append(form["type"])
        return "nothing-takes-it" if "too many" in json.dumps(form) else ""

    with serving(Behaviour(always(GOOD), fault=fault)) as url:
        client = model(url)
        for schema in (SCHEMA, many, SCHEMA, many, SCHEMA):
            assert client.complete(Request("route", ASKED.messages, schema)).text == GOOD
        assert client.known["json"] == "schema" and forms[-1] == "json_schema"
        client.complete(Request("route", ASKED.messages, many))
        client.complete(Request("route", ASKED.messages, many))
        assert client.known["json"] == "object", "twice in a row it is the server"


@pytest.mark.parametrize("known", [{"json": "bogus"}, {"json": 7}, {"tools": "x", "limit": 5}, {"temperature": ["a"]}])
def test_what_is_remembered_may_be_nonsense(known: dict[str, Any]) -> None:
    with serving(Behaviour(always(GOOD))) as url:
        assert model(url, known=known).complete(ASKED).text == GOOD


def test_a_server_that_has_lost_its_tools_is_asked_in_words() -> None:
    words = json.dumps({"calls": [{"tool": "search", "arguments": {}}]})
    behaviour = Behaviour(always(words), understands=frozenset({"schema", "max_tokens", "temperature"}))
    with serving(behaviour) as url:
        reply = model(url, known={"tools": "native", "json": "schema"}).complete(CALLED)
    assert [call.name for call in reply.calls] == ["search"]


def test_a_round_that_showed_that_there_are_no_tools_is_paid_for() -> None:
    words = json.dumps({"calls": [{"tool": "search", "arguments": {}}]})
    with serving(Behaviour(always(words))) as url:
        client = model(url)
        assert client.complete(CALLED).usage.calls == 2
        assert client.complete(CALLED).usage.calls == 1


def test_a_message_in_parts_and_arguments_as_an_object_are_read() -> None:
    parts = [{"type": "text", "text": GOOD[:5]}, {"type": "text", "text": GOOD[5:]}]
    with serving(Behaviour(lambda payload: {"content": parts})) as url:
        assert model(url).complete(ASKED).text == GOOD
    call = {"id": None, "type": "function", "function": {"name": "search", "arguments": {"query": "Maya"}}}
    with serving(Behaviour(lambda payload: {"content": None, "tool_calls": [call]})) as url:
        assert json.loads(model(url).complete(CALLED).calls[0].arguments) == {"query": "Maya"}


@pytest.mark.parametrize(("can", "requests"), [({"stream"}, 2), (set(), 2), ({"stream", "stream_options"}, 1)])
def test_an_answer_is_heard_from_servers_that_stream_otherwise_or_not_at_all(can: set[str], requests: int) -> None:
    heard: list[str] = []
    text = "Maya works at Nordlys. She joined in May."
    behaviour = Behaviour(always(text), understands=frozenset({*can, "max_tokens", "temperature"}))
    with serving(behaviour) as url:
        client = model(url)
        for _ in range(2):
            heard.clear()
            reply = client.complete(Request("answer", ASKED.messages, hear=heard.append))
            assert "".join(heard) == reply.text == text
            assert reply.usage.tokens_in > 0 and reply.usage.tokens_out > 0
    assert len(behaviour.requests) == requests + 1


def test_every_name_of_a_parameter_may_be_unknown_at_once() -> None:
    with serving(Behaviour(always("Yes."), understands=frozenset({"stream"}))) as url:
        assert model(url).complete(Request("answer", ASKED.messages, hear=lambda piece: None)).text == "Yes."


def test_json_and_calls_are_not_heard() -> None:
    heard: list[str] = []
    behaviour = Behaviour(always(GOOD))
    with serving(behaviour) as url:
        model(url).complete(Request("rewrite", ASKED.messages, SCHEMA, hear=heard.append))
    assert not heard and "stream" not in behaviour.requests[0]


def test_a_stream_that_breaks_off_is_a_failure() -> None:
    heard: list[str] = []
    with (
        serving(Behaviour(always(GOOD), fault=lambda number, payload: "midstream")) as url,
        pytest.raises(ModelFailed),
    ):
        model(url).complete(Request("answer", ASKED.messages, hear=heard.append))
    assert heard == ["Maya "]


# what a bad server can do


def test_a_small_response_that_unpacks_to_a_huge_one_is_not_unpacked() -> None:
    behaviour = Behaviour(always(GOOD), fault=lambda number, payload: "bomb")
    with serving(behaviour) as url, pytest.raises(ModelFailed, match="that is no answer"):
        model(url).complete(ASKED)


def test_what_a_server_repeats_of_the_request_is_not_repeated() -> None:
    asked = Request("answer", (Message("user", "[7] Maya's safe behind Oma's painting opens with 4711."),))
    with (
        serving(Behaviour(always(GOOD), fault=lambda number, payload: "echo")) as url,
        pytest.raises(ModelFailed, match="422") as failed,
    ):
        model(url).complete(asked)
    assert "4711" not in str(failed.value)


def test_a_key_that_the_server_repeats_is_not_repeated() -> None:
    with (
        serving(Behaviour(always(GOOD), fault=lambda number, payload: "login")) as url,
        pytest.raises(ModelFailed, match="check OPENAI_API_KEY") as failed,
    ):
        OpenAIModel("m", url, "sk-very-secret\r\n").complete(ASKED)
    assert "very-secret" not in str(failed.value)


@pytest.mark.parametrize("key", ["sk-very\nsecret", "sk-very…secret", "sk-very\0secret"])
def test_a_key_that_is_none_is_not_quoted(key: str) -> None:
    with serving(Behaviour(always(GOOD))) as url, pytest.raises(ModelFailed, match="OPENAI_API_KEY") as failed:
        OpenAIModel("m", url, key).complete(ASKED)
    assert "secret" not in str(failed.value)


def test_a_model_that_is_not_there_is_said_with_those_that_are() -> None:
    behaviour = Behaviour(always(GOOD), fault=lambda number, payload: "nothing-here", models=("llama", "qwen"))
    with (
        serving(behaviour) as url,
        pytest.raises(ModelFailed, match=r"set INFINIMEM_MODEL; the server has: llama, qwen"),
    ):
        model(url).complete(ASKED)


def test_a_server_without_models_is_said() -> None:
    with serving(Behaviour(always(GOOD), models=())) as url, pytest.raises(ModelFailed, match="offers no model"):
        OpenAIModel("", url, "").complete(ASKED)


def test_a_model_for_embedding_is_not_the_first_one() -> None:
    behaviour = Behaviour(always(GOOD), models=("text-embedding-nomic", "qwen"))
    with serving(behaviour) as url:
        assert OpenAIModel("", url, "").complete(ASKED).model == "qwen"


@pytest.mark.parametrize(
    ("variable", "value"), [("ALL_PROXY", "socks5://127.0.0.1:1"), ("SSL_CERT_FILE", "/nonexistent.pem")]
)
def test_a_wrong_proxy_or_certificate_is_one_line(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ModelFailed):
        model("https://127.0.0.1:9/v1", timeout=4.0).complete(ASKED)


def test_an_empty_address_in_the_environment_is_the_library_owners(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "")
    assert str(OpenAIModel("m", "", "").client().base_url).startswith("https://api.openai.com/v1")


@pytest.mark.parametrize("fault", ["hang", "drip"])
def test_a_call_that_was_given_up_is_over(fault: str) -> None:
    """Nothing more is sent for it, and no thread stays with it."""
    behaviour = Behaviour(always(GOOD), fault=lambda number, payload: fault)
    with serving(behaviour) as url:
        with pytest.raises(ModelFailed, match="no answer within 1 s"):
            model(url, timeout=1.0).complete(ASKED)
        until = time.monotonic() + 6
        while any(thread.name == "model" for thread in threading.enumerate()):
            assert time.monotonic() < until
            time.sleep(0.05)
        assert len(behaviour.requests) == 1


def test_a_commands_time_ends_a_call() -> None:
    behaviour = Behaviour(always(GOOD), fault=lambda number, payload: "hang")
    with serving(behaviour) as url:
        client = model(url, timeout=60.0)
        client.until = time.monotonic() + 1
        started = time.monotonic()
        with pytest.raises(ModelFailed, match=r"model\.deadline"):
            client.complete(ASKED)
        assert time.monotonic() - started < 3
