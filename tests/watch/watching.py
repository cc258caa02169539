"""A real `infinimem watch` beside a test, and what it says, line by line."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema

from infinimem.cli.schemas import schema_of

LONG = 60.0
"""Seconds after which something that never comes has failed; nothing here takes a tenth of that."""
Event = dict[str, Any]


class Watching:
    """A watch of a library, as a process; what it prints is read as it comes."""

    def __init__(self, root: Path, *options: str, before: Sequence[str] = (), **variables: str) -> None:
        self.root = root
        self.process = subprocess.Popen(
            [*before, sys.executable, "-m", "infinimem", "--library", str(root), "watch", *options],
            cwd=root.parent,
            env={**os.environ, "HOME": str(root.parent), "XDG_CONFIG_HOME": str(root.parent / "config"), **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        self.seen: list[Event] = []
        self.events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self.talk: list[str] = []
        self.readers = [
            threading.Thread(target=self.read_events, daemon=True),
            threading.Thread(target=self.read_talk, daemon=True),
        ]
        for reader in self.readers:
            reader.start()

    def read_events(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self.events.put(json.loads(line))
        self.events.put(None)

    def read_talk(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            self.talk.extend(lines)

    def until(self, event: str, path: str = "", wanted: Callable[[Event], bool] = lambda one: True) -> Event:
        """The next event of a kind, about a path; the others are kept in `seen`."""
        until = time.monotonic() + LONG
        while True:
            try:
                one = self.events.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no {event} {path}; seen: {self.seen}; said: {self.talk}") from None
            assert one is not None, f"the watch ended before {event} {path}; seen: {self.seen}; said: {self.talk}"
            self.seen.append(one)
            if one["event"] == event and (not path or one["path"] == path) and wanted(one):
                return one

    def problems(self) -> list[Event]:
        """The problems seen so far."""
        return [one for one in self.seen if one["event"] == "problem"]

    def quiet_until_saved(self, path: Path) -> list[Event]:
        """Save a file that is nothing special, and give what was said up to its news: whatever came before is in it."""
        path.write_text("# A guest\n")
        before = len(self.seen)
        self.until("saved", path.relative_to(self.root).as_posix())
        return self.seen[before:-1]

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it by a signal; gives the exit code."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """Wait for its end; gives the exit code."""
        code = self.process.wait(LONG)
        for reader in self.readers:
            reader.join(LONG)
        while not self.events.empty():
            one = self.events.get()
            if one is not None:
                self.seen.append(one)
        return code


@contextmanager
def watching(root: Path, *options: str, **more: Any) -> Iterator[Watching]:
    """A watch that has begun, ended at the latest with the test."""
    one = Watching(root, "--json", *options, **more)
    try:
        one.until("watching")
        yield one
    finally:
        if one.process.poll() is None:
            one.process.kill()
        one.wait()
        assert not [line for line in one.talk if "Traceback" in line], one.talk
        for event in one.seen[:20]:
            jsonschema.validate(event, schema_of("watch"))


# The ways in which editors save


def truncating(path: Path, content: bytes) -> None:
    """nano, VS Code, Obsidian: the file is emptied and filled."""
    with path.open("wb") as file:
        file.flush()
        file.write(content)


def replacing(path: Path, content: bytes) -> None:
    """gedit, many a sync tool: a new file is renamed over the old one."""
    beside = path.with_name(f".goutputstream-{path.name}")
    beside.write_bytes(content)
    beside.replace(path)


def backing_up(path: Path, content: bytes) -> None:
    """vim with backupcopy=no, Emacs: the old file becomes the backup, a new one takes its name."""
    backup = path.with_name(f"{path.name}~")
    if path.exists():
        path.rename(backup)
    path.write_bytes(content)
    backup.unlink(missing_ok=True)


def probing(path: Path, content: bytes) -> None:
    """vim's way of finding out whether it may create files, then its save."""
    probe = path.with_name("4913")
    probe.write_bytes(b"")
    probe.unlink()
    backing_up(path, content)


def moving_in(path: Path, content: bytes) -> None:
    """An editor that writes in its own temporary folder and moves the result here."""
    beside = path.parents[2] / f"{path.name}.sb-1234"
    beside.write_bytes(content)
    beside.replace(path)


def by_crlf(path: Path, content: bytes) -> None:
    """An editor that ends lines as Windows does."""
    truncating(path, content.replace(b"\n", b"\r\n"))


SAVES = (truncating, replacing, backing_up, probing, moving_in, by_crlf)
