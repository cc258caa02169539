"""What access rules cost at size: the first view for an audience, and the next one after a write.

    python benchmarks/access.py [--sizes 1000,10000] [--shares 1,10,50] [--writes 9] [--json OUT]

CPU seconds of one process. Of a library as `speed.py` makes it so many in a hundred entries are private, and each of
these has a name of its own. `first` makes the view, `nothing new` looks if it still holds, `private` and `public` are
what it takes after a write of that kind (median), `write` the write. Limits: one machine, one kind of text.
"""

from __future__ import annotations

import argparse
import random
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.report import table, write_json
from benchmarks.speed import build

RULES = "format: 1\naccess: {mcp: {deny: {sensitivity: private}}}\n"
LINE = re.compile(r"^- <seq=(\d+), ([^>]*)> (.*)$", re.MULTILINE)


def name_of(number: int) -> str:
    """A name that nothing else says."""
    letters = "bdfgklmnprstvz"
    parts = []
    while number or len(parts) < 3:
        number, one = divmod(number, len(letters))
        parts.append(letters[one] + "aeiou"[one % 5])
    return "Q" + "".join(parts) + "th"


def make_private(root: Path, share: float) -> None:
    """Make so many in a hundred entries private, in topics and in evidence alike."""

    def marked(match: re.Match[str]) -> str:
        seq, fields, text = match.groups()
        if random.Random(int(seq)).random() * 100 >= share:
            return match[0]
        return f"- <seq={seq}, {fields}, sensitivity=private> {name_of(int(seq))} says: {text}"

    for path in [*(root / "topics").rglob("*.md"), *(root / "evidence").glob("*.md")]:
        path.write_text(LINE.sub(marked, path.read_text("utf-8")), "utf-8")
    (root / "infinimem.yaml").write_text(RULES, "utf-8")


def spent(call: Callable[[], Any]) -> float:
    """CPU seconds of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def measure(size: int, share: float, writes: int) -> dict[str, float]:
    """One library of one size."""
    from infinimem import Library

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "memory"
        build(root, size, None)
        make_private(root, share)
        owner, reader = Library.open(root), Library.open(root, audience="mcp")
        found: dict[str, float] = {"entries": size, "private, %": share, "first": spent(reader.place)}
        found["nothing new"] = statistics.median(spent(reader.place) for _ in range(writes))
        for kind, meta in (("private", {"sensitivity": "private"}), ("public", {})):
            costs, own = [], []
            for number in range(writes):
                texts = [f"{name_of(900_000 + number)} is at the harbour in the morning, says {name_of(number)}."]
                own.append(spent(lambda texts=texts, meta=meta: owner.write(texts, meta=meta)))
                costs.append(spent(reader.place))
            found["write"] = statistics.median(own)
            found[kind] = statistics.median(costs)
        return found


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--sizes", default="1000,10000")
    reader.add_argument("--shares", default="1,10,50")
    reader.add_argument("--writes", type=int, default=9)
    reader.add_argument("--json", type=Path)
    given = reader.parse_args()
    rows = [
        measure(int(size), float(share), given.writes)
        for size in given.sizes.split(",")
        for share in given.shares.split(",")
    ]
    head = list(rows[0])
    print(
        table(
            head, [[f"{row[name]:.3f}" if isinstance(row[name], float) else row[name] for name in head] for row in rows]
        )
    )
    write_json(given.json, "access", rows, limits=["one machine, one kind of text"], seed="the entry's seq")


if __name__ == "__main__":
    main()
