"""The values that travel between the layers. All frozen, none ever None for "empty"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from infinimem.errors import BadInput

CURRENT = "CURRENT"
"""The buffer's id wherever a topic id is expected."""
FIRST_SEQ = re.compile(r"[0-9]{1,18}")
NOBODY = frozenset({"", "user", "ai", "assistant", "bot", "hand", "human", "system", "tool"})
"""Sources, in lower case, that name no person."""


class FileState(NamedTuple):
    """What `stat` says of a file: the same means that nobody has touched it."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


@dataclass(frozen=True, slots=True)
class Span:
    """Lines `start` to `stop` of a document, 0-based, half open."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Signature:
    """What stands between `<` and `>`: the seqs, and every other field verbatim and in order."""

    seqs: tuple[int, ...]
    fields: tuple[tuple[str, str], ...] = ()

    def get(self, key: str, default: str = "") -> str:
        """The value of the first field called `key`."""
        for name, value in self.fields:  # a generator takes twice as long, and a flush asks 150,000 times
            if name == key:
                return value
        return default


@dataclass(frozen=True, slots=True)
class Entry:
    """One signed list item. `text` is what was written, continuation indents taken away.

    `span` is where it stands in its document; `headings` the path of headings above it.
    An entry with no seqs is a plain top-level bullet that nobody has signed yet.
    """

    topic: str
    signature: Signature
    text: str
    headings: tuple[str, ...] = ()
    span: Span = Span(0, 0)

    @property
    def seqs(self) -> tuple[int, ...]:
        """Every seq that this line stands for; empty when unsigned."""
        return self.signature.seqs

    @property
    def seq(self) -> int:
        """The first seq; 0 when unsigned."""
        return self.signature.seqs[0] if self.signature.seqs else 0

    @property
    def time(self) -> str:
        """When it happened, ISO 8601, possibly partial; "" when unknown."""
        value = self.signature.get("time")
        return "" if value == "empty" else value

    @property
    def observed(self) -> str:
        """When it was written down, UTC; "" when unknown."""
        return self.signature.get("observed")

    @property
    def source(self) -> str:
        """Who said it; "" when unknown."""
        return self.signature.get("source")


@dataclass(frozen=True, slots=True)
class Block:
    """A heading and what stands under it, up to the next heading of any level."""

    headings: tuple[str, ...]
    level: int
    span: Span


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong in a user's file: where (1-based line, 0 = whole file), what, and what to do.

    `blocking` problems make the file read-only for us: it is never rewritten.
    """

    path: str
    line: int
    message: str
    blocking: bool = True
    code: str = ""

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.message}"


@dataclass(frozen=True, slots=True)
class Header:
    """YAML front matter: where it stands and what it says. An empty span means there is none."""

    span: Span = Span(0, 0)
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Document:
    """A file of the library: its lines (terminators kept) and the views of them."""

    path: str
    lines: tuple[str, ...]
    header: Header = Header()
    blocks: tuple[Block, ...] = ()
    entries: tuple[Entry, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def id(self) -> str:
        """The topic id: the path under topics/ without `.md`; `CURRENT` for the buffer."""
        return topic_of(self.path)

    @property
    def is_guest(self) -> bool:
        """True for a Markdown file that does not carry our `id`: read and searched, never changed.

        Other tools write an `id` too: it is ours when it is the file's own path, or when another of
        our keys stands beside it (a renamed topic keeps its old id until the next flush).
        """
        if self.id == CURRENT:
            return False
        fields = self.header.fields
        return "id" not in fields or not (
            str(fields["id"]) == self.id or {"token_count", "update_log", "created_time"} & set(fields)
        )

    @property
    def blocking(self) -> tuple[Problem, ...]:
        """The problems that forbid rewriting this file."""
        return tuple(problem for problem in self.problems if problem.blocking)


def topic_of(path: str) -> str:
    """The id that a library-relative path stands for."""
    return path.removeprefix("topics/").removesuffix(".md")


def path_of(topic: str) -> str:
    """The library-relative path of a topic id."""
    return "CURRENT.md" if topic == CURRENT else f"topics/{topic}.md"


@dataclass(frozen=True, slots=True)
class Unit:
    """What the index knows of one searchable piece: an entry, or a run of prose (no seqs).

    `line` and `stop` are 1-based and inclusive, as an editor counts.
    `retired` is "" for what is visible, else why it left (superseded, duplicate, expired, deleted).
    """

    path: str
    line: int
    stop: int
    text: str
    seqs: tuple[int, ...] = ()
    headings: tuple[str, ...] = ()
    fields: tuple[tuple[str, str], ...] = ()
    retired: str = ""

    @property
    def topic(self) -> str:
        return topic_of(self.path)

    def get(self, key: str, default: str = "") -> str:
        """The value of the first signature field called `key`."""
        for name, value in self.fields:  # a generator takes twice as long, in the midst of every search
            if name == key:
                return value
        return default

    @property
    def time(self) -> str:
        value = self.get("time")
        return "" if value == "empty" else value

    @property
    def source(self) -> str:
        return self.get("source")

    @property
    def observed(self) -> str:
        return self.get("observed")

    @property
    def retired_by(self) -> int:
        """The first seq that took its place; 0 for none. An entry that was divided has several."""
        found = FIRST_SEQ.match(self.get("retired_by"))
        return int(found[0]) if found else 0


HOLDS_FROM = "holds_from"
"""A mark among a unit's fields, as `retired_by` is: when it is to take the place of what holds till then."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One search result: a unit and its score. Scores compare within one search only."""

    unit: Unit
    score: float

    @property
    def seqs(self) -> tuple[int, ...]:
        return self.unit.seqs

    @property
    def topic(self) -> str:
        return self.unit.topic

    @property
    def line(self) -> int:
        """1-based line in the file."""
        return self.unit.line

    @property
    def text(self) -> str:
        return self.unit.text

    @property
    def time(self) -> str:
        return self.unit.time

    @property
    def source(self) -> str:
        return self.unit.source


@dataclass(frozen=True, slots=True)
class Filter:
    """What may be recalled, decided before ranking. Dates may be partial: filters test overlap.

    `where` is a mapping, or pairs, of fields and what they are to be. Raises `BadInput` for anything else.
    """

    where: Mapping[str, str] | tuple[tuple[str, str], ...] = ()
    since: str = ""
    until: str = ""
    topic: str = ""
    retired: bool = False
    as_of: str = ""
    known_at: str = ""

    def __post_init__(self) -> None:
        where = self.where.items() if isinstance(self.where, Mapping) else self.where
        pairs = tuple(where) if not isinstance(where, str | bytes) and isinstance(where, Iterable) else (where,)
        if not all(isinstance(pair, Sequence) and list(map(type, pair)) == [str, str] for pair in pairs):
            raise BadInput(f"`where` is a mapping of texts such as {{'source': 'Ines'}}, not {self.where!r}")
        object.__setattr__(self, "where", tuple(map(tuple, pairs)))

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """`where` as pairs."""
        assert isinstance(self.where, tuple)
        return self.where


@dataclass(frozen=True, slots=True)
class Usage:
    """What a request cost."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        """What two requests cost together."""
        return Usage(
            self.calls + other.calls,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            self.seconds + other.seconds,
        )


# Plan steps. `conf` is the planner's confidence; what falls below the gate is a proposal.


@dataclass(frozen=True, slots=True)
class Create:
    """A new topic document, still empty."""

    topic: str
    title: str
    conf: float = 1.0


@dataclass(frozen=True, slots=True)
class Extend:
    """Buffered entries, verbatim and in this order, into a topic under a heading path ("" = top)."""

    topic: str
    heading: str
    seqs: tuple[int, ...]
    conf: float = 1.0


@dataclass(frozen=True, slots=True)
class Join:
    """Entries, all buffered or all in topics, that become one line with all their seqs; the only text of a plan."""

    seqs: tuple[int, ...]
    text: str
    conf: float = 1.0


@dataclass(frozen=True, slots=True)
class Retire:
    """A visible or buffered entry leaves the visible surface for evidence.

    `by` is the seq that took its place, 0 when there is none;
    `why` is superseded, duplicate, expired or deleted.
    """

    seq: int
    by: int
    why: str
    conf: float = 1.0


@dataclass(frozen=True, slots=True)
class Part:
    """One of the documents that a split makes."""

    topic: str
    title: str
    seqs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """An exact partition of a topic's entries; the first part keeps the topic's id if it names it."""

    topic: str
    parts: tuple[Part, ...]
    conf: float = 1.0


@dataclass(frozen=True, slots=True)
class Merge:
    """The union of several topics' entries in the document `into`."""

    topics: tuple[str, ...]
    into: str
    title: str
    conf: float = 1.0


@dataclass(frozen=True, slots=True)
class Summarise:
    """A topic's new summary."""

    topic: str
    text: str
    conf: float = 1.0


@dataclass(frozen=True, slots=True)
class Tie:
    """One link as it is written: to seqs or to a topic id, and how they belong together ("" = not said)."""

    seqs: tuple[int, ...]
    topic: str = ""
    relation: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """A visible entry (`source` is its seq) or a topic (its id) gains or loses a link to another. No word changes."""

    source: str
    to: str
    relation: str
    remove: bool = False
    conf: float = 1.0


@dataclass(frozen=True, slots=True)
class Divide:
    """A visible entry that holds several facts becomes several lines, each an exact piece of it with a seq of its own.

    `seqs` are given when the step is carried out; the entry is retired with them as its successors.
    """

    seq: int
    texts: tuple[str, ...]
    seqs: tuple[int, ...] = ()
    conf: float = 1.0


Step = Create | Extend | Join | Retire | Split | Merge | Summarise | Link | Divide


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a plan step: executed, skipped (why) or no-op (why)."""

    step: Step
    status: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """A file's new contents. `old_digest` "" = the file must not exist yet; `new` None = remove it.

    b"" is a content: ask `is None`.
    """

    path: str
    old_digest: str
    new: bytes | None
