"""What `write` is given, checked and made into drafts of entries; nothing wrong gets as far as a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from infinimem.errors import BadInput
from infinimem.model import Signature
from infinimem.store.append import Alike, Draft
from infinimem.text.signature import KEY_ALONE, parse_seqs, render_seqs

TIME = re.compile(
    r"(?!0000)[0-9]{4}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12][0-9]|3[01])"
    r"(?:[T ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]+)?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?)?)?"
)
ORDER = ("id", "time", "source", "supersedes", "links", "expires")
CITED = re.compile(r"[^\[\]\s]+:[0-9]{1,9}")
"""A place as `ask` and `search` print it, which people give for the seq of what stands there."""
RESERVED = {"seq", "rev", "event", "observed", "key"}


def drafts_of(entries: Iterable[Any], shared: Mapping[str, Any], meta: Mapping[str, str], key: str) -> Sequence[Draft]:
    """Entries as `draft_of` makes them; what the plain texts among them share is checked once."""
    entries = list(entries)
    if entries and are_plain(entries):
        signature, _ = draft_of(entries[0], shared, meta, key, "entry 1")
        return Alike(signature, entries)
    return [draft_of(entry, shared, meta, key, f"entry {number}") for number, entry in enumerate(entries, 1)]


def are_plain(entries: Sequence[Any]) -> bool:
    """Whether all are texts that `checked_text` lets pass, seen at a tenth of what it costs to ask it of each."""
    if set(map(type, entries)) != {str} or not all(map(str.strip, entries)):
        return False
    try:
        "".join(entries).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def checked_text(text: Any, where: str) -> str:
    """An entry's words. Raises `BadInput` naming `where`."""
    if not isinstance(text, str) or not text.strip():
        raise BadInput(f"{where} has no text; nothing was written")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadInput(f"{where} is not valid Unicode (character {error.start}); nothing was written") from error
    return text


def draft_of(
    entry: str | Mapping[str, Any], shared: Mapping[str, Any], meta: Mapping[str, str], key: str, where: str
) -> Draft:
    """One entry as signature fields and text, everything checked. Raises `BadInput` naming `where`."""
    given: dict[Any, Any] = dict(entry) if isinstance(entry, Mapping) else {"text": entry}
    text = checked_text(given.pop("text", None), where)
    fields = {**shared, **meta, **given}
    observed = fields.pop("observed", "")
    if key:
        fields["key"] = key
    chosen: list[tuple[str, str]] = []
    for name in sorted(fields, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER)):
        value = field_value(name, fields[name], where, own=name == "key" and bool(key))
        if value:
            chosen.append((name, value))
    chosen.append(("observed", checked_time("observed", str(observed), where)))
    return Signature((), tuple(chosen)), text


def field_value(name: str, value: Any, where: str, *, own: bool = False) -> str:
    """A signature field's value as text; "" for none."""
    if not isinstance(name, str) or not KEY_ALONE.fullmatch(name):
        raise BadInput(f"{where}: {name!r} is no field name (letters, digits, _ . -); nothing was written")
    if name in RESERVED and not own:
        instead = " here: one is for all that is written at once (key=, --key)" if name == "key" else ""
        raise BadInput(f"{where}: {name} cannot be given{instead}; nothing was written")
    if value is None or value == "":
        return ""
    if name in ("supersedes",):
        return seqs_value(name, value, where)
    if name in ("time", "expires"):
        return checked_time(name, str(value), where)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple) and all(isinstance(one, str | int) for one in value):
        return "+".join(str(one) for one in value)
    if isinstance(value, list | dict | tuple):
        import json

        try:
            value = json.dumps(value, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise BadInput(f"{where}: {name} cannot be stored ({error}); nothing was written") from error
    if isinstance(value, float) and value != value:
        raise BadInput(f"{where}: {name} is not a number; nothing was written")
    text = str(value)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadInput(f"{where}: {name} is not valid Unicode; nothing was written") from error
    return text


def seqs_value(name: str, value: Any, where: str) -> str:
    """Seqs given as a number, a text or a list."""
    several = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
    pieces: list[Any] = list(value) if several else [value]
    if not pieces:
        return ""
    seqs: list[int] = []
    for piece in pieces:
        found = parse_seqs(str(piece).strip())
        if not found or isinstance(piece, bool):
            hint = f"; infinimem read {piece} shows it" if CITED.fullmatch(str(piece).strip()) else ""
            raise BadInput(f"{where}: {name} is a seq such as 12 or 12-15+18, not {piece!r}{hint}; nothing was written")
        seqs.extend(found)
    return render_seqs(dict.fromkeys(seqs))


def checked_time(name: str, value: str, where: str) -> str:
    """An ISO 8601 date, possibly partial, that exists in the calendar."""
    text = value.strip()
    if text in ("", "empty"):
        return ""
    match = TIME.fullmatch(text)
    if match and len(text) >= 10:
        try:
            datetime.fromisoformat(text.replace(" ", "T", 1))
        except ValueError:
            match = None
    if match is None:
        raise BadInput(
            f"{where}: {name} is a date such as 2026, 2026-05, 2026-05-01 or 2026-05-01T09:00, "
            f"not {value!r}; nothing was written"
        )
    return text.replace(" ", "T", 1)
