"""Processes that stay and work through many pieces of work; one that dies takes no piece with it.

Each piece is in the hands of one process at a time, so that a death, or a piece that takes too long, is its alone. A
process is ended by its own alarm clock, or by the end of the pipe it reads: none outlives whoever started it for long.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from multiprocessing.connection import Connection, wait
from time import monotonic
from typing import Any

TRIES = 3
"""Processes that a piece may take with it before it counts as lost: one that is killed by chance is tried again."""
PIECES = 2_000
"""Pieces after which a process is replaced by a new one, so that what it never gives back stays bounded."""
MOST = 32
"""Processes at once, however many cores there are."""
GRACE = 5.0
"""Seconds after which a process is killed that its own alarm should have ended."""
START = "import sys; sys.path[:] = {path!r}; from infinimem.fleet.crew import serve; serve(*sys.argv[1:])"


class Hand:
    """One process and the piece of work that it has."""

    def __init__(self, task: str, limit: float) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-P", "-c", START.format(path=sys.path), task, str(theirs.fileno()), str(limit)]
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # an interrupt is the parent's; what is half done is finished
                # the index keeps threads, and each would keep freed memory for itself
                env={**os.environ, "MALLOC_ARENA_MAX": "1", "OPENBLAS_NUM_THREADS": "1"},
            )
        self.pipe = Connection(ours.detach())
        self.piece: Any = None
        self.tries = 0
        self.taken = 0
        self.until = 0.0
        self.is_late = False

    def give(self, piece: Any, tries: int, limit: float) -> bool:
        """Hand over a piece, each item of which may take `limit` seconds; False if nobody is there any more."""
        try:
            self.pipe.send(piece)
        except OSError:
            self.leave()
            return False
        self.piece, self.tries, self.taken = piece, tries, self.taken + 1
        self.until = monotonic() + limit * len(piece) + GRACE
        return True

    def result(self) -> Any:
        """What became of the piece. Raises `EOFError` if the process died over it."""
        try:
            return self.pipe.recv()
        except OSError as error:
            raise EOFError from error

    def leave(self) -> int:
        """Let the process go; gives its exit code."""
        self.pipe.close()
        return self.process.wait()


def work_through(
    task: Callable[[Any], Any],
    pieces: Iterable[Sequence[Any]],
    lost: Callable[[Any, bool], Any],
    *,
    processes: int,
    limit: float,
) -> Iterator[Any]:
    """Have `task`, a function of a module, done to every item of every piece, by several processes; gives each result.

    `task` takes a piece, a sequence of items, and gives a list of as many results. When a process dies over a piece,
    its items are tried one by one; what ends three of them, or takes longer than `limit` seconds, is `lost`, which
    makes a result of it and of whether it was time that ran out. At most so many pieces are read ahead as there are
    processes.
    """
    name = f"{task.__module__}:{task.__qualname__}"
    fresh = iter(pieces)
    again: deque[tuple[Sequence[Any], int]] = deque()
    idle: list[Hand] = []
    busy: dict[Connection, Hand] = {}
    try:
        while True:
            while len(busy) < processes:
                # what a process died over comes last: whatever killed it may have passed by then
                job = next(((piece, 0) for piece in fresh), None) or (again.popleft() if again else None)
                if job is None:
                    break
                hand = idle.pop() if idle else Hand(name, limit)
                if hand.give(*job, limit):
                    busy[hand.pipe] = hand
                else:
                    again.appendleft(job)
            if not busy:
                return
            ready = wait(list(busy), max(0.0, min(hand.until for hand in busy.values()) - monotonic()))
            for hand in busy.values():
                if hand.until < monotonic():  # its alarm did not ring: it is stopped, or waits for a dead disk
                    hand.process.send_signal(signal.SIGKILL)
                    hand.is_late = True
            for pipe in ready:
                assert isinstance(pipe, Connection)
                hand = busy.pop(pipe)
                try:
                    results = hand.result()
                except EOFError:
                    is_late = hand.leave() == -signal.SIGALRM or hand.is_late
                    if len(hand.piece) > 1:
                        again.extend(((item,), 0) for item in hand.piece)
                    elif is_late or hand.tries + 1 >= TRIES:
                        yield lost(hand.piece[0], is_late)
                    else:
                        again.append((hand.piece, hand.tries + 1))
                    continue
                if hand.taken < PIECES:
                    idle.append(hand)
                else:
                    hand.leave()
                yield from results
    finally:
        for hand in (*idle, *busy.values()):
            hand.pipe.close()
        for hand in (*idle, *busy.values()):
            hand.process.wait()


def serve(task: str, descriptor: str, limit: str) -> None:
    """Work through the pieces that come, until no more can come."""
    module, _, name = task.partition(":")
    work = getattr(import_module(module), name)
    with Connection(int(descriptor)) as pipe:
        while True:
            try:
                piece = pipe.recv()
            except (EOFError, OSError):
                return
            signal.setitimer(signal.ITIMER_REAL, float(limit) * len(piece))
            results = work(piece)
            signal.setitimer(signal.ITIMER_REAL, 0)
            try:
                pipe.send(results)
            except OSError:
                return


def cores() -> int:
    """How many processes can compute at once."""
    return os.cpu_count() or 1
