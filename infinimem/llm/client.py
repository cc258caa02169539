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
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from infinimem.errors import ModelFailed
from infinimem.llm.port import Call, Message, Reply, Request, Tool
from infinimem.llm.reply import read_json
from infinimem.model import Usage
from infinimem.text.tokens import estimate

if TYPE_CHECKING:
    import openai

FORMS = ("schema", "object_schema", "object", "text")
"""How JSON is asked for, best first: by schema, by llama-cpp-python's way of it, as JSON at all, in words."""
RETRIES = 2  # the client library's own default
LISTING = 5.0
"""Seconds that a list of models is waited for when it is only a hint."""
LARGEST = 8 << 20
"""Bytes of a response; more is no answer to anything that is asked here."""
LARGEST_PACKED = LARGEST // 64
"""Bytes of a compressed response, which may become a thousand times as many."""
ABOUT_JSON = re.compile(r"response_format|schema|json|grammar", re.IGNORECASE)
ABOUT_TOOLS = re.compile(r"tool|function", re.IGNORECASE)
"""What a server error speaks of that comes from the form of a request: llama-cpp-python answers 500 to a schema."""
QUOTED = re.compile(r"(['\"`]).{40,}?\1", re.DOTALL)
"""What an error quotes at length is likely to be the request, which is nobody's business."""
RUN = 16
"""Characters in common by which an error is known to repeat a request."""
NO_CHAT = re.compile(r"embed|rerank|whisper|tts|dall-e|moderation", re.IGNORECASE)
"""Names of models that servers list beside those one can talk to."""
OPENAI = "https://api.openai.com/v1"
POSSIBLE = {
    "json": FORMS,
    "tools": ("native", "words"),
    "limit": ("max_completion_tokens",),
    "temperature": ("default",),
    "stream_options": ("none",),
    "stream": ("none",),
}
"""What can be known of a server."""
CALL = threading.local()
"""`CALL.until`: when the call that a thread works on is over. Whoever asked has gone by then."""
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
        known = known if isinstance(known, Mapping) else {}  # it comes from a file
        self.known = {key: value for key, value in known.items() if value in POSSIBLE.get(key, ())}
        self.learned = learned
        self.doubts = 0
        self._openai = openai
        self._url = url or OPENAI
        self._key = key.strip()
        self._client: openai.OpenAI | None = None

    def client(self) -> openai.OpenAI:
        """The client library's client, made at the first call: proxies and certificates may be set up wrongly."""
        if self._client is None:
            kinds = self._openai
            hooks: dict[str, Any] = {"request": [in_time], "response": [limit_size]}
            self._client = kinds.OpenAI(
                api_key=self._key or "none",  # local servers want none, the library wants one
                base_url=self._url,
                timeout=self.timeout,
                max_retries=RETRIES,
                http_client=kinds.DefaultHttpxClient(timeout=self.timeout, event_hooks=hooks),
            )
            weakref.finalize(self, self._client.close).atexit = False  # a call may be hanging then
        return self._client

    def complete(self, request: Request) -> Reply:
        """The server's reply. Raises `ModelFailed` when there is none within the time of a call."""
        started = time.monotonic()
        deadline = min(started + self.timeout, self.until)
        if not (self._key.isascii() and self._key.isprintable()):  # an HTTP library would quote it in its complaint
            raise ModelFailed("OPENAI_API_KEY holds a character that no key has; set it anew")
        if not self.name:
            self.name = self.first_model(deadline)
        forms = self.forms(request)
        wasted = Usage()
        for at, form in enumerate(forms):
            try:
                reply = self.try_form(request, form, deadline, started)
            except FormRefused as refused:
                wasted += refused.usage
                if at + 1 == len(forms):
                    raise ModelFailed(str(refused)) from refused
                continue
            return replace(reply, usage=reply.usage + wasted)
        raise ModelFailed(f"{self.host} takes no request")

    def forms(self, request: Request) -> list[dict[str, Any]]:
        """The ways to put a request that this server may understand, best first."""
        wanted = FORMS[FORMS.index(self.known.get("json", FORMS[0])) :]
        if request.tools:
            native = [] if self.known.get("tools") == "words" else [{"tools": "native"}]
            return [*native, *({"tools": "words", "json": json} for json in wanted)]
        return [{"json": json} for json in wanted] if request.schema is not None else [{}]

    def try_form(self, request: Request, form: Mapping[str, Any], deadline: float, started: float) -> Reply:
        """One way to put the request; `FormRefused` when the server does not understand it."""
        for _ in range(5):  # a name of a parameter may turn out to be unknown, and another one
            arguments = self.arguments(request, form)
            try:
                text, calls, usage, cut = self.send(arguments, request.hear, deadline)
            except Unstreamed:
                self.known["stream"] = "none"
                self.learned(dict(self.known))
                continue
            except Refused as refused:
                if self.learn_parameter(refused.message):
                    continue
                if is_about_form(form, refused):
                    raise FormRefused(refused.told) from refused
                offered = self.offered(deadline) if refused.status == 404 else ""
                raise ModelFailed(refused.told + offered) from refused
            sent = usage[0] or sum(estimate(message["content"] or "") for message in arguments["messages"])
            received = usage[1] or estimate(text) + sum(estimate(call.arguments) for call in calls)
            if form.get("tools") == "native" and not calls and "tools" not in self.known:
                raise FormRefused(f"{self.host} calls no tools", Usage(1, sent, received))
            if form.get("tools") == "words":
                calls = calls_in(text)
            self.remember(form, calls)
            cost = Usage(1, sent, received, time.monotonic() - started)
            return Reply(text, tuple(calls), cost, cut, self.name)
        raise ModelFailed(f"{self.host} refuses every form of the request")

    def remember(self, form: Mapping[str, Any], calls: Sequence[Call]) -> None:
        """Keep what has just proved to work."""
        new = dict(form)
        if new.get("tools") and not calls:
            del new["tools"]  # no proof of anything
        if "json" in new and "json" in self.known:
            worse = FORMS.index(new["json"]) > FORMS.index(self.known["json"])
            self.doubts = self.doubts + 1 if worse else 0
            if self.doubts == 1:  # one schema may be too much for a server that takes others
                del new["json"]
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
        # JSON and calls are nothing to be heard
        if request.hear is not None and not form and self.known.get("stream") is None:
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
            CALL.until = deadline
            left = max(0.01, deadline - time.monotonic())
            try:
                if "stream" in arguments:
                    for piece in self.stream(arguments, left):
                        if gone.is_set():
                            return
                        results.put(piece)
                else:
                    response = self.client().chat.completions.create(**arguments, timeout=left)
                    results.put(("done", read_response(response)))
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
                    raise self.failure(value, arguments["messages"]) from None
                elif kind == "done":
                    done: tuple[str, list[Call], tuple[int, int], bool] = value
                    if hear is not None and "stream" not in arguments and self.known.get("stream") == "none":
                        hear(done[0])
                    return done
        finally:
            gone.set()

    def stream(self, arguments: dict[str, Any], timeout: float) -> Iterator[tuple[str, Any]]:
        """The reply's pieces as they come, then all of it; `Unstreamed` when the server sends no stream."""
        pieces: list[str] = []
        tokens = (0, 0)
        cut = begun = False
        for chunk in self.client().chat.completions.create(**arguments, timeout=timeout):
            begun = True
            if getattr(chunk, "usage", None):
                tokens = tokens_of(chunk.usage)
            for choice in (chunk.choices or [])[:1]:
                piece = text_in(choice.delta.content) if choice.delta else ""
                if piece:
                    pieces.append(piece)
                    yield "piece", piece
                cut = cut or choice.finish_reason == "length"
        if not begun:
            raise Unstreamed
        yield "done", ("".join(pieces), [], tokens, cut)

    def list_models(self, deadline: float) -> list[str]:
        """The models that the server offers, in its order. Raises `ModelFailed`."""
        results: queue.Queue[Any] = queue.Queue()

        def work() -> None:
            CALL.until = deadline
            try:
                listed = self.client().models.list(timeout=max(0.01, deadline - time.monotonic())).data
                results.put([model.id for model in listed or [] if isinstance(model.id, str)])
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
        names: list[str] = found
        return names

    def first_model(self, deadline: float) -> str:
        """The first model that the server offers for talking to."""
        names = self.list_models(deadline)
        if not names:
            raise ModelFailed(f"{self.host} offers no model; set INFINIMEM_MODEL")
        return next((name for name in names if not NO_CHAT.search(name)), names[0])

    def offered(self, deadline: float) -> str:
        """What the server has instead of a model that it does not know, as the rest of a message."""
        try:
            names = self.list_models(min(deadline, time.monotonic() + LISTING))
        except ModelFailed:
            return "; or is OPENAI_BASE_URL not the address that ends in /v1?"
        return f"; the server has: {', '.join(names[:5])}{', …' if len(names) > 5 else ''}" if names else ""

    def too_late(self) -> ModelFailed:
        """The time of a call is over."""
        if time.monotonic() >= self.until - 0.1:
            return ModelFailed(f"{self.host} gave no answer before the command's time was over (model.deadline)")
        return ModelFailed(
            f"{self.host} gave no answer within {self.timeout:g} s; a slow server wants more (model.timeout: 5m)"
        )

    def failure(self, error: BaseException, sent: Sequence[Mapping[str, Any]] = ()) -> Exception:
        """What went wrong in the client library's thread, in our words."""
        kinds = self._openai
        said = self.without_key(one_line(error))
        if isinstance(error, TooLarge):
            return ModelFailed(f"{self.host} sent more than {LARGEST >> 20} MB; that is no answer")
        if isinstance(error, TooLate | kinds.APITimeoutError):
            return self.too_late()
        if isinstance(error, Unstreamed):
            return error
        if isinstance(error, kinds.APIConnectionError):
            cause = self.without_key(one_line(error.__cause__ or error))
            return ModelFailed(f"{self.host} cannot be reached ({cause}); is it running? OPENAI_BASE_URL")
        if isinstance(error, kinds.APIStatusError):
            return self.refusal(error.status_code, words_of(body_of(error)), sent)
        if self._client is None:
            return ModelFailed(f"no way to {self.host} ({said}); check OPENAI_BASE_URL, proxies and certificates")
        if isinstance(error, kinds.OpenAIError | ValueError | AttributeError | TypeError | KeyError | IndexError):
            return ModelFailed(f"{self.host} gave no readable answer ({said})")
        return ModelFailed(f"{self.host}: the call broke off ({type(error).__name__}: {said})")

    def without_key(self, said: str) -> str:
        """A message in which the key does not stand, should a server repeat it."""
        return said.replace(self._key, "…") if len(self._key) >= 8 else said

    def refusal(self, status: int, said: str, sent: Sequence[Mapping[str, Any]]) -> Refused:
        """An HTTP status as a refusal, with what to do about it."""
        todo = {
            401: "; check OPENAI_API_KEY",
            403: "; check OPENAI_API_KEY",
            404: f"; is there a model {self.name!r}? set INFINIMEM_MODEL",
            429: "; too many requests or no credit left, try again later",
        }.get(status, "")
        words = " ".join(QUOTED.sub("…", said[:2000]).split())[:200]
        if words.startswith("<") or any(repeats(words, str(message["content"])) for message in sent):
            words = ""  # a web page, or what was asked
        told = f"{self.host} answered {status}{': ' + words if words else ''}{todo}"
        return Refused(status, said, self.without_key(told))


class Refused(Exception):
    """The server answered with a status that is no success."""

    def __init__(self, status: int, message: str, told: str) -> None:
        super().__init__(told)
        self.status = status
        self.message = message
        self.told = told


class FormRefused(Exception):
    """The server does not understand this form of the request; there may be another. `usage` is its tokens."""

    def __init__(self, told: str, usage: Usage | None = None) -> None:
        super().__init__(told)
        self.usage = Usage() if usage is None else usage


class Unstreamed(Exception):
    """The server was asked for a stream and sent none."""


class TooLarge(BaseException):
    """A response that goes on and on. No `Exception`: older client libraries would try again after one."""


class TooLate(BaseException):
    """The time of a call is over. No `Exception`, for the same reason."""


def in_time(request: Any) -> None:
    """Send nothing for a call that nobody waits for any more: the library's retries outlive it."""
    if time.monotonic() >= getattr(CALL, "until", float("inf")):
        raise TooLate


def limit_size(response: Any) -> None:
    """Have a response break off beyond `LARGEST` bytes, before anybody keeps them in memory, and beyond its time."""
    stream = response.stream
    # the base class that httpx wants a stream to be of; openai brings httpx, by one name or another
    base = next(kind for kind in type(stream).__mro__ if kind.__name__ == "SyncByteStream")
    plain = response.headers.get("Content-Encoding", "identity") == "identity"

    class Limited(base):  # type: ignore[misc, valid-type]
        """A stream of bytes that ends with `TooLarge`, or with `TooLate`."""

        def __iter__(self) -> Iterator[bytes]:
            left = LARGEST if plain else LARGEST_PACKED
            for chunk in stream:
                left -= len(chunk)
                if left < 0:
                    raise TooLarge
                in_time(response)
                yield chunk

        def close(self) -> None:
            stream.close()

    response.stream = Limited()


def is_about_form(form: Mapping[str, Any], refused: Refused) -> bool:
    """Whether a refusal may be one of the request's form. Keys, credit and names of models are not."""
    if not form or refused.status in (401, 403, 429):
        return False
    if refused.status in (400, 422):
        return True
    about = ABOUT_TOOLS if form.get("tools") == "native" else ABOUT_JSON
    # OpenRouter says 404 where no server of a model has tools
    return (refused.status >= 500 or form.get("tools") == "native") and bool(about.search(refused.message))


def body_of(error: Any) -> Any:
    """The body of an error response, as JSON where it is."""
    body = getattr(error, "body", None)
    if body is None:
        return str(error)
    try:
        return json.loads(body) if isinstance(body, str) else body
    except (ValueError, RecursionError):
        return body


def words_of(body: Any, depth: int = 0) -> str:
    """What an error body says, in whatever shape: never what it repeats of the request, as FastAPI does."""
    if isinstance(body, str):
        return body[:2000]
    if isinstance(body, Mapping) and depth < 5:
        keys = ("error", "message", "detail", "loc", "msg", "param")
        return " ".join(words_of(body[key], depth + 1) for key in keys if body.get(key))
    if isinstance(body, list) and depth < 5:
        return " ".join(words_of(one, depth + 1) for one in body[:5])
    return ""


def repeats(said: str, text: str) -> bool:
    """Whether there is a run of the text, twice `RUN` long, in what is said."""
    text = " ".join(text.split())
    return any(said[at : at + RUN] in text for at in range(0, len(said) - RUN + 1, RUN))


def host_of(url: str) -> str:
    """A server as it is named in messages: never with a user's name or password."""
    try:
        parts = urlsplit(url or OPENAI)
        host, port = parts.hostname or "the server", parts.port
    except ValueError:
        return "the server"
    return f"{host}:{port}" if port else host


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
        Call(str(call.id or f"call-{at}"), str(call.function.name or ""), arguments_in(call.function.arguments))
        for at, call in enumerate(message.tool_calls or [])
        if getattr(call, "function", None) is not None
    ]
    return text_in(message.content), calls, tokens_of(response.usage), choices[0].finish_reason == "length"


def text_in(content: Any) -> str:
    """A message's text: a text, or the texts of its parts."""
    if isinstance(content, list):
        parts = [part.get("text") if isinstance(part, Mapping) else getattr(part, "text", "") for part in content]
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def arguments_in(arguments: Any) -> str:
    """A call's arguments as text; some servers send the object itself."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)


def tokens_of(usage: Any) -> tuple[int, int]:
    """Tokens sent and received as the server counts them; 0 where it does not, or not in numbers."""
    counted = (getattr(usage, "prompt_tokens", 0), getattr(usage, "completion_tokens", 0))
    sent, received = (count if isinstance(count, int) and 0 <= count < 10**9 else 0 for count in counted)
    return sent, received


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
