"""A folder of Markdown notes, as Obsidian and Logseq keep them: each paragraph and each bullet is an entry."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import PurePosixPath
from typing import Any

from infinimem.exchange.inputs import Input
from infinimem.exchange.message import Message, Reading, Skipped, Unread, text_in, time_of, title_of
from infinimem.model import Document
from infinimem.text.document import parse, read_heading
from infinimem.text.lines import OpenFences, closing_fence, is_blank, strip_ending

ITEM = re.compile(r"[-*+](?:[ \t]+|$)|[0-9]{1,9}[.)][ \t]+")
TAG = re.compile(r"(?:^|(?<=\s))#([^\s#,;.:!?()\[\]{}\"'`]*[^\s#,;.:!?()\[\]{}\"'`\d][^\s#,;.:!?()\[\]{}\"'`]*)")
JOURNAL = re.compile(r"([0-9]{4})[-_]([0-9]{2})[-_]([0-9]{2})(?![0-9])")
DATES = ("date", "created", "created_at", "day", "updated")
PLAIN = {*DATES, "title", "tags", "tag", "cssclass", "cssclasses", "id", "publish", "permalink"}
EMBEDDED = re.compile(r"!\[\[([^\[\]|#\n]+)[^\[\]\n]*\]\]|!\[[^\[\]\n]*\]\(<?([^()\s<>]+)>?[^()\n]*\)")
"""A picture or file shown in a note: `![[berth.jpg|200]]`, `![the berth](img/berth.jpg)`."""
RULE = re.compile(r"[ \t]{0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|=+[ \t]*)$")
COMMENT = re.compile(r"\s*(?:<!--.*?-->|%%.*?%%)\s*", re.DOTALL)
PROPERTY = re.compile(r"\s*(?:id|collapsed|created-at|updated-at):: .*")
LARGEST = 16 << 20


def recognises(name: str, head: str) -> bool:
    """Whether a file is Markdown, by its name."""
    return name.lower().endswith((".md", ".markdown")) and "\x00" not in head


def read(source: Input, *, branches: bool = False) -> Reading:
    """The blocks of a note in order; its tags, its headings and the day it is about are fields of each."""
    if source.size > LARGEST:
        yield Unread(source.name, f"a note of more than {LARGEST >> 20} MB")
        return
    with source.open() as file:
        document = parse(source.within, file.read().replace(b"\r\n", b"\n"))
    faults = [problem for problem in document.problems if problem.code == "encoding"]
    if faults:
        yield Unread(f"{source.name}:{faults[0].line}", faults[0].message)
        return
    title = title_of(text_in(document.header.fields.get("title"))) or PurePosixPath(source.within).stem
    tags, day = tags_of(document.header.fields), day_of(source, document)
    counts: dict[str, int] = {}
    for line, heading, text in [*properties(document), *blocks(document)]:
        place = f"{source.name}:{line}"
        if not COMMENT.sub("", text).strip() or RULE.fullmatch(text):
            yield Skipped("empty")
            continue
        counts[text] = counts.get(text, 0) + 1
        own = dict.fromkeys((*tags, *TAG.findall(text)))
        fields = tuple(pair for pair in (("heading", title_of(heading)), ("tags", "+".join(own))) if pair[1])
        key = "\n".join(("note", source.within, text, str(counts[text])))
        shown = embedded_in(text)
        yield Message(key, text, place, f"file:{source.within}", day, source.within, title, fields, attached=shown)


def embedded_in(text: str) -> tuple[str, ...]:
    """The names of the pictures and files that a note shows; a note within a note is none."""
    paths = (PurePosixPath((match[1] or match[2]).strip()) for match in EMBEDDED.finditer(text))
    return tuple(path.name for path in paths if path.suffix.lower() not in ("", ".md", ".markdown"))


def tags_of(fields: Any) -> list[str]:
    """The tags of the front matter, which may be a list or words with commas or spaces between them."""
    found: list[str] = []
    for name in ("tags", "tag"):
        value = fields.get(name)
        several = value if isinstance(value, list) else re.split(r"[,\s]+", value) if isinstance(value, str) else []
        found += [str(one).strip().lstrip("#") for one in several if one is not None]
    return [tag for tag in found if tag]


def day_of(source: Input, document: Document) -> str:
    """The day that a note is about: its front matter's, or a journal's by its name."""
    for name in DATES:
        value = document.header.fields.get(name)
        if isinstance(value, datetime | date):
            value = value.isoformat()
        time = time_of(value) if isinstance(value, str) else ""
        if time:
            return time
    match = JOURNAL.match(PurePosixPath(source.within).stem)
    return time_of("-".join(match.groups())) if match else ""


def properties(document: Document) -> Iterator[tuple[int, str, str]]:
    """What else the front matter says, as one block of its own lines."""
    span = document.header.span
    lines = [strip_ending(line, "\n") for line in document.lines[span.start + 1 : max(0, span.stop - 1)]]
    kept: list[str] = []
    keep = False
    for line in lines:
        if line[:1] not in (" ", "\t", "-", "#", ""):
            keep = line.partition(":")[0].strip().strip("\"'").lower() not in PLAIN and not line.rstrip().endswith(
                ": []"
            )
        if keep and not is_blank(line):
            kept.append(line)
    if kept:
        yield span.start + 1, "", "\n".join(kept)


def blocks(document: Document) -> Iterator[tuple[int, str, str]]:
    """Each paragraph, table, fence and top-level item: its line, the heading above it, and its words."""
    lines = document.lines
    heading = ""
    fences: OpenFences = {}
    at = document.header.span.stop
    while at < len(lines):
        line = strip_ending(lines[at], "\n")
        if is_blank(line):
            at += 1
            continue
        level, name = read_heading(lines[at], "\n")
        if level:
            heading = name
            at += 1
            continue
        stop = block_end(lines, at, fences)
        text = "\n".join(strip_ending(one, "\n") for one in lines[at:stop] if not PROPERTY.fullmatch(one.rstrip("\n")))
        match = ITEM.match(text)
        if match and text[0] in "-*+":
            text = text[match.end() :]
        yield at + 1, heading, text.rstrip()
        at = stop


def block_end(lines: tuple[str, ...], at: int, fences: OpenFences) -> int:
    """The line behind a block: items go on while lines are indented, fences to their end, the rest to a blank line."""
    closing = closing_fence(lines, at, fences)
    if closing >= 0:
        return closing + 1
    is_item = ITEM.match(lines[at]) is not None and not RULE.match(lines[at].rstrip("\n"))
    stop = at + 1
    while stop < len(lines):
        line = lines[stop]
        if is_blank(line):
            following = next((later for later in lines[stop:] if not is_blank(later)), "")
            if not is_item or following[:1] not in (" ", "\t"):
                break
        elif begins_block(lines, stop, is_item, fences):
            break
        stop += 1
    return stop


def begins_block(lines: tuple[str, ...], at: int, in_item: bool, fences: OpenFences) -> bool:
    """Whether a line that is not blank begins something new: a heading, an item, a fence."""
    line = lines[at]
    if read_heading(line, "\n")[0] or closing_fence(lines, at, fences) >= 0:
        return True
    return ITEM.match(line) is not None and (in_item or line[0] in "-*+")
