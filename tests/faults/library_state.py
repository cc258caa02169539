"""What the fault tests look at: a library's files, and where every seq is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from infinimem import Library
from infinimem.store.evidence import all_records, retirement
from infinimem.text.document import parse

NIGHTLY = bool(os.environ.get("INFINIMEM_NIGHTLY"))
DRIVER = Path(__file__).with_name("die_at.py")
START = datetime(2026, 5, 1, 9, tzinfo=UTC)

FIRST = [
    "Maya works at Fjord Labs in Bergen as an engineer.",
    "The bathroom in Skuteviken gets slate tiles,\n  delivered on 12 June:\n\n- 14 boxes\n- <seq=99> is only text",
    "Oma Hilde turns ninety in July and moves to Lübeck.",
    "Choir rehearsal is on Wednesdays at 19:00 in Sandviken church.",
    "The tide clock Flo needs an oak case and a stepper motor.",
]
SECOND = [
    {"text": "Maya joined Nordlys as a staff engineer.", "supersedes": 1, "time": "2026-05-01"},
    "The bathroom tiles came, two boxes broken.",
    "Flo's oak case is glued; the stepper motor draws 240 mA.",
    "Flo's oak case is glued; the stepper motor draws 240 mA.",
    "Choir: Brahms Requiem, first concert on 14 November.",
]


def visible_files(root: Path) -> dict[str, bytes]:
    """Every file of the library that is not derived, with its bytes."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".infinimem" not in path.parts
    }


def places(root: Path) -> tuple[Counter[int], Counter[int], set[int], set[int]]:
    """How often each seq stands in CURRENT and in topics; the seqs retired; the seqs with words in evidence."""
    buffer: Counter[int] = Counter()
    if (root / "CURRENT.md").exists():
        for entry in parse("CURRENT.md", (root / "CURRENT.md").read_bytes()).entries:
            buffer.update(entry.seqs)
    topics: Counter[int] = Counter()
    for path in sorted(path for path in (root / "topics").rglob("*.md") if path.is_file()):
        for entry in parse(path.relative_to(root).as_posix(), path.read_bytes()).entries:
            topics.update(entry.seqs)
    records = all_records(root)
    retired = {seq for seq, record in records.items() if retirement(record) is not None}
    return buffer, topics, retired, {seq for seq, record in records.items() if record.entries}


def assert_conserved(root: Path, seqs: set[int]) -> None:
    """Every seq is in exactly one place, and what is not in CURRENT is in evidence."""
    buffer, topics, retired, words = places(root)
    for seq in sorted(seqs):
        count = buffer[seq] + topics[seq] + (seq in retired)
        assert count == 1, f"seq {seq}: CURRENT {buffer[seq]}, topics {topics[seq]}, retired {seq in retired}"
        assert buffer[seq] or seq in words, f"seq {seq} is not in evidence"
    assert set(buffer) | set(topics) | retired <= seqs | set()


def prepare(root: Path) -> None:
    """A library with topics, evidence and a buffer in which one entry corrects a flushed one."""
    library = Library.open(root, create=True, clock=lambda: START)
    library.write(FIRST, source="user")
    library.flush(planner="lexical")
    library.write(SECOND, source="user")
    library.search("Nordlys")


def drive(
    number: int, mode: str, operation: str, root: Path, *texts: str, count: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run one operation in a process of its own, to die at its `number`-th change of the file system."""
    environment = {**os.environ, **({"DIE_COUNT": str(count)} if count else {})}
    command = [sys.executable, str(DRIVER), str(number), mode, operation, str(root), *texts]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)


def copied(base: Path, place: Path) -> Path:
    """A copy of a library, hard links and modes kept."""
    shutil.rmtree(place, ignore_errors=True)
    subprocess.run(["cp", "-a", str(base), str(place)], check=True)
    return place
