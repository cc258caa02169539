"""Which entries are over: by a date of their own, or by a retention rule. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from infinimem.config import Retention
from infinimem.text.when import end_of, is_past


def has_expired(
    fields: Sequence[tuple[str, str]], now: datetime, rules: Iterable[Retention], do: str = "retire"
) -> bool:
    """Whether an entry with these fields is over: by its own date, or by a retention rule that says what to `do`."""
    known = dict(fields)
    if do == "retire" and is_past(known.get("expires", ""), now):
        return True
    return any(rule.do == do and rule.matches(known) and age_of(known, now) > rule.after for rule in rules)


def age_of(fields: Mapping[str, str], now: datetime) -> float:
    """Seconds since an entry was written down, else since what it tells; negative where it does not say."""
    written = end_of(fields.get("observed", "") or fields.get("time", ""))
    return -1.0 if written is None else (now - written).total_seconds()
