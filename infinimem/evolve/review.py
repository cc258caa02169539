"""Review: proposals that only a gate held back, recent edits with what they changed, and a person's verdicts.

A verdict is an event in evidence (`<event=verdict, seq=12, edit=superseded, verdict=harmful, of=…, at=…>`): it is a
judgement that nothing else holds, so it belongs to what travels and is never derived, and not to `.infinimem/`. `of`
is the time of the edit, so that a seq that was retired twice has two edits. The last verdict on an edit counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from infinimem.config import Settings
from infinimem.consolidate.buffer import refuse_unreadable
from infinimem.consolidate.due import timestamp
from infinimem.consolidate.flush import run_steps
from infinimem.consolidate.run import Buffer, Finder, Report, Run, begin, prepare
from infinimem.errors import BadInput, BadPlan, Unreadable
from infinimem.model import Divide, Document, Entry, Join, Link, Merge, Retire, Split, Step, Summarise, topic_of
from infinimem.plan import rules
from infinimem.plan.desk import aux_list
from infinimem.plan.paper import step_of
from infinimem.store import transaction
from infinimem.store.buffer import evidence_files, hold, next_seq, note_state, read_if_there
from infinimem.store.evidence import append_to_evidence, event_line, read_records
from infinimem.store.layout import BUFFER, EVIDENCE, FLUSH_LOCK
from infinimem.store.lock import exclusive
from infinimem.store.proposals import read_proposals, write_proposals
from infinimem.store.read import list_files, read_file
from infinimem.text.document import Event, events, parse
from infinimem.text.signature import parse_seqs, render_seqs

VALID, HARMFUL = "valid", "harmful"
VERDICTS = (VALID, HARMFUL)
RETIRED = ("superseded", "duplicate", "split")
"""Reasons for which a planner retires an entry; the others are a date's or a person's doing."""
TOPIC_EDITS = {"split": "topic-split", "merge": "topic-merge"}


@dataclass(frozen=True, slots=True)
class Proposal:
    """An edit that its confidence kept from being made. `number` counts from 1, oldest first.

    `before` and `after` are the words that would go and stay; `refused` says why it cannot be taken as things are.
    """

    number: int
    at: str
    row: Mapping[str, Any]
    step: Step | None
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """Something that a plan changed. `name` is how it is asked for: the seqs it took away, or `topic@time`.

    `kind` is superseded, duplicate, split, joined, topic-split or topic-merge; `undone` that it was taken back since.
    """

    name: str
    kind: str
    at: str
    seqs: tuple[int, ...] = ()
    by: tuple[int, ...] = ()
    topics: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    undone: bool = False
    verdict: str = ""
    judged: str = ""


@dataclass(frozen=True, slots=True)
class Review:
    """What waits for a person: proposals, oldest first, and edits, newest first."""

    proposals: tuple[Proposal, ...] = ()
    edits: tuple[Edit, ...] = ()


def review(root: Path, finder: Finder, settings: Settings, now: datetime, most: int = 20) -> Review:
    """The proposals, each held against the rules as the library is now, and the `most` newest edits."""
    rows = read_proposals(root)
    run = begin(root, Buffer(parse(BUFFER, b""), {}), settings, timestamp(now))
    proposals = tuple(proposal(run, finder, number, row) for number, row in enumerate(rows, 1))
    return Review(proposals, tuple(with_words(root, finder, recent_edits(root, most))))


def proposal(run: Run, finder: Finder, number: int, row: Mapping[str, Any]) -> Proposal:
    """A kept proposal, read and checked."""
    at = str(row.get("at", ""))
    try:
        step = taken(step_of(row.get("step"), f"proposal {number}"))
    except BadPlan as error:
        return Proposal(number, at, row, None, refused=str(error))
    try:
        prepare(run, step, finder)
        refused = rules.violation(step, run.desk, run.gates)
    except Unreadable as error:
        refused = str(error)
    before, after = told(step, lambda seq: words_at(run.root, finder, seq))
    return Proposal(number, at, row, step, before, after, refused)


def taken(step: Step) -> Step:
    """A step that a person is sure of."""
    return replace(step, conf=1.0)


def told(step: Step, words: Callable[[int], str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words that a step takes away and those that it leaves."""
    match step:
        case Retire(seq=seq, by=by):
            return (words(seq),), ((words(by),) if by else ())
        case Join(seqs=seqs, text=text):
            return tuple(words(seq) for seq in seqs), (text,)
        case Merge(topics=topics, into=into):
            return topics, (into,)
        case Split(topic=topic, parts=parts):
            return (topic,), tuple(part.topic for part in parts)
        case Summarise(text=text):
            return (), (text,)
        case Link(source=source, to=to):
            return (), tuple(words(seq) if (seq := next(iter(parse_seqs(end)), 0)) else end for end in (source, to))
        case Divide(seq=seq, texts=texts):
            return (words(seq),), texts
        case _:
            return (), ()


def words_at(root: Path, finder: Finder, seq: int) -> str:
    """What an entry says: as it stands, else as evidence has it."""
    for unit in finder.standing(seq):
        return unit.text
    entry = read_records(root, [seq])[seq].newest
    return entry.text if entry is not None else ""


def chosen(rows: Sequence[dict[str, Any]], numbers: Sequence[int]) -> list[dict[str, Any]]:
    """The proposals with these numbers. Raises `BadInput` for one that there is not."""
    wrong = [number for number in numbers if not 0 < number <= len(rows)]
    if wrong:
        there = f"there are {len(rows)}" if rows else "there is none"
        raise BadInput(f"there is no proposal {render_seqs(wrong)}; {there}, see: infinimem review")
    return [rows[number - 1] for number in dict.fromkeys(numbers)]


def take(
    root: Path,
    finder: Callable[[], Finder],
    settings: Settings,
    now: datetime,
    numbers: Sequence[int],
    *,
    dry_run: bool = False,
) -> Report:
    """Carry proposals out as a plan of a person's: every rule but the gate holds. What is carried out is dropped."""
    numbers = list(dict.fromkeys(numbers))
    rows = chosen(read_proposals(root), numbers)
    steps = [taken(step_of(row.get("step"), f"proposal {number}")) for number, row in zip(numbers, rows, strict=True)]
    report = run_steps(root, finder, settings, now, lambda run, index: steps, dry_run=dry_run)
    done = [outcome.step for outcome in report.outcomes if outcome.status == "executed"]
    if done and not dry_run:
        forget_proposals(root, [row for row, step in zip(rows, steps, strict=True) if step in done])
    return report


def drop(root: Path, numbers: Sequence[int]) -> int:
    """Forget proposals; gives how many."""
    rows = chosen(read_proposals(root), numbers)
    forget_proposals(root, rows)
    return len(rows)


def forget_proposals(root: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Take some proposals off the list; a flush that adds others meanwhile is waited for."""
    with exclusive(root / FLUSH_LOCK, doing="flush"):
        write_proposals(root, [row for row in read_proposals(root) if row not in rows])


# Edits


def recent_edits(root: Path, most: int) -> list[Edit]:
    """The newest edits, newest first, each with its verdict; without the words that they changed."""
    found: list[Edit] = []
    back: set[int] = set()
    verdicts: dict[tuple[str, str, str], tuple[str, str]] = {}
    for path in reversed(evidence_files(root)):
        if len(found) >= most:
            break
        for one in reversed(happened_in(path)):
            if isinstance(one, Entry):
                found.append(joined(one, back))
            elif one.kind == "verdict":
                verdicts.setdefault(key_of(one), (one.get("verdict"), one.get("at")))
            elif one.kind in ("unflush", "restore"):
                back.update(one.seqs)
            elif one.kind == "retire" and one.get("why") in RETIRED:
                found.append(retired(one, back))
                back.difference_update(one.seqs)
    found += topic_edits(root)
    found.sort(key=lambda edit: edit.at, reverse=True)
    return [with_verdict(edit, verdicts) for edit in found[:most]]


def happened_in(path: Path) -> list[Entry | Event]:
    """The joins and events of an evidence file, in order."""
    document = parse(f"{EVIDENCE}/{path.name}", path.read_bytes())
    joins = [entry for entry in document.entries if len(entry.seqs) > 1 and entry.signature.get("rev") == "1"]
    lines: list[tuple[int, Entry | Event]] = [(entry.span.start + 1, entry) for entry in joins]
    lines += [(event.line, event) for event in events(document.lines)]
    return [one for _, one in sorted(lines, key=lambda pair: pair[0])]


def retired(event: Event, back: set[int]) -> Edit:
    """A retirement as an edit."""
    return Edit(
        render_seqs(event.seqs),
        event.get("why"),
        event.get("at"),
        event.seqs,
        parse_seqs(event.get("by")),
        undone=not back.isdisjoint(event.seqs),
    )


def joined(entry: Entry, back: set[int]) -> Edit:
    """The wording of several entries in one line as an edit."""
    undone = not back.isdisjoint(entry.seqs)
    return Edit(
        render_seqs(entry.seqs), "joined", entry.signature.get("at"), entry.seqs, after=(entry.text,), undone=undone
    )


def topic_edits(root: Path) -> Iterator[Edit]:
    """The splits and merges that the topics' own logs still hold."""
    made: dict[tuple[str, str], list[Document]] = {}
    for path in list_files(root):
        content = read_if_there(root / path) if path.startswith("topics/") else b""
        if b"op: split" in content or b"op: merge" in content:
            document = parse(path, content)
            for op, at in log_of(document):
                made.setdefault((op, at), []).append(document)
    for (op, at), documents in made.items():
        for document in documents if op == "merge" else documents[:1]:
            edit = topic_edit(op, at, document, documents)
            if edit.before != edit.after:  # topics that were made and merged in one flush: nobody saw them apart
                yield edit


def log_of(document: Document) -> list[tuple[str, str]]:
    """The splits and merges in a document's log, each with its time."""
    rows = document.header.fields.get("update_log")
    found = [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []
    pairs = [(str(row.get("op")), as_time(row.get("time"))) for row in found]
    return [(op, at) for op, at in pairs if op in TOPIC_EDITS]


def as_time(value: Any) -> str:
    """A time of the front matter as evidence writes it: YAML may have made a date of it."""
    return timestamp(value) if isinstance(value, datetime) else str(value)


def topic_edit(op: str, at: str, document: Document, documents: Sequence[Document]) -> Edit:
    """A split or a merge of topics as an edit; of a split the document that the parts came from is named."""
    if op == "merge":
        parts = tuple(dict.fromkeys((*aux_list(document, "merged_from"), document.id)))
        return Edit(f"{document.id}@{at}", TOPIC_EDITS[op], at, (), (), (document.id,), parts, (document.id,))
    ids = [one.id for one in documents]
    origins = [one for document in documents for one in aux_list(document, "split_from")]
    origin = next((one for one in origins if one in ids), (origins or ids)[0])
    return Edit(f"{origin}@{at}", TOPIC_EDITS[op], at, (), (), tuple(ids), (origin,), tuple(ids))


def key_of(event: Event) -> tuple[str, str, str]:
    """What edit a verdict is about."""
    return event.get("edit"), event.get("of"), render_seqs(event.seqs) if event.seqs else ""


def with_verdict(edit: Edit, verdicts: Mapping[tuple[str, str, str], tuple[str, str]]) -> Edit:
    """The edit with what was last said of it. Of topics only the time counts: they are renamed."""
    verdict, at = verdicts.get((edit.kind, edit.at, render_seqs(edit.seqs)), ("", ""))
    return replace(edit, verdict=verdict, judged=at)


def with_words(root: Path, finder: Finder, edits: Sequence[Edit]) -> Iterator[Edit]:
    """The edits with the words before and after them."""
    for edit in edits:
        if edit.topics:
            yield edit
            continue
        before = tuple(verbatim(root, edit.seqs))
        after = edit.after or tuple(words_at(root, finder, seq) for seq in edit.by)
        yield replace(edit, before=before, after=after)


def verbatim(root: Path, seqs: Sequence[int]) -> Iterator[str]:
    """The entries' own words in evidence."""
    records = read_records(root, seqs)
    for seq in seqs:
        entry = records[seq].newest
        if entry is not None:
            yield entry.text


def judge(root: Path, finder: Finder, now: datetime, name: str, verdict: str) -> Edit:
    """Say in evidence what a person thinks of an edit. Raises `BadInput` where there is no such edit."""
    if verdict not in VERDICTS:
        raise BadInput(f"a verdict is {VALID} or {HARMFUL}, not {verdict!r}")
    found = next((edit for edit in recent_edits(root, 10**9) if is_called(edit, name)), None)
    if found is None:
        raise BadInput(f"there is no edit {name!r}; `infinimem review` names them: a seq, or topic@time")
    at = timestamp(now)
    about = {"seq": render_seqs(found.seqs)} if found.seqs else {"topic": found.name.partition("@")[0]}
    line = event_line("verdict", at, **about, edit=found.kind, verdict=verdict, of=found.at)
    with exclusive(root / FLUSH_LOCK, doing="flush"), hold(root) as note:
        refuse_unreadable(root, read_file(root, BUFFER).document)
        following = next_seq(root, note)
        transaction.commit(root, [], [append_to_evidence(root, at, [line])])
        note_state(root, note, following)
    [edit] = with_words(root, finder, [replace(found, verdict=verdict, judged=at)])
    return edit


def is_called(edit: Edit, name: str) -> bool:
    """Whether an edit is meant: by its seqs or one of them, by `topic@time`, or by the topic alone."""
    seqs = parse_seqs(name.strip().removeprefix("#"))
    if seqs:
        return seqs == edit.seqs or (len(seqs) == 1 and not edit.topics and seqs[0] in edit.seqs)
    topic, _, at = topic_of(name).partition("@")
    return bool(edit.topics) and (topic in edit.topics or edit.name.startswith(f"{topic}@")) and edit.at.startswith(at)
