"""The library of the paper's own package: topic documents and CURRENT files whose entries are signed like ours."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime
from pathlib import PurePosixPath

from infinimem.exchange.inputs import Input
from infinimem.exchange.message import Message, Reading, Skipped, Unread, time_of, title_of
from infinimem.store.buffer import SIGNED
from infinimem.text.document import parse
from infinimem.text.document import title_of as title_in
from infinimem.text.signature import render_seqs

DRAFT = re.compile(r"REWRITE_", re.IGNORECASE)
BUFFER = re.compile(r"CURRENT(?:_[^/]*)?$")
WRITTEN = ("%d %B %Y", "%B %d %Y", "%d %b %Y", "%b %d %Y", "%Y/%m/%d", "%B %Y")
LARGEST = 64 << 20
OURS = ("seq", "time", "source", "observed", "key", "id", "rev", "event", "supersedes", "links")


def recognises(name: str, head: str) -> bool:
    """Whether a file is Markdown with signed entries."""
    return name.lower().endswith(".md") and SIGNED.search(head.encode("utf-8", "surrogateescape")) is not None


def read(source: Input, *, branches: bool = False) -> Reading:
    """Every signed entry with the title of its document; drafts of the package's rewriting are left out."""
    if source.size > LARGEST:
        yield Unread(source.name, f"a document of more than {LARGEST >> 20} MB")
        return
    with source.open() as file:
        document = parse(source.within, file.read())
    stem = PurePosixPath(source.within).stem
    if DRAFT.match(stem):
        yield Skipped("draft", len(document.entries))
        return
    is_buffer = BUFFER.match(stem) is not None
    title = "" if is_buffer else title_of(title_in(document))
    for entry in document.entries:
        place = f"{source.name}:{entry.span.start + 1}"
        if not entry.text.strip():
            yield Skipped("empty")
            continue
        time = moment_of(entry.time)
        fields = [pair for pair in entry.signature.fields if pair[0] not in OURS and pair[1]]
        if entry.time and not time:
            fields.append(("said", entry.time))
        seqs = render_seqs(entry.seqs)
        fields.append(("label", seqs))
        topic, heading = ("", "") if is_buffer else (title, entry.headings[-1] if len(entry.headings) > 1 else "")
        yield Message(
            f"paper {seqs}\n{entry.text}", entry.text, place, entry.source, time, source.within, title, tuple(fields),
            topic, heading,
        )  # fmt: skip


def moment_of(text: str) -> str:
    """A time as entries of the package have it, `8 May 2023` among them; "" where it is none."""
    time = time_of(text)
    words = " ".join(text.replace(",", " ").split())
    for form in WRITTEN if not time else ():
        with suppress(ValueError):
            return datetime.strptime(words, form).date().isoformat()
    return time
