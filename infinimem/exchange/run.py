"""An import: files are read as messages, put in order of time, and appended where they are not in memory yet.

Everything is read before anything is written, through a nameless file in the library's own folder: exports begin with
the newest conversation, memory with the oldest. A killed import leaves whole entries behind, each with its id, so that
the next one goes on where it ended.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from infinimem.errors import BadInput, StorageFailed
from infinimem.exchange import formats
from infinimem.exchange.inputs import Input, inputs_of
from infinimem.exchange.message import ATTACHMENT, Found, Message, Skipped, Unread
from infinimem.exchange.place import Placed
from infinimem.exchange.revised import Remembered, compare
from infinimem.model import Signature
from infinimem.store.append import Draft
from infinimem.store.imported import KnownIds, append_new, id_of
from infinimem.store.layout import STATE
from infinimem.text.signature import KEY_ALONE, render_seqs

if TYPE_CHECKING:
    from infinimem.consolidate.extract import Extracted
    from infinimem.consolidate.run import Report
    from infinimem.exchange.export.load import Loaded
    from infinimem.exchange.facts import Extracting

BATCH_BYTES = 2 << 20
BATCH_ENTRIES = 2000
PORTION = 500
"""Entries that are written between two flushes: as many as one of its transactions takes."""
BREATH = 0.02
"""Seconds between two batches: who waits for the lock looks for it every 20 ms."""
OURS = frozenset({
    "seq", "rev", "event", "observed", "key", "id", "of", "time", "source", "supersedes", "links", "expires", "conf",
})  # fmt: skip
"""Fields that mean something to us: what another program calls so is kept as `their_…`."""
FORGOTTEN = "forgotten before"
"""The kind of what was here, was forgotten, and is not brought back unasked."""
REPLACED = "characters that no text can hold were replaced by \ufffd"

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class FileRead:
    """What one file held: its format, and how many messages went which way."""

    name: str
    format: str
    added: int = 0
    known: int = 0
    skipped: int = 0
    unread: int = 0


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did. Messages in the files = `added` + `known` + the sum of `skipped` + `problems`.

    `ranges` are the first and last seqs of the runs that were written; `attached` counts the files and pictures that
    what was added names, `file_texts` the entries that are the text of one; `sources` who said what was added;
    `others` the files that hold no messages of a known format; `extracted` what a model took out, where one was asked;
    `flushed` what was sorted into topics. `edited` counts what was added in the place of what it was edited from;
    `gone` are notes, each with the seqs of what it no longer says, which stays.
    """

    files: tuple[FileRead, ...] = ()
    added: int = 0
    known: int = 0
    conversations: int = 0
    ranges: tuple[tuple[int, int], ...] = ()
    attached: int = 0
    file_texts: int = 0
    sources: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    problems: tuple[Unread, ...] = ()
    others: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    extracted: Extracted | None = None
    flushed: Report | None = None
    edited: int = 0
    gone: tuple[tuple[str, tuple[int, ...]], ...] = ()

    @property
    def messages(self) -> int:
        """How many messages the files hold."""
        return self.added + self.known + sum(self.skipped.values()) + len(self.problems)

    @property
    def exit_code(self) -> int:
        """0; 4 when a model failed, 5 when something could not be read or was refused, 1 when there was no message."""
        others = [part.exit_code for part in (self.extracted, self.flushed) if part is not None]
        return 4 if 4 in others else 5 if self.problems or any(others) else 0 if self.messages else 1


def nothing(stage: str, done: int, total: int) -> None:
    """Progress that nobody looks at."""


# Reading


class Spool:
    """Messages on their way into memory, conversation by conversation, in a file without a name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by `close`
        self._runs: list[tuple[str, int, int, int]] = []
        self._open = ""
        self.count = 0
        self.places: dict[str, tuple[str, str]] = {}

    def put(self, one: str, message: Message) -> None:
        """Keep a message; those of one conversation come one after the other."""
        if not self._runs or message.conversation != self._open:
            start = self._file.tell()
            self._runs.append((message.time, len(self._runs), start, start))
            self._open = message.conversation
        began, number, start, _ = self._runs[-1]
        replaces = str(message.replaces) if message.replaces else ""
        own = (("of", id_of(message.of) if message.of else ""), ("expires", message.expires), ("supersedes", replaces))
        values = (one, message.text, message.source, message.time, message.title, message.fields, own)
        if message.topic:
            self.places[one] = message.topic, message.heading
        with self._refusing():
            self._file.write(json.dumps(values).encode("ascii") + b"\n")
        times = [time for time in (began, message.time) if time]
        self._runs[-1] = (min(times, default=""), number, start, self._file.tell())
        self.count += 1

    def runs(self) -> Iterator[Iterator[list[Any]]]:
        """The conversations by the time at which they begin; those without a time stand where they stood."""
        with self._refusing():
            self._file.flush()
        known = ""
        placed = []
        for began, number, start, stop in self._runs:
            known = began or known
            placed.append((known, number, start, stop))
        for _, _, start, stop in sorted(placed):
            yield self._lines(start, stop)

    def _lines(self, start: int, stop: int) -> Iterator[list[Any]]:
        self._file.seek(start)
        while start < stop:
            line = self._file.readline()
            start += len(line)
            here = start
            yield json.loads(line)
            self._file.seek(here)

    def close(self) -> None:
        """Let go of the file."""
        with suppress(OSError):  # what could not be written is not wanted any more
            self._file.close()

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """A disk that refuses is not to be taken for a fault of the file that is read."""
        try:
            yield
        except OSError as error:
            raise StorageFailed(f"{self._folder} has no room for what is read: {error.strerror}") from error


class Counted:
    """An open file that tells how much of it has been read."""

    def __init__(self, file: IO[bytes], tell: Callable[[int], None]) -> None:
        self._file = file
        self._tell = tell

    def read(self, size: int = -1) -> bytes:
        """Like a file's."""
        content = self._file.read(size)
        self._tell(len(content))
        return content

    def readline(self, size: int = -1) -> bytes:
        """Like a file's."""
        line = self._file.readline(size)
        self._tell(len(line))
        return line

    def __enter__(self) -> Counted:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def files_of(paths: Sequence[Path], form: str) -> tuple[list[tuple[Input, formats.Format]], list[str], list[Unread]]:
    """The files to read, each with its format; the names of the others; what could not be opened.

    Raises `BadInput` where nothing can be read.
    """
    chosen: list[tuple[Input, formats.Format]] = []
    others: list[str] = []
    faults: list[Unread] = []
    wanted = formats.format_named(form) if form else None
    for path in paths:
        before = len(chosen)
        several = path.is_dir()
        for one in inputs_of(path):
            if isinstance(one, Unread):
                faults.append(one)
                continue
            several = several or ": " in one.name
            fits = not several or wanted is None or one.within.lower().endswith(tuple(filter(None, wanted.suffixes)))
            known = len(faults)
            found = (wanted if fits else None) if wanted else known_format(one, faults)
            if found is None:
                others += [one.name] if len(faults) == known else []
            else:
                chosen.append((one, found))
        if len(chosen) == before and not faults:
            what = "holds nothing" if several else "is nothing"
            raise BadInput(f"{path} {what} that can be imported; formats: {formats.names()}. Name one with --from")
    return chosen, others, faults


def known_format(one: Input, faults: list[Unread]) -> formats.Format | None:
    """The format of a file; one that cannot be read at all is a problem."""
    import zipfile

    try:
        found = formats.format_of(one)
        if found is None and formats.is_text(one.within) and b"\x00" in one.head():
            faults.append(Unread(one.name, "there are zero bytes in it, so this is no text; save it as UTF-8"))
        return found
    except (OSError, zipfile.BadZipFile, NotImplementedError) as error:
        faults.append(Unread(one.name, f"it cannot be read: {error}"))
        return None


@dataclass(slots=True)
class Tally:
    """What has been counted so far."""

    known: KnownIds | None
    spool: Spool | None
    keeps_all: bool = False
    again: bool = False
    conversations: int = 0
    added: int = 0
    repeated: int = 0
    attached: int = 0
    file_texts: int = 0
    edited: int = 0
    gone: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    sources: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    problems: list[Unread] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)
    _here: tuple[str, str] = ("", "")
    _said: dict[str, int] = field(default_factory=dict)
    _met: set[int] = field(default_factory=set)

    def figures(self) -> tuple[int, int, int, int]:
        """How many were new, known, left out and not to be read."""
        return self.added, self.repeated, self.skipped.total(), len(self.problems)

    def take(self, file: Input, found: Message | Skipped | Unread) -> None:
        """Count what a reader yielded, and keep a message that is new."""
        if isinstance(found, Skipped):
            self.skipped[found.kind] += found.number
        elif isinstance(found, Unread):
            self.problems.append(found)
        else:
            self._take_message(file, found)

    def _take_message(self, file: Input, message: Message) -> None:
        message = cleaned(message, self.notes)
        if (file.name, message.conversation) != self._here:
            self._here = (file.name, message.conversation)
            self._said = {}
            self.conversations += 1
        one = message.known_as or id_of(message.key)
        words = hash(message.text)
        if (
            not message.known_as and self._said.setdefault(one, words) != words
        ):  # the same id with other words, in one conversation
            one = id_of(f"{message.key}\n{message.text}")
        number = int(one, 32)
        if number in self._met or (self.known is not None and one in self.known):
            self.repeated += 1
            if self.keeps_all and self.spool is not None and number not in self._met:
                self._met.add(number)
                self.spool.put(one, message)
            return
        self._met.add(number)
        if not self.again and self.known is not None and self.known.is_forgotten(one):
            self.skipped[FORGOTTEN] += 1
            return
        self.added += 1
        self.edited += message.replaces > 0
        self.attached += len(message.attached)
        self.file_texts += ATTACHMENT in dict(message.fields)
        self.sources[message.source] += 1
        if self.spool is not None:
            self.spool.put(one, message)


def cleaned(message: Message, notes: dict[str, None]) -> Message:
    """A message as CURRENT can hold it: line ends are newlines, half characters replaced."""
    text = message.text.replace("\r\n", "\n")
    whole = [valid(value) for value in (text, message.source, message.title)]
    fields = tuple((name, valid(value)) for name, value in message.fields)
    if whole != [text, message.source, message.title] or fields != message.fields:
        notes[f"{message.place}: {REPLACED}"] = None
    text, source, title = whole
    if (text, source, title, fields) == (message.text, message.source, message.title, message.fields):
        return message
    return replace(message, text=text, source=source, title=title, fields=fields)


def valid(text: str) -> str:
    """A text without halves of characters."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def read_files(
    chosen: Sequence[tuple[Input, formats.Format]],
    tally: Tally,
    branches: bool,
    progress: Progress,
    memory: Callable[[], Remembered],
    whole: bool,
) -> list[FileRead]:
    """Read every file; gives what each of them held. What is edited in place is held against `memory`.

    With `whole`, a folder is read: of a note that was in it nobody else has to tell where it went.
    """
    import zipfile
    import zlib

    tell = Telling(progress, sum(source.size for source, _ in chosen))
    files: list[FileRead] = []
    edited = [source.within for source, found in chosen if found.is_edited]
    there = memory() if edited else Remembered({})
    present = set(edited) if whole else set()
    for source, found in chosen:
        before = tally.figures()
        try:
            reading: Iterable[Found] = found.read(replace(source, open=opener(source, tell)), branches=branches)
            if found.is_edited:
                reading, gone = compare(list(reading), source.within, there, present)
                if gone:
                    tally.gone.append((source.name, tuple(sorted(kept.seq for kept in gone))))
            for one in reading:
                tally.take(source, one)
        except (OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
            tally.problems.append(Unread(source.name, f"it cannot be read on: {error}"))
        ways = [later - earlier for earlier, later in zip(before, tally.figures(), strict=True)]
        files.append(FileRead(source.name, found.name, *ways))
        if not any(ways[:3]):
            tally.notes.update(dict.fromkeys(what_it_looks_like(source, found)))
    return files


def what_it_looks_like(source: Input, read_as: formats.Format) -> Iterator[str]:
    """A hint where a file holds nothing of the format that it was read as: which one it looks like."""
    import zipfile

    try:
        like = formats.format_of(source)
    except (OSError, zipfile.BadZipFile, NotImplementedError):
        return
    if like is not None and like is not read_as:
        yield f"{source.name} holds no messages of {read_as.name}; it looks like {like.about}: --from {like.name}"
    elif like is None:
        yield f"{source.name} holds no messages of {read_as.name}, nor does it look like any other format"


class Telling:
    """Progress in bytes over all files; a file that is looked through twice counts no more than all of it."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0

    def __call__(self, size: int) -> None:
        self._done = min(self._total, self._done + size)
        self._progress("reading", self._done, self._total)


def opener(source: Input, tell: Callable[[int], None]) -> Callable[[], IO[bytes]]:
    """Opens a file that tells how much of it has been read."""
    return lambda: cast(IO[bytes], Counted(source.open(), tell))


# Writing

Writer = Callable[[Spool, KnownIds, str, Progress], Iterator[dict[str, int]]]
"""Writes what was read, under the time at which it is noted; yields the seqs of each batch by id."""


def draft_of(values: list[Any], observed: str) -> tuple[str, Draft]:
    """A spooled message as an entry without its seq, and its id, which stands first so that it is found at once."""
    one, text, source, moment, title, fields, own = values
    chosen = [("id", one), *map(tuple, own[:1]), ("time", moment), ("source", source), ("title", title)]
    chosen += map(tuple, own[1:])
    for name, value in fields:
        chosen.append((name if name not in OURS else f"their_{name}", value))
    kept = {name: value for name, value in chosen if value and KEY_ALONE.fullmatch(name)}
    return one, (Signature((), (*kept.items(), ("observed", observed))), text)


def batches(spool: Spool, observed: str, most: int) -> Iterator[list[tuple[str, Draft]]]:
    """The spooled messages as entries, in portions that are quickly written."""
    batch: list[tuple[str, Draft]] = []
    size = 0
    for run in spool.runs():
        for values in run:
            batch.append(draft_of(values, observed))
            size += 4 * len(values[1])
            if size >= BATCH_BYTES or len(batch) >= most:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch


@dataclass(frozen=True, slots=True)
class Hooks:
    """What an import does besides appending.

    `extracting` writes what was read and the facts that a model takes out of it. `flush` is called for every 500
    entries or so: what a flush costs grows with what waits in CURRENT. `place` puts entries where they stood that stood
    in topic documents. `load` loads an export of infinimem. `remembered` tells what memory shows of notes.
    """

    load: Callable[[Path], Loaded]
    place: Callable[[Sequence[Placed]], Report]
    remembered: Callable[[], Remembered] = lambda: Remembered({})
    extracting: Extracting | None = None
    flush: Callable[[], Report] | None = None


def import_files(
    root: Path,
    paths: Sequence[Path],
    observed: str,
    hooks: Hooks,
    *,
    form: str = "",
    branches: bool = False,
    again: bool = False,
    dry_run: bool = False,
    progress: Progress = nothing,
) -> Imported:
    """Import files into a library; with `dry_run` they are only read and counted, with `again` what was forgotten
    comes in, too.

    Raises `BadInput` where there is nothing to read; what is wrong inside a file is listed.
    """
    chosen, others, faults = files_of(paths, form)
    exports = [source for source, found in chosen if found.is_library and source.path is not None]
    loaded = load_exports(exports, hooks.load, faults, alone=len(chosen) == 1)
    chosen = [(source, found) for source, found in chosen if not found.is_library or source.path is None]
    known = KnownIds(root)
    known.refresh()
    spool = Spool(root / STATE) if chosen and not dry_run else None
    tally = Tally(known, spool, keeps_all=hooks.extracting is not None, again=again, problems=faults)
    try:
        whole = any(path.is_dir() for path in paths) or len(chosen) > 1
        files = [*loaded.files, *read_files(chosen, tally, branches, progress, hooks.remembered, whole)]
        done = write_spooled(root, spool, known, observed, hooks, progress) if spool is not None else Written()
    finally:
        if spool is not None:
            spool.close()
    met = tally.added - done.number if spool is not None else 0  # what another import wrote meanwhile
    return Imported(
        tuple(files), tally.added - met + loaded.added, tally.repeated + met + loaded.known, tally.conversations,
        () if dry_run else (*loaded.ranges, *done.ranges), tally.attached, tally.file_texts,
        dict(tally.sources.most_common()), dict(tally.skipped.most_common()), tuple(tally.problems), tuple(others),
        (*loaded.notes, *tally.notes),
        hooks.extracting.found if hooks.extracting else None, done.flushed, tally.edited, tuple(tally.gone),
    )  # fmt: skip


def load_exports(
    sources: Sequence[Input], load: Callable[[Path], Loaded], faults: list[Unread], *, alone: bool
) -> Imported:
    """Load exports of infinimem, each as a whole. One that is spoilt is a problem; where it is `alone`, an error."""
    files: list[FileRead] = []
    ranges: list[tuple[int, int]] = []
    notes: list[str] = []
    for source in sources:
        assert source.path is not None
        try:
            done = load(source.path)
        except BadInput as error:
            if alone:
                raise
            faults.append(Unread(source.name, str(error)))
            files.append(FileRead(source.name, "infinimem", unread=1))
            continue
        files.append(FileRead(source.name, "infinimem", len(done.seqs), done.known))
        for seq in done.seqs:
            extend(ranges, [seq])
        notes += [f"{source.name}: {note}" for note in done.notes]
    added, known = sum(file.added for file in files), sum(file.known for file in files)
    return Imported(tuple(files), added, known, ranges=tuple(ranges), notes=tuple(notes))


@dataclass(slots=True)
class Written:
    """How much was written, under which seqs, and what was sorted into topics."""

    number: int = 0
    ranges: list[tuple[int, int]] = field(default_factory=list)
    flushed: Report | None = None


def write_spooled(
    root: Path, spool: Spool, known: KnownIds, observed: str, hooks: Hooks, progress: Progress
) -> Written:
    """Write what was read, oldest first; sort it where that is wanted."""
    write = hooks.extracting.writer if hooks.extracting else appender(root, PORTION if hooks.flush else BATCH_ENTRIES)
    done = Written()
    waiting = 0
    for seqs in write(spool, known, observed, progress):
        done.number += len(seqs)
        waiting += len(seqs)
        extend(done.ranges, list(seqs.values()))
        placed = [Placed(seq, *spool.places[one]) for one, seq in seqs.items() if one in spool.places]
        if placed:
            done.flushed = joined(done.flushed, hooks.place(placed))
        if hooks.flush is not None and waiting >= PORTION:
            done.flushed = joined(done.flushed, hooks.flush())
            waiting = 0
    if hooks.flush is not None and waiting:
        done.flushed = joined(done.flushed, hooks.flush())
    return done


def appender(root: Path, most: int) -> Writer:
    """Appends what was read, batch by batch; others who write come in between."""

    def write(spool: Spool, known: KnownIds, observed: str, progress: Progress) -> Iterator[dict[str, int]]:
        done = 0
        for number, batch in enumerate(batches(spool, observed, most)):
            if number:
                time.sleep(BREATH)
            yield append_new(root, batch, known)
            done += len(batch)
            progress("writing", done, spool.count)

    return write


def joined(first: Report | None, second: Report) -> Report:
    """The reports of several flushes as one."""
    from infinimem.consolidate.run import together

    return second if first is None else together(first, second)


def extend(ranges: list[tuple[int, int]], seqs: Sequence[int]) -> None:
    """Add rising seqs to runs of seqs."""
    if not seqs:
        return
    if ranges and ranges[-1][1] + 1 == seqs[0]:
        ranges[-1] = (ranges[-1][0], seqs[-1])
    else:
        ranges.append((seqs[0], seqs[-1]))


def seqs_text(ranges: Sequence[tuple[int, int]]) -> str:
    """Runs of seqs as they are written: `12-15+18`."""
    return "+".join(render_seqs((low,)) if low == high else f"{low}-{high}" for low, high in ranges)
