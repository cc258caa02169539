"""A real OpenAI-compatible HTTP server whose replies a test writes, and which can be as bad as real ones are."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Payload = dict[str, Any]
Answer = str | dict[str, Any] | None
"""A text is the message's content; a mapping the whole message (with tool_calls); None a null content."""


@dataclass
class Behaviour:
    """What the server does. `fault` is asked for each request, and "" means none.

    `understands` names what of a request it takes: schema, object_schema, object, tools, stream, max_tokens,
    temperature, stream_options. `complain` puts a refusal into an error body.
    """

    answer: Callable[[Payload], Answer]
    fault: Callable[[int, Payload], str] = lambda number, payload: ""
    understands: frozenset[str] = frozenset(
        {"schema", "object", "tools", "stream", "stream_options", "max_tokens", "temperature"}
    )
    refusal: int = 400
    complain: Callable[[str], Payload] = lambda said: {"error": {"message": said, "type": "invalid_request_error"}}
    usage: bool = True
    finish: str = "stop"
    models: tuple[str, ...] = ("scripted",)
    requests: list[Payload] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)


FAULTS = (
    "500",
    "429",
    "hang",
    "drip",
    "close",
    "midway",
    "huge",
    "empty",
    "html",
    "no-choices",
    "null",
    "prose",
    "truncated",
    "placeholder",
)
RARE = ("bomb", "midstream", "echo", "login", "nothing-here", "nothing-takes-it")
"""More faults, each for the test that needs it."""


@contextmanager
def serving(behaviour: Behaviour) -> Iterator[str]:
    """The server's base URL, for as long as the context lasts."""
    stop = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            models = [{"id": name, "object": "model", "created": 0, "owned_by": "test"} for name in behaviour.models]
            self.send(200, {"object": "list", "data": models})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            payload = json.loads(body)
            behaviour.requests.append(payload)
            behaviour.keys.append(self.headers.get("Authorization", ""))
            fault = behaviour.fault(len(behaviour.requests), payload)
            if not self.broke(fault, payload):
                self.reply(payload, fault)

        def broke(self, fault: str, payload: Payload) -> bool:
            """Act a fault of the transport; whether there was one."""
            if fault == "500":
                self.send(500, {"error": {"message": "the model runner has stopped", "type": "server_error"}})
            elif fault == "429":
                self.send(429, {"error": {"message": "slow down"}}, {"Retry-After": "3600"})
            elif fault == "hang":
                stop.wait(60)
            elif fault == "drip":
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", "100000")
                self.end_headers()
                for _ in range(600):
                    try:
                        self.wfile.write(b" ")
                        self.wfile.flush()
                    except OSError:
                        break
                    if stop.wait(0.1):
                        break
            elif fault == "close":
                self.connection.shutdown(socket.SHUT_RDWR)
            elif fault == "midway":
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", "5000")
                self.end_headers()
                self.wfile.write(b'{"id": "1", "choices": [{"index"')
                self.wfile.flush()
                self.connection.shutdown(socket.SHUT_RDWR)
            elif fault == "html":
                self.raw(200, b"<html><body>Please log in</body></html>", "text/html")
            elif fault == "bomb":
                packed = gzip.compress(b" " * 200_000_000, 9)
                self.raw(200, packed, "application/json", {"Content-Encoding": "gzip"})
            elif fault == "midstream":
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Content-Length", "5000")
                self.end_headers()
                piece = {"id": "1", "created": 0, "choices": [{"index": 0, "delta": {"content": "Maya "}}]}
                self.wfile.write(b"data: " + json.dumps(piece).encode() + b"\n\n")
                self.wfile.flush()
                self.connection.shutdown(socket.SHUT_RDWR)
            elif fault == "echo":
                detail = [{"loc": ["body", "model"], "msg": "unknown", "input": payload}]
                said = f"unknown; cannot read '{json.dumps(payload['messages'])}'"
                self.send(422, {"detail": detail, "message": said})
            elif fault == "login":
                self.send(401, {"error": {"message": f"bad key {self.headers.get('Authorization')}"}})
            elif fault == "nothing-takes-it":
                self.send(400, {"error": {"message": "failed to parse grammar"}})
            elif fault == "nothing-here":
                self.send(404, {"error": {"message": "model not found"}})
            elif fault == "no-choices":
                self.send(200, {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": []})
            else:
                return False
            self.close_connection = True
            return True

        def reply(self, payload: Payload, fault: str) -> None:
            complaint = refused(payload, behaviour)
            if complaint:
                self.send(behaviour.refusal, behaviour.complain(complaint))
                return
            answer = behaviour.answer(payload)
            message = {"role": "assistant", **(answer if isinstance(answer, dict) else {"content": answer})}
            content = message.get("content")
            if fault == "huge":
                message["content"] = "x" * 10_000_000
            elif fault == "empty":
                message["content"] = ""
            elif fault == "null":
                message["content"] = None
            elif fault == "prose":
                message["content"] = "Certainly! I have sorted everything nicely for you."
            elif fault == "placeholder":
                message["content"] = "[Rest of the content remains unchanged]"
            elif fault == "truncated" and isinstance(content, str):
                message["content"] = content[: len(content) // 2]
            finish = "length" if fault == "truncated" else behaviour.finish
            if message.get("tool_calls"):
                finish = "tool_calls"
            usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
            if payload.get("stream") and "stream" in behaviour.understands:
                self.stream(message["content"] or "", finish, usage)
                return
            response = {
                "id": "1",
                "object": "chat.completion",
                "created": int(time.time()),
                "model": payload.get("model", ""),
                "choices": [{"index": 0, "message": message, "finish_reason": finish}],
                **({"usage": usage} if behaviour.usage else {}),
            }
            self.send(200, response)

        def stream(self, content: str, finish: str, usage: Payload) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            pieces = [content[at : at + 7] for at in range(0, len(content), 7)]
            rows: list[Payload] = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
            rows.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
            rows.append({"choices": [], "usage": usage})
            for row in rows:
                chunk = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m", **row}
                self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
            self.wfile.write(b"data: [DONE]\n\n")
            self.close_connection = True

        def send(self, status: int, content: Payload, headers: dict[str, str] | None = None) -> None:
            self.raw(status, json.dumps(content).encode(), "application/json", headers)

        def raw(self, status: int, body: bytes, kind: str, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(body)
            except OSError:
                self.close_connection = True

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, *_: object) -> None:
            """A client that went away is what is being tested."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        stop.set()
        server.shutdown()
        server.server_close()


def refused(payload: Payload, behaviour: Behaviour) -> str:
    """What the server complains about in a request; "" when it takes it."""
    can = behaviour.understands
    form = payload.get("response_format") or {}
    if form.get("type") == "json_schema" and "schema" not in can:
        return "response_format type json_schema is not supported"
    if form.get("type") == "json_object" and "schema" in form and "object_schema" not in can:
        return "Unknown key in response_format: schema"
    if form.get("type") == "json_object" and "schema" not in form and "object" not in can:
        return "response_format is not supported"
    if payload.get("stream_options") and "stream" in can and "stream_options" not in can:
        return "Unrecognized request argument supplied: stream_options"
    if payload.get("tools") and "tools" not in can:
        return "tools are not supported by this model"
    if "max_tokens" in payload and "max_tokens" not in can:
        return "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    if "temperature" in payload and "temperature" not in can:
        return "Unsupported value: 'temperature' does not support 0 with this model."
    return ""
