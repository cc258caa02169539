"""A search through many libraries gives what one library with all their entries would give."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from infinimem import Library
from infinimem.fleet import search as fleet
from infinimem.fleet.search import search_below
from infinimem.model import Filter

SAMPLE = Path(__file__).parent.parent / "tools" / "sample" / "entries.jsonl"
OLD = "2026-01-01T00:00:00Z"
QUERIES = (
    "When is the dentist?",
    "Admiral",
    "Who works at Fjord Labs as an engineer",
    "boiler service May 2026",
    "Eirik",
)


def sample(number: int) -> list[dict[str, str]]:
    """The first entries of the sample library."""
    rows = [json.loads(line) for line in SAMPLE.read_text("utf-8").splitlines()[:number]]
    return [
        {"text": row["text"], "source": row["source"], "time": row.get("time", ""), "observed": row["at"]}
        for row in rows
    ]


def apart_and_together(folder: Path, *, flushed: bool) -> tuple[Path, Library]:
    """The same entries in libraries of six, and all in one; `ns` keeps them from being each other's context there."""
    one = Library.open(folder / "one", create=True)
    for at in range(0, 60, 6):
        entries = [{**entry, "ns": f"agent-{at}"} for entry in sample(60)[at : at + 6]]
        library = Library.open(folder / "many" / f"agent-{at:03}", create=True)
        library.write(entries)
        one.write(entries)
        if flushed and at % 12:
            library.flush("lexical", rewrite=False)
    return folder / "many", one


@pytest.mark.parametrize("query", QUERIES)
def test_hits_and_scores_are_those_of_one_library_with_all_entries(tmp_path: Path, query: str) -> None:
    many, one = apart_and_together(tmp_path, flushed=False)
    expected = {hit.text: hit.score for hit in one.search(query, 8)}
    found = search_below(many, query, 8, processes=2)
    assert not found.troubles
    assert {one.hit.text: one.hit.score for one in found.hits} == pytest.approx(expected)
    assert found.searched == 10
    texts = [one.hit.text for one in found.hits]
    assert texts == sorted(texts, key=lambda text: -expected[text])


def test_reading_small_libraries_whole_finds_what_their_indexes_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many, _ = apart_and_together(tmp_path, flushed=True)
    for query in QUERIES:
        read = [fleet.search_one(ask(path, query)) for path in sorted(many.iterdir())]
        monkeypatch.setattr(fleet, "is_small", lambda listing: False)
        indexed = [fleet.search_one(ask(path, query)) for path in sorted(many.iterdir())]
        counted = [fleet.count_one(ask(path, query)) for path in sorted(many.iterdir())]
        monkeypatch.undo()
        assert counted == [fleet.count_one(ask(path, query)) for path in sorted(many.iterdir())]
        assert [as_told(one) for one in read] == [as_told(one) for one in indexed]


def ask(path: Path, query: str) -> fleet.Ask:
    """A library asked on its own, by some statistics."""
    terms = fleet.read_question(query).terms
    return fleet.Ask(str(path), query, 5, Filter(), "", fleet.Statistics(500, 12.0, dict.fromkeys(terms, 20)))


def as_told(found: list[fleet.Found] | fleet.Trouble) -> list[tuple[str, str, int, float]]:
    """Hits without what floating point makes of them."""
    assert not isinstance(found, fleet.Trouble)
    return [(one.library, one.hit.unit.path, one.hit.line, round(one.hit.score, 9)) for one in found]


def test_a_glance_that_is_kept_tells_of_every_change(tmp_path: Path) -> None:
    many, _ = apart_and_together(tmp_path, flushed=True)
    time.sleep(2.1)  # until then a file may change within its times, and no glance is kept
    first = search_below(many, "zeppelin Admiral", processes=1)
    assert len(list(many.rglob("glance"))) == 10
    assert search_below(many, "zeppelin Admiral", processes=1) == first
    place = many / "agent-012"
    Library.open(place).write("The zeppelin is Admiral's.", observed=OLD)
    found = search_below(many, "zeppelin Admiral", processes=1)
    assert found.hits[0].hit.text == "The zeppelin is Admiral's."
    assert found.hits[0].library == str(place)
    Library.open(place).forget(list(Library.open(place).search("zeppelin", 1)[0].seqs))
    again = search_below(many, "zeppelin Admiral", processes=1)
    assert [one.hit.text for one in again.hits] == [one.hit.text for one in first.hits]
    assert not [path for path in place.rglob("*") if path.is_file() and b"zeppelin" in path.read_bytes().lower()]


def test_a_broken_library_is_told_and_stops_no_other(tmp_path: Path) -> None:
    many, _ = apart_and_together(tmp_path, flushed=False)
    (many / "agent-006" / "infinimem.yaml").write_text("format: 1\nlanguage: [\n")
    (many / "agent-012" / "infinimem.yaml").write_text("format: 99\n")
    command = [sys.executable, "-m", "infinimem", "search", "--root", str(many), "Admiral", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    told = json.loads(done.stdout)
    assert done.returncode == 5
    assert sorted(Path(one["path"]).name for one in told["troubles"]) == ["agent-006", "agent-012"]
    assert told["searched"] == 8
    assert "Admiral" in told["hits"][0]["text"]
    assert Path(told["hits"][0]["library"]).parent == many


def test_nothing_found_is_exit_code_1_and_a_hit_names_its_library(tmp_path: Path) -> None:
    many, _ = apart_and_together(tmp_path, flushed=False)
    command = [sys.executable, "-m", "infinimem", "search", "--root", str(many)]
    nothing = subprocess.run([*command, "xylophone"], capture_output=True, text=True, check=False)
    assert (nothing.returncode, nothing.stdout) == (1, "")
    assert "10 libraries" in nothing.stderr
    hit = subprocess.run([*command, "Admiral", "-k", "1"], capture_output=True, text=True, check=False)
    assert hit.returncode == 0
    assert hit.stdout.startswith("agent-")
    assert hit.stdout.split("\t")[1].startswith("CURRENT:")


def test_what_an_audience_may_not_see_is_neither_found_nor_counted(tmp_path: Path) -> None:
    for name in ("open", "closed"):
        library = Library.open(tmp_path / name, create=True)
        library.write(["The vault code is kept by Ines.", "The garden is green."], observed=OLD)
        library.write("The vault opens at nine.", meta={"ns": "private"}, observed=OLD)
    (tmp_path / "closed" / "infinimem.yaml").write_text("format: 1\naccess: {mcp: {deny: {ns: private}}}\n")
    hidden = search_below(tmp_path, "vault opens", audience="mcp", processes=1)
    told = [(Path(one.library).name, one.hit.text) for one in hidden.hits]
    assert ("open", "The vault opens at nine.") in told
    assert ("closed", "The vault opens at nine.") not in told
    owner = search_below(tmp_path, "vault opens", processes=1)
    assert {Path(one.library).name for one in owner.hits if "nine" in one.hit.text} == {"open", "closed"}
    opened = [one.hit.score for one in hidden.hits if one.hit.text == "The vault opens at nine."]
    seen = [one.hit.score for one in owner.hits if one.hit.text == "The vault opens at nine."]
    assert opened[0] > seen[0]  # a word that the hidden entry holds counts as rarer
