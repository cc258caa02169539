"""Extractive summaries: every word of them stands in an entry or in its signature."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from infinimem.model import Entry
from infinimem.plan.lexical.titles import beginning, ends_in_abbreviation, is_opaque, subjects
from infinimem.plan.lexical.weigh import is_person, subject_terms, term_counts, vocatives

SUBJECTS = 7
# what says little without the sentence before it, or speaks to the other person
_LEANS = re.compile(r"(?:it|that|this|they|those|these|but|and|so|he|she|you|your|also|das|es|aber|und|du)\b", re.I)
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_SENTENCE = re.compile(r"[^.!?。！？\n]+(?:[.!?](?!\s|$)[^.!?。！？\n]*)*[.!?。！？]*")


def summarise(title: str, entries: Sequence[Entry], limit: int = 240) -> str:
    """One line: what it is about, who speaks, from when to when, and the statements that say most of it."""
    entries = [beginning(entry) for entry in entries]
    parts = [", ".join(_subjects(title, entries)), ", ".join(_speakers(title, entries)), _time_range(entries)]
    head = " · ".join(part for part in parts if part)
    head = head[:1].upper() + head[1:]
    text = head
    for statement in _statements(entries):
        stop = ";" if text[-1:].isalnum() else ""  # a note without a full stop would run into the next one
        longer = f"{text} — {statement}" if text == head and head else f"{text}{stop} {statement}".strip()
        if len(longer) <= limit:
            text = longer
    if text in ("", _time_range(entries)):
        words = " ".join(" ".join(entry.text for entry in entries[:3]).split())
        text = f"{text} — {words}" if text else words
    return text if len(text) <= limit else _cut(text, limit)


def _subjects(title: str, entries: Sequence[Entry]) -> list[str]:
    named = title.casefold()
    return [name for name in subjects(entries, SUBJECTS + 3) if name.casefold() not in named][:SUBJECTS]


def _speakers(title: str, entries: Sequence[Entry]) -> list[str]:
    told = Counter(entry.source for entry in entries if is_person(entry.source))
    return [name for name, _ in sorted(told.items(), key=lambda pair: (-pair[1], pair[0]))[:3]]


def _time_range(entries: Sequence[Entry]) -> str:
    days = sorted({entry.time[:10] for entry in entries if entry.time})
    if not days:
        return ""
    first, last = days[0], days[-1]
    return first if first == last else f"{first} – {last}"


def _statements(entries: Sequence[Entry]) -> list[str]:
    """Sentences, the most central first: those whose words most entries share; questions say nothing."""
    names = vocatives(entries)
    counts = term_counts(entries, names)
    total = len(entries)
    scored = []
    for place, entry in enumerate(entries):
        for sentence in _sentences(entry.text):
            terms = set(subject_terms(sentence)) - names
            size = len(sentence.encode("utf-8", "surrogatepass"))
            if (
                len(terms) < 2
                or not 20 <= size <= 160
                or sentence[-1] in "?？"
                or any(map(is_opaque, sentence.split()))
            ):
                continue
            worth = math.fsum(min(counts[term], total / 3) for term in terms) / (4 + size / 12)
            if not sentence.isascii() and _UNSPACED.search(sentence):
                worth /= 2  # every character but one begins a term there
            if _LEANS.match(sentence):
                worth /= 2
            scored.append((-worth, place, sentence))
    chosen: list[str] = []
    said: set[str] = set()
    for _, _, sentence in sorted(scored):
        terms = set(subject_terms(sentence)) - names
        if 2 * len(terms & said) <= len(terms):
            chosen.append(sentence)
            said |= terms
        if len(chosen) == 6:
            break
    return chosen


def pieces_of(text: str) -> list[str]:
    """The sentences of a text as exact pieces of it, not cut after `Dr.` or an initial."""
    found: list[str] = []
    start = 0
    for match in _SENTENCE.finditer(text):
        if not match[0].strip():
            continue
        if found and found[-1].endswith(".") and ends_in_abbreviation(found[-1][:-1]):
            found[-1] = text[start : match.end()].strip()
        else:
            start = match.start()
            found.append(match[0].strip())
    return found


def _sentences(text: str) -> list[str]:
    """The sentences of a text on one line each, not cut after `Dr.` or an initial."""
    found: list[str] = []
    for piece in _SENTENCE.findall(text):
        piece = " ".join(piece.split())
        if found and found[-1].endswith(".") and ends_in_abbreviation(found[-1][:-1]):
            found[-1] += f" {piece}"
        elif piece:
            found.append(piece)
    return found


def _cut(text: str, limit: int) -> str:
    """At most `limit` characters, cut between words."""
    return text[: limit - 1].rsplit(" ", 1)[0].rstrip(",;·— ") + "…"
