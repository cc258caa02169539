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

    def __init__(self, limit: float) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            start = START.format(path=sys.path)
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", start, str(theirs.fileno()), str(limit)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # an interrupt is the parent's; what is half done is finished
                # the index keeps threads, and each would keep freed memory for itself
                env={**os.environ, "MALLOC_ARENA_MAX": "1", "OPENBLAS_NUM_THREADS": "1"},
            )
        self.pipe = Connection(ours.detach())
        self.limit = limit
        self.piece: Sequence[Any] = ()
        self.tries = 0
        self.taken = 0
        self.until = 0.0
        self.is_late = False

    def give(self, task: str, piece: Sequence[Any], tries: int) -> bool:
        """Hand over a piece; False if nobody is there any more."""
        try:
            self.pipe.send((task, piece))
        except OSError:
            self.leave()
            return False
        self.piece, self.tries, self.taken = piece, tries, self.taken + 1
        self.until = monotonic() + self.limit * len(piece) + GRACE
        return True

    def result(self) -> Any:
        """What became of the piece. Raises `EOFError` if the process died over it."""
        try:
            return self.pipe.recv()
        except OSError as error:
            raise EOFError from error

    def end(self) -> None:
        """Kill a process that its own alarm did not end: it is stopped, or waits for a dead disk."""
        self.process.send_signal(signal.SIGKILL)
        self.is_late, self.until = True, monotonic() + GRACE

    def leave(self) -> int:
        """Let the process go; gives its exit code."""
        self.pipe.close()
        return self.process.wait()


class Crew:
    """Some processes, started when there is work, ended with the `with` block; each item may take `limit` seconds."""

    def __init__(self, processes: int, limit: float) -> None:
        self.processes = processes
        self.limit = limit
        self.idle: list[Hand] = []
        self.busy: dict[Connection, Hand] = {}

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        hands = (*self.idle, *self.busy.values())
        for hand in hands:
            hand.pipe.close()
        for hand in hands:
            hand.process.wait()
        self.idle, self.busy = [], {}

    def work_through(
        self, task: Callable[[Any], Any], pieces: Iterable[Sequence[Any]], lost: Callable[[Any, bool], Any]
    ) -> Iterator[Any]:
        """Have `task`, a function of a module, done to every item of every piece; gives each result as it comes.

        When a process dies over a piece, its items are tried one by one. An item that ends three processes, or takes
        longer than it may, is `lost`, which makes a result of it and of whether it was time that ran out. No more
        pieces are read ahead than there are processes. One call at a time.
        """
        name = f"{task.__module__}:{task.__qualname__}"
        fresh = iter(pieces)
        again: deque[tuple[Sequence[Any], int]] = deque()
        while True:
            while len(self.busy) < self.processes:
                # what a process died over comes last: whatever killed it may have passed by then
                job = next(((piece, 0) for piece in fresh), None) or (again.popleft() if again else None)
                if job is None:
                    break
                hand = self.idle.pop() if self.idle else Hand(self.limit)
                if hand.give(name, *job):
                    self.busy[hand.pipe] = hand
                else:
                    again.appendleft(job)
            if not self.busy:
                return
            for hand in self.ready():
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
                    self.idle.append(hand)
                else:
                    hand.leave()
                yield from results

    def ready(self) -> list[Hand]:
        """Those that have done their piece, or have died over it; none where time ran out first."""
        first = min(hand.until for hand in self.busy.values())
        pipes = wait(list(self.busy), max(0.0, first - monotonic()))
        for hand in self.busy.values():
            if hand.until < monotonic():
                hand.end()
        return [self.busy.pop(pipe) for pipe in pipes if isinstance(pipe, Connection)]


def serve(descriptor: str, limit: str) -> None:
    """Work through the pieces that come, until no more can come."""
    with Connection(int(descriptor)) as pipe:
        while True:
            try:
                task, piece = pipe.recv()
            except (EOFError, OSError):
                return
            module, _, name = task.partition(":")
            work = getattr(import_module(module), name)
            results = []
            for item in piece:
                signal.setitimer(signal.ITIMER_REAL, float(limit))
                results.append(work(item))
                signal.setitimer(signal.ITIMER_REAL, 0)
            try:
                pipe.send(results)
            except OSError:
                return


def cores() -> int:
    """How many processes can compute at once."""
    return os.cpu_count() or 1
