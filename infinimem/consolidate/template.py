"""The task of planning a flush for somebody else: a person, an agent, any chat model. One document holds all of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from infinimem.config import Settings
from infinimem.consolidate.older import Likeness, older_ones
from infinimem.consolidate.passes import SMALL_CATALOGUE
from infinimem.consolidate.run import Finder, seqs_of
from infinimem.consolidate.thinking import data
from infinimem.llm.prompts import fill, load_prompt
from infinimem.model import CURRENT, Entry, Unit, path_of
from infinimem.store.layout import BUFFER
from infinimem.store.read import read_document, read_file
from infinimem.text.document import entry_lines, units
from infinimem.text.signature import render_seqs
from infinimem.text.tokens import estimate

LIKE_EACH = 3
"""Topics that are shown for the sake of one new entry, where there are too many to show all."""
MOST_TOPICS = SMALL_CATALOGUE
FEW = 3
"""Older entries that are shown with a new one if so many share words with it."""
LONGEST = 4_000
"""Characters of a new entry that are shown: a plan names it by its number."""
LONGEST_OLD = 1_000
"""Characters of an older one."""
HEADINGS = 8
"""Headings of a topic that are shown."""
TopicRow = tuple[str, int, str]
"""A topic's id, tokens and summary."""


def plan_template(
    root: Path,
    index: Finder,
    rows: Sequence[TopicRow],
    settings: Settings,
    most_tokens: int = 0,
    passes: Callable[[Sequence[Unit]], list[Unit]] | None = None,
) -> str:
    """What a person or an agent needs to write a plan for CURRENT; the answer goes to `flush --plan`.

    The task, the topics that the new entries may belong to, these entries, and for each the older ones that it may
    replace, wherever they stand. With `most_tokens` (0 = all) the first entries only; with `passes`, only what it lets
    through, and no heading, which might say more.
    """
    document = read_file(root, BUFFER).document
    entries: Sequence[Entry] = document.entries
    if passes is not None:
        seen = {unit.seqs for unit in passes(units(document))}
        entries = tuple(entry for entry in entries if entry.seqs in seen)
    entries = first_of(entries, most_tokens)
    shown = topics_like(entries, rows, index)
    older, pairs = older_shown(entries, index, settings.text("language"))
    if passes is not None:
        older = passes(older)
        named = {seq for unit in older for seq in unit.seqs} | {seq for entry in entries for seq in entry.seqs}
        pairs = [(seq, [old for old in olds if old in named]) for seq, olds in pairs]
        pairs = [(seq, olds) for seq, olds in pairs if olds]
    values = {
        "seqs": render_seqs(seqs_of(entries)),
        "gate": f"{settings.number('gate.supersede'):g}",
        "shortlist": shortlist(len(shown), len(rows)),
        "topics": data([topic_line(root, row, bare=passes is not None) for row in shown]) if rows else "(none yet)",
        "entries": data("".join(map(shown_text, entries)).rstrip("\n").split("\n")),
        "older": data([older_line(unit) for unit in older]),
        "pairs": "\n".join(f"{seq}: {', '.join(map(str, olds))}" for seq, olds in pairs) or "(none)",
    }
    return fill(load_prompt("plan"), values)


def first_of(entries: Sequence[Entry], most_tokens: int) -> Sequence[Entry]:
    """The first entries, as far as a number of tokens goes (0 = all); one at least."""
    used = 0
    for at, entry in enumerate(entries):
        used += estimate(shown_text(entry))
        if most_tokens and at and used > most_tokens:
            return entries[:at]
    return entries


def shown_text(entry: Entry) -> str:
    """A new entry as the task shows it."""
    text = entry.text if len(entry.text) <= LONGEST else f"{entry.text[:LONGEST].rstrip()} … (cut)"
    return "".join(entry_lines(entry.signature, text))


def topics_like(entries: Sequence[Entry], rows: Sequence[TopicRow], index: Finder) -> list[TopicRow]:
    """All topics where they are few; else those most like one of the entries, by id."""
    if len(rows) <= SMALL_CATALOGUE:
        return list(rows)
    best: dict[str, float] = {}
    for entry in entries:
        found = index.similar(entry.text, LIKE_EACH)
        for topic, score in found:
            best[topic] = max(best.get(topic, 0.0), score / found[0][1])
    near = set(sorted(best, key=lambda topic: (-best[topic], topic))[:MOST_TOPICS])
    return [row for row in rows if row[0] in near]


def shortlist(shown: int, count: int) -> str:
    """What is said where not all topics are shown; "" where they are."""
    if shown == count:
        return ""
    return f"\nThe {shown} of {count:,} that are most like the new entries. To find others: `infinimem catalog WORD`.\n"


def topic_line(root: Path, row: TopicRow, *, bare: bool = False) -> str:
    """A topic as a planner sees it: `id · tokens · summary (headings)`; without headings if it is to be bare."""
    topic, tokens, summary = row
    blocks = () if bare else read_document(root, path_of(topic)).blocks
    headings = list(dict.fromkeys(block.headings[-1] for block in blocks if block.level > 1))
    named = f" ({'; '.join(headings[:HEADINGS])}{'; …' if len(headings) > HEADINGS else ''})" if headings else ""
    return f"{topic} · {tokens} · {' '.join(summary.split())}{named}"


def older_line(unit: Unit) -> str:
    """An entry that stands in a document, on one line: `[seq] document · date · source: text`."""
    when = unit.time or (f"noted {unit.observed[:10]}" if unit.observed else "")
    about = " · ".join(word for word in (unit.topic, when, unit.source) if word)
    text = " ".join(unit.text.split())
    text = text if len(text) <= LONGEST_OLD else f"{text[:LONGEST_OLD]} … (cut)"
    return f"[{render_seqs(unit.seqs)}] {about}: {text}"


def older_shown(
    entries: Sequence[Entry], index: Finder, language: str
) -> tuple[list[Unit], list[tuple[int, list[int]]]]:
    """The older visible entries that new ones may replace, by seq; and for each new one the seqs of its own.

    Older ones that are new themselves are named only: they are shown as new entries.
    """
    likeness = Likeness(index)
    older: dict[int, Unit] = {}
    pairs = []
    for entry in entries:
        if not entry.seqs:
            continue
        near = older_ones(entry, index, likeness, language, fewest=FEW)
        older.update((unit.seqs[0], unit) for unit in near if unit.topic != CURRENT)
        if near:
            pairs.append((entry.seq, [unit.seqs[0] for unit in near]))
    return [older[seq] for seq in sorted(older)], pairs
