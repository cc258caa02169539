"""`init --git`: what git is told of a library, and what it is never told."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from infinimem.errors import BadInput
from infinimem.git.registered import AGAIN, NOT_REGISTERED, SAID, driver_missing, reminder
from infinimem.git.setup import set_up
from infinimem.store.layout import create_library
from tests.git.world import git, infinimem, library_with

NAMES = ("CURRENT.md", "evidence/2026-11.md", "topics/a.md", "topics/a b/ü/é.md", "topics/x.txt", "notes.md")


def attributes(root: Path, *names: str) -> dict[str, tuple[str, str]]:
    """What git makes of files of a library: how they are merged, and whether they are text to be converted."""
    found = {}
    for name in names or NAMES:
        words = git(root, "check-attr", "-z", "merge", "text", "--", name).split("\0")
        found[name] = (words[2], words[5])
    return found


EXPECTED = {
    "CURRENT.md": ("infinimem", "unset"),
    "evidence/2026-11.md": ("infinimem", "unset"),
    "topics/a.md": ("infinimem", "unset"),
    "topics/a b/ü/é.md": ("infinimem", "unset"),
    "topics/x.txt": ("unspecified", "unspecified"),
    "notes.md": ("unspecified", "unspecified"),
}


def test_a_library_of_its_own(tmp_path: Path) -> None:
    root = tmp_path / "memory"
    done = infinimem("init", str(root), "--git", folder=tmp_path)
    assert (root / ".git").is_dir()
    assert attributes(root) == EXPECTED
    assert "registered the merge driver" in done.stdout
    assert git(root, "config", "--local", "merge.infinimem.name")
    assert " merge-driver %O %A %B %P" in git(root, "config", "--local", "merge.infinimem.driver")
    assert git(root, "status", "--porcelain", "-uall").split("\n") == ["?? .gitattributes", "?? infinimem.yaml"]
    assert not driver_missing(root)


@pytest.mark.parametrize("name", ["memory", "my notes/ü [x]*", "#hash/!", "a\\b/“q”"])
def test_a_library_in_a_folder_of_a_repository(tmp_path: Path, name: str) -> None:
    git(tmp_path, "init", "-q", "project")
    root = tmp_path / "project" / name
    create_library(root)
    set_up(root)
    assert not (root / ".git").exists()
    assert attributes(root) == EXPECTED
    other = tmp_path / "project" / "other"
    other.mkdir()
    assert attributes(other, "CURRENT.md", "topics/a.md") == {
        "CURRENT.md": ("unspecified", "unspecified"),
        "topics/a.md": ("unspecified", "unspecified"),
    }
    assert not driver_missing(root)


def test_a_repository_that_ignores_the_library_is_not_its_repository(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "project")
    (tmp_path / "project" / ".gitignore").write_text("memory/\n")
    root = tmp_path / "project" / "memory"
    create_library(root)
    set_up(root)
    assert (root / ".git").is_dir()
    assert attributes(root) == EXPECTED


def test_twice_is_once(tmp_path: Path) -> None:
    root = tmp_path / "memory"
    create_library(root)
    set_up(root)
    before = {path: path.read_bytes() for path in (root / ".gitattributes", root / ".git" / "config",
                                                   root / ".git" / "info" / "attributes")}  # fmt: skip
    assert set_up(root).done == ()
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_attributes_that_are_there_stay_byte_for_byte(tmp_path: Path, ending: str) -> None:
    root = tmp_path / "memory"
    create_library(root)
    old = ending.join(["# mine", "*.png   binary", "CURRENT.md  merge=ours", "topics/**/*.md diff=markdown"]).encode()
    (root / ".gitattributes").write_bytes(old)
    (root / ".gitattributes").chmod(0o640)
    set_up(root)
    new = (root / ".gitattributes").read_bytes()
    assert new.startswith(old + ending.encode())
    assert new[len(old) :].decode().split(ending)[1:] == [
        "CURRENT.md -text",
        "evidence/*.md -text merge=union",
        "topics/**/*.md -text merge=infinimem",
        "infinimem.yaml -text",
        "",
    ]
    assert (root / ".gitattributes").stat().st_mode & 0o777 == 0o640


def test_attributes_behind_a_link_are_refused(tmp_path: Path) -> None:
    root = tmp_path / "memory"
    create_library(root)
    (tmp_path / "elsewhere").write_text("")
    (root / ".gitattributes").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadInput, match="symbolic link"):
        set_up(root)
    assert (tmp_path / "elsewhere").read_text() == ""


@pytest.mark.parametrize("setting", ["true", "input", "false"])
def test_bytes_stay_whatever_autocrlf_says(tmp_path: Path, setting: str) -> None:
    root = tmp_path / "memory"
    create_library(root)
    set_up(root)
    content = {
        "CURRENT.md": b"# CURRENT\n\n- <seq=1> a\n",
        "topics/a/b.md": b"---\r\nid: a/b\r\n---\r\n- <seq=2> b\r\n",
        "evidence/2026-05.md": b"# Evidence\n\n- <seq=2> b\r\n",
    }
    for path, words in content.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_bytes(words)
    git(root, "add", ".")
    git(root, "commit", "-qm", "memory")
    git(tmp_path, "clone", "-q", "-c", f"core.autocrlf={setting}", "memory", "clone")
    assert {path: (tmp_path / "clone" / path).read_bytes() for path in content} == content
    assert git(tmp_path / "clone", "status", "--porcelain") == ""


def test_a_linked_work_tree_is_served_by_the_same_registration(tmp_path: Path) -> None:
    root = tmp_path / "memory"
    create_library(root)
    set_up(root)
    git(root, "add", ".")
    git(root, "commit", "-qm", "memory")
    git(root, "worktree", "add", "-q", "-b", "tree", str(tmp_path / "ein Baum"))
    linked = tmp_path / "ein Baum"
    assert (linked / ".git").is_file()
    assert not driver_missing(linked)
    assert attributes(linked) == EXPECTED
    create_library(linked)
    assert set_up(linked).done == ()


def test_a_git_folder_that_lies_elsewhere(tmp_path: Path) -> None:
    root = tmp_path / "memory"
    create_library(root)
    git(root, "init", "-q", "--separate-git-dir", str(tmp_path / "there"))
    assert (root / ".git").is_file()
    set_up(root)
    assert not driver_missing(root)
    assert attributes(root) == EXPECTED
    git(tmp_path / "there", "config", "--unset", "merge.infinimem.driver")
    assert driver_missing(root)


@pytest.mark.parametrize("program", ["/gone/infinimem", "sh -c 'exit 2'", "sh -c 'exit 3'"])
def test_a_driver_that_is_gone_or_fails_leaves_ordinary_conflict_markers(tmp_path: Path, program: str) -> None:
    root = tmp_path / "memory"
    create_library(root)
    set_up(root)
    command = git(root, "config", "merge.infinimem.driver")
    _, _, rest = command.partition(" merge-driver ")
    git(root, "config", "merge.infinimem.driver", f"{program} merge-driver {rest}")
    topic = root / "topics" / "a.md"
    topic.write_text("# A\n\none\ntwo\nthree\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "memory")
    git(root, "switch", "-qc", "other")
    topic.write_text("# A\n\none\n2\nthree\n")
    git(root, "commit", "-qam", "theirs")
    git(root, "switch", "-q", "main")
    topic.write_text("# A\n\none\nII\nthree\n")
    git(root, "commit", "-qam", "ours")
    git(root, "merge", "-q", "other", code=1)
    assert topic.read_text() == "# A\n\none\n<<<<<<< ours\nII\n=======\n2\n>>>>>>> theirs\nthree\n"


# A clone that was not told


def cloned(tmp_path: Path) -> Path:
    root = tmp_path / "memory"
    create_library(root)
    set_up(root)
    git(root, "add", ".")
    git(root, "commit", "-qm", "memory")
    git(tmp_path, "clone", "-q", "memory", "clone")
    return tmp_path / "clone"


def test_a_clone_is_told_once_a_day_by_every_kind_of_command(tmp_path: Path) -> None:
    clone = cloned(tmp_path)
    assert driver_missing(clone)
    for command in (["write", "a fact"], ["status"], ["catalog"], ["flush"], ["check"]):
        (clone / SAID).unlink(missing_ok=True)
        first = infinimem(*command, folder=clone)
        assert first.stderr.count(NOT_REGISTERED) == 1, command
        again = infinimem(*command, folder=clone)
        assert NOT_REGISTERED not in again.stderr
    yesterday = time.time() - AGAIN - 60
    os.utime(clone / SAID, (yesterday, yesterday))
    elsewhere = infinimem("-L", str(clone), "status", folder=tmp_path)
    assert f"{NOT_REGISTERED} {clone}" in elsewhere.stderr
    infinimem("init", "--git", folder=clone)
    assert not (clone / SAID).exists()
    assert not driver_missing(clone)
    assert reminder(clone) == ""


@pytest.mark.parametrize("command", [["write", "a fact"], ["search", "a fact"], ["status"]])
def test_what_is_derived_is_ignored_in_a_clone_too(tmp_path: Path, command: list[str]) -> None:
    clone = cloned(tmp_path)
    infinimem(*command, folder=clone, code=1 if "search" in command else 0)
    assert (clone / ".infinimem").is_dir()
    assert git(clone, "status", "--porcelain") in ("", "?? CURRENT.md")


@pytest.mark.parametrize("place", ["include", "worktree", "global", "xdg", "spelling"])
def test_a_driver_that_git_finds_is_found(tmp_path: Path, place: str, home: Path) -> None:
    clone = cloned(tmp_path)
    key = ("merge.infinimem.driver", "infinimem merge-driver %O %A %B %P")
    if place == "include":
        (tmp_path / "more.inc").write_text('[merge "infinimem"]\n\tdriver = infinimem merge-driver %O %A %B %P\n')
        git(clone, "config", "include.path", "../../more.inc")
    elif place == "worktree":
        git(clone, "config", "extensions.worktreeConfig", "true")
        git(clone, "config", "--worktree", *key)
    elif place == "global":
        other = home / "other"
        os.environ["GIT_CONFIG_GLOBAL"] = str(other)
        git(clone, "config", "--file", str(other), *key)
    elif place == "xdg":
        (home / "config" / "git").mkdir(parents=True)
        git(clone, "config", "--file", str(home / "config" / "git" / "config"), *key)
    else:
        with (clone / ".git" / "config").open("a") as file:
            file.write(
                '[core]\n\teditor = true\n[Merge  "infinimem"]\n  name = x\n  Driver=infinimem merge-driver %O\n'
            )
    try:
        assert git(clone, "config", "merge.infinimem.driver")
        assert not driver_missing(clone)
    finally:
        os.environ.pop("GIT_CONFIG_GLOBAL", None)
        if place == "xdg":
            (home / "config" / "git" / "config").unlink()
            (home / "config" / "git").rmdir()


def test_links_that_a_repository_brings_lead_nowhere(tmp_path: Path) -> None:
    root = tmp_path / "memory"
    library_with(root, ["a fact"])
    set_up(root)
    (root / "infinimem.yaml").write_text("format: 1\ngit.commit: true\n")
    (tmp_path / "precious").write_text("mine")
    for name in ("driver-said", "uncommitted"):
        (root / ".infinimem" / name).symlink_to(tmp_path / "precious")
    (root / ".gitattributes.infinimem.tmp").symlink_to(tmp_path / "precious")
    git(root, "add", "-f", ".")
    git(root, "commit", "-qm", "links")
    git(tmp_path, "clone", "-q", "memory", "clone")
    stamp = (tmp_path / "precious").stat().st_mtime_ns
    assert (tmp_path / "clone" / ".infinimem" / "uncommitted").is_symlink()
    infinimem("flush", folder=tmp_path / "clone")
    (tmp_path / "clone" / ".gitattributes").write_text("")
    infinimem("init", "--git", folder=tmp_path / "clone")
    assert (tmp_path / "precious").read_text() == "mine"
    assert (tmp_path / "precious").stat().st_mtime_ns == stamp


def test_what_only_looks_like_a_driver_is_none(tmp_path: Path) -> None:
    clone = cloned(tmp_path)
    with (clone / ".git" / "config").open("a") as file:
        file.write(
            '[merge "infinimem"]\n\tname = only a name\n[merge "other"]\n\tdriver = x\n[diff "infinimem"]\ndriver=x\n'
        )
    git(clone, "config", "merge.infinimem.driver", code=1)
    assert driver_missing(clone)


def test_without_our_attributes_or_without_git_nothing_is_asked_for(tmp_path: Path) -> None:
    create_library(tmp_path / "plain")
    assert not driver_missing(tmp_path / "plain")
    (tmp_path / "plain" / ".gitattributes").write_text("*.md merge=union\n")
    assert not driver_missing(tmp_path / "plain")
    (tmp_path / "plain" / ".gitattributes").write_text("topics/**/*.md merge=infinimem\n")
    assert not driver_missing(tmp_path / "plain")


def test_commits_are_switched_on_where_that_is_asked_for(tmp_path: Path) -> None:
    infinimem("init", "memory", "--git", "--commit", folder=tmp_path)
    assert (tmp_path / "memory" / "infinimem.yaml").read_text() == "format: 1\ngit.commit: true\n"
    infinimem("init", "memory", "--git", "--commit", folder=tmp_path)
    assert (tmp_path / "memory" / "infinimem.yaml").read_text() == "format: 1\ngit.commit: true\n"
    (tmp_path / "memory" / "infinimem.yaml").write_text("format: 1\ngit:\n  commit: false\n")
    refused = infinimem("init", "memory", "--git", "--commit", folder=tmp_path, code=2)
    assert "infinimem.yaml:3 says git.commit: false" in refused.stderr
    infinimem("init", "memory", "--commit", folder=tmp_path, code=2)


def test_git_that_is_missing_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    create_library(tmp_path / "memory")
    with pytest.raises(BadInput, match="git is not installed"):
        set_up(tmp_path / "memory")


def test_the_reminder_starts_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = cloned(tmp_path)
    monkeypatch.setattr(subprocess, "Popen", None)
    assert reminder(clone)
