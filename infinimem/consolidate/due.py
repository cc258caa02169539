"""When CURRENT is due for a flush."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from infinimem.config import Settings
from infinimem.model import Document
from infinimem.text.document import unsigned_entries
from infinimem.text.tokens import estimate


def is_due(document: Document, settings: Settings, now: datetime) -> str:
    """Why CURRENT is due for a flush; "" when it is not."""
    if not document.entries and not unsigned_entries(document):
        return ""
    tokens = estimate("".join(document.lines))
    if tokens >= settings.count("flush.max_tokens"):
        return f"CURRENT holds {tokens} tokens"
    age = buffer_age(document, now)
    if age >= settings.number("flush.max_age"):
        return f"its oldest entry is {readable_age(age)} old"
    return ""


def seconds_until_due(document: Document, settings: Settings, now: datetime) -> float:
    """Seconds until CURRENT is due if nobody touches it; 0 when it is, infinite when it is empty."""
    if not document.entries and not unsigned_entries(document):
        return math.inf
    if is_due(document, settings, now):
        return 0.0
    return max(0.0, settings.number("flush.max_age") - buffer_age(document, now))


def buffer_age(document: Document, now: datetime) -> float:
    """Seconds since the oldest entry was written, by its own `observed`; never negative."""
    oldest = min((entry.observed for entry in document.entries if entry.observed), default="")
    try:
        written = datetime.fromisoformat(oldest) if oldest else now
    except ValueError:
        return 0.0
    if written.tzinfo is None:
        written = written.replace(tzinfo=UTC)
    return max(0.0, (now - written).total_seconds())


def readable_age(seconds: float) -> str:
    """`3 h`, `2 days`."""
    for size, name in ((86400, "day"), (3600, "h"), (60, "min")):
        if seconds >= size:
            number = int(seconds // size)
            return f"{number} {name}{'s' if name == 'day' and number > 1 else ''}"
    return f"{int(seconds)} s"


def timestamp(now: datetime) -> str:
    """UTC to the second, as signatures carry it."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
