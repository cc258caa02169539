"""A question asked of many libraries is answered as one library with all their entries would answer it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infinimem import Library
from infinimem.ask import Evidence
from infinimem.errors import BadInput
from infinimem.fleet.ask import Answered, ask_below, ask_by, best_of
from infinimem.fleet.search import Ask, search_by
from infinimem.model import Filter, Span, Unit
from tests.llm.server import Behaviour, Payload, serving
from tests.test_fleet_search import OLD, QUERIES, apart_and_together


def make(folder: Path, **texts: list[str | dict[str, str]]) -> Path:
    """A library for each name, with these entries."""
    for name, entries in texts.items():
        Library.open(folder / name, create=True).write(entries, observed=OLD)
    return folder


def texts_of(answered: Answered) -> list[tuple[str, str]]:
    """Evidence as library and words."""
    return [(piece.library, piece.text) for piece in answered.answer.evidence]


def asked(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command, in a process of its own."""
    command = [sys.executable, "-m", "infinimem", "ask", "--root", str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})


@pytest.mark.parametrize("question", QUERIES)
def test_the_evidence_is_that_of_one_library_with_all_entries(tmp_path: Path, question: str) -> None:
    many, one = apart_and_together(tmp_path, flushed=False)
    expected = one.ask(question, reader="bm25", k=6)
    found = ask_below(many, question, reader="bm25", k=6, processes=2)
    assert not found.troubles
    assert found.answer.found == expected.found
    scores = {piece.text: piece.score for piece in expected.evidence}
    assert {piece.text: piece.score for piece in found.answer.evidence} == pytest.approx(scores)
    for piece in found.answer.evidence:
        lines = (found.folders[piece.library] / piece.path).read_text("utf-8").splitlines()
        assert piece.text.splitlines()[0] in lines[piece.span.start - 1]
        assert f"{piece.library}/{piece.topic}:{piece.span.start}" in found.answer.citations


def test_what_holds_now_comes_before_what_it_replaced_and_names_its_library(tmp_path: Path) -> None:
    make(
        tmp_path,
        ines=["The stand-up is at 09:15.", {"text": "The meeting moved to ten.", "supersedes": "1"}],
        kwame=["Maya joined Nordlys.", "Tea is in the left cupboard."],
    )
    found = ask_below(tmp_path, "When is the stand-up?", reader="bm25", processes=1)
    assert texts_of(found)[:2] == [("ines", "The meeting moved to ten."), ("ines", "The stand-up is at 09:15.")]
    Library.open(tmp_path / "ines").flush("lexical")
    again = ask_below(tmp_path, "When is the stand-up of the meeting?", reader="bm25", processes=1)
    assert texts_of(again)[0] == ("ines", "The meeting moved to ten.")
    assert again.answer.citations[0] == f"ines/{Library.open(tmp_path / 'ines').ask('meeting moved').citations[0]}"


def test_a_date_to_look_back_to_and_fields_hold_in_every_library(tmp_path: Path) -> None:
    make(
        tmp_path,
        ines=[
            {"text": "Maya works at Fjord Labs.", "time": "2026-01-05", "source": "Ines"},
            {"text": "Maya works at Nordlys.", "time": "2026-05-01", "source": "Ines", "supersedes": "1"},
        ],
        kwame=[{"text": "Maya works on the forecast.", "time": "2026-05-02", "source": "Kwame"}],
    )
    for library in ("ines", "kwame"):
        Library.open(tmp_path / library).flush("lexical")
    then = ask_below(tmp_path, "Where does Maya work?", filter=Filter(as_of="2026-02"), processes=1)
    assert texts_of(then) == [("ines", "Maya works at Fjord Labs.")]
    only = ask_below(tmp_path, "Where does Maya work?", filter=Filter((("source", "Kwame"),)), processes=1)
    assert texts_of(only) == [("kwame", "Maya works on the forecast.")]
    with pytest.raises(BadInput):
        ask_below(tmp_path, "Where?", filter=Filter(since="tomorrow"))


def test_the_other_side_of_what_contradicts_itself_stays_beside_it() -> None:
    def piece(library: str, seq: int, score: float) -> Evidence:
        return Evidence("t", Span(seq, seq), f"{library} {seq}", (seq,), score=score, library=library)

    best = best_of(2, ([piece("a", 1, 3.0), piece("a", 2, 0.0), piece("a", 3, 1.0)], [piece("b", 1, 2.0)]))
    assert [one.text for one in best] == ["a 1", "a 2", "b 1"]


def test_a_model_writes_from_all_libraries_what_each_lets_it_see(tmp_path: Path) -> None:
    make(
        tmp_path,
        ines=["I work at Nordlys as an engineer.", {"text": "At Nordlys I work under protest.", "ns": "private"}],
        kwame=["I work at Fjord Labs, on sensors."],
        liv=["The boiler was serviced."],
    )
    (tmp_path / "ines" / "infinimem.yaml").write_text("format: 1\naccess: {model: {deny: {ns: private}}}\n")
    numbers: dict[str, int] = {}

    def answer(payload: Payload) -> str:
        lines = str(payload["messages"][-1]["content"]).splitlines()
        numbers.update({line.split("] ")[1].split(" ")[0]: int(line[1]) for line in lines if line.startswith("[")})
        return f"Ines works at Nordlys [{numbers['ines']}]. Kwame works at Fjord Labs [{numbers['kwame']}]."

    model = Behaviour(answer)
    with serving(model) as url:
        done = asked(
            tmp_path, "Where", "do", "people", "work?", "--json", OPENAI_BASE_URL=url, INFINIMEM_MODEL="scripted"
        )
    told = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert told["reader"] == "gathered"
    assert told["answer"] == "Ines works at Nordlys [ines/CURRENT:3]. Kwame works at Fjord Labs [kwame/CURRENT:3]."
    assert told["citations"] == ["ines/CURRENT:3", "kwame/CURRENT:3"]
    assert {Path(piece["library"]).name for piece in told["evidence"]} == {"ines", "kwame"}
    assert {piece["place"] for piece in told["evidence"]} == {"ines/CURRENT:3", "kwame/CURRENT:3"}
    assert "protest" not in json.dumps(model.requests)
    assert told["usage"]["calls"] == 1
    assert told["withheld"] == 1
    assert "1 entry that fits was kept from the model" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ines", "kwame", "liv"]


def test_a_seq_of_one_library_is_not_that_of_another(tmp_path: Path) -> None:
    """Both have an entry 1; that which replaced it in one library does not replace the other's."""
    make(
        tmp_path,
        ines=["Ines has the key of the vault.", {"text": "Ines has the key no more, Liv has it.", "supersedes": "1"}],
        kwame=["Kwame has the key of the cellar."],
    )
    shown: list[str] = []

    def answer(payload: Payload) -> str:
        shown[:] = [line for line in str(payload["messages"][-1]["content"]).splitlines() if line.startswith("[")]
        kwame = next(number for number, line in enumerate(shown, 1) if "cellar" in line)
        return f"Kwame has the key of the cellar [{kwame}]."

    with serving(Behaviour(answer)) as url:
        done = asked(tmp_path, "Who had the key before?", OPENAI_BASE_URL=url, INFINIMEM_MODEL="scripted")
    assert done.returncode == 0, done.stderr
    assert "[kwame/CURRENT:3]" in done.stdout
    assert not any("replaced" in line for line in shown if "cellar" in line)


def test_memory_that_does_not_hold_it_a_model_that_fails_and_a_broken_library_have_their_exit_codes(
    tmp_path: Path,
) -> None:
    empty = asked(tmp_path, "vault")
    assert empty.returncode == 1
    assert f"no library lies below {tmp_path}" in empty.stderr
    make(tmp_path, ines=["The vault opens at nine."], kwame=["The garden is green."])
    nothing = asked(tmp_path, "zeppelin")
    assert (nothing.returncode, nothing.stdout) == (1, "not in memory\n")
    with serving(Behaviour(lambda payload: "NOT IN MEMORY")) as url:
        denied = asked(tmp_path, "Who painted the vault?", OPENAI_BASE_URL=url, INFINIMEM_MODEL="scripted")
    assert denied.returncode == 1
    assert denied.stdout.startswith("not in memory\nnearest:\n[ines/CURRENT:3]")
    with serving(Behaviour(lambda payload: "", fault=lambda number, payload: "html")) as url:
        failed = asked(tmp_path, "When does the vault open?", OPENAI_BASE_URL=url, INFINIMEM_MODEL="scripted")
    assert failed.returncode == 4
    assert "[ines/CURRENT:3]" in failed.stdout
    (tmp_path / "kwame" / "infinimem.yaml").write_text("format: 1\nlanguage: [\n")
    broken = asked(tmp_path, "When does the vault open?", "--reader", "bm25")
    assert broken.returncode == 5
    assert "[ines/CURRENT:3]" in broken.stdout
    assert str(tmp_path / "kwame") in broken.stderr
    for words in (("vault", "--good"), ("vault", "--reader", "agentic")):
        assert asked(tmp_path, *words).returncode == 2


def test_what_an_audience_may_not_see_is_no_evidence(tmp_path: Path) -> None:
    make(tmp_path, closed=["The vault is blue.", {"text": "The vault opens at nine.", "ns": "private"}])
    make(tmp_path, open=[{"text": "The vault opens at ten.", "ns": "private"}])
    (tmp_path / "closed" / "infinimem.yaml").write_text("format: 1\naccess: {mcp: {deny: {ns: private}}}\n")
    shown = ask_below(tmp_path, "When does the vault open?", reader="bm25", audience="mcp", processes=1)
    assert sorted(texts_of(shown)) == [("closed", "The vault is blue."), ("open", "The vault opens at ten.")]
    owner = ask_below(tmp_path, "When does the vault open?", reader="bm25", processes=1)
    assert ("closed", "The vault opens at nine.") in texts_of(owner)


def lived_in(root: Path) -> Library:
    """A library in which something has expired, something is announced, moved, replaced, and contradicts another."""
    library = Library.open(root, create=True)
    library.write(["The gate code is 7.", "The stand-up is at nine.", "Maya works at Fjord Labs."], observed=OLD)
    library.flush(planner="lexical")
    library.write(
        [
            {"text": "The gate code of the guests is 9, and of shed, barn and boat.", "expires": "2026-03-01"},
            {"text": "The stand-up is at ten.", "supersedes": "2", "time": "2199-01-01"},
            {"text": "Maya works at Nordlys.", "supersedes": "3"},
            {"text": "The gate code is 8, some say.", "links": "1:contradicts"},
            {"text": "The gate is guests' business.", "expires": "2026-02-01"},
            {"text": "The dentist moved the stand-up to 3 May 2199.", "time": "2199-05-03"},
        ],
        observed=OLD,
    )  # fmt: skip
    return library


LOOKS = (
    "gate code guests",
    "When is the stand-up?",
    "Where does Maya work?",
    "Fjord Labs",
    "code",
    "stand-up dentist",
)


class Here:
    """This process as the only worker."""

    def work_through(
        self, task: Callable[[Any], Any], pieces: Iterable[Sequence[Any]], lost: Callable[[Any, bool], Any]
    ) -> Iterator[Any]:
        yield from (task(one) for piece in pieces for one in piece)


@pytest.mark.parametrize(
    "way", [Filter(), Filter(retired=True), Filter(as_of="2026-02"), Filter(known_at="2026-01-02")]
)
def test_a_folder_with_one_library_says_what_that_library_says(tmp_path: Path, way: Filter) -> None:
    """Every mark: what has expired, is announced, replaced or contradicted; and the order."""
    library = lived_in(tmp_path / "one")
    for query in LOOKS:
        assert_same(library, query, way)
    library.flush(planner="lexical")
    for query in LOOKS:
        if query != "Fjord Labs" or way != Filter():  # by then only what was replaced says it: docs/fleet.md
            assert_same(library, query, way)
    assert library.ask("Fjord Labs", reader="bm25", filter=Filter(retired=True)).found  # which --all asks for


def assert_same(library: Library, query: str, way: Filter) -> None:
    """A library and the folder that it lies in say the same to a query and a question."""
    alone = library.search(query, 5, filter=way)
    found = search_by(Here(), library.root.parent, Ask("", query, 5, way, ""), 60.0)
    assert not found.troubles
    assert [one.hit.unit for one in found.hits] == [hit.unit for hit in alone]
    assert [one.hit.score for one in found.hits] == pytest.approx([hit.score for hit in alone])
    facing: dict[Unit, list[Unit]] = {}
    for unit, other in library.disputes([hit.unit for hit in alone], filter=way):
        facing.setdefault(unit, []).append(other)
    assert [list(one.facing) for one in found.hits] == [facing.get(hit.unit, []) for hit in alone]
    answer = library.ask(query, reader="bm25", k=5, filter=way)
    asked = ask_by(Here(), library.root.parent, query, reader="bm25", k=5, filter=way).answer
    assert (asked.found, asked.stop, asked.withheld) == (answer.found, answer.stop, answer.withheld)
    told = [replace(piece, library="", score=0.0) for piece in asked.evidence]
    assert told == [replace(piece, score=0.0) for piece in answer.evidence]


def test_what_has_expired_in_one_library_comes_after_what_holds_in_another(tmp_path: Path) -> None:
    """It is marked on the command line and in its JSON, as a search of that library alone marks it."""
    lived_in(tmp_path / "old")
    other = Library.open(tmp_path / "other", create=True)
    other.write("A gate has a code that guests know, and more words than would put it first.", observed=OLD)
    command = [sys.executable, "-m", "infinimem", "search", "--root", str(tmp_path), "gate code guests"]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    assert [line.split("\t")[0] for line in told if "(expired 2026-0" in line] == ["old", "old"]
    assert [("(expired" in line) for line in told] == sorted("(expired" in line for line in told)
    assert any("(contradicts " in line for line in told)
    hits = json.loads(subprocess.run([*command, "--json"], capture_output=True, check=False).stdout)["hits"]
    assert {hit["retired"] for hit in hits} == {"", "expired"}
    assert [1] in [hit["contradicts"] for hit in hits]
    pieces = ask_by(Here(), tmp_path, "gate code guests", reader="bm25").answer.evidence
    assert [piece.retired for piece in pieces][-2:] == ["expired", "expired"]


def test_a_topic_by_its_former_name_is_searched_in_every_library_that_has_it(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "one", create=True)
    library.write("Maya works at Nordlys.", observed=OLD)
    library.flush(planner="lexical")
    [path] = (tmp_path / "one" / "topics").glob("*.md")
    path.rename(path.with_name("renamed.md"))
    library.check(fix=True)
    expected = [hit.text for hit in library.search("Maya", filter=Filter(topic=path.stem))]
    assert expected
    found = search_by(Here(), tmp_path, Ask("", "Maya", 10, Filter(topic=path.stem), ""), 60.0)
    assert [one.hit.text for one in found.hits] == expected
