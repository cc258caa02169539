"""Running git and infinimem as a user does, for the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from infinimem import Library

NOW = datetime(2026, 5, 2, 8, tzinfo=UTC)


def git(folder: Path, *arguments: str, code: int = 0) -> str:
    """What git prints, its last newline taken away."""
    done = subprocess.run(
        ["git", "-c", "core.quotePath=false", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, f"git {' '.join(arguments)}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout.removesuffix("\n")


def infinimem(*arguments: str, folder: Path, code: int = 0, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """One command as a process of its own."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "infinimem", *arguments],
        cwd=folder, env={**os.environ, "PATH": path}, input=stdin, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def plan(folder: Path, *steps: str) -> Path:
    """A plan file."""
    place = folder / "plan.yaml"
    place.write_text("plan: 1\nsteps:\n" + "".join(f"- {step}\n" for step in steps))
    return place


def library_with(root: Path, entries: Sequence[str] = (), **more: str) -> Library:
    """A library with some entries waiting."""
    library = Library.open(root, create=True, clock=lambda: NOW)
    if entries:
        library.write(list(entries), **more)  # type: ignore[arg-type]
    return library


def files_of(folder: Path, revision: str = "HEAD") -> list[str]:
    """The files that a commit touched."""
    return git(folder, "show", "--format=", "--name-only", "--no-renames", revision).splitlines()
