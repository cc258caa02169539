"""Every invariant of the format over a whole library, with file and line; and the repairs that are safe."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from infinimem.config import BY_NAME, take_file
from infinimem.consolidate.commit import diff_lines, revision_lines
from infinimem.consolidate.due import timestamp
from infinimem.consolidate.hand import rejoined, sign
from infinimem.consolidate.run import waits
from infinimem.errors import BadInput, NeedsAttention, StorageFailed, UnknownSeq, Unreadable
from infinimem.forgetting.forget import forget_held
from infinimem.forgetting.survey import Wanted, forgotten_seqs
from infinimem.git.renumber import renumber_line, renumbered
from infinimem.git.run import under_way
from infinimem.git.twins import Twins, any_twins, find_twins, published_in, renumber_places
from infinimem.model import CURRENT, Change, Document, Entry, Problem, Signature, Span, Tie, path_of, topic_of
from infinimem.plan.desk import aux_list, is_pinned, set_aux, set_header, topic_ties
from infinimem.plan.rules import MOST_LINKS, RELATIONS, beyond_entries
from infinimem.secrets import MEANT, secrets_of
from infinimem.sound import LARGE, NOTHING, Sound, look_through
from infinimem.store import transaction
from infinimem.store.append import append_known
from infinimem.store.buffer import evidence_files, hold, next_seq, note_state, noted_at, write_log
from infinimem.store.evidence import (
    Record,
    append_to_evidence,
    event_line,
    evidence_conflicts,
    read_records,
    records_in,
    retire_line,
    retirement,
)
from infinimem.store.files import read_bytes
from infinimem.store.layout import BUFFER, EVIDENCE, FLUSH_LOCK, KEPT, SETTINGS, TOPICS
from infinimem.store.lock import exclusive
from infinimem.store.read import File, folder_problems, list_files, read_file, read_log
from infinimem.text.document import (
    begins_signed,
    body_tokens,
    edit,
    entry_lines,
    looks_signed,
    mended,
    parse,
    render,
    unsigned_entries,
)
from infinimem.text.header import render_scalar
from infinimem.text.lines import join_lines, split_lines
from infinimem.text.merge import bare_lines
from infinimem.text.signature import parse_links, parse_seqs, render_seqs

DATE = re.compile(r"[0-9]{4}(-[0-9]{2}(-[0-9]{2}([T ][0-9:.]+(Z|[+-][0-9:]+)?)?)?)?")
MANY = 10
"""From so many vanished entries on, more than half of all, somebody has moved the files rather than deleted lines."""

SEQ_GIVEN = re.compile(rb'seq=([0-9"\\][0-9+"\\-]*)')
"""A seq, several, or something in quotes or escaped that may be any, as a signature gives it."""
SEQS_MENTIONED = re.compile(r"seq\s*=\s*\"?([0-9][0-9+-]*)")

WORST_FIRST = (
    "settings conflict encoding front-matter empty no-words lost deleted no-evidence kept clash near-miss nested "
    "adrift doubled returned unsettled secret permission symlink name wrapped edited renamed unsigned date "
    "summary count"
).split()
"""What a finding costs if nobody looks at it: a file that is stuck, words that are gone, entries that read wrong."""
STOPS_A_COMMIT = {"no-words", "clash", "near-miss", "secret"}
"""What should not go into git as it is, besides files that cannot be understood. The rest mends itself or can wait."""
FIXES = {
    "clash": "gives this one a seq of its own",
    "count": "recounts",
    "deleted": "notes that it was deleted",
    "doubled": "drops this one",
    "edited": "notes them there",
    "lost": "lets it go",
    "near-miss": "writes it as the entry that it was",
    "no-evidence": "copies it there",
    "renamed": "takes over the new name, the old one keeps finding it",
    "returned": "notes that it is back",
    "unsigned": "signs it",
    "wrapped": "indents them",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be; `fixed` says that it was repaired just now."""

    problem: Problem
    fixable: bool = False
    fixed: bool = False

    @property
    def stops_a_commit(self) -> bool:
        """Whether a git hook should stop at it."""
        return not self.fixed and (self.problem.blocking or self.problem.code in STOPS_A_COMMIT)


@dataclass(slots=True)
class Survey:
    """A whole library as read at one moment, and what repairs would change."""

    root: Path
    at: str
    noted: str
    buffer: File
    topics: dict[str, File]
    records: Mapping[int, Record]
    log: File
    following: int
    sources: Sequence[File] = ()
    findings: list[Finding] = field(default_factory=list)
    fixed: dict[str, Document] = field(default_factory=dict)
    evidence: list[str] = field(default_factory=list)
    logged: list[Entry] = field(default_factory=list)
    rewritten: dict[str, Document] = field(default_factory=dict)
    broken: set[int] = field(default_factory=set)
    doubtful: set[int] = field(default_factory=set)
    given: set[int] = field(default_factory=set)
    sound: Sound = NOTHING

    def say(self, path: str, line: int, message: str, code: str, *, fixable: bool, blocking: bool = False) -> None:
        """Note a finding, with what a repair does about it."""
        if fixable:
            message += f"; check --fix {FIXES[code]}"
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
        """A seq that nobody has, given by a repair."""
        self.following += 1
        self.given.add(self.following - 1)
        return self.following - 1


def check(root: Path, now: datetime, *, fix: bool = False) -> list[Finding]:
    """All findings, the worst first; with `fix`, the repairable ones are repaired.

    Repairs sign plain bullets, renumber clashing seqs, note hand edits in evidence and recount; they are
    one transaction. Without `fix` nothing is written.
    """
    with exclusive(root / FLUSH_LOCK, doing="flush", reading=not fix):
        returned = returned_findings(root, now, fix=fix)
        with hold(root, reading=not fix) as note:
            survey = examine(root, note, now)
            findings = survey.findings
            if fix and (survey.fixed or survey.evidence or survey.rewritten):
                put_right(survey, note)
                findings = [replace(finding, fixed=finding.fixable) for finding in findings]
            return in_order([*returned, *findings])


def returned_findings(root: Path, now: datetime, *, fix: bool) -> list[Finding]:
    """What was forgotten and has come back, through a git merge or an old copy; with `fix` it is forgotten again."""
    seqs = forgotten_seqs(root)
    if not seqs or read_file(root, BUFFER).document.blocking or evidence_conflicts(root):
        return []
    report = forget_held(root, Wanted(seqs), now, again=True, dry_run=not fix)
    message = "seq {} was forgotten and has come back (a git merge, an old copy?); it is forgotten again with --fix"
    return [
        Finding(Problem(path, line, message.format(seq), False, "forgotten"), fixable=True, fixed=fix)
        for path, line, seq in report.places
    ]


def preview(root: Path, now: datetime, large: int = LARGE) -> tuple[list[Finding], str]:
    """All findings, and what `check` with `fix` would change, as a unified diff. Nothing is written.

    From `large` bytes on not all of a library is kept in memory, which changes nothing of what is found.
    """
    with exclusive(root / FLUSH_LOCK, doing="flush", reading=True):
        returned = returned_findings(root, now, fix=False)
        with hold(root, reading=True) as note:
            survey = examine(root, note, now, large)
            return in_order([*returned, *survey.findings]), diff_of(survey)


def examine(root: Path, note: int, now: datetime, large: int = LARGE) -> Survey:
    """The library with all that is wrong with it, and with its repairs worked out."""
    survey = read_survey(root, note, now, look_through(root, large))
    for look in (
        check_settings,
        check_files,
        check_wrapped,
        check_near_misses,
        check_adrift,
        check_twins,
        check_doubled,
        check_retired,
        check_unsigned,
        check_visible,
        check_succession,
        check_links,
        check_evidence,
        check_headers,
        check_summaries,
        check_log,
        check_secrets,
    ):
        look(survey)
    return survey


def in_order(findings: Sequence[Finding]) -> list[Finding]:
    """Findings, the worst first, then by file and line."""
    return sorted(findings, key=lambda finding: (badness(finding), finding.problem.path, finding.problem.line))


def badness(finding: Finding) -> tuple[bool, int]:
    """Where a finding stands among others."""
    code = finding.problem.code
    rank = WORST_FIRST.index(code) if code in WORST_FIRST else len(WORST_FIRST)
    return not finding.problem.blocking, rank


def read_survey(root: Path, note: int, now: datetime, sound: Sound | None = None) -> Survey:
    """Read everything once; of a large library what is sound is not kept, unless some seqs have to be given anew."""
    sound = look_through(root) if sound is None else sound
    topics: dict[str, File] = {}
    for path in list_files(root):
        if path.startswith("topics/") and path not in sound.paths:
            try:
                topics[path] = read_file(root, path)
            except StorageFailed as error:  # an unreadable file among good ones is a finding
                topics[path] = File(path, "", replace(parse(path, b""), problems=(Problem(path, 0, str(error)),)))
    visible = [seq for file in topics.values() for entry in file.document.entries for seq in entry.seqs]
    following = max([next_seq(root, note), sound.highest + 1, *(seq + 1 for seq in visible)])
    buffer, log = read_file(root, BUFFER), read_log(root)
    if sound.looked:
        records = records_of(root, sound.odd)
        if any_twins([buffer.document, *(file.document for file in topics.values())], records.values()):
            return read_survey(root, note, now, NOTHING)
        return Survey(root, timestamp(now), noted_at(now), buffer, topics, records, log, following, sound=sound)
    sources = [read_file(root, path.relative_to(root).as_posix()) for path in evidence_files(root)]
    records = records_in(file.document for file in sources)
    return Survey(root, timestamp(now), noted_at(now), buffer, topics, records, log, following, sources)


def records_of(root: Path, seqs: Collection[int]) -> dict[int, Record]:
    """What evidence says of some seqs, by seq, without those that it says nothing of."""
    found = read_records(root, seqs)
    return {seq: found[seq] for seq in sorted(found) if found[seq].entries or found[seq].events}


def check_settings(survey: Survey) -> None:
    """An infinimem.yaml that the commands would stop at."""
    path = survey.root / SETTINGS
    try:
        take_file(path, dict.fromkeys(BY_NAME, ""), {}, from_library=True)
    except BadInput as error:
        said = str(error).removeprefix(str(path)).removeprefix(":")
        line, _, words = said.partition(":")
        line, words = (line, words) if line.isdigit() else ("0", said)
        survey.say(SETTINGS, int(line), words.strip(), "settings", fixable=False, blocking=True)


def check_files(survey: Survey) -> None:
    """Files that cannot be understood, and what reading leaves out."""
    for document in survey.documents():
        for problem in document.problems:
            survey.findings.append(Finding(problem))
    for file in survey.sources:
        for problem in file.document.problems:
            survey.findings.append(Finding(problem))
    for problem in folder_problems(survey.root):
        survey.findings.append(Finding(problem))
    for name, what in ((BUFFER, "file"), (TOPICS, "folder")):
        if (survey.root / name).is_symlink():
            message = f"a symbolic link, through which nothing is written; move the real {what} here"
            survey.findings.append(Finding(Problem(name, 0, message, blocking=True, code="symlink")))
    kept = survey.root / KEPT
    for path in sorted(kept.iterdir()) if kept.is_dir() else ():
        message = "another program saved this in the moment of a flush; take from it what you miss, then delete it"
        survey.say(path.relative_to(survey.root).as_posix(), 0, message, "kept", fixable=False)


def check_wrapped(survey: Survey) -> None:
    """Lines of an entry that stand below it without indent: somebody wrapped it at a margin."""
    words = {entry.seq: entry.text for entry in survey.log.document.entries}
    words |= {seq: record.newest.text for seq, record in survey.records.items() if record.newest is not None}
    for document in list(survey.documents()):
        whole, seqs = rejoined(document, words) if writable(document) else (document, [])
        for entry in document.entries:
            if entry.seq in seqs:
                message = f"the words of seq {entry.seq} go on without indent, so they are prose"
                survey.say(document.path, entry.span.stop + 1, message, "wrapped", fixable=True)
        if seqs:
            survey.given.update(seqs)
            survey.fixed[document.path] = whole


def check_near_misses(survey: Survey) -> None:
    """Lines that look signed but are not, so that they count as prose; and dates that are none."""
    shown = {seq for document in survey.documents() for entry in document.entries for seq in entry.seqs}
    is_sound = survey.sound.seqs.__contains__
    for document in list(survey.documents()):
        starts = {entry.span.start for entry in document.entries}
        inside = {at for entry in document.entries for at in range(entry.span.start, entry.span.stop)}
        edits: list[tuple[Span, Sequence[str]]] = []
        for at, line in enumerate(document.lines):
            if at in starts or not begins_signed(line):
                continue
            named = {seq for seq in mentioned(line) if seq not in shown and not is_sound(seq)}
            lost = {seq for seq in named if is_held(survey, seq)}
            if at in inside:
                if lost and looks_signed(line):
                    check_nested(survey, document, at, lost)
            elif fenced(document, at):
                if lost and looks_signed(line):
                    message = "stands in a code fence, so it is code and no entry; take it out of the fence"
                    survey.say(document.path, at + 1, message, "near-miss", fixable=False)
                    survey.broken.update(lost)
            elif lost or looks_signed(line):
                check_broken(survey, document, at, edits)
        if edits:
            survey.fixed[document.path] = edit(document, edits)
        check_dates(survey, document)


def mentioned(line: str) -> set[int]:
    """The seqs that a broken signature names."""
    return {seq for found in SEQS_MENTIONED.findall(line) for seq in parse_seqs(found.strip("+-"))}


def is_held(survey: Survey, seq: int) -> bool:
    """Whether a seq is one of the library's that should be shown somewhere."""
    record = survey.records.get(seq)
    if record is None:
        return any(seq in entry.seqs for entry in survey.log.document.entries)
    return bool(record.entries) and retirement(record) is None


def check_nested(survey: Survey, document: Document, at: int, seqs: set[int]) -> None:
    """An entry that was indented below another is that one's text."""
    parent = next(entry for entry in document.entries if entry.span.start < at < entry.span.stop)
    names = render_seqs(sorted(seqs))
    message = f"seq {names} is indented below seq {render_seqs(parent.seqs)}, so it is part of its words; unindent it"
    survey.say(document.path, at + 1, message, "nested", fixable=False)
    survey.broken.update(seqs, parent.seqs)


def check_broken(survey: Survey, document: Document, at: int, edits: list[tuple[Span, Sequence[str]]]) -> None:
    """A line with a signature that cannot be read; one whose spelling alone is wrong can be mended."""
    line = document.lines[at]
    better = mended(line) if writable(document) else ""
    message = "looks like an entry but is none, so the line is prose"
    if better:
        survey.say(document.path, at + 1, message, "near-miss", fixable=True)
        survey.given.update(mentioned(better))
        edits.append((Span(at, at + 1), [better]))
        return
    message += "; write it as `- <seq=…> words`, or take the signature away"
    survey.say(document.path, at + 1, message, "near-miss", fixable=False)
    survey.broken.update(mentioned(line))


def check_dates(survey: Survey, document: Document) -> None:
    """Dates that are none."""
    for entry in document.entries:
        for key in ("time", "expires"):
            value = entry.signature.get(key)
            if value not in ("", "empty") and not DATE.fullmatch(value):
                message = f"{key}={value} is no date, so it has no effect; write 2026, 2026-05 or 2026-05-01"
                survey.say(document.path, entry.span.start + 1, message, "date", fixable=False)


def check_adrift(survey: Survey) -> None:
    """A file that shows entries of ours but lost the front matter that makes it a topic."""
    ours = {seq for document in survey.documents() if not document.is_guest for e in document.entries for seq in e.seqs}
    for path in survey.topics:
        document = survey.document(path)
        if not document.is_guest or document.blocking:
            continue
        missing = [seq for entry in document.entries for seq in entry.seqs if seq not in ours]
        adrift = [seq for seq in missing if is_held(survey, seq) and seq not in survey.sound.seqs]
        if adrift:
            names = render_seqs(sorted(set(adrift)))
            message = (
                f"shows seq {names} but has no id, so nothing keeps it up to date; "
                f"begin the file with three lines: ---, id: {document.id}, ---"
            )
            survey.say(path, 1, message, "adrift", fixable=False)


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


def check_twins(survey: Survey) -> None:
    """One seq that evidence knows of two entries, or of a forgotten one and another: a squash merge, files copied."""
    evidence = [file.document for file in survey.sources]
    if any(document.blocking for document in evidence):  # both sides of a conflict stand there
        return
    shown = list(survey.documents())
    paths = [document.path for document in (*shown, *evidence)]
    found = find_twins(shown, evidence, lambda: published_in(survey.root, paths))
    whole = not any(document.blocking for document in shown)
    documents = {document.path: document for document in (*shown, *evidence)}
    moves: dict[str, dict[int, dict[int, int]]] = {}
    for twins in found:
        places = [place for _, lines in twins.yields for place in lines]
        can = whole and twins.doubt is None and all(renumbers(documents[path], at, twins.seq) for path, at in places)
        say_twins(survey, twins, can=can)
        if not can:
            survey.broken.add(twins.seq)
            survey.doubtful.add(twins.seq)
        for carrier, lines in twins.yields if can else ():
            new = survey.take_seq()
            for path, at in lines:
                moves.setdefault(path, {}).setdefault(at, {})[carrier.seq] = new
    for path, numbers in moves.items():
        changed = renumber_places(documents[path], numbers)
        (survey.rewritten if path.startswith("evidence/") else survey.fixed)[path] = changed
    if survey.rewritten:
        survey.records = records_in(survey.rewritten.get(document.path, document) for document in evidence)


def renumbers(document: Document, at: int, seq: int) -> bool:
    """Whether a line can be given another number for a seq."""
    before = bare_lines(document)[at]
    return renumber_line(before, {seq: seq + 1}) != before


def say_twins(survey: Survey, twins: Twins, *, can: bool) -> None:
    """Name each entry that has to get another number, with the place of the one that keeps it."""
    merging = under_way(survey.root) == "merge"
    for carrier, _ in twins.yields:
        path, at = carrier.places[-1]
        message = f"seq {twins.seq} was forgotten, and this is another entry"
        if twins.keeps is not None:
            message = f"seq {twins.seq} is carried by this entry and by {place_of(twins.keeps.places[-1])}"
        if merging:
            message += "; finish the merge in git first: the next flush, or check --fix, then gives one another number"
        elif twins.doubt is not None:
            message += (
                f"; which of them {place_of(twins.doubt)} means cannot be told: write seq={survey.following} "
                "into this line, into its lines in evidence and into what means it"
            )
        survey.say(path, at + 1, message, "clash", fixable=can)


def place_of(place: tuple[str, int]) -> str:
    """A place as it is said."""
    return f"{place[0]}:{place[1] + 1}"


def check_doubled(survey: Survey) -> None:
    """A seq that stands in two places: the same words are kept once, other words get a seq of their own."""
    first: dict[int, tuple[str, Entry]] = {}
    for document in sorted(survey.documents(), key=lambda document: (document.id == CURRENT, is_renamed(document))):
        if document.is_guest:
            continue
        edits: list[tuple[Span, Sequence[str]]] = []
        renamed: dict[int, int] = {}
        for entry in document.entries:
            if not survey.doubtful.isdisjoint(entry.seqs):
                continue
            clash = next((seq for seq in entry.seqs if seq in first), None)
            if clash is None:
                signature = renumbered(entry.signature, renamed)
                if document.id == CURRENT and signature != entry.signature:  # written after it, about it
                    survey.given.update(entry.seqs)
                    seqs = tuple(survey.take_seq() for _ in entry.seqs)
                    renamed.update(zip(entry.seqs, seqs, strict=True))
                    signature = Signature(seqs, signature.fields)
                    entry = replace(entry, signature=signature)
                    edits.append((entry.span, entry_lines(signature, entry.text)))
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
                seqs = tuple(survey.take_seq() if seq in first else seq for seq in entry.seqs)
                signature = renumbered(Signature(entry.seqs, entry.signature.fields), renamed)
                signature = Signature(seqs, signature.fields)
                renamed.update(zip(entry.seqs, seqs, strict=True))
                first.update((seq, (document.path, entry)) for seq in seqs)
                edits.append((entry.span, entry_lines(signature, entry.text)))
        if edits and writable(document):
            survey.fixed[document.path] = edit(document, edits)


def is_renamed(document: Document) -> bool:
    """Whether the id is not the file's: it was renamed, or it is a copy beside the file that it was made from."""
    return document.id != CURRENT and str(document.header.fields.get("id")) != document.id


def check_retired(survey: Survey) -> None:
    """An entry in CURRENT whose seq evidence retired with other words: two branches gave one seq twice."""
    document = survey.document(BUFFER)
    edits: list[tuple[Span, Sequence[str]]] = []
    for entry in document.entries:
        record = survey.records.get(entry.seq, Record(entry.seq, (), ()))
        event = retirement(record)
        if (
            entry.seq in survey.doubtful
            or event is None
            or event.kind == "forget"
            or any(one.text == entry.text for _, one in record.entries)
        ):
            continue
        line = entry.span.start + 1
        survey.say(BUFFER, line, f"seq {entry.seq} was retired with other words", "clash", fixable=writable(document))
        signature = Signature((survey.take_seq(),), entry.signature.fields)
        edits.append((entry.span, entry_lines(signature, entry.text)))
    if edits and writable(document):
        survey.fixed[BUFFER] = edit(document, edits)


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
            signed, seqs = sign(document, loose, survey.following, survey.noted)
            survey.following += len(seqs)
            survey.given.update(seqs)
            survey.fixed[document.path] = signed
            if document.id == CURRENT:
                survey.logged += [entry for entry in signed.entries if entry.seq in seqs]


def check_visible(survey: Survey) -> None:
    """What topics show against what evidence holds: missing evidence, changed words, retired yet visible."""
    waiting = {seq for entry in survey.document(BUFFER).entries for seq in entry.seqs}
    told: set[int] = set()
    for document in survey.documents():
        if document.id == CURRENT or not writable(document):
            continue
        for entry in document.entries:
            fresh = [seq for seq in entry.seqs if seq not in waiting and seq not in told]
            told.update(fresh)
            if fresh:  # `check_doubled` names the others
                check_line(survey, document, entry, fresh)


def check_line(survey: Survey, document: Document, entry: Entry, seqs: Sequence[int]) -> None:
    """One visible line against evidence."""
    line = entry.span.start + 1
    records = {seq: survey.records.get(seq, Record(seq, (), ())) for seq in seqs}
    if not survey.broken.isdisjoint(seqs):  # what is wrong with it is said; its words are not what they will be
        return
    for seq, record in records.items():
        if record.newest is None and len(entry.seqs) > 1:
            survey.say(document.path, line, f"evidence lacks seq {seq}", "no-evidence", fixable=True)
            survey.evidence += entry_lines(Signature((seq,), entry.signature.fields), entry.text)
        event = retirement(record)
        if event is not None and event.kind != "forget":
            message = f"seq {seq} is visible although evidence says {event.get('why') or event.kind}"
            survey.say(document.path, line, message, "returned", fixable=True)
            survey.evidence.append(event_line("restore", survey.at, seq=str(seq)))
    missing = revision_lines(entry, records[seqs[0]], survey.at)
    known = any(one.seqs == entry.seqs for _, one in records[seqs[0]].entries)
    if missing:
        message = f"evidence lacks seq {seqs[0]}"
        if known or len(entry.seqs) > 1:
            message = "the words were changed by hand; evidence lacks them"
        edited = known or len(entry.seqs) > 1
        if seqs[0] not in survey.given:  # what gave it its seq is said already
            survey.say(document.path, line, message, "edited" if edited else "no-evidence", fixable=True)
        survey.evidence += missing


def check_succession(survey: Survey) -> None:
    """An entry that says what it replaces while that is still shown: a rule refused it, or a hand brought it back.

    What has not begun yet waits for its time, and what it will replace is rightly there.
    """
    shown = {
        seq: f"{document.path}:{entry.span.start + 1}"
        for document in survey.documents()
        if document.id != CURRENT
        for entry in document.entries
        for seq in entry.seqs
    }
    for document in survey.documents():
        for entry in document.entries if document.id != CURRENT and writable(document) else ():
            named = () if waits(entry.time, survey.at) else parse_seqs(entry.signature.get("supersedes"))
            still = sorted(seq for seq in named if seq in shown and seq not in entry.seqs)
            for run in filter(None, map(parse_seqs, render_seqs(still).split("+"))):  # a finding for each unbroken run
                where, them = shown[run[0]], ("it", "that line") if len(run) == 1 else ("them", "those lines")
                where += " and others" if len({shown[seq] for seq in run}) > 1 else ""
                verb = "still shows" if where == shown[run[0]] else "still show"
                message = (
                    f"replaces seq {render_seqs(run)}, which {where} {verb}; the next flush retires {them[0]} where a "
                    f"rule allows that, else delete {them[1]}, or the `supersedes`"
                )
                survey.say(document.path, entry.span.start + 1, message, "unsettled", fixable=False)


def check_links(survey: Survey) -> None:
    """Links whose relation nobody knows (it is kept), that lead nowhere, or of which there are too many."""
    names = {name for document in survey.documents() for name in names_of(document)}
    names.update(map(topic_of, survey.sound.paths))
    seqs = {seq for document in survey.documents() for entry in document.entries for seq in entry.seqs}
    seqs.update(seq for seq, record in survey.records.items() if record.entries)
    for document in survey.documents():
        for entry in document.entries if writable(document) else ():
            ties = parse_links(entry.signature.get("links"))
            check_ties(survey, document.path, entry.span.start + 1, ties, seqs, names)
        if writable(document) and document.id != CURRENT:
            check_ties(survey, document.path, 1, topic_ties(document), seqs, names)


def names_of(document: Document) -> list[str]:
    """Every id that a topic has or had."""
    return [document.id, *aux_list(document, "former_ids"), *aux_list(document, "merged_from")]


def check_ties(
    survey: Survey, path: str, line: int, ties: Sequence[Tie], seqs: Collection[int], names: Collection[str]
) -> None:
    """The links of one entry or topic."""
    for tie in ties:
        if tie.relation and tie.relation not in RELATIONS:
            message = f"links: {tie.relation!r} is no known relation, so nothing follows from it; use one of "
            survey.say(path, line, message + ", ".join(RELATIONS), "relation", fixable=False)
        lost = [seq for seq in tie.seqs if seq not in seqs and seq not in survey.sound.seqs]
        if lost or (tie.topic and tie.topic not in names):
            target = f"seq {render_seqs(lost)}" if lost else f"the topic {tie.topic}"
            message = f"links: there is no trace of {target}; take the link out"
            survey.say(path, line, message, "link", fixable=False)
    if len(ties) > MOST_LINKS:
        survey.say(path, line, f"{len(ties)} links; more than {MOST_LINKS} are of no use", "links", fixable=False)


def check_evidence(survey: Survey) -> None:
    """Every seq in evidence is visible, waiting or retired; what a person deleted is noted as such."""
    visible = {seq for document in survey.documents() for entry in document.entries for seq in entry.seqs}
    unsure = any(document.blocking for document in survey.documents())
    empty = [path for path, file in survey.topics.items() if not file.document.lines]
    found = visible | survey.broken
    gone = [
        seq
        for seq, record in survey.records.items()
        if seq not in found and retirement(record) is None and record.entries
    ]
    there = visible | {seq for seq, record in survey.records.items() if record.entries or record.events}
    many = len(gone) > len(visible) + len(survey.sound.seqs) and (
        len(gone) > MANY or not (survey.root / TOPICS).is_dir()
    )
    for path in empty if gone else ():
        message = "is empty while entries are missing; if a program is saving it, look again, else delete it"
        survey.say(path, 0, message, "empty", fixable=False)
    for seq in gone:
        path, entry = survey.records[seq].entries[-1]
        message = f"seq {seq} stands in no topic and not in {BUFFER} any more"
        if many:
            message += "; most of the library is gone: bring the files back (git, backup), or `infinimem recover`"
        fixable = not (unsure or many or empty)
        survey.say(path, entry.span.start + 1, message, "deleted", fixable=fixable)
        if fixable:
            survey.evidence.append(retire_line([seq], 0, "deleted", survey.at))
    for seq, record in survey.records.items():
        event = retirement(record)
        if event is not None and not record.entries and event.kind == "retire":
            path, _ = record.events[-1]
            message = f"seq {seq} is retired, but evidence lacks its words"
            survey.say(path, event.line, message, "no-words", fixable=False)
        by = parse_seqs(event.get("by")) if event is not None else ()
        lost = [seq for seq in by if seq not in there and seq not in survey.sound.seqs]
        if event is not None and lost:
            message = f"seq {seq} was replaced by {render_seqs(lost)}, of which there is no trace"
            survey.say(record.events[-1][0], event.line, message, "lineage", fixable=False)


def check_headers(survey: Survey) -> None:
    """Ids that are not the file's path, and token counts that are off."""
    for path in survey.topics:
        document = survey.document(path)
        if not writable(document) or not document.header.span.stop:
            continue
        stated = str(document.header.fields.get("id"))
        tokens = body_tokens(document)
        try:
            if is_renamed(document):
                renamed = set_header(document, "id", render_scalar(document.id))
                if (
                    path_of(stated) not in survey.topics and path_of(stated) not in survey.sound.paths
                ):  # else it is a copy, and the name is in use
                    renamed = set_aux(renamed, "former_ids", [*aux_list(document, "former_ids"), stated])
                survey.say(path, 1, f"the id says {stated!r}, the file is {document.id!r}", "renamed", fixable=True)
                document = survey.fixed[path] = renamed
            if "token_count" in document.header.fields and document.header.fields["token_count"] != tokens:
                counted = set_header(document, "token_count", str(tokens))
                if path not in survey.fixed:
                    survey.say(path, 1, f"token_count is off (it is {tokens})", "count", fixable=True)
                survey.fixed[path] = counted
        except Unreadable as error:
            survey.findings.append(Finding(Problem(path, 1, str(error), blocking=False, code="front-matter")))


def check_summaries(survey: Survey) -> None:
    """Summaries that say a number, date or name that no entry says: written by hand, or the entry has changed since."""
    for path in survey.topics:
        document = survey.document(path)
        summary = document.header.fields.get("summary")
        if not writable(document) or not document.entries or not isinstance(summary, str):
            continue
        beyond = beyond_entries(summary, document)
        if beyond:
            remedy = "correct it, or take it away: the next flush of the topic writes a new one"
            if is_pinned(document):
                remedy = "correct it: it is pinned (aux.pinned), so no flush does"
            beyond = beyond.replace("says what no source says", "the summary says what no entry says")
            survey.say(path, 1, f"{beyond}; {remedy}", "summary", fixable=False)


def check_log(survey: Survey) -> None:
    """What was written and is in neither CURRENT nor evidence: an editor saved over it."""
    there = {seq for entry in survey.document(BUFFER).entries for seq in entry.seqs} | set(survey.records)
    there |= {seq for path in survey.topics for entry in survey.document(path).entries for seq in entry.seqs}
    for entry in survey.log.document.entries:
        found = not there.isdisjoint(entry.seqs) or any(seq in survey.sound.seqs for seq in entry.seqs)
        if not found and survey.broken.isdisjoint(entry.seqs):
            first = entry.text.split("\n", 1)[0][:60]
            seqs = render_seqs(entry.seqs)
            message = f"seq {seqs} was written but is gone ({first}); bring it back: infinimem recover {seqs}"
            survey.say(BUFFER, 0, message, "lost", fixable=True)
            for seq in entry.seqs:
                survey.evidence += entry_lines(Signature((seq,), entry.signature.fields), entry.text)
                survey.evidence.append(retire_line([seq], 0, "deleted", survey.at))


def check_secrets(survey: Survey) -> None:
    """Text that looks like a key or password: in what is shown, and in evidence where only that still has it."""
    shown: set[int] = set()
    for document in survey.documents():
        shown.update(seq for entry in document.entries for seq in entry.seqs)
        for kind, line in secrets_of(document):
            message = f"looks like it holds a secret ({kind}); if it is meant, write secret=ok into the signature"
            survey.say(document.path, line, message, "secret", fixable=False)
    meant = {
        seq
        for record in survey.records.values()
        for _, entry in record.entries
        if MEANT in entry.signature.fields
        for seq in entry.seqs
    }
    for name, kind, line in secrets_in_evidence(survey, shown | meant):
        message = f"looks like it holds a secret ({kind}); it stays in evidence until its seq is forgotten"
        survey.say(name, line, message, "secret", fixable=False)


def secrets_in_evidence(survey: Survey, quiet: set[int]) -> Iterator[tuple[str, str, int]]:
    """File, kind and line of what looks like a secret in evidence, but in entries whose seq is `quiet`."""
    if survey.sound.looked:
        for kind, name, line, seqs in survey.sound.secrets:
            if quiet.isdisjoint(seqs) and not any(seq in survey.sound.seqs for seq in seqs):
                yield name, kind, line
        return
    for document in (file.document for file in survey.sources):
        yield from ((document.path, kind, line) for kind, line in secrets_of(document, quiet))


def changes_of(survey: Survey) -> list[tuple[File, Document]]:
    """The files that repairs change, as they are and as they will be."""
    pairs = []
    for path, document in survey.fixed.items():
        file = survey.buffer if path == BUFFER else survey.topics[path]
        if document.lines != file.document.lines:
            pairs.append((file, document))
    return pairs


def evidence_of(survey: Survey) -> list[str]:
    """The lines that evidence gains by the repairs."""
    high = event_line("flush", survey.at, high=str(survey.following - 1))
    return [*survey.evidence, high] if survey.evidence or survey.rewritten else []


def diff_of(survey: Survey) -> str:
    """What the repairs would change, as a unified diff."""
    pieces = [
        line
        for file, document in changes_of(survey)
        for line in diff_lines(file.path, file.document.lines, document.lines)
    ]
    for path, content in evidence_as_repaired(survey).items():
        pieces += diff_lines(path, read_file(survey.root, path).document.lines, split_lines(content))
    return "".join(pieces)


def evidence_as_repaired(survey: Survey) -> dict[str, bytes]:
    """The files of evidence that repairs rewrite or add to, as they will be."""
    files = {path: render(document) for path, document in survey.rewritten.items()}
    lines = evidence_of(survey)
    if lines:
        append = append_to_evidence(survey.root, survey.at, lines)
        known = files.get(append.path) or render(read_file(survey.root, append.path).document)
        files[append.path] = known + append.content
    return files


def put_right(survey: Survey, note: int) -> None:
    """Carry the repairs out as one transaction."""
    conflicts = evidence_conflicts(survey.root)
    if conflicts:
        raise NeedsAttention(f"{conflicts[0]}")
    changes = [Change(file.path, file.digest, render(document)) for file, document in changes_of(survey)]
    lines = evidence_of(survey)
    appends = [append_to_evidence(survey.root, survey.at, lines)] if lines and not survey.rewritten else []
    for path, content in evidence_as_repaired(survey).items() if survey.rewritten else ():
        changes.append(Change(path, read_file(survey.root, path).digest, content))
    transaction.commit(survey.root, changes, appends, None)
    for entry in survey.logged:
        write_log(survey.root, join_lines(entry_lines(entry.signature, entry.text)))
    note_state(survey.root, note, survey.following)


def recover(root: Path, seqs: Sequence[int]) -> list[int]:
    """Put entries that neither CURRENT nor a topic shows back into CURRENT, as `Library.recover` promises."""
    with hold(root) as note:
        logged = {seq: entry for entry in read_log(root).document.entries for seq in entry.seqs}
        records = read_records(root, seqs)
        wanted = {one for seq in seqs for kept in (logged.get(seq), records[seq].newest) if kept for one in kept.seqs}
        there = shown_among(root, wanted)
        found: dict[int, Entry] = {}
        for seq in dict.fromkeys(seqs):
            event = retirement(records[seq])
            if event is not None and event.kind == "forget":
                raise UnknownSeq(f"{seq} was forgotten at {event.get('at')}; its words are gone for good")
            kept = logged.get(seq) or records[seq].newest
            if kept is None:
                raise UnknownSeq(f"neither the log of writes nor evidence holds {seq}; see: infinimem check")
            if there.isdisjoint(kept.seqs):
                found[kept.seq] = kept
        if found:
            append_known(root, note, list(found.values()))
            void_retirements(root, note, [seq for seq in found if retirement(records[seq]) is not None])
        return [seq for entry in found.values() for seq in entry.seqs]


def shown_among(root: Path, wanted: Collection[int]) -> set[int]:
    """Those of some seqs that CURRENT or a topic shows; one file at a time, parsed only if its bytes may name one."""
    shown: set[int] = set()
    for path in list_files(root):
        if path.startswith(EVIDENCE):
            continue
        with contextlib.suppress(StorageFailed):  # an unreadable file among good ones is a finding of `check`
            content = read_bytes(root / path) or b""
            if may_name(content, wanted):
                shown.update(seq for entry in parse(path, content).entries for seq in entry.seqs)
    return shown & set(wanted)


def may_name(content: bytes, wanted: Collection[int]) -> bool:
    """Whether a signature in these bytes can be of one of some seqs; a quoted or escaped one is taken to be."""
    for match in SEQ_GIVEN.finditer(content):
        given = match[1].decode()
        if not given.isdigit():
            return True
        if int(given) in wanted:
            return True
    return False


def void_retirements(root: Path, note: int, seqs: Sequence[int]) -> None:
    """Say in evidence that entries which a person brought back are not retired."""
    if not seqs:
        return
    at = timestamp(datetime.now(UTC))
    following = next_seq(root, note)
    lines = [event_line("unflush", at, seq=render_seqs(seqs)), event_line("flush", at, high=str(following - 1))]
    transaction.commit(root, [], [append_to_evidence(root, at, lines)])
    note_state(root, note, following)
