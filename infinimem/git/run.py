"""Running git: one place that knows how it is called, and what may never be asked of it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from infinimem.errors import BadInput, NeedsAttention

QUIET = ("-c", "core.quotePath=false", "-c", "color.ui=false", "-c", "core.pager=cat", "-c", "gc.auto=0")
"""Whatever the user has set: paths as they are, no colours, no pager, no maintenance in the background."""
SECONDS = 120


@dataclass(frozen=True, slots=True)
class Ran:
    """How a git command ended; `out` are its bytes, `said` what it told the user."""

    code: int
    out: bytes
    said: str

    @property
    def text(self) -> str:
        """The output as text, without the last newline."""
        return self.out.decode("utf-8", "surrogateescape").removesuffix("\n")


def run_git(folder: Path, *arguments: str, content: bytes = b"") -> Ran:
    """git with some arguments in a folder, `content` on its standard input. Raises `BadInput` where git is missing.

    The environment's GIT_DIR and the like are not passed on: they belong to the git that may have called us.
    """
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY")
    }
    environment |= {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C.UTF-8"}
    try:
        done = subprocess.run(
            ["git", *QUIET, *arguments],
            cwd=folder,
            input=content,
            capture_output=True,
            env=environment,
            timeout=SECONDS,
            check=False,
        )
    except FileNotFoundError as error:
        raise BadInput("git is not installed; install it, or go on without --git") from error
    except subprocess.TimeoutExpired as error:
        raise NeedsAttention(f"git {arguments[0]} took longer than {SECONDS} s in {folder}; run it by hand") from error
    return Ran(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace").strip())


def must_git(folder: Path, *arguments: str, content: bytes = b"") -> Ran:
    """Like `run_git`; raises `NeedsAttention` with git's own words where it fails."""
    ran = run_git(folder, *arguments, content=content)
    if ran.code:
        said = ran.said.splitlines()
        raise NeedsAttention(f"git {arguments[0]} failed in {folder}: {said[0] if said else f'exit {ran.code}'}")
    return ran


def work_tree(root: Path) -> Path | None:
    """The work tree that a folder lies in, found without starting git; None where there is none."""
    for folder in (root, *root.parents):
        if (folder / ".git").exists():
            return folder
    return None


def git_folder(tree: Path) -> Path:
    """Where a work tree's own git data lie: `.git`, or what a `.git` file (a linked work tree) points to."""
    place = tree / ".git"
    if place.is_dir():
        return place
    try:
        text = place.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return place
    return (tree / text.removeprefix("gitdir:").strip()).resolve() if text.startswith("gitdir:") else place


def under_way(root: Path) -> str:
    """What git is in the middle of in the library's work tree: merge, rebase, cherry-pick, …; "" for nothing."""
    tree = work_tree(root)
    if tree is None:
        return ""
    folder = git_folder(tree)
    states = {
        "MERGE_HEAD": "merge",
        "rebase-merge": "rebase",
        "rebase-apply": "rebase",
        "CHERRY_PICK_HEAD": "cherry-pick",
        "REVERT_HEAD": "revert",
    }
    return next((name for file, name in states.items() if (folder / file).exists()), "")
