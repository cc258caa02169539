"""A watch over a large library: CPU while nothing happens, seconds from a save to its news, memory over many saves.

    python benchmarks/watch.py [--files 10000] [--saves 10000] [--idle 60] [--json FILE]

Linux only (/proc). A save counts as seen when the watch prints it, which it does after the index has it: the first of
them are searched for, too.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from report import table, write_json

from infinimem import Library

LIMITS = (
    "Linux; one machine; made-up topics of ten lines each, saved by a rename as most editors do",
    "seconds from a save to its news hold what else the machine does meanwhile",
)
WORDS = "harbour lighthouse ferry salt pantry boiler violin oak lantern ledger cinnamon anchor tile gull map".split()
TICK = os.sysconf("SC_CLK_TCK")


def build(root: Path, files: int) -> None:
    """A library of topic files of ours, 100 to a folder, ten entries each."""
    library = Library.open(root, create=True)
    seq = 0
    for number in range(files):
        name = f"drawer-{number // 100}/note-{number}"
        lines = [f"---\nid: {name}\nsummary: Note {number}.\ntoken_count: 200\n---\n# Note {number}\n\n"]
        for at in range(10):
            seq += 1
            words = " ".join(WORDS[(number * 7 + at * step) % len(WORDS)] for step in range(1, 9))
            lines.append(f"- <seq={seq}, time=2026-05-01> The {words} of {number} at {at}.\n")
        path = root / "topics" / f"{name}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(lines))
    library.index()


class Watch:
    """The process, and its events as they come."""

    def __init__(self, root: Path) -> None:
        command = [sys.executable, "-m", "infinimem", "-L", str(root), "watch", "--json"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.events: queue.SimpleQueue[tuple[float, dict[str, Any]]] = queue.SimpleQueue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        """Note each line with the moment that it came."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.events.put((time.monotonic(), json.loads(line)))

    def until(self, event: str, path: str = "") -> float:
        """When an event came."""
        while True:
            moment, one = self.events.get(timeout=300)
            if one["event"] == event and (not path or one["path"] == path):
                return moment

    def until_quiet(self, seconds: float = 10.0) -> None:
        """Wait until nothing has been said for a while."""
        while True:
            try:
                self.events.get(timeout=seconds)
            except queue.Empty:
                return

    def cpu(self) -> float:
        """User and system seconds so far, without its children's."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def memory(self) -> float:
        """Resident megabytes now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024


def save(root: Path, number: int, files: int, words: str) -> str:
    """Change a topic's last line as an editor does: a new file renamed over the old one. Gives its path."""
    at = number * 7919 % files
    path = root / "topics" / f"drawer-{at // 100}" / f"note-{at}.md"
    head = path.read_text().rpartition("\n- <seq=")[0]
    beside = path.with_name(f".{path.name}.tmp")
    beside.write_text(f"{head}\n- <seq={at * 10 + 10}, time=2026-05-01> {words}\n")
    beside.replace(path)
    return path.relative_to(root).as_posix()


def idle(watch: Watch, seconds: float) -> float:
    """CPU seconds a minute while nothing happens."""
    before = watch.cpu()
    time.sleep(seconds)
    return (watch.cpu() - before) * 60 / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--saves", type=int, default=10_000)
    parser.add_argument("--idle", type=float, default=60.0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "memory"
        build(root, options.files)
        watch = Watch(root)
        try:
            figures = measure(watch, root, options)
        finally:
            watch.process.terminate()
            watch.process.wait()
    print(table(("", "figure"), [(name, f"{value:.3g}") for name, value in figures.items()]))
    settings = {"files": options.files, "saves": options.saves, "idle": options.idle}
    write_json(options.json, "watch", figures, limits=LIMITS, packages=("tantivy", "watchdog"), **settings)


def measure(watch: Watch, root: Path, options: argparse.Namespace) -> dict[str, float]:
    """The figures by name."""
    watch.until("watching")
    settled = root / "topics" / "settled.md"
    settled.write_text("# A guest\n")
    watch.until("saved", "topics/settled.md")
    figures = {"resident MB at first": watch.memory(), "idle, CPU s a minute": idle(watch, options.idle)}
    waits, cost = [], watch.cpu()
    for number in range(20):
        words = f"A zanzibar{number} in the drawer."
        started = time.monotonic()
        waits.append(watch.until("saved", save(root, number, options.files, words)) - started)
        [hit] = Library.open(root).search(f"zanzibar{number}", k=1)
        assert f"zanzibar{number} " in hit.text
        time.sleep(1.0)
    cost = (watch.cpu() - cost) / len(waits)
    figures |= {
        "save to news, s, median": statistics.median(waits),
        "save to news, s, worst": max(waits),
        "CPU s of a save": cost,
        "resident MB before the many saves": watch.memory(),
    }
    started, cost = time.monotonic(), watch.cpu()
    for number in range(options.saves):
        save(root, number, options.files, f"Saved for the {number}th time.")
        time.sleep(0.02)
        if number + 1 in (options.saves // 10, options.saves // 2):
            figures[f"resident MB after {number + 1:,} saves"] = watch.memory()
    watch.until_quiet()
    figures |= {"all saves, s": time.monotonic() - started, "all saves, CPU s": watch.cpu() - cost}
    figures[f"resident MB after {options.saves:,} saves"] = watch.memory()
    return {**figures, "idle again, CPU s a minute": idle(watch, options.idle)}


if __name__ == "__main__":
    main()
