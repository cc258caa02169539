"""The use case: forget entries, wherever their words are, as one transaction; then search every file to prove it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from infinimem.consolidate.buffer import refuse_unreadable
from infinimem.consolidate.due import timestamp
from infinimem.consolidate.hand import sign_buffer
from infinimem.consolidate.run import Finder
from infinimem.errors import ChangedOnDisk
from infinimem.forgetting.erase import Erased, erase
from infinimem.forgetting.history import History, history_of
from infinimem.forgetting.survey import (
    Copy,
    Survey,
    Wanted,
    came_back,
    chosen,
    copies_of,
    forgotten_seqs,
    others_of,
    read_survey,
    seqs_in,
    spare_members,
)
from infinimem.forgetting.traces import (
    About,
    Traces,
    behind_link,
    files_below,
    known_content,
    linked_below,
    traces_of,
)
from infinimem.forgetting.words import Words, is_media, is_plain, readable, words_of
from infinimem.model import Change, Document, Entry, Span, path_of, topic_of
from infinimem.store import transaction
from infinimem.store.buffer import hold, next_seq, note_state
from infinimem.store.evidence import event_line, evidence_path
from infinimem.store.files import digest_of
from infinimem.store.imported import mark_of
from infinimem.store.layout import BUFFER, FLUSH_LOCK, INDEX, LOG, STATE, VIEWS
from infinimem.store.lock import exclusive
from infinimem.store.read import File, read_file
from infinimem.text.document import edit, entry_lines, parse, render
from infinimem.text.signature import render_fields, render_seqs

ATTEMPTS = 4


@dataclass(frozen=True, slots=True)
class Remain:
    """A place that still holds the words: 1-based line, 0 for a file's name."""

    path: str
    line: int
    what: str


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was forgotten. `changed`, `removed` and `renamed` are files of the library, `erased` what else held it.

    `copies` are other entries with the same words, still there. `remains` is what a search of all `searched` files
    found afterwards; `unread` are those that are no text, or cannot be read, inside which it does not see, `media` the
    pictures, sounds and films among all. `places` is where it stood: path, line, seq. With `dry_run` nothing was
    changed, nor searched.
    """

    seqs: tuple[int, ...] = ()
    at: str = ""
    dry_run: bool = False
    texts: tuple[tuple[int, str], ...] = ()
    places: tuple[tuple[str, int, int], ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    erased: tuple[str, ...] = ()
    copies: tuple[Copy, ...] = ()
    remains: tuple[Remain, ...] = ()
    unread: tuple[str, ...] = ()
    media: tuple[str, ...] = ()
    searched: int = 0
    notes: tuple[str, ...] = ()
    history: History = field(default_factory=History)

    @property
    def exit_code(self) -> int:
        """0; 1 when there was nothing to forget; 5 when something still holds the words, or may."""
        if not self.seqs:
            return 1
        return 5 if self.remains or self.unread else 0


@dataclass(frozen=True, slots=True)
class Planned:
    """What forgetting some seqs comes to, as values."""

    survey: Survey
    seqs: tuple[int, ...]
    words: Words
    erased: Erased
    traces: Traces
    copies: tuple[Copy, ...]
    gone: tuple[tuple[str, Entry], ...]
    changes: tuple[Change, ...]
    about: Mapping[str, object]

    @property
    def is_of_use(self) -> bool:
        """Whether anything of the words is anywhere."""
        return bool(self.changes or self.erased.renamed or self.traces.said or VIEWS in self.traces.erase)


def forget(root: Path, wanted: Wanted, now: datetime, *, dry_run: bool = False) -> Forgotten:
    """Forget entries for good. Raises `BadInput`, `UnknownSeq`, `NeedsAttention`; then nothing was changed."""
    with exclusive(root / FLUSH_LOCK, doing="flush", reading=dry_run):
        return forget_held(root, wanted, now, dry_run=dry_run)


def forget_held(
    root: Path,
    wanted: Wanted,
    now: datetime,
    *,
    dry_run: bool = False,
    again: bool = False,
    known: Sequence[Entry] = (),
) -> Forgotten:
    """The same, for a caller that holds the flush lock. With `again`, only what came back with its old numbers.

    `known` are forgotten entries that stand nowhere any more: headings, names and traces may still be made from them.
    """
    at = timestamp(now)
    done: Planned | None = None
    notes: list[str] = []
    for attempt in range(ATTEMPTS):
        with hold(root, reading=dry_run) as note:
            if not dry_run:
                sign_buffer(root, note, now)
            planned = plan(root, note, wanted, at, again=again, known=known)
            if dry_run or not (planned.seqs or planned.is_of_use):
                return report_of(planned, at, dry_run=dry_run)
            following = next_seq(root, note)
            try:
                notes += transaction.commit(root, planned.changes, [], planned.about, clean=planned.traces.cleaning)
            except ChangedOnDisk:
                if attempt + 1 == ATTEMPTS:
                    raise
                continue
            note_state(root, note, following)
            done = planned
            break
    assert done is not None
    remains, unread, media, searched = search_everything(root, done.seqs, done.words, again=again)
    report = report_of(done, at, dry_run=False)
    history = History() if again else history_of(root, done.words)
    copies = as_they_stand(root, report.copies)
    return replace(
        report,
        copies=copies,
        remains=remains,
        unread=unread,
        media=media,
        searched=searched,
        notes=tuple(notes),
        history=history,
    )


def forget_again(root: Path, index: Finder, now: datetime) -> tuple[int, ...]:
    """Forget what a git merge has brought back of what was forgotten; gives the seqs. Needs the flush lock."""
    seqs = [seq for seq in forgotten_seqs(root) if index.standing(seq) or index.words(seq)]
    return forget_held(root, Wanted(tuple(seqs)), now, again=True).seqs if seqs else ()


def forget_names(root: Path, known: Sequence[Entry], now: datetime) -> tuple[str, ...]:
    """Take out what a git merge brings that was made from forgotten entries. Needs the flush lock.

    Those that it brings themselves are left to `forget_again`, which says so. Gives the files that changed.
    """
    survey = read_survey(root)
    entries = [entry for _, entry in survey.entries()]
    others = others_of(entries, survey.forgotten)
    back = {seq for entry in entries for seq in came_back(entry, survey.forgotten, others)}
    gone = [entry for entry in known if back.isdisjoint(entry.seqs)]
    if not gone:
        return ()
    seqs = sorted({seq for entry in gone for seq in entry.seqs})
    done = forget_held(root, Wanted(tuple(seqs)), now, again=True, known=gone)
    return (*done.changed, *done.removed, *(path_of(topic) for pair in done.renamed for topic in pair))


def plan(root: Path, note: int, wanted: Wanted, at: str, *, again: bool, known: Sequence[Entry] = ()) -> Planned:
    """Everything that is to change, from the library as it is now. Call it under the lock."""
    survey = read_survey(root)
    refuse_unreadable(root, survey.buffer.document)
    seqs = wanted.seqs if again else chosen(survey, wanted)
    copies = [] if again else copies_of(survey, seqs)
    while wanted.copies and copies:
        seqs = tuple(sorted({*seqs, *(copy.seq for copy in copies)}))
        copies = copies_of(survey, seqs)
    named = frozenset(seqs)
    others = others_of((entry for _, entry in survey.entries()), survey.forgotten) if again else frozenset[int]()

    def meant(entry: Entry) -> Sequence[int]:
        return [seq for seq in (came_back(entry, survey.forgotten, others) if again else entry.seqs) if seq in named]

    spare = spare_members(survey, seqs) if not again else known_members(survey, seqs)
    everything = list(survey.entries())
    stood = tuple((path, entry) for path, entry in everything if meant(entry))
    gone = [entry for _, entry in stood]
    if again:
        seqs = tuple(sorted({seq for entry in gone for seq in meant(entry)}))
    kept = [entry for _, entry in everything if not meant(entry)]
    gone_once = [*gone, *known]
    words = words_of(gone_once, kept, wanted.pattern)
    erased = erase(survey, meant, seqs, spare, words, at)
    if seqs and not again:
        erased.documents.update(with_events(survey, erased, seqs, gone, at, next_seq(root, note)))
    gone_topics = {*erased.renamed, *(path.removeprefix("topics/").removesuffix(".md") for path in erased.removed)}
    showed = {topic_of(path) for path, _ in stood if path.startswith("topics/")}
    said = {(seq, one) for entry in gone_once for seq in entry.seqs for one in (entry.text, entry.observed) if one}
    about = About(frozenset(seqs), frozenset({*showed, *gone_topics}), frozenset(gone_topics), frozenset(said))
    traces = traces_of(root, meant, words, about)
    traces.erase += folders_to_remove(erased, words)
    changes = (*changes_of(survey, erased), *traces.changes)
    lines = [
        "".join(entry_lines(entry.signature, entry.text)) for entry in survey.buffer.document.entries if meant(entry)
    ]
    noted = {"kind": "forget", "at": at, "seqs": render_seqs(sorted(seqs)), "lines": lines}
    ordered = in_order(changes)
    return Planned(survey, seqs, words, erased, traces, tuple(copies), stood, ordered, noted)


def known_members(survey: Survey, seqs: Collection[int]) -> dict[int, Entry]:
    """The own words of those that share a line with one that came back, as far as they are known."""
    alone = (entry for _, entry in survey.entries() if len(entry.seqs) == 1 and entry.seq not in seqs)
    return {entry.seq: entry for entry in alone}


def with_events(
    survey: Survey, erased: Erased, seqs: Sequence[int], gone: Sequence[Entry], at: str, following: int
) -> dict[str, Document]:
    """The newest evidence file with a line for what was forgotten, and the high-water mark of seqs after it."""
    path = evidence_path(survey.root, at)
    file = survey.evidence.get(path) or read_file(survey.root, path)
    document = erased.documents.get(path, file.document)
    written: dict[str, list[int]] = {}
    marks: dict[str, dict[str, None]] = {}
    for seq in seqs:
        own = [entry for entry in gone if entry.seqs == (seq,)]
        observed = next((entry.observed for entry in own if entry.observed), "")
        written.setdefault(observed, []).append(seq)
        known = (entry.signature.get(name) for entry in own for name in ("id", "origin"))
        marks.setdefault(observed, {}).update((mark_of(one), None) for one in known if one)
    lines = [forget_line(found, at, observed, tuple(marks[observed])) for observed, found in written.items()]
    lines.append(event_line("flush", at, high=str(following - 1)))
    if not document.lines:
        stem = path.removeprefix("evidence/").removesuffix(".md")
        lines = [f"# Evidence {stem}\n", "\n", *lines]
    end = Span(len(document.lines), len(document.lines))
    return {path: edit(document, [(end, lines)])}


def forget_line(seqs: Sequence[int], at: str, observed: str, marks: Sequence[str] = ()) -> str:
    """`- <event=forget, seq=7, at=…, observed=…, ids=…>`: what tells it from another of that number, and when it
    comes again from where it was imported."""
    fields = [("event", "forget"), ("seq", render_seqs(seqs)), ("at", at)]
    if observed:
        fields.append(("observed", observed))
    if marks:
        fields.append(("ids", "+".join(marks)))
    return f"- {render_fields(fields)}\n"


def changes_of(survey: Survey, erased: Erased) -> list[Change]:
    """The documents as changes, guarded by what they were read as."""
    files: dict[str, File] = {file.path: file for file in survey.files}
    changes = []
    for path, document in erased.documents.items():
        old = files[path].digest if path in files else read_file(survey.root, path).digest
        if document.path != path:
            changes.append(Change(document.path, "", render(document)))
            changes.append(Change(path, old, None))
        elif digest_of(render(document)) != old:
            changes.append(Change(path, old, render(document)))
    return [*changes, *(Change(path, files[path].digest, None) for path in erased.removed)]


def in_order(changes: Sequence[Change]) -> tuple[Change, ...]:
    """CURRENT and the log last, as in every commit."""
    return tuple(sorted(changes, key=lambda change: (change.path in (BUFFER, LOG), change.path.startswith(STATE))))


def folders_to_remove(erased: Erased, words: Words) -> list[str]:
    """Folders of topics whose name tells the words, deepest first; they go if nothing is left in them."""
    left = [*erased.removed, *map(path_of, erased.renamed)]
    folders = {
        "/".join(pieces[:depth])
        for path in left
        for pieces in [path.split("/")]
        for depth in range(2, len(pieces))
        if words.in_name(pieces[depth - 1])
    }
    return sorted(folders, key=lambda folder: (-folder.count("/"), folder))


def report_of(planned: Planned, at: str, *, dry_run: bool) -> Forgotten:
    """What is to change, in the words of the report."""
    own = [entry for _, entry in planned.gone if set(entry.seqs) <= set(planned.seqs)]
    texts = {entry.seq: entry.text for entry in own} if dry_run else {}
    places = {(path, entry.span.start + 1, seq) for path, entry in planned.gone for seq in seqs_in(entry, planned.seqs)}
    renamed = planned.erased.renamed
    moved = {path_of(topic) for topic in renamed}
    index_goes = INDEX in planned.traces.erase and bool(planned.seqs or planned.is_of_use)
    return Forgotten(
        planned.seqs,
        at,
        dry_run,
        tuple(sorted(texts.items())),
        tuple(sorted(places)),
        tuple(
            sorted(
                {change.path for change in planned.changes if change.new is not None and not is_state(change.path)}
                - set(map(path_of, renamed.values()))
            )
        ),
        tuple(path for path in planned.erased.removed if path not in moved),
        tuple(renamed.items()),
        (*planned.traces.said, *([f"{INDEX}: all of it"] if index_goes else ())),
        planned.copies,
        tuple(Remain(path, 0, why) for path, why in planned.erased.left.items()) if dry_run else (),
    )


def as_they_stand(root: Path, copies: Sequence[Copy]) -> tuple[Copy, ...]:
    """The copies with the places where they stand now."""
    places: dict[int, tuple[str, int]] = {}
    for path, entry in read_survey(root).entries() if copies else ():
        for seq in entry.seqs:
            places.setdefault(seq, (path, entry.span.start + 1))
    return tuple(replace(copy, path=places[copy.seq][0], line=places[copy.seq][1]) for copy in copies)


def is_state(path: str) -> bool:
    """Whether a path lies in the library's own folder."""
    return path.startswith(f"{STATE}/")


def search_everything(
    root: Path, seqs: Collection[int], words: Words, *, again: bool = False
) -> tuple[tuple[Remain, ...], tuple[str, ...], tuple[str, ...], int]:
    """What in any file still holds forgotten entries or their words; which are no text, which media; how many files."""
    found: list[Remain] = []
    unread: list[str] = []
    media: list[str] = []
    number = 0
    for path in files_below(root, unread.append):
        number += 1
        if words.in_text(path):
            found.append(Remain(path, 0, "its name"))
        content = known_content(root, path)
        if content is None or not is_plain(content):
            (media if is_media(content or b"") else unread).append(path)
        if content is None:
            continue
        places = dict(words.places(readable(content)))
        for entry in () if again else parse(path, content).entries:
            if seqs_in(entry, seqs):
                places[entry.span.start + 1] = f"seq {render_seqs(entry.seqs)}"
        last = content.count(b"\n") + 1
        found += [Remain(path, line if line <= last else 0, what) for line, what in sorted(places.items())]
    for link in linked_below(root):  # nothing is written through a link, but whoever opens it here reads the words
        for path in behind_link(root, link, unread.append):
            content = known_content(root, path)
            if content is None or not is_plain(content):
                (media if is_media(content or b"") else unread).append(path)
            elif any(True for _ in words.places(readable(content))) or (
                path == link and any(seqs_in(entry, seqs) for entry in parse(path, content).entries)
            ):  # by number alone only in a page: a folder may be another library's
                found.append(Remain(path, 0, "what it links to"))
    return tuple(found), tuple(unread), tuple(media), number
