"""How a topic's summary and headings came to be what they are: versions, faithfulness to the entries, drift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infinimem.consolidate.commit import extract, headings_of
from infinimem.model import Document, path_of
from infinimem.plan.desk import aux_list, is_pinned
from infinimem.plan.rules import NAME, NUMBER
from infinimem.store.buffer import read_if_there
from infinimem.store.summaries import read_versions
from infinimem.text.document import parse
from infinimem.text.words import analyse

FAR = 0.5
"""The share of a summary's first words that are gone from it, and not from its page, from which on it has strayed."""
WRITTEN = ("model", "plan", "hand")
"""Planners whose summaries are put in words; without one a summary is made from its page by rule."""


@dataclass(frozen=True, slots=True)
class Version:
    """A summary as it was from `at` on ("" = since when is not known), what made it, and its drift from the first."""

    at: str
    text: str
    op: str
    drift: float = 0.0
    by: str = ""


@dataclass(frozen=True, slots=True)
class Outline:
    """A topic's headings as they were from `at` on, its title first; what came and what went with this version."""

    at: str
    headings: tuple[str, ...]
    op: str
    by: str = ""
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def summary_versions(root: Path, document: Document) -> list[Version]:
    """The versions of a topic's summary that the library itself remembers, oldest first; the last is what it says now.

    A person's own change shows as `hand`, without a date. The topic's former ids count, those merged into it do not.
    """
    rows = [row for row in rows_about(root, document) if isinstance(row.get("summary"), str)]
    return versions_of(rows, summary_of(document))


def rows_about(root: Path, document: Document) -> list[dict[str, Any]]:
    """What is noted of a topic, under whatever id it had."""
    names = {document.id, *aux_list(document, "former_ids")}
    return [row for row in read_versions(root) if row.get("topic") in names]


def heading_versions(root: Path, document: Document) -> list[Outline]:
    """The versions of a topic's headings that the library itself remembers, oldest first; the last are those of now."""
    rows = [row for row in rows_about(root, document) if isinstance(row.get("headings"), list)]
    told = [(str(row.get("at", "")), tuple(map(str, row["headings"])), row) for row in rows]
    now = tuple(headings_of(document))
    if not told or told[-1][1] != now:
        told.append(("", now, {"op": "hand" if told else "found"}))
    found: list[Outline] = []
    for at, headings, row in told:
        before = found[-1].headings if found else ()
        if headings and (not found or headings != before):
            added = tuple(name for name in headings if name not in before)
            removed = tuple(name for name in before if name not in headings)
            found.append(Outline(at, headings, str(row.get("op", "")), str(row.get("by", "")), added, removed))
    return found


def versions_of(rows: Sequence[Mapping[str, Any]], now: str) -> list[Version]:
    """The versions that some rows tell of, the one of now at the end."""
    told = [
        (str(row.get("at", "")), str(row["summary"]), str(row.get("op", "")), str(row.get("by", ""))) for row in rows
    ]
    if now and (not told or told[-1][1] != now):
        told.append(("", now, "hand" if told else "found", ""))
    kept = [one for at, one in enumerate(told) if one[1] and (not at or one[1] != told[at - 1][1])]
    return [Version(at, text, op, drift(kept[0][1], text), by) for at, text, op, by in kept]


@dataclass(frozen=True, slots=True)
class Strayed:
    """A summary that has left what its first version said, though its page still says it."""

    topic: str
    first: str
    now: str
    drift: float


def strayed(root: Path) -> list[Strayed]:
    """The summaries that have strayed, the farthest first; only those that somebody put in words, and no pinned one.

    It costs a look at the log of summaries and at the pages in question, however large the library is.
    """
    first: dict[str, str] = {}
    last: dict[str, str] = {}
    for row in read_versions(root):
        if isinstance(row.get("summary"), str):
            topic, said = str(row.get("topic")), str(row["summary"])
            last[topic] = said
            if said and row.get("by") in WRITTEN:
                first.setdefault(topic, said)
    pages = [topic for topic in first if has_strayed(first[topic], last[topic], first[topic])]
    found = [strayed_page(parse(path_of(one), read_if_there(root / path_of(one))), first[one]) for one in pages]
    return sorted((one for one in found if one is not None), key=lambda one: (-one.drift, one.topic))


def strayed_page(document: Document, first: str) -> Strayed | None:
    """What became of a summary as its page stands now, if it has strayed."""
    now = summary_of(document)
    body = " ".join(entry.text for entry in document.entries)
    if not now or document.blocking or is_pinned(document) or not has_strayed(first, now, body):
        return None
    return Strayed(document.id, first, now, drift(first, now)) if now != extract(document) else None


def has_strayed(first: str, now: str, body: str) -> bool:
    """Whether a summary lacks so much of what its first version said and a body of text says still."""
    words = set(analyse(first))
    return bool(words) and len(words.intersection(analyse(body)).difference(analyse(now))) >= FAR * len(words)


def summary_of(document: Document) -> str:
    """What a document's summary says."""
    value = document.header.fields.get("summary")
    return value if isinstance(value, str) else ""


def drift(first: str, now: str) -> float:
    """How far a summary is from its first version: the share of their words that they do not have in common."""
    here, there = set(analyse(first)), set(analyse(now))
    return 1 - len(here & there) / len(here | there) if here | there else 0.0


def keeps_to(summary: str, body: str) -> bool:
    """Whether every number and name of a summary occurs in a body of text: the same in short, for many documents."""
    words = body.casefold()
    facts = [number.strip(".,:/-") for number in NUMBER.findall(summary)]
    facts += [name.casefold().removesuffix("'s").removesuffix("’s") for name in NAME.findall(summary) if len(name) > 1]
    return all(fact in words for fact in facts)
