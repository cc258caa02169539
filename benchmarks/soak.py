"""Everything that can go wrong, for minutes: writers killed, flushes killed, hostile models, full disks, hands, git.

    python benchmarks/soak.py [--minutes 10] [--seed 1] [--writers 4] [--flushers 2] [--json FILE]

In rounds of some half a minute, each on a new library. In a storm round, writers, each a process, write entries one by
one, in batches and under keys, and note the seqs that were acknowledged; who comes after a killed one says its last
unanswered write again, under its key. Flushes run, by the planner without a model or by a model behind real HTTP that
is hostile in one way or fails in one; some writers and flushes get no more disk than a few bytes; somebody edits topics
in an editor that saves over the file, somebody has acknowledged entries forgotten, somebody imports a session that
grows, again and again; the owner takes flushes back, splits, merges, divides, joins, recovers and reconsolidates; a
watch runs; a reader looks for what was acknowledged before; and every second or so SIGKILL meets one of them. In a git
round, three clones write, flush, commit and merge from each other. After each round every entry is counted, each
acknowledged seq is held against its words, and every file searched for what was forgotten.
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
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from report import table, write_json

from infinimem import Library
from infinimem.errors import InfinimemError
from infinimem.store.buffer import hold
from infinimem.store.evidence import all_records
from infinimem.text.document import parse
from tests.llm.planner import HOSTILE, hostile, sensible
from tests.llm.server import FAULTS, Behaviour, Payload, serving

ROUND = 40.0
WORDS = "Maya Jonas Liv Eirik Admiral boiler harbour choir violin fjord ferry sourdough"
LIMITS = (
    "one machine, one file system; SIGKILL, not a power cut",
    "a small disk is RLIMIT_FSIZE: a file may not grow past it; the disk as a whole does not fill",
    "an editor saves over a topic only if it has not changed since it was opened, as editors warn; a flush that comes "
    "between this look and the saving has its signatures written over: the lines are signed again",
    "what a killed writer had not been told may be there or not, but not twice; a killed forget has erased it or not",
)

WRITER = """
import json, random, resource, signal, sys, time
from pathlib import Path
from infinimem import Library
from infinimem.errors import InfinimemError
folder, name, seed, log, unanswered = sys.argv[1:]
chance = random.Random(seed)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
library = Library.open(folder)
words = "{words}".split()
number = 0
def made():
    global number
    number += 1
    text = f"{{chance.choice(words)}} {{chance.choice(words)}} note {{name}}-{{number}} end"
    return text + f"\\nand goes on {{number}}" if chance.random() < 0.3 else text
def say(**what):
    print(json.dumps(what), file=file, flush=True)
def attempt(texts, key):
    size = (Path(folder) / "CURRENT.md").stat().st_size + chance.randrange(60 + 60 * len(texts))
    try:
        if chance.random() < 0.05:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        seqs = library.write(texts, source=name, key=key)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        say(told=texts, seqs=seqs, key=key)
    except (InfinimemError, OSError) as error:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        say(refused=texts, key=key, error=type(error).__name__)
with open(log, "a") as file:
    if unanswered:
        again = json.loads(unanswered)
        say(tried=again["tried"], key=again["key"])
        attempt(again["tried"], again["key"])
    while True:
        texts = [made() for _ in range(chance.choice((1, 1, 1, 1, 1, 2, 5, 25)))]
        key = f"key {{name}} {{number}}" if chance.random() < 0.4 else ""
        say(tried=texts, key=key)
        time.sleep(chance.random() * 0.3)
        attempt(texts, key)
        if key and chance.random() < 0.3:
            attempt(texts, key)
"""
WRITER = WRITER.format(words=WORDS)
FLUSHER = """
import random, sys
from infinimem import Library
from infinimem.errors import InfinimemError
folder, seed, log = sys.argv[1:]
chance = random.Random(seed)
with open(log, "a") as file:
    while True:
        print("began", file=file, flush=True)
        try:
            Library.open(folder).flush(chance.choice(("lexical", "model", "model")))
            print("done", file=file, flush=True)
        except (InfinimemError, OSError) as error:
            print(f"refused {type(error).__name__}", file=file, flush=True)
"""


@dataclass
class Counts:
    """What a soak counts."""

    rounds: int = 0
    tried: int = 0
    acknowledged: int = 0
    refused: int = 0
    lost: int = 0
    doubled: int = 0
    wrong: int = 0
    hand_edits: int = 0
    hand_edits_lost: int = 0
    hand_edits_signed_again: int = 0
    flushes: int = 0
    flushes_done: int = 0
    flushes_refused: int = 0
    flushes_killed: int = 0
    forgotten: int = 0
    forgotten_remains: int = 0
    forgets_refused: int = 0
    forgets_killed: int = 0
    keys_said_again: int = 0
    imports: int = 0
    imports_killed: int = 0
    owner_commands: int = 0
    owner_commands_done: int = 0
    owner_commands_killed: int = 0
    looks: int = 0
    unseen: int = 0
    unseen_for_a_moment: int = 0
    watches_killed: int = 0
    writers_killed: int = 0
    small_disks: int = 0
    model_calls: int = 0
    hostile_calls: int = 0
    merges: int = 0
    findings: int = 0
    said: list[str] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--flushers", type=int, default=2, help="Flushes at once, each after the other.")
    parser.add_argument("--editor-locks", action="store_true", help="Between its look and its saving no flush comes.")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--keep", type=Path, help="Keep the libraries of rounds with something amiss in this folder.")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended, too
    counts = Counts()
    chance = random.Random(given.seed)
    until = time.monotonic() + given.minutes * 60
    while time.monotonic() < until:
        folder = Path(tempfile.mkdtemp(prefix="soak-"))
        before = asdict(counts)
        try:
            if counts.rounds % 4 == 3:
                git_round(folder, chance, counts)
            else:
                seconds = min(ROUND, until - time.monotonic())
                storm_round(folder, chance, counts, given, seconds)
        finally:
            counts.rounds += 1
            amiss = [
                name
                for name in ("lost", "doubled", "wrong", "unseen", "hand_edits_lost", "forgotten_remains", "findings")
                if getattr(counts, name) != before[name]
            ]
            if amiss and given.keep:
                shutil.copytree(folder, given.keep / folder.name, symlinks=True)
                print(f"round {counts.rounds}: {', '.join(amiss)}: kept in {folder.name}", file=sys.stderr)
            shutil.rmtree(folder, ignore_errors=True)
    figures = {name: value for name, value in asdict(counts).items() if name != "said"}
    print(table(("", "infinimem"), [(name.replace("_", " "), value) for name, value in figures.items()]))
    for line in counts.said:
        print(line)
    write_json(
        given.json, "soak", asdict(counts), limits=LIMITS, minutes=given.minutes, seed=given.seed,
        writers=given.writers, flushers=given.flushers, editor_locks=given.editor_locks,
    )  # fmt: skip


# A storm


def storm_round(folder: Path, chance: random.Random, counts: Counts, given: argparse.Namespace, seconds: float) -> None:
    """Writers, flushes, a small disk, an editor, forgetting and SIGKILL on one library; then every entry is counted."""
    root = folder / "memory"
    words = WORDS.split()
    library = Library.open(root, create=True)
    library.write([f"{word} {words[at - 1]} note start-{at} end" for at, word in enumerate(words)])
    library.flush("lexical")
    kind = chance.choice(("", "", *HOSTILE, *FAULTS))
    good = sensible()

    def answer(payload: Payload) -> str:
        return hostile(kind, payload, good(payload)) if kind in HOSTILE else good(payload)

    model = Behaviour(answer, fault=lambda number, payload: kind if kind in FAULTS else "")
    stop = threading.Event()
    edits: list[str] = []
    erased = Erased()
    remade: set[str] = set()
    processes: dict[str, subprocess.Popen[bytes]] = {}
    with serving(model) as url, ExitStack() as ending:
        ending.callback(stop.set)
        ending.callback(lambda: [process.kill() for process in processes.values()])
        threads = [
            *(
                threading.Thread(target=flush_again_and_again, args=(root, url, chance.random(), stop, counts))
                for _ in range(given.flushers)
            ),
            threading.Thread(target=forget_some, args=(folder, root, chance.random(), stop, erased, counts)),
            threading.Thread(target=import_again, args=(folder, root, chance.random(), stop, counts)),
            threading.Thread(target=own, args=(folder, root, chance.random(), stop, erased, remade, counts)),
            threading.Thread(target=keep_watch, args=(root, chance.random(), stop, counts)),
            threading.Thread(target=look, args=(folder, root, chance.random(), stop, erased, counts)),
            threading.Thread(
                target=edit_by_hand, args=(root, chance.random(), stop, edits), kwargs={"locks": given.editor_locks}
            ),
        ]
        for thread in threads:
            thread.start()
        until = time.monotonic() + seconds
        started = 0
        unanswered = ""
        while time.monotonic() < until:
            while len(processes) < given.writers:
                name = f"w{started}"
                arguments = [str(root), name, str(chance.random()), str(folder / f"{name}.log"), unanswered]
                command = [sys.executable, "-c", WRITER, *arguments]
                processes[name] = subprocess.Popen(command, stderr=subprocess.DEVNULL)
                counts.keys_said_again += bool(unanswered)
                unanswered = ""
                started += 1
            time.sleep(chance.uniform(1.0, 3.0))
            name = chance.choice(list(processes))
            killed = processes.pop(name)
            killed.kill()
            killed.wait()
            unanswered = left_unanswered(folder / f"{name}.log")
            counts.writers_killed += 1
        for process in processes.values():
            process.kill()
            process.wait()
        stop.set()
        for thread in threads:
            thread.join()
    counts.model_calls += len(model.requests)
    counts.hostile_calls += len(model.requests) if kind else 0
    count_entries(folder, root, edits, erased, remade, counts, kind)


def left_unanswered(log: Path) -> str:
    """The last line of a killed writer's log, if it is a write with a key that was never answered."""
    lines = said_in(log)
    return json.dumps(lines[-1]) if lines and "tried" in lines[-1] and lines[-1]["key"] else ""


def said_in(log: Path) -> list[dict[str, Any]]:
    """What a writer has noted; a line that was cut when it was killed is none."""
    if not log.exists():
        return []
    return [json.loads(line) for line in log.read_text().split("\n")[:-1]]


def told_in(folder: Path) -> dict[int, str]:
    """The words of each acknowledged seq, by all logs; of what was imported there is no seq."""
    told: dict[int, str] = {}
    for log in folder.glob("w*.log"):
        for line in said_in(log):
            told.update(zip(line.get("seqs", ()), line.get("told", ()), strict=True))
    return told


def flush_again_and_again(root: Path, url: str, seed: float, stop: threading.Event, counts: Counts) -> None:
    """Flushes one after the other: some by the model, some on a small disk, some killed."""
    chance = random.Random(seed)
    environment = {
        **os.environ,
        "OPENAI_BASE_URL": url,
        "INFINIMEM_MODEL": "scripted",
        "INFINIMEM_MODEL_TIMEOUT": "3s",
        "INFINIMEM_MODEL_DEADLINE": "15s",
    }
    while not stop.is_set():
        if chance.random() < 0.3:
            flush_until_killed(root, environment, chance, counts)
            continue
        planner = chance.choice(("lexical", "model", "model"))
        small = chance.random() < 0.2
        size = chance.choice((300, 2_000, 20_000, 60_000))
        process = subprocess.Popen(
            [sys.executable, "-m", "infinimem", "flush", "-L", str(root), "--planner", planner],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=partial(limit_files, size) if small else None,
        )  # fmt: skip
        counts.flushes += 1
        counts.small_disks += small
        if chance.random() < 0.4:
            with suppress_timeout():
                process.wait(chance.uniform(0.5, 10.0))
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
                counts.flushes_killed += 1
                continue
        code = process.wait()
        counts.flushes_done += code in (0, 4, 5)
        counts.flushes_refused += code not in (0, 4, 5)
        stop.wait(chance.uniform(0, 0.5))


def flush_until_killed(root: Path, environment: dict[str, str], chance: random.Random, counts: Counts) -> None:
    """A process that flushes again and again through the API, and is killed after some seconds."""
    log = root.parent / f"flusher-{chance.random()}.log"
    process = subprocess.Popen(
        [sys.executable, "-c", FLUSHER, str(root), str(chance.random()), str(log)],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    with suppress_timeout():
        process.wait(chance.uniform(3.0, 20.0))
    process.kill()
    process.wait()
    lines = [line.split()[0] for line in log.read_text().splitlines()] if log.exists() else []
    counts.flushes += lines.count("began")
    counts.flushes_done += lines.count("done")
    counts.flushes_refused += lines.count("refused")
    counts.flushes_killed += lines[-1:] == ["began"]


@dataclass
class Erased:
    """Names of entries that somebody had forgotten: told so, or killed over it."""

    told: set[str] = field(default_factory=set)
    tried: set[str] = field(default_factory=set)


def forget_some(folder: Path, root: Path, seed: float, stop: threading.Event, erased: Erased, counts: Counts) -> None:
    """Have an acknowledged entry forgotten every few seconds, whatever else goes on; some of it is killed."""
    chance = random.Random(seed)
    while not stop.wait(chance.uniform(1.0, 4.0)):
        imported = [text for line in said_in(folder / "import.log") for text in line.get("told", ())]
        names = sorted({entry_names(text) for text in (*told_in(folder).values(), *imported)} - erased.tried)
        if not names:
            continue
        name = chance.choice(names)
        erased.tried.add(name)
        process = subprocess.Popen(
            [sys.executable, "-m", "infinimem", "forget", "-L", str(root), "--pattern", f" note {name} end", "--yes"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        if chance.random() < 0.3:
            with suppress_timeout():
                process.wait(chance.uniform(0.5, 4.0))
            if process.poll() is None:
                process.kill()
                process.wait()
                counts.forgets_killed += 1
                continue
        if process.wait() == 0:
            erased.told.add(name)
            counts.forgotten += 1
        else:
            counts.forgets_refused += 1


def import_again(folder: Path, root: Path, seed: float, stop: threading.Event, counts: Counts) -> None:
    """Import an agent's session that grows, over and over; some of it is killed. At the end it is brought in whole."""
    chance = random.Random(seed)
    words = WORDS.split()
    session = folder / "session.jsonl"
    number = 0
    with (folder / "import.log").open("a") as log:
        ended = False
        while not ended:
            ended = stop.wait(chance.uniform(0.5, 3.0))
            texts = [
                f"{chance.choice(words)} {chance.choice(words)} note i-{at} end"
                for at in range(number, number + chance.choice((1, 3, 20)))
            ]
            with session.open("a") as file:
                for text in texts:
                    row = {
                        "parentUuid": None, "isSidechain": False, "sessionId": "s", "uuid": f"u{number}",
                        "timestamp": "2026-05-01T09:00:00.000Z", "type": "user",
                        "message": {"role": "user", "content": text},
                    }  # fmt: skip
                    file.write(json.dumps(row) + "\n")
                    number += 1
            print(json.dumps({"tried": texts, "key": ""}), file=log, flush=True)
            process = subprocess.Popen(
                [sys.executable, "-m", "infinimem", "import", "-L", str(root), str(session)],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            counts.imports += 1
            if chance.random() < 0.4 and not ended:
                with suppress_timeout():
                    process.wait(chance.uniform(0.2, 2.0))
                if process.poll() is None:
                    process.kill()
                    process.wait()
                    counts.imports_killed += 1
                    continue
            if process.wait() == 0:
                every = [json.loads(line)["message"]["content"] for line in session.read_text().splitlines()]
                print(json.dumps({"told": every}), file=log, flush=True)


def own(
    folder: Path, root: Path, seed: float, stop: threading.Event, erased: Erased, remade: set[str], counts: Counts
) -> None:
    """What an owner does by hand, one command after the other; some are killed."""
    chance = random.Random(seed)
    while not stop.wait(chance.uniform(0.2, 2.0)):
        topics = [path.relative_to(root / "topics").with_suffix("").as_posix()
                  for path in sorted((root / "topics").rglob("*.md"))]  # fmt: skip
        told = {
            seq: text for seq, text in told_in(folder).items() if entry_names(text) not in erased.tried | remade
        }  # fmt: skip
        seqs = chance.sample(sorted(told), min(2, len(told)))
        what = chance.choice("undo undo undo split merge divide divide join join recover reconsolidate check".split())
        match what:
            case "split" if topics:
                command = ["split", chance.choice(topics)]
            case "merge" if len(topics) > 3:
                command = ["merge", *chance.sample(topics, 2)]
            case "divide" if seqs and "\n" in told[seqs[0]]:
                command = ["split", str(seqs[0]), *told[seqs[0]].split("\n")]
                remade.add(entry_names(told[seqs[0]]))
            case "join" if len(seqs) == 2 and not any("\n" in told[seq] for seq in seqs):
                command = ["merge", *map(str, seqs), "--text", "; ".join(told[seq] for seq in seqs)]
                remade.update(entry_names(told[seq]) for seq in seqs)
            case "recover" if seqs:
                command = ["recover", *map(str, seqs)]
            case "check":
                command = ["check", "--fix"]
            case "undo" | "reconsolidate":
                command = [what]
            case _:
                continue
        process = subprocess.Popen(
            [sys.executable, "-m", "infinimem", *command, "-L", str(root)], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        counts.owner_commands += 1
        if chance.random() < 0.3:
            with suppress_timeout():
                process.wait(chance.uniform(0.2, 2.0))
            if process.poll() is None:
                process.kill()
                process.wait()
                counts.owner_commands_killed += 1
                continue
        counts.owner_commands_done += process.wait() in (0, 5)


def keep_watch(root: Path, seed: float, stop: threading.Event, counts: Counts) -> None:
    """A watch that signs what is saved and flushes when due; killed and started again."""
    chance = random.Random(seed)
    while not stop.is_set():
        process = subprocess.Popen(
            [sys.executable, "-m", "infinimem", "watch", "-L", str(root)], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        stop.wait(chance.uniform(3.0, 15.0))
        os.killpg(process.pid, signal.SIGKILL)  # with the flush that it may have started
        process.wait()
        counts.watches_killed += 1


def look(folder: Path, root: Path, seed: float, stop: threading.Event, erased: Erased, counts: Counts) -> None:
    """Look for an acknowledged entry by its words, as a reader would; what is not there is looked for again."""
    chance = random.Random(seed)
    library = Library.open(root)
    while not stop.wait(0.1):
        names = sorted({entry_names(text) for text in told_in(folder).values()})
        if not names:
            continue
        name = chance.choice(names)
        counts.looks += 1
        for attempt in range(20):
            if library.grep(f" note {name} end", limit=1) or name in erased.tried:
                counts.unseen_for_a_moment += attempt > 0
                break
            stop.wait(0.05)
        else:
            if name not in retired_names(root):
                counts.unseen += 1
                counts.said.append(f"unseen for a second: {name}")


def limit_files(size: int) -> None:
    """No file may grow past so many bytes; the write then fails."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@contextmanager
def suppress_timeout() -> Iterator[None]:
    """Waiting may end without anything to be had."""
    try:
        yield
    except subprocess.TimeoutExpired:
        return


def edit_by_hand(root: Path, seed: float, stop: threading.Event, edits: list[str], *, locks: bool) -> None:
    """Open a topic, type a bullet at its end, save over it: unless it has changed. `locks` as no editor does."""
    chance = random.Random(seed)
    number = 0
    while not stop.wait(chance.uniform(0.5, 2.0)):
        topics = sorted((root / "topics").rglob("*.md"))
        if not topics:
            continue
        topic = chance.choice(topics)
        try:
            before = topic.stat()
            content = topic.read_bytes()
            number += 1
            fresh = topic.with_name(f".{topic.name}.swp")
            fresh.write_bytes(content.rstrip(b"\n") + f"\n- typed by hand h-{number} end\n".encode())
            with hold(root) if locks else nullcontext():
                now = topic.stat()
                if (now.st_mtime_ns, now.st_ino) == (before.st_mtime_ns, before.st_ino):
                    fresh.replace(topic)
                    edits.append(f"h-{number}")
                else:
                    fresh.unlink()
        except (OSError, InfinimemError):
            continue


def count_entries(
    folder: Path, root: Path, edits: list[str], erased: Erased, remade: set[str], counts: Counts, kind: str
) -> None:
    """Every entry that was acknowledged is in memory once and in its words, none twice, and none that was forgotten."""
    told = {f"start-{at}" for at in range(len(WORDS.split()))}
    tried = set(told)
    for log in (*folder.glob("w*.log"), folder / "import.log"):
        for line in said_in(log):
            tried.update(map(entry_names, line.get("tried", ())))
            told.update(map(entry_names, line.get("told", ())))
            counts.refused += len(line.get("refused", ()))
    settle(root, counts)
    words = words_in(root)
    for seq, text in told_in(folder).items():
        if entry_names(text) not in erased.tried and words.get(seq, text) != text:
            counts.wrong += 1
            counts.said.append(f"acknowledged as {text!r}, but seq {seq} is {words[seq]!r}")
        elif entry_names(text) not in erased.tried and seq not in words:
            counts.lost += 1
            counts.said.append(f"acknowledged, but there is no seq {seq}: {text!r}")
    kept = Counter(entry_names(text) for text in words.values())
    seen: Counter[str] = Counter()
    for path in [root / "CURRENT.md", *sorted((root / "topics").rglob("*.md"))]:
        for entry in parse(path.relative_to(root).as_posix(), path.read_bytes()).entries:
            seen.update(map(entry_names, entry.text.split("; ")))  # two that were joined are one line
    retired = retired_names(root)
    counts.tried += len(tried)
    counts.acknowledged += len(told)
    files = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    for name in sorted(erased.told):
        places = [str(path.relative_to(root)) for path, found in files.items() if f" note {name} end".encode() in found]
        if places:
            counts.forgotten_remains += 1
            counts.said.append(f"forgotten, but in {', '.join(places)}: {name} (model: {kind or 'sensible'})")
    for name in sorted(told - erased.tried):
        if not kept[name]:
            counts.lost += 1
            counts.said.append(f"lost: {name} (model: {kind or 'sensible'})")
        elif seen[name] == 0 and name not in retired:
            counts.wrong += 1
            counts.said.append(f"kept in evidence, but neither seen nor retired: {name} (model: {kind or 'sensible'})")
    for name, number in (kept | seen).items():
        if name in edits and seen[name] <= 1 < number:
            counts.hand_edits_signed_again += 1  # the editor saved over the line that a flush had just signed
        elif number > 1 and name and not (name in remade and seen[name] <= 1 and number == 2):
            counts.doubled += 1
            counts.said.append(f"doubled: {name}: {kept[name]} kept, {seen[name]} seen (model: {kind or 'sensible'})")
    strange = [name for name in kept if name not in tried and name not in edits and name]
    counts.wrong += len(strange)
    counts.said += [f"never written: {name}" for name in strange]
    every = "".join(path.read_text("utf-8", "replace") for path in root.rglob("*.md"))
    counts.hand_edits += len(edits)
    for edit in edits:
        if f"typed by hand {edit} end" not in every:
            counts.hand_edits_lost += 1
            counts.said.append(f"lost by hand: {edit} (model: {kind or 'sensible'})")


def settle(root: Path, counts: Counts) -> None:
    """One quiet flush, which finishes what a killed one left, and a look at every invariant."""
    library = Library.open(root)
    try:
        library.flush("lexical")
        library.check(fix=True)
        bad = [found for found in library.check() if found.problem.blocking]
    except InfinimemError as error:
        counts.findings += 1
        counts.said.append(f"after the storm: {error}")
        return
    counts.findings += len(bad)
    counts.said += [f"finding: {found.problem}" for found in bad]


def words_in(root: Path) -> dict[int, str]:
    """The words of every entry by seq, from evidence and the buffer."""
    found = {seq: record.entries[0][1].text for seq, record in all_records(root).items() if record.entries}
    for entry in parse("CURRENT.md", (root / "CURRENT.md").read_bytes()).entries:
        found[entry.seq] = entry.text
    return found


def retired_names(root: Path) -> set[str]:
    """What left the topics for a reason that evidence tells."""
    from infinimem.store.evidence import retirement

    return {
        entry_names(record.entries[0][1].text)
        for record in all_records(root).values()
        if record.entries and retirement(record) is not None
    }


def entry_names(text: str) -> str:
    """The name that a soak's entry bears; "" if it is none, or if its words have suffered."""
    first, _, rest = text.partition("\n")
    head, _, tail = first.rpartition(" note ")
    if not head:
        head, _, tail = first.rpartition("typed by hand ")
        return tail.removesuffix(" end") if tail.endswith(" end") else ""
    name = tail.removesuffix(" end")
    whole = tail.endswith(" end") and (not rest or rest.strip() == f"and goes on {name.split('-')[-1]}")
    return name if whole else f"{name} (cut)"


# Git


def git_round(folder: Path, chance: random.Random, counts: Counts) -> None:
    """Three clones that write, flush and merge from each other, in any order; then all agree and nothing is lost."""
    git(folder, "init", "-q", "--bare", "-b", "main", "shared.git")
    first = folder / "a"
    git(folder, "clone", "-q", str(folder / "shared.git"), "a")
    for name in ("a", "b", "c"):
        if name != "a":
            git(folder, "clone", "-q", str(folder / "shared.git"), name)
        clone = folder / name
        git(clone, "config", "user.name", name)
        git(clone, "config", "user.email", f"{name}@example.org")
        if name == "a":
            ours(clone, "init", str(clone))
        ours(clone, "init", "--git", str(clone))
        if name == "a":
            git(clone, "checkout", "-q", "-B", "main")
            save(clone)
            git(clone, "push", "-q", "origin", "main")
    told: set[str] = set()
    words = WORDS.split()
    for step in range(18):
        clone = folder / chance.choice("abc")
        match chance.randrange(4):
            case 0 | 1:
                for _ in range(chance.randrange(1, 5)):
                    name = f"{clone.name}-{step * 10 + len(told)}"
                    Library.open(clone).write(f"{chance.choice(words)} {chance.choice(words)} note {name} end")
                    told.add(name)
            case 2:
                ours(clone, "flush", "-L", str(clone), "--planner", "lexical")
            case 3:
                synchronise(clone, counts)
    for name in ("a", "b", "c", "a", "b"):
        synchronise(folder / name, counts)
    counts.tried += len(told)
    counts.acknowledged += len(told)
    heads = {git(folder / name, "rev-parse", "HEAD") for name in ("a", "b", "c")}
    if len(heads) > 1:
        for name in ("c", "a", "b", "c"):
            synchronise(folder / name, counts)
    settle(first, counts)
    kept = Counter(entry_names(text) for text in words_in(first).values())
    seen: Counter[str] = Counter()
    for path in [first / "CURRENT.md", *sorted((first / "topics").rglob("*.md"))]:
        for entry in parse(path.relative_to(first).as_posix(), path.read_bytes()).entries:
            seen[entry_names(entry.text)] += 1
    retired = retired_names(first)
    for name in sorted(told):
        if not kept[name] or (not seen[name] and name not in retired):
            counts.lost += 1
            counts.said.append(f"lost by git: {name}: {kept[name]} kept, {seen[name]} seen")
        if kept[name] > 1 or seen[name] > 1:
            counts.doubled += 1
            counts.said.append(f"doubled by git: {name}: {kept[name]} kept, {seen[name]} seen")


def synchronise(clone: Path, counts: Counts) -> None:
    """Commit, merge what the others have, settle it, and push."""
    save(clone)
    merged = git(clone, "pull", "-q", "--no-rebase", "--no-edit", "origin", "main", check=False)
    if (clone / ".git" / "MERGE_HEAD").exists():
        counts.wrong += 1
        counts.said.append(f"a merge stopped: {merged}")
        git(clone, "merge", "--abort", check=False)
        return
    counts.merges += 1
    ours(clone, "check", "--fix", "-L", str(clone))
    save(clone)
    git(clone, "push", "-q", "origin", "HEAD:main", check=False)


def save(clone: Path) -> None:
    git(clone, "add", "-A")
    git(clone, "commit", "-q", "-m", "as it is", check=False)


def git(folder: Path, *arguments: str, check: bool = True) -> str:
    """What git prints; with `check` its failure is ours."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    if check and done.returncode:
        raise RuntimeError(f"git {' '.join(arguments)}: {done.stderr}")
    return done.stdout.strip() or done.stderr.strip()


def ours(folder: Path, *arguments: str) -> None:
    """One command of infinimem."""
    subprocess.run([sys.executable, "-m", "infinimem", *arguments], cwd=folder, capture_output=True, check=False)


if __name__ == "__main__":
    main()
