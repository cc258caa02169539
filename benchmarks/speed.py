"""How long commands take, cold and warm, and how that grows with the library.

    python benchmarks/speed.py [--sizes 1000,10000,100000] [--text LINES_FILE] [--runs 3] [--json OUT] [--plot OUT.svg]
    python benchmarks/speed.py --sizes 1000000 --reuse FOLDER    # libraries are kept in FOLDER and taken from there
    python benchmarks/speed.py --only-plot RUN.json --plot OUT.svg

A row is a command from a cold shell: CPU seconds (user + system), peak memory, and bytes read and written of the
whole process, median of the runs, with the index on disk; fsyncs are counted in a run of their own under strace. Warm
rows are calls in one process, CPU in milliseconds. Rates of one writer are those of the fastest tenth of its batches
(others use the machine too); beside them stands how long the raw fsync took and what of ours came on top. infinimem is
compiled to bytecode before, as pip leaves it. Peers do the same job in the same run; what is not installed is absent.
Libraries are made from the words of tools/sample/entries.jsonl (or of --text: one message a line), 100 entries a
document, with evidence by month. Limits: one machine, one kind of text; compare within one run, by ratio.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import os
import platform
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise, product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.plot import rows_of, series_of, svg
from benchmarks.report import table, write_json
from infinimem import __version__

PROJECT = Path(__file__).resolve().parent.parent
PER_DOCUMENT = 100
FIRST = datetime(2025, 1, 1, tzinfo=UTC)
RARE = "ferr(y|ies) to K.el"
FREQUENT = "[Tt]hank(s| you)"
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""Otherwise every cold command would compile what it imports, as no installed one does."""
PLOTTED = (
    "write (against bare typer)",
    "status",
    "search",
    "ask",
    "timeline",
    "grep, a frequent pattern",
    "ripgrep, a frequent pattern",
    "flush of a 5,000-token buffer",
    "check",
    "index built anew",
)
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
    """What a run of a command takes: CPU seconds, peak MB, MB read and written through calls (mapped files apart)."""

    cpu: float
    memory: float
    read: float
    written: float


def run(
    command: Sequence[str], runs: int, before: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> Cost:
    """Run a command several times, the first not counted; medians."""
    costs: list[Cost] = []
    for _ in range(runs + 1):
        if before:
            subprocess.run(before, check=True, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        costs.append(run_once(command, environment or {}))
    counted = costs[1:] or costs
    return Cost(*(statistics.median(getattr(cost, name) for cost in counted) for name in Cost.__slots__))


def run_once(command: Sequence[str], environment: Mapping[str, str]) -> Cost:
    """Run a command once."""
    environment = {**ENVIRONMENT, "OPENBLAS_NUM_THREADS": "1", **environment}
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said, env=environment
        )
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        read, written = bytes_of(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 1):
            said.seek(0)
            raise SystemExit(f"{command} failed: {said.read().decode()}")
    return Cost(usage.ru_utime + usage.ru_stime, megabytes(usage), read / 1e6, written / 1e6)


def megabytes(usage: resource.struct_rusage) -> float:
    """The peak memory of a process."""
    return usage.ru_maxrss / 1024 / (1024 if sys.platform == "darwin" else 1)


def bytes_of(pid: int) -> tuple[int, int]:
    """What a process that has ended read and wrote; 0 where the system does not say."""
    try:
        rows = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    except OSError:
        return 0, 0
    return int(rows["rchar"]), int(rows["wchar"])


def fsyncs_of(command: Sequence[str]) -> int | None:
    """How often a command asks for its bytes to be on disk; None without strace."""
    if not shutil.which("strace"):
        return None
    with tempfile.NamedTemporaryFile() as told:
        watch = ["strace", "-f", "-e", "trace=fsync,fdatasync", "-o", told.name]
        done = subprocess.run([*watch, *command], env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True)
        return told.read().count(b"sync(") if done.returncode in (0, 1) else None


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
    from infinimem.store.layout import create_library
    from infinimem.text.tokens import estimate

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
    from infinimem.text.tokens import estimate

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
    from infinimem import Library

    build(root, entries, text)
    Library.open(root).write(buffer_of(5000, text), source="user")


def warm(root: Path) -> dict[str, float]:
    """Milliseconds of CPU of calls in a process that has the index open; `look` is the look for changed files alone."""
    from infinimem import Library

    library = Library.open(root)
    questions = ["when does the ferry leave", "what did she say about music", "a good film", "do you like dogs"]
    index = library.index()
    for question in questions:
        index.search(question)
    calls = {
        "look for changes": lambda question: library.index(),
        "search, without the look": lambda question: index.search(question, 5),
        "search after the look": lambda question: library.search(question),
        "catalog": lambda question: index.catalog(),
    }
    found = {name: 1000 * spent(call, questions) for name, call in calls.items()}
    return {**found, "one edited document folded in": max(0.0, folding(root, library) - found["look for changes"])}


def folding(root: Path, library: Any) -> float:
    """Milliseconds of CPU until the index on disk holds a document that was just edited, median of five edits."""
    document = next((root / "topics").rglob("*.md"))
    kept = document.read_bytes()
    costs = []
    for number in range(5):
        document.write_bytes(kept + f"- by hand, {number}\n".encode())
        start = time.process_time()
        library.index(settled=True)
        costs.append(time.process_time() - start)
    document.write_bytes(kept)
    library.index(settled=True)
    return 1000 * statistics.median(costs)


def spent(call: Callable[[str], object], questions: Sequence[str]) -> float:
    """CPU seconds of a call, median over questions none of which was asked like this before."""
    costs = []
    for number, question in enumerate(questions * 3):
        start = time.process_time()
        call(f"{question} {('today', 'again', 'there')[number // len(questions)]}")
        costs.append(time.process_time() - start)
    return statistics.median(costs)


def writers(batch: int, number: int, rounds: int, delay: float, folder: Path) -> tuple[float, float, float]:
    """Entries a second that so many processes write in batches, that they append and fsync as bare lines; its fsync.

    `delay` is seconds that every fsync, ours and the raw one, takes longer than here: what a disk needs that has to
    empty its cache. The last is in milliseconds, of the fastest tenth.
    """
    from infinimem.store.layout import create_library

    create_library(folder / "library")
    rates = []
    fsync = 0.0
    for work in (write_batches, append_batches):
        queue: multiprocessing.Queue[tuple[list[float], list[float]]] = multiprocessing.Queue()
        together = multiprocessing.Barrier(number)
        given = (folder, batch, rounds, delay, together, queue)
        processes = [multiprocessing.Process(target=work, args=given) for _ in range(number)]
        for process in processes:
            process.start()
        told = [queue.get() for _ in processes]
        times = [ends for ends, _ in told]
        synced = sorted(one for _, each in told for one in each)
        fsync = 1000 * synced[len(synced) // 10] if synced else fsync
        for process in processes:
            process.join()
        if number > 1:
            rates.append(number * rounds * batch / (max(ends[-1] for ends in times) - min(ends[0] for ends in times)))
        else:
            taken = sorted(end - start for start, end in pairwise(times[0]))
            rates.append(batch / taken[len(taken) // 10])
    shutil.rmtree(folder / "library")
    (folder / "raw").unlink()
    return rates[0], rates[1], fsync


def batch_of(size: int) -> list[str]:
    return [f"The ferry to Kiel leaves at {number} o'clock, says Ines {os.getpid()}." for number in range(size)]


def slowed(delay: float) -> None:
    """Have every fsync of this process take so many seconds more, in which others can run."""
    real = os.fsync

    def fsync(descriptor: int) -> None:
        real(descriptor)
        time.sleep(delay)

    if delay:
        os.fsync = fsync


def write_batches(folder: Path, batch: int, rounds: int, delay: float, together: Any, queue: Any) -> None:
    from infinimem import Library

    slowed(delay)
    library = Library.open(folder / "library")
    texts = batch_of(batch)
    together.wait()
    ends = [time.monotonic()]
    for _ in range(rounds):
        library.write(texts, source="user")
        ends.append(time.monotonic())
    queue.put((ends, []))


def append_batches(folder: Path, batch: int, rounds: int, delay: float, together: Any, queue: Any) -> None:
    slowed(delay)
    head = "- <seq=1, source=user, observed=2026-01-01T00:00:00Z> "
    lines = "".join(f"{head}{text}\n" for text in batch_of(batch)).encode()
    file = os.open(folder / "raw", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    together.wait()
    ends = [time.monotonic()]
    synced = []
    for _ in range(rounds):
        os.write(file, lines)
        start = time.monotonic()
        os.fsync(file)
        ends.append(time.monotonic())
        synced.append(ends[-1] - start)
    queue.put((ends, synced))


PEERS = {
    "rank_bm25 (builds at every start)": (
        "",
        """
import sys
from rank_bm25 import BM25Okapi
texts = open(sys.argv[1], encoding="utf-8").read().splitlines()
bm25 = BM25Okapi([text.lower().split() for text in texts])
print(bm25.get_top_n(sys.argv[3].lower().split(), texts, n=5))
""",
    ),
    "SQLite FTS5": (
        """
import sqlite3, sys
base = sqlite3.connect(sys.argv[2] + ".db")
base.execute("CREATE VIRTUAL TABLE entries USING fts5(text)")
with open(sys.argv[1], encoding="utf-8") as lines:
    base.executemany("INSERT INTO entries(text) VALUES (?)", ((line,) for line in lines))
base.commit()
""",
        """
import sqlite3, sys
base = sqlite3.connect(sys.argv[2] + ".db")
words = " OR ".join(sys.argv[3].split())
print(base.execute("SELECT text FROM entries WHERE entries MATCH ? ORDER BY rank LIMIT 5", (words,)).fetchall())
""",
    ),
    "bm25s": (
        """
import sys, bm25s, Stemmer
texts = open(sys.argv[1], encoding="utf-8").read().splitlines()
index = bm25s.BM25(corpus=texts)
tokens = bm25s.tokenize(texts, stopwords="en", stemmer=Stemmer.Stemmer("english"), show_progress=False)
index.index(tokens, show_progress=False)
index.save(sys.argv[2] + ".bm25s", corpus=texts)
""",
        """
import sys, bm25s, Stemmer
index = bm25s.BM25.load(sys.argv[2] + ".bm25s", load_corpus=True, mmap=True)
asked = bm25s.tokenize(sys.argv[3], stopwords="en", stemmer=Stemmer.Stemmer("english"), show_progress=False)
print(index.retrieve(asked, k=5, show_progress=False))
""",
    ),
    "tantivy alone": (
        """
import sys, tantivy, pathlib
builder = tantivy.SchemaBuilder()
builder.add_text_field("text", stored=True, tokenizer_name="en_stem")
folder = pathlib.Path(sys.argv[2] + ".tantivy")
folder.mkdir()
writer = tantivy.Index(builder.build(), path=str(folder)).writer(120_000_000, 1)
for line in open(sys.argv[1], encoding="utf-8"):
    writer.add_document(tantivy.Document(text=line))
writer.commit()
writer.wait_merging_threads()
""",
        """
import sys, tantivy
index = tantivy.Index.open(sys.argv[2] + ".tantivy")
searcher = index.searcher()
print([searcher.doc(at)["text"] for _, at in searcher.search(index.parse_query(sys.argv[3], ["text"]), 5).hits])
""",
    ),
}
"""What builds an index of lines, "" where that cannot be kept, and what answers from it; (lines, place, question)."""
MODULE_OF = {"rank_bm25 (builds at every start)": "rank_bm25", "SQLite FTS5": "sqlite3", "tantivy alone": "tantivy"}


def peers(root: Path, size: int, folder: Path, runs: int, note: Callable[..., None]) -> None:
    """The same texts and question by others, each index on disk where it can be kept."""
    lines = folder / f"lines-{size}.txt"
    with lines.open("w", encoding="utf-8") as file:
        for path in sorted((root / "topics").rglob("*.md")):
            found = (line.partition("> ") for line in path.read_text("utf-8").splitlines() if line.startswith("- <"))
            file.writelines(f"{words}\n" for _, _, words in found)
    for name, (builds, answers) in PEERS.items():
        if importlib.util.find_spec(MODULE_OF.get(name, name)) is None:
            print(f"{name:44} {size:>9,} absent", flush=True)
            continue
        place = [str(lines), str(folder / f"{MODULE_OF.get(name, name)}-{size}"), "when does the ferry leave"]
        if builds:
            note(f"{name}: index built", size, run([sys.executable, "-c", builds, *place], 0))
        note(f"{name}: search", size, run([sys.executable, "-c", answers, *place], 0 if size > 100_000 else runs))
    lines.unlink()


def qmd(command: str, root: Path, size: int, folder: Path, runs: int, note: Callable[..., None]) -> None:
    """qmd's search by words over the same topics, its index and settings in a folder of its own.

    It finds documents that have every word of the question, so it is asked for one that they have.
    """
    own = {name: str(folder / "qmd" / str(size)) for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")}
    Path(own["HOME"]).mkdir(parents=True)
    words = command.split()
    built = run([*words, "collection", "add", str(root / "topics"), "--name", "memory"], 0, environment=own)
    note("qmd: index built", size, built)
    note("qmd: search", size, run([*words, "search", "leave"], runs, environment=own))


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--text", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--reuse", type=Path, help="a folder in which libraries are kept from run to run")
    parser.add_argument("--without", default="", help="parts to leave out: writers, peers, flush, build, check")
    parser.add_argument("--disk", default="0,1,3", help="writers on disks whose fsync takes so many ms longer")
    parser.add_argument("--qmd", default="", metavar="COMMAND", help="how qmd is started, e.g. 'bun …/dist/cli/qmd.js'")
    parser.add_argument("--plot", type=Path, metavar="OUT.svg", help="draw the curves of cold commands")
    parser.add_argument("--only-plot", type=Path, metavar="RUN.json", help="measure nothing, draw what a run wrote")
    parser.add_argument("--prepare", nargs=2, metavar=("FOLDER", "ENTRIES"), help=argparse.SUPPRESS)
    parser.add_argument("--warm", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.prepare:
        prepare(Path(given.prepare[0]), int(given.prepare[1]), given.text)
        return 0
    if given.warm:
        calls = warm(given.warm)
        print(json.dumps({"calls": calls, "memory": megabytes(resource.getrusage(resource.RUSAGE_SELF))}))
        return 0
    if given.only_plot:
        draw(given.plot, rows_of(given.only_plot, ""))
        return 0
    # in a process of its own: a child's peak memory counts what its parent held when it was made
    subprocess.run([sys.executable, "-m", "compileall", "-q", PROJECT / "infinimem"], check=True, env=ENVIRONMENT)
    without = set(given.without.split(","))
    rows: list[dict[str, Any]] = []
    print(f"infinimem {__version__}, Python {platform.python_version()}, {platform.machine()}, median of {given.runs}")
    head = ("CPU", "memory", "read", "written", "fsyncs", "ratio")
    print(f"{'':44} {'entries':>9} " + " ".join(f"{name:>9}" for name in head))

    def note(what: str, size: int, cost: Cost, against: Cost | None = None, fsyncs: int | None = None) -> None:
        ratio = cost.cpu / against.cpu if against else None
        print(
            f"{what:44} {size:>9,} {cost.cpu:7.3f} s {cost.memory:6.0f} MB {cost.read:6.1f} MB {cost.written:6.1f} MB"
            f" {'' if fsyncs is None else fsyncs:>9} {'' if ratio is None else f'{ratio:7.2f} ×'}",
            flush=True,
        )
        figures = {name: round(getattr(cost, name), 4) for name in Cost.__slots__}
        rows.append({"what": what, "entries": size, **figures, "fsyncs": fsyncs, "ratio": ratio})

    bare = run([sys.executable, "-c", "pass"], given.runs)
    note("bare interpreter", 0, bare)
    typer = run([sys.executable, "-c", BARE], given.runs)
    note("bare typer program", 0, typer)
    with tempfile.TemporaryDirectory(prefix="infinimem-speed-") as name:
        folder = Path(name)
        if "writers" not in without:
            for number, batch, delay in product((1, 16), (100, 1000), map(float, given.disk.split(","))):
                rounds = max(12, 48 // number)
                rates = [writers(batch, number, rounds, delay / 1000, folder) for _ in range(given.runs)]
                ours, raw, fsync = (statistics.median(rate) for rate in zip(*rates, strict=True))
                disk = f", fsync + {delay:g} ms" if delay else ""
                what = f"write, batches of {batch}, writers: {number}{disk}"
                more = 1000 * batch * (1 / ours - 1 / raw)
                print(
                    f"{what:54} {ours:12,.0f} entries/s, raw append + fsync {raw:,.0f}: {ours / raw:.0%};"
                    f" its fsync {fsync:.2f} ms, ours takes {more:.2f} ms a batch more",
                    flush=True,
                )
                figures = {"rate": ours, "raw": raw, "ratio": ours / raw, "fsync_ms": fsync, "more_ms": more}
                rows.append({"what": what, **figures})
        first: dict[str, Cost] = {}
        for size in map(int, given.sizes.split(",")):
            root = (given.reuse or folder) / str(size)
            if not root.exists():
                text = ["--text", str(given.text)] if given.text else []
                subprocess.run([sys.executable, __file__, "--prepare", str(root), str(size), *text], check=True)
            measure(root, size, given.runs, without, typer, first, note, rows)
            if "peers" not in without:
                peers(root, size, folder, given.runs, note)
            if given.qmd:
                qmd(given.qmd, root, size, folder, given.runs, note)
            if not given.reuse:
                shutil.rmtree(root)
    draw(given.plot, rows)
    print("\n" + as_table(rows))
    limits = ["one machine", "one kind of text", "CPU of whole processes; rates are wall-clock"]
    write_json(given.json, "speed", rows, limits=limits, packages=("tantivy", "rank-bm25", "bm25s"), runs=given.runs)
    return 0


def as_table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows that have a size as a table with a column for each, as benchmarks/README.md holds it."""
    sizes = sorted({row["entries"] for row in rows if row.get("entries")})
    names = dict.fromkeys(row["what"] for row in rows if row.get("entries"))
    cells = {(row["what"], row["entries"]): cell_of(row) for row in rows if row.get("entries")}
    lines = [[name, *(cells.get((name, size), "") for size in sizes)] for name in names]
    return table(["", *(f"{size:,}" for size in sizes)], lines)


def cell_of(row: dict[str, Any]) -> str:
    """`0.18 s, 38 MB (1.2 ×)`; of a call in one process `5.2 ms`."""
    if "peak" in row:
        return f"{row['peak']:.0f} MB"
    if "memory" not in row:
        return f"{1000 * row['cpu']:.1f} ms"
    ratio = f" ({row['ratio']:.2f} ×)" if row.get("ratio") else ""
    return f"{row['cpu']:.2f} s, {row['memory']:.0f} MB{ratio}"


def draw(place: Path | None, rows: Sequence[dict[str, Any]]) -> None:
    """The curves of cold commands against the size of the library; nothing without a place for them."""
    if place is not None:
        shown = [row for name in PLOTTED for row in rows if row.get("what") == name]
        lines = series_of(shown, "entries", "cpu", ("what",))
        title = "CPU of one command from a cold shell"
        place.write_text(svg(lines, title=title, x="entries", y="seconds", log="xy"), "utf-8")


def measure(
    root: Path,
    size: int,
    runs: int,
    without: set[str],
    typer: Cost,
    first: dict[str, Cost],
    note: Callable[..., None],
    rows: list[dict[str, Any]],
) -> None:
    """All rows of one library."""
    command = [sys.executable, "-m", "infinimem", "-L", str(root)]
    if "build" not in without:
        shutil.rmtree(root / ".infinimem/index", ignore_errors=True)
        note("index built anew", size, run([*command, "search", "ferry"], 0))
    if "check" not in without:
        note("check", size, run([*command, "check"], 0))
    write = [*command, "write", "The ferry is late."]
    note("write (against bare typer)", size, run(write, runs), typer, fsyncs_of(write))
    for what in (
        ["status"],
        ["catalog"],
        ["search", "when does the ferry leave"],
        ["ask", "When does the ferry to Kiel leave?"],
        ["timeline", "ferry"],
        ["history", "5"],
        ["trace", "5"],
    ):
        cost = run([*command, *what], runs)
        note(what[0], size, cost, first.setdefault(what[0], cost))
    note("stats", size, run([*command, "stats"], 0))
    note("recover, of what is not lost", size, run([*command, "recover", "5"], 0))
    touched = next((root / "topics").rglob("*.md"))
    kept = touched.read_bytes()
    by_hand = ["sh", "-c", f"echo '- by hand' >> {touched}"]
    note("search after one hand edit", size, run([*command, "search", "ferry"], runs, by_hand))
    touched.write_bytes(kept)
    for name, pattern in (("rare", RARE), ("frequent", FREQUENT)):
        found = run([*command, "grep", pattern], runs)
        beside = run(["rg", pattern, str(root)], runs) if shutil.which("rg") else None
        note(f"grep, a {name} pattern", size, found, beside)
        if beside is not None:
            note(f"ripgrep, a {name} pattern", size, beside)
    warming = [sys.executable, __file__, "--warm", str(root)]
    done = subprocess.run(warming, check=True, env=ENVIRONMENT, capture_output=True)
    told = json.loads(done.stdout)
    print(f"{'warm: peak memory of all these calls':44} {size:>9,} {told['memory']:7.0f} MB", flush=True)
    rows.append({"what": "warm: peak memory of all these calls", "entries": size, "peak": told["memory"]})
    for name, milliseconds in told["calls"].items():
        print(f"{'warm: ' + name:44} {size:>9,} {milliseconds:7.2f} ms", flush=True)
        rows.append({"what": f"warm: {name}", "entries": size, "cpu": milliseconds / 1000})
    if "flush" not in without:
        # undo, and a search that reads into the index what it changed: that is not part of the next flush
        command_line = f"'{sys.executable}' -m infinimem -L '{root}'"
        again = ["sh", "-c", f"{command_line} undo; {command_line} search ferry || true"]
        cost = run([*command, "flush"], min(runs, 3), again)
        note("flush of a 5,000-token buffer", size, cost, first.setdefault("flush", cost))
        subprocess.run(again, check=True, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())
