"""What an audience may see: a view of the library without the rest, in which all of its reading takes place.

Rules (`access` in the settings) say which entries an audience, such as agents over MCP, is never shown. They are kept
below every tool: whoever reads for an audience reads a second folder, `.infinimem/views/NAME`, with the library's files
less those entries and the words that only they say. Lines keep their numbers. No reader, index, search or export that
works on that folder can get round the rules, for what they forbid is not there.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from infinimem.config import Access
from infinimem.consolidate.commit import extract
from infinimem.errors import StorageFailed
from infinimem.forgetting.survey import Survey, read_survey
from infinimem.forgetting.words import OUR_OWN, Words, tokens_of, words_of
from infinimem.indexing import commit_mark, finish_commit
from infinimem.model import Document, Entry, Span, path_of
from infinimem.plan import lexical
from infinimem.plan.desk import reads_as
from infinimem.plan.lexical.weigh import light_terms
from infinimem.store.files import digest_of, make_folder, read_bytes, write_private
from infinimem.store.layout import BUFFER, MANIFEST, VIEWS, safe_path
from infinimem.store.lock import exclusive
from infinimem.store.read import list_files
from infinimem.text.document import body_tokens, edit, entry_lines, events, parse_lines, render
from infinimem.text.header import render_scalar
from infinimem.text.lines import FENCE, ending_of, is_blank
from infinimem.text.words import analyse

MASK = "<!-- … -->"
"""Stands in every line that is kept back; no word of it can be found."""
VERSION = 1
"""Changes with what a view is made of; one of another version is made anew."""
SETTLED = 2.0
"""Seconds after which a file can no longer change without its times telling."""
ATTEMPTS = 5
PLAIN_EVENTS = ("retire", "unflush", "restore", "forget", "flush")
NAME = re.compile(r"[a-z][a-z0-9+-]*")

Withheld = Callable[[Entry], bool]
"""Says whether an entry is kept back."""


def view(root: Path, audience: str, access: Access) -> Path:
    """The folder in which an audience reads: the library itself where no rule is about it, else its view, up to date.

    Raises `StorageFailed` where the view cannot be written: then nothing is shown.
    """
    if not access:
        return root
    assert NAME.fullmatch(audience) is not None
    place = safe_path(root, f"{VIEWS}/{audience}")
    try:
        make_folder(place / ".infinimem")
        with exclusive(place / ".infinimem" / "view.lock", doing=f"the view for {audience}"):
            for _ in range(ATTEMPTS):
                finish_commit(root)
                seen = commit_mark(root)
                bring_up_to_date(root, place, access)
                if commit_mark(root) == seen and not (root / MANIFEST).exists():
                    break
    except OSError as error:
        raise StorageFailed(f"{place} cannot be written: {error.strerror}; {audience} is shown nothing") from error
    return place


def bring_up_to_date(root: Path, place: Path, access: Access) -> None:
    """Make the view what it should be, if any file or rule has changed since it was made."""
    state = place / ".infinimem" / "view.json"
    made = known_state(state)
    rules = f"{VERSION} {access!r}"
    listing = {path: list(status) for path, status in list_files(root).items()}
    if made.get("rules") == rules and made.get("files") == listing and still_the_same(root, made.get("recent")):
        return
    state.unlink(missing_ok=True)  # whoever finds none makes it anew
    now = time.time()
    secret = str(made.get("secret") or secrets.token_hex(16))
    names, files = masked_files(read_survey(root), access, secret)
    write_files(place, files)
    recent = {path: digest_at(root / path) for path, status in listing.items() if now - status[1] / 1e9 < SETTLED}
    content = {"rules": rules, "files": listing, "recent": recent, "secret": secret, "names": names}
    beside = state.with_name("view.json.tmp")
    write_private(beside, json.dumps(content).encode())
    beside.replace(state)


def known_state(state: Path) -> dict[str, Any]:
    """What the view was made of; {} where that cannot be told."""
    try:
        content = json.loads(state.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def names_in(place: Path) -> dict[str, str]:
    """The topics that go by another name in a view, with the names that they have in the library."""
    names = known_state(place / ".infinimem" / "view.json").get("names", {})
    return {str(shown): str(real) for shown, real in names.items()}


def still_the_same(root: Path, recent: Any) -> bool:
    """Whether the files that had changed just before the view was made are what they were."""
    return isinstance(recent, dict) and all(digest_at(root / path) == digest for path, digest in recent.items())


def digest_at(path: Path) -> str:
    """The digest of a file; "" where there is none."""
    content = read_bytes(path)
    return "" if content is None else digest_of(content)


def write_files(place: Path, files: Mapping[str, bytes]) -> None:
    """Have just these files in the view; what did not change is not touched."""
    for path in list_files(place):
        if path not in files:
            (place / path).unlink()
    for name in ("topics", "evidence"):
        make_folder(safe_path(place, name))
    for path, content in files.items():
        if read_bytes(place / path) == content:
            continue
        target = safe_path(place, path)
        make_folder(target.parent)
        beside = place / ".infinimem" / "view.tmp"
        write_private(beside, content)
        beside.replace(target)
    folders = [path for path in (place / "topics").rglob("*") if path.is_dir() and not path.is_symlink()]
    for folder in sorted(folders, reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()


# What a view shows: values in, values out


@dataclass(frozen=True, slots=True)
class Rules:
    """What is kept back of one library: seqs, the words that only they say, and whether prose is kept back, too."""

    access: Access
    hidden: frozenset[int]
    words: Words
    spare: Mapping[int, Entry] = field(default_factory=dict)

    def withholds(self, entry: Entry) -> bool:
        """Whether an entry is kept back: a joined line with one such member is."""
        rules = Access(self.access.deny) if len(entry.seqs) > 1 or entry.signature.get("rev") else self.access
        return not rules.permits(dict(entry.signature.fields)) or not self.hidden.isdisjoint(entry.seqs)

    @property
    def shows_prose(self) -> bool:
        """Whether what has no fields may be seen."""
        return self.access.permits({})


def masked_files(survey: Survey, access: Access, secret: str) -> tuple[dict[str, str], dict[str, bytes]]:
    """The files of a view by path; and the topics that go by another name there, with their own."""
    rules = rules_of(survey, access)
    files = {BUFFER: render(masked(survey.buffer.document, rules)[0])} if survey.buffer.digest else {}
    for path, file in survey.evidence.items():
        files[path] = render(masked_evidence(file.document, rules))
    names: dict[str, str] = {}
    for file in survey.topics.values():
        shown = masked_topic(file.document, rules, secret)
        if shown is None:
            continue
        if shown.id != file.document.id:
            names[shown.id] = file.document.id
        files[shown.path] = render(shown)
    return names, files


def rules_of(survey: Survey, access: Access) -> Rules:
    """Which entries are kept back, wherever and in whatever form they stand."""
    said: dict[int, list[Mapping[str, str]]] = {}
    joined: dict[int, list[Mapping[str, str]]] = {}
    spare: dict[int, Entry] = {}
    for path, entry in survey.entries():
        fields = dict(entry.signature.fields)
        if len(entry.seqs) > 1:
            for seq in entry.seqs:
                joined.setdefault(seq, []).append(fields)
        elif not entry.signature.get("rev"):
            said.setdefault(entry.seq, []).append(fields)
            if path.startswith("evidence/"):
                spare.setdefault(entry.seq, entry)
    known = {**joined, **said}
    hidden = {seq for seq, rows in known.items() if not all(access.permits(fields) for fields in rows)}
    denied = Access(access.deny)
    hidden |= {seq for seq, rows in joined.items() if not all(denied.permits(fields) for fields in rows)}
    rules = Rules(access, frozenset(hidden), Words())
    entries = [entry for _, entry in survey.entries()]
    gone = [entry for entry in entries if rules.withholds(entry)]
    kept = [entry for entry in entries if not rules.withholds(entry)]
    shown = {seq: entry for seq, entry in spare.items() if seq not in hidden}
    return Rules(access, frozenset(hidden), words_of(gone, kept), shown)


def masked(document: Document, rules: Rules) -> tuple[Document, bool]:
    """The document with every line masked that is kept back; and whether an entry is among them."""
    lines = list(document.lines)
    kept: list[Entry] = []
    taken: set[int] = set()
    held = False
    for entry in document.entries:
        taken.update(range(entry.span.start, entry.span.stop))
        if rules.withholds(entry):
            held = True
            kept += mask_entry(lines, entry, rules, ending_of(document.lines))
        else:
            kept.append(entry)
    heads = {block.span.start for block in document.blocks if block.level}
    body = [at for at in range(document.header.span.stop, len(lines)) if at not in taken and at not in heads]
    telling = {line - 1 for line, _ in rules.words.places("".join(lines))}
    for at in body:
        if not is_blank(lines[at]) and (at in telling or not rules.shows_prose):
            lines[at] = mask_of(lines[at])
    shown = parse_lines(document.path, tuple(lines))
    if reads_as(shown, kept):
        return shown, held
    for at in range(document.header.span.stop, len(lines)):  # an unclosed fence: only what is known to be shown stays
        if at in heads or (at in body and not is_blank(lines[at])):
            lines[at] = MASK + line_end(lines[at])
    shown = parse_lines(document.path, tuple(lines))
    if reads_as(shown, kept):
        return shown, held
    blank = tuple(MASK + line_end(line) for line in document.lines)
    return parse_lines(document.path, blank), True


def mask_entry(lines: list[str], entry: Entry, rules: Rules, ending: str) -> list[Entry]:
    """Mask an entry's lines; members of a joined line who may be seen take them, as far as there is room."""
    shown: list[Entry] = []
    room = list(range(entry.span.start, entry.span.stop))
    for seq in entry.seqs if len(entry.seqs) > 1 else ():
        own = rules.spare.get(seq)
        if own is None or "\n" in own.text or not room:
            continue
        lines[room.pop(0)] = entry_lines(own.signature, own.text, ending)[0]
        shown.append(own)
    for at in room:
        lines[at] = MASK + line_end(lines[at])
    return shown


def mask_of(line: str) -> str:
    """A masked line of prose; what opens or closes a code fence goes on doing so."""
    fence = FENCE.match(line)
    if fence is not None:
        return fence[0] + line_end(line)
    return MASK + line_end(line)


def line_end(line: str) -> str:
    """A line's terminator."""
    return line[len(line.rstrip("\r\n")) :]


def masked_evidence(document: Document, rules: Rules) -> Document:
    """An evidence file with its entries masked, and with the events that tell more than what became of a seq."""
    shown, _ = masked(document, replace(rules, spare={}))
    told = [
        (Span(event.line - 1, event.line), (MASK + line_end(shown.lines[event.line - 1]),))
        for event in events(shown.lines)
        if event.kind not in PLAIN_EVENTS and rules.words.in_name(" ".join(value for _, value in event.fields))
    ]
    return edit(shown, told) if told else shown


def masked_topic(document: Document, rules: Rules, secret: str) -> Document | None:
    """A topic document as it may be seen, under another name where its own tells; None where nothing may be seen."""
    shown, held = masked(document, rules)
    names = Names(rules.words, held, spoken_in(shown))
    if document.is_guest and names.tell(document.id):
        return None
    tells = held or bool(document.entries) or not rules.shows_prose or names.tell(document.id)
    if tells and not shown.entries and not shows_anything(shown):
        return None
    shown = with_headings(shown, names)
    path = document.path
    if names.tell(document.id):
        path = path_of(other_name(document.path, secret))
    header = "".join(document.lines[: document.header.span.stop])
    if path == document.path and not held and not rules.words.in_name(header):
        return shown
    if document.is_guest:
        return without_header(shown)
    return with_header(shown, path)


def other_name(path: str, secret: str) -> str:
    """A topic id that tells nothing, the same every time; without the secret nobody can tell what it stands for."""
    return f"topic-{blake2b(path.encode('utf-8', 'surrogateescape'), key=secret.encode(), digest_size=4).hexdigest()}"


@dataclass(frozen=True, slots=True)
class Names:
    """Which names tell what is kept back. In a document that `held` some of it, all that its shown words do not say."""

    words: Words
    held: bool
    spoken: Collection[str]

    def tell(self, name: str) -> bool:
        """Whether a title, a heading or an id tells."""
        if self.words.in_name(name):
            return True
        return self.held and any(self.is_news(token) for token in tokens_of(name))

    def is_news(self, token: str) -> bool:
        """Whether a word is one that nothing shown in the document says."""
        if token in OUR_OWN or token.isdecimal() or token in self.spoken:
            return False
        terms = [term for term in analyse(token) if term not in light_terms()]
        return any(term not in self.spoken for term in terms)


def spoken_in(document: Document) -> frozenset[str]:
    """The words and terms of what a document shows."""
    spoken: set[str] = set()
    for entry in document.entries:
        for text in (entry.text, entry.source):
            spoken.update(tokens_of(text))
            spoken.update(analyse(text))
    return frozenset(spoken)


def shows_anything(document: Document) -> bool:
    """Whether a line of prose is left."""
    heads = {block.span.start for block in document.blocks if block.level}
    body = range(document.header.span.stop, len(document.lines))
    return any(
        at not in heads and not is_blank(document.lines[at]) and document.lines[at].strip() != MASK for at in body
    )


def with_headings(document: Document, names: Names) -> Document:
    """The document with each heading that tells replaced by one from what is shown under it."""
    edits: list[tuple[Span, Sequence[str]]] = []
    for block in document.blocks:
        if not block.level or not names.tell(block.headings[-1]):
            continue
        depth = len(block.headings)
        under = [entry for entry in document.entries if entry.headings[:depth] == block.headings]
        name = lexical.heading_of(under) if block.level > 1 else lexical.title_of(under)
        if not name or names.tell(name):
            name = lexical.title_of([])
        line = document.lines[block.span.start]
        new = f"{'#' * block.level} {name}{line_end(line)}"
        edits.append((Span(block.span.start, block.span.start + 1), (new,)))
    return edit(document, edits) if edits else document


def with_header(document: Document, path: str) -> Document:
    """The document with front matter of as many lines, made from what is shown."""
    stop = document.header.span.stop
    ending = ending_of(document.lines)
    body = document.lines[stop:]
    bare = parse_lines(path, document.lines)
    topic = path.removeprefix("topics/").removesuffix(".md")
    rows = [
        f"id: {render_scalar(topic)}",
        f"token_count: {body_tokens(bare)}",
        f"summary: {render_scalar(extract(bare))}",
        "update_log: []",
        "aux: {}",
    ]
    inner = max(0, stop - 2)
    rows = (rows + ["#"] * inner)[:inner]
    header = [line + ending for line in ("---", *rows, "---")] if stop else []
    return parse_lines(path, (*header, *body))


def without_header(document: Document) -> Document:
    """A guest with its front matter blank."""
    stop = document.header.span.stop
    ending = ending_of(document.lines)
    header = [line + ending for line in ("---", *["#"] * (stop - 2), "---")] if stop else []
    return parse_lines(document.path, (*header, *document.lines[stop:]))
