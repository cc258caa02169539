"""From settings to a model, or to none."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from infinimem.config import Settings
from infinimem.errors import BadInput
from infinimem.llm.meter import Metered
from infinimem.llm.port import Model
from infinimem.store.usage import note_server, note_usage, read_servers


def is_configured(settings: Settings) -> bool:
    """Whether a model was asked for by name or by address.

    A key alone is not enough: many have OPENAI_API_KEY set for something else, and nobody's memory is sent
    anywhere because of that.
    """
    return bool(settings.text("model.name") or settings.text("model.url"))


def connect(settings: Settings, root: Path | None, command: str, clock: Callable[[], datetime]) -> Metered | None:
    """The configured model, metered for one command; None when none is configured.

    What it takes, and what is learnt of its server, is noted in the library at `root`; without one, nowhere.
    """
    if not is_configured(settings):
        return None
    from infinimem.llm.client import OpenAIModel

    name, url = settings.text("model.name"), settings.text("model.url")
    if url and not is_address(url):
        raise BadInput("model.url (OPENAI_BASE_URL) is no address; it looks like http://localhost:8080/v1")
    digest = hashlib.sha256(f"{url}\n{name}".encode()).hexdigest()[:16]
    model = OpenAIModel(
        name,
        url,
        os.environ.get("OPENAI_API_KEY", ""),
        timeout=settings.number("model.timeout"),
        known={} if root is None else read_servers(root).get(digest, {}),
        learned=lambda known: None if root is None else note_server(root, digest, known),
    )
    meter = metered(model, settings, root, command, clock)
    model.until = meter.until
    return meter


def is_address(url: str) -> bool:
    """Whether a URL names a server that can be reached over HTTP."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, a bracket that does not close
        return False


def metered(
    model: Model, settings: Settings, root: Path | None, command: str, clock: Callable[[], datetime]
) -> Metered:
    """A model whose calls are bounded by the settings and noted in the library's usage log."""

    def note(row: dict[str, Any]) -> None:
        if root is None:
            return
        at = clock().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        note_usage(root, {"at": at, "command": command, **row})

    return Metered(
        model,
        budget=settings.count("budget.tokens"),
        seconds=settings.number("model.deadline"),
        note=note,
    )
