"""The libraries below a folder flushed by a cluster of machines that all see the folder, on Dask.

`pip install 'infinimem[cluster]'`. Whatever the cluster does, a library is flushed once: what is done is no longer due,
and of two workers that have the same one, each waits for the other's lock. So Dask may try again as often as it likes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from infinimem.fleet.flush import Flushed, Order, flush_by, flush_one

if TYPE_CHECKING:
    from distributed import Client

AHEAD = 4
"""Libraries that each worker is handed in advance, so that none waits for the scheduler."""
KILLED = "the workers that flushed it died; nothing of it is lost, flush it alone to see why"


def flush_on_cluster(
    client: Client, root: Path, planner: str = "auto", *, progress: Callable[[int], None] = lambda done: None
) -> Iterator[Flushed]:
    """Flush every library below a folder that is due, by the workers of a Dask cluster; gives each as it is done.

    The folder has the same path on every worker, and its file system honours `flock` between them. Workers should have
    one thread each: a thread that dies takes the process along. A library whose workers die, as many as Dask allows
    (`distributed.scheduler.allowed-failures`), is reported, and the others are flushed. Run it again after an
    interruption: only the rest is done.
    """
    yield from flush_by(lambda orders: spread(client, orders), root, planner, progress)


def spread(client: Client, orders: Iterator[Order]) -> Iterator[Flushed]:
    """Have orders carried out by a cluster, as many handed out in advance as keep it busy."""
    from distributed import as_completed

    def hand_out(number: int) -> list[object]:
        return [client.submit(flush_one, order, pure=False, key=order.path) for order in islice(orders, number)]

    width = sum(client.nthreads().values()) or 1
    waiting = as_completed(hand_out(width * AHEAD))
    for future in waiting:
        yield future.result() if future.status == "finished" else Flushed(future.key, "failed", why=why_not(future))
        for more in hand_out(1):
            waiting.add(more)


def why_not(future: object) -> str:
    """Why a library was not flushed by any worker."""
    from distributed import Future
    from distributed.scheduler import KilledWorker

    assert isinstance(future, Future)
    error = future.exception()
    return KILLED if isinstance(error, KilledWorker) else f"unexpected {type(error).__name__}: {error}"
