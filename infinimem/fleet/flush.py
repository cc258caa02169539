"""Every library below a folder flushed, those that are due, several at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from infinimem.errors import InfinimemError, NeedsAttention
from infinimem.fleet.below import libraries_below
from infinimem.fleet.crew import MOST, Crew, cores
from infinimem.store.buffer import hold
from infinimem.store.layout import FLUSH_LOCK
from infinimem.store.lock import exclusive

PATIENCE, TOGETHER = 2.0, 60.0
"""Seconds that a library which another process has is waited for, when the others are done; and all such together."""
LIMIT = 1800.0
"""Seconds that one library may take, a model's answers included."""
LONGEST = 500
"""Characters of what is told of one library."""
DIED = "the process that flushed it died, three times; nothing of it is lost, flush it alone to see why"
LATE = "it took longer than {limit:g} s and was left; nothing of it is lost, flush it alone to see why"


@dataclass(frozen=True, slots=True)
class Flushed:
    """What became of one library: `flushed`, `nothing` to do, or `failed`; `entries` left its buffer.

    `why` is what failed, or what a flush left undone.
    """

    path: str
    status: str
    entries: int = 0
    why: str = ""


class Order(NamedTuple):
    """A library to flush, by which planner, and for how long it is waited for."""

    path: str
    planner: str
    patience: float


IN_USE = "in use"
"""The status of a library that another process has, until it is tried again."""


def flush_one(order: Order) -> Flushed:
    """Flush one library if it is due; whatever happens is told, never raised."""
    from infinimem.consolidate.story import in_runs
    from infinimem.library import Library

    path, planner, patience = order
    root = Path(path)
    try:
        with exclusive(root / FLUSH_LOCK, wait=patience, doing="flush"), hold(root, wait=patience):
            pass
    except NeedsAttention as error:
        return Flushed(path, IN_USE, why=str(error)[:LONGEST])
    except (InfinimemError, OSError) as error:
        return Flushed(path, "failed", why=str(error)[:LONGEST])
    try:
        report = Library.open(path, keep_index=False).flush(planner, if_due=True)
    except InfinimemError as error:
        return Flushed(path, "failed", why=str(error)[:LONGEST])
    except Exception as error:  # one library's trouble, of whatever kind, is not the others'
        return Flushed(path, "failed", why=f"unexpected {type(error).__name__}: {error}"[:LONGEST])
    if not report.due or not report.flushed:
        return Flushed(path, "nothing", why="; ".join(report.failures)[:LONGEST])
    left = [*report.failures, *report.notes, *(why for _, why in in_runs(report.skipped))]
    return Flushed(path, "flushed", len(report.seqs), "; ".join(left)[:LONGEST])


def flush_below(
    root: Path,
    planner: str = "auto",
    *,
    processes: int = 0,
    limit: float = LIMIT,
    progress: Callable[[int], None] = lambda done: None,
) -> Iterator[Flushed]:
    """Flush every library below a folder that is due, several at once; gives each as it is done.

    A process that dies takes no library with it: the one that it had is tried again by another. What another process
    has is left for last. Run it again after an interruption: what is done is no longer due.
    """
    processes = processes or min(2 * cores(), MOST)  # half of the time goes to waiting for the disk

    def lost(order: Order, is_late: bool) -> Flushed:
        return Flushed(order.path, "failed", why=LATE.format(limit=limit) if is_late else DIED)

    with Crew(processes, limit) as crew:
        yield from flush_by(
            lambda orders: crew.work_through(flush_one, ((order,) for order in orders), lost), root, planner, progress
        )


def flush_by(
    carry_out: Callable[[Iterator[Order]], Iterator[Flushed]],
    root: Path,
    planner: str,
    progress: Callable[[int], None] = lambda done: None,
) -> Iterator[Flushed]:
    """Flush every library below a folder that is due, by whatever has `flush_one` done to each order.

    What another process has is left for last.
    """
    unread: list[Flushed] = []
    in_use: list[str] = []
    done = 0
    paths = libraries_below(root, lambda folder, why: unread.append(Flushed(str(folder), "failed", why=why)))
    for one in carry_out(Order(str(path), planner, 0.0) for path in paths):
        if one.status == IN_USE:
            in_use.append(one.path)
            continue
        done += 1
        progress(done)
        yield one
    until = monotonic() + TOGETHER
    later = (Order(path, planner, max(0.0, min(PATIENCE, until - monotonic()))) for path in in_use)
    for one in carry_out(later):
        done += 1
        progress(done)
        yield Flushed(one.path, "failed", why=one.why) if one.status == IN_USE else one
    yield from unread
