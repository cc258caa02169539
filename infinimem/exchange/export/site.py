"""The library as a folder of web pages that read from a disk: no server, no network, nothing that a note could run.

Plain strings and no template language: six kinds of page, one skeleton, and `escaped` around whatever was stored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path

from infinimem.exchange.export.book import Book
from infinimem.exchange.export.layout import Site, address, laid_out
from infinimem.exchange.export.markup import UNSEEN
from infinimem.exchange.export.pages import change_pages, chapter_pages, index_page, month_pages, timeline_page
from infinimem.exchange.export.place import write_folder

ASSETS = ("site.css", "site.js", "theme.js")


def write_site(book: Book, out: Path, progress: Callable[[str, int, int], None]) -> int:
    """Write the pages; gives their size. Raises `BadInput` for a folder with anything else in it."""
    site = laid_out(book)
    about = {"infinimem": "export", "format": "infinimem-site", "version": "1"}
    total = sum(map(len, (*site.pages.values(), *site.months.values())))

    def told() -> Iterator[tuple[str, bytes]]:
        for number, (path, text) in enumerate(all_pages(site)):
            progress("pages", min(number, total), total)
            yield path, text.encode("utf-8", "replace")

    return write_folder(out, told(), about)


def all_pages(site: Site) -> Iterator[tuple[str, str]]:
    """Every file of the site, with its content."""
    for name in ASSETS:
        yield name, (files("infinimem.exchange.export") / "assets" / name).read_text("utf-8")
    yield "entries.js", search_data(site)
    yield "index.html", index_page(site)
    for chapter in (*site.book.chapters, site.book.waiting):
        yield from chapter_pages(site, chapter)
    yield "timeline.html", timeline_page(site)
    for month in site.months:
        yield from month_pages(site, month)
    yield from change_pages(site)


def search_data(site: Site) -> str:
    """Every entry as the search in the page reads it: a script, because a page on a disk may fetch nothing."""
    pages: list[tuple[str, str]] = []
    numbers: dict[str, int] = {}
    rows: list[list[object]] = []
    for leaf, topic in site.entries:
        path = site.places[leaf.seq].partition("#")[0]
        if path not in numbers:
            numbers[path] = len(pages)
            pages.append((address(path), site.titles.get(topic, "").translate(UNSEEN)))
        source = leaf.source.translate(UNSEEN)
        noted = [1] if leaf.is_noted else []
        rows.append([leaf.seq, numbers[path], leaf.date, source, leaf.why, leaf.text.translate(UNSEEN), *noted])
    value = json.dumps([pages, rows], ensure_ascii=False, separators=(",", ":"))
    return f"infinimemEntries({value});\n"
