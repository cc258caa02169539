"""Every invariant of the format over a whole library, with file and line; and the repairs that are safe."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from infinimem.errors import UnknownSeq
from infinimem.flush import revision_lines, sign, timestamp
from infinimem.model import CURRENT, Change, Document, Entry, Problem, Signature, Span
from infinimem.plan.desk import aux_list, set_aux, set_header
from infinimem.store import transaction
from infinimem.store.buffer import append_known, hold, next_seq, note_state, write_log
from infinimem.store.evidence import (
    Record,
    all_records,
    append_to_evidence,
    event_line,
    retire_line,
    retirement,
)
from infinimem.store.layout import BUFFER, FLUSH_LOCK, KEPT, LOG
from infinimem.store.lock import exclusive
from infinimem.store.read import File, folder_problems, list_files, read_file
from infinimem.text.document import edit, entry_lines, parse, render, unsigned_entries
from infinimem.text.header import render_scalar
from infinimem.text.lines import join_lines
from infinimem.text.signature import render_seqs
from infinimem.text.tokens import estimate

NEAR_MISS = re.compile(r"[-*+] <\s*seq\s*=")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be; `fixed` says that it was repaired just now."""

    problem: Problem
    fixable: bool = False
    fixed: bool = False


@dataclass(slots=True)
class Survey:
    """A whole library as read at one moment, and what repairs would change."""

    root: Path
    at: str
    buffer: File
    topics: dict[str, File]
    records: Mapping[int, Record]
    log: File
    following: int
    findings: list[Finding] = field(default_factory=list)
    fixed: dict[str, Document] = field(default_factory=dict)
    evidence: list[str] = field(default_factory=list)
    logged: list[Entry] = field(default_factory=list)

    def say(
        self, path: str, line: int, message: str, code: str, *, fixable: bool, blocking: bool = False
    ) -> None:
        """Note a finding."""
        self.findings.append(Finding(Problem(path, line, message, blocking, code), fixable))

    def document(self, path: str) -> Document:
        """A document as repaired so far."""
        if path in self.fixed:
            return self.fixed[path]
        return self.buffer.document if path == BUFFER else self.topics[path].document

    def documents(self) -> Iterator[Document]:
        """CURRENT and the topics, as repaired so far."""
        yield self.document(BUFFER)
        for path in self.topics:
            yield self.document(path)

    def take_seq(self) -> int:
        """A seq that nobody has."""
        self.following += 1
        return self.following - 1


def check(root: Path, now: datetime, *, fix: bool = False) -> list[Finding]:
    """All findings, in the order of files and lines; with `fix`, the repairable ones are repaired first.

    Repairs sign plain bullets, renumber clashing seqs, note hand edits in evidence and recount; they are
    one transaction. Without `fix` nothing is written.
    """
    with exclusive(root / FLUSH_LOCK, doing="flush"), hold(root) as note:
        survey = read_survey(root, timestamp(now))
        for examine in (
            check_files,
            check_near_misses,
            check_doubled,
            check_unsigned,
            check_visible,
            check_evidence,
            check_headers,
            check_log,
        ):
            examine(survey)
        if fix and (survey.fixed or survey.evidence):
            put_right(survey, note)
            return [replace(finding, fixed=finding.fixable) for finding in in_order(survey.findings)]
        return in_order(survey.findings)


def in_order(findings: Sequence[Finding]) -> list[Finding]:
    """Findings by file and line."""
    return sorted(findings, key=lambda finding: (finding.problem.path, finding.problem.line))


def read_survey(root: Path, at: str) -> Survey:
    """Read everything once."""
    topics: dict[str, File] = {}
    for path in list_files(root):
        if path.startswith("topics/"):
            try:
                topics[path] = read_file(root, path)
            except Exception as error:
                topics[path] = File(
                    path, "", replace(parse(path, b""), problems=(Problem(path, 0, str(error)),))
                )
    log = read_file(root, LOG)
    return Survey(root, at, read_file(root, BUFFER), topics, all_records(root), log, next_seq(root))


def check_files(survey: Survey) -> None:
    """Files that cannot be understood, and what reading leaves out."""
    for document in survey.documents():
        for problem in document.problems:
            survey.findings.append(Finding(problem))
    for problem in folder_problems(survey.root):
        survey.findings.append(Finding(problem))
    kept = survey.root / KEPT
    for path in sorted(kept.iterdir()) if kept.is_dir() else ():
        message = "another program saved this in the moment of a flush; take from it what you miss, then delete it"
        survey.say(path.relative_to(survey.root).as_posix(), 0, message, "kept", fixable=False)


def check_near_misses(survey: Survey) -> None:
    """Lines that look signed but are not, so that they count as prose."""
    for document in survey.documents():
        signed = {entry.span.start for entry in document.entries}
        inside = {at for entry in document.entries for at in range(entry.span.start, entry.span.stop)}
        for at, line in enumerate(document.lines):
            if at not in inside and at not in signed and NEAR_MISS.match(line) and not fenced(document, at):
                message = (
                    "looks like a signature but is none, so the line is prose; correct it or remove the <…>"
                )
                survey.say(document.path, at + 1, message, "near-miss", fixable=False)


def fenced(document: Document, line: int) -> bool:
    """Whether a line lies inside a code fence of the document's own."""
    from infinimem.text.lines import closing_fence

    at = document.header.span.stop
    spans = {entry.span.start: entry.span.stop for entry in document.entries}
    while at <= line:
        if at in spans:
            at = spans[at]
            continue
        closing = closing_fence(document.lines, at)
        if closing >= line > at:
            return True
        at = closing + 1 if closing >= 0 else at + 1
    return False


def writable(document: Document) -> bool:
    """Whether repairs may touch the document."""
    return not document.blocking and not document.is_guest


def check_doubled(survey: Survey) -> None:
    """A seq that stands in two places: the same words are kept once, other words get a seq of their own."""
    first: dict[int, tuple[str, Entry]] = {}
    topics_first = [*(doc for doc in survey.documents() if doc.id != CURRENT), survey.document(BUFFER)]
    for document in topics_first:
        if document.is_guest:
            continue
        edits: list[tuple[Span, Sequence[str]]] = []
        for entry in document.entries:
            clash = next((seq for seq in entry.seqs if seq in first), None)
            if clash is None:
                first.update((seq, (document.path, entry)) for seq in entry.seqs)
                continue
            path, other = first[clash]
            place = f"{path}:{other.span.start + 1}"
            can = writable(document)
            if other.seqs == entry.seqs and other.text == entry.text:
                survey.say(
                    document.path,
                    entry.span.start + 1,
                    f"seq {clash} stands in {place} too, in the same words",
                    "doubled",
                    fixable=can,
                )
                edits.append((entry.span, ()))
            else:
                survey.say(
                    document.path,
                    entry.span.start + 1,
                    f"seq {clash} stands in {place} too, in other words",
                    "clash",
                    fixable=can,
                )
                new = survey.take_seq()
                signature = Signature((new,), entry.signature.fields)
                edits.append((entry.span, entry_lines(signature, entry.text)))
        if edits and writable(document):
            survey.fixed[document.path] = edit(document, edits)


def check_unsigned(survey: Survey) -> None:
    """Plain bullets in our documents: typed by hand, still without a signature."""
    for document in list(survey.documents()):
        loose = unsigned_entries(document)
        for entry in loose:
            survey.say(
                document.path,
                entry.span.start + 1,
                "a bullet without a signature",
                "unsigned",
                fixable=writable(document),
            )
        if loose and writable(document):
            signed, seqs = sign(document, loose, survey.following, survey.at)
            survey.following += len(seqs)
            survey.fixed[document.path] = signed
            if document.id == CURRENT:
                survey.logged += [entry for entry in signed.entries if entry.seq in seqs]


def check_visible(survey: Survey) -> None:
    """What topics show against what evidence holds: missing evidence, changed words, retired yet visible."""
    waiting = {seq for entry in survey.document(BUFFER).entries for seq in entry.seqs}
    for document in survey.documents():
        if document.id == CURRENT or document.is_guest:
            continue
        for entry in document.entries:
            line = entry.span.start + 1
            for seq in entry.seqs:
                record = survey.records.get(seq, Record(seq, (), ()))
                if seq in waiting:
                    continue  # `check_doubled` names it
                if not record.entries and len(entry.seqs) > 1:
                    survey.say(document.path, line, f"evidence lacks seq {seq}", "no-evidence", fixable=True)
                    signature = Signature((seq,), entry.signature.fields)
                    survey.evidence += entry_lines(signature, entry.text)
                elif len(entry.seqs) == 1 and (missing := revision_lines(entry, record, survey.at)):
                    what = (
                        "the words were changed by hand; evidence does not know them"
                        if record.entries
                        else (f"evidence lacks seq {seq}")
                    )
                    survey.say(
                        document.path, line, what, "edited" if record.entries else "no-evidence", fixable=True
                    )
                    survey.evidence += missing
                event = retirement(record)
                if event is not None:
                    survey.say(
                        document.path,
                        line,
                        f"seq {seq} is visible although evidence says {event.get('why')}",
                        "returned",
                        fixable=True,
                    )
                    survey.evidence.append(event_line("restore", survey.at, seq=str(seq)))


def check_evidence(survey: Survey) -> None:
    """Every seq in evidence is visible, waiting or retired; what a person deleted is noted as such."""
    visible: set[int] = set()
    unreadable = False
    for document in survey.documents():
        visible.update(seq for entry in document.entries for seq in entry.seqs)
        unreadable |= bool(document.blocking)
    gone: list[int] = []
    for seq, record in survey.records.items():
        if seq in visible or retirement(record) is not None or not record.entries:
            continue
        last = record.events[-1][1].kind if record.events else ""
        path, entry = record.entries[-1]
        if last == "unflush":
            survey.say(
                path,
                entry.span.start + 1,
                f"seq {seq} was taken back by an undo and is no longer in {BUFFER}",
                "lost",
                fixable=False,
            )
            continue
        survey.say(
            path,
            entry.span.start + 1,
            f"seq {seq} stands in no topic any more",
            "deleted",
            fixable=not unreadable,
        )
        gone.append(seq)
    if not unreadable:
        survey.evidence += [retire_line([seq], 0, "deleted", survey.at) for seq in gone]
    for seq, record in survey.records.items():
        event = retirement(record)
        if event is not None and not record.entries and event.kind == "retire":
            path, _ = record.events[-1]
            survey.say(
                path,
                event.line,
                f"seq {seq} is retired, but evidence lacks its words",
                "no-words",
                fixable=False,
            )


def check_headers(survey: Survey) -> None:
    """Ids that are not the file's path, and token counts that are off."""
    for path in survey.topics:
        document = survey.document(path)
        if not writable(document) or not document.header.span.stop:
            continue
        stated = str(document.header.fields.get("id"))
        if stated != document.id:
            survey.say(
                path, 1, f"the id says {stated!r}, the file is {document.id!r}", "renamed", fixable=True
            )
            former = [*aux_list(document, "former_ids"), stated]
            document = set_header(set_aux(document, "former_ids", former), "id", render_scalar(document.id))
            survey.fixed[path] = document
        tokens = estimate("".join(document.lines[document.header.span.stop :]))
        if document.header.fields.get("token_count") != tokens:
            if "token_count" in document.header.fields and path not in survey.fixed:
                survey.say(path, 1, f"token_count is off (it is {tokens})", "count", fixable=True)
            survey.fixed[path] = set_header(document, "token_count", str(tokens))


def check_log(survey: Survey) -> None:
    """What was written and is in neither CURRENT nor evidence: an editor saved over it."""
    there = {seq for entry in survey.document(BUFFER).entries for seq in entry.seqs} | set(survey.records)
    there |= {seq for path in survey.topics for entry in survey.document(path).entries for seq in entry.seqs}
    for entry in survey.log.document.entries:
        if there.isdisjoint(entry.seqs):
            first = entry.text.split("\n", 1)[0][:60]
            seqs = render_seqs(entry.seqs)
            message = f"seq {seqs} was written but is gone ({first}); bring it back: infinimem recover {seqs}"
            survey.say(BUFFER, 0, message, "lost", fixable=False)


def put_right(survey: Survey, note: int) -> None:
    """Carry the repairs out as one transaction."""
    changes = []
    for path, document in survey.fixed.items():
        file = survey.buffer if path == BUFFER else survey.topics[path]
        content = render(document)
        if transaction.digest_of(content) != file.digest:
            changes.append(Change(path, file.digest, content))
    # entries signed in a topic have no evidence yet
    for path, document in survey.fixed.items():
        if path != BUFFER:
            known = {seq for entry in survey.topics[path].document.entries for seq in entry.seqs}
            for entry in document.entries:
                if known.isdisjoint(entry.seqs):
                    survey.evidence += entry_lines(entry.signature, entry.text)
    appends = []
    if survey.evidence:
        lines = [*survey.evidence, event_line("flush", survey.at, high=str(survey.following - 1))]
        appends.append(append_to_evidence(survey.root, survey.at, lines))
    transaction.commit(survey.root, changes, appends, None)
    for entry in survey.logged:
        write_log(survey.root, join_lines(entry_lines(entry.signature, entry.text)))
    note_state(survey.root, note, survey.following)


def recover(root: Path, seqs: Sequence[int]) -> list[int]:
    """Put logged entries that CURRENT and evidence lack back into CURRENT, as `Library.recover` promises."""
    with hold(root) as note:
        logged = {seq: entry for entry in read_file(root, LOG).document.entries for seq in entry.seqs}
        unknown = [seq for seq in seqs if seq not in logged]
        if unknown:
            raise UnknownSeq(
                f"the log of writes does not hold {render_seqs(unknown)}; `infinimem check` names what it holds"
            )
        there = {seq for entry in read_file(root, BUFFER).document.entries for seq in entry.seqs}
        there |= {seq for seq, record in all_records(root).items() if record.entries}
        back = [logged[seq] for seq in dict.fromkeys(seqs) if seq not in there]
        if back:
            append_known(root, note, back)
        return [seq for entry in back for seq in entry.seqs]
