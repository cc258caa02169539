"""Many libraries below one folder, one for each agent or user: flushed side by side, none by another's fault."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from infinimem.errors import InfinimemError
from infinimem.store.layout import is_library

AHEAD = 4
"""Libraries handed to each process in advance: so many have to be looked at again when one of them kills it."""
DIED = "the process that flushed it died; nothing of it is lost, flush it alone to see why"


@dataclass(frozen=True, slots=True)
class Flushed:
    """What became of one library: `flushed`, `nothing` to do, or `failed`; `entries` left its buffer.

    `why` is what failed, or what a flush left undone.
    """

    path: str
    status: str
    entries: int = 0
    why: str = ""


def libraries_below(root: Path) -> Iterator[Path]:
    """The libraries below a folder, by name; a library has none inside. Hidden folders and links are left alone."""
    try:
        if is_library(root):
            yield root
            return
        names = sorted(entry.name for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False))
    except InfinimemError:  # of a later format: the flush says so
        yield root
        return
    except OSError:
        return
    for name in names:
        if not name.startswith("."):
            yield from libraries_below(root / name)


def flush_one(path: str, planner: str) -> Flushed:
    """Flush one library if it is due; whatever happens is told, never raised."""
    from infinimem.library import Library

    try:
        report = Library.open(path).flush(planner, if_due=True)
    except InfinimemError as error:
        return Flushed(path, "failed", why=str(error))
    except Exception as error:  # one library's trouble, of whatever kind, is not the others'
        return Flushed(path, "failed", why=f"unexpected {type(error).__name__}: {error}")
    if not report.due or not report.flushed:
        return Flushed(path, "nothing", why="; ".join(report.failures))
    left = [*report.failures, *report.notes, *(outcome.why for outcome in report.skipped)]
    return Flushed(path, "flushed", len(report.seqs), "; ".join(left))


def flush_below(
    root: Path, planner: str = "auto", *, processes: int = 0, progress: Callable[[int], None] = lambda done: None
) -> Iterator[Flushed]:
    """Flush every library below a folder that is due, several at once; gives each as it is done.

    A process that is killed takes no other library with it: what it had been handed is done again, one by one. Run it
    again after an interruption: what is done is no longer due.
    """
    paths = map(str, libraries_below(root))
    done = 0
    workers = processes or os.cpu_count() or 1
    context = multiprocessing.get_context("spawn")
    while True:
        waiting: dict[Future[Flushed], str] = {}
        suspects: list[str] = []
        with ProcessPoolExecutor(workers, mp_context=context) as pool:
            try:
                for path in islice(paths, workers * AHEAD):
                    waiting[pool.submit(flush_one, path, planner)] = path
                while waiting:
                    ready, _ = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in ready:
                        result = future.result()
                        del waiting[future]
                        done += 1
                        progress(done)
                        yield result
                        for path in islice(paths, 1):
                            waiting[pool.submit(flush_one, path, planner)] = path
            except BrokenProcessPool:
                suspects = [*waiting.values()]
        if not suspects:
            return
        for path in suspects:
            done += 1
            progress(done)
            yield alone(path, planner)


def alone(path: str, planner: str) -> Flushed:
    """Flush one library in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(flush_one, path, planner).result()
        except BrokenProcessPool:
            return Flushed(path, "failed", why=DIED)
