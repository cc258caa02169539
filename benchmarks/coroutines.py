"""Many coroutines on one `Library`: each writes an entry and searches for it, through pools of several sizes.

    python benchmarks/coroutines.py [--entries 10000] [--coroutines 400] [--json FILE]

The library holds so many made-up entries in topics before. A pool of one is the same work in a row. Every coroutine
must find what it wrote; the entries are counted at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from report import table, write_json

from infinimem import Library

POOLS = (1, 2, 8, 32)
LIMITS = (
    "made-up entries, without a model",
    "threads of one process: searching takes the interpreter's lock, writing waits for fsync and the library's lock",
    "the machine had other work; compare rows of one run",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--coroutines", type=int, default=400)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="coroutines-"))
    try:
        library = filled(root / "memory", given.entries)
        rows = [measured(library, pool, given.coroutines) for pool in POOLS]
        written = sum(len(unit.seqs) for unit in library.index().entries((), most=10**9))
        assert written == given.entries + len(POOLS) * given.coroutines, written
    finally:
        shutil.rmtree(root)
    head = ("threads", "seconds for all", "CPU ms for one", "ms until the first is done")
    print(table(head, rows))
    results = [dict(zip(head, row, strict=True)) for row in rows]
    settings = {"entries": given.entries, "coroutines": given.coroutines}
    write_json(given.json, "coroutines", results, limits=LIMITS, packages=("tantivy",), **settings)


def filled(root: Path, entries: int) -> Library:
    """A library with so many entries in its topics."""
    library = Library.open(root, create=True)
    rooms = "kitchen cellar attic garden stable library office hall".split()
    library.write([f"Jar {at} stands in the {rooms[at % 8]} of house {at // 100}." for at in range(entries)])
    library.flush(planner="lexical")
    library.search("kitchen")
    return library


def measured(library: Library, pool: int, coroutines: int) -> tuple[object, ...]:
    """How long so many coroutines take through a pool of threads."""
    waits: list[float] = []

    async def one(threads: ThreadPoolExecutor, number: int, started: float) -> None:
        loop = asyncio.get_running_loop()
        name = f"guest{pool}x{number}"
        await loop.run_in_executor(threads, library.write, f"Locker {number} belongs to {name}.")
        [hit] = await loop.run_in_executor(threads, library.search, name, 1)
        assert name in hit.text
        waits.append(time.monotonic() - started)

    async def every() -> float:
        started = time.monotonic()
        with ThreadPoolExecutor(pool) as threads:
            await asyncio.gather(*(one(threads, number, started) for number in range(coroutines)))
        return time.monotonic() - started

    before = time.process_time()
    took = asyncio.run(every())
    return pool, took, 1000 * (time.process_time() - before) / coroutines, 1000 * min(waits)


if __name__ == "__main__":
    main()
