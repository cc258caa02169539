"""What a plan may not do. A step that breaks a rule is skipped and said; nothing is guessed or forced."""

from __future__ import annotations

import re
from dataclasses import dataclass

from infinimem.model import (
    NOBODY,
    Create,
    Divide,
    Document,
    Entry,
    Extend,
    Join,
    Link,
    Merge,
    Retire,
    Signature,
    Split,
    Step,
    Summarise,
    Unit,
)
from infinimem.plan.desk import OUR_KEYS, Desk, entry_at, is_pinned, tie_to, ties_at
from infinimem.text.signature import parse_seqs, render_seqs

GATE = 0.9  # All-Mem, default of Split, Merge and Update alike
WHYS = ("superseded", "duplicate", "expired", "deleted")
ID = re.compile(r"[^\W_](?:[\w.' -]*\w)?(?:/[^\W_](?:[\w.' -]*\w)?)*")
RELATIONS = {
    "related": "belongs together with",
    "recalled": "was useful together with",
    "contradicts": "cannot be true together with",
    "supports": "is evidence for",
    "causes": "brought about",
    "enables": "made possible",
    "precedes": "came before",
    "part-of": "is a part of",
    "example-of": "is an example of",
    "summarises": "says in short",
    "explains": "is the background of",
    "from": "was taken from",
}
"""How two entries can belong together: of REALM's relations those that a plain reader understands, and two of our own.

REALM's supersession has a key of its own, its similarity and analogy are `related`. `recalled` is what
`reconsolidate` learns and takes back; `from` is what `write --extract` notes.
"""
LEARNED = "recalled"
MOST_LINKS = 8  # All-Mem 4.3, d_sigma
RESERVED = {
    "con",
    "prn",
    "aux",
    "nul",
    "current",
    *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10)),
}
NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
NAME = re.compile(r"[^\W\d_a-zà-öø-ÿ][\w'’-]*")
WORD = re.compile(r"[\w'’]+")
NEGATIONS = frozenset(
    "no not never none nobody nothing neither nor without cannot can't don't doesn't didn't isn't wasn't won't aren't "
    "weren't hasn't haven't hadn't shouldn't wouldn't couldn't kein keine keinen keinem keiner nicht nie niemals "
    "nichts ohne ne pas jamais sans no nunca sin non senza не нет никогда без 不 没 没有 無 ない".split()
)
FIRST_PERSON = frozenset(
    "i i'm i’m i've i’ve i'll i’ll my mine me we our ich mein meine meinen meiner meinem wir unser unsere je j'ai mon "
    "ma mes nous yo mi mis io mio mia jeg eg min mitt mine vi jag ik mijn eu meu minha я мой моя мы 我 我们".split()
)


@dataclass(frozen=True, slots=True)
class Gates:
    """The least confidence for each kind of edit."""

    supersede: float = GATE
    join: float = GATE
    split: float = GATE
    merge: float = GATE
    link: float = GATE


def violation(step: Step, desk: Desk, gates: Gates = Gates()) -> str:
    """Why a step cannot be carried out on this desk; "" when it can."""
    match step:
        case Create():
            return bad_create(step, desk)
        case Extend():
            return bad_extend(step, desk)
        case Join():
            return bad_join(step, desk, gates)
        case Retire():
            return bad_retire(step, desk, gates)
        case Split():
            return bad_split(step, desk, gates)
        case Merge():
            return bad_merge(step, desk, gates)
        case Summarise():
            return bad_summary(step, desk)
        case Link():
            return bad_link(step, desk, gates)
        case Divide():
            return bad_divide(step, desk, gates)


def bad_id(topic: str) -> str:
    """Why a topic id cannot be a file name; "" when it can."""
    if not ID.fullmatch(topic) or len(topic.encode()) > 200 or ".." in topic:
        return f"{topic!r} is no topic id: use words joined by - and /"
    if any(
        piece.casefold().split(".")[0] in RESERVED or piece.endswith((".md", ".", " ")) for piece in topic.split("/")
    ):
        return f"{topic!r} is a reserved name"
    return ""


def bad_create(step: Create, desk: Desk) -> str:
    taken = {topic.casefold() for topic in desk.documents}
    if step.topic.casefold() in taken:
        return f"the topic {step.topic} exists already"
    if not step.title.strip() or "\n" in step.title:
        return "a title is one line of text"
    return bad_id(step.topic)


def unchangeable(topic: str, desk: Desk) -> str:
    """Why a document may not be changed; "" when it may."""
    document = desk.documents.get(topic)
    if document is None:
        return f"there is no topic {topic}"
    if document.blocking:
        return str(document.blocking[0])
    if document.is_guest:
        return f"{document.path} is not one of our documents (it has no `id`), so it is never changed"
    return ""


def bad_extend(step: Extend, desk: Desk) -> str:
    problem = unchangeable(step.topic, desk)
    if problem:
        return problem
    if "\n" in step.heading:
        return "a heading is one line of text"
    missing = [seq for seq in step.seqs if desk.buffered(seq) is None]
    if missing:
        return f"not waiting in the buffer: {render_seqs(missing)}"
    return "" if step.seqs else "names no entry"


def bad_join(step: Join, desk: Desk, gates: Gates) -> str:
    sources = [desk.buffered(seq) for seq in step.seqs]
    entries = [entry for entry in sources if entry is not None]
    if not entries:
        entries = [entry for seq in step.seqs if (entry := desk.holding(seq)) is not None]
        problem = next((why for entry in entries if (why := unchangeable(entry.topic, desk))), "")
        if problem:
            return problem
    if len(entries) < len(sources):
        return "joins entries that are neither all waiting in the buffer nor all visible in topics"
    if len({id(entry) for entry in entries}) < 2:
        return "a join needs two entries"
    if step.conf < gates.join:
        return below(step.conf, gates.join)
    if len({entry.signature.get("ns") for entry in entries}) > 1:
        return "joins entries of different ns"
    return ungrounded(step.text, [entry.text for entry in entries], exact=True)


def below(conf: float, gate: float) -> str:
    """The message for a step that its gate does not let through."""
    return f"confidence {conf:g} is below the gate of {gate:g}"


def facts_of(text: str) -> set[str]:
    """The numbers, names and negations of a text, as far as they can be seen without understanding it."""
    numbers = {number.strip(".,:/-") for number in NUMBER.findall(text)}
    names = {name.casefold().removesuffix("'s").removesuffix("’s") for name in NAME.findall(text) if len(name) > 1}
    negations = {"not" for word in WORD.findall(text.casefold()) if word.replace("’", "'") in NEGATIONS}
    return numbers | names | negations


def ungrounded(text: str, sources: list[str], *, exact: bool) -> str:
    """What a derived text says that its sources do not (or, when `exact`, leaves out); "" when nothing."""
    said = facts_of(text)
    words = set(map(str.casefold, WORD.findall("\n".join(sources))))
    added = said - words
    if not (added or exact):  # facts are mostly words, which cost a fifth
        return ""
    near = set(sources)
    if not exact and "not" not in added:  # any other fact is a piece of what says it
        near = {source for source in near if any(fact in source.casefold() for fact in added)}
    known = set().union(*map(facts_of, near))
    added -= known
    if added:
        return f"says what no source says: {', '.join(sorted(added)[:3])}"
    lost = {fact for fact in known - said if fact not in {word.casefold() for word in WORD.findall(text)}}
    if exact and lost:
        return f"leaves out: {', '.join(sorted(lost)[:3])}"
    return ""


def bad_retire(step: Retire, desk: Desk, gates: Gates) -> str:
    if step.why not in WHYS:
        return f"{step.why!r} is no reason; use one of {', '.join(WHYS)}"
    old = desk.buffered(step.seq) or desk.holding(step.seq)
    if old is None:
        return f"no visible entry has seq {step.seq}"
    if old.topic in desk.documents and old.topic != "CURRENT":
        problem = unchangeable(old.topic, desk)
        if problem:
            return problem
    if len(old.seqs) > 1 and any(seq not in desk.spare for seq in old.seqs if seq != step.seq):
        return f"evidence lacks the other entries of the joined line {render_seqs(old.seqs)}"
    if step.why not in ("superseded", "duplicate"):
        return ""
    new = desk.buffered(step.by) or desk.holding(step.by)
    if new is None and step.why == "superseded":  # by what has itself been replaced in this run
        new = desk.gone.get(step.by)
    if new is None:
        return f"no visible entry has seq {step.by}, which is to take its place"
    if step.conf < gates.supersede:
        return below(step.conf, gates.supersede)
    return bad_succession(old, step.seq, new, step.by, step.why)


def bad_succession(old: Entry, old_seq: int, new: Entry, new_seq: int, why: str) -> str:
    """Why one entry may not take another's place: it goes forward only, and within one ns."""
    if new is old or new_seq == old_seq:
        return f"{old_seq} cannot take its own place"
    if old.signature.get("ns") != new.signature.get("ns"):
        return f"{old_seq} and {new_seq} are of different ns"
    if why == "duplicate":
        said_by = [value for _, value in new.signature.fields]
        more = ungrounded(old.text, [new.text, *said_by], exact=False)
        return more.replace("says what no source says", f"{old_seq} says what {new_seq} does not say")
    if each_of_oneself(old, new) and old_seq not in parse_seqs(new.signature.get("supersedes")):
        return f"{old.source} speaks of {old.source} in {old_seq}, {new.source} of {new.source} in {new_seq}"
    if old_seq > new_seq:
        return f"{new_seq} is older than {old_seq}; only the newer supersedes"
    if old.time and new.time and new.time < old.time[: len(new.time)]:
        return f"{new_seq} ({new.time}) lies before {old_seq} ({old.time}); only the later supersedes"
    if old.source == "user" and new.source == "AI":
        return f"{old_seq} was said by the user and is not superseded by an AI ({new_seq})"
    return ""


def may_succeed(old: Unit, old_seq: int, new: Unit) -> bool:
    """Whether a flush lets an entry take the place of one that it says it replaces: what the views of it ask, too."""
    if not new.seqs or old_seq in new.seqs:
        return False
    return not bad_succession(entry_of(old), old_seq, entry_of(new), new.seqs[-1], "superseded")


def entry_of(unit: Unit) -> Entry:
    """A unit of the index as an entry."""
    return Entry(unit.topic, Signature(unit.seqs, unit.fields), unit.text)


def each_of_oneself(one: Entry, other: Entry) -> bool:
    """Whether two people speak, each in the first person: what one says of herself says nothing of the other."""
    if one.source == other.source or any(source.casefold() in NOBODY for source in (one.source, other.source)):
        return False
    return all(not FIRST_PERSON.isdisjoint(WORD.findall(entry.text.casefold())) for entry in (one, other))


def bad_split(step: Split, desk: Desk, gates: Gates) -> str:
    problem = unchangeable(step.topic, desk)
    if problem:
        return problem
    if step.conf < gates.split:
        return below(step.conf, gates.split)
    if len(step.parts) < 2:
        return "a split needs two parts"
    names = [part.topic for part in step.parts]
    if step.topic not in names:
        return f"one part must keep the id {step.topic}"
    if len({name.casefold() for name in names}) < len(names):
        return "two parts have the same id"
    for part in step.parts:
        if part.topic != step.topic:
            problem = bad_create(Create(part.topic, part.title), desk)
            if problem:
                return problem
    firsts = [entry.seqs[0] for entry in desk.documents[step.topic].entries]
    given = [seq for part in step.parts for seq in part.seqs]
    heads = [seq for seq in given if seq in firsts]
    every = {seq for entry in desk.documents[step.topic].entries for seq in entry.seqs}
    if sorted(heads) != sorted(firsts) or not set(given) <= every or len(set(given)) < len(given):
        return "the parts are no exact partition of the topic's entries"
    return "" if all(any(seq in firsts for seq in part.seqs) for part in step.parts) else "a part has no entry"


def bad_merge(step: Merge, desk: Desk, gates: Gates) -> str:
    if step.conf < gates.merge:
        return below(step.conf, gates.merge)
    if len(set(step.topics)) < 2 or step.into not in step.topics:
        return "a merge needs two topics, one of which it goes into"
    if len(set(step.topics)) < len(step.topics):
        return "a merge names each topic once"
    for topic in step.topics:
        problem = unchangeable(topic, desk)
        if problem:
            return problem
        problem = "" if topic == step.into else unmovable(desk.documents[topic])
        if problem:
            return problem
    return ""


def unmovable(document: Document) -> str:
    """Why a document has to stay where it is, under its name; "" where it may go into another."""
    own = [key for key in document.header.fields if key not in OUR_KEYS]
    if own:
        return f"{document.id} has front matter of its own ({', '.join(own[:3])}); move it by hand first"
    if is_pinned(document):
        return f"{document.id} is pinned (aux.pinned); merge the other way, or unpin it first"
    if has_comment(document):
        return f"{document.id} has comments in its front matter; move them by hand first"
    return ""


def has_comment(document: Document) -> bool:
    """Whether a person wrote a comment into the front matter."""
    span = document.header.span
    return any(line.lstrip().startswith("#") for line in document.lines[span.start : span.stop])


def bad_summary(step: Summarise, desk: Desk) -> str:
    problem = unchangeable(step.topic, desk)
    if problem:
        return problem
    if "\n" in step.text:
        return "a summary is one line of text"
    return beyond_entries(step.text, desk.documents[step.topic])


def beyond_entries(summary: str, document: Document) -> str:
    """What a summary says that no entry, field or heading of its document says; "" for nothing."""
    sources = [entry.text for entry in document.entries]
    sources += [value for entry in document.entries for _, value in entry.signature.fields]
    sources += [name for block in document.blocks for name in block.headings]
    return ungrounded(summary, sources, exact=False)


def bad_link(step: Link, desk: Desk, gates: Gates) -> str:
    if step.relation not in RELATIONS:
        return f"{step.relation!r} is no relation; use one of {', '.join(RELATIONS)}"
    problem = bad_end(step.source, desk) or ("" if step.remove else bad_end(step.to, desk))
    if problem:
        return problem
    ties = ties_at(desk, step.source)
    if step.remove:
        return "" if tie_to(step) in ties else f"{step.source} has no link {step.relation} to {step.to}"
    here, there = entry_at(desk, step.source), entry_at(desk, step.to)
    if step.source == step.to or (here is not None and here is there):
        return f"{step.source} cannot be linked to itself"
    if here is not None and there is not None and here.signature.get("ns") != there.signature.get("ns"):
        return f"{step.source} and {step.to} are of different ns"
    if tie_to(step) in ties:
        return f"{step.source} is linked to {step.to} already"
    if step.relation != LEARNED and step.conf < gates.link:  # what use teaches has a weight of its own
        return below(step.conf, gates.link)
    return f"{step.source} has {MOST_LINKS} links already" if len(ties) >= MOST_LINKS else ""


def bad_end(end: str, desk: Desk) -> str:
    """Why a link cannot begin or end here; "" when it can."""
    if not parse_seqs(end):
        return unchangeable(end, desk)
    entry = entry_at(desk, end)
    if entry is None:
        return f"no visible entry has seq {end}"
    return unchangeable(entry.topic, desk) if entry.topic in desk.documents else ""


CONNECTIVES = frozenset(
    "and und et y e o i og och en а и but aber mais pero also auch aussi también then dann puis".split()
)
"""Words that may fall between two pieces of a divided entry."""


def bad_divide(step: Divide, desk: Desk, gates: Gates) -> str:
    entry = desk.holding(step.seq)
    if entry is None:
        return f"no topic shows seq {step.seq}"
    problem = unchangeable(entry.topic, desk)
    if problem:
        return problem
    if step.conf < gates.split:
        return below(step.conf, gates.split)
    if len(entry.seqs) > 1:
        return f"{render_seqs(entry.seqs)} is a joined line; retire one of its members, and the others come back"
    if len(step.texts) < 2 or any(not text.strip() for text in step.texts):
        return "a division needs two pieces"
    between: list[str] = []
    at = 0
    for text in step.texts:
        start = entry.text.find(text, at)
        if start < 0:
            return f"{' '.join(text.split())[:40]!r} is no piece of the words of {step.seq}, or not in their order"
        between.append(entry.text[at:start])
        at = start + len(text)
    between.append(entry.text[at:])
    lost = [word for piece in between for word in WORD.findall(piece) if word.casefold() not in CONNECTIVES]
    return f"leaves out: {', '.join(lost[:3])}" if lost else ""
