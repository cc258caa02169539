"""What wakes a watch: events of the file system, or the clock where there are none; and the wish to stop."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from infinimem.store.layout import EVIDENCE, SETTINGS, TOPICS

QUIET = 0.1
"""Seconds without an event after which a save is over: an editor empties a file before it fills it."""
PATIENCE = 2.0
"""Seconds of events without a pause after which the files are looked at all the same."""


class Bell:
    """One thread waits, others ring; a thousand rings before it looks are one.

    `SimpleQueue` because a signal's handler may put into it whatever the thread below is doing.
    """

    def __init__(self) -> None:
        self.rings: SimpleQueue[None] = SimpleQueue()
        self.is_rung = False
        self.is_stopped = False

    def ring(self) -> None:
        """Something may have changed."""
        if not self.is_rung:
            self.is_rung = True
            self.rings.put(None)

    def stop(self) -> None:
        """Stop as soon as what is being done is done."""
        self.is_stopped = True
        self.rings.put(None)

    def wait(self, seconds: float) -> bool:
        """Whether it rang within so many seconds."""
        try:
            self.rings.get(timeout=max(0.0, seconds))
        except Empty:
            return False
        self.is_rung = False
        return True

    def settle(self) -> None:
        """Wait until it has been quiet for a moment, or too long for patience."""
        until = time.monotonic() + PATIENCE
        while not self.is_stopped and time.monotonic() < until and self.wait(QUIET):
            pass


class Eyes:
    """Whether file system events are heard, and the folders that they come from."""

    def __init__(self, root: Path, bell: Bell) -> None:
        self.root = root.resolve()
        self.bell = bell
        self.observer: Any = None
        self.folders: list[tuple[int, int]] = []

    def open(self) -> str:
        """Listen to the folders as they are now; gives why that cannot be, "" when it can."""
        from watchdog.events import FileSystemEventHandler
        from watchdog.observers import Observer
        from watchdog.observers.polling import PollingObserver

        self.close()
        self.folders = identities(self.root)
        logging.getLogger("watchdog").addHandler(logging.NullHandler())  # lost events are looked for, not said
        logging.getLogger("watchdog").propagate = False
        if Observer is PollingObserver:  # which reads every folder every second
            return "this system tells of no changes"
        handler = FileSystemEventHandler()
        handler.dispatch = self.hear  # type: ignore[method-assign]
        try:
            self.observer = Observer()
            # the library's own folder comes last: where the kernel's watches ran out below, it says so
            for folder, below in ((TOPICS, True), (EVIDENCE, True), ("", False)):
                place = (self.root / folder).resolve()  # of a link the link itself would be listened to
                if place.is_dir():
                    self.observer.schedule(handler, str(place), recursive=below, event_filter=heard())
            self.observer.start()
        except OSError as error:
            self.close()
            return error.strerror or str(error)
        return ""

    def close(self) -> None:
        """Listen no more."""
        observer, self.observer = self.observer, None
        if observer is not None:
            with suppress(RuntimeError, OSError):  # one that could not start, or whose folder is gone
                observer.stop()
                observer.join(5.0)

    def is_stale(self) -> bool:
        """Whether a folder was put in the place of one that is listened to."""
        return identities(self.root) != self.folders

    def hear(self, event: Any) -> None:
        """Ring for what may concern the library."""
        places = (str(event.src_path), str(getattr(event, "dest_path", "") or ""))
        if any(place and self.concerns(place, event.is_directory) for place in places):
            self.bell.ring()

    def concerns(self, place: str, is_folder: bool) -> bool:
        """Whether a path is one that `list_files` may list, or that holds such: no swap, backup or hidden file."""
        try:
            parts = Path(place).relative_to(self.root).parts
        except ValueError:
            return True
        if any(part.startswith(".") for part in parts):
            return False
        return is_folder or place.endswith(".md") or parts == (SETTINGS,)


def heard() -> list[Any]:
    """The kinds of events that tell of a change; reading a file is none."""
    from watchdog import events

    return [
        events.FileCreatedEvent,
        events.FileModifiedEvent,
        events.FileClosedEvent,
        events.FileMovedEvent,
        events.FileDeletedEvent,
        events.DirCreatedEvent,
        events.DirMovedEvent,
        events.DirDeletedEvent,
    ]


def identities(root: Path) -> list[tuple[int, int]]:
    """Which folders stand at the paths that are listened to; (0, 0) for none."""
    found = []
    for folder in ("", TOPICS, EVIDENCE):
        try:
            seen = (root / folder).stat()
        except OSError:
            found.append((0, 0))
        else:
            found.append((seen.st_dev, seen.st_ino))
    return found


@contextmanager
def eyes_on(root: Path, bell: Bell, tell: Callable[[str], None], *, poll: bool) -> Iterator[Eyes]:
    """Eyes on a library; where events cannot be had, `tell` is told why and they stay shut."""
    eyes = Eyes(root, bell)
    try:
        if not poll:
            why = eyes.open()
            if why:
                tell(why)
        yield eyes
    finally:
        eyes.close()
