"""A flush as a process of its own, so that saves are checked while a planner thinks and memory stays flat."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infinimem.watch.bell import Bell

GRACE = 20.0
"""Seconds that a flush gets to end when the watch is to stop; then it is killed, which loses nothing, either."""


@dataclass(frozen=True, slots=True)
class Flushed:
    """How a flush ended: its exit code, its report as `flush --json` prints it ({} without one), what it said."""

    code: int
    report: dict[str, Any]
    talk: str


class Flushing:
    """One `flush --if-due` at a time; the bell rings when it has ended."""

    def __init__(self, root: Path, bell: Bell) -> None:
        self.root = root
        self.bell = bell
        self.process: subprocess.Popen[str] | None = None
        self.ended: list[Flushed] = []

    def start(self) -> None:
        """Begin a flush. Of its own session, so that Ctrl-C in a terminal reaches only the watch."""
        command = [sys.executable, "-m", "infinimem", "--library", str(self.root), "flush", "--if-due", "--json"]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        threading.Thread(target=self.await_end, args=(self.process,), daemon=True).start()

    def await_end(self, process: subprocess.Popen[str]) -> None:
        """Read what the flush prints until it has ended, then ring."""
        printed, talk = process.communicate()
        try:
            report = json.loads(printed)
        except ValueError:
            report = {}
        self.ended.append(Flushed(process.returncode, report if isinstance(report, dict) else {}, talk.strip()))
        self.bell.ring()

    def take_ended(self) -> Flushed | None:
        """How the flush ended, once; None while it runs or when there is none."""
        if not self.ended:
            return None
        self.process = None
        return self.ended.pop()

    def stop(self) -> None:
        """Have a flush under way end as it does on Ctrl-C."""
        process = self.process
        if process is None or process.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
