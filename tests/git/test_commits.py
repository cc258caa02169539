"""A flush is a commit where that is asked for: its own files, in words, and never in anybody's way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from infinimem import Library
from infinimem.git.commits import PENDING, commit_paths
from infinimem.git.setup import set_up
from tests.git.world import NOW, files_of, git, infinimem, library_with, plan

WORK = "create: {topic: maya-work, title: Maya's work}"
HOME = "create: {topic: maya-home, title: At home}"


def committing(root: Path, *entries: str) -> Library:
    """A library of which every flush is a commit, with some entries waiting and a first commit."""
    library_with(root, entries)
    (root / "infinimem.yaml").write_text("format: 1\ngit: {commit: true}\n")
    tree = set_up(root).tree
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "first")
    return Library.open(root, clock=lambda: NOW)


@pytest.fixture
def memory(tmp_path: Path) -> Library:
    """Three entries in two topics, committed by their flush."""
    library = committing(tmp_path / "memory", "Maya works at Fjord Labs.", "The boat Terna has berth 12.", "Salt.")
    report = library.flush(
        plan=plan(tmp_path, WORK, "extend: {topic: maya-work, heading: Employers, seqs: 1}", HOME,
                  "extend: {topic: maya-home, heading: Pantry, seqs: 2-3}")
    )  # fmt: skip
    assert report.commit
    assert report.exit_code == 0
    return library


def message(folder: Path) -> str:
    return git(folder, "log", "-1", "--format=%B").strip("\n")


def head(folder: Path) -> str:
    return git(folder, "rev-parse", "HEAD")


def test_one_write_is_one_line_in_one_file(memory: Library) -> None:
    memory.write("Maya joined Nordlys as a staff engineer.", supersedes=[1])
    assert git(memory.root, "diff", "--numstat") == "1\t0\tCURRENT.md"


def test_a_flush_says_in_words_what_it_did(memory: Library, tmp_path: Path) -> None:
    assert message(memory.root) == "memory: 3 entries into 2 topics\n\nmaya-work: new, +1\nmaya-home: new, +2"
    memory.write("Maya joined Nordlys as a staff engineer.", supersedes=[1])
    steps = "extend: {topic: maya-work, heading: Employers, seqs: 4}", "retire: {seq: 1, by: 4, why: superseded}"
    report = memory.flush(plan=plan(tmp_path, *steps))
    assert git(memory.root, "rev-parse", "--short", "HEAD") == report.commit
    assert message(memory.root) == (
        "memory: 1 entry into maya-work\n\nmaya-work: +1\n\n"
        '"Maya works at Fjord Labs." (1) → "Maya joined Nordlys as a staff engineer." (4)'
    )
    assert files_of(memory.root) == ["evidence/2026-05.md", "topics/maya-work.md"]
    assert git(memory.root, "log", "-1", "--format=%an <%ae>") == "Maya Lindqvist <maya@nordlys.example>"
    assert git(memory.root, "status", "--porcelain") == ""


def test_a_split_a_merge_and_an_undo_are_commits_too(tmp_path: Path) -> None:
    entries = [f"On day {day} Ines cycled {day} km to the office." for day in range(1, 9)]
    entries += [f"Recipe {number}: bake the rye bread for {number} minutes with salt." for number in range(1, 9)]
    library = committing(tmp_path / "memory", *entries)
    library.flush(plan=plan(tmp_path, WORK, "extend: {topic: maya-work, heading: All, seqs: 1-16}"))
    split = library.split("maya-work")
    assert split.commit
    assert message(library.root).startswith(f"memory: split maya-work into {1 + len(split.created)} topics")
    parts = [*split.created, *split.changed]
    assert {f"topics/{topic}.md" for topic in parts} >= set(files_of(library.root))
    merged = library.merge(parts)
    assert merged.commit
    assert message(library.root).startswith(f"memory: merged {len(parts)} topics into {parts[0]}")
    before = head(library.root)
    undone = library.undo()
    assert undone.commit
    assert git(library.root, "rev-parse", "HEAD^") == before
    assert message(library.root).startswith("memory: undone, ")
    assert git(library.root, "status", "--porcelain") == ""
    assert git(library.root, "diff", "HEAD~2", "--stat", "--", "topics") == ""


def test_repairs_are_a_commit(memory: Library) -> None:
    with (memory.root / "topics" / "maya-home.md").open("a") as file:
        file.write("- The spare key hangs in the shed.\n")
    memory.check(fix=True)
    assert message(memory.root).startswith("memory: ")
    assert "topics/maya-home.md: a bullet without a signature" in message(memory.root)
    assert git(memory.root, "status", "--porcelain") == ""
    assert all(not finding.fixable for finding in memory.check())


def test_what_somebody_is_editing_elsewhere_is_not_swept_in(memory: Library, tmp_path: Path) -> None:
    other = memory.root / "topics" / "maya-home.md"
    other.write_text(other.read_text() + "\nA thought, half wri\n")
    (memory.root / "topics" / "draft.md").write_text("# Draft\n")
    (memory.root / "infinimem.yaml").write_text("format: 1\ngit: {commit: true}\nask.k: 5\n")
    memory.write("Maya has a desk by the window.")
    memory.flush(plan=plan(tmp_path, "extend: {topic: maya-work, heading: Employers, seqs: 4}"))
    assert files_of(memory.root) == ["evidence/2026-05.md", "topics/maya-work.md"]
    assert git(memory.root, "status", "--porcelain").splitlines() == [
        " M infinimem.yaml", " M topics/maya-home.md", "?? topics/draft.md"]  # fmt: skip


def test_a_first_flush_on_a_branch_without_commits(tmp_path: Path) -> None:
    infinimem("init", "memory", "--git", "--commit", folder=tmp_path)
    root = tmp_path / "memory"
    infinimem("write", "Maya works at Fjord Labs.", folder=root)
    done = infinimem("flush", folder=root)
    assert "committed " in done.stderr
    assert {".gitattributes", "infinimem.yaml", "CURRENT.md"} < set(files_of(root))
    assert git(root, "status", "--porcelain") == ""
    git(tmp_path, "clone", "-q", "memory", "clone")
    assert "Fjord" in infinimem("search", "Fjord", folder=tmp_path / "clone").stdout


# In nobody's way


def flush_again(library: Library, code: int = 5) -> subprocess.CompletedProcess[str]:
    """One more entry, and a flush by the command."""
    library.write("Maya has a desk by the window.")
    return infinimem("flush", "--no-merge", folder=library.root, code=code)


def test_what_the_user_staged_stays_staged_and_unmixed(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    git(project, "init", "-q")
    (project / "code.py").write_text("print(1)\n")
    library = committing(project / "my notes")
    (project / "code.py").write_text("print(2)\n")
    git(project, "add", "code.py")
    before = head(project)
    done = flush_again(library)
    assert "you have something staged" in done.stderr
    assert head(project) == before
    assert git(project, "diff", "--cached", "--name-only") == "code.py"
    git(project, "commit", "-qm", "mine")
    library.write("The window faces east.")
    infinimem("flush", "--no-merge", folder=library.root)
    assert all(name.startswith("my notes/") for name in files_of(project))
    assert git(project, "status", "--porcelain") == ""  # with it went what could not be committed before
    assert not (library.root / PENDING).exists()


def test_a_hook_that_refuses_is_said_and_nothing_is_lost(memory: Library) -> None:
    hook = memory.root / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\necho checking >&2\necho the line is too long >&2\nexit 1\n")
    hook.chmod(0o755)
    before = head(memory.root)
    done = flush_again(memory)
    assert "not committed: the line is too long" in done.stderr
    assert head(memory.root) == before
    assert git(memory.root, "diff", "--cached", "--name-only") == ""
    assert "window" in infinimem("search", "window", folder=memory.root).stdout
    hook.write_text("#!/bin/sh\ngit diff --cached --name-only > ../seen 2>&1; exit 0\n")
    memory.write("The window faces east.")
    assert infinimem("flush", "--no-merge", folder=memory.root).returncode == 0
    assert git(memory.root, "status", "--porcelain") == ""


def test_without_a_name_nothing_is_committed_under_a_guessed_one(memory: Library, home: Path) -> None:
    before = head(memory.root)
    (home / ".gitconfig").write_text("")
    done = flush_again(memory)
    assert "git knows no name and e-mail of yours" in done.stderr
    assert head(memory.root) == before


def test_a_commit_is_never_signed(memory: Library) -> None:
    git(memory.root, "config", "commit.gpgSign", "true")
    git(memory.root, "config", "gpg.program", "false")
    assert flush_again(memory, code=0)
    assert git(memory.root, "log", "-1", "--format=%G?") == "N"


@pytest.mark.parametrize("state", ["merge", "rebase", "cherry-pick", "detached"])
def test_in_the_middle_of_something_nothing_is_committed(memory: Library, state: str) -> None:
    root = memory.root
    (root / "code.txt").write_text("base\n")
    git(root, "add", "code.txt")
    git(root, "commit", "-qm", "base")
    git(root, "switch", "-qc", "other")
    (root / "code.txt").write_text("theirs\n")
    git(root, "commit", "-qam", "theirs")
    git(root, "switch", "-q", "main")
    (root / "code.txt").write_text("ours\n")
    git(root, "commit", "-qam", "ours")
    if state == "detached":
        git(root, "switch", "-q", "--detach")
    else:
        git(root, state, "other", code=1)
    before = git(root, "rev-parse", "--all"), git(root, "ls-files", "-s")
    if state == "detached":
        assert "no branch is checked out" in flush_again(memory).stderr
    else:
        code = 3 if state == "rebase" else 5  # a merge that does not touch memory is no reason not to flush
        assert f"git is in the middle of a {state}" in flush_again(memory, code=code).stderr
        refused = commit_paths(root, ["CURRENT.md"], "memory: not now")
        assert f"git is in the middle of a {state}" in refused.why_not
    assert (git(root, "rev-parse", "--all"), git(root, "ls-files", "-s")) == before


def test_an_index_that_another_git_holds_for_long(memory: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("infinimem.git.commits.PAUSE", 0.01)
    (memory.root / ".git" / "index.lock").write_text("")
    memory.write("Maya has a desk by the window.")
    report = memory.flush(merge=False)
    assert "index.lock" in report.uncommitted
    assert report.exit_code == 5
    (memory.root / ".git" / "index.lock").unlink()
    memory.write("The window faces east.")
    assert memory.flush(merge=False).commit
    assert git(memory.root, "status", "--porcelain") == ""


def test_a_library_outside_of_git_says_what_to_do(tmp_path: Path) -> None:
    library = library_with(tmp_path / "memory", ["a fact"])
    (library.root / "infinimem.yaml").write_text("format: 1\ngit.commit: true\n")
    assert "infinimem init --git" in library.flush().uncommitted


def test_names_that_mean_something_to_git_mean_only_themselves(tmp_path: Path) -> None:
    library = committing(tmp_path / "memo ü [x]")
    topics = library.root / "topics"
    for name in ("a*.md", "ab.md", ":(top)x.md", "ü b.md", "-n.md"):
        (topics / name).write_text("# x\n")
    assert commit_paths(library.root, ["topics/a*.md", "topics/:(top)x.md", "topics/ü b.md"], "memory: odd names").id
    assert git(library.root, "status", "--porcelain") == "?? topics/-n.md\n?? topics/ab.md"
    assert commit_paths(library.root, ["topics/-n.md"], "memory: a dash").id


def test_a_buffer_that_the_user_ignores_stays_out(memory: Library) -> None:
    (memory.root / ".gitignore").write_text("CURRENT.md\n")
    git(memory.root, "rm", "-q", "--cached", "CURRENT.md")
    git(memory.root, "add", ".gitignore")
    git(memory.root, "commit", "-qm", "not the buffer")
    flush_again(memory, code=0)
    assert "CURRENT.md" not in files_of(memory.root)
    assert git(memory.root, "status", "--porcelain") == ""


def test_a_linked_work_tree_commits_on_its_own_branch(memory: Library, tmp_path: Path) -> None:
    git(memory.root, "worktree", "add", "-q", "-b", "laptop", str(tmp_path / "ein Baum"))
    linked = Library.open(tmp_path / "ein Baum", clock=lambda: NOW)
    before = head(memory.root)
    assert flush_again(linked, code=0)
    assert head(memory.root) == before
    assert git(linked.root, "rev-parse", "laptop^") == before


def test_a_dry_run_commits_nothing(memory: Library) -> None:
    memory.write("Maya has a desk by the window.")
    before = head(memory.root)
    assert not memory.flush(dry_run=True).commit
    assert head(memory.root) == before


def test_without_the_setting_nothing_is_committed(memory: Library) -> None:
    (memory.root / "infinimem.yaml").write_text("format: 1\n")
    before = head(memory.root)
    flush_again(memory, code=0)
    assert head(memory.root) == before


def test_a_hook_may_look_at_the_library(memory: Library) -> None:
    hook = memory.root / ".git" / "hooks" / "pre-commit"
    hook.write_text(f"#!/bin/sh\nexec '{sys.executable}' -m infinimem check >/dev/null\n")
    hook.chmod(0o755)
    assert "committed" in flush_again(memory, code=0).stderr


def test_two_laptops(tmp_path: Path) -> None:
    first = committing(tmp_path / "first", "Maya works at Fjord Labs.", "The boat Terna has berth 12.")
    first.flush(plan=plan(tmp_path, WORK, "extend: {topic: maya-work, heading: All, seqs: 1-2}"))
    git(tmp_path, "init", "-q", "--bare", "origin")
    git(first.root, "remote", "add", "origin", "../origin")
    git(first.root, "push", "-q", "-u", "origin", "main")
    git(tmp_path, "clone", "-q", "origin", "second")
    infinimem("init", "--git", folder=tmp_path / "second")
    second = Library.open(tmp_path / "second")
    for library, words in ((first, "Maya joined Nordlys."), (second, "The boat Terna was sold.")):
        library.write(words, supersedes=[1 if library is first else 2])
        report = library.flush(merge=False, split=False)
        assert report.commit
        library.write(f"Waiting on {library.root.name}.")
    for library in (first, second, first):
        git(library.root, "commit", "-qam", "memory", code=0 if git(library.root, "status", "--porcelain") else 1)
        git(library.root, "pull", "-q", "--no-rebase", "--no-edit")
        infinimem("check", "--fix", folder=library.root)
        assert git(library.root, "status", "--porcelain") == ""
        git(library.root, "push", "-q")
    texts = []
    for library in (first, second):
        assert library.check() == []
        shown = [entry.text for entry in library.search("Maya Nordlys boat Terna sold waiting", k=20)]
        texts.append(sorted(shown))
    assert texts[0] == texts[1]
    assert texts[0] == sorted(
        ["Maya joined Nordlys.", "The boat Terna was sold.", "Waiting on first.", "Waiting on second."]
    )
    assert git(first.root, "rev-parse", "HEAD") == git(second.root, "rev-parse", "HEAD")


def test_words_that_no_command_line_takes_are_no_trouble(memory: Library) -> None:
    with (memory.root / "topics" / "maya-home.md").open("ab") as file:
        file.write(b"- <seq=77> a\x00b \x1b[2J \xff\n# \xe2\x80\xa8\n")
    assert commit_paths(memory.root, ["topics/maya-home.md"], "memory: a\0b", ["# c\0d\x1b", "\udcff"]).id
    assert message(memory.root) == "memory: a b\n\n# c d"


def test_a_secret_stops_a_commit_until_it_is_meant(memory: Library) -> None:
    memory.write("The token is ghp_" + "a1B2" * 9)
    first = memory.flush(merge=False, split=False)
    assert not first.commit
    assert "GitHub" in first.uncommitted
    assert "topics/" in first.uncommitted or "evidence/" in first.uncommitted
    place = next(path for path in (memory.root / "topics").glob("*.md") if "ghp_" in path.read_text())
    place.write_text(place.read_text().replace("<seq=4,", "<seq=4, secret=ok,"))
    memory.write("The window faces east.")
    assert memory.flush(merge=False, split=False).commit
