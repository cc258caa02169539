"""What people and agents look at: pages, traces, the state of the library; and the index kept fresh."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from infinimem.errors import BadInput, NeedsAttention
from infinimem.model import CURRENT, Document, Entry, Problem, Tie, Unit, path_of, topic_of
from infinimem.store.evidence import read_records, retirement
from infinimem.store.layout import BUFFER, EVIDENCE, TOPICS, safe_path
from infinimem.store.read import read_document, read_file
from infinimem.text.document import title_of
from infinimem.text.lines import strip_ending
from infinimem.text.signature import parse_links, parse_seqs
from infinimem.text.tokens import estimate

MONTH = re.compile(r"evidence/[0-9]{4}-[0-9]{2}")
MOST_REDIRECTS = 20

if TYPE_CHECKING:
    from infinimem.config import Settings
    from infinimem.search.index import CatalogRow, Index


@dataclass(frozen=True, slots=True)
class Page:
    """Lines of a document: `first` and `last` are 1-based and inclusive, `total` how many there are."""

    topic: str
    path: str
    title: str
    first: int
    last: int
    total: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """One seq's whole story.

    `here` is the visible line that stands for it ("" path when it is retired), `words` what evidence holds
    of it by revision, `fate` why it left and when, `by` the seq that took its place, `replaced` what it replaced.
    `parts` are the seqs that it was divided into. `links` are its own, `linked_from` the seqs that are linked to it,
    each with the relation.
    """

    seq: int
    here: Unit | None
    words: tuple[tuple[str, Entry], ...]
    fate: str = ""
    at: str = ""
    by: int = 0
    replaced: tuple[int, ...] = ()
    links: tuple[Tie, ...] = ()
    linked_from: tuple[tuple[int, str], ...] = ()
    parts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Status:
    """The library at a glance. Sizes are estimated tokens; ages are seconds."""

    root: str
    topics: int
    guests: int
    entries: int
    tokens: int
    buffered: int
    buffer_tokens: int
    buffer_age: float
    due: str
    last_flush: str
    newest_seq: int
    problems: tuple[Problem, ...]


def read_page(root: Path, topic: str, first: int, last: int, heading: str) -> Page:
    """Lines of a document, as `Library.read` promises."""
    document = read_document(root, f"{topic}.md" if is_evidence(root, topic) else path_of(topic))
    total = len(document.lines)
    if heading:
        wanted = heading.casefold()
        blocks = [b for b in document.blocks if b.headings and b.headings[-1].casefold() == wanted]
        if not blocks:
            names = ", ".join(b.headings[-1] for b in document.blocks if b.headings) or "none"
            raise BadInput(f"{document.path} has no heading {heading!r}; it has: {names}")
        level = blocks[0].level
        start = document.blocks.index(blocks[0])
        end = next((b.span.start for b in document.blocks[start + 1 :] if b.level <= level), total)
        first, last = blocks[0].span.start + 1, end
    if first < 1 or (last and last < first) or (total and first > total):
        asked = f"{first}-{last}" if last else f"{first}-"
        raise BadInput(f"{document.path} has lines 1-{total}, not {asked}")
    last = min(last or total, total)
    lines = tuple(strip_ending(line, "\r\n" if line.endswith("\r\n") else "\n") for line in document.lines)
    return Page(topic, document.path, title_of(document), first, last, total, lines[first - 1 : last])


def is_evidence(root: Path, name: object) -> bool:
    """Whether a name, as evidence is cited, means an evidence file: `evidence/2026-11`."""
    return isinstance(name, str) and MONTH.fullmatch(name) is not None and (root / f"{name}.md").is_file()


def trace(root: Path, index: Index, seq: int) -> Trace | None:
    """The story of a seq; None when nothing knows it."""
    here = next(iter(sorted(index.standing(seq), key=lambda unit: unit.topic == CURRENT)), None)
    record = read_records(root, [seq])[seq]
    if here is None and not record.entries and not record.events:
        return None
    event = retirement(record)
    said = [here.get("supersedes")] if here is not None else []
    said += [entry.signature.get("supersedes") for _, entry in record.entries]
    replaced = tuple(dict.fromkeys(old for value in said for old in parse_seqs(value) if old != seq))
    own = here.get("links") if here is not None else record.newest.signature.get("links") if record.newest else ""
    ties = parse_links(own)
    back = tuple(linked_from(index, seq))
    if event is None or here is not None:
        return Trace(seq, here, record.entries, replaced=replaced, links=ties, linked_from=back)
    by = parse_seqs(event.get("by"))
    why = event.get("why") or ("forgotten" if event.kind == "forget" else event.kind)
    parts = by if why == "split" else ()
    return Trace(seq, None, record.entries, why, event.get("at"), by[0] if by else 0, replaced, ties, back, parts)


def linked_from(index: Index, seq: int) -> Iterator[tuple[int, str]]:
    """The seqs of visible entries that are linked to one, each with the relation."""
    for unit in index.linked_to((seq,)):
        for tie in parse_links(unit.get("links")):
            if seq in tie.seqs and seq not in unit.seqs:
                yield unit.seqs[0], tie.relation


def status(root: Path, index: Index, settings: Settings, now: datetime) -> Status:
    """Sizes, ages and health, from the index and CURRENT alone."""
    from infinimem.consolidate.due import buffer_age, is_due
    from infinimem.text.document import unsigned_entries

    rows = [row for row in index.catalog() if row.topic != CURRENT]
    document = read_file(root, BUFFER).document
    last, newest = last_flush(root)
    buffered = [*document.entries, *unsigned_entries(document)]
    newest = max([newest, *(seq for entry in document.entries for seq in entry.seqs)])
    return Status(
        str(root),
        sum(not row.guest for row in rows),
        sum(row.guest for row in rows),
        sum(row.entries for row in rows),
        sum(row.tokens for row in rows),
        len(buffered),
        estimate("".join(document.lines)) if buffered else 0,
        buffer_age(document, now),
        is_due(document, settings, now),
        last,
        newest,
        (
            *document.blocking,
            *lost(root, document, index),
            *missing_topics(rows, last, len(buffered)),
            *unfinished(root),
        ),
    )


def missing_topics(rows: Sequence[CatalogRow], last: str, buffered: int) -> tuple[Problem, ...]:
    """That there is no topic at all although a flush has made some."""
    if rows or buffered or not last:
        return ()
    message = f"no topic is there although a flush made some ({last[:10]}); bring the files back (git, backup)"
    return (Problem(TOPICS, 0, message, blocking=False, code="gone"),)


def unfinished(root: Path) -> tuple[Problem, ...]:
    """That git is in the middle of something that concerns memory."""
    from infinimem.git.run import under_way

    if not under_way(root):
        return ()
    from infinimem.git.settle import refuse_under_way  # only now: `status` is asked often, and this is a heavy import

    try:
        refuse_under_way(root)
    except NeedsAttention as error:
        return (Problem(EVIDENCE, 0, str(error), code="conflict"),)
    return ()


def lost(root: Path, document: Document, index: Index) -> tuple[Problem, ...]:
    """What was written and is gone, as `flush` and `check` say it."""
    from infinimem.consolidate.buffer import lost_entries
    from infinimem.indexing import IndexFinder

    lines = lost_entries(root, document, IndexFinder(root, index))
    return tuple(Problem(BUFFER, 0, line, blocking=False, code="lost") for line in lines)


def last_flush(root: Path) -> tuple[str, int]:
    """When the last flush was, and its high-water mark; ("", 0) before the first."""
    from infinimem.store.buffer import evidence_files

    mark = re.compile(rb"^[-*+][ \t]+\\?<event=flush,\s+high=(\d+),\s+at=([^>]+)>", re.MULTILINE)
    for path in reversed(evidence_files(root)):
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 4096))
            found = mark.findall(file.read())
        if found:
            return found[-1][1].decode(), int(found[-1][0])
    return "", 0


def resolve_topic(root: Path, name: str, before: Callable[[str], str | None]) -> str | None:
    """The id that a name means: an id, a path, or, as `before` knows, an id that a topic had before."""
    topic = CURRENT if name in (CURRENT, BUFFER) else topic_of(name)
    if topic.startswith(("/", ".")) or "\0" in topic or ".." in topic.split("/"):
        return None
    try:
        place = safe_path(root, path_of(topic))
    except (BadInput, NeedsAttention):  # out of the library, or through a symbolic link
        return None
    from infinimem.plan.desk import aux_value, is_redirect

    for _ in range(MOST_REDIRECTS):
        if topic == CURRENT or not place.is_file():
            break
        document = read_file(root, path_of(topic)).document
        if not is_redirect(document):
            break
        topic = str(aux_value(document, "merged_into"))
        place = safe_path(root, path_of(topic))
    return topic if topic == CURRENT or place.is_file() else before(topic)
