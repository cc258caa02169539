"""How a library has grown, what it is made of, and what models have cost: the figures behind `stats`.

Counted from the first line of each entry alone and from the index; of each seq a few bytes are kept.
"""

from __future__ import annotations

import mmap
import os
import re
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from infinimem.model import CURRENT
from infinimem.store.buffer import SIGNED, evidence_files, read_if_there
from infinimem.store.layout import BUFFER, STATE
from infinimem.store.read import list_files, read_file
from infinimem.store.usage import read_usage
from infinimem.text.signature import parse_fields, parse_seqs

if TYPE_CHECKING:
    from infinimem.search.index import CatalogRow, Index

EDITS = ("superseded", "duplicate", "split")
"""Reasons for a retirement that a plan decided on."""
LONGEST_CHAIN = 1000
VERDICT = ("edit", "topic", "verdict", "of")
EVENT = re.compile(rb"^[-*+][ \t]+\\?<event=([a-z]+)[^>]*>?", re.MULTILINE)
FIELD = {
    name: re.compile(rb"[<,]\s*" + name.encode() + rb"=([^,>\n]*)") for name in ("source", "observed", "time", "rev")
}
FIELD |= {name: re.compile(rb",\s*" + name.encode() + rb"=([^,>\n]*)") for name in ("seq", "why", "at", "by", *VERDICT)}
MONTH = re.compile(r"\d{4}-\d\d")
AS_WRITTEN = re.compile(
    rb'^(?:- <seq=([0-9]{1,18}), (?:time=[^,<>"\n]*, )?source=([^,<>"\n]*), observed=([0-9]{4}-[0-9]{2})[^,<>"\n]*'
    rb'(?:, [^<>"\n]*)?>|(?=' + SIGNED.pattern.removeprefix(b"^") + rb"))",
    re.MULTILINE,
)
"""An entry's head as `write` makes it, with its seq, source and month; or where another line looks signed."""
PAGE = 1024
VISIBLE, WAITING, TWICE, TOLD = 1, 2, 4, 8
"""What is known of a seq: it stands in a topic, waits in CURRENT, stands in two places, evidence has its words."""
AFTER = {
    flag: bytes(known | flag | (TWICE if known & VISIBLE and flag != TOLD else 0) for known in range(16))
    for flag in (VISIBLE, WAITING, TOLD)
}
"""What is known of a seq once it was met again, by what was known before."""
FAILURES = ("failed", "broken off")
"""How the outcome of a call begins that gave nothing."""


@dataclass(frozen=True, slots=True)
class Month:
    """What happened in a month, `2026-05`: entries written (by when they were noted) and retired."""

    month: str
    written: int
    retired: int


@dataclass(frozen=True, slots=True)
class Audit:
    """What people said of a plan's edits of one kind (All-Mem, edit audit): `edits` were made, as evidence tells."""

    kind: str
    edits: int
    valid: int
    harmful: int


@dataclass(frozen=True, slots=True)
class Recoverability:
    """All-Mem's measure: of `retired` entries the `share` whose words and reason evidence has, and that are reached.

    `deepest` is the longest chain of replacements from an entry that is visible down to one that is retired.
    """

    retired: int = 0
    share: float = 1.0
    deepest: int = 0


@dataclass(frozen=True, slots=True)
class Summaries:
    """Of `topics` with a summary, how many keep to what stands in them; and the mean drift of those with a history."""

    topics: int = 0
    faithful: int = 0
    drift: float = 0.0


@dataclass(frozen=True, slots=True)
class Stats:
    """A library in figures. Entries are counted by seq, so a joined line is several; tokens are estimates.

    `entries` are visible in topics, `buffered` wait in CURRENT, `retired` have left by reason, `forgotten` left no
    words; `written` is all of these. `doubled` are seqs that stand in two places. `sources` counts what is visible
    or waiting. `disk` is bytes by part. Topics are listed largest first; guests are among them, but not in `topics`.
    """

    root: str
    topics: int
    guests: int
    entries: int
    buffered: int
    written: int
    tokens: int
    median_tokens: int
    forgotten: int
    retired: Mapping[str, int]
    doubled: tuple[int, ...]
    sources: Mapping[str, int]
    months: tuple[Month, ...]
    by_size: tuple[CatalogRow, ...]
    disk: Mapping[str, int]
    audits: tuple[Audit, ...] = ()
    recoverability: Recoverability = Recoverability()
    summaries: Summaries = Summaries()


@dataclass(frozen=True, slots=True)
class Spent:
    """What calls of one kind have cost; `price` is in the currency of the settings, 0 where none is set."""

    month: str
    command: str
    step: str
    model: str
    calls: int = 0
    failures: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    price: float = 0.0

    def plus(self, other: Spent) -> Spent:
        """Both together, of this one's kind."""
        return Spent(
            self.month,
            self.command,
            self.step,
            self.model,
            self.calls + other.calls,
            self.failures + other.failures,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            self.seconds + other.seconds,
            self.price + other.price,
        )

    @property
    def kind(self) -> tuple[str, str, str, str]:
        """What the calls have in common."""
        return self.month, self.command, self.step, self.model


@dataclass(slots=True)
class Tally:
    """What the lines of a library say of each seq.

    `kinds` numbers, from 1, each source and month that was noted; a page holds, of as many seqs as PAGE, that number,
    and what is known of them.
    """

    kinds: dict[tuple[str, str], int] = field(default_factory=dict)
    pages: dict[int, tuple[array[int], bytearray]] = field(default_factory=dict)
    gone: dict[int, tuple[str, str]] = field(default_factory=dict)
    forgotten: set[int] = field(default_factory=set)
    edits: Counter[str] = field(default_factory=Counter)
    verdicts: dict[tuple[str, str, str], str] = field(default_factory=dict)
    by: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def page(self, seq: int) -> tuple[array[int], bytearray]:
        """The page that a seq is on."""
        found = self.pages.get(seq // PAGE)
        if found is None:
            found = self.pages[seq // PAGE] = array("I", bytes(array("I").itemsize * PAGE)), bytearray(PAGE)
        return found

    def known(self, seq: int) -> int:
        """What is known of a seq."""
        return self.pages[seq // PAGE][1][seq % PAGE] if seq // PAGE in self.pages else 0

    def kind_of(self, seq: int) -> int:
        """The number of the source and month that were noted of a seq; 0 where nothing was."""
        return self.pages[seq // PAGE][0][seq % PAGE] if seq // PAGE in self.pages else 0

    def is_shown(self, seq: int) -> bool:
        """Whether a seq stands in a topic or waits in CURRENT."""
        return bool(self.known(seq) & (VISIBLE | WAITING))

    def seqs(self, flag: int) -> Iterator[int]:
        """The seqs of which this is known."""
        for number in sorted(self.pages):
            marks = self.pages[number][1]
            yield from (number * PAGE + at for at, known in enumerate(marks) if known & flag)


# Sizes and growth


def stats(root: Path, index: Index) -> Stats:
    """The figures of a library; the index is up to date."""
    from infinimem.evolve.interpretation import keeps_to

    rows = index.catalog()
    own = [row for row in rows if not row.guest and row.topic != CURRENT]
    tally = Tally()
    for path in evidence_files(root):
        with open_mapped(path) as content:
            count_evidence(content, tally)
    faithful: list[CatalogRow] = []
    for row in own:
        content = read_if_there(root / row.path)
        count_file(root, row.path, content, VISIBLE, tally)
        if row.summary and row.entries and keeps_to(row.summary, body_of(content)):
            faithful.append(row)
    count_file(root, BUFFER, read_if_there(root / BUFFER), WAITING, tally)
    gone = {seq: event for seq, event in tally.gone.items() if not tally.is_shown(seq)}
    counted = Counter[tuple[int, int]]()
    for kinds, marks in tally.pages.values():
        counted.update(zip(kinds, marks, strict=True))
    names = {number: kind for kind, number in tally.kinds.items()}
    written, sources = Counter[str](), Counter[str]()
    entries = waiting = 0
    for (kind, known), count in counted.items():
        source, month = names.get(kind, ("", ""))
        written[month] += count if kind and month else 0
        if known & (VISIBLE | WAITING):
            sources[source] += count
        entries += count if known & VISIBLE and not known & WAITING else 0
        waiting += count if known & WAITING else 0
    noted = sum(count for (kind, _), count in counted.items() if kind)
    retired = Counter(month for _, month in gone.values() if month)
    return Stats(
        str(root),
        len(own),
        sum(row.guest for row in rows),
        entries,
        waiting,
        noted + sum(not tally.kind_of(seq) for seq in tally.forgotten),
        sum(row.tokens for row in own),
        round(median(row.tokens for row in own)) if own else 0,
        len(tally.forgotten),
        dict(Counter(why or "retired" for why, _ in gone.values()).most_common()),
        doubled(tally.seqs(TWICE), index),
        dict(sorted(sources.items(), key=lambda pair: (-pair[1], pair[0]))),
        tuple(Month(month, written[month], retired[month]) for month in sorted({*+written, *retired})),
        tuple(sorted(own, key=lambda row: (-row.tokens, row.topic))),
        disk(root, index),
        tuple(audits(tally)),
        recoverability(gone, tally),
        summaries(root, own, faithful),
    )


def summaries(root: Path, rows: Sequence[CatalogRow], faithful: Sequence[CatalogRow]) -> Summaries:
    """How many summaries are `faithful`, saying only what stands below them; how far they are from their first ones."""
    from infinimem.evolve.interpretation import versions_of
    from infinimem.store.summaries import read_versions

    noted: dict[str, list[dict[str, Any]]] = {}
    for row in read_versions(root):
        if isinstance(row.get("summary"), str):
            noted.setdefault(str(row.get("topic")), []).append(row)
    said = [row for row in rows if row.summary and row.entries]
    drifts = [versions_of(noted[row.topic], row.summary)[-1].drift for row in said if row.topic in noted]
    return Summaries(len(said), len(faithful), sum(drifts) / len(drifts) if drifts else 0.0)


def body_of(content: bytes) -> str:
    """A document without its front matter."""
    _, ended, body = content.partition(b"\n---")
    return (body if ended else content).decode("utf-8", "replace")


def recoverability(gone: Mapping[int, tuple[str, str]], tally: Tally) -> Recoverability:
    """How well retired entries are reached: each by the event that says why, and down the chain of what replaced it."""
    depths = {seq: depth_of(seq, tally) for seq in gone}
    found = [depth for seq, depth in depths.items() if depth and tally.known(seq) & TOLD and gone[seq][0]]
    return Recoverability(len(gone), len(found) / len(gone) if gone else 1.0, max(found, default=0))


def depth_of(seq: int, tally: Tally) -> int:
    """Replacements from a retired entry up to a visible one, or one that nothing replaced; 0 where the chain breaks."""
    frontier, seen = {seq}, set[int]()
    for depth in range(1, LONGEST_CHAIN):
        seen |= frontier
        above = {by for one in frontier for by in tally.by.get(one, ())}
        if any(not tally.by.get(one) for one in frontier) or any(
            tally.is_shown(by) or by in tally.forgotten for by in above
        ):
            return depth
        frontier = {by for by in above if tally.known(by) & TOLD} - seen
        if not frontier:
            return 0
    return 0


def audits(tally: Tally) -> Iterator[Audit]:
    """The verdicts on each kind of edit that was judged or made; the last one on an edit counts."""
    judged = Counter((kind, verdict) for (kind, _, _), verdict in tally.verdicts.items())
    for kind in sorted({*tally.edits, *(kind for kind, _ in judged)}):
        valid, harmful = judged[kind, "valid"], judged[kind, "harmful"]
        yield Audit(kind, max(tally.edits[kind], valid + harmful), valid, harmful)


def count_file(root: Path, path: str, content: bytes, flag: int, tally: Tally) -> None:
    """Count what a topic or CURRENT shows."""
    is_indented = b"\n " in content or b"\n\t" in content or content[:1] in (b" ", b"\t")
    if not is_indented or not any(match[1] for match in SIGNED.finditer(content)):
        count_entries(content, flag, tally)
        return
    for entry in read_file(root, path).document.entries:  # mostly words that look like one: only the document knows
        note(entry.seqs, entry.source, month_in(entry.observed or entry.time), flag, tally)


def count_entries(content: bytes | mmap.mmap, flag: int, tally: Tally) -> None:
    """Count the entries that lines which look signed stand for; the other lines are words."""
    kinds: dict[tuple[bytes, bytes], int] = {}
    after = AFTER[flag]
    here, noted, marks = -1, *tally.page(0)
    for match in AS_WRITTEN.finditer(content):
        number, source, month = match.group(1, 2, 3)
        if number is None:
            count_odd(content, match.start(), flag, tally)
            continue
        kind = kinds.get((source, month))
        if kind is None:
            kind = kinds[source, month] = number_of((source.decode("utf-8", "replace"), month.decode()), tally)
        seq = int(number)
        at = seq % PAGE
        if seq - at != here:
            if not seq:
                continue
            here = seq - at
            noted, marks = tally.page(seq)
        noted[at] = noted[at] or kind
        marks[at] = after[marks[at]]


def count_odd(content: bytes | mmap.mmap, start: int, flag: int, tally: Tally) -> None:
    """Count what a line that looks signed stands for, though `write` would spell it another way."""
    match = SIGNED.match(content, start)
    if match is None or match[1] or EVENT.match(content, start):
        return
    seqs = parse_seqs(match[2].decode())
    head = head_at(content, start)
    if len(seqs) > 1 and value(head, "rev") == "1":
        tally.edits["joined"] += 1
    note(seqs, value(head, "source"), month_in(value(head, "observed") or value(head, "time")), flag, tally)


def note(seqs: Iterable[int], source: str, month: str, flag: int, tally: Tally) -> None:
    """Remember who said entries, when they were written and where they are; who and when was noted first stands."""
    kind = number_of((source, month), tally)
    for seq in seqs:
        noted, marks = tally.page(seq)
        noted[seq % PAGE] = noted[seq % PAGE] or kind
        marks[seq % PAGE] = AFTER[flag][marks[seq % PAGE]]


def number_of(kind: tuple[str, str], tally: Tally) -> int:
    """The number of a source and month."""
    return tally.kinds.setdefault(kind, len(tally.kinds) + 1)


@contextmanager
def open_mapped(path: Path) -> Iterator[bytes | mmap.mmap]:
    """The bytes of a file that may be too large to read into memory."""
    with path.open("rb") as file:
        if not path.stat().st_size:
            yield b""
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            yield content


def count_evidence(content: bytes | mmap.mmap, tally: Tally) -> None:
    """What an evidence file says: entries, and what became of them, in order."""
    count_entries(content, TOLD, tally)
    for match in EVENT.finditer(content):
        kind, rest = match[1].decode(), match[0]
        seqs = parse_seqs(value(rest, "seq"))
        if kind == "retire":
            event = (value(rest, "why"), month_in(value(rest, "at")))
            tally.by.update(dict.fromkeys(seqs, parse_seqs(value(rest, "by"))))
            tally.gone.update(dict.fromkeys(seqs, event))
            if event[0] in EDITS:
                tally.edits[event[0]] += 1
        elif kind == "verdict":
            about = (value(rest, "edit"), value(rest, "seq") or value(rest, "topic"), value(rest, "of"))
            tally.verdicts[about] = value(rest, "verdict")
        elif kind == "forget":
            tally.forgotten.update(seqs)
            for seq in seqs:
                tally.gone.pop(seq, None)
        elif kind in ("unflush", "restore"):
            for seq in seqs:
                tally.gone.pop(seq, None)


def head_at(content: bytes | mmap.mmap, start: int) -> bytes:
    """The signature on the line that begins at a place; with the words after it where they cannot be told apart."""
    end = content.find(b"\n", start)
    line = content[start : end if end >= 0 else len(content)]
    return line if b'"' in line else line.partition(b">")[0] + b">"


def value(head: bytes, name: str) -> str:
    """A field's value in a signature; "" for none."""
    if b'"' in head:
        fields, _ = parse_fields(head[head.find(b"<") :].decode("utf-8", "replace"))
        return dict(fields).get(name, "")
    found = FIELD[name].search(head)
    return found[1].decode("utf-8", "replace") if found is not None else ""


def month_in(time: str) -> str:
    """The month of an ISO time; "" where it has none."""
    return time[:7] if MONTH.match(time) else ""


def doubled(seqs: Iterable[int], index: Index) -> tuple[int, ...]:
    """Of seqs that look as if they stood in two places (an example in a code fence does), those that do."""
    return tuple(seq for seq in sorted(seqs) if len(index.standing(seq)) > 1)


def disk(root: Path, index: Index) -> dict[str, int]:
    """Bytes by part of the library."""
    sizes = {"topics": 0, "evidence": 0, "CURRENT": 0, "index": index.stats().bytes, "undo and logs": 0}
    for path, seen in list_files(root).items():
        part = path.split("/", 1)[0]
        sizes[part if part in sizes else CURRENT] += seen[0]
    everything = sum(sum_of(root / STATE))
    sizes["undo and logs"] = max(0, everything - sizes["index"])
    return sizes


def sum_of(folder: Path) -> Iterator[int]:
    """The sizes of the files in a folder and below; a file with two names counts each time."""
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                yield (Path(place) / name).lstat().st_size
            except FileNotFoundError:  # another process has just finished with it
                continue


# Cost


def usage(root: Path, price_in: float = 0.0, price_out: float = 0.0) -> tuple[Spent, ...]:
    """What the usage log holds, by month, command, step and model; prices are for a million tokens."""
    found: dict[tuple[str, ...], Spent] = {}
    for row in read_usage(root):
        one = spent(row, price_in, price_out)
        known = found.get(one.kind)
        found[one.kind] = one if known is None else known.plus(one)
    return tuple(found[kind] for kind in sorted(found))


def spent(row: Mapping[str, Any], price_in: float, price_out: float) -> Spent:
    """A row of the usage log; what is missing or odd in it counts as nothing."""
    month, command, step, model = (str(row.get(key, "")) for key in ("at", "command", "step", "model"))
    sent, received = whole(row.get("tokens_in")), whole(row.get("tokens_out"))
    seconds = row.get("seconds")
    return Spent(
        month_in(month),
        command,
        step,
        model,
        1,
        int(str(row.get("outcome", "")).startswith(FAILURES)),
        sent,
        received,
        float(seconds) if isinstance(seconds, int | float) and 0 <= seconds < 10**9 else 0.0,
        price(sent, received, price_in, price_out),
    )


def price(sent: int, received: int, price_in: float, price_out: float) -> float:
    """What tokens cost at prices for a million of them."""
    return (sent * price_in + received * price_out) / 1_000_000


def whole(number: Any) -> int:
    """A count, or 0 for what is none."""
    return number if isinstance(number, int) and not isinstance(number, bool) and number >= 0 else 0


def grouped(rows: Sequence[Spent], *keys: str) -> list[Spent]:
    """The rows added up by some of month, command, step and model, in order; the other keys are empty."""
    found: dict[tuple[str, ...], Spent] = {}
    for row in rows:
        kept = replace(row, **{key: "" for key in KINDS if key not in keys})  # type: ignore[arg-type]
        known = found.get(kept.kind)
        found[kept.kind] = kept if known is None else known.plus(kept)
    return [found[kind] for kind in sorted(found)]


KINDS: Collection[str] = ("month", "command", "step", "model")
