"""What becomes of entries in other memories under the same load: some writers at once, each killed now and then.

    python -m venv PEERS && PEERS/bin/pip install jrnl basic-memory       # basic-memory wants Python 3.12
    npm install --prefix NODE @modelcontextprotocol/server-memory
    git clone --depth 1 https://github.com/xwmx/nb NB
    python3.13 -m venv PAPER && PAPER/bin/pip install infini-memory==0.3.6rc1
    python benchmarks/soak_peers.py [--seconds 60] [--seeds 1,2,3]
        [--jrnl PEERS/bin/jrnl] [--basic-memory PEERS/bin/basic-memory]
        [--server-memory NODE/node_modules/@modelcontextprotocol/server-memory/dist/index.js] [--nb NB/nb]
        [--paper PAPER/bin/python] [--json FILE]

Each writer is a process that adds one entry after another as the peer's users or agents do, and notes what the peer
said was done. Every few seconds one of them, with whatever it has started, meets SIGKILL and another begins. Then the
entries are counted in the peer's own files. Every peer is driven once with each seed, one after the other, for the
same seconds; the table holds the sums and, of what was lost, each run. Peers are given by path and are no dependency;
what is not given is left out and said.

The paper's package writes only with a model: it gets one behind real HTTP that does what its prompts ask and that, one
time in five, answers 500, HTML, prose, a cut reply or none. Beside it a row of ours whose flushes ask such a model.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.llm.planner import sensible
from tests.llm.server import Behaviour, Payload, serving

WORDS = "Maya Jonas Liv Eirik Admiral boiler harbour choir violin fjord ferry sourdough".split()
NAME = re.compile(r"note (w\d+-\d+)( end)?")
SLOW = {"basic-memory": 8.0, "paper": 4.0}
"""Peers whose servers need many seconds to start: how many times rarer they are killed."""
LIMITS = (
    "one machine, SIGKILL, no power cut; peers as they come, with their defaults, each on an empty store",
    "writing alone: no search, no hand edit runs beside; beside infinimem's API row flushes run and are killed",
    "what was not acknowledged may be there or not; acknowledged: the command ended with 0, or the call was answered",
    "commands that take a second write less than calls that take a millisecond: compare shares",
    "a share of some hundred entries is chance below some hundredths: see the runs beside the sum",
    "the paper's package is release 0.3.6rc1, the oldest on PyPI, its defaults but: CURRENT is split from 1,000 tokens"
    " on, the ten tries of a call follow each other at once, and one thread rewrites; what its documents hold is"
    " counted, whether or not its index still knows them; its scripted model leaves no fact out",
)
MODEL = "SOAK_MODEL"
"""The environment variable that names the model's server."""
FAULTY = ("500", "html", "prose", "truncated", "empty")
FACT = re.compile(r"^- <seq=[^>]*> (.*)$", re.MULTILINE)
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "soak", "version": "1"}}
Write = Callable[[str, str], None]


# Each peer: a writer made once in each process; it raises where the peer says that the entry was not taken.


def plain_append(folder: Path, tool: str) -> Write:
    """A shell's `>>` to one file, as agents do in a notes file."""

    def write(name: str, text: str) -> None:
        subprocess.run(
            ["sh", "-c", 'printf -- "- %s\\n" "$1" >> "$2"', "sh", text, str(folder / "notes.md")], check=True
        )

    return write


def memory_tool(folder: Path, tool: str) -> Write:
    """Anthropic's memory tool by its SDK's own implementation on files: insert a line at the top of a file."""
    from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool

    memory = BetaLocalFilesystemMemoryTool(str(folder))
    with contextlib.suppress(Exception):  # there already
        memory.call({"command": "create", "path": "/memories/notes.md", "file_text": "# Notes\n"})

    def write(name: str, text: str) -> None:
        command = {"command": "insert", "path": "/memories/notes.md", "insert_line": 1, "insert_text": f"- {text}\n"}
        memory.call(command)

    return write


def jrnl(folder: Path, tool: str) -> Write:
    """The journal of the command line: one file."""
    settings = folder / "jrnl.yaml"
    if not settings.exists():
        fresh = folder / f"jrnl.{os.getpid()}"
        fresh.write_text(f"journals:\n  default:\n    journal: {folder / 'journal.txt'}\ncolors: {{}}\nversion: v4.2\n"
                         "encrypt: false\ntemplate: false\neditor: ''\ndefault_hour: 9\ndefault_minute: 0\n"
                         "timeformat: '%F %H:%M'\ntagsymbols: '@'\nhighlight: false\nlinewrap: 79\n"
                         "indent_character: '|'\n"
                         "display_format: null\n")  # fmt: skip
        fresh.replace(settings)

    def write(name: str, text: str) -> None:
        run([tool, "--config-file", str(settings), f"{text}."])

    return write


def nb(folder: Path, tool: str) -> Write:
    """nb: a note is a file, and each is a git commit."""
    environment = {"NB_DIR": str(folder / "nb"), "HOME": str(folder), "NB_AUTO_SYNC": "0", "EDITOR": "true"}
    settings = folder / ".gitconfig"
    if not settings.exists():
        settings.write_text("[user]\n\tname = a\n\temail = a@example.org\n")

    def write(name: str, text: str) -> None:
        run([tool, "add", "--filename", f"{name}.md", "--content", text], environment)

    return write


def basic_memory(folder: Path, tool: str) -> Write:
    """basic-memory's own MCP server, one for each client, as clients start it: a note for each entry."""
    call = basic_memory_server(folder, tool)

    def write(name: str, text: str) -> None:
        note = {"title": name, "directory": "notes", "content": text}
        call("tools/call", {"name": "write_note", "arguments": note})

    return write


def basic_memory_server(folder: Path, tool: str) -> Callable[[str, dict[str, Any]], dict[str, Any]]:
    """A server of basic-memory on a store."""
    places = {"BASIC_MEMORY_HOME": str(folder / "notes"), "BASIC_MEMORY_CONFIG_DIR": str(folder / "settings")}
    return connect([tool, "mcp"], {"HOME": str(folder), **places})


def server_memory(folder: Path, tool: str) -> Write:
    """The reference memory server of MCP, one for each client, all on one file."""
    call = connect(["node", tool], {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")})

    def write(name: str, text: str) -> None:
        entity = {"name": name, "entityType": "note", "observations": [text]}
        call("tools/call", {"name": "create_entities", "arguments": {"entities": [entity]}})

    return write


def paper(folder: Path, tool: str) -> Write:
    """The paper's package by its `add`: a model takes facts out of each text, and splits CURRENT when it is long."""
    driver = Path(__file__).with_name("soak_paper.py")
    server = subprocess.Popen(
        [tool, str(driver), os.environ[MODEL], str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert server.stdin is not None
    assert server.stdout is not None
    stdin, stdout = server.stdin, server.stdout

    def write(name: str, text: str) -> None:
        stdin.write(json.dumps(text) + "\n")
        stdin.flush()
        answer = stdout.readline()
        if not answer:
            raise RuntimeError("the package has gone")
        if int(answer) < 1:
            raise ValueError("it has processed nothing")

    return write


def infinimem_api(folder: Path, tool: str) -> Write:
    """infinimem's own API, one call an entry."""
    from infinimem import Library

    library = Library.open(folder / "memory", create=True)

    def write(name: str, text: str) -> None:
        library.write(text)

    return write


def infinimem_mcp(folder: Path, tool: str) -> Write:
    """infinimem's own MCP server, one for each client, all on one library."""
    from infinimem import Library

    Library.open(folder / "memory", create=True)
    call = connect([sys.executable, "-m", "infinimem", "-L", str(folder / "memory"), "mcp"], {})

    def write(name: str, text: str) -> None:
        call("tools/call", {"name": "write", "arguments": {"entries": [text]}})

    return write


def infinimem_command(folder: Path, tool: str) -> Write:
    """infinimem's own command, one process an entry."""

    def write(name: str, text: str) -> None:
        run([sys.executable, "-m", "infinimem", "write", "-L", str(folder / "memory"), text])

    return write


@dataclass(frozen=True, slots=True)
class Peer:
    """How a peer is driven: its writer, the option that gives its path, and what its row has unlike the rest."""

    begin: Callable[[Path, str], Write]
    kind: str
    tool: str = ""
    modelled: bool = False
    faults: float = 0.2
    alone: bool = False


PEERS: dict[str, Peer] = {
    "infinimem, API": Peer(infinimem_api, "infinimem"),
    "infinimem, its MCP server": Peer(infinimem_mcp, "infinimem"),
    "infinimem, command": Peer(infinimem_command, "infinimem"),
    "infinimem, API, flushes by a model that fails": Peer(infinimem_api, "infinimem", modelled=True),
    "plain file, `>>`": Peer(plain_append, "plain"),
    "basic-memory, its MCP server": Peer(basic_memory, "basic-memory", "basic_memory"),
    "nb": Peer(nb, "nb", "nb"),
    "jrnl": Peer(jrnl, "jrnl", "jrnl"),
    "Anthropic's memory tool on files": Peer(memory_tool, "plain"),
    "MCP reference memory server": Peer(server_memory, "server-memory", "server_memory"),
    "the paper's package, a model that fails": Peer(paper, "paper", "paper", modelled=True),
    "the same, one process, not killed": Peer(paper, "paper", "paper", modelled=True, alone=True),
    "the same, one process, not killed, a sound model": Peer(
        paper, "paper", "paper", modelled=True, alone=True, faults=0.0
    ),
}


def said_to(payload: Payload) -> str:
    """What the model says to the prompts of the paper's package: every fact is kept, sorted by its first word."""
    texts = [str(message["content"]) for message in payload["messages"]]
    if texts[0].startswith("You will receive: 1) new Markdown"):
        asked = json.loads(texts[1])
        known = {str(row["summary"]).split(" ", 1)[0]: row["id"] for row in asked["docs"]}
        groups = by_first_word(asked["new_content"])
        return json.dumps({
            "updates": [{"id": known[word], "new_content": text} for word, text in groups.items() if word in known],
            "new_docs": [{"title": word, "content": text} for word, text in groups.items() if word not in known],
        })  # fmt: skip
    if texts[0].startswith("You will receive: 1) an old Markdown"):
        groups = by_first_word("\n".join(texts))
        word = max(groups, key=lambda one: len(groups[one]), default="Notes")
        return f"---\nsummary: {word} and what was said of it\n---\n# {word}\n\n" + "\n".join(groups.values())
    if texts[0].startswith("You will receive an existing document list"):
        return '{"groups": []}'
    return f"# {texts[-1].split(' ', 1)[0]}\n\n- <seq=@@SEQ@@,time=empty> {texts[-1]}\n"


def by_first_word(text: str) -> dict[str, str]:
    """The facts of a text by what they are about, each once."""
    groups: dict[str, dict[str, None]] = {}
    for found in FACT.finditer(text):
        groups.setdefault(found[1].split(" ", 1)[0], {})[found[0]] = None
    return {word: "\n".join(lines) for word, lines in groups.items()}


@contextlib.contextmanager
def faulty_model(peer: Peer, seed: int) -> Iterator[Behaviour]:
    """A model for those that ask one, by its address in the environment; a share of its replies is none."""
    chance = random.Random(seed)
    answer = said_to if peer.kind == "paper" else sensible()
    behaviour = Behaviour(
        answer, fault=lambda number, payload: chance.choice(FAULTY) if chance.random() < peer.faults else ""
    )
    if not peer.modelled:
        yield behaviour
        return
    with serving(behaviour) as url:
        os.environ[MODEL] = url
        yield behaviour


def connect(command: list[str], environment: dict[str, str]) -> Callable[[str, dict[str, Any]], dict[str, Any]]:
    """An MCP server over its standard input and output, greeted: what sends it a request and gives its answer."""
    server = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert server.stdin is not None
    assert server.stdout is not None
    numbers = iter(range(1, 1 << 60))
    stdin, stdout = server.stdin, server.stdout

    def call(method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        number = next(numbers)
        stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}) + "\n")
        stdin.flush()
        for line in stdout:
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == number:
                if "error" in answer or answer["result"].get("isError"):
                    raise RuntimeError(line)
                return answer
        raise RuntimeError("the server has gone")

    call("initialize", HELLO)
    stdin.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + "\n")
    return call


def run(command: list[str], environment: dict[str, str] | None = None) -> None:
    """One command that has to succeed."""
    subprocess.run(
        command, env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, check=True,
    )  # fmt: skip


def drive(peer: str, folder: Path, tool: str, name: str, seed: str, log: Path) -> None:
    """Write until killed; note each entry before and after."""
    chance = random.Random(seed)
    with log.open("a") as file:
        write = PEERS[peer].begin(folder, tool)
        number = 0
        while True:
            number += 1
            this = f"{name}-{number}"
            print(f"tried {this}", file=file, flush=True)
            try:
                write(this, f"{chance.choice(WORDS)} {chance.choice(WORDS)} note {this} end")
            except Exception as error:  # whatever a peer says, it has not taken the entry
                print(f"refused {this} {type(error).__name__}", file=file, flush=True)
                time.sleep(0.05)
                if isinstance(error, RuntimeError) and "gone" in str(error):
                    return
                continue
            print(f"told {this}", file=file, flush=True)


def storm(name: str, tool: str, seconds: float, writers: int, seed: int, keep: Path | None = None) -> dict[str, Any]:
    """Writers on one peer, one killed every second or so; what was tried, told, lost, doubled and damaged."""
    with faulty_model(PEERS[name], seed) as model:
        figures = storm_of(name, tool, seconds, 1 if PEERS[name].alone else writers, seed, keep)
        return {**figures, "model calls": len(model.requests)}


def storm_of(name: str, tool: str, seconds: float, writers: int, seed: int, keep: Path | None) -> dict[str, Any]:
    """The storm itself."""
    peer = PEERS[name]
    folder = Path(tempfile.mkdtemp(prefix="soak-peer-"))
    place = folder / "store"
    place.mkdir()
    chance = random.Random(seed)
    processes: list[subprocess.Popen[bytes]] = []
    started = killed = 0
    try:
        first(name, place, tool)
        until = time.monotonic() + seconds
        pace = SLOW.get(peer.kind, 1.0)
        while time.monotonic() < until:
            processes = [process for process in processes if process.poll() is None]
            while len(processes) < writers:
                log = folder / f"w{started}.log"
                arguments = [name, str(place), tool, f"w{started}", str(chance.random()), str(log)]
                command = [sys.executable, __file__, "--drive", *arguments]
                processes.append(subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL))
                started += 1
            if peer.kind == "infinimem" and peer.modelled:
                with flushing(place, model=True) as flush, contextlib.suppress(subprocess.TimeoutExpired):
                    flush.wait(chance.uniform(2.0, 8.0) if chance.random() < 0.4 else until - time.monotonic() + 1.0)
            elif peer.kind == "infinimem" and chance.random() < 0.3:
                with flushing(place, model=False):
                    time.sleep(chance.uniform(1.0, 4.0))
            else:
                time.sleep(min(pace * chance.uniform(1.0, 4.0), max(0.0, until - time.monotonic())))
            if not peer.alone:
                end(processes.pop(chance.randrange(len(processes))))
                killed += 1
        for process in processes:
            end(process)
        figures = {"killed": killed, **counted(peer, folder, place, tool)}
        if keep is not None and figures["lost"]:
            shutil.copytree(folder, keep / folder.name, symlinks=True)
        return figures
    finally:
        for process in processes:
            end(process)
        shutil.rmtree(folder, ignore_errors=True)


def first(peer: str, place: Path, tool: str) -> None:
    """One entry before the storm, so that every store exists."""
    log = place.parent / "w-first.log"
    process = subprocess.Popen(
        [sys.executable, __file__, "--drive", peer, str(place), tool, "w0000", "1", str(log)], start_new_session=True,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    until = time.monotonic() + 150
    told = False
    while time.monotonic() < until and not told:
        time.sleep(0.1)
        told = log.exists() and "\ntold" in log.read_text()
    end(process)
    if not told:
        raise SystemExit(f"{peer}: nothing was acknowledged in 150 s; does it run by itself?")


@contextlib.contextmanager
def flushing(place: Path, *, model: bool) -> Iterator[subprocess.Popen[bytes]]:
    """A flush beside the writers, killed at the end if it is not done."""
    asked = {"OPENAI_BASE_URL": os.environ[MODEL], "INFINIMEM_MODEL": "scripted"} if model else {}
    process = subprocess.Popen(
        [sys.executable, "-m", "infinimem", "flush", "-L", str(place / "memory")], start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **asked},
    )  # fmt: skip
    try:
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def counted(peer: Peer, folder: Path, place: Path, tool: str) -> dict[str, Any]:
    """What the logs say was tried and told, held against what the peer has."""
    lines = [line.split() for log in folder.glob("w*.log") for line in log.read_text().splitlines()]
    tried, told = ({line[1] for line in lines if line[0] == what and len(line) > 1} for what in ("tried", "told"))
    reading = reads(peer, place, tool)  # first: basic-memory's next server writes the files that a killed one owed
    text = content(peer, place)
    whole = Counter(found[1] for found in NAME.finditer(text) if found[2])
    cut = {found[1] for found in NAME.finditer(text) if not found[2]} - set(whole)
    return {
        "tried": len(tried),
        "acknowledged": len(told),
        "refused": sum(line[0] == "refused" for line in lines),
        "lost": len(told - set(whole) - cut),
        "doubled": sum(number > 1 for number in whole.values()),
        "damaged": len(cut),
        "reads afterwards": reading,
    }


def content(peer: Peer, place: Path) -> str:
    """Every entry that a peer has, once for each time it has it."""
    if peer.kind == "infinimem":
        files = [place / "memory" / "CURRENT.md", *(place / "memory" / "topics").rglob("*.md")]
        lines = [
            line for file in files for line in file.read_text("utf-8", "replace").splitlines() if line.startswith("- <")
        ]
        return "\n".join(lines)
    if peer.kind == "server-memory":
        return (place / "memory.jsonl").read_text("utf-8", "replace")
    names = {
        "basic-memory": "**/notes/**/*.md", "jrnl": "journal.txt", "nb": "nb/**/*.md", "paper": "data/u/doc/**/*.md"
    }  # fmt: skip
    files = sorted(place.glob(names.get(peer.kind, "**/notes.md")))
    return "\n".join(file.read_text("utf-8", "replace") for file in files if file.is_file())


def reads(peer: Peer, place: Path, tool: str) -> str:
    """Whether the peer itself still reads its store: the server's whole graph, a journal, a library's check."""
    try:
        if peer.kind == "server-memory":
            call = connect(["node", tool], {"MEMORY_FILE_PATH": str(place / "memory.jsonl")})
            call("tools/call", {"name": "read_graph", "arguments": {}})  # the server ends when this process does
        elif peer.kind == "basic-memory":
            call = basic_memory_server(place, tool)
            call("tools/call", {"name": "read_note", "arguments": {"identifier": "notes/w0000-1"}})
            time.sleep(10.0)
        elif peer.kind == "paper":
            run([tool, str(Path(__file__).with_name("soak_paper.py")), os.environ[MODEL], str(place), "--list"])
        elif peer.kind == "jrnl":
            run([tool, "--config-file", str(place / "jrnl.yaml"), "-n", "5"])
        elif peer.kind == "infinimem":
            run([sys.executable, "-m", "infinimem", "check", "-L", str(place / "memory")])
        else:
            return ""
    except (subprocess.CalledProcessError, RuntimeError, ValueError):
        return "no"
    return "yes"


def versions_of(given: argparse.Namespace) -> dict[str, str]:
    """What the peers that are given by path say of their version."""
    asked = {
        "jrnl": [given.jrnl, "--version"],
        "nb": [given.nb, "version"],
        "basic-memory": [given.basic_memory, "--version"],
        "paper": [given.paper, "-c", "from importlib.metadata import version; print(version('infini-memory'))"],
    }
    found = {
        name: subprocess.run(command, capture_output=True, text=True, check=False).stdout.split("\n")[0].strip()
        for name, command in asked.items()
        if command[0]
    }
    if given.server_memory:
        package = json.loads((Path(given.server_memory).parents[1] / "package.json").read_text())
        found["server-memory"] = package["version"]
    return found


def summed(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Several runs of a peer as one row: sums, and of what was lost each run beside."""
    row: dict[str, Any] = {name: sum(run[name] for run in runs) for name in runs[0] if name != "reads afterwards"}
    row["lost of each run"] = ", ".join(f"{run['lost']} of {run['acknowledged']}" for run in runs)
    row["lost, %"] = 100 * row["lost"] / max(1, row["acknowledged"])
    row["reads afterwards"] = ", ".join(sorted({run["reads afterwards"] for run in runs}))
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--seeds", default="1,2,3", help="A run of every peer for each.")
    parser.add_argument("--only", choices=list(PEERS), help="Only the peer of this name.")
    parser.add_argument("--keep", type=Path, help="Keep the stores, and the writers' logs, of runs that lost entries.")
    parser.add_argument("--json", type=Path)
    for tool in ("jrnl", "nb", "basic-memory", "server-memory", "paper"):
        parser.add_argument(f"--{tool}", default="", metavar="PATH")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended, too
    from report import table, write_json

    seeds = [int(seed) for seed in given.seeds.split(",")]
    runs: dict[str, list[dict[str, Any]]] = {}
    for seed in seeds:
        for name, peer in PEERS.items():
            if given.only not in (None, name):
                continue
            tool = getattr(given, peer.tool) if peer.tool else ""
            if peer.tool and not tool:
                print(f"{name}: not driven; give --{peer.tool.replace('_', '-')} PATH", file=sys.stderr)
                continue
            runs.setdefault(name, []).append(storm(name, tool, given.seconds, given.writers, seed, given.keep))
            print(f"seed {seed}, {name}: {runs[name][-1]}", file=sys.stderr, flush=True)
    if not runs:
        parser.error("no peer could be driven")
    rows = {name: summed(figures) for name, figures in runs.items()}
    print(table(("", *next(iter(rows.values()))), [(name, *row.values()) for name, row in rows.items()]))
    results = [{"peer": name, **row, "runs": runs[name]} for name, row in rows.items()]
    write_json(
        given.json, "soak_peers", results, limits=LIMITS, packages=("anthropic",), peers=versions_of(given),
        seconds=given.seconds, writers=given.writers, seeds=seeds,
    )  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1:2] == ["--drive"]:
        peer, folder, tool, name, seed, log = sys.argv[2:]
        drive(peer, Path(folder), tool, name, seed, Path(log))
    else:
        main()
