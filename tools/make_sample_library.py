"""Make the sample library out of tools/sample/entries.jsonl, through the tool's own write and flush.

    python tools/make_sample_library.py OUT

The same entries and the same code give the same bytes: the clock is the entries' own `at`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from infinimem import Library

ENTRIES = Path(__file__).parent / "sample" / "entries.jsonl"
FLUSH_AT = 25
"""Entries that lie in CURRENT before the next change of date flushes them: about every two weeks."""
OPEN_FROM = "2026-10-27"
"""What was written on this day and later stays in CURRENT, as in a library in daily use."""
ONLY_HERE = frozenset({"at", "label", "subject", "lang", "supersedes"})
"""Keys for this script, the tests and the recall check; they are no part of the library."""


def main(arguments: Sequence[str]) -> int:
    """Make the library in the folder that the one argument names, and say what is in it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path, help="a new folder")
    out: Path = parser.parse_args(arguments).out
    if out.exists() and any(out.iterdir()):
        print(f"{out} is not empty; nothing was written. Name a new folder.", file=sys.stderr)
        return 1
    entries = read_entries(ENTRIES)
    seqs = make_library(out, entries)
    print(describe(out, entries, seqs))
    return 0


def read_entries(path: Path) -> tuple[Mapping[str, Any], ...]:
    """The entries of a JSON-lines file, in order."""
    with path.open(encoding="utf-8") as lines:
        return tuple(json.loads(line) for line in lines)


def make_library(out: Path, entries: Sequence[Mapping[str, Any]]) -> Mapping[str, int]:
    """Write and flush the entries into a new library in `out`; the seq of each label."""
    now = at(entries[0])
    library = Library.open(out, create=True, clock=lambda: now)
    seqs: dict[str, int] = {}
    for batch, is_flushed in batches(entries):
        for entry in batch:
            now = at(entry)
            seq = library.write([signed(entry, seqs)])[0]
            if "label" in entry:
                seqs[entry["label"]] = seq
        if is_flushed:
            now += timedelta(minutes=5)
            library.flush(planner="lexical")
    # Derived: every command makes it again.
    shutil.rmtree(out / ".infinimem", ignore_errors=True)
    return seqs


def batches(entries: Sequence[Mapping[str, Any]]) -> Iterator[tuple[list[Mapping[str, Any]], bool]]:
    """The entries cut where a flush falls, and whether one falls: not after the last batch."""
    batch: list[Mapping[str, Any]] = []
    for entry in entries:
        if batch and is_flush_between(batch, entry):
            yield batch, True
            batch = []
        batch.append(entry)
    yield batch, False


def is_flush_between(batch: Sequence[Mapping[str, Any]], entry: Mapping[str, Any]) -> bool:
    """True at a change of date that ends a full batch or begins the days that stay open."""
    last: str = batch[-1]["at"][:10]
    date: str = entry["at"][:10]
    begins_open_days = last < OPEN_FROM <= date
    is_full = len(batch) >= FLUSH_AT and date < OPEN_FROM
    return last != date and (is_full or begins_open_days)


def signed(entry: Mapping[str, Any], seqs: Mapping[str, int]) -> dict[str, Any]:
    """The entry as `write` takes it: without the keys of this script, labels turned into seqs."""
    fields = {key: value for key, value in entry.items() if key not in ONLY_HERE}
    if "supersedes" in entry:
        fields["supersedes"] = [seqs[label] for label in entry["supersedes"]]
    return fields


def at(entry: Mapping[str, Any]) -> datetime:
    """When the entry was written, UTC."""
    return datetime.strptime(entry["at"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


def describe(out: Path, entries: Sequence[Mapping[str, Any]], seqs: Mapping[str, int]) -> str:
    """What the library in `out` was made of."""
    flushes = sum(is_flushed for _, is_flushed in batches(entries))
    still_open = sum(entry["at"] >= OPEN_FROM for entry in entries)
    replaced = sum(len(entry.get("supersedes", ())) for entry in entries)
    languages = Counter(entry["lang"] for entry in entries)
    topics = len(list((out / "topics").rglob("*.md")))
    return (
        f"{out}: {len(entries)} entries ({', '.join(f'{n} {name}' for name, n in languages.most_common())}) "
        f"from {len({entry['source'] for entry in entries})} sources, {len(seqs)} of them labelled; "
        f"{replaced} replaced; {flushes} flushes; {topics} topics; {still_open} entries still in CURRENT"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
