"""Laws of forgetting on generated libraries: no byte of any file holds the words; all else is where it was."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infinimem import Library
from infinimem.store.evidence import all_records, retirement
from infinimem.text.document import parse
from tests.conftest import NIGHTLY

START = datetime(2026, 5, 1, 9, tzinfo=UTC)
MARKERS = ("Zorblatt", "zqx7-marker", "Ügelünd", "鶴亀算", "qu\"o'te", "0176-4711230")
WORDS = "Maya Bergen boat ferry berth key tea choir oak case ninety July engineer Ines cycles".split()
FRAMES = (
    "{m} keeps the {a} near {b}.",
    "{a} {b} {m}",
    "{m}",
    "The {a} of {m} is in the {b}.\n\n- {m}\n- <seq=3> {a}",
    "{a} and {b}: {m}'s.\n```\n{m}\n```",
)
PLAIN = ("{a} is with {b}.", "The {a} of {b}", "{a}, {b} and {c}.\nA second line of {a}.")


@st.composite
def texts(draw: st.DrawFn, marker: str) -> str:
    frames = FRAMES if marker else PLAIN
    a, b, c = (draw(st.sampled_from(WORDS)) for _ in range(3))
    return draw(st.sampled_from(frames)).format(m=marker, a=a, b=b, c=c)


@st.composite
def histories(draw: st.DrawFn) -> tuple[str, list[tuple[object, ...]]]:
    marker = draw(st.sampled_from(MARKERS))
    one = st.one_of(
        st.tuples(st.just("write"), st.lists(st.one_of(texts(marker), texts("")), min_size=1, max_size=5),
                  st.sampled_from(["user", "Ines", marker]), st.booleans()),
        st.tuples(st.just("flush")),
        st.tuples(st.just("undo")),
        st.tuples(st.just("edit"), texts("")),
        st.tuples(st.just("backup")),
        st.tuples(st.just("search")),
        st.tuples(st.just("split")),
    )  # fmt: skip
    steps = draw(st.lists(one, min_size=2, max_size=9))
    return marker, [("write", [draw(texts(marker)), draw(texts(""))], "user", False), *steps]


def live(library: Library, marker: str, steps: list[tuple[object, ...]]) -> None:
    """Live through a history."""
    written: list[int] = []
    for step in steps:
        match step:
            case ("write", list(lines), str(source), bool(corrects)):
                old = written[-1:] if corrects else []
                links = "+".join(map(str, written[-2:]))
                written += library.write(lines, source=source, supersedes=old, meta={"links": links})
            case ("flush",):
                library.flush(planner="lexical")
            case ("undo",):
                library.undo()
            case ("edit", str(text)):
                for path in sorted((library.root / "topics").rglob("*.md"))[:1]:
                    path.write_text(path.read_text("utf-8") + f"\n- {text.splitlines()[0]}\n", "utf-8")
                    library.check(fix=True)
            case ("backup",):
                for path in [*sorted((library.root / "topics").rglob("*.md"))[:1], library.root / "CURRENT.md"]:
                    path.with_name(path.name + "~").write_bytes(path.read_bytes())
            case ("search",):
                library.search(marker)
            case ("split",):
                for row in library.catalog()[:1]:
                    library.split(row.topic)


def holding(root: Path, marker: str) -> list[str]:
    """The files whose bytes or names hold a marker, in any case."""
    word = marker.casefold()
    found = []
    for path in root.rglob("*"):
        name = path.relative_to(root).as_posix()
        if word in name.casefold() or (
            path.is_file() and word in path.read_bytes().decode("utf-8", "replace").casefold()
        ):
            found.append(name)
    return found


def others(root: Path, marker: str) -> dict[int, tuple[str, bool]]:
    """The last words of each entry that does not hold a marker in words or fields, and whether it is shown."""
    shown = set()
    found: dict[int, tuple[str, bool]] = {}
    for path in [root / "CURRENT.md", *(root / "topics").rglob("*.md")]:
        for entry in parse(path.relative_to(root).as_posix(), path.read_bytes()).entries:
            shown.update(entry.seqs)
            found.update((seq, (entry.text, True)) for seq in entry.seqs if len(entry.seqs) == 1)
    for seq, record in all_records(root).items():
        if record.newest is not None and seq not in found:
            found[seq] = (record.newest.text, seq in shown and retirement(record) is None)
    return found


@settings(max_examples=2_000 if NIGHTLY else 40)
@given(histories(), st.sampled_from(["seqs", "pattern"]))
def test_no_byte_of_any_file_holds_what_was_forgotten(
    tmp_path_factory: pytest.TempPathFactory, history: tuple[str, list[tuple[object, ...]]], by: str
) -> None:
    marker, steps = history
    ticks = itertools.count()
    root = tmp_path_factory.mktemp("law") / "memory"
    library = Library.open(root, create=True, clock=lambda: START + timedelta(seconds=next(ticks)))
    live(library, marker, steps)
    seqs = set(library.forget(pattern=f"(?i){escaped(marker)}", dry_run=True).seqs)
    assert seqs
    before = {seq: words for seq, words in others(root, marker).items() if seq not in seqs}
    report = library.forget(seqs) if by == "seqs" else library.forget(pattern=f"(?i){escaped(marker)}")
    assert not report.remains
    assert holding(root, marker) == []
    assert {seq: words for seq, words in others(root, marker).items() if seq not in seqs} == before
    assert set(report.seqs) == seqs
    findings = [finding for finding in library.check() if finding.problem.code not in ("unsettled",)]
    assert not findings, findings[0]
    library.undo()
    library.flush(planner="lexical")
    library.search(marker)
    assert holding(root, marker) == []
    assert min(library.write("next")) > max(seqs)


def escaped(marker: str) -> str:
    """A marker as a regular expression of RE2."""
    return "".join(char if char.isalnum() else f"\\x{{{ord(char):x}}}" for char in marker)
