"""How far long work has come: one line on standard error, only where a person looks at it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from infinimem.cli.show import duration
from infinimem.cli.talk import flush, is_terminal, write_to

Progress = Callable[[str, int, int], None]


@contextmanager
def progress() -> Iterator[Progress]:
    """A callback that shows stage, counts and time left on one line of a terminal, and wipes it at the end."""
    if not is_terminal(sys.stderr) or os.environ.get("TERM", "") == "dumb":
        yield lambda stage, done, total: None
        return
    line = ProgressLine(sys.stderr)
    try:
        yield line.show
    finally:
        line.clear()


class ProgressLine:
    """One line that is written over and over, at most ten times a second."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.stage = ""
        self.began = self.drawn = 0.0

    def show(self, stage: str, done: int, total: int) -> None:
        """Draw the state of a stage: `route  12/40  3 s left`."""
        now = time.monotonic()
        if stage != self.stage:
            self.stage, self.began, self.drawn = stage, now, 0.0
        if now - self.drawn < 0.1:
            return
        self.drawn = now
        counts = f"  {done:,}/{total:,}" if total > 1 else ""
        passed = now - self.began
        left = f"  {duration(passed / done * (total - done))} left" if done and passed > 1 else ""
        write_to(self.stream, f"\r\x1b[K{stage}{counts}{left}")
        flush(self.stream)

    def clear(self) -> None:
        """Wipe the line, if one was drawn."""
        if self.drawn:
            write_to(self.stream, "\r\x1b[K")
            flush(self.stream)
