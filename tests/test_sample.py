"""The sample library is what the tool itself makes of tools/sample, byte for byte; and it answers its questions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from infinimem import Library
from infinimem.text.tokens import estimate
from tests.faults.library_state import visible_files

PROJECT = Path(__file__).resolve().parent.parent
SAMPLE = PROJECT / "sample_library"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sample") / "library"
    script = PROJECT / "tools" / "make_sample_library.py"
    environment = {**os.environ, "PYTHONHASHSEED": "7", "LC_ALL": "C", "TZ": "Asia/Tokyo"}
    subprocess.run([sys.executable, str(script), str(out)], check=True, capture_output=True, env=environment)
    return out


def test_the_script_reproduces_the_library_byte_for_byte(made: Path) -> None:
    assert visible_files(made) == visible_files(SAMPLE)


def test_the_library_is_in_order(made: Path) -> None:
    assert not Library.open(made).check()


def test_it_is_as_large_and_varied_as_it_should_be(made: Path) -> None:
    library = Library.open(made)
    rows = library.catalog()
    assert len(rows) >= 12
    assert library.status().buffered >= 10, "some entries wait in CURRENT"
    assert sum(row.entries for row in rows) >= 300
    evidence = "".join(path.read_text() for path in (made / "evidence").iterdir())
    assert evidence.count("why=superseded") >= 20
    assert max(estimate((made / row.path).read_text()) for row in rows) < 5500


def test_its_questions_find_their_evidence(made: Path) -> None:
    library = Library.open(made)
    rows = [json.loads(line) for line in (PROJECT / "tools/sample/entries.jsonl").read_text().splitlines()]
    seqs = {row["label"]: number for number, row in enumerate(rows, 1) if row.get("label")}
    questions = [json.loads(line) for line in (PROJECT / "tools/sample/questions.jsonl").read_text().splitlines()]
    answerable = [question for question in questions if question["answer"] is not None]
    found = 0
    for question in answerable:
        hits = library.search(question["question"], 5)
        found += bool({seqs[label] for label in question["evidence"]} & {seq for hit in hits for seq in hit.seqs})
    assert found >= 0.75 * len(answerable), f"{found} of {len(answerable)}"
