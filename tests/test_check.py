"""`check` as a person, a hook and CI meet it: worst first, a diff before the repair, exit codes that stop a commit."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given

from infinimem import Library
from infinimem.check import FIXES, WORST_FIRST, may_name, shown_among
from infinimem.errors import BadInput, UnknownSeq
from infinimem.model import Create, Extend
from infinimem.plan.paper import Plan
from infinimem.text.document import parse
from tests.faults.library_state import visible_files
from tests.text.hostile import files

NOW = datetime(2026, 5, 1, 9, tzinfo=UTC)


@pytest.fixture
def library(tmp_path: Path) -> Library:
    library = Library.open(tmp_path / "memory", create=True, clock=lambda: NOW)
    library.write(["The choir sings Brahms.", "The choir meets on Wednesdays."])
    library.flush(plan=Plan((Create("choir", "Choir"), Extend("choir", "", (1, 2)))))
    return library


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def spoil(library: Library) -> None:
    """One thing of each kind: a conflict, a deleted line, a broken signature, a secret, a plain bullet, a count."""
    choir = library.root / "topics" / "choir.md"
    edit(choir, "- <seq=1,", "1. <seq=1,")
    choir.write_text(choir.read_text() + "- typed by hand\n- The safe's PIN is 4711\n")
    (library.root / "topics" / "zoo.md").write_text("<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> theirs\n")


def test_the_worst_is_told_first_and_all_in_one_run(library: Library) -> None:
    spoil(library)
    codes = [finding.problem.code for finding in library.check()]
    assert codes == ["conflict", "conflict", "near-miss", "secret", "unsigned", "unsigned", "summary"]


def test_every_repair_says_what_it_does() -> None:
    assert set(FIXES) <= set(WORST_FIRST)


def test_the_diff_is_what_the_repair_then_does(library: Library, tmp_path: Path) -> None:
    path = library.root / "topics" / "choir.md"
    edit(path, "Brahms", "Bach")
    path.write_text(path.read_text() + "- typed by hand")
    before = visible_files(library.root)
    findings, diff = library.check_preview()
    assert visible_files(library.root) == before, "a preview changes nothing"
    assert {finding.problem.code for finding in findings} == {"edited", "unsigned"}
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-a", str(library.root), str(copy)], check=True)
    subprocess.run(["git", "apply", "--unsafe-paths", "-"], cwd=copy, input=diff, text=True, check=True)
    library.check(fix=True)
    assert visible_files(copy) == visible_files(library.root)
    assert library.check_preview() == ([], "")


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command as its user runs it; git with an identity of its own."""
    identity = {
        f"GIT_{who}_{what}": "maya@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, **identity, "PATH": path, "GIT_CONFIG_GLOBAL": os.devnull, "NO_COLOR": "1"}
    return subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_dry_run_prints_a_diff_as_data_and_the_findings_as_talk(library: Library) -> None:
    path = library.root / "topics" / "choir.md"
    path.write_text(path.read_text() + "- typed by hand\n")
    done = run("infinimem", "check", "--fix", "--dry-run", folder=library.root)
    assert done.returncode == 0
    assert done.stdout.startswith("--- a/topics/choir.md\n+++ b/topics/choir.md\n")
    assert "+- <seq=3, source=hand, observed=" in done.stdout
    assert "topics/choir.md:14: a bullet without a signature; check --fix signs it\n" in done.stderr


HOOK = "#!/bin/sh\nexec infinimem check --for-commit\n"


def repository(library: Library) -> Path:
    """The library as a git repository with the hook of docs/pre-commit.md."""
    recipe = (Path(__file__).parents[1] / "docs" / "pre-commit.md").read_text()
    assert HOOK in recipe
    assert run("git", "init", "-q", folder=library.root).returncode == 0
    hook = library.root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(HOOK)
    hook.chmod(0o755)
    return library.root


def test_the_hook_lets_an_ordinary_commit_through(library: Library) -> None:
    root = repository(library)
    path = root / "topics" / "choir.md"
    path.write_text(path.read_text() + "- typed by hand\n")
    run("git", "add", ".", folder=root)
    done = run("git", "commit", "-m", "notes", folder=root)
    assert done.returncode == 0, done.stderr


def test_the_hook_stops_at_a_secret_until_it_is_meant(library: Library) -> None:
    root = repository(library)
    library.write("The wifi password is hunter2.")
    run("git", "add", ".", folder=root)
    done = run("git", "commit", "-m", "notes", folder=root)
    assert done.returncode != 0
    assert "CURRENT.md:3: looks like it holds a secret (password)" in done.stdout + done.stderr
    edit(root / "CURRENT.md", "<seq=3,", "<seq=3, secret=ok,")
    run("git", "add", ".", folder=root)
    assert run("git", "commit", "-m", "notes", folder=root).returncode == 0


@pytest.mark.parametrize(
    "spoiled",
    ["<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> theirs\n", "- <seq =7> broken\n", "- <seq=1> other words\n"],
)
def test_the_hook_stops_at_what_cannot_be_read(library: Library, spoiled: str) -> None:
    root = repository(library)
    path = root / "topics" / "choir.md"
    path.write_text(path.read_text() + spoiled)
    run("git", "add", ".", folder=root)
    done = run("git", "commit", "-m", "notes", folder=root)
    assert done.returncode != 0
    assert "topics/choir.md:14: " in done.stdout + done.stderr


def test_the_hook_of_pre_commit_runs_the_same_command() -> None:
    import yaml

    [hook] = yaml.safe_load((Path(__file__).parents[1] / ".pre-commit-hooks.yaml").read_text())
    assert f"exec {hook['entry']}\n" in HOOK


@pytest.mark.parametrize("name", ["choir copy.md", "choir (1).md", "a.md", "zoo.md"])
def test_of_a_topic_and_its_copy_the_topic_keeps_the_entries(library: Library, name: str) -> None:
    topics = library.root / "topics"
    before = (topics / "choir.md").read_bytes()
    (topics / name).write_bytes(before)
    library.check(fix=True)
    assert (topics / "choir.md").read_bytes() == before
    assert "<seq=" not in (topics / name).read_text()
    assert "former_ids" not in (topics / name).read_text(), "the name is still the topic's"
    assert library.check() == []


@pytest.mark.parametrize(
    ("settings", "line", "says"),
    [
        ("format: 1\nflush: [\n", 3, "cannot be read"),
        ("format: 1\nask:\n  kk: 3\n", 3, "did you mean ask.k"),
        ("format: 1\nask:\n  k: none\n", 3, "a whole number"),
        ("format: 1\nmodel: {url: 'http://elsewhere'}\n", 2, "not taken from a library"),
    ],
)
def test_settings_that_every_command_would_stop_at_are_the_first_finding(
    library: Library, settings: str, line: int, says: str
) -> None:
    spoil(library)
    (library.root / "infinimem.yaml").write_text(settings)
    worst = library.check()[0]
    assert (worst.problem.path, worst.problem.code, worst.stops_a_commit) == ("infinimem.yaml", "settings", True)
    assert says in worst.problem.message
    if "url" not in settings:
        assert worst.problem.line == line


@pytest.mark.parametrize("within", ["topics/work", "evidence", ".infinimem/mine"])
def test_no_library_is_made_among_the_files_of_another(library: Library, within: str) -> None:
    before = visible_files(library.root)
    with pytest.raises(BadInput, match="among the files of the library"):
        Library.open(library.root / within, create=True)
    assert visible_files(library.root) == before
    assert Library.open(library.root / "attic", create=True).status().topics == 0


def test_all_commands_say_the_same_of_a_number_that_no_entry_has(library: Library) -> None:
    for ask in (library.trace, lambda seq: library.history(seq=seq)):
        with pytest.raises(UnknownSeq, match="no entry has seq 99; `infinimem status`"):
            ask(99)


@given(files)
def test_no_file_that_shows_an_entry_is_passed_over(content: bytes) -> None:
    for entry in parse("topics/a.md", content).entries:
        for seq in entry.seqs:
            assert may_name(content, {seq})


def test_only_what_is_shown_nowhere_comes_back(library: Library) -> None:
    extra = '\n- <source=hand, seq="90"> Quoted.\n- <seq=91-93> Several.\n```\n- <seq=94> Only code.\n```\n'
    path = library.root / "topics" / "choir.md"
    path.write_text(path.read_text() + extra)
    assert shown_among(library.root, {90, 92, 94, 95}) == {90, 92}
    assert not may_name(b"- <seq=9> Nine, and seq=19 in words.", {1, 99})
