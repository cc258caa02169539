"""`export`: a library, or what a filter lets out of it, in one of three forms."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from infinimem.access.mask import untelling
from infinimem.access.view import rules_in, view
from infinimem.errors import BadInput, StorageFailed
from infinimem.exchange.export.json_lines import export_records, record_line
from infinimem.exchange.export.place import new_file, refuse_inside
from infinimem.exchange.export.source import Source, choose, read_source
from infinimem.model import Document, Filter, Problem
from infinimem.text.document import title_of

if TYPE_CHECKING:
    from infinimem.config import Access
    from infinimem.exchange.export.book import Book
    from infinimem.search.past import PastIndex

FORMATS = ("jsonl", "md", "html")
ENDINGS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".md": "md", ".markdown": "md"}


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export wrote.

    `withheld` counts the entries that the filter and the access rules kept back; `left_out` names files not read.
    """

    format: str
    out: str
    documents: int
    entries: int
    withheld: int
    size: int
    left_out: tuple[Problem, ...] = ()


def export(
    root: Path,
    format: str,
    out: Path | None,
    filter: Filter,
    access: Access,
    *,
    history: bool = False,
    past: PastIndex | None = None,
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> Exported:
    """Write a library to `out`, or to standard output, as `Library.export` promises.

    `past` is what there was at the dates of a filter that has some.
    """
    if format not in FORMATS:
        raise BadInput(f"there is no format {format!r}; use {', '.join(FORMATS)}")
    if out is None and format == "html":
        raise BadInput("a site is a folder; name one: --out DIR")
    if past is not None and format == "jsonl":
        raise BadInput(
            "JSON lines restore the library with its whole history; what held at a date goes out as md or html"
        )
    if out is not None:
        refuse_inside(root, out)
    source = read_source(root)
    if past is not None:
        return export_then(root, source, past, format, out, filter, access, progress)
    chosen = choose(source, filter, access)
    if access:
        chosen = replace(chosen, documents=untelling_documents(root, chosen.documents, access))
    entries = {seq for document in chosen.documents for entry in document.entries for seq in entry.seqs}
    if format == "jsonl":
        size = write_lines(out, (record_line(record) for record in export_records(chosen)))
    else:
        from infinimem.exchange.export.book import book_of

        book = book_of(chosen, name_of(root))
        size = write_book(book, format, out, history, progress)
        if format == "md" and not history:  # what was replaced is not in it
            entries = {seq for leaf in book.leaves for seq in leaf.seqs}
    return Exported(
        format,
        "" if out is None else str(out),
        len(chosen.documents),
        len(entries),
        len(chosen.withheld),
        size,
        source.left_out,
    )


def export_then(
    root: Path,
    source: Source,
    past: PastIndex,
    format: str,
    out: Path | None,
    filter: Filter,
    access: Access,
    progress: Callable[[str, int, int], None],
) -> Exported:
    """Write what held at the dates of a filter, for people to read."""
    from infinimem.exchange.export.then import book_then

    chosen = choose(source, replace(filter, as_of="", known_at="", topic=""), access)
    pages = untelling_documents(root, chosen.documents, access) if access else chosen.documents
    titles = {page.id: title_of(page) for page in pages if page.path.startswith("topics/")}
    book = book_then(past, filter, chosen.withheld, titles, name_of(root), named=not access)
    size = write_book(book, format, out, False, progress)
    entries = {seq for leaf in book.leaves for seq in leaf.seqs}
    where, number = "" if out is None else str(out), len(chosen.withheld)
    return Exported(format, where, len(book.chapters), len(entries), number, size, source.left_out)


def untelling_documents(root: Path, documents: Sequence[Document], access: Access) -> tuple[Document, ...]:
    """The documents that go out, without prose, guests and names that tell what the access rules keep back."""
    rules, secret = rules_in(view(root, "export", access), access)
    told = (untelling(one, rules, secret) if one.path.startswith("topics/") else one for one in documents)
    return tuple(one for one in told if one is not None)


def format_for(out: Path | None) -> str:
    """The format that the name of a file or folder asks for."""
    if out is None:
        return "jsonl"
    return ENDINGS.get(out.suffix.casefold(), "html" if not out.suffix else "jsonl")


def name_of(root: Path) -> str:
    """What a library is called: the name of its folder, or of the one that a folder called memory lies in."""
    return root.resolve().name or "memory"


def write_book(
    book: Book, format: str, out: Path | None, history: bool, progress: Callable[[str, int, int], None]
) -> int:
    """Write what people read; gives its size."""
    if format == "html" and out is not None:
        from infinimem.exchange.export.site import write_site

        return write_site(book, out, progress)
    from infinimem.exchange.export.one_page import markdown_lines

    return write_lines(out, (line.encode("utf-8", "replace") for line in markdown_lines(book, history=history)))


def write_lines(out: Path | None, lines: Iterable[bytes]) -> int:
    """Write the pieces as they come, and give their size."""
    size = 0
    if out is None:
        return write_to_output(lines)
    with new_file(out) as file:
        for line in lines:
            file.write(line)
            size += len(line)
    return size


def write_to_output(lines: Iterable[bytes]) -> int:
    """Write the pieces to standard output; a stream of texts, such as a notebook's, gets texts."""
    size = 0
    stream = getattr(sys.stdout, "buffer", None)
    try:
        for line in lines:
            if stream is None:
                sys.stdout.write(line.decode("utf-8"))
            else:
                stream.write(line)
            size += len(line)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StorageFailed(f"standard output cannot be written: {error.strerror}; the library is as it was") from error
    return size
