"""How long commands take from a cold shell, and how that grows with the library.

    python benchmarks/speed.py [--sizes 1000,10000,100000] [--text LINES_FILE] [--runs 5] [--json OUT]

Figures are CPU seconds (user + system) and peak memory of the whole process, median of the runs, with the index on
disk. Libraries are made from the words of tools/sample/entries.jsonl (or of --text: one message a line), 100 entries
a document, with evidence. Limits: one machine, one kind of text; compare within one run, by ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from infinimem import Library, __version__
from infinimem.store.layout import create_library
from infinimem.text.tokens import estimate

PROJECT = Path(__file__).resolve().parent.parent
PER_DOCUMENT = 100
FIRST = datetime(2025, 1, 1, tzinfo=UTC)
RARE = "ferr(y|ies) to K.el"
FREQUENT = "[Tt]hank(s| you)"
BARE = """
import typer
app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
@app.command()
def hello(name: str = "x") -> None:
    print(name)
app()
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """The median of several runs of one command."""

    cpu: float
    memory: float
    reads: int


def run(command: Sequence[str], runs: int, before: Sequence[str] = ()) -> Cost:
    """Run a command several times; CPU seconds, peak MB, and blocks read."""
    seconds: list[float] = []
    peaks: list[float] = []
    reads: list[int] = []
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    for _ in range(runs + 1):
        if before:
            subprocess.run(before, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment
        )
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stderr.close()
        if process.returncode not in (0, 1):
            raise SystemExit(f"{command} failed: {said.decode()}")
        seconds.append(usage.ru_utime + usage.ru_stime)
        peaks.append(usage.ru_maxrss / 1024 / (1024 if sys.platform == "darwin" else 1))
        reads.append(usage.ru_inblock)
    return Cost(statistics.median(seconds[1:]), statistics.median(peaks[1:]), int(statistics.median(reads[1:])))


def messages(text: Path | None, count: int) -> Iterator[str]:
    """As many messages as wanted: real lines in a shuffled order, their words exchanged once they run out."""
    if text is not None:
        lines = [line.strip() for line in text.read_text("utf-8").splitlines() if line.strip()]
    else:
        rows = (PROJECT / "tools/sample/entries.jsonl").read_text("utf-8").splitlines()
        lines = [json.loads(row)["text"].replace("\n", " ") for row in rows]
    chance = random.Random(2026)
    words = [word for line in lines for word in line.split()]
    given = 0
    if text is not None:
        for line in lines[:count]:
            yield line
            given += 1
    for _ in range(given, count):
        start = chance.choice(lines).split()[: chance.randint(4, 16)]
        yield " ".join(chance.choice(words) if chance.random() < 0.4 else word for word in start)


def build(root: Path, entries: int, text: Path | None) -> None:
    """A library of many flushed entries, as flushes would have left it; each entry was written at another time."""
    create_library(root)
    source = messages(text, entries)
    kept: dict[str, list[str]] = {}
    for number in range(max(1, -(-entries // PER_DOCUMENT))):
        topic = f"{number % 100:02d}/topic-{number:06d}"
        lines = []
        for seq in range(number * PER_DOCUMENT + 1, min((number + 1) * PER_DOCUMENT, entries) + 1):
            moment = FIRST + timedelta(seconds=37 * seq)
            who = ("user", "Ines", "AI")[seq % 3]
            said = f"time={moment:%Y-%m-%d}, source={who}, observed={moment:%Y-%m-%dT%H:%M:%SZ}"
            line = f"- <seq={seq}, {said}> {next(source)}\n"
            lines.append(line)
            kept.setdefault(f"{moment:%Y-%m}", []).append(line)
        body = f"# Topic {number}\n\n{''.join(lines)}"
        head = f"id: {topic}\nsummary: Topic {number}.\ntoken_count: {estimate(body)}\n"
        path = root / "topics" / f"{topic}.md"
        path.parent.mkdir(exist_ok=True)
        made = f"created_time: {FIRST:%Y-%m-%dT%H:%M:%SZ}\nupdate_log: []\naux: {{}}"
        path.write_text(f"---\n{head}{made}\n---\n{body}", "utf-8")
    for month, lines in kept.items():
        high = f"- <event=flush, high={entries}, at={month}-28T23:59:59Z>\n"
        (root / "evidence" / f"{month}.md").write_text(f"# Evidence {month}\n\n{''.join(lines)}{high}", "utf-8")


def buffer_of(tokens: int, text: Path | None) -> list[str]:
    """Messages that fill a buffer of so many tokens."""
    chosen: list[str] = []
    size = 0
    for line in messages(text, 100_000):
        size += estimate(line) + 20  # the signature's part
        if size > tokens:
            return chosen
        chosen.append(line)
    return chosen


def prepare(root: Path, entries: int, text: Path | None) -> None:
    """A library with a buffer that is due."""
    build(root, entries, text)
    Library.open(root).write(buffer_of(5000, text), source="user")


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--text", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--prepare", nargs=2, metavar=("FOLDER", "ENTRIES"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.prepare:
        prepare(Path(given.prepare[0]), int(given.prepare[1]), given.text)
        return 0
    sizes = [int(size) for size in given.sizes.split(",")]
    python = sys.executable
    rows: list[dict[str, object]] = []

    def note(what: str, size: int, cost: Cost, against: Cost | None = None) -> None:
        ratio = f"{cost.cpu / against.cpu:5.2f} ×" if against else ""
        print(f"{what:34} {size:>9,} {cost.cpu:8.3f} s {cost.memory:7.0f} MB {ratio}", flush=True)
        rows.append(
            {
                "what": what,
                "entries": size,
                "cpu": cost.cpu,
                "memory_mb": cost.memory,
                "ratio": cost.cpu / against.cpu if against else None,
            }
        )

    print(f"infinimem {__version__}, Python {platform.python_version()}, {platform.machine()}, median of {given.runs}")
    print(f"{'':34} {'entries':>9} {'CPU':>10} {'memory':>10} ratio")
    note("bare interpreter", 0, run([python, "-c", "pass"], given.runs))
    bare = run([python, "-c", BARE], given.runs)
    note("bare typer program", 0, bare)
    with tempfile.TemporaryDirectory(prefix="infinimem-speed-") as folder:
        flushes: list[Cost] = []
        for size in sizes:
            root = Path(folder) / str(size)
            # in a process of its own: a child's peak memory counts what its parent held when it was made
            text = ["--text", str(given.text)] if given.text else []
            subprocess.run([python, __file__, "--prepare", str(root), str(size), *text], check=True)
            command = [python, "-m", "infinimem", "-L", str(root)]
            anew = ["rm", "-rf", str(root / ".infinimem/index")]
            note("index built anew", size, run([*command, "search", "ferry"], 1, anew))
            note("write (against bare typer)", size, run([*command, "write", "The ferry is late."], given.runs), bare)
            note("status", size, run([*command, "status"], given.runs))
            note("search, index on disk", size, run([*command, "search", "when does the ferry leave"], given.runs))
            note("ask", size, run([*command, "ask", "When does the ferry to Kiel leave?"], given.runs))
            touched = next((root / "topics").rglob("*.md"))
            by_hand = ["sh", "-c", f"echo '- by hand' >> {touched}"]
            note("search after one hand edit", size, run([*command, "search", "ferry"], given.runs, by_hand))
            grep = run([*command, "grep", RARE], given.runs)
            note("grep, a rare pattern", size, grep)
            many = run([*command, "grep", FREQUENT], given.runs)
            note("grep, a frequent pattern", size, many)
            if shutil.which("rg"):
                note("ripgrep, a rare pattern", size, run(["rg", RARE, str(root)], given.runs), grep)
                note("ripgrep, a frequent pattern", size, run(["rg", FREQUENT, str(root)], given.runs), many)
            again = ["sh", "-c", f"'{python}' -m infinimem -L '{root}' undo || true"]
            cost = run([*command, "flush"], 3, again)
            note("flush of a 5,000-token buffer", size, cost, flushes[0] if flushes else None)
            flushes.append(cost)
            shutil.rmtree(root)
    if given.json:
        result = {"version": __version__, "machine": platform.platform(), "rows": rows}
        given.json.write_text(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
