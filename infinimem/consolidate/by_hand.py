"""Changes to documents as a hand makes them, but noted in evidence at once: each one transaction, and no word is lost.

An entry that is replaced or removed is retired and its words are in evidence; so are paragraphs that go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from infinimem.consolidate.commit import extract, revision_lines, shorter_log
from infinimem.consolidate.due import timestamp
from infinimem.errors import BadInput, NeedsAttention, UnknownTopic, Unreadable
from infinimem.model import CURRENT, Change, Document, Entry, Signature, Unit, path_of
from infinimem.plan.desk import aux_list, new_document, refresh, set_aux, set_header
from infinimem.plan.rules import bad_id
from infinimem.store import transaction
from infinimem.store.buffer import hold, next_seq, note_state, noted_at, write_log
from infinimem.store.evidence import append_to_evidence, event_line, evidence_conflicts, read_records, retire_line
from infinimem.store.layout import BUFFER
from infinimem.store.read import File, read_file
from infinimem.text.document import entry_lines, render, units
from infinimem.text.header import render_scalar
from infinimem.text.lines import join_lines, split_lines
from infinimem.text.plain import Rewritten, plain_lines, rewrite

BY_AGENT = "AI"


def change_text(root: Path, now: datetime, topic: str, change: Callable[[str], str]) -> None:
    """Give a document, or CURRENT, another text; `change` gets the one it has, without front matter and signatures.

    Raises `UnknownTopic`, `Unreadable`, `BadInput`.
    """
    with hold(root) as note:
        file = own_file(root, topic)
        text = "".join(plain_lines(file.document))
        at = timestamp(now)
        following = next_seq(root, note)
        done = rewritten(file.document, change(text), following, now)
        if done.document is not file.document:
            save(root, note, at, following, [(file, done)])


def create_text(root: Path, now: datetime, topic: str, text: str) -> None:
    """Make a document with this text. Raises `BadInput` where there is one already, or can be none of that name."""
    if bad_id(topic):
        raise BadInput(bad_id(topic))
    with hold(root) as note:
        file = read_file(root, path_of(topic))
        if file.digest:
            raise BadInput(f"{file.path} exists already")
        at = timestamp(now)
        bare = new_document(topic, topic, at)
        empty = replace(bare, lines=bare.lines[: bare.header.span.stop], blocks=(), entries=())
        following = next_seq(root, note)
        save(root, note, at, following, [(file, rewritten(empty, text, following, now))])


def remove_topics(root: Path, now: datetime, topics: Sequence[str]) -> None:
    """Remove documents; their entries are retired, and their paragraphs kept in evidence. Raises `UnknownTopic`."""
    with hold(root) as note:
        files = [own_file(root, topic) for topic in topics]
        gone = [
            Rewritten(
                file.document,
                removed=tuple((entry, 0) for entry in file.document.entries),
                lost=tuple(unit for unit in units(file.document) if not unit.seqs),
            )
            for file in files
        ]
        save(root, note, timestamp(now), next_seq(root, note), list(zip(files, gone, strict=True)), remove=True)


def rename_topics(root: Path, now: datetime, names: Sequence[tuple[str, str]]) -> None:
    """Give documents other ids, old and new; the old ones stay findable. Raises `UnknownTopic`, `BadInput`."""
    with hold(root):
        changes = []
        for old, new in names:
            file = own_file(root, old)
            if bad_id(new) or read_file(root, path_of(new)).digest:
                raise BadInput(bad_id(new) or f"{path_of(new)} exists already")
            former = [*aux_list(file.document, "former_ids"), old]
            renamed = set_header(set_aux(file.document, "former_ids", former), "id", render_scalar(new))
            changes += [Change(path_of(new), "", render(renamed)), Change(file.path, file.digest, None)]
        transaction.commit(root, changes, [])


def own_file(root: Path, topic: str) -> File:
    """A document that may be changed. Raises `UnknownTopic`, `Unreadable`."""
    file = read_file(root, path_of(topic))
    if not file.digest and topic != CURRENT:
        raise UnknownTopic(f"there is no topic {topic!r}; see: infinimem catalog")
    if file.document.blocking:
        raise Unreadable(f"{file.document.blocking[0]}; nothing was changed")
    if file.document.is_guest:
        raise BadInput(f"{file.path} is not one of our documents (it has no `id`), so it is never changed")
    return file


def rewritten(document: Document, text: str, following: int, now: datetime) -> Rewritten:
    """A document with another text, its front matter brought up to date."""
    fields = {"source": BY_AGENT, "observed": noted_at(now)}
    try:
        lines = split_lines(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise BadInput(f"the text is not valid Unicode (character {error.start}); nothing was changed") from error
    done = rewrite(document, lines, following, fields)
    if document.id == CURRENT:
        return done
    seqs = tuple(entry.seq for entry in done.added)
    removed = tuple(seq for entry, _ in done.removed for seq in entry.seqs)
    ops = [(op, some) for op, some in (("add", seqs), ("retire", removed)) if some] or [("edit", ())]
    summary = extract(done.document)
    return replace(done, document=refresh(done.document, summary, ops, timestamp(now)))


def save(
    root: Path, note: int, at: str, following: int, edits: Sequence[tuple[File, Rewritten]], *, remove: bool = False
) -> None:
    """Commit changed documents, or their removal, with what evidence is to gain. Under the lock."""
    conflicts = evidence_conflicts(root)
    if conflicts:
        raise NeedsAttention(str(conflicts[0]))
    following += sum(len(done.added) for _, done in edits)
    evidence: list[str] = []
    changes: list[Change] = []
    logged: list[Entry] = []
    for file, done in edits:
        removed = [entry for entry, _ in done.removed]
        records = read_records(root, [entry.seq for entry in removed])
        for entry, by in done.removed:
            evidence += revision_lines(entry, records[entry.seq], at)
            evidence.append(retire_line(entry.seqs, by, "superseded" if by else "deleted", at))
        for unit in done.lost:
            evidence += paragraph_lines(unit, following, at)
            following += 1
        if file.path == BUFFER:
            logged += done.added
            changes += shorter_log(root, removed)
        else:
            evidence += words_of(done.added)
        changes.append(Change(file.path, file.digest, None if remove else render(done.document)))
    appends = []
    if evidence or following > next_seq(root, note):
        high = event_line("flush", at, high=str(following - 1))
        appends.append(append_to_evidence(root, at, [*evidence, high]))
    transaction.commit(root, changes, appends)
    for entry in logged:
        write_log(root, join_lines(entry_lines(entry.signature, entry.text)))
    note_state(root, note, following)


def words_of(entries: Iterable[Entry]) -> list[str]:
    """The entries' lines for evidence."""
    return [line for entry in entries for line in entry_lines(entry.signature, entry.text)]


def paragraph_lines(unit: Unit, seq: int, at: str) -> list[str]:
    """A paragraph that goes, as an entry that was deleted: `recover` brings it back."""
    signature = Signature((seq,), (("source", f"file:{unit.path}"), ("observed", at)))
    return [*entry_lines(signature, unit.text), retire_line([seq], 0, "deleted", at)]
