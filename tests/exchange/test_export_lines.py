"""JSON lines: whatever a library holds goes out and comes back; into another library it comes once."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infinimem import Library
from infinimem.cli.schemas import schema_of
from infinimem.errors import BadInput, NeedsAttention
from infinimem.exchange.export.json_lines import read_package
from infinimem.exchange.export.pieces import as_document, content_of, document_records
from infinimem.model import Filter
from infinimem.store.evidence import all_records
from infinimem.text.lines import join_lines
from tests.conftest import NIGHTLY
from tests.faults.library_state import assert_conserved, copied, drive, places, prepare, visible_files
from tests.text.hostile import Dice, dice, files

NOW = datetime(2026, 7, 1, 9, tzinfo=UTC)
SAMPLE = Path(__file__).resolve().parents[2] / "sample_library"
PATHS = ("topics/a.md", "topics/b/c.md", "topics/東京.md", "evidence/2026-05.md", "evidence/2026-06.md", "CURRENT.md")


def opened(root: Path) -> Library:
    return Library.open(root, create=True, clock=lambda: NOW)


def records_in(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]


@given(st.sampled_from((*PATHS, "infinimem.yaml", ".infinimem/written.log")), files)
def test_any_file_at_all_is_its_records(path: str, content: bytes) -> None:
    document = as_document(path, content)
    assert join_lines(document.lines) == content
    records = [json.loads(json.dumps(record)) for record in document_records(document)]
    assert content_of(records) == content
    entries = [record for record in records if record["record"] == "entry"]
    assert [record["text"] for record in entries] == [entry.text for entry in document.entries]


@settings(max_examples=600 if NIGHTLY else 15)
@given(st.lists(st.tuples(st.sampled_from(PATHS), files), unique_by=lambda pair: pair[0], max_size=5))
def test_any_library_at_all_is_restored_byte_for_byte(tmp_path: Path, given_files: list[tuple[str, bytes]]) -> None:
    with TemporaryDirectory(dir=tmp_path) as folder:
        library = opened(Path(folder, "first"))
        for path, content in given_files:
            (library.root / path).parent.mkdir(exist_ok=True)
            (library.root / path).write_bytes(content)
        out = Path(folder, "out.jsonl")
        library.export("jsonl", out)
        second = opened(Path(folder, "second"))
        second.load_export(out)
        # a library with nothing in it gets a CURRENT when it has to remember which seqs were given
        there = visible_files(second.root)
        assert {path: there[path] for path in visible_files(library.root)} == visible_files(library.root)
        again = Path(folder, "again.jsonl")
        second.export("jsonl", again)
        assert again.read_bytes() == out.read_bytes()


def lived_in(die: Dice, root: Path) -> Library:
    """A library that a person has used: writes, corrections, flushes, hand edits, an undo."""
    library = opened(root)
    seqs: list[int] = []
    for _ in range(die.randrange(1, 4)):
        for _ in range(die.randrange(1, 6)):
            text = die.text().encode("utf-8", "replace").decode()
            if not text.strip():
                continue
            old = [die.choice(seqs)] if seqs and die.random() < 0.4 else []
            links = {"links": f"{die.choice(seqs)}:see+a"} if seqs and die.random() < 0.3 else {}
            seqs += library.write([{"text": text, "source": "user", "supersedes": old, "label": die.phrase(), **links}])
        if die.random() < 0.7:
            library.flush(planner="lexical")
            pages = sorted((library.root / "topics").glob("*.md"))
            if pages and die.random() < 0.3:
                page = die.choice(pages)
                page.write_bytes(page.read_bytes() + f"\nA line of prose, {die.randrange(99)}.\n\n| a |\n".encode())
        if die.random() < 0.15:
            library.undo()
    return library


@settings(max_examples=600 if NIGHTLY else 8)
@given(dice)
def test_a_library_with_a_life_is_restored_and_added_once(tmp_path: Path, die: Dice) -> None:
    with TemporaryDirectory(dir=tmp_path) as folder:
        library = lived_in(die, Path(folder, "first"))
        out = Path(folder, "out.jsonl")
        library.export("jsonl", out)
        second = opened(Path(folder, "second"))
        assert second.load_export(out).restored
        assert visible_files(second.root) == visible_files(library.root)
        assert second.status().newest_seq == library.status().newest_seq
        assert second.load_export(out).seqs == ()

        other = opened(Path(folder, "other"))
        other.write(["The boat Terna has berth 12.", "Oma Hilde turns ninety."], source="user")
        if die.random() < 0.5:
            other.flush(planner="lexical")
        brought = other.load_export(out)
        was, now = all_seqs(library.root), all_seqs(other.root)
        assert len(now) == len(was) + 2
        assert_conserved(other.root, now)
        assert shape(library.root, 0) == shape(other.root, len(now) - len(was))
        before = visible_files(other.root)
        assert other.load_export(out).seqs == ()
        assert visible_files(other.root) == before
        assert set(brought.seqs) == now - {1, 2}
        wrong = {finding.problem.code for finding in other.check()} - {f.problem.code for f in library.check()}
        assert not wrong


def all_seqs(root: Path) -> set[int]:
    buffer, topics, retired, words = places(root)
    return {*buffer, *topics, *retired, *words}


def shape(root: Path, first: int) -> list[tuple[object, ...]]:
    """What stands where, by rank of seq: words, retirement, what replaced what, links."""
    buffer, topics, retired, _ = places(root)
    seqs = [seq for seq in sorted({*buffer, *topics, *retired}) if seq > first]
    rank = {seq: at for at, seq in enumerate(seqs)}
    found: list[tuple[object, ...]] = []
    records = all_records(root)
    for seq in seqs:
        record = records.get(seq)
        entries = [entry for _, entry in record.entries] if record else []
        events = [event for _, event in record.events if event.kind != "flush"] if record else []
        found.append((
            rank[seq], seq in buffer, seq in topics, seq in retired,
            tuple(entry.text for entry in entries),
            tuple(tuple(rank.get(int(one)) for one in entry.signature.get("supersedes").split("+") if one.isdigit())
                  for entry in entries),
            tuple(rank.get(int(entry.signature.get("links").partition(":")[0])) for entry in entries
                  if entry.signature.get("links").partition(":")[0].isdigit()),
            tuple((event.kind, event.get("why"), rank.get(int(event.get("by") or 0))) for event in events),
        ))  # fmt: skip
    return found


def test_the_sample_library_goes_out_and_comes_back(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE, tmp_path / "sample")
    library = opened(tmp_path / "sample")
    done = library.export("jsonl", tmp_path / "out.jsonl")
    assert done.entries == 403
    second = opened(tmp_path / "second")
    assert second.load_export(tmp_path / "out.jsonl").restored
    assert visible_files(second.root) == visible_files(SAMPLE)
    assert not second.check()
    assert second.write("the next one") == library.write("the next one") == [404]


def test_a_seq_that_was_given_and_deleted_is_not_given_again(tmp_path: Path) -> None:
    library = opened(tmp_path / "first")
    library.write(["one", "two", "three"])
    (library.root / "CURRENT.md").write_text("# CURRENT\n\n- <seq=1, observed=2026-07-01T09:00:00Z> one\n")
    library.export("jsonl", tmp_path / "out.jsonl")
    second = opened(tmp_path / "second")
    second.load_export(tmp_path / "out.jsonl")
    assert [f.problem.code for f in second.check()] == [f.problem.code for f in library.check()] == ["lost", "lost"]
    assert second.recover([2, 3]) == [2, 3]
    assert second.write("four") == [4]


def test_a_later_export_brings_only_what_is_new_and_what_was_replaced_goes(tmp_path: Path) -> None:
    first = opened(tmp_path / "first")
    prepare(first.root)
    other = opened(tmp_path / "other")
    other.write("Something of my own.")
    first.export("jsonl", tmp_path / "one.jsonl")
    came = other.load_export(tmp_path / "one.jsonl")
    assert len(came.seqs) == 10
    first.flush(planner="lexical")  # 6 replaces 1, 9 repeats 8
    first.write({"text": "The motor is louder than the tide.", "links": "3:about"})
    first.export("jsonl", tmp_path / "two.jsonl")
    came = other.load_export(tmp_path / "two.jsonl")
    assert (len(came.seqs), came.known, came.retired) == (1, 10, 2)
    assert other.trace(2).by == 7
    assert other.trace(2).fate == "superseded"
    assert other.trace(12).here.get("links") == "4:about"
    assert_conserved(other.root, set(range(1, 13)))
    assert not other.load_export(tmp_path / "two.jsonl").seqs


def test_what_came_from_here_is_known_when_it_comes_back(tmp_path: Path) -> None:
    first, other = opened(tmp_path / "first"), opened(tmp_path / "other")
    first.write("The choir sings on Wednesdays.")
    other.write("Something of my own.")
    first.export("jsonl", tmp_path / "there.jsonl")
    other.load_export(tmp_path / "there.jsonl")
    other.export("jsonl", tmp_path / "back.jsonl")
    came = first.load_export(tmp_path / "back.jsonl")
    assert (came.known, len(came.seqs)) == (1, 1)
    assert [hit.text for hit in first.search("something")] == ["Something of my own."]


def test_a_page_whose_name_is_taken_gets_another_and_links_follow(tmp_path: Path) -> None:
    first, other = opened(tmp_path / "first"), opened(tmp_path / "other")
    plan = "plan: 1\nsteps:\n- create: {topic: choir, title: Choir}\n- extend: {topic: choir, seqs: 1}\n"
    (tmp_path / "plan.yaml").write_text(plan)
    first.write([{"text": "We rehearse Brahms."}, {"text": "See the choir.", "links": "choir+1:see"}])
    first.flush(plan=tmp_path / "plan.yaml")
    other.write("Another choir altogether.")
    other.flush(plan=tmp_path / "plan.yaml")
    first.export("jsonl", tmp_path / "out.jsonl")
    came = other.load_export(tmp_path / "out.jsonl")
    assert "choir-2" in came.topics
    assert other.read("choir").lines[-1].endswith("Another choir altogether.")
    assert other.trace(3).here.get("links") == "choir-2+2:see"


def test_loading_again_does_not_retire_what_somebody_brought_back(tmp_path: Path) -> None:
    first, other = opened(tmp_path / "first"), opened(tmp_path / "other")
    first.write("Rehearsal is at 19:00.")
    first.flush()
    other.write("Something else.")
    first.export("jsonl", tmp_path / "one.jsonl")
    other.load_export(tmp_path / "one.jsonl")
    first.write("Rehearsal is at 18:00.", supersedes=1)
    first.flush()
    first.export("jsonl", tmp_path / "two.jsonl")
    assert other.load_export(tmp_path / "two.jsonl").retired == 1
    assert other.recover([2]) == [2]
    assert other.load_export(tmp_path / "two.jsonl").retired == 0
    assert other.trace(2).here is not None


# What is no export


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda lines: lines[:-1], "not whole"),
        (lambda lines: [*lines[:5], *lines[6:]], "there should be"),
        (lambda lines: lines[1:], "no export"),
        (lambda lines: [lines[0].replace('"version": 1', '"version": 9'), *lines[1:]], "upgrade"),
        (lambda lines: [*lines, lines[-1]], "follows the end"),
        (lambda lines: [lines[0], *(line.replace("topics/", "../") for line in lines[1:])], "no document"),
        (lambda lines: [lines[0], *(line.replace("evidence/", ".infinimem/") for line in lines[1:])], "no document"),
        (lambda lines: [lines[0], "{", *lines[1:]], "no JSON"),
        (lambda lines: [lines[0], '{"record": "prose", "text": "x"}', *lines[1:]], "before any document"),
        (lambda lines: [*lines[:3], '{"record": "entry", "seqs": [0], "fields": {}, "text": ""}', *lines[3:]], "entry"),
        (lambda lines: [line.replace("format: 1", "format: x") for line in lines], "format: 1"),
        (lambda lines: [], "not whole"),
    ],
)  # fmt: skip
def test_what_is_no_whole_export_changes_nothing(tmp_path: Path, change: object, says: str) -> None:
    library = opened(tmp_path / "first")
    prepare(library.root)
    library.export("jsonl", tmp_path / "out.jsonl")
    lines = (tmp_path / "out.jsonl").read_text("utf-8").removesuffix("\n").split("\n")
    (tmp_path / "bad.jsonl").write_text("".join(line + "\n" for line in change(lines)))  # type: ignore[operator]
    other = opened(tmp_path / "other")
    before = visible_files(other.root)
    with pytest.raises(BadInput, match=says) as raised:
        other.load_export(tmp_path / "bad.jsonl")
    assert "\n" not in str(raised.value)
    assert visible_files(other.root) == before


# What a filter lets out


def test_what_is_private_is_nowhere_in_the_export(tmp_path: Path) -> None:
    library = opened(tmp_path / "first")
    library.write([
        {"text": "Oma's PIN is 4711.", "sensitivity": "private"},
        {"text": "Oma likes herring.", "sensitivity": "open"},
        {"text": "Oma likes mackerel better.", "sensitivity": "open", "supersedes": 2},
        {"text": "Oma's new PIN is 1174.", "sensitivity": "private", "supersedes": 1},
    ])  # fmt: skip
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "plan: 1\nsteps:\n- create: {topic: oma, title: Oma}\n- extend: {topic: oma, heading: Money, seqs: 4}\n"
        "- extend: {topic: oma, heading: Fish, seqs: 3}\n- retire: {seq: 1, by: 4, why: superseded}\n"
        "- retire: {seq: 2, by: 3, why: superseded}\n- summarise: {topic: oma, text: Her PIN is 1174.}\n"
    )
    library.flush(plan=plan)
    library.write({"text": "The safe is behind the herring.", "sensitivity": "private"})
    done = library.export("jsonl", tmp_path / "out.jsonl", filter=Filter((("sensitivity", "open"),)))
    text = (tmp_path / "out.jsonl").read_text()
    assert done.withheld == 3
    for secret in ("4711", "1174", "PIN", "safe", "Money", "private"):
        assert secret not in text
    assert "mackerel" in text
    assert "likes herring" in text
    second = opened(tmp_path / "second")
    second.load_export(tmp_path / "out.jsonl")
    assert second.trace(2).by == 3
    assert not second.check()


def test_a_field_added_by_hand_later_holds_for_what_was_written_before(tmp_path: Path) -> None:
    library = opened(tmp_path / "first")
    library.write({"text": "The key is under the doormat.", "sensitivity": "open"})
    library.flush()
    [page] = (library.root / "topics").glob("*.md")
    page.write_text(page.read_text().replace("sensitivity=open", "sensitivity=private"))
    library.export("jsonl", tmp_path / "out.jsonl", filter=Filter((("sensitivity", "open"),)))
    assert "doormat" not in (tmp_path / "out.jsonl").read_text()


def test_a_page_is_not_called_by_what_stays_behind(tmp_path: Path) -> None:
    library = opened(tmp_path / "first")
    library.write([
        {"text": "Divorce papers are with the lawyer Stensrud.", "sensitivity": "private"},
        {"text": "The garden gate is painted green.", "sensitivity": "open", "links": "2:explains"},
        {"text": "The gate needs a new hinge.", "sensitivity": "open"},
    ])  # fmt: skip
    (tmp_path / "plan.yaml").write_text(
        "plan: 1\nsteps:\n- create: {topic: divorce-gate, title: 'Divorce, gate'}\n"
        "- extend: {topic: divorce-gate, heading: 'Stensrud, garden', seqs: 1-2}\n"
        "- extend: {topic: divorce-gate, heading: Hinge, seqs: 3}\n"
    )
    library.flush(plan=tmp_path / "plan.yaml")
    wanted = Filter((("sensitivity", "open"),))
    for format in ("jsonl", "md", "html"):
        library.export(format, tmp_path / format, filter=wanted)
    written = {**visible_files(tmp_path / "html"), **{one: (tmp_path / one).read_bytes() for one in ("jsonl", "md")}}
    for name, content in written.items():
        for secret in (b"ivorce", b"tensrud", b"awyer"):
            assert secret not in content + name.encode(), name
    assert b"# gate" in written["md"]
    second = opened(tmp_path / "second")
    second.load_export(tmp_path / "jsonl")
    assert not second.check()
    assert second.trace(2).here is not None


def test_one_topic_goes_out_with_what_it_replaced_and_nothing_else(tmp_path: Path) -> None:
    library = opened(tmp_path / "first")
    library.write(["Gate is red.", "Boat is red.", "Milk expires.", "Gate is blue.", "Boat is blue.", "Gate is green."])
    (tmp_path / "plan.yaml").write_text(
        "plan: 1\nsteps:\n- create: {topic: gate, title: Gate}\n- extend: {topic: gate, seqs: 6}\n"
        "- create: {topic: boat, title: Boat}\n- extend: {topic: boat, seqs: 5}\n"
        "- retire: {seq: 1, by: 4, why: superseded}\n- retire: {seq: 4, by: 6, why: superseded}\n"
        "- retire: {seq: 2, by: 5, why: superseded}\n- retire: {seq: 3, by: 0, why: expired}\n"
    )
    library.flush(plan=tmp_path / "plan.yaml")
    done = library.export("jsonl", tmp_path / "out.jsonl", filter=Filter(topic="gate"))
    entries = [line["text"] for line in records_in(tmp_path / "out.jsonl") if line["record"] == "entry"]
    assert sorted(set(entries)) == ["Gate is blue.", "Gate is green.", "Gate is red."]
    assert done.withheld == 3


def test_what_the_access_rules_deny_never_goes_out(tmp_path: Path) -> None:
    library = opened(tmp_path / "first")
    (library.root / "infinimem.yaml").write_text("format: 1\naccess: {export: {deny: {sensitivity: 'priv*'}}}\n")
    library.write([{"text": "The PIN is 4711.", "sensitivity": "private"}, "Oma likes herring."])
    library.flush()
    page = library.root / "topics" / "diary.md"
    page.write_text("---\nid: diary\ntoken_count: 3\n---\n# Diary\n\nProse of mine.\n")
    for format in ("jsonl", "md", "html"):
        done = library.export(format, tmp_path / format)
        assert (done.entries, done.withheld) == (1, 1)
    written = {**visible_files(tmp_path / "html"), **{one: (tmp_path / one).read_bytes() for one in ("jsonl", "md")}}
    assert not any(b"4711" in content or b"PIN" in content for content in written.values())
    assert b"Prose of mine." in written["jsonl"]
    assert records_in(tmp_path / "jsonl")[0]["partial"] is True


def test_what_was_forgotten_here_does_not_come_back_with_an_older_export(tmp_path: Path) -> None:
    library = opened(tmp_path / "first")
    library.write(["The PIN is 4711.", "Oma likes herring."])
    library.flush()
    library.export("jsonl", tmp_path / "old.jsonl")
    library.forget([1])
    came = library.load_export(tmp_path / "old.jsonl")
    assert (came.seqs, came.known, len(came.notes)) == ((), 1, 1)
    assert not any(b"4711" in content for content in visible_files(library.root).values())
    library.export("html", tmp_path / "site")
    library.export("jsonl", tmp_path / "new.jsonl")
    other = opened(tmp_path / "other")
    other.write("mine")
    other.load_export(tmp_path / "new.jsonl")
    buffer, topics, gone, words = places(other.root)
    assert (set(buffer), set(topics), gone, words) == ({1}, {2}, {3}, {2})  # 3 stands for what was forgotten there
    assert other.load_export(tmp_path / "old.jsonl").seqs == ()


def test_a_signature_that_a_formatter_wrapped_is_added_whole(tmp_path: Path) -> None:
    library = opened(tmp_path / "first")
    library.write({"text": "Oma likes herring\nand rye bread.", "label": "a long label, with words"}, source="Ines")
    library.flush()
    [page] = (library.root / "topics").glob("*.md")
    page.write_text(page.read_text().replace(", label=", ",\n  label="))
    library.export("jsonl", tmp_path / "out.jsonl")
    other = opened(tmp_path / "other")
    other.write("mine")
    other.load_export(tmp_path / "out.jsonl")
    assert other.trace(2).here.text == "Oma likes herring\nand rye bread."
    assert other.trace(2).here.get("label") == "a long label, with words"


# Kills


@pytest.mark.parametrize("into", ["empty", "lived in"])
def test_killed_at_any_step_a_load_is_done_or_not_begun(tmp_path: Path, into: str) -> None:
    library = opened(tmp_path / "first")
    prepare(library.root)
    library.export("jsonl", tmp_path / "out.jsonl")
    start = opened(tmp_path / "start")
    if into == "lived in":
        start.write(["Something of my own.", "And more."])
        start.flush()
        start.write("This waits.")
    before = visible_files(start.root)
    whole = copied(start.root, tmp_path / "whole")
    out = str(tmp_path / "out.jsonl")
    assert drive(0, "kill", "load", whole, out, count=tmp_path / "count").returncode == 0
    after = visible_files(whole)
    total = int((tmp_path / "count").read_text())
    seen = set()
    for number in range(1, total + 1, 1 if NIGHTLY else 9):
        root = copied(start.root, tmp_path / "one")
        assert drive(number, "kill", "load", root, out).returncode == -signal.SIGKILL
        assert not opened(root).check()
        now = visible_files(root)
        assert now in (before, after), f"killed at {number}/{total}"
        seen.add(now == after)
        assert drive(0, "kill", "load", root, out).returncode == 0
        assert visible_files(root) == after
        assert opened(root).write("the next one")[0] == opened(copied(whole, tmp_path / "two")).write("the next one")[0]
    assert seen == {True, False}


def test_a_page_that_is_edited_after_a_kill_keeps_the_edit_and_no_entry_is_lost(tmp_path: Path) -> None:
    library = opened(tmp_path / "first")
    prepare(library.root)
    library.export("jsonl", tmp_path / "out.jsonl")
    start = opened(tmp_path / "start")
    start.write(["Something of my own.", "And more."])
    out = str(tmp_path / "out.jsonl")
    whole = copied(start.root, tmp_path / "whole")
    assert drive(0, "kill", "load", whole, out, count=tmp_path / "count").returncode == 0
    total = int((tmp_path / "count").read_text())
    interrupted = 0
    for number in range(2, total + 1, 1 if NIGHTLY else 7):
        root = copied(start.root, tmp_path / "one")
        drive(number, "kill", "load", root, out)
        if not (root / ".infinimem" / "commit.json").exists():
            continue
        interrupted += 1
        for page in [*(root / "topics").rglob("*.md"), root / "CURRENT.md"]:
            page.write_bytes(page.read_bytes() + b"\nA thought of mine.\n")
        opened(root).check(fix=True)
        text = b"".join(visible_files(root).values())
        assert b"A thought of mine." in text
        buffer, topics, retired, words = places(root)
        assert {1, 2} <= {*buffer, *topics}
        lost = {*words} - {*buffer, *topics, *retired}
        assert not lost, f"killed at {number}/{total}"
    assert interrupted


# Hostile exports


@settings(max_examples=600 if NIGHTLY else 20)
@given(dice)
def test_a_spoilt_export_is_loaded_or_refused_and_the_library_stays_usable(tmp_path: Path, die: Dice) -> None:
    with TemporaryDirectory(dir=tmp_path) as folder:
        library = opened(Path(folder, "first"))
        library.write([{"text": "one", "links": "1:a"}, "two\nlines"])
        library.flush(planner="lexical")
        library.write("three")
        out = Path(folder, "out.jsonl")
        library.export("jsonl", out)
        records = records_in(out)
        for _ in range(die.randrange(1, 4)):
            record = die.choice(records)
            key = die.choice(list(record))
            odd = (
                "",
                "\udc80",
                "\ud800",
                "../x.md",
                "topics/" + "x" * 300 + ".md",
                "topics/a.md/b.md",
                "x\0y",
                die.text(),
            )
            record[key] = die.choice((None, -1, True, 10**30, [], {}, [[1]], {"a": "b"}, {"seq": "4"}, *odd))
        text = "".join(json.dumps(record) + "\n" for record in records)
        out.write_text(text)
        for name, mine in (("second", ""), ("third", "something of my own")):
            other = opened(Path(folder, name))
            if mine:
                other.write(mine)
            with contextlib.suppress(BadInput, NeedsAttention):
                other.load_export(out)
            other.check()
            assert not list(other.root.glob(".infinimem/commit*"))
            assert {path.name for path in Path(folder).iterdir()} <= {"first", "second", "third", "out.jsonl"}
            if mine:
                assert "something of my own" in (other.root / "CURRENT.md").read_text("utf-8", "surrogateescape")


def test_a_file_in_the_place_of_a_folder_is_said_before_anything_is_done(tmp_path: Path) -> None:
    library = opened(tmp_path / "first")
    (library.root / "topics" / "deep").mkdir()
    (library.root / "topics" / "deep" / "guest.md").write_text("hello\n")
    library.export("jsonl", tmp_path / "out.jsonl")
    other = opened(tmp_path / "other")
    (other.root / "topics" / "deep").write_text("a file of mine")
    with pytest.raises(BadInput, match="a folder is needed"):
        other.load_export(tmp_path / "out.jsonl")
    other.write("still writable")


# Where it goes


def test_a_device_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    library = opened(tmp_path / "first")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="no ordinary file"):
        library.export("jsonl", tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


def test_only_an_earlier_export_is_overwritten_and_all_is_private(tmp_path: Path) -> None:
    library = opened(tmp_path / "first")
    library.write("one")
    old = os.umask(0)
    try:
        library.export("jsonl", tmp_path / "out" / "it.jsonl")
    finally:
        os.umask(old)
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "out" / "it.jsonl").stat().st_mode & 0o777 == 0o600
    library.write("two")
    library.export("jsonl", tmp_path / "out" / "it.jsonl")
    assert "two" in (tmp_path / "out" / "it.jsonl").read_text()
    (tmp_path / "mine.jsonl").write_text('{"text": "mine"}\n')
    with pytest.raises(BadInput, match="no export"):
        library.export("jsonl", tmp_path / "mine.jsonl")
    assert (tmp_path / "mine.jsonl").read_text() == '{"text": "mine"}\n'


@pytest.mark.parametrize("name", ["topics/x.jsonl", "evidence/x.jsonl", "CURRENT.md", ".infinimem/x", "link/x.jsonl"])
def test_nothing_is_written_among_the_librarys_own_files(tmp_path: Path, name: str) -> None:
    library = opened(tmp_path / "first")
    library.write("one")
    (library.root / "link").symlink_to(library.root / "topics")
    before = visible_files(library.root)
    with pytest.raises(BadInput, match="library itself"):
        library.export("jsonl", library.root / name)
    assert visible_files(library.root) == before


def test_the_package_is_what_the_files_are(tmp_path: Path) -> None:
    library = opened(tmp_path / "first")
    prepare(library.root)
    library.export("jsonl", tmp_path / "out.jsonl")
    package = read_package(tmp_path / "out.jsonl")
    assert package.files == visible_files(library.root)
    assert (package.high, package.partial) == (10, False)


def test_every_line_is_one_by_the_schema(tmp_path: Path) -> None:
    library = opened(tmp_path / "first")
    prepare(library.root)
    page = next((library.root / "topics").glob("*.md"))
    page.write_bytes(page.read_bytes() + b"\nProse.\r\n* <seq=90,time=empty,source=AI> Another package wrote this.\n")
    validator = jsonschema.Draft202012Validator(schema_of("export-lines"))
    library.export("jsonl", tmp_path / "out.jsonl")
    lines = records_in(tmp_path / "out.jsonl")
    for line in lines:
        validator.validate(line)
    assert {line["record"] for line in lines} == {"library", "document", "heading", "entry", "event", "prose", "end"}
    assert not validator.is_valid({"record": "entry", "in": "CURRENT.md", "seqs": [1], "text": "no fields"})
