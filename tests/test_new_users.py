"""What people met who used it for the first time, or tried to break it; each test is named after what they saw."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from infinimem import Library
from infinimem.consolidate.story import in_runs
from infinimem.errors import BadInput, InfinimemError, NeedsAttention, NoLibrary
from infinimem.llm.port import Reply, Request
from infinimem.llm.replay import Scripted
from infinimem.model import Create, Extend, Filter
from infinimem.plan.paper import Plan, parse_plan

NOW = datetime(2026, 5, 2, 8, tzinfo=UTC)
ROOT = Path(__file__).parent.parent


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return Library.open(tmp_path / "memory", create=True, clock=lambda: NOW)


def run(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "infinimem", "-L", str(root), *words], capture_output=True, text=True)


def test_a_plan_on_standard_output_with_json_is_one_value(library: Library) -> None:
    library.write("Maya sails to Bergen.")
    done = run(library.root, "flush", "--plan-out", "-", "--json")
    assert parse_plan(json.loads(done.stdout)["plan"], "plan").seqs == (1,)
    assert parse_plan(run(library.root, "flush", "--plan-out", "-").stdout, "plan").seqs == (1,)


@pytest.mark.parametrize("name", ["topics", "CURRENT.md"])
def test_a_flush_through_a_symbolic_link_needs_attention(library: Library, tmp_path: Path, name: str) -> None:
    library.write("Maya sails to Bergen.")
    (library.root / name).rename(tmp_path / "elsewhere")
    (library.root / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NeedsAttention, match="is a symbolic link, through which nothing is written"):
        library.flush()


def test_on_a_disk_that_can_only_be_read_what_only_reads_works_and_a_verdict_says_why_not(library: Library) -> None:
    library.write("Maya sails to Bergen.")
    here = ["unshare", "-rm", "sh", "-c", 'mount -o bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"']
    if (
        not shutil.which("unshare")
        or subprocess.run([*here, str(library.root), "true"], capture_output=True).returncode
    ):
        pytest.skip("no disk can be made read-only here")
    tool = [sys.executable, "-m", "infinimem", "-L", str(library.root)]

    def on_it(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*here, str(library.root), *tool, *words], capture_output=True, text=True)

    assert on_it("check").returncode == 0
    assert "Maya sails" in on_it("flush", "--dry-run").stdout
    assert on_it("forget", "1", "--dry-run").returncode == 0
    assert on_it("undo", "--dry-run").returncode == 1
    verdict = on_it("ask", "Maya", "--good")
    assert (verdict.returncode, "the verdict was not noted" in verdict.stderr) == (3, True)
    assert on_it("check", "--fix").returncode == 3


def test_ten_thousand_numbers_that_do_not_exist_are_one_line(library: Library) -> None:
    library.write("Maya sails to Bergen.")
    library.write("Maya stays at home.", supersedes="3-900")
    report = library.flush()
    assert len(report.skipped) == 898
    lines = in_runs(report.skipped)
    assert lines == [("retire 3-900", "no visible entry has seq 3-900")]


def test_undo_leaves_no_empty_folder(library: Library) -> None:
    library.write("Maya sails to Bergen.")
    library.flush(plan=Plan((Create("a/b/c", "C"), Extend("a/b/c", "", (1,)))))
    assert library.undo().flushed
    assert list((library.root / "topics").iterdir()) == []


def test_undo_says_how_far_it_reaches_back(library: Library) -> None:
    assert library.undo().reason == "there is no flush to undo"
    for number in range(7):
        library.write(f"Maya sails to harbour number {number}.")
        library.flush()
    while library.undo().flushed:
        pass
    assert "undo reaches back over the 5 newest changes" in library.undo().reason


@pytest.mark.parametrize("option", [["--dry-run"], ["--estimate"], ["--plan", "x"]])
def test_what_is_for_one_library_is_named(library: Library, option: list[str]) -> None:
    done = run(library.root, "flush", "--root", str(library.root.parent), *option)
    assert done.returncode == 2 and f"{option[0]} is for one library" in done.stderr


def test_history_says_what_it_was(library: Library) -> None:
    minutes = count()
    library.clock = lambda: NOW + timedelta(minutes=next(minutes))
    library.write("Maya joined Nordlys. Her cat is called Tia.")
    library.flush()
    library.divide(1)
    assert library.history()[0].what == "1 entry split into 2"
    for number in range(4):
        library.ask(f"Nordlys cat Tia word{number}")
        library.feedback("good")
    assert library.reconsolidate().report.flushed
    assert library.history()[0].what == "2 links made"


def test_reconsolidate_tells_each_pair_once_and_in_words(library: Library) -> None:
    library.write("Maya joined Nordlys.")
    library.write("Her cat is called Tia.")
    library.flush()
    for number in range(12):
        library.ask(f"Nordlys cat Tia word{number}")
        library.feedback("good")
    lines = run(library.root, "reconsolidate", "--dry-run").stdout.splitlines()
    assert [line[:1] for line in lines] == ["+", " ", " "]
    assert {line.split(maxsplit=1)[1] for line in lines[1:]} == {"Maya joined Nordlys.", "Her cat is called Tia."}


def test_a_filter_takes_a_mapping_or_says_what_it_takes(library: Library) -> None:
    library.write("Maya sails to Bergen.", meta={"n": "1"})
    library.write("Maya sails to Bergen again.", meta={"n": "2"})
    assert [hit.seqs for hit in library.search("Maya", filter=Filter(where={"n": "2"}))] == [(2,)]
    assert Filter(where={"n": "1"}) == Filter(where=(("n", "1"),))
    wrong: list[Any] = ["n=1", [("n", 1)], None, 3, [("n",)]]
    for where in wrong:
        with pytest.raises(BadInput, match="`where` is a mapping"):
            Filter(where=where)


def test_fewer_than_no_entries_cannot_be_asked_for(library: Library) -> None:
    library.write("Maya sails to Bergen.")
    for call in (lambda: library.ask("Maya", k=-1), lambda: library.search("Maya", k=-1)):
        with pytest.raises(BadInput, match="whole number"):
            call()


CALLS: dict[str, Callable[[Library], object]] = {
    "search": lambda library: library.search("Maya"),
    "ask": lambda library: library.ask("Maya"),
    "write": lambda library: library.write("Maya stays."),
    "flush": lambda library: library.flush(),
    "check": lambda library: library.check(),
    "history": lambda library: library.history(),
    "forget": lambda library: library.forget([1]),
    "catalog": lambda library: library.catalog(),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_library_that_was_deleted_is_none(library: Library, name: str) -> None:
    library.write("Maya sails to Bergen.")
    assert library.search("Maya")
    shutil.rmtree(library.root)
    with pytest.raises(NoLibrary):
        CALLS[name](library)
    assert not library.root.exists()


def raising(error: BaseException) -> Scripted:
    def script(request: Request) -> Reply:
        raise error

    return Scripted(script)


def test_a_model_of_ones_own_that_raises_has_failed(library: Library) -> None:
    library.write("Maya sails to Bergen.")
    with_model = Library.open(library.root, model=raising(RuntimeError("no luck")))
    report = with_model.flush()
    assert report.seqs == (1,) and any("RuntimeError: no luck" in failure for failure in report.failures)
    answer = with_model.ask("Where does Maya sail?")
    assert answer.fallback and "RuntimeError: no luck" in answer.failed and answer.evidence
    assert any(
        "RuntimeError: no luck" in line for line in (library.root / ".infinimem/usage.jsonl").read_text().splitlines()
    )
    with pytest.raises(KeyboardInterrupt):
        Library.open(library.root, model=raising(KeyboardInterrupt())).ask("Where does Maya sail?")


def test_who_listens_and_fails_is_no_failure_of_the_model(library: Library) -> None:
    def script(request: Request) -> str:
        return "You live in Bergen [1]."

    def hear(piece: str) -> None:
        raise OSError("the pipe is closed")

    library.write("I live in Bergen.")
    with_model = Library.open(library.root, model=Scripted(script))
    with pytest.raises(OSError, match="the pipe is closed"):
        with_model.ask("Where do I live?", reader="hybrid", hear=hear)


def test_a_summary_is_more_than_a_date(library: Library) -> None:
    library.write("I moved to Oslo.", time="2026-03-01")
    library.flush()
    assert [row.summary for row in library.catalog()] == ["2026-03-01 — I moved to Oslo."]


def test_forget_names_the_files_inside_which_it_does_not_see(library: Library) -> None:
    library.write("Zorblatt sings.")
    library.flush()
    (library.root / "old.md.gz").write_bytes(gzip.compress(b"Zorblatt sings."))
    (library.root / "wide.txt").write_bytes("Zorblatt sings.".encode("utf-16"))
    done = run(library.root, "forget", "1", "--yes")
    assert "none of those that are text holds their words" in done.stdout
    assert "2 places are no text (UTF-8), or cannot be read, and may hold them" in done.stderr
    assert "look there yourself: old.md.gz, wide.txt" in done.stderr
    assert done.returncode == 5


@pytest.mark.parametrize("name", ["make_reference", "make_picture", "make_sample_library"])
def test_a_script_that_is_asked_for_help_makes_no_folder(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"tools.{name}", "--help"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and done.stdout.startswith("usage:") and list(tmp_path.iterdir()) == []


def test_every_error_of_ours_is_told_in_one_line(library: Library) -> None:
    shutil.rmtree(library.root)
    with pytest.raises(InfinimemError) as raised:
        library.search("Maya")
    assert "\n" not in str(raised.value)


def test_a_document_is_said_to_hold_the_entries_that_are_in_it(library: Library, tmp_path: Path) -> None:
    library.write("Maya works at Fjord Labs.")
    library.write("Maya works at Nordlys.", supersedes=1)
    library.flush(planner="lexical")
    for name, history, held in (("a.md", False, 1), ("b.md", True, 2), ("c.jsonl", False, 2)):
        assert library.export(out=str(tmp_path / name), history=history).entries == held


ODDS = {
    "notes-2026-03": "The dentist moved.|Cardboard goes out.|Momo weighs 5 kg|Momo dislikes thunder|Momo sleeps late",
    "notes-2026-04": "Passport expires in July.|Kessler lent us a ladder.|Sourdough wants warmer dough.",
}


def with_odds(library: Library) -> None:
    """Two pages of odds and ends, of which one has three notes of one subject."""
    for topic, texts in ODDS.items():
        seqs = tuple(library.write(texts.split("|"), time="2026-04-02"))
        library.flush(plan=Plan((Create(topic, topic), Extend(topic, "Odds", seqs)), seqs=seqs))


def momo_in(library: Library) -> set[str]:
    """The pages where the three stand."""
    here = [library.trace(seq).here for seq in (3, 4, 5)]
    return {unit.topic for unit in here if unit}


def test_notes_that_became_a_subject_do_not_wander_between_two_pages_of_odds_and_ends(library: Library) -> None:
    with_odds(library)
    places = []
    for text in ("Ironed the shirts.", "Called the bank.", "Paid the bill."):
        library.write(text)
        library.flush(planner="lexical")
        places.append(momo_in(library))
    assert places[0] == places[1] == places[2]


def test_what_stands_with_a_persons_own_prose_is_not_sorted_apart(library: Library) -> None:
    with_odds(library)
    page = library.root / "topics" / "notes-2026-03.md"
    before, momo = page.read_text("utf-8").split("- <seq=3", 1)
    page.write_text(f"{before}\n## The cat\n\nFor whoever looks after her:\n\n- <seq=3{momo}", "utf-8")
    library.write("Ironed the shirts.")
    library.flush(planner="lexical")
    assert momo_in(library) == {"notes-2026-03"}


def test_an_entry_that_says_it_replaces_itself_does_not_trace_to_itself(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True)
    assert library.write("The boat Terna has berth 12.", supersedes=1) == [1]
    library.flush(planner="lexical")
    trace = library.trace(1)
    assert trace is not None
    assert trace.replaced == ()
