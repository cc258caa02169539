"""The library with its index at hand; making a large one for the first time shows how far it has come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from infinimem.cli.request import open_library

if TYPE_CHECKING:
    from infinimem.library import Library

LARGE = 2_000_000
"""Bytes from which on a first index takes long enough to be shown."""


def shown_library(ctx: typer.Context) -> Library:
    """The library that a reading command is about."""
    library = open_library(ctx)
    if not (library.root / ".infinimem" / "index").exists():
        show_indexing(library)
    return library


def show_indexing(library: Library) -> None:
    """Build the index of a large library with counts on the terminal; a small one is not worth a word."""
    from infinimem.cli.progress import progress
    from infinimem.indexing import Reader
    from infinimem.search.index import FileState, Index, Parsed
    from infinimem.store.read import list_files

    listing = {path: FileState(*seen) for path, seen in list_files(library.root).items()}
    if sum(state.size for state in listing.values()) < LARGE:
        return
    reader = Reader(library.root)
    done = 0
    with progress() as show:

        def read_units(path: str) -> Parsed:
            nonlocal done
            show("indexing", done, len(listing))
            done += 1
            return reader.read_units(path)

        index = Index(library.root, library.settings.text("language"))
        index.refresh(listing, read_units, reader.read_tail)
