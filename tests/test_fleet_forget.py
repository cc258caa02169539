"""Forgetting in many libraries: each as it is done in one, none stopped by another's trouble."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from infinimem import Library
from infinimem.errors import BadInput, InfinimemError
from infinimem.fleet.forget import Below, forget_below

WORD = "Zorblatt"


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Four libraries: two say a word, one of them among flushed entries; one says nothing of it; one is broken."""
    folder = tmp_path / "many"
    for name in ("ines", "kwame", "liv"):
        library = Library.open(folder / name, create=True)
        library.write(
            [f"{WORD} has the key of {name}.", "The boat has berth 12."] if name != "liv" else ["Hilde sails."]
        )
    Library.open(folder / "kwame").flush(planner="lexical")
    Library.open(folder / "broken", create=True).write(f"{WORD} sings.")
    (folder / "broken" / "infinimem.yaml").write_text("format: 99\n")
    return folder


def holding(folder: Path) -> set[str]:
    """The libraries in which a file holds the word."""
    return {
        path.relative_to(folder).parts[0]
        for path in folder.rglob("*")
        if path.is_file() and WORD.lower().encode() in path.read_bytes().lower()
    }


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "infinimem", "forget", *words]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def test_each_library_as_if_alone_and_a_broken_one_stops_none(many: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in (many / "liv").rglob("*.md")}
    plan = run("--root", str(many), "--pattern", WORD, "--dry-run", "--json")
    told = json.loads(plan.stdout)
    assert (plan.returncode, told["entries"], told["searched"]) == (5, 2, 3)
    assert [[text["text"] for text in one["texts"]] for one in told["libraries"]] == [
        [f"{WORD} has the key of ines."], [f"{WORD} has the key of kwame."]
    ]  # fmt: skip
    assert holding(many) == {"ines", "kwame", "broken"}
    done = run("--root", str(many), "--pattern", WORD, "--yes")
    assert done.returncode == 5
    assert "ines\nforgot 1 entry: 1\n" in done.stdout
    assert "kwame\nforgot 1 entry: 1\n" in done.stdout
    assert f"4 libraries below {many}: 2 entries forgotten in 2" in done.stdout
    assert "format 99 is not known" in done.stderr
    assert holding(many) == {"broken"}
    assert {path: path.read_bytes() for path in before} == before
    (many / "broken" / "infinimem.yaml").write_text("format: 1\n")
    assert run("--root", str(many), "--pattern", WORD, "--yes").returncode == 0  # only what was left is done
    assert holding(many) == set()
    assert run("--root", str(many), "--pattern", WORD, "--yes").returncode == 1
    empty = tmp_path / "empty"
    empty.mkdir()
    nothing = run("--root", str(empty), "--pattern", WORD, "--yes")
    assert (nothing.returncode, "no library lies below" in nothing.stderr) == (1, True)


def test_nobody_is_asked_without_a_terminal_and_numbers_are_one_library_s(many: Path) -> None:
    asked = run("--root", str(many), "--pattern", WORD)
    assert (asked.returncode, "say --yes" in asked.stderr) == (2, True)
    number = run("--root", str(many), "1", "--yes")
    assert (number.returncode, "a number is one library's" in number.stderr) == (2, True)
    assert run("--root", str(many), "--yes").returncode == 2
    assert run("--root", str(many), "--pattern", "(", "--yes").returncode == 2
    assert holding(many) == {"ines", "kwame", "broken"}


@pytest.mark.parametrize(("answer", "left"), [("n", {"ines", "kwame", "broken"}), ("y", {"broken"})])
def test_a_person_sees_what_would_go_in_all_of_them_and_is_asked_once(many: Path, answer: str, left: set[str]) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "infinimem", "forget", "--root", str(many), "--pattern", WORD],
        stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True,
    ) as asked:  # fmt: skip
        os.close(theirs)
        seen = ""
        while "[y/N]" not in seen:
            seen += os.read(ours, 4096).decode()
        assert "key of ines" in seen
        assert "key of kwame" in seen
        assert "Forget 2 entries in 2 libraries for good?" in seen
        assert holding(many) == {"ines", "kwame", "broken"}
        os.write(ours, f"{answer}\n".encode())
        try:
            while os.read(ours, 4096):
                pass
        except OSError:  # the other end is closed
            pass
        assert asked.wait() == (5 if answer == "y" else 1)
    os.close(ours)
    assert holding(many) == left


def test_by_field_for_an_audience_and_what_a_library_still_holds(many: Path) -> None:
    """Who may not see all of a library forgets nothing in it; prose that says it makes the exit code 5."""
    (many / "broken" / "infinimem.yaml").write_text("format: 1\naccess: {mcp: {deny: {ns: private}}}\n")
    page = next((many / "kwame" / "topics").glob("*.md"))
    page.write_text(page.read_text() + f"\nA word on {WORD}.\n")
    done = {Path(one.path).name: one for one in forget_below(many, pattern=WORD, audience="mcp", processes=2)}
    assert "for the library's owner" in done["broken"].why
    assert done["ines"].report.exit_code == 0
    assert [one.path for one in done["kwame"].report.remains] == [f"topics/{page.name}"]
    assert done["liv"] == Below(str(many / "liv"), done["liv"].report)
    assert not done["liv"].report.seqs
    with pytest.raises(BadInput):
        list(forget_below(many))
    with pytest.raises(InfinimemError):
        list(forget_below(many, pattern="("))
    Library.open(many / "ines").write("Of the crew.", source="Ines")
    by_field = [one.report.seqs for one in forget_below(many, where={"source": "Ines"}, dry_run=True, processes=1)]
    assert sorted(by_field) == [(), (), (), (3,)]
