"""The libraries below a folder flushed, searched and asked by a cluster of machines that all see the folder, on Dask.

`pip install 'infinimem[cluster]'`. Whatever the cluster does, a library is flushed once: what is done is no longer due,
and of two workers that have the same one, each waits for the other's lock. So Dask may try again as often as it likes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infinimem.fleet.ask import Answered, ask_by
from infinimem.fleet.flush import Flushed, Order, flush_by, flush_one
from infinimem.fleet.search import LIMIT, Across, Ask, search_by
from infinimem.library import MOST_HITS
from infinimem.model import Filter

if TYPE_CHECKING:
    from distributed import Client, Future

AHEAD = 4
"""Pieces of work that each worker is handed in advance, so that none waits for the scheduler."""
KILLED = "the workers that flushed it died; nothing of it is lost, flush it alone to see why"


class Cluster:
    """A Dask cluster as what works through pieces of work."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.numbers = count()

    def work_through(
        self, task: Callable[[Any], Any], pieces: Iterable[Sequence[Any]], lost: Callable[[Any, bool], Any]
    ) -> Iterator[Any]:
        """Have `task`, a function of a module, done to every item of every piece; gives each result as it comes.

        When the workers of a piece die, as many as Dask allows (`distributed.scheduler.allowed-failures`), its items
        are tried one by one; one whose workers die again is `lost`. Nothing says how long an item may take.
        """
        from distributed import as_completed

        fresh = iter(pieces)
        handed: dict[str, Sequence[Any]] = {}

        def hand_out(several: Iterable[Sequence[Any]]) -> list[Future[Any]]:
            futures = []
            for piece in several:
                key = f"infinimem-{task.__name__}-{id(self)}-{next(self.numbers)}"
                handed[key] = piece
                futures.append(self.client.submit(each, task, tuple(piece), pure=False, key=key))
            return futures

        width = sum(self.client.nthreads().values()) or 1
        waiting = as_completed(hand_out(islice(fresh, width * AHEAD)))
        for future in waiting:
            piece = handed.pop(future.key)
            if future.status == "finished":
                yield from future.result()
                waiting.update(hand_out(islice(fresh, 1)))
            elif len(piece) > 1:
                waiting.update(hand_out([item] for item in piece))
            else:
                raise_if_not_killed(future)
                yield lost(piece[0], False)
                waiting.update(hand_out(islice(fresh, 1)))


def each(task: Callable[[Any], Any], piece: Sequence[Any]) -> list[Any]:
    """A task done to each of some items; it tells what goes wrong, and raises nothing."""
    return [task(item) for item in piece]


def raise_if_not_killed(future: Future[Any]) -> None:
    """Raise what a future failed of, unless its workers died: a task of ours never raises, so it is not the item's."""
    from distributed.scheduler import KilledWorker

    error = future.exception()
    if isinstance(error, BaseException) and not isinstance(error, KilledWorker):
        raise error


def flush_on_cluster(
    client: Client, root: Path, planner: str = "auto", *, progress: Callable[[int], None] = lambda done: None
) -> Iterator[Flushed]:
    """Flush every library below a folder that is due, by the workers of a Dask cluster; gives each as it is done.

    The folder has the same path on every worker, and its file system honours `flock` between them. Workers should have
    one thread each: a thread that dies takes the process along. A library whose workers die, as many as Dask allows
    (`distributed.scheduler.allowed-failures`), is reported, and the others are flushed. Run it again after an
    interruption: only the rest is done.
    """

    def lost(order: Order, is_late: bool) -> Flushed:
        return Flushed(order.path, "failed", why=KILLED)

    yield from flush_by(
        lambda orders: Cluster(client).work_through(flush_one, ((order,) for order in orders), lost),
        root,
        planner,
        progress,
    )


def search_on_cluster(
    client: Client,
    root: Path,
    query: str,
    k: int = 10,
    *,
    filter: Filter = Filter(),
    audience: str = "",
    progress: Callable[[int], None] = lambda done: None,
) -> Across:
    """What `search_below` finds, the libraries searched by the workers of a Dask cluster that all see the folder."""
    asked = Ask("", query, min(k, MOST_HITS), filter, audience)
    return search_by(Cluster(client), root, asked, LIMIT, progress)


def ask_on_cluster(
    client: Client,
    root: Path,
    question: str,
    *,
    reader: str = "auto",
    k: int = 0,
    filter: Filter = Filter(),
    audience: str = "",
    hear: Callable[[str], None] | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> Answered:
    """What `ask_below` says, the libraries asked by the workers of a Dask cluster; a model is asked from here."""
    return ask_by(
        Cluster(client), root, question, reader=reader, k=k, filter=filter, audience=audience, hear=hear,
        progress=progress,
    )  # fmt: skip
