"""What a planning model answers: the form it is asked for, and the values that are read from it.

Reading is tolerant of form and strict in substance: whatever is not understood is a complaint, which the model
may answer once, and is then left out. Nothing here decides whether an edit is allowed; `plan.rules` does.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from infinimem.llm.reply import items_of, number_of, seqs_in, text_of
from infinimem.model import Divide, Link
from infinimem.text.signature import render_seqs

T = TypeVar("T")
LONGEST_LABEL = 80
NEW = "new"
SOME = 12
"""Seqs that a complaint names."""
ENTRY_LINE = re.compile(r"\[\d[\d+-]*\](?:: | \S+ · | \S+: )")
"""How an entry looks in a prompt: `[32] 2026-05-01 · Ann: …`."""

LABEL = {"type": "string", "maxLength": LONGEST_LABEL}
SEQ = {"type": "integer"}
SEQS = {"type": "array", "items": SEQ}
CONF = {"type": "number"}


def listing(name: str, properties: Mapping[str, Any], **others: Any) -> dict[str, Any]:
    """The JSON schema of an object with one list of objects, and perhaps other keys."""
    item = closed(properties)
    return closed({name: {"type": "array", "items": item}, **others})


def closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of an object that has just these keys."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def array_of(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of a list of such objects."""
    return {"type": "array", "items": closed(properties)}


REWRITE = listing(
    "blocks",
    {"topic": LABEL, "heading": LABEL, "seqs": SEQS},
    duplicates=array_of({"seq": SEQ, "of": SEQ, "conf": CONF}),
    corrections=array_of({"seq": SEQ, "replaces": SEQ, "conf": CONF}),
    joins=array_of({"seqs": SEQS, "text": {"type": "string", "maxLength": 600}, "conf": CONF}),
    divisions=array_of({"seq": SEQ, "texts": {"type": "array", "items": {"type": "string"}}, "conf": CONF}),
)
SPLIT = listing("parts", {"title": LABEL, "seqs": SEQS}, conf=CONF)
TIES = ("contradicts", "supports", "causes", "explains", "part-of", "example-of")
"""The relations that a planner is asked for: of `rules.RELATIONS` those that two entries show by themselves."""
UPDATE = listing(
    "changes",
    {"new": SEQ, "old": SEQ, "relation": {"enum": ["replaces", "repeats"]}, "conf": CONF},
    links=array_of({"from": SEQ, "to": SEQ, "relation": {"enum": list(TIES)}, "conf": CONF}),
)


def route_schema(topics: Collection[str]) -> dict[str, Any]:
    """Routes to one of these topics, or a new one."""
    where = {"type": "string", "enum": [*topics, NEW]}
    return listing("routes", {"block": SEQ, "topic": where, "title": LABEL, "heading": LABEL})


def merge_schema(topics: Collection[str]) -> dict[str, Any]:
    """Merges among these topics."""
    which = {"type": "string", "enum": list(topics)}
    return listing("merges", {"topics": {"type": "array", "items": which}, "into": which, "conf": CONF})


def summary_schema(topics: Collection[str]) -> dict[str, Any]:
    """A summary for each of these topics."""
    return listing(
        "summaries",
        {"topic": {"type": "string", "enum": list(topics)}, "text": {"type": "string", "maxLength": 400}},
    )


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """What could be read of a reply. `value` None: nothing usable. Complaints are in words for the model."""

    value: T | None
    complaints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """Entries about one subject, by first seq."""

    topic: str
    heading: str
    seqs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two entries of which one makes the other needless: `relation` is replaces or repeats."""

    new: int
    old: int
    relation: str
    conf: float


@dataclass(frozen=True, slots=True)
class Joined:
    """Several entries as one sentence."""

    seqs: tuple[int, ...]
    text: str
    conf: float


@dataclass(frozen=True, slots=True)
class Draft:
    """REWRITE_CURRENT: the buffer's entries in blocks, each exactly once, and what is said of pairs of them.

    `strange` are seqs that the reply named although nobody asked about them.
    """

    blocks: tuple[Block, ...]
    pairs: tuple[Pair, ...] = ()
    joins: tuple[Joined, ...] = ()
    divisions: tuple[Divide, ...] = ()
    strange: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Route:
    """Where a block goes: a topic, or a new one with a title."""

    topic: str
    title: str
    heading: str


@dataclass(frozen=True, slots=True)
class Move:
    """Entries that leave a document for one of their own."""

    title: str
    seqs: tuple[int, ...]


def label(text: str) -> str:
    """A title or heading as one short line without marks that would change what it is."""
    words = "".join(char if char.isprintable() else " " for char in text).split()
    line = " ".join(words).strip("#*_`~-<>[]{}|\\ ")
    return line if len(line) <= LONGEST_LABEL else line[:LONGEST_LABEL].rsplit(" ", 1)[0]


def read_draft(value: Any, known: Mapping[int, int]) -> Reading[Draft]:
    """The rewrite step's reply. `known` leads from each asked seq to the first seq of its entry, in order."""
    firsts = list(dict.fromkeys(known.values()))
    blocks: list[Block] = []
    placed: set[int] = set()
    strange: list[int] = []
    repeated: list[int] = []
    for item in items_of(value, "blocks"):
        seqs = []
        for seq in seqs_in(item.get("seqs")):
            first = known.get(seq)
            if first is None:
                strange.append(seq)
            elif first in placed:
                repeated += [first] if first not in seqs else []
            else:
                placed.add(first)
                seqs.append(first)
        if seqs:
            blocks.append(Block(label(text_of(item.get("topic"))), label(text_of(item.get("heading"))), tuple(seqs)))
    if not blocks:
        return Reading(None, ("`blocks` is missing or names none of the entries",))
    missing = [seq for seq in firsts if seq not in placed]
    complaints = []
    if len(missing) > len(firsts) // 10:
        complaints.append(f"no block holds {some(missing)}")
    if strange:
        complaints.append(f"there are no entries {some(strange)}")
    if len(repeated) > len(firsts) // 10:
        complaints.append(f"in two blocks: {some(repeated)}")
    pairs = [pair_of(item, known, "seq", "of", "repeats") for item in items_of(value, "duplicates")]
    pairs += [pair_of(item, known, "seq", "replaces", "replaces") for item in items_of(value, "corrections")]
    joins = [
        Joined(tuple(known[seq] for seq in seqs_in(item.get("seqs")) if seq in known), text_of(item.get("text")), conf)
        for item in items_of(value, "joins")
        for conf in [number_of(item.get("conf"), 0.0)]
    ]
    draft = Draft(
        tuple(with_missing(blocks, missing)),
        tuple(pair for pair in pairs if pair is not None),
        tuple(join for join in joins if len(join.seqs) > 1 and join.text.strip()),
        tuple(division_of(item) for item in items_of(value, "divisions") if known_seq(item, known)),
        tuple(dict.fromkeys(strange)),
    )
    return Reading(draft, tuple(complaints))


def known_seq(item: Mapping[str, Any], known: Collection[int]) -> bool:
    """Whether an item names an asked entry."""
    return next(iter(seqs_in(item.get("seq"))), 0) in known


def division_of(item: Mapping[str, Any]) -> Divide:
    """An entry in pieces; the rules see whether they are its own words."""
    given = item.get("texts")
    texts = tuple(text_of(text).strip() for text in given) if isinstance(given, list) else ()
    return Divide(seqs_in(item.get("seq"))[0], texts, conf=number_of(item.get("conf"), 0.0))


def items_named(value: Any, *keys: str) -> bool:
    """Whether a reply is an object with one of these keys: an empty list is an answer, another object is none."""
    return isinstance(value, list) or (isinstance(value, Mapping) and any(key in value for key in keys))


def pair_of(item: Mapping[str, Any], known: Mapping[int, int], new: str, old: str, relation: str) -> Pair | None:
    """A pair of asked entries; None where one of them is none."""
    seqs = [next(iter(seqs_in(item.get(key))), 0) for key in (new, old)]
    if any(seq not in known for seq in seqs) or known[seqs[0]] == known[seqs[1]]:
        return None
    return Pair(seqs[0], seqs[1], relation, number_of(item.get("conf"), 0.0))


def with_missing(blocks: Sequence[Block], missing: Sequence[int]) -> list[Block]:
    """The blocks with every forgotten entry beside its nearest neighbour in write order."""
    holder = {seq: at for at, block in enumerate(blocks) for seq in block.seqs}
    seqs = [list(block.seqs) for block in blocks]
    for seq in missing:
        near = min(holder, key=lambda other: (abs(other - seq), other))
        at = holder[near]
        seqs[at].insert(seqs[at].index(near) + (1 if seq > near else 0), seq)
        holder[seq] = at
    return [Block(block.topic, block.heading, tuple(found)) for block, found in zip(blocks, seqs, strict=True)]


def read_routes(value: Any, count: int, topics: Collection[str]) -> Reading[dict[int, Route]]:
    """The route step's reply: for each block, numbered from 1, where it goes."""
    names = {name.casefold(): name for name in topics}
    routes: dict[int, Route] = {}
    unknown = []
    for item in items_of(value, "routes"):
        number = next(iter(seqs_in(item.get("block"))), 0)
        if not 1 <= number <= count or number in routes:
            continue
        said = text_of(item.get("topic")).strip().removeprefix("topics/").removesuffix(".md")
        title, heading = label(text_of(item.get("title"))), label(text_of(item.get("heading")))
        if said.casefold() in names:
            routes[number] = Route(names[said.casefold()], "", heading)
        elif said.casefold() in (NEW, ""):
            routes[number] = Route(NEW, title, heading)
        else:
            unknown.append(label(said))
    complaints = []
    if unknown:
        complaints.append(f"there is no page {', '.join(map(repr, unknown[:3]))}; copy an id from the list, or `new`")
    missing = [number for number in range(1, count + 1) if number not in routes]
    if missing and not unknown:
        complaints.append(f"no route for block {some(missing)}")
    return Reading(routes or None, tuple(complaints))


@dataclass(frozen=True, slots=True)
class Judged:
    """What the update step says of the pairs that were asked about: what replaces what, and what belongs together."""

    changes: tuple[Pair, ...] = ()
    links: tuple[Link, ...] = ()


def read_judged(value: Any, asked: Collection[tuple[int, int]]) -> Reading[Judged]:
    """The update step's reply. Links between what was not asked about are left out without a word."""
    reading = read_changes(value, asked)
    if reading.value is None:
        return Reading(None, reading.complaints)
    links: dict[tuple[int, int], Link] = {}
    for item in items_of(value, "links"):
        here, there = (next(iter(seqs_in(item.get(key))), 0) for key in ("from", "to"))
        relation = text_of(item.get("relation")).strip().casefold()
        if relation in TIES and ((here, there) in asked or (there, here) in asked):
            pair = (min(here, there), max(here, there))
            links.setdefault(pair, Link(str(here), str(there), relation, conf=number_of(item.get("conf"), 0.0)))
    return Reading(Judged(tuple(reading.value), tuple(links.values())), reading.complaints)


def read_changes(value: Any, asked: Collection[tuple[int, int]]) -> Reading[list[Pair]]:
    """The changes in the update step's reply: pairs (new, old) that were asked about, each once."""
    if not items_named(value, "changes"):
        return Reading(None, ("`changes` is missing",))
    found: dict[tuple[int, int], Pair] = {}
    strange = []
    for item in items_of(value, "changes"):
        new, old = (next(iter(seqs_in(item.get(key))), 0) for key in ("new", "old"))
        relation = text_of(item.get("relation")).strip().casefold()
        if (new, old) not in asked or relation not in ("replaces", "repeats"):
            strange.append(f"{new} and {old}")
            continue
        found.setdefault((new, old), Pair(new, old, relation, number_of(item.get("conf"), 0.0)))
    complaints = (f"not asked about: {', '.join(strange[:3])}",) if strange else ()
    return Reading(list(found.values()), complaints)


def read_moves(value: Any, known: Mapping[int, int]) -> Reading[tuple[list[Move], float]]:
    """The split step's reply: what moves out of a document, and the confidence of it."""
    moves = []
    gone: set[int] = set()
    strange: list[int] = []
    for item in items_of(value, "parts"):
        seqs = []
        for seq in seqs_in(item.get("seqs")):
            if seq not in known:
                strange.append(seq)
            elif known[seq] not in gone:
                gone.add(known[seq])
                seqs.append(known[seq])
        title = label(text_of(item.get("title")))
        if seqs and title:
            moves.append(Move(title, tuple(seqs)))
    conf = number_of(value.get("conf"), 0.0) if isinstance(value, Mapping) else 0.0
    complaints = [f"there are no entries {some(strange)}"] if strange else []
    if not moves:
        complaints.append("`parts` is missing or names none of the entries")
    elif len(gone) == len(set(known.values())):
        return Reading(None, ("some entries must stay on the page",))
    return Reading((moves, conf) if moves else None, tuple(complaints))


def read_merges(value: Any, topics: Collection[str]) -> Reading[list[tuple[tuple[str, ...], str, float]]]:
    """The merge step's reply: ids, the one that stays, and the confidence."""
    if not items_named(value, "merges"):
        return Reading(None, ("`merges` is missing",))
    found = []
    strange: list[str] = []
    used: set[str] = set()
    for item in items_of(value, "merges"):
        said = item.get("topics")
        names = [text_of(name).strip() for name in said] if isinstance(said, list) else []
        into = text_of(item.get("into")).strip()
        unknown = [name for name in [*names, into] if name not in topics]
        both = tuple(dict.fromkeys([into, *names]))
        if unknown or len(both) < 2 or used.intersection(both):
            strange += unknown or [into]
            continue
        used.update(both)
        found.append((both, into, number_of(item.get("conf"), 0.0)))
    complaints = (f"no such page, or named twice: {', '.join(map(repr, map(label, strange[:3])))}",) if strange else ()
    return Reading(found, complaints)


def read_summaries(value: Any, topics: Collection[str]) -> Reading[dict[str, str]]:
    """The summary step's reply, by topic; one line each. Lines of the page copied out are none."""
    found: dict[str, str] = {}
    copied: list[str] = []
    for item in items_of(value, "summaries"):
        topic = text_of(item.get("topic")).strip()
        text = " ".join(text_of(item.get("text")).split())
        if topic in topics and ENTRY_LINE.search(text):
            copied.append(topic)
        elif topic in topics and text:
            found.setdefault(topic, text)
    missing = [topic for topic in topics if topic not in found and topic not in copied]
    complaints = [f"{topic}: say in one line what the page is about, copy no entries" for topic in copied[:5]]
    complaints += [f"no summary for {', '.join(missing[:5])}"] if missing else []
    return Reading(found or None, tuple(complaints))


def some(seqs: Sequence[int]) -> str:
    """The first few seqs, spelt."""
    text = render_seqs(tuple(sorted(set(seqs))[:SOME]))
    return f"{text} and more" if len(set(seqs)) > SOME else text
