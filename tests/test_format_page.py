"""docs/format.md is a specification: a reader made from it alone agrees with infinimem about any library."""

from __future__ import annotations

import ast
import fcntl
from pathlib import Path

from hypothesis import given

from infinimem import Filter, Library, Signature, parse
from infinimem.store.evidence import all_records, retirement
from infinimem.text.document import entry_lines
from tests import spec_reader
from tests.pages import ROOT
from tests.text.hostile import Dice, dice

READER = Path(spec_reader.__file__).read_text("utf-8")


def assert_agrees(root: Path) -> dict[int, str]:
    """Every entry of every file, what holds and what left, why and for whom; gives where each current number stands."""
    read, fate = spec_reader.library(root)
    current: dict[int, str] = {}
    for path, items in read.items():
        theirs = [(line, fields, text) for line, fields, text in items if "event" not in fields]
        ours = [
            (entry.span.start + 1, {"seq": entry.seqs, **dict(entry.signature.fields)}, entry.text)
            for entry in parse(path, (root / path).read_bytes()).entries
        ]
        assert [
            (line, {**fields, "seq": tuple(spec_reader.numbers(fields["seq"]))}, text) for line, fields, text in theirs
        ] == ours
        if not path.startswith("evidence/"):
            current |= {
                seq: f"{path}:{line}" for line, fields, _ in theirs for seq in spec_reader.numbers(fields["seq"])
            }
    units = Library.open(root).index().entries((), Filter())
    assert current == {seq: f"{unit.path}:{unit.line}" for unit in units for seq in unit.seqs}
    records = all_records(root)
    events = {seq: event for seq, record in records.items() if (event := retirement(record)) is not None}
    assert {seq: (said.get("why", ""), said.get("by", "")) for seq, said in fate.items()} == {
        seq: (event.get("why"), event.get("by")) for seq, event in events.items()
    }
    assert set(records) - set(events) <= set(current), "each number is current, or left for a reason"
    return current


def test_the_reader_is_small_and_alone() -> None:
    assert len(READER.splitlines()) <= 80
    modules = {node.module for node in ast.walk(ast.parse(READER)) if isinstance(node, ast.ImportFrom)}
    assert modules == {"collections.abc", "pathlib"}


def test_it_reads_the_sample_library_as_infinimem_does() -> None:
    current = assert_agrees(ROOT / "sample_library")
    assert len(current) > 300


def test_it_reads_a_library_with_everything_in_it(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True)
    chance = Dice(7)
    texts = [chance.text() for _ in range(150)]
    library.write([{"text": text, "label": chance.phrase()[:20]} for text in texts if text.strip()])
    library.flush(planner="lexical")
    library.write("Maya works at Fjord Labs. She lives in Bergen.")
    library.write(["Maya joined Nordlys.", "Maya left Nordlys."], supersedes=3)
    library.flush(planner="lexical")
    library.undo()
    library.flush(planner="lexical")
    library.divide(library.search("Fjord Labs", 1)[0].seqs[0])
    name = library.search("Fjord Labs", 1)[0].topic
    page = library.root / library.file_of(name)
    page.write_text(page.read_text("utf-8").replace("Fjord", "Fjell") + "\n```\n- <seq=1> in a fence\n```\n", "utf-8")
    library.check(fix=True)
    library.forget(library.search("Nordlys", 1)[0].seqs)
    library.write("not flushed yet")
    assert assert_agrees(library.root)


@given(dice)
def test_it_reads_whatever_text_infinimem_writes(die: Dice) -> None:
    text, label = die.text(), die.value()
    lines = entry_lines(Signature((12, 13), (("label", label),)), text)
    [found, following] = spec_reader.items("".join(["# A\n", *lines, *entry_lines(Signature((1,)), "next")]).encode())
    assert (found[1], found[2]) == ({"seq": "12-13", "label": label}, text)
    assert following[2] == "next"


@given(dice)
def test_it_reads_whatever_people_make_of_a_file(die: Dice) -> None:
    """But for signatures that a formatter escaped or wrapped, which a reader need not take."""
    content = (
        "\n".join(die.line() for _ in range(die.randrange(12))).replace("\\<", "<").encode("utf-8", "surrogateescape")
    )
    ours = [(entry.span.start + 1, entry.seqs, entry.text) for entry in parse("evidence/a.md", content).entries]
    entries = [item for item in spec_reader.items(content) if next(iter(item[1])) != "event"]
    assert [(line, tuple(spec_reader.numbers(fields["seq"])), text) for line, fields, text in entries] == ours


def append_by_the_page(root: Path, text: str) -> int:
    """What the page says of adding an entry, and no more."""
    with (root / ".infinimem" / "lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        evidence = [item for path in root.glob("evidence/*.md") for item in spec_reader.items(path.read_bytes())]
        known = [int(fields.get("high", "0")) for _, fields, _ in evidence]
        for path in (root / "CURRENT.md", root / ".infinimem" / "written.log"):
            content = path.read_bytes() if path.exists() else b""
            known += [max(spec_reader.numbers(fields["seq"])) for _, fields, _ in spec_reader.items(content)]
        seq = max(known, default=0) + 1
        with (root / "CURRENT.md").open("ab", buffering=0) as buffer:
            buffer.write(f"- <seq={seq}> {text}\n".replace("\n", "\n  ")[:-2].encode())
        return seq


def test_another_program_and_infinimem_write_by_turns(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True)
    seqs = []
    for turn in range(6):
        seqs += library.write(f"ours {turn}")
        seqs.append(append_by_the_page(library.root, f"theirs {turn}\n\n- and more"))
        if turn == 3:
            library.flush(planner="lexical")
    assert seqs == list(range(1, 13))
    assert library.check() == []
    assert [unit.text for unit in library.index().entries(()) if unit.seqs == (12,)] == ["theirs 5\n\n- and more"]
    library.flush(planner="lexical")
    assert len(assert_agrees(library.root)) == 12
