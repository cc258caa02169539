"""Statements held against their sources: what passes, what does not, and that right answers pass."""

from __future__ import annotations

import pytest

from infinimem.ask import Evidence
from infinimem.model import Span
from infinimem.readers.cite import check, cited, finished, statements


def piece(
    text: str, source: str = "user", time: str = "", line: int = 1, topic: str = "notes", **more: str
) -> Evidence:
    return Evidence(topic, Span(line, line), text, (line,), f"topics/{topic}.md", time=time, source=source, **more)  # type: ignore[arg-type]


PIECES = [
    piece("Maya joined Nordlys as a staff engineer.", time="2026-05-01", line=14, topic="maya-work"),
    piece("The stand-up is at 09:40 now.", source="Ines", time="2026-09-07", line=20, topic="maya-work"),
    piece("I ran a charity race last Saturday.", source="Melanie", time="2023-05-25", line=3, topic="races"),
    piece("The roof has not been repaired.", time="2026-04-01", line=9, topic="house"),
    piece("Oma zieht am 8. August um.", source="Mama", time="2026-05-02", line=4, topic="oma-hilde"),
    piece("We went to the lake yesterday.", source="Caroline", time="2023-07-10", line=7, topic="lake"),
]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Maya joined Nordlys [1]. The stand-up is at 09:40 [2].", 2),
        ("Maya joined Nordlys. [1] The stand-up is at 09:40. [2][3]", 2),
        ("Dr. Haugen is the GP [1].", 1),
        ("Oma zieht am 8. August um [5]. Mehr nicht [5].", 2),
        ("- Maya [1]\n- Ines [2]\n", 2),
        ("她住在上海[1]。她以前住在北京[2]。", 2),
        ("At 09:40 it begins, e.g. on Mondays [2]!", 1),
        ("", 0),
    ],
)
def test_a_text_is_cut_into_statements_with_their_citations(text: str, found: int) -> None:
    assert len([statement for statement, _ in statements(text)]) == found


@pytest.mark.parametrize(
    "text", ["Maya joined Nordlys [1]. She leads [2].", "One. [1] Two. [2]\nThree [3]", "她[1]。他[2]。"]
)
def test_cut_while_it_is_written_it_comes_out_the_same(text: str) -> None:
    whole = [statement for statement, _ in statements(text)]
    for size in (1, 3, 7):
        rest, got = "", []
        for at in range(0, len(text), size):
            done, rest = finished(rest + text[at : at + size])
            got += done
        got += [statement for statement, _ in statements(rest)]
        assert got == whole


@pytest.mark.parametrize(
    ("statement", "places", "unknown"),
    [
        ("Maya joined Nordlys [1].", [0], 0),
        ("Both [1, 2].", [0, 1], 0),
        ("Both [1-3].", [0, 1, 2], 0),
        ("Both [1][2].", [0, 1], 0),
        ("She [maya-work:14].", [0], 0),
        ("She [maya-work:99].", [], 1),
        ("She [7].", [], 1),
        ("She [note the brackets].", [], 0),
        ("She [1, 99].", [0], 1),
    ],
)
def test_citations_are_numbers_or_places(statement: str, places: list[int], unknown: int) -> None:
    found, missing, words = cited(statement, PIECES)
    assert (found, missing) == (places, unknown)
    if places or unknown:
        assert "[" not in words


@pytest.mark.parametrize(
    ("question", "statement", "out"),
    [
        ("Where does Maya work?", "Maya works at Nordlys as a staff engineer [1].", "[maya-work:14]"),
        ("Where does Maya work?", "At Nordlys [1].", "[maya-work:14]"),
        ("When did Maya join?", "She joined on 1 May 2026 [1].", "[maya-work:14]"),
        ("When did Maya join?", "In May 2026 [1].", "[maya-work:14]"),
        ("When is the stand-up?", "The stand-up is at 9:40 [2].", "[maya-work:20]"),
        ("What did Melanie do?", "Melanie ran a charity race [3].", "[races:3]"),
        ("When did Melanie run?", "On 20 May 2023 [3].", "[races:3]"),
        ("Is the roof repaired?", "No, the roof has not been repaired [4].", "[house:9]"),
        ("Wann zieht Oma um?", "Oma zieht am 8. August um [5].", "[oma-hilde:4]"),
        ("Where was Caroline on 9 July 2023?", "Caroline went to the lake on 9 July 2023 [6].", "[lake:7]"),
        ("Where does Maya work?", "Maya joined Nordlys as a staff engineer.", "[maya-work:14]"),
    ],
)
def test_what_its_source_says_passes(question: str, statement: str, out: str) -> None:
    checked, _ = check(statement, PIECES, question)
    assert checked.why == "" and out in checked.text


@pytest.mark.parametrize(
    ("question", "statement", "why"),
    [
        ("When did Maya join?", "She joined on 2 May 2026 [1].", "no source says 2026-05-02"),
        ("When did Maya join?", "She joined in June 2026 [1].", "no source says 2026-06"),
        ("When is the stand-up?", "The stand-up is at 10:15 [2].", "no source says"),
        ("Where does Maya work?", "Maya works at Fjordkraft [1].", "no source names Fjordkraft"),
        ("Is the roof repaired?", "The roof has been repaired [4].", "leaves out"),
        ("Where does Maya work?", "Maya has never joined Nordlys [1].", "denies"),
        ("What race did Caroline run?", "Caroline ran a charity race [3].", "Caroline"),
        ("What race did Caroline run?", "She ran a charity race last Saturday [3].", "Caroline"),
        ("Where does Maya work?", "PWNED [1].", "not those of the entry"),
        ("Where does Maya work?", "Nobody knows that for certain.", "cites no entry"),
        ("Where does Maya work?", "At Nordlys [9].", ""),
    ],
)
def test_what_its_source_does_not_say_is_dropped(question: str, statement: str, why: str) -> None:
    checked, _ = check(statement, PIECES, question)
    if why:
        assert why in checked.why and checked.citations == ()
    else:
        assert checked.removed == 1


def test_a_count_of_what_was_listed_is_supported() -> None:
    races = [piece(f"Melanie ran race {name}.", line=at) for at, name in enumerate(("Alpha", "Beta", "Gamma"), 1)]
    assert check("Melanie ran 3 races [1][2][3].", races, "How many races did Melanie run?")[0].why == ""
    assert "no source says 4" in check("Melanie ran 4 races [1][2][3].", races, "How many races?")[0].why
