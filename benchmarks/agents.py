"""How soon an agent gets its first answer over MCP, what each call takes, and what threads of one process bring.

    python benchmarks/agents.py [--entries 10000] [--runs 5] [--json FILE]

The SDK's own client; the library as in benchmarks/speed.py, its index on disk, with a buffer that is due. Wall-clock
seconds of the real process, medians, on a busy machine only good for ratios; CPU with client and server in one process,
the first call of each kind apart: it loads what the later ones find.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mcp import Client, ClientSession, StdioServerParameters, stdio_client
from report import table, write_json
from speed import messages, prepare

from infinimem import Library
from infinimem.agents.server import server_for
from infinimem.text.tokens import estimate

LIMITS = (
    "one kind of text, generated from the sample library's words",
    "one machine, shared by others while it ran: wall-clock times are for ratios only",
    "a write between the searches, as an agent works; no flush, which makes the first calls after it cost more",
)
SEED = 2026
QUERIES = ("when does the ferry leave", "boat engine", "dinner with Ines", "the roof of the house", "work meeting")
LOADING = """
import time
start = time.monotonic()
{code}
print(time.monotonic() - start)
"""


def seconds_to_run(code: str, runs: int) -> float:
    """Seconds that a piece of code takes in a fresh interpreter."""
    command = [sys.executable, "-c", LOADING.format(code=code)]
    return statistics.median(
        float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(runs)
    )


async def first_answer(root: Path) -> tuple[float, float]:
    """Seconds from the start of the process to the end of the handshake, and to the first answer."""
    started = time.monotonic()
    async with stdio_client(server_of(root)) as streams, ClientSession(*streams) as session:
        await session.initialize()
        greeted = time.monotonic() - started
        await session.call_tool("search", {"query": QUERIES[0]})
        return greeted, time.monotonic() - started


def cpu_of_children() -> float:
    """CPU seconds of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def server_of(root: Path) -> StdioServerParameters:
    """The real process."""
    return StdioServerParameters(command=sys.executable, args=["-m", "infinimem", "-L", str(root), "mcp"])


async def calls(root: Path, runs: int, told: dict[str, float]) -> dict[str, list[float]]:
    """Milliseconds of each kind of call to the real process; what it says of itself is added to `told`."""
    async with stdio_client(server_of(root)) as streams, ClientSession(*streams) as session:
        said = await session.initialize()
        tools = (await session.list_tools()).tools
        sent = json.dumps([tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in tools])
        instructions = said.instructions or ""
        told |= {
            "tokens of the definitions, by our estimate": estimate(sent),
            "tokens of the definitions, by length / 4": len(sent) // 4,
            "tokens of the instructions, by our estimate": estimate(instructions),
            "tokens of the instructions, by length / 4": len(instructions) // 4,
        }
        return await measured(session, runs, time.monotonic, topics_of(root))


async def calls_inside(root: Path, runs: int) -> dict[str, list[float]]:
    """CPU milliseconds of each kind of call, client and server in one process, the protocol between them."""
    async with Client(server_for(Library.open(root))) as client:
        gc.freeze()  # as the server does when it starts
        return await measured(client, runs, time.process_time, topics_of(root))


def topics_of(root: Path) -> list[str]:
    """The ids of a library's topics."""
    folder = root / "topics"
    return [path.relative_to(folder).with_suffix("").as_posix() for path in sorted(folder.rglob("*.md"))]


async def measured(
    session: Client | ClientSession, runs: int, clock: Callable[[], float], topics: Sequence[str]
) -> dict[str, list[float]]:
    """What each kind of call takes by a clock, the first one first."""
    taken: dict[str, list[float]] = {}
    for at in range(runs * 4):
        for name, arguments in kinds(at, topics[at % len(topics)]):
            started = clock()
            result = await session.call_tool(name.split(" ")[0], arguments)
            passed = clock() - started
            assert not result.is_error, result.content
            taken.setdefault(name, []).append(passed * 1000)
    return taken


def kinds(at: int, topic: str) -> list[tuple[str, dict[str, Any]]]:
    """One call of every kind; no two searches in a row alike."""
    query = QUERIES[at % len(QUERIES)]
    return [
        ("catalog", {}),
        ("catalog of a query", {"query": query}),
        ("search", {"query": query}),
        ("search for new words", {"query": new_words(at)}),
        ("search all", {"query": query.split()[-1], "all": True}),
        ("grep", {"pattern": "ferr(y|ies) to K.el"}),
        ("grep of a frequent word", {"pattern": "[Tt]hank"}),
        ("read", {"topic": topic}),
        ("trace", {"seq": 1 + at * 7}),
        ("write", {"entries": [f"The ferry was late again, run {at}."]}),
        ("search after a write", {"query": query}),
        ("consolidate (its task)", {}),
    ]


def new_words(at: int) -> str:
    """Words that were not asked for before."""
    line = next(itertools.islice(messages(None, 100_000), 7 * at, None)).split()
    return " ".join(sorted(line, key=len)[-4:])


def late(taken: Sequence[float]) -> float:
    """What nine of ten keep within."""
    return sorted(taken)[len(taken) * 9 // 10]


def threads(root: Path, searches: int) -> dict[str, float]:
    """Searches a second by one object in one thread and in several; what a thread's own index costs to open."""
    library = Library.open(root)
    library.search("ferry")

    def some() -> None:
        for at in range(searches):
            library.search(QUERIES[at % len(QUERIES)], k=8)

    found = {"searches a second, 1 thread": searches / seconds(some)}
    for number in (2, 4, 8):
        took = seconds(lambda number=number: in_threads(some, number))  # type: ignore[misc]
        found[f"searches a second, {number} threads"] = searches * number / took
    opened = [seconds(lambda: in_threads(lambda: library.search("ferry"), 1)) for _ in range(9)]
    again = [seconds(lambda: library.search("ferry")) for _ in range(9)]
    found["milliseconds of a search in a new thread"] = 1000 * statistics.median(opened)
    found["milliseconds of one where its index is open"] = 1000 * statistics.median(again)
    return found


def in_threads(work: Callable[[], object], number: int) -> None:
    """Some work in so many threads at once."""
    started = [threading.Thread(target=work) for _ in range(number)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


def seconds(work: Callable[[], object]) -> float:
    """What some work takes."""
    started = time.monotonic()
    work()
    return time.monotonic() - started


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="infinimem-mcp-") as folder:
        root = Path(folder) / "memory"
        prepare(root, given.entries, None)
        time.sleep(2.5)  # what is indexed within two seconds of its change is hashed at every call
        Library.open(root).search("ferry")
        figures["seconds to import the SDK alone"] = seconds_to_run("import mcp.server.lowlevel", given.runs)
        figures["seconds to import the server"] = seconds_to_run("import infinimem.agents.server", given.runs)
        before = cpu_of_children()
        answers = [asyncio.run(first_answer(root)) for _ in range(given.runs)]
        figures["CPU seconds from start to end, one answer in between"] = (cpu_of_children() - before) / given.runs
        figures["seconds to the end of the handshake"] = statistics.median(greeted for greeted, _ in answers)
        figures["seconds to the first answer"] = statistics.median(answered for _, answered in answers)
        walls = asyncio.run(calls(root, given.runs, figures))
        cpus = asyncio.run(calls_inside(root, given.runs))
        figures |= threads(root, 20 * given.runs)
    rows = [
        [
            name,
            statistics.median(cpus[name][1:]),
            statistics.median(walls[name][1:]),
            late(cpus[name][1:]),
            least(cpus[name]),
            cpus[name][0],
        ]
        for name in walls
    ]
    head = ["a call, in milliseconds", "CPU", "wall", "CPU of 9 in 10", "least CPU", "CPU of the first"]
    print(table(["", "figure"], [[name, f"{value:.2f}"] for name, value in figures.items()]))
    print(f"\n{table(head, rows)}")
    calls_made = {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}
    write_json(
        given.json, "agents", {"figures": figures, "calls": calls_made}, limits=LIMITS,
        packages=("mcp", "pydantic", "tantivy"), entries=given.entries, runs=given.runs, seed=SEED,
    )  # fmt: skip


def least(taken: Sequence[float]) -> float:
    """The least that a call took after the first: nearest to what it costs where nobody else is at work."""
    return min(taken[1:])


if __name__ == "__main__":
    main()
