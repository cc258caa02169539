"""The end of a run: values become changes, and the changes one transaction."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from infinimem.consolidate.run import Finder, Report, Run, prepare, seqs_of, topics_in
from infinimem.consolidate.story import deeds
from infinimem.errors import ChangedOnDisk
from infinimem.model import (
    Change,
    Document,
    Entry,
    Extend,
    Merge,
    Outcome,
    Retire,
    Signature,
    Step,
    Summarise,
    path_of,
)
from infinimem.plan import lexical, rules
from infinimem.plan.desk import Desk, redirect, refresh
from infinimem.plan.paper import Plan, to_values
from infinimem.secrets import secrets_in
from infinimem.store import transaction
from infinimem.store.buffer import hold, next_seq, note_state
from infinimem.store.evidence import (
    TAKEN_BACK,
    Record,
    append_to_evidence,
    event_line,
    evidence_path,
    read_records,
    retire_line,
)
from infinimem.store.files import digest_of
from infinimem.store.layout import BUFFER, LOG, merges_by_entry
from infinimem.store.read import read_file, read_leading, read_log
from infinimem.store.summaries import note_versions
from infinimem.text.document import edit, entry_lines, render, title_of
from infinimem.text.signature import parse_seqs, render_seqs

ATTEMPTS = 4
T = TypeVar("T")
SUMMARY_LENGTH = 240
BEGINNING = 1000
"""Entries of CURRENT and of the log that are looked through for what leaves them, before the whole file is."""


def conclude(run: Run, index: Finder, *, dry_run: bool) -> Report:
    """Commit what the run made, leaving out what went stale while it was thinking."""
    stale_seqs: set[int] = set()
    stale_topics: dict[str, str] = {}
    for _ in range(ATTEMPTS):
        finished = finish_documents(run, index)
        if dry_run:
            return report_of(run, finished, diff=diff_of(run, finished))
        try:
            notes = put_on_disk(run, finished)
        except StaleEntries as stale:
            stale_seqs.update(stale.seqs)
        except ChangedOnDisk:
            pass
        else:
            keep_proposals(run)
            return report_of(run, finished, notes=tuple(notes))
        for topic, digest in run.digests.items():
            if read_file(run.root, path_of(topic)).digest != digest:
                stale_topics[topic] = f"{path_of(topic)} was changed while flush was thinking"
        for topic in list(run.desk.documents):
            if topic not in run.digests and read_file(run.root, path_of(topic)).digest:
                stale_topics[topic] = f"{path_of(topic)} was made while flush was thinking"
        run = again_without(run, index, stale_seqs, stale_topics)
    raise ChangedOnDisk("the library keeps changing while flush is thinking; nothing was written. Run flush again")


class StaleEntries(Exception):
    """Entries that CURRENT no longer holds as the plan saw them."""

    def __init__(self, seqs: Collection[int]) -> None:
        super().__init__()
        self.seqs = seqs


def again_without(run: Run, index: Finder, stale_seqs: Collection[int], stale_topics: Mapping[str, str]) -> Run:
    """The same steps once more, without those that went stale: hand edits win."""
    fresh = {seq: entry for seq, entry in run.buffer.entries.items() if seq not in stale_seqs}
    new = Run(run.root, replace(run.buffer, entries=fresh), run.now, run.gates, Desk(fresh), apart=run.apart, by=run.by)
    for outcome in run.outcomes:
        step = outcome.step
        if outcome.status != "executed":
            new.outcomes.append(outcome)
            continue
        topic = next((topic for topic in topics_in(step) if topic in stale_topics), "")
        if topic:
            new.outcomes.append(Outcome(step, "skipped", stale_topics[topic]))
            continue
        if isinstance(step, Extend):
            seqs = tuple(seq for seq in step.seqs if seq not in stale_seqs)
            if len(seqs) < len(step.seqs):
                gone = replace(step, seqs=tuple(seq for seq in step.seqs if seq in stale_seqs))
                why = f"{render_seqs(gone.seqs)} changed in {BUFFER} while flush was thinking"
                new.outcomes.append(Outcome(gone, "skipped", why))
            if not seqs:
                continue
            step = replace(step, seqs=seqs)
        prepare(new, step, index)
        new.take(step)  # a division keeps the seqs that it has
    return new


@dataclass(frozen=True, slots=True)
class Finished:
    """The end state as values: documents by topic, removed topics, and what evidence is to gain."""

    documents: Mapping[str, Document]
    removed: tuple[str, ...]
    consumed: tuple[Entry, ...]
    evidence: tuple[str, ...]


def finish_documents(run: Run, index: Finder) -> Finished:
    """Bring summary, token count and log of every touched document up to date; collect evidence."""
    documents: dict[str, Document] = {}
    for topic, ops in run.desk.touched.items():
        document = run.desk.documents[topic]
        if topic not in run.originals and not document.entries:
            continue  # made in this run, and nothing came to stand in it
        summary = run.desk.summaries.get(topic) or (said(document) if is_linking(ops) else extract(document))
        documents[topic] = refresh(document, summary, ops, run.now)
    for topic, text in run.desk.summaries.items():
        if topic not in documents and topic in run.desk.documents:
            documents[topic] = refresh(run.desk.documents[topic], text, (("summary", ()),), run.now)
    left = {seq for entry in run.desk.waiting.values() for seq in entry.seqs}
    gone = {*run.desk.placed, *(step.seq for step in run.desk.retired)} - left
    consumed = tuple(entry for entry in run.buffer.entries.values() if set(entry.seqs) <= gone)
    removed = tuple(topic for topic in run.desk.removed if topic in run.originals)
    # a person copied it into a topic before it was ever flushed
    lines = [line for entry in run.buffer.bare for line in entry_lines(entry.signature, entry.text)]
    lines += first_words(run, consumed, index)
    lines += revisions(run, index)
    lines += [line for entry in joined_lines(run) for line in revision_lines(entry, Record(entry.seq, (), ()), run.now)]
    made = run.desk.made
    lines += [line for parts in made.values() for part in parts for line in entry_lines(part.signature, part.text)]
    for step in run.desk.retired:
        by = render_seqs(seqs_of(made[step.seq])) if step.seq in made else str(step.by or "")
        lines.append(retire_line([step.seq], by, step.why, run.now))
    return Finished(documents, removed, consumed, tuple(lines))


def is_linking(ops: Sequence[tuple[str, tuple[int, ...]]]) -> bool:
    """Whether nothing but links changed, so that the summary still says what it said."""
    return all(op == "link" for op, _ in ops)


def said(document: Document) -> str:
    """The summary that a document has."""
    return str(document.header.fields.get("summary") or "")


def extract(document: Document) -> str:
    """A summary in the document's own words; where it would say what no entry says, its first entry's instead.

    What looks like a password stays in its entry: a summary goes into every catalogue.
    """
    entries: Sequence[Entry] = document.entries
    if secrets_in("\n".join(entry.text for entry in entries)):
        entries = [entry for entry in entries if not secrets_in(entry.text)]
    summary = lexical.summarise(title_of(document), entries)
    if summary and rules.bad_summary(Summarise(document.id, summary), Desk({}, {document.id: document})):
        summary = " ".join(entries[0].text.split())[:SUMMARY_LENGTH] if entries else ""
    return summary


def first_words(run: Run, consumed: Sequence[Entry], index: Finder) -> list[str]:
    """What evidence is to gain of entries that leave CURRENT: they, or what an edit after an undo changed."""
    known = [entry for entry in consumed if entry.seq in run.buffer.recorded]
    fresh = [entry for entry in consumed if entry.seq not in run.buffer.recorded]
    lines = [line for entry in fresh for line in entry_lines(entry.signature, entry.text)]
    return [*lines, *new_words(run, known, index)]


def new_words(run: Run, entries: Sequence[Entry], index: Finder) -> list[str]:
    """What evidence lacks of lines that it knows. Only for those whose words changed is evidence itself read."""
    changed = [entry for entry in entries if list(index.words(entry.seq))[-1:] != [entry.text]]
    records = read_records(run.root, [entry.seq for entry in changed])
    return [line for entry in changed for line in revision_lines(entry, records[entry.seq], run.now)]


def joined_lines(run: Run) -> list[Entry]:
    """The lines that this run made of several entries; their wording is in evidence beside their sources."""
    old = {seq for entry in run.buffer.entries.values() for seq in entry.seqs}
    made = {entry.seqs for entry in run.desk.joined}
    return [
        entry
        for document in run.desk.documents.values()
        for entry in document.entries
        if entry.seqs in made
        or (len(entry.seqs) > 1 and old.issuperset(entry.seqs) and entry.seqs not in run.buffer.whole)
    ]


def revisions(run: Run, index: Finder) -> list[str]:
    """Words that a person changed in a line that this run moves or retires: evidence notes them first."""
    moved: list[Entry] = []
    for topic, document in run.originals.items():
        after = run.desk.documents.get(topic)
        kept = {entry.seqs for entry in after.entries} if after is not None else set()
        moved += [entry for entry in document.entries if entry.seqs not in kept]
    return new_words(run, moved, index)


def revision_lines(entry: Entry, record: Record, at: str) -> tuple[str, ...]:
    """What evidence lacks of a visible line: all of it, a revision of its words, or nothing."""
    known = [one for _, one in record.entries if one.seqs == entry.seqs]
    if not known and len(entry.seqs) == 1:
        return entry_lines(entry.signature, entry.text)
    if known and known[-1].text == entry.text:
        return ()
    signature = Signature(entry.seqs, (("rev", str(len(known) + 1)), ("at", at)))
    return entry_lines(signature, entry.text)


def put_on_disk(run: Run, finished: Finished) -> list[str]:
    """One transaction: evidence, topics, and last CURRENT without exactly the consumed lines."""
    with hold(run.root) as note:
        gone = [*finished.consumed, *run.buffer.again]
        file = read_leading(run.root, BUFFER, BEGINNING)
        try:
            shorter = without_entries(file.document, gone)
        except StaleEntries:
            if not file.rest:
                raise
            file = read_file(run.root, BUFFER)
            shorter = without_entries(file.document, gone)
        changes = document_changes(run, finished)
        following = next_seq(run.root, note)
        appends = []
        if finished.evidence or finished.consumed:
            high = event_line("flush", run.now, high=str(following - 1))
            appends.append(append_to_evidence(run.root, run.now, [*finished.evidence, high]))
        if shorter is not file.document:
            changes.append(Change(BUFFER, file.digest, render(shorter) + file.rest))
            changes += shorter_log(run.root, finished.consumed)
        if not changes and not appends:
            return []
        about = {
            "kind": "flush",
            "at": run.now,
            "seqs": render_seqs(sorted(seqs_of(finished.consumed))),
            "retired": render_seqs(sorted(step.seq for step in run.desk.retired)),
            "made": render_seqs(sorted(seqs_of(part for parts in run.desk.made.values() for part in parts))),
            "did": deeds(taken_steps(run)[::-1], finished.removed, seqs_of(finished.consumed)),
            "lines": ["".join(entry_lines(entry.signature, entry.text)) for entry in finished.consumed],
            "void": void_lines(run, finished, following - 1),
        }
        kept = transaction.commit(run.root, changes, appends, about, undoable=True)
        op = "command" if run.by == "hand" else "flush"
        note_versions(run.root, "summary", changed(run, finished, said), run.now, op, run.by)
        note_versions(run.root, "headings", changed(run, finished, headings_of), run.now, op, run.by)
        note_state(run.root, note, following)
        return kept


def changed(run: Run, finished: Finished, part: Callable[[Document], T]) -> dict[str, tuple[T | None, T]]:
    """A part of each document of a run, by topic: before and after; None for a document that was not there."""
    return {
        topic: (part(run.originals[topic]) if topic in run.originals else None, part(document))
        for topic, document in finished.documents.items()
    }


def headings_of(document: Document) -> list[str]:
    """A document's headings in order, each with those above it; its title first."""
    return [" > ".join(block.headings) for block in document.blocks if block.level]


def void_lines(run: Run, finished: Finished, high: int) -> list[str]:
    """What evidence says should the commit have to be taken back because of a hand edit."""
    consumed = set(seqs_of(finished.consumed))
    older = sorted({step.seq for step in run.desk.retired} - consumed)
    lines = [event_line("unflush", run.now, seq=render_seqs(sorted(consumed)))] if consumed else []
    lines += [event_line("restore", run.now, seq=render_seqs(older), why=TAKEN_BACK)] if older else []
    made = sorted(seqs_of(part for parts in run.desk.made.values() for part in parts))
    lines += [retire_line(made, "", "undone", run.now)] if made else []
    return [*lines, event_line("flush", run.now, high=str(high))] if lines else []


def without_entries(document: Document, entries: Sequence[Entry]) -> Document:
    """CURRENT without some entries. Raises `StaleEntries` when one is not there as it was seen."""
    if not entries:
        return document
    there = {(entry.seqs, entry.signature, entry.text): entry.span for entry in reversed(document.entries)}
    spans = []
    missing: list[int] = []
    for entry in entries:
        span = there.get((entry.seqs, entry.signature, entry.text))
        if span is None:
            missing += entry.seqs
        else:
            spans.append(span)
    if missing:
        raise StaleEntries(missing)
    return edit(document, [(span, ()) for span in spans])


def document_changes(run: Run, finished: Finished) -> list[Change]:
    """The topic documents' changes, guarded by the digests that they were read with."""
    changes = [
        Change(document.path, run.digests.get(topic, ""), render(document))
        for topic, document in finished.documents.items()
        if topic not in run.originals or document.lines != run.originals[topic].lines
    ]
    return changes + [Change(path_of(topic), run.digests[topic], left_of(run, topic)) for topic in finished.removed]


def left_of(run: Run, topic: str) -> bytes | None:
    """What becomes of a topic that was merged into another: nothing, or a page that says where it went."""
    target = next((step.into for step in taken_steps(run) if isinstance(step, Merge) and topic in step.topics), "")
    if not target or not merges_by_entry(run.root):
        return None
    return render(redirect(run.originals[topic], target))


def taken_steps(run: Run) -> list[Step]:
    """The steps that were carried out, newest first."""
    return [outcome.step for outcome in reversed(run.outcomes) if outcome.status == "executed"]


def shorter_log(root: Path, consumed: Sequence[Entry]) -> list[Change]:
    """The second copy without what is now in evidence."""
    gone = set(seqs_of(consumed))
    file = read_leading(root, LOG, BEGINNING)
    if file.rest and not gone.issubset(seqs_of(file.document.entries)):
        file = read_log(root)
    spans = [entry.span for entry in file.document.entries if gone.issuperset(entry.seqs)]
    if not spans:
        return []
    return [Change(LOG, file.digest, render(edit(file.document, [(span, ()) for span in spans])) + file.rest)]


def keep_proposals(run: Run) -> None:
    """What only a gate held back waits for a person, what conflict marks did for the next flush; what is done goes."""
    skipped = [outcome for outcome in run.outcomes if outcome.status == "skipped"]
    unsure = [outcome.step for outcome in skipped if outcome.why.startswith("confidence ")]
    held = [outcome.step for outcome in skipped if isinstance(outcome.step, Retire) and is_held_up(run, outcome.step)]
    done = [outcome.step for outcome in run.outcomes if outcome.status == "executed"]
    if unsure or held or any(isinstance(step, Retire) for step in done):
        from infinimem.store.proposals import add_proposals, drop_held

        add_proposals(run.root, to_values(unsure), run.now)
        add_proposals(run.root, to_values(held), run.now, held=True)
        drop_held(run.root, to_values(step for step in done if isinstance(step, Retire)))


def is_held_up(run: Run, step: Retire) -> bool:
    """Whether a model was sure of a replacement, and only the old one's page could not be changed.

    What the writer said himself stands in his entry, so that every flush finds it again.
    """
    old = run.desk.holding(step.seq)
    new = run.desk.holding(step.by) if step.by else None
    if run.by != "model" or old is None or new is None or step.seq in parse_seqs(new.signature.get("supersedes")):
        return False
    return bool(run.desk.documents[old.topic].blocking) and step.conf >= run.gates.supersede


def report_of(run: Run, finished: Finished, *, diff: str = "", notes: tuple[str, ...] = ()) -> Report:
    """What the run did, in the words of the report."""
    created = tuple(topic for topic in finished.documents if topic not in run.originals)
    consumed = seqs_of(finished.consumed)
    gone = set(consumed) if diff else set()
    there = read_file(run.root, BUFFER) if diff else read_leading(run.root, BUFFER, BEGINNING)
    left = tuple(seq for seq in seqs_of(there.document.entries) if seq not in gone)
    return Report(
        flushed=bool(consumed or finished.documents or finished.removed or run.buffer.again),
        outcomes=tuple(run.outcomes),
        seqs=consumed,
        left=left,
        created=created,
        changed=tuple(topic for topic in finished.documents if topic in run.originals),
        removed=finished.removed,
        retired=run.desk.retired,
        notes=(*run.buffer.notes, *notes),
        diff=diff,
        plan=Plan(
            tuple(outcome.step for outcome in run.outcomes if outcome.status == "executed"),
            seqs_of(run.buffer.entries.values()),
            digest_of(render(run.buffer.document)),
        ),
    )


def diff_of(run: Run, finished: Finished) -> str:
    """What a commit would change, as a unified diff."""
    pieces: list[str] = []
    for topic, document in finished.documents.items():
        before = run.originals[topic].lines if topic in run.originals else ()
        pieces += diff_lines(document.path, before, document.lines)
    for topic in finished.removed:
        pieces += diff_lines(path_of(topic), run.originals[topic].lines, ())
    if finished.evidence:
        path = evidence_path(run.root, run.now)
        known = read_file(run.root, path).document.lines
        pieces += diff_lines(path, known, (*known, *finished.evidence))
    shorter = without_entries(run.buffer.document, [*finished.consumed, *run.buffer.again])
    pieces += diff_lines(BUFFER, run.buffer.document.lines, shorter.lines)
    return "".join(pieces)


def diff_lines(path: str, before: Sequence[str], after: Sequence[str]) -> list[str]:
    """One file's part of a unified diff."""
    old = f"a/{path}" if before else "/dev/null"
    new = f"b/{path}" if after else "/dev/null"
    lines = difflib.unified_diff(before, after, old, new)
    return [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines]
