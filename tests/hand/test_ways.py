"""Laws for every way in ways.py: nothing changed that nobody asked for, nothing lost, nothing unsaid."""

from __future__ import annotations

import difflib
import html
import re
import shutil
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from infinimem import Library
from infinimem.errors import NeedsAttention
from infinimem.text.document import parse, unsigned_entries
from tests.faults.library_state import places, visible_files
from tests.hand.ways import WAYS, Way

NOW = datetime(2026, 5, 1, 9, tzinfo=UTC)
BEFORE = Path(__file__).parent / "library"
SEQS = range(1, 13)
GIVEN = re.compile(r"<seq=[0-9]+, source=hand, observed=2026-05-01T09:00:00Z> ")
FOLLOWS = {"count", "summary"}
"""What any change of words may bring: the topic's size and summary are as they were until its next flush."""
DERIVED = re.compile(r"(token_count|id|aux): ")


@pytest.fixture(scope="session")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library before: ten entries flushed, two waiting."""
    root = tmp_path_factory.mktemp("before") / "memory"
    shutil.copytree(BEFORE, root)
    library = Library.open(root, create=True, clock=lambda: NOW)
    library.write(
        [
            "Petter borrows Terna on 3 May.",
            {
                "text": "Slate tiles arrived, two boxes broken.\nReplacement from Flisekompaniet.",
                "time": "2026-04-28",
                "source": "Ines",
            },
        ]
    )
    assert library.check() == []
    return root


def squash(text: str) -> str:
    """Words alone: what wrapping, escaping and HTML did to them undone."""
    return " ".join(re.sub(r"\\(?=[^\w\s])", "", html.unescape(text)).split())


def words(root: Path) -> dict[int, str]:
    """What each seq said before."""
    texts = {}
    for path in [*sorted((root / "evidence").iterdir()), root / "CURRENT.md"]:
        for entry in parse("x.md", path.read_bytes()).entries:
            texts[entry.seq] = entry.text
    return texts


def text_in(content: bytes) -> str:
    return content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8", "replace")


def assert_found_as_it_is(library: Library, way: Way) -> None:
    """Reading commands find what was typed at once, and write nothing outside .infinimem/."""
    saved = visible_files(library.root)
    library.ask("Where is Terna?")
    library.status()
    library.grep("Terna")
    for row in library.catalog():
        library.read(row.topic)
    for seq in (5, 10):
        library.trace(seq)
    for text in way.signed:
        first, _, _ = text.partition("\n\n")
        assert any(squash(first) in squash(hit.text) for hit in library.search(first)), f"{text!r} is not found"
    assert visible_files(library.root) == saved


def assert_asked_for(saved: dict[str, bytes], fixed: dict[str, bytes]) -> None:
    """Every byte that a repair changed is one of those that its findings name."""
    assert set(saved) | {path for path in fixed if path.startswith("evidence/")} == set(fixed)
    for path, content in fixed.items():
        if path.startswith("evidence/"):
            assert content.startswith(saved.get(path, b"")), f"{path} was not only appended to"
            continue
        kept = {line for other in fixed.values() for line in text_in(other).split("\n") if "<seq=" in line}
        old, new = (each.decode("utf-8", "surrogateescape").split("\n") for each in (saved[path], content))
        for tag, first, stop, start, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if tag != "equal":
                assert_explained(path, [line for line in old[first:stop] if line not in kept], new[start:end])


def assert_explained(path: str, old: list[str], new: list[str]) -> None:
    """Lines that differ: a signature put in or mended, a count, a seq, an indent. Doubles are taken out before."""
    if all(DERIVED.match(line) for line in [*old, *new]):
        return
    assert len(old) == len(new), (path, old, new)
    for was, now in zip(old, new, strict=True):
        if DERIVED.match(was) and DERIVED.match(now):
            continue
        same = {
            GIVEN.sub("", now, count=1) == was or re.sub(r"^([-*+]) +", r"\1 ", was) == GIVEN.sub("", now, count=1),
            now == "  " + was,
            re.sub(r"<seq=[0-9]+", "", was) == re.sub(r"<seq=[0-9]+", "", now),
            spelt(was) == spelt(now),
        }
        assert True in same, (path, was, now)


def spelt(line: str) -> str:
    """An entry's line without what programs do to the spelling of its signature."""
    line = html.unescape(line).replace("“", '"').replace("”", '"')
    return re.sub(r"^\W+<", "<", line).replace(" = ", "=")


def assert_conserved(root: Path, way: Way, texts: dict[int, str]) -> None:
    """Every seq is in one place and its words are somewhere, or a person has been told."""
    buffer, topics, retired, _ = places(root)
    everything = squash("\n".join(text_in(content) for content in visible_files(root).values()))
    for seq in SEQS:
        count = buffer[seq] + topics[seq] + (seq in retired)
        assert count == 1 or way.left, (
            f"seq {seq}: CURRENT {buffer[seq]}, topics {topics[seq]}, retired {seq in retired}"
        )
        assert squash(texts[seq]) in everything or way.words_changed or way.stuck, f"the words of seq {seq} are lost"


def typed(files: dict[str, bytes]) -> list[str]:
    """What topics and CURRENT hold of entries that were typed by hand."""
    documents = [parse(path, content) for path, content in files.items() if not path.startswith("evidence/")]
    ours = [entry for document in documents if not document.is_guest for entry in document.entries]
    return [entry.text for entry in ours if entry.source == "hand"]


def prose(root: Path) -> Counter[str]:
    """The lines of a person's own in topics and CURRENT; headings may go with the last entry below them."""
    found: Counter[str] = Counter()
    for path in [root / "CURRENT.md", *(root / "topics").rglob("*.md")]:
        if (
            not path.is_file()
            or path.is_symlink()
            or any(part.startswith(".") for part in path.relative_to(root).parts)
        ):
            continue
        document = parse(path.relative_to(root).as_posix(), path.read_bytes())
        spans = [entry.span for entry in (*document.entries, *unsigned_entries(document))]
        taken = {at for span in spans for at in range(span.start, span.stop)}
        lines = enumerate(document.lines[document.header.span.stop :], document.header.span.stop)
        found.update(line.strip() for at, line in lines if at not in taken and line.strip() and line[0] != "#")
    return found


@pytest.fixture
def changed(before: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Library:
    """A library that somebody has just changed in the way that the test is about."""
    root = tmp_path / "memory"
    shutil.copytree(before, root)
    request.getfixturevalue("way").edit(root)
    return Library.open(root, clock=lambda: NOW)


def test_there_are_a_hundred_ways_and_none_is_told_twice() -> None:
    assert len(WAYS) == len({way.name for way in WAYS}) >= 100


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_it_is_found_named_and_put_right(way: Way, changed: Library, before: Path) -> None:
    library = changed
    assert_found_as_it_is(library, way)
    saved = visible_files(library.root)
    findings = library.check()
    codes = {finding.problem.code for finding in findings}
    assert codes - FOLLOWS == way.found - FOLLOWS and codes >= way.found, [str(one.problem) for one in findings]
    library.check_preview()
    assert visible_files(library.root) == saved, "looking changes nothing"
    try:
        library.check(fix=True)
    except NeedsAttention as error:
        assert way.stuck and way.stuck in str(error)
        assert visible_files(library.root) == saved
        return
    fixed = visible_files(library.root)
    assert_asked_for(saved, fixed)
    left = library.check()
    waiting = {finding.problem.code for finding in left}
    assert waiting - {"summary"} == way.left, [str(finding.problem) for finding in left]
    assert not any(finding.fixable for finding in left)
    library.check(fix=True)
    assert visible_files(library.root) == fixed, "twice is once"
    texts = words(before)
    assert_conserved(library.root, way, texts)
    for seq, text in way.says.items():
        story = library.trace(seq)
        assert story.here is not None
        assert story.here.text == text
        said = {squash(entry.text) for _, entry in story.words}
        assert said >= {squash(text), squash(texts.get(seq, text))}, "evidence keeps the old words beside the new"
    assert {seq for seq in [*SEQS, *way.says] if library.trace(seq).fate == "deleted"} == way.gone
    assert sorted(typed(fixed)) == sorted(way.signed)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_a_flush_loses_and_retypes_nothing(way: Way, changed: Library, before: Path) -> None:
    library = changed
    saved, written = visible_files(library.root), prose(library.root)
    blocked = {path for path, content in saved.items() if path.endswith(".md") and parse(path, content).blocking}
    guests = {path for path, content in saved.items() if path.startswith("topics/") and parse(path, content).is_guest}
    if way.stuck:
        with pytest.raises(NeedsAttention, match=re.escape(way.stuck)):
            library.flush()
        assert visible_files(library.root) == saved
        return
    report = library.flush()
    assert report.exit_code in (0, 5)
    after = visible_files(library.root)
    for path in blocked | guests | {path for path in saved if not path.endswith(".md")}:
        assert after.get(path) == saved[path], f"{path} is not ours to change"
    assert sorted(typed(after)) == sorted(way.signed), "what was typed is an entry now"
    assert "wrapped" in way.found or not written - prose(library.root), "prose is gone"
    everything = squash("\n".join(text_in(content) for content in after.values()))
    for path, content in saved.items():
        if path.startswith("topics/") and path not in guests:
            for entry in parse(path, content).entries:
                assert squash(entry.text) in everything, f"what {path} said of seq {entry.seq} is gone"
    library.check(fix=True)
    assert not any(finding.fixable for finding in library.check())
    assert_conserved(library.root, way, words(before))
    for seq in way.gone - {11, 12}:
        assert library.trace(seq).here is None, f"seq {seq} was deleted, and the flush brought it back"
