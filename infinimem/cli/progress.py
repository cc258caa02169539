"""How far long work has come: a bar on standard error, only where a person looks at it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from infinimem.cli.talk import is_terminal

if TYPE_CHECKING:
    from pathlib import Path

    import typer

    from infinimem.library import Library

Progress = Callable[[str, int, int], None]

LARGE = 2_000_000
"""Bytes from which on a first index takes long enough to be shown."""


def is_watched() -> bool:
    """Whether someone looks at standard error on a terminal that can redraw a line."""
    return is_terminal(sys.stderr) and os.environ.get("TERM", "") != "dumb"


@contextmanager
def progress() -> Iterator[Progress]:
    """A callback that shows stage, counts and time left on one line of a terminal, and wipes it at the end."""
    if not is_watched():
        yield lambda stage, done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    plain = bool(os.environ.get("NO_COLOR"))
    bars = Bars(
        TextColumn("{task.description}", style="none", markup=False),
        BarColumn(30, complete_style="cyan", finished_style="cyan", pulse_style="cyan"),
        TextColumn("{task.fields[counts]}", style="none", markup=False),
        TimeRemainingColumn(compact=True),
        console=Console(stderr=True, color_system=None if plain else "auto"),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )

    def show(stage: str, done: int, total: int) -> None:
        counts = f"{done:,}/{total:,}" if total > 1 else ""
        if not bars.tasks or bars.tasks[0].description != stage:
            for old in bars.task_ids:
                bars.remove_task(old)
            bars.add_task(stage, total=total if total > 1 else None, completed=done, counts=counts)
        bars.update(bars.task_ids[0], completed=done, counts=counts)

    with bars:
        yield show


def libraries_to_show(folder: Path) -> int:
    """How many libraries lie below a folder, for whoever looks at how far work has come; 0 where nobody does."""
    if not is_watched():
        return 0
    from infinimem.fleet.below import libraries_below

    return sum(1 for _ in libraries_below(folder))


def shown_library(ctx: typer.Context) -> Library:
    """The library that a command is about; making the first index of a large one shows how far it has come."""
    from infinimem.cli.request import open_library

    library = open_library(ctx)
    if is_watched() and not (library.root / ".infinimem" / "index").exists():
        from infinimem.store.read import list_files

        if sum(seen[0] for seen in list_files(library.root).values()) >= LARGE:
            with progress() as show:
                library.index(progress=show)
    return library
