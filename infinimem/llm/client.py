"""Any OpenAI-compatible server as a `Model`, through the `openai` package.

Servers differ in what they understand: JSON by schema, JSON at all, tool calls, names of parameters. What one
understands is found out by trying, best first, and remembered (`known`), so that it is tried once.
"""

from __future__ import annotations

import json
import queue
import re
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from infinimem.errors import ModelFailed
from infinimem.llm.port import Call, Message, Reply, Request, Tool
from infinimem.llm.reply import read_json
from infinimem.model import Usage
from infinimem.text.tokens import estimate

FORMS = ("schema", "object_schema", "object", "text")
"""How JSON is asked for, best first: by schema, by llama-cpp-python's way of it, as JSON at all, in words."""
RETRIES = 2  # the client library's own default
LARGEST = 8 << 20
"""Bytes of a response; more is no answer to anything that is asked here."""
ABOUT_FORM = re.compile(r"response_format|schema|json|grammar|tool|function", re.IGNORECASE)
"""What a server error speaks of that comes from the form of a request: llama-cpp-python answers 500 to a schema."""
JSON_ONLY = "Answer with one JSON object and nothing else. Its JSON schema:\n"
TOOLS_IN_WORDS = """You work with tools. Answer each time with one JSON object and nothing else:
{"calls": [{"tool": "NAME", "arguments": {…}}]}
The tools, each with the JSON schema of its arguments:
"""


class OpenAIModel:
    """A model behind an OpenAI-compatible server.

    `timeout` is seconds for one call, all tries together, and no call lasts beyond `until` on the monotonic clock;
    `known` is what is known of this server, `learned` is told when more becomes known.
    """

    def __init__(
        self,
        name: str,
        url: str,
        key: str,
        *,
        timeout: float = 60.0,
        known: Mapping[str, Any] | None = None,
        learned: Callable[[dict[str, Any]], None] = lambda known: None,
    ) -> None:
        import openai

        self.name = name
        self.host = host_of(url)
        self.timeout = timeout
        self.until = float("inf")
        self.known = dict(known or {})
        self.learned = learned
        self._openai = openai
        self._client = openai.OpenAI(
            api_key=key or "none",  # local servers want none, the library wants one
            base_url=url or None,
            timeout=timeout,
            max_retries=RETRIES,
            http_client=openai.DefaultHttpxClient(timeout=timeout, event_hooks={"response": [limit_size]}),
        )
        weakref.finalize(self, self._client.close).atexit = False  # a call may be hanging then

    def complete(self, request: Request) -> Reply:
        """The server's reply. Raises `ModelFailed` when there is none within the time of a call."""
        started = time.monotonic()
        deadline = min(started + self.timeout, self.until)
        if not self.name:
            self.name = self.first_model(deadline)
        forms = self.forms(request)
        for at, form in enumerate(forms):
            try:
                return self.try_form(request, form, deadline, started)
            except FormRefused as refused:
                if at + 1 == len(forms):
                    raise ModelFailed(str(refused)) from refused
        raise ModelFailed(f"{self.host} takes no request")

    def forms(self, request: Request) -> list[dict[str, Any]]:
        """The ways to put a request that this server may understand, best first."""
        tools = [self.known["tools"]] if "tools" in self.known else ["native", "words"]
        wanted = FORMS[FORMS.index(self.known.get("json", FORMS[0])) :]
        if request.tools:
            return [
                form
                for way in tools
                for form in (
                    [{"tools": "native"}] if way == "native" else [{"tools": "words", "json": json} for json in wanted]
                )
            ]
        return [{"json": json} for json in wanted] if request.schema is not None else [{}]

    def try_form(self, request: Request, form: Mapping[str, Any], deadline: float, started: float) -> Reply:
        """One way to put the request; `FormRefused` when the server does not understand it."""
        for _ in range(3):  # a name of a parameter may turn out to be unknown, and another one
            arguments = self.arguments(request, form)
            try:
                text, calls, usage, cut = self.send(arguments, request.hear, deadline)
            except Refused as refused:
                if self.learn_parameter(refused.message):
                    continue
                if form and (refused.status in (400, 422) or ABOUT_FORM.search(refused.message)):
                    raise FormRefused(refused.told) from refused
                raise ModelFailed(refused.told) from refused
            if form.get("tools") == "native" and not calls and "tools" not in self.known:
                raise FormRefused(f"{self.host} calls no tools")
            if form.get("tools") == "words":
                calls = calls_in(text)
            self.remember(form, calls)
            sent = usage[0] or sum(estimate(message["content"] or "") for message in arguments["messages"])
            received = usage[1] or estimate(text) + sum(estimate(call.arguments) for call in calls)
            cost = Usage(1, sent, received, time.monotonic() - started)
            return Reply(text, tuple(calls), cost, cut, self.name)
        raise ModelFailed(f"{self.host} refuses every form of the request")

    def remember(self, form: Mapping[str, Any], calls: Sequence[Call]) -> None:
        """Keep what has just proved to work."""
        new = dict(form)
        if new.get("tools") and not calls:
            del new["tools"]  # no proof of anything
        if any(self.known.get(key) != value for key, value in new.items()):
            self.known.update(new)
            self.learned(dict(self.known))

    def learn_parameter(self, message: str) -> bool:
        """Take a complaint about the name of a parameter to heart; whether it was one and is news."""
        said = message.casefold()
        if "max_completion_tokens" in said and "max_tokens" in said and self.known.get("limit") is None:
            self.known["limit"] = "max_completion_tokens"
        elif "temperature" in said and self.known.get("temperature") is None:
            self.known["temperature"] = "default"
        elif "stream_options" in said and self.known.get("stream_options") is None:
            self.known["stream_options"] = "none"
        else:
            return False
        self.learned(dict(self.known))
        return True

    def arguments(self, request: Request, form: Mapping[str, Any]) -> dict[str, Any]:
        """A request as the client library takes it."""
        messages = list(request.messages)
        arguments: dict[str, Any] = {"model": self.name}
        arguments[self.known.get("limit", "max_tokens")] = request.max_tokens
        if self.known.get("temperature") is None:
            arguments["temperature"] = 0
        schema = request.schema
        if form.get("tools") == "native":
            arguments["tools"] = [native_tool(tool) for tool in request.tools]
        elif form.get("tools") == "words":
            schema = calls_schema(request.tools)
            messages = in_words(messages, request.tools)
        if schema is not None and form.get("tools") != "native":
            arguments.update(response_format(request.step, schema, form["json"]))
            if form["json"] in ("object", "text") and form.get("tools") != "words":
                messages = with_rule(messages, JSON_ONLY + json.dumps(schema, ensure_ascii=False))
        if request.hear is not None:
            arguments["stream"] = True
            if self.known.get("stream_options") is None:
                arguments["stream_options"] = {"include_usage": True}
        arguments["messages"] = [message_values(message) for message in messages]
        return arguments

    def send(
        self, arguments: dict[str, Any], hear: Callable[[str], None] | None, deadline: float
    ) -> tuple[str, list[Call], tuple[int, int], bool]:
        """Text, calls, tokens and whether it was cut. In a thread of its own: no server can hold this one.

        A server that sends a byte now and then never times out by itself, and a `Retry-After` may be an hour.
        """
        results: queue.Queue[tuple[str, Any]] = queue.Queue()
        gone = threading.Event()

        def work() -> None:
            try:
                if "stream" in arguments:
                    for piece in self.stream(arguments):
                        if gone.is_set():
                            return
                        results.put(piece)
                else:
                    results.put(("done", read_response(self._client.chat.completions.create(**arguments))))
            except BaseException as error:  # it is raised again in the caller's thread
                results.put(("error", error))

        threading.Thread(target=work, daemon=True, name="model").start()
        try:
            while True:
                try:
                    kind, value = results.get(timeout=max(0.01, deadline - time.monotonic()))
                except queue.Empty:
                    raise self.too_late() from None
                if kind == "piece" and hear is not None:
                    hear(value)
                elif kind == "error":
                    raise self.failure(value) from None
                elif kind == "done":
                    done: tuple[str, list[Call], tuple[int, int], bool] = value
                    return done
        finally:
            gone.set()

    def stream(self, arguments: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """The reply's pieces as they come, then all of it."""
        pieces: list[str] = []
        usage = (0, 0)
        cut = False
        for chunk in self._client.chat.completions.create(**arguments):
            if getattr(chunk, "usage", None):
                usage = (chunk.usage.prompt_tokens or 0, chunk.usage.completion_tokens or 0)
            for choice in (chunk.choices or [])[:1]:
                piece = choice.delta.content or "" if choice.delta else ""
                if piece:
                    pieces.append(piece)
                    yield "piece", piece
                cut = cut or choice.finish_reason == "length"
            if sum(map(len, pieces)) > LARGEST:
                raise TooLarge
        yield "done", ("".join(pieces), [], usage, cut)

    def first_model(self, deadline: float) -> str:
        """The first model that the server offers."""
        results: queue.Queue[Any] = queue.Queue()

        def work() -> None:
            try:
                results.put([model.id for model in self._client.models.list().data])
            except BaseException as error:
                results.put(error)

        threading.Thread(target=work, daemon=True, name="models").start()
        try:
            found = results.get(timeout=max(0.01, deadline - time.monotonic()))
        except queue.Empty:
            raise self.too_late() from None
        if isinstance(found, BaseException):
            failure = self.failure(found)
            raise ModelFailed(failure.told if isinstance(failure, Refused) else str(failure)) from None
        if not found:
            raise ModelFailed(f"{self.host} offers no model; set INFINIMEM_MODEL")
        return str(found[0])

    def too_late(self) -> ModelFailed:
        """The time of a call is over."""
        return ModelFailed(
            f"{self.host} gave no answer within {self.timeout:g} s; a slow server wants more (model.timeout: 5m)"
        )

    def failure(self, error: BaseException) -> Exception:
        """What went wrong in the client library's thread, in our words."""
        kinds = self._openai
        if isinstance(error, TooLarge) or isinstance(error.__cause__, TooLarge):
            return ModelFailed(f"{self.host} sent more than {LARGEST >> 20} MB; that is no answer")
        if isinstance(error, kinds.APITimeoutError):
            return self.too_late()
        if isinstance(error, kinds.APIConnectionError):
            cause = error.__cause__ or error
            return ModelFailed(f"{self.host} cannot be reached ({one_line(cause)}); is it running? OPENAI_BASE_URL")
        if isinstance(error, kinds.APIStatusError):
            return self.refusal(error.status_code, one_line(error))
        if isinstance(error, kinds.OpenAIError | ValueError | AttributeError | TypeError | KeyError | IndexError):
            return ModelFailed(f"{self.host} gave no readable answer ({one_line(error)})")
        if isinstance(error, Exception):
            return ModelFailed(f"{self.host}: the call broke off ({type(error).__name__}: {one_line(error)})")
        return ModelFailed(f"{self.host}: the call broke off ({type(error).__name__})")

    def refusal(self, status: int, said: str) -> Refused:
        """An HTTP status as a refusal, with what to do about it."""
        todo = {
            401: "; check OPENAI_API_KEY",
            403: "; check OPENAI_API_KEY",
            404: f"; is there a model {self.name!r}? set INFINIMEM_MODEL",
            429: "; too many requests or no credit left, try again later",
        }.get(status, "")
        return Refused(status, said, f"{self.host} answered {status}: {said[:200]}{todo}")


class Refused(Exception):
    """The server answered with a status that is no success."""

    def __init__(self, status: int, message: str, told: str) -> None:
        super().__init__(told)
        self.status = status
        self.message = message
        self.told = told


class FormRefused(Exception):
    """The server does not understand this form of the request; there may be another."""


class TooLarge(Exception):
    """A response that goes on and on."""


def limit_size(response: Any) -> None:
    """Have a response break off beyond `LARGEST` bytes, before anybody keeps them in memory."""
    stream = response.stream
    # the base class that httpx wants a stream to be of; openai brings httpx, by one name or another
    base = next(kind for kind in type(stream).__mro__ if kind.__name__ == "SyncByteStream")

    class Limited(base):  # type: ignore[misc, valid-type]
        """A stream of bytes that ends with `TooLarge`."""

        def __iter__(self) -> Iterator[bytes]:
            left = LARGEST
            for chunk in stream:
                left -= len(chunk)
                if left < 0:
                    raise TooLarge
                yield chunk

        def close(self) -> None:
            stream.close()

    response.stream = Limited()


def host_of(url: str) -> str:
    """A server as it is named in messages: never with a user's name or password."""
    parts = urlsplit(url or "https://api.openai.com/v1")
    return f"{parts.hostname or 'the server'}:{parts.port}" if parts.port else parts.hostname or "the server"


def one_line(error: BaseException) -> str:
    """An error's own words, short."""
    return " ".join(str(error).split())[:300] or type(error).__name__


def read_response(response: Any) -> tuple[str, list[Call], tuple[int, int], bool]:
    """Text, calls, tokens and whether it was cut, of a whole response."""
    choices = getattr(response, "choices", None)
    if not choices:
        raise ValueError("a response without choices")
    message = choices[0].message
    calls = [
        Call(call.id or f"call-{at}", call.function.name or "", call.function.arguments or "")
        for at, call in enumerate(message.tool_calls or [])
        if getattr(call, "function", None) is not None
    ]
    usage = response.usage
    tokens = (usage.prompt_tokens or 0, usage.completion_tokens or 0) if usage else (0, 0)
    content = message.content if isinstance(message.content, str) else ""
    return content, calls, tokens, choices[0].finish_reason == "length"


def response_format(step: str, schema: Mapping[str, Any], form: str) -> dict[str, Any]:
    """How a JSON reply is asked for in one of the `FORMS`."""
    if form == "schema":
        named = {"name": step, "schema": dict(schema), "strict": is_strict(schema)}
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    if form == "object_schema":
        return {"response_format": {"type": "json_object", "schema": dict(schema)}}
    return {"response_format": {"type": "json_object"}} if form == "object" else {}


def is_strict(schema: Any) -> bool:
    """Whether a schema is of the kind that OpenAI calls strict: every property required, no others, no bounds."""
    if isinstance(schema, Mapping):
        if "maxLength" in schema:  # llama.cpp needs it, OpenAI's strict mode refused it for long
            return False
        if schema.get("type") == "object":
            named = set(schema.get("properties", {}))
            if schema.get("additionalProperties") is not False or set(schema.get("required", [])) != named:
                return False
        return all(is_strict(value) for value in schema.values())
    return all(is_strict(value) for value in schema) if isinstance(schema, list) else True


def message_values(message: Message) -> dict[str, Any]:
    """A message as the API takes it."""
    values: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.calls:
        values["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
    if message.call_id:
        values["tool_call_id"] = message.call_id
    return values


def native_tool(tool: Tool) -> dict[str, Any]:
    """A tool as the API takes it."""
    function = {"name": tool.name, "description": tool.about, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


def calls_schema(tools: Sequence[Tool]) -> dict[str, Any]:
    """The JSON schema of a round of tool calls."""
    options = [
        {
            "type": "object",
            "properties": {"tool": {"type": "string", "enum": [tool.name]}, "arguments": dict(tool.parameters)},
            "required": ["tool", "arguments"],
            "additionalProperties": False,
        }
        for tool in tools
    ]
    return {
        "type": "object",
        "properties": {"calls": {"type": "array", "items": {"anyOf": options}, "minItems": 1, "maxItems": 4}},
        "required": ["calls"],
        "additionalProperties": False,
    }


def in_words(messages: Sequence[Message], tools: Sequence[Tool]) -> list[Message]:
    """A conversation with tools as one of plain texts, for servers that have no tools."""
    told = "\n".join(f"- {tool.name}: {tool.about} {json.dumps(tool.parameters, ensure_ascii=False)}" for tool in tools)
    plain = with_rule(list(messages), TOOLS_IN_WORDS + told)
    found: list[Message] = []
    for message in plain:
        if message.calls:
            calls = [{"tool": call.name, "arguments": read_json(call.arguments) or {}} for call in message.calls]
            found.append(Message("assistant", json.dumps({"calls": calls}, ensure_ascii=False)))
        elif message.role == "tool":
            # one message for all results of a round: some templates want the roles to alternate
            if found and found[-1].role == "user":
                found[-1] = Message("user", f"{found[-1].content}\n\n{message.content}")
            else:
                found.append(Message("user", message.content))
        else:
            found.append(message)
    return found


def with_rule(messages: list[Message], rule: str) -> list[Message]:
    """The messages with one more rule in the system message, which comes first."""
    if messages and messages[0].role == "system":
        return [Message("system", f"{messages[0].content}\n\n{rule}"), *messages[1:]]
    return [Message("system", rule), *messages]


def calls_in(text: str) -> list[Call]:
    """Tool calls in a JSON reply, whichever way a model spells them."""
    value = read_json(text)
    listed = value.get("calls", [value]) if isinstance(value, Mapping) else value
    found = []
    for at, item in enumerate(listed if isinstance(listed, list) else [listed]):
        if not isinstance(item, Mapping):
            continue
        name = next((item[key] for key in ("tool", "name", "function") if isinstance(item.get(key), str)), "")
        given = next((item[key] for key in ("arguments", "parameters", "args") if key in item), None)
        if given is None:
            given = {key: value for key, value in item.items() if key not in ("tool", "name", "function")}
        if name:
            arguments = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
            found.append(Call(f"call-{at}", name, arguments))
    return found
