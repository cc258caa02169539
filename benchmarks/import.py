"""What an import takes: python benchmarks/import.py [--megabytes 300] [--format chatgpt] [--flush 3000] [--json FILE]

A file of the given size is made up in the shape of an export (conversations of 2 to 200 messages, newest first, one
question in twelve edited), then imported by the command as a process of its own, twice: into an empty library, and once
more. Reported are seconds and the largest resident memory of each, what the first search takes, and what a single
`write` waited for the lock meanwhile. With `--flush N` the first N messages are imported and consolidated.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from report import table, write_json

LIMITS = (
    "made-up conversations of one stock of words, which all of them share",
    "one machine that has other work: CPU, not seconds; `waited` is the longest of one write each 0.2 s",
)
WORDS = (
    "the boat Terna has berth twelve and Oma Hilde turns ninety in August while Maya works at Nordlys in Bergen with "
    "Ines on staff plans for the harbour pilot tide tables engine oil winter storage rope paint sail mast invoice "
    "meeting at nine fifteen on Tuesday because the train from Oslo is late again and nobody answered the letter about "
    "the roof"
).split()
START = 1_600_000_000
SEED = 7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=300)
    parser.add_argument("--format", choices=list(MAKERS), default="chatgpt")
    parser.add_argument("--one-conversation", type=int, default=0, metavar="N", help="one of N messages instead")
    parser.add_argument("--import-only", action="store_true")
    parser.add_argument("--flush", type=int, default=0, metavar="N")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as scratch:
        path = Path(scratch) / ("session.jsonl" if asked.format == "claude-code" else "conversations.json")
        size = 1_500 * asked.flush if asked.flush else asked.megabytes << 20
        messages = make(path, asked.format, size, asked.one_conversation, asked.flush)
        print(f"{asked.format}: {path.stat().st_size / 1e6:,.0f} MB, {messages:,} messages")
        rows = commands(Path(scratch) / "memory", path, asked)
        figures = {"megabytes": path.stat().st_size / 1e6, "messages": messages, "commands": rows}
    print(table(list(rows[0]), [[f"{v:.2f}" if isinstance(v, float) else v for v in row.values()] for row in rows]))
    write_json(
        asked.json, "import", figures, limits=LIMITS, packages=("tantivy",), seed=SEED, format=asked.format,
        one_conversation=asked.one_conversation, flush=asked.flush,
    )  # fmt: skip


def commands(library: Path, path: Path, asked: argparse.Namespace) -> list[dict[str, Any]]:
    """What each command took, one after the other."""
    with Writer(library) as writer:
        rows = [took("first import", ["-L", str(library), "import", str(path)], writer)]
    if asked.import_only:
        return rows
    following: list[tuple[str, list[str]]] = [
        ("again", ["-L", str(library), "import", str(path)]),
        ("dry run", ["-L", str(library), "import", str(path), "--dry-run"]),
    ]
    if asked.flush:
        following += [
            ("flush", ["-L", str(library), "flush", "--planner", "lexical"]),
            ("import --flush", ["-L", str(library) + "2", "import", str(path), "--flush"]),
            ("again", ["-L", str(library), "import", str(path)]),
            ("catalog", ["-L", str(library), "catalog"]),
        ]
    search = ["-L", str(library), "search", "berth of the boat", "-k", "1"]
    return rows + [took(name, words) for name, words in (*following, ("first search", search), ("search", search))]


def took(name: str, arguments: list[str], writer: Writer | None = None) -> dict[str, Any]:
    """Run a command: what it took, and the first line of what it said."""
    command = [sys.executable, "-m", "infinimem", *arguments]
    started = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        lines = output.read().decode("utf-8", "replace").splitlines() or [""]
    memory = usage.ru_maxrss / (1024 if sys.platform != "darwin" else 1 << 20)
    return {
        "command": name,
        "seconds": seconds,
        "CPU": usage.ru_utime + usage.ru_stime,
        "MB": round(memory),
        "exit": process.returncode,
        "a write waited at most": writer.longest if writer and writer.count else "",
        "said": lines[0][:90],
    }


class Writer:
    """Writes one entry after the other into a library as long as something else happens."""

    def __init__(self, library: Path) -> None:
        self.library = library
        self.longest = 0.0
        self.count = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _write(self) -> None:
        from infinimem import Library

        while not self._over.wait(0.2):
            if not (self.library / "infinimem.yaml").exists():
                continue
            started = time.monotonic()
            Library.open(self.library).write("a note meanwhile")
            self.longest = max(self.longest, time.monotonic() - started)
            self.count += 1


# Making up


def make(path: Path, form: str, size: int, alone: int, most: int) -> int:
    """Write a file of about a size; gives how many messages are in it."""
    dice = random.Random(SEED)
    messages = 0
    with path.open("w", encoding="ascii") as file:
        file.write("" if form == "claude-code" else "[")
        number = 0
        while file.tell() < size and not (alone and number) and not (most and messages >= most):
            length = alone or min(most - messages if most else 200, dice.randint(2, 200))
            began = START + (100_000 - number) * 3600
            if number and form != "claude-code":
                file.write(",")
            for piece in MAKERS[form](dice, number, length, began):
                file.write(piece)
            messages += length
            number += 1
        file.write("" if form == "claude-code" else "]")
    return messages


def sentence(dice: random.Random) -> str:
    """Made-up words: questions of about 20, answers of about 120 words."""
    return " ".join(dice.choices(WORDS, k=dice.choice((8, 20, 60, 120, 200)))) + dice.choice(
        (".", "?", " 🚲.", " 会議。")
    )


def chatgpt(dice: random.Random, number: int, length: int, began: int) -> Iterator[str]:
    """One conversation of ChatGPT's export."""
    head: Any = {"title": f"Conversation {number}", "create_time": began, "update_time": began + length, "mapping": {}}
    yield json.dumps(head)[:-2]
    parent = "root"
    yield '"root": ' + json.dumps({"id": "root", "message": None, "parent": None, "children": []})
    for at in range(length):
        node = f"{number:08x}-{at:08x}-4000-8000-000000000000"
        message = {
            "id": node, "author": {"role": "user" if at % 2 == 0 else "assistant", "name": None, "metadata": {}},
            "create_time": began + at + 0.123, "update_time": None,
            "content": {"content_type": "text", "parts": [sentence(dice)]}, "status": "finished_successfully",
            "end_turn": True, "weight": 1.0, "recipient": "all", "channel": None,
            "metadata": {"model_slug": "gpt-5", "request_id": node, "citations": [], "timestamp_": "absolute"},
        }  # fmt: skip
        yield f', "{node}": ' + json.dumps({"id": node, "message": message, "parent": parent, "children": []})
        if at % 12 != 10:  # else the next one hangs beside this one
            parent = node
    yield "}, " + json.dumps({"moderation_results": [], "current_node": node, "conversation_id": f"c{number}"})[1:]


def claude(dice: random.Random, number: int, length: int, began: int) -> Iterator[str]:
    """One conversation of Claude's export."""
    yield json.dumps({"uuid": f"c{number}", "name": f"Conversation {number}", "chat_messages": []})[:-2]
    for at in range(length):
        text = sentence(dice)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(began + at))
        message = {
            "uuid": f"{number:08x}-{at:08x}", "text": text, "content": [{"type": "text", "text": text}],
            "sender": "human" if at % 2 == 0 else "assistant", "created_at": stamp, "updated_at": stamp,
            "attachments": [], "files": [],
        }  # fmt: skip
        yield (", " if at else "") + json.dumps(message)
    yield "]}"


def claude_code(dice: random.Random, number: int, length: int, began: int) -> Iterator[str]:
    """One session of Claude Code."""
    for at in range(length):
        role = "user" if at % 2 == 0 else "assistant"
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(began + at))
        yield json.dumps({
            "type": role, "uuid": f"{number}-{at}", "parentUuid": None, "isSidechain": False, "sessionId": f"s{number}",
            "timestamp": stamp, "cwd": "/home/maya/boat", "message": {"role": role, "content": sentence(dice)},
        }) + "\n"  # fmt: skip


MAKERS = {"chatgpt": chatgpt, "claude": claude, "claude-code": claude_code}

if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
