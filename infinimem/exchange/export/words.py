"""Dates, counts, names of files: how the exports for readers put them."""

from __future__ import annotations

import hashlib
import re
import unicodedata

from infinimem.exchange.export.book import Leaf

MONTHS = (
    "January February March April May June July August September October November December"
).split()  # fmt: skip
ISO = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?")
LONGEST_NAME = 60
WHY = {
    "superseded": "replaced",
    "duplicate": "said twice",
    "expired": "expired",
    "deleted": "deleted by hand",
}


def day(date: str) -> str:
    """`2026-05-01` as `1 May 2026`, `2026-05` as `May 2026`; what is no date as it is."""
    match = ISO.match(date)
    if match is None:
        return date
    year, month, number = match.groups()
    if month is None or not 1 <= int(month) <= 12:
        return year
    name = f"{MONTHS[int(month) - 1]} {year}"
    return name if number is None else f"{int(number)} {name}"


def reason(leaf: Leaf) -> str:
    """Why an entry is not held any more, and since when; "" while it is."""
    if not leaf.why:
        return ""
    by = f" by #{leaf.by}" if leaf.by else ""
    since = f", {day(leaf.at)}" if leaf.at else ""
    return f"{WHY.get(leaf.why, leaf.why)}{by}{since}"


def slug(topic: str) -> str:
    """A topic's id as the name of a file and an anchor: letters and digits of any script, - and _ between."""
    text = unicodedata.normalize("NFC", topic).replace("/", "--")
    name = re.sub(r"[^\w-]+", "-", text).strip("-")[:LONGEST_NAME]
    if name == text:
        return name
    return f"{name}-{hashlib.blake2b(topic.encode('utf-8', 'surrogatepass'), digest_size=4).hexdigest()}".strip("-")
