"""A little that was written is searched from memory, and gives what it gives once it is committed."""

from __future__ import annotations

from pathlib import Path

from infinimem import Library
from infinimem.model import Filter


def files_of(library: Library) -> list[str]:
    """The index on disk."""
    return sorted(path.name for path in (library.root / ".infinimem/index").rglob("files-*.json"))


def answers(library: Library) -> list[object]:
    """What several readers see."""
    found = [
        [(hit.seqs, round(hit.score, 6)) for hit in library.search(query, k=30)]
        for query in ("jar shelf", "jar 7", "ferry", "shelf pantry ferry late", "missing")
    ]
    listed = library.index().entries(("jar",), Filter())
    return [*found, [unit.seqs for unit in listed], library.status().entries, library.trace(31).here]


def test_what_was_just_written_is_found_without_a_commit(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True)
    library.write([f"Jar {number} stands on shelf {number % 5} of the pantry." for number in range(30)])
    library.search("jar")
    before = files_of(library)
    library.write(["The ferry was late.", "Jar 7 is empty."])
    library.write("A shelf fell on the ferry.", supersedes=3)
    from_memory = answers(library)
    assert files_of(library) == before, "nothing was committed"
    assert [31] in [list(seqs) for seqs, _ in from_memory[2]]  # type: ignore[attr-defined]
    library.index(settled=True)
    assert files_of(library) != before
    assert answers(library) == from_memory
    assert answers(Library.open(library.root)) == from_memory


def test_more_than_a_little_is_committed_and_so_is_a_hand_edit(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True)
    library.write("A first fact.")
    library.search("fact")
    before = files_of(library)
    library.write([f"A long day, part {number}: {'many words ' * 20}" for number in range(80)])
    assert library.search("part 79", k=1)[0].text.startswith("A long day, part 79")
    assert files_of(library) != before
    before = files_of(library)
    (library.root / "topics" / "guest.md").write_text("# Guest\n\nThe quark is blue.\n")
    assert library.search("quark")
    assert files_of(library) != before


def test_a_new_entry_is_among_many_that_share_its_words(tmp_path: Path) -> None:
    """More entries share its words than the index hands to the ranking."""
    library = Library.open(tmp_path / "memory", create=True)
    words = ("The ferry leaves", "Nobody comes", "It rains")
    library.write([f"{words[number % 3]}, day {number}." for number in range(900)])
    library.search("ferry")
    library.write("The ferry is late.")
    assert library.search("late ferry", k=1)[0].seqs == (901,)
