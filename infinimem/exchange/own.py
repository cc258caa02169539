"""Our own export, JSON lines that hold a whole library: it is loaded as one, not message by message."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

from infinimem.exchange.export.json_lines import read_package
from infinimem.exchange.export.load import Loaded, is_empty, load_export
from infinimem.exchange.export.merge import plan_merge
from infinimem.exchange.export.pieces import as_document
from infinimem.exchange.inputs import Input
from infinimem.exchange.message import Reading, Unread
from infinimem.store.buffer import hold, next_seq
from infinimem.store.files import read_bytes
from infinimem.store.layout import LOG, STATE
from infinimem.store.read import list_files

HEAD = re.compile(r'\{[^\n]*"format":\s*"infinimem-export"')


def recognises(name: str, head: str) -> bool:
    """Whether a file begins like our export."""
    return HEAD.match(head) is not None


def read(source: Input, *, branches: bool = False) -> Reading:
    """Where there is no file to be loaded whole, as in an archive, that is a problem."""
    yield Unread(source.name, "an export of infinimem is loaded as a whole; unpack it and import the file itself")


def load(root: Path, path: Path, now: datetime, *, dry_run: bool, again: bool = False) -> Loaded:
    """Load an export, or with `dry_run` only see what that would do. Raises `BadInput` where it is no whole export."""
    return preview(root, path, now, again=again) if dry_run else load_export(root, path, now, again=again)


def preview(root: Path, path: Path, now: datetime, *, again: bool = False) -> Loaded:
    """What loading an export would do."""
    package = read_package(path)
    stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    if (root / STATE).is_dir():
        with hold(root) as note:
            if not is_empty(root):
                files = {one: read_bytes(root / one) or b"" for one in (*list_files(root), LOG)}
                merge = plan_merge(package, files, next_seq(root, note), stamp, again=again)
                return Loaded(str(root), False, merge.seqs, merge.topics, merge.known, merge.retired, merge.notes)
    documents = [as_document(name, content) for name, content in package.files.items()]
    seqs = sorted({seq for document in documents for entry in document.entries for seq in entry.seqs})
    return Loaded(str(root), True, tuple(seqs), tuple(one.id for one in documents if one.path.startswith("topics/")))
