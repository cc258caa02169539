"""Many small libraries below one folder: `flush --root` measured, then put through faults; nothing may be lost.

    python benchmarks/fleet.py flush [--libraries 10000] [--jobs N] [--seed 1] [--json FILE]
    python benchmarks/fleet.py faults [--libraries 10000]
    python benchmarks/fleet.py search [--libraries 10000]

Each library holds a few neighbouring entries of the sample library: real text. `flush` compares the fleet with
`infinimem flush` run once for each of some of them. `faults` makes some of them unusable, each in its way, has others
locked, kills processes at random, kills the fleet itself in the middle, and starts it again; then it counts entries.
`search` asks all libraries, none of which has an index: for a word that one holds, for a question, for a common word;
and the same by `ask`, without a model.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from report import table, write_json

from infinimem import Library
from infinimem.store.lock import exclusive

SAMPLE = Path(__file__).parent.parent / "tools" / "sample" / "entries.jsonl"
ENTRIES = 6
LIMITS = (
    "small libraries of six entries of one sample; without a model",
    "processes share a machine with others: compare CPU within a run",
    "a power cut is not among the faults",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("flush", "faults", "search"))
    parser.add_argument("--libraries", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended, too
    root = Path(tempfile.mkdtemp(prefix="fleet-"))
    try:
        made = make(root, given.libraries, given.seed)
        run = {"flush": measure, "faults": put_through_faults, "search": search}[given.what]
        figures = run(root, made, given)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    print(table(("", f"{given.libraries:,} libraries"), list(figures.items())))
    write_json(
        given.json, f"fleet {given.what}", figures, limits=LIMITS, packages=("tantivy",),
        libraries=given.libraries, entries=ENTRIES, jobs=given.jobs, seed=given.seed,
    )  # fmt: skip


def make(root: Path, number: int, seed: int) -> dict[Path, list[str]]:
    """So many libraries, all due, and the words that were written to each."""
    rows = [json.loads(line) for line in SAMPLE.read_text("utf-8").splitlines()]
    chance = random.Random(seed)
    made: dict[Path, list[str]] = {}
    for at in range(number):
        first = chance.randrange(len(rows) - ENTRIES)
        chosen = rows[first : first + ENTRIES]
        place = root / f"group-{at // 100:03}" / f"agent-{at:05}"
        entries = [
            {"text": row["text"], "source": row["source"], "time": row.get("time", ""), "observed": row["at"]}
            for row in chosen
        ]
        Library.open(place, create=True).write(entries)
        made[place] = [row["text"] for row in chosen]
    return made


def measure(root: Path, made: dict[Path, list[str]], given: argparse.Namespace) -> dict[str, Any]:
    """CPU and time of the fleet, for each library, beside a command for each; all of the first, then none is due."""
    single = list(made)[:: max(1, len(made) // 20)][:20]
    alone, alone_wall, _ = used_by(*([*command("flush"), "-L", str(place)] for place in single))
    fleet, wall, memory = used_by(fleet_command(root, given))
    again, again_wall, _ = used_by(fleet_command(root, given))
    done = len(made) - len(single)
    return {
        "`flush` alone, CPU s each": f"{alone / len(single):.3f}",
        "`flush` alone, s each": f"{alone_wall / len(single):.3f}",
        "`flush --root`, CPU s each": f"{fleet / done:.3f}",
        "`flush --root`, s each": f"{wall / done:.3f}",
        "CPU s, s in all": f"{fleet:.0f}, {wall:.0f}",
        "none due any more: CPU ms each": f"{again / len(made) * 1000:.2f}",
        "none due any more: s in all": f"{again_wall:.1f}",
        "largest process, MB": memory,
        "buffered afterwards": buffered(made),
        "wrong": wrong(made),
    }


def put_through_faults(root: Path, made: dict[Path, list[str]], given: argparse.Namespace) -> dict[str, Any]:
    """What became of all libraries after kills of processes and of the fleet, beside some that cannot be flushed."""
    chance = random.Random(given.seed)
    spoilt = chance.sample(list(made), 26)
    before = {place: spoil(place, at) for at, place in enumerate(spoilt[:21])}
    kills = rounds = 0
    with ExitStack() as stack:
        for place in spoilt[21:]:
            stack.enter_context(exclusive(place / ".infinimem" / "flush.lock"))
        kill_fleet_at = len(made) * 2 // 5
        told: dict[str, Any] = {}
        while not told:
            rounds += 1
            process = subprocess.Popen(fleet_command(root, given), stdout=subprocess.PIPE, text=True)
            while process.poll() is None:
                time.sleep(chance.uniform(0.5, 2.5))
                children = children_of(process.pid)
                if children and process.poll() is None:
                    with_no_complaint(os.kill, int(chance.choice(children)), signal.SIGKILL)
                    kills += 1
                if rounds == 1 and kills % 4 == 0 and len(made) - due(made) > kill_fleet_at:
                    process.kill()
            printed = process.communicate()[0]
            told = json.loads(printed) if process.returncode in (0, 5) else {}
    problems = Counter("locked" if "in use" in one["why"] else "unusable" for one in told["troubles"])
    untouched = sum(content_of(place) == content for place, content in before.items())
    return {
        "processes killed": kills,
        "fleet killed": rounds - 1,
        "flushed in the last round": told["flushed"],
        "not due any more in the last round": told["nothing"],
        "reported: unusable (21 were), locked (5 were)": f"{problems['unusable']}, {problems['locked']}",
        "unusable ones as they were, byte for byte": untouched,
        "due, neither flushed nor reported": due(made) - len(told["troubles"]),
        "entries lost or doubled": wrong({place: texts for place, texts in made.items() if place not in before}),
    }


def search(root: Path, made: dict[Path, list[str]], given: argparse.Namespace) -> dict[str, Any]:
    """CPU and time of searches through all libraries from a cold shell, beside a search of one."""
    places = list(made)
    Library.open(places[len(places) // 2]).write("The zeppelin lands on Friday.", observed="2026-09-01T00:00:00Z")
    time.sleep(3)  # until then a file may change within its times, and no glance is kept
    across = command("search", "--root", str(root), "--json")
    asked = (
        ("first search: every library read whole", "zeppelin"),
        ("a word that one library holds", "zeppelin"),
        ("a question", "When is the dentist for both children?"),
        ("a common word", "Liv"),
    )
    figures: dict[str, Any] = {}
    for name, query in asked:
        used, wall, memory = used_by([*across, query])
        told = json.loads(subprocess.run([*across, query], capture_output=True, text=True, check=False).stdout)
        figures[f"{name}: CPU s, s, MB; held by"] = f"{used:.1f}, {wall:.1f}, {memory}; {told['holding']:,}"
    every = command("ask", "--root", str(root), "--reader", "bm25", "--json")
    for name, query in asked[1:]:
        used, wall, memory = used_by([*every, query])
        figures[f"ask, {name}: CPU s, s, MB"] = f"{used:.1f}, {wall:.1f}, {memory}"
    for place in places[:: max(1, len(places) // 100)]:
        Library.open(place).write("It rained all day.", observed="2026-09-02T00:00:00Z")
    used, wall, _ = used_by([*across, "zeppelin"])
    figures["the same word when every hundredth library has changed: CPU s, s"] = f"{used:.1f}, {wall:.1f}"
    one = [command("search", "-L", str(place), "zeppelin") for place in places[:10]]
    used, wall, _ = used_by(*one)
    figures["one library alone, index made: CPU s, s"] = f"{used / 10:.2f}, {wall / 10:.2f}"
    used, wall, _ = used_by(*one)
    figures["one library alone, index there: CPU s, s"] = f"{used / 10:.2f}, {wall / 10:.2f}"
    return figures


def spoil(place: Path, number: int) -> bytes:
    """Make a library unusable, in one of three ways; the first is larger than any memory. Gives what it holds then."""
    buffer = place / "CURRENT.md"
    if number == 0:
        with buffer.open("ab") as file:
            file.truncate(1 << 40)
    elif number % 2:
        buffer.write_text(buffer.read_text("utf-8") + "<<<<<<< ours\n- one\n=======\n- two\n>>>>>>> theirs\n", "utf-8")
    else:
        (place / "infinimem.yaml").write_text("format: 1\nflush: {max_tokens: [\n", "utf-8")
    return content_of(place)


def content_of(place: Path) -> bytes:
    """The first megabyte of a library's buffer, and its settings."""
    with (place / "CURRENT.md").open("rb") as file:
        return file.read(1 << 20) + (place / "infinimem.yaml").read_bytes()


def wrong(made: dict[Path, list[str]]) -> int:
    """Entries that are not seen in their library, or more often than written; the same words may have become one."""
    found = 0
    for place, texts in made.items():
        files = [place / "CURRENT.md", *(place / "topics").rglob("*.md")]
        lines = Counter(
            line.partition("> ")[2]
            for file in files
            for line in file.read_text("utf-8").splitlines()
            if "<seq=" in line
        )
        found += sum(not 1 <= lines[text.splitlines()[0]] <= texts.count(text) for text in texts)
    return found


def due(made: dict[Path, list[str]]) -> int:
    """Libraries with entries in their buffers."""
    return sum(b"<seq=" in head_of(place / "CURRENT.md") for place in made)


def buffered(made: dict[Path, list[str]]) -> int:
    """Entries in buffers."""
    return sum(head_of(place / "CURRENT.md").count(b"- <seq=") for place in made)


def head_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(1 << 20)


def command(*words: str) -> list[str]:
    """infinimem as a process of its own."""
    return [sys.executable, "-m", "infinimem", *words]


def fleet_command(root: Path, given: argparse.Namespace) -> list[str]:
    return command("flush", "--root", str(root), "--jobs", str(given.jobs), "--json")


def used_by(*commands: list[str]) -> tuple[float, float, int]:
    """CPU seconds, seconds, and the MB of the largest process, of commands one after another."""
    began, before = time.monotonic(), usage()
    for one in commands:
        subprocess.run(one, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // unit
    return usage() - before, time.monotonic() - began, memory


def usage() -> float:
    """CPU seconds of all processes that were started and have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def children_of(pid: int) -> list[str]:
    """The processes that a process has started."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in listed.splitlines() if line.split()[1] == str(pid)]


def with_no_complaint(call: Any, *arguments: Any) -> None:
    """Do what may have become needless meanwhile."""
    try:
        call(*arguments)
    except ProcessLookupError:
        return


if __name__ == "__main__":
    main()
