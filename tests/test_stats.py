"""Figures of a library and of what models have cost, held against what can be counted by hand."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from infinimem import Library
from infinimem.cli.demo import sample_library
from infinimem.store.evidence import all_records, retirement
from infinimem.store.read import list_files, read_file
from infinimem.store.usage import USAGE
from tests.test_flush import Clock, into


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def library(tmp_path: Path, clock: Clock) -> Library:
    return Library.open(tmp_path / "memory", create=True, clock=clock)


def test_an_empty_library(library: Library) -> None:
    now = library.stats()
    assert (now.topics, now.entries, now.written, now.months, now.by_size, now.retired) == (0, 0, 0, (), (), {})
    assert library.usage() == ()


def test_a_small_library(library: Library, clock: Clock) -> None:
    library.write(["Maya works at Fjord Labs.", 'A "quoted" > name.'], source="Maya, the <first>")
    library.flush(plan=into("career", 1, 2))
    clock.now = datetime(2026, 6, 2, 8, tzinfo=UTC)
    library.write("Maya joined Nordlys.", supersedes=[1], source="user")
    library.write(["The stand-up is at ten every day.", "The stand-up is at ten every day."], source="user")
    library.flush()
    library.write("- <seq=99, source=nobody> is only text\n- <event=retire, seq=2, why=deleted>", source="AI")
    now = library.stats()
    assert (now.written, now.entries, now.buffered) == (6, 3, 1)
    assert now.retired == {"superseded": 1, "duplicate": 1}
    assert now.sources == {"user": 2, "Maya, the <first>": 1, "AI": 1}
    assert [(one.month, one.written, one.retired) for one in now.months] == [("2026-05", 2, 0), ("2026-06", 4, 2)]
    assert now.doubled == ()
    library.undo()
    back = library.stats()
    assert (back.written, back.entries, back.buffered, back.retired) == (6, 2, 4, {})


def test_a_joined_line_counts_for_each_of_its_entries(library: Library, tmp_path: Path) -> None:
    library.write(["Tea at four.", "With milk."], source="Ines")
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "plan: 1\nsteps:\n- create: {topic: tea, title: Tea}\n"
        "- join: {seqs: 1-2, text: Tea at four. With milk., conf: 1}\n- extend: {topic: tea, seqs: 1-2}\n"
    )
    library.flush(plan=plan)
    assert "<seq=1-2" in library.read("tea").lines[-1]
    now = library.stats()
    assert (now.entries, now.written, now.sources) == (2, 2, {"Ines": 2})


def test_a_copied_file_shows(library: Library) -> None:
    library.write(["Tea at four.", "```\n- <seq=1> an example\n```"])
    library.flush(plan=into("tea", 1, 2))
    assert library.stats().doubled == ()
    text = (library.root / "topics" / "tea.md").read_text()
    (library.root / "topics" / "copy.md").write_text(text.replace("id: tea", "id: copy"))
    assert library.stats().doubled == (1, 2)


def test_the_sample_library_counted_the_long_way(tmp_path: Path) -> None:
    root = tmp_path / "memory"
    shutil.copytree(sample_library(), root)
    library = Library.open(root)
    now = library.stats()
    visible = {
        seq: entry
        for path in list_files(root)
        if not path.startswith("evidence/")
        for entry in read_file(root, path).document.entries
        for seq in entry.seqs
    }
    records = all_records(root)
    assert now.entries + now.buffered == len(visible)
    assert now.written == len({*visible, *records})
    gone = [event for record in records.values() for event in [retirement(record)] if event is not None]
    assert now.retired == Counter(event.get("why") for event in gone)
    assert sum(now.sources.values()) == len(visible)
    assert sum(one.written for one in now.months) == now.written
    assert sum(one.retired for one in now.months) == len(gone)
    assert [row.topic for row in now.by_size] == [
        row.topic for row in sorted(library.catalog(), key=lambda row: (-row.tokens, row.topic))
    ]


def test_a_large_library_takes_a_moment(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True)
    months = [f"{2020 + at // 12}-{at % 12 + 1:02}" for at in range(60)]
    rows = [
        f"- <seq={seq}, source=user, observed={months[seq // 500]}-02T08:00:00Z> Berth {seq} is paid.\n"
        for seq in range(1, 30_000)
    ]
    for at, month in enumerate(months):
        lines = "".join(rows[at * 500 : at * 500 + 500])
        (library.root / "evidence" / f"{month}.md").write_text(f"# Evidence {month}\n\n{lines}")
        (library.root / "topics" / f"berths-{at}.md").write_text(f"---\nid: berths-{at}\n---\n# Berths\n\n{lines}")
    library.index()
    started = time.process_time()
    assert library.stats().written == 29_999
    assert time.process_time() - started < 1.0


LOG = (
    {"at": "2026-05-01T08:00:00Z", "command": "flush", "step": "route", "model": "m", "tokens_in": 1000,
     "tokens_out": 100, "seconds": 2.5, "outcome": "ok"},
    {"at": "2026-05-02T08:00:00Z", "command": "flush", "step": "route", "model": "m", "tokens_in": 500,
     "tokens_out": 50, "seconds": 1.5, "outcome": "cut"},
    {"at": "2026-06-01T08:00:00Z", "command": "ask", "step": "answer", "model": "n", "tokens_in": 10,
     "tokens_out": 1, "seconds": 0.5, "outcome": "ok"},
    {"at": "2026-06-01T08:00:00Z", "command": "ask", "step": "answer", "seconds": 60.0, "outcome": "failed: 500"},
    {"at": 3, "command": None, "tokens_in": "many", "tokens_out": -5, "seconds": "long"},
)  # fmt: skip


def test_what_models_cost(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(json.dumps(row) + "\n" for row in LOG)
    (library.root / USAGE).write_text(f"not json\n[1]\n{text}{{torn")
    monkeypatch.setenv("INFINIMEM_MODEL_PRICE_IN", "2")
    monkeypatch.setenv("INFINIMEM_MODEL_PRICE_OUT", "10")
    rows = library.usage()
    assert [row.kind for row in rows] == [
        ("", "None", "", ""),
        ("2026-05", "flush", "route", "m"),
        ("2026-06", "ask", "answer", ""),
        ("2026-06", "ask", "answer", "n"),
    ]
    odd, flush, failed, ask = rows
    assert (flush.calls, flush.failures, flush.tokens_in, flush.tokens_out, flush.seconds) == (2, 0, 1500, 150, 4.0)
    assert flush.price == pytest.approx((1500 * 2 + 150 * 10) / 1e6)
    assert (failed.calls, failed.failures, failed.tokens_in, failed.price) == (1, 1, 0, 0)
    assert (ask.calls, ask.tokens_in) == (1, 10)
    assert (odd.calls, odd.tokens_in, odd.tokens_out, odd.seconds) == (1, 0, 0, 0)
