"""Whether git is at work on the folder, so that a watch keeps its hands off it."""

from __future__ import annotations

import os
import time
from pathlib import Path

from infinimem.git.run import git_folder, under_way, work_tree

FORGOTTEN = 60.0
"""Seconds after which an index.lock is one that a killed git left."""


def git_data(root: Path) -> Path | None:
    """Where git keeps its data about the work tree that a library lies in; None where there is none."""
    tree = work_tree(root)
    return git_folder(tree) if tree is not None else None


def moving(root: Path) -> str:
    """The lock under which git changes files at this moment; "" when there is none, or an old one."""
    data = git_data(root)
    if data is None:
        return ""
    lock = data / "index.lock"
    try:
        age = time.time() - lock.stat().st_mtime
    except OSError:
        return ""
    return str(lock) if age < FORGOTTEN else ""


def unfinished(root: Path) -> str:
    """What a person has to finish in git before anything but them may write; "" when there is nothing."""
    data = git_data(root)
    if data is not None and os.path.lexists(data / "index.lock"):
        return f"{data / 'index.lock'} is there"
    state = under_way(root)
    return f"git is in the middle of a {state}" if state else ""
