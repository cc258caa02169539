"""Between the files and the index: what a file says, as the index wants it told; and an index kept fresh."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import BinaryIO

from infinimem.errors import StorageFailed
from infinimem.model import CURRENT, Document, Unit, topic_of
from infinimem.plan.desk import aux_list, is_redirect
from infinimem.search.index import Index, Line, Parsed, ReadUnits, Tail
from infinimem.search.records import Record
from infinimem.store.buffer import hold
from infinimem.store.evidence import TAKEN_BACK, event_units, file_ending
from infinimem.store.files import read_bytes
from infinimem.store.layout import BUFFER_HEAD, MANIFEST, STATE, TOPICS
from infinimem.store.read import LARGEST, PARSED, list_files, parsed, read_file, taken_paths
from infinimem.text.document import body_tokens, parse, parse_piece, title_of, units
from infinimem.text.lines import FENCE, join_lines
from infinimem.text.tokens import estimate

ATTEMPTS = 5
MOST_TITLED = 64
"""Entries of a title that are looked at to see in which topics they stand."""
PIECE = 4 << 20
"""Bytes of evidence or CURRENT that are read at once."""

VALUE = r'[^\s,<>"]+(?: [^\s,<>"]+)*'
ENDS = r"(?=\n*(?:[^ \t\n]|\Z))"
MORE = rf"[^\n]+\n(?:  [^\n]*\n)*{ENDS}"
FIELDS = rf"(?:, (?!seq=)[A-Za-z_][A-Za-z0-9_.-]*={VALUE})*"
IN_EVIDENCE = re.compile(
    rf"- <seq=([0-9]{{1,18}}){FIELDS}> {MORE}|(- <(?:seq|event)={MORE})|#{{1,6}} [^\n]*\n{ENDS}|\n{ENDS}"
)
"""A line of evidence as we write it: an entry with one seq, anything else of ours, a heading, a blank line."""
FENCE_BELOW = re.compile(r"\n *(?:[-*+] +|[0-9]+[.)] +)*(?:```|~~~)")

Progress = Callable[[str, int, int], None]
"""Is told a stage, how much of it is done, and how much there is."""
TITLE_OF_BUFFER = (BUFFER_HEAD.decode().strip("# \n"),)


def fresh_index(
    root: Path,
    known: Index | None,
    language: str,
    progress: Progress | None = None,
    *,
    settled: bool = True,
    kept: bool = True,
    without: Collection[str] = (),
) -> Index:
    """The index of a library, brought up to date with its files as they are between two commits.

    A small one that is not to be kept is made in memory, unless there is one on disk.
    `progress` is told "indexing", how many files have been read, and how many there are. Files named in `without`
    are left out of it.
    No lock is held while files are read; where a commit went by meanwhile, what it changed is read again.
    """
    index = known if known is not None and known.language == language else Index(root, language, kept=kept)
    reader = Reader(root)
    for _ in range(ATTEMPTS):
        finish_commit(root)
        seen = commit_mark(root)
        listing = list_files(root)
        for path in without:
            listing.pop(path, None)
        read_units = counted(reader.read_units, len(listing), progress) if progress else reader.read_units
        index.refresh(listing, read_units, reader.read_tail, settled=settled)
        if commit_mark(root) == seen and not (root / MANIFEST).exists():
            break
    return index


def counted(read_units: ReadUnits, total: int, progress: Progress) -> ReadUnits:
    """A reader of files that tells how many it has read."""
    numbers = count()

    def read_and_tell(path: str) -> Parsed:
        progress("indexing", next(numbers), total)
        return read_units(path)

    return read_and_tell


def finish_commit(root: Path) -> None:
    """Wait for a commit under way, or finish the one that a killed process left."""
    if (root / MANIFEST).exists():
        with suppress(StorageFailed), hold(root):  # a read-only library is read as it is
            pass


def commit_mark(root: Path) -> int:
    """Changes with every commit: its manifest comes and goes in this folder."""
    try:
        return (root / STATE).stat().st_mtime_ns
    except OSError:
        return 0


class Reader:
    """Reads files for the index; an unreadable one counts as empty (`check` names it)."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read_units(self, path: str) -> Parsed:
        """A whole file; of evidence no more than its first piece, from which `read_tail` goes on."""
        if path.startswith("evidence/"):
            piece = self.read_tail(path, 0, 1)
            assert piece is not None
            return Parsed(piece.units, end=piece.end, next_line=piece.next_line)
        file = read_file(self.root, path)
        document = file.document
        if is_redirect(document):
            return Parsed((), guest=True, digest=file.digest)
        summary = document.header.fields.get("summary")
        return Parsed(
            found_in(document),
            title_of(document),
            str(summary) if isinstance(summary, str) else "",
            body_tokens(document),
            document.is_guest,
            file.digest,
            len(join_lines(document.lines)) if can_grow(document) else 0,
            len(document.lines) + 1,
            () if document.is_guest else (*aux_list(document, "former_ids"), *aux_list(document, "merged_from")),
        )

    def read_tail(self, path: str, offset: int, next_line: int) -> Tail | None:
        """What was appended to CURRENT or to evidence; None where the whole file has to be read again."""
        is_evidence = path.startswith("evidence/")
        with (self.root / path).open("rb") as file:
            file.seek(offset)
            content = file.read(PIECE)
            if len(content) == PIECE:
                content = whole_items(content + file.readline(), file)
        grown = offset + len(content)
        if is_evidence:
            lines = content.count(b"\n") + (not content.endswith(b"\n") and bool(content))
            return Tail(self.evidence(path, content, next_line - 1), grown, next_line + lines)
        document = parse_piece(path, content, file_ending(self.root / path))
        if document.header.span.stop:
            return None
        line = next_line - 1 + len(document.lines)
        if not can_grow(document) or any(content.startswith(mark) for mark in (b" ", b"\t")):
            return None
        shifted = (moved(unit, next_line - 1) for unit in found_in(document))
        return Tail(shifted, grown, line + 1, estimate("".join(document.lines)))

    def evidence(self, path: str, content: bytes, offset: int) -> Iterator[Unit | Line]:
        """Evidence lines for `trace`, and what was retired, for readers that look back; `offset` lines come before."""
        lines = plain_lines(path, content, offset)
        if lines is not None:
            return iter(lines)
        return parsed_lines(parse_piece(path, content, file_ending(self.root / path)), offset)


def plain_lines(path: str, content: bytes, offset: int) -> list[Unit | Line] | None:
    """Evidence as we write it, entries left unread; None where something else stands there too."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return None
    if "\r" in text:
        return None
    found: list[Unit | Line] = []
    at, line = 0, offset
    for match in IN_EVIDENCE.finditer(text):
        if match.start() != at:
            return None
        at = match.end()
        seq, more = match.groups()
        if seq is not None and int(seq):
            found.append(Line(line + 1, int(seq), match[0]))
        elif more is not None or seq is not None:
            if FENCE_BELOW.search(match[0]):
                return None
            found += parsed_lines(parse_piece(path, match[0].encode()), line)
        line += match[0].count("\n")
    return found if at == len(text) else None


def parsed_lines(document: Document, offset: int) -> Iterator[Unit]:
    """The entries of evidence, and its events."""
    for entry in document.entries:
        if entry.seqs:
            span, signature = entry.span, entry.signature
            line, stop = span.start + 1 + offset, span.stop + offset
            yield Unit(document.path, line, stop, entry.text, signature.seqs, (), signature.fields)
    yield from event_units(document, offset)


def whole_items(content: bytes, file: BinaryIO) -> bytes:
    """A piece of a file, read on until the next list item begins, so that no entry is cut in two."""
    pieces = [content]
    while True:
        at = file.tell()
        line = file.readline()
        if not line or line.startswith((b"- ", b"#")):
            file.seek(at)
            return b"".join(pieces)
        pieces.append(line)


def moved(unit: Unit, lines: int) -> Unit:
    """A unit further down."""
    return replace(unit, line=unit.line + lines, stop=unit.stop + lines) if lines else unit


def found_in(document: Document) -> list[Unit]:
    """A document's units; CURRENT's own title says nothing about what stands under it."""
    found = units(document)
    if document.id != CURRENT:
        return found
    return [replace(unit, headings=()) if unit.headings == TITLE_OF_BUFFER else unit for unit in found]


def read_found(root: Path, path: str) -> Sequence[Unit]:
    """A file's units as it is now; the same bytes as lately are not parsed again. Raises `StorageFailed`."""
    content = read_bytes(root / path) or b""
    return known_units(path, content) if len(content) <= LARGEST else found_in(parse(path, content))


@lru_cache(PARSED)
def known_units(path: str, content: bytes) -> tuple[Unit, ...]:
    """The units of a file with these bytes, remembered for a while."""
    return tuple(found_in(parsed(path, content)))


def can_grow(document: Document) -> bool:
    """Whether what is appended to the buffer can be read on its own."""
    if document.id != CURRENT or document.problems or (document.lines and not document.lines[-1].endswith("\n")):
        return False
    headings = {block.headings for block in document.blocks} - {(), TITLE_OF_BUFFER}
    inside: set[int] = set()
    for entry in document.entries:
        inside.update(range(entry.span.start, entry.span.stop))
    loose = (line for at, line in enumerate(document.lines) if at not in inside)
    return not headings and not any(FENCE.match(line) for line in loose)


def put_back(said: Unit) -> bool:
    """Whether a line of evidence says that a hand put an entry back that had been retired."""
    return said.get("event") == "restore" and said.get("why") != TAKEN_BACK


class IndexFinder:
    """What a flush asks, answered by an index."""

    def __init__(self, root: Path, index: Index) -> None:
        self.root = root
        self.index = index

    def similar(self, text: str, k: int) -> Sequence[tuple[str, float]]:
        """Topics whose entries are most like a text, best first, with how like they are."""
        return self.index.similar(text, k)

    def like(self, text: str, k: int) -> Sequence[Record]:
        """The visible entries that share most with a text, with their words."""
        return self.index.like(text, k)

    def holding(self, term: str) -> int:
        """How many visible units hold a term."""
        return self.index.holding(term)

    def visible(self) -> int:
        """How many visible units there are."""
        return self.index.visible()

    def locate(self, seq: int) -> Unit | None:
        """Where a topic shows a seq; where CURRENT holds it if no topic does."""
        return next(iter(self.standing(seq)), None)

    def standing(self, seq: int) -> Sequence[Unit]:
        """Every visible place of a seq, CURRENT's last."""
        return sorted(self.index.standing(seq), key=lambda unit: (unit.topic == CURRENT, unit.path, unit.line))

    def met(self, seqs: Iterable[int]) -> Collection[int]:
        """Those of some seqs that stand in a topic, or of which evidence says something."""
        wanted = set(seqs)
        return {seq for unit in self.index.met(wanted) if unit.topic != CURRENT for seq in unit.seqs} & wanted

    def words(self, seq: int) -> Sequence[str]:
        """The words that evidence has of a seq, oldest first."""
        return [unit.text for unit in self.index.evidence(seq) if not unit.get("event")]

    def expiring(self) -> Sequence[Unit]:
        """Visible entries that say when they expire."""
        return self.index.expiring()

    def with_field(self, key: str, *, retired: bool = False) -> Sequence[Unit]:
        """Visible entries, or on demand retired ones, that have a field of this name; "" = all."""
        return self.index.with_field(key, retired=retired)

    def titled(self, title: str) -> Collection[str]:
        """Topics that show entries with this title; not every one of them where there are very many."""
        return {unit.topic for unit in self.index.in_topics("title", title, MOST_TITLED)}

    def fate(self, seq: int) -> str:
        """What evidence says of a seq: "" nothing, `kept` its words, `retired` that it left."""
        fate = ""
        for unit in self.index.evidence(seq):
            event = unit.get("event")
            if not event and not fate:
                fate = "kept"
            elif event == "forget":
                return "retired"
            elif event == "retire":
                fate = "retired"
            elif event in ("unflush", "restore"):
                fate = "kept"
        return fate

    def unsettled(self) -> Sequence[tuple[Unit, int]]:
        """Entries of topics that say what they replace, and a seq of that still shown; none that a hand put back."""
        return [
            (unit, seq)
            for unit, seq in self.index.unsettled()
            if not any(map(put_back, self.index.evidence(seq))) and self.fate(seq) != "retired"
        ]

    def smallest(self, k: int) -> Sequence[str]:
        """The ids of the smallest topics of ours."""
        return self.index.smallest(k)

    def topics(self) -> Collection[str]:
        """Every topic id, and every name that a folder has taken."""
        names = [topic_of(path) for path in taken_paths(self.root / TOPICS, f"{TOPICS}/")]
        return [*names, *self.index.topics()]
