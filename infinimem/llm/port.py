"""The one door to a model: a request goes in, a reply comes out. What is behind it, nobody here knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from infinimem.model import Usage


@dataclass(frozen=True, slots=True)
class Tool:
    """Something that a model may call. `parameters` is the JSON schema of its arguments, an object."""

    name: str
    about: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call as the model made it: `arguments` is its own text, which may be no JSON at all."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `role` is system, user, assistant or tool; a tool's answer names its call in `call_id`."""

    role: str
    content: str
    calls: tuple[Call, ...] = ()
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """What a model is asked.

    `step` names the prompt (rewrite, route, …) for the usage log. With `schema` the reply is to be JSON of that
    form, with `tools` it is to be tool calls; a server that has neither is asked for JSON in words. `max_tokens`
    bounds the reply. `hear` is told the reply's text piece by piece as it comes (never JSON, never calls).
    """

    step: str
    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None = None
    tools: tuple[Tool, ...] = ()
    max_tokens: int = 1024
    hear: Callable[[str], None] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back. `cut` says that the reply stopped at its length limit and so may be incomplete."""

    text: str
    calls: tuple[Call, ...] = ()
    usage: Usage = field(default_factory=Usage)
    cut: bool = False
    model: str = ""


class Model(Protocol):
    """Whatever can answer a request. Raises when it cannot, best `ModelFailed`; retries are its own affair."""

    def complete(self, request: Request) -> Reply:
        """The reply to a request."""
        ...
