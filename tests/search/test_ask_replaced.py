"""A question in the words of what was replaced leads to what holds now."""

from __future__ import annotations

from pathlib import Path

from infinimem import Library
from infinimem.model import Filter


def test_a_fact_that_was_replaced_in_other_words_is_found(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True)
    library.write(["I live in Gothenburg near the harbour.", "Jonas is allergic to nuts."], source="user")
    library.flush("lexical")
    library.write("We moved to Malmö.", source="user", supersedes=[1])
    library.flush("lexical")
    library.write("We are in Lund now.", source="user", supersedes=[3])
    library.flush("lexical")
    answer = library.ask("Where do I live?", reader="bm25")
    assert answer.found
    assert [(piece.text, piece.retired) for piece in answer.evidence] == [
        ("We are in Lund now.", ""),
        ("I live in Gothenburg near the harbour.", "superseded"),
    ]
    assert not library.ask("Which saxophone does Kwame play?", reader="bm25").found


def test_what_a_flush_has_yet_to_replace_is_marked_and_comes_behind_what_holds_now(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True)
    library.write(["I live in Gothenburg near the harbour.", "Jonas is allergic to nuts."], source="user")
    library.flush("lexical")
    library.write("We moved to Malmö.", source="user", supersedes=[1])
    library.write("We are in Lund now.", source="user", supersedes=[3])
    answer = library.ask("Where do I live?", reader="bm25")
    assert [(piece.text, piece.retired, piece.by) for piece in answer.evidence] == [
        ("We are in Lund now.", "", 0),
        ("I live in Gothenburg near the harbour.", "superseded", 3),
    ]
    found = library.search("Malmö harbour")
    assert {hit.text: hit.unit.retired for hit in found} == {
        "I live in Gothenburg near the harbour.": "superseded",
        "We moved to Malmö.": "superseded",
    }


def test_what_one_part_of_a_joined_line_said_is_found_once_it_was_replaced(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True)
    library.write(["Ines sells a green boat.", "Maya lives in Gothenburg."])
    library.flush("lexical")
    library.join([1, 2], "Ines sells a green boat and Maya lives in Gothenburg.")
    library.write("Maya lives in Lund.", supersedes=[2])
    library.flush("lexical")
    [old] = library.search("Gothenburg", filter=Filter(retired=True))
    assert (old.seqs, old.text) == ((2,), "Maya lives in Gothenburg."), "the other part of that line still holds"
