"""A user with a git of their own: a global configuration in a folder of the test, and nothing of the machine's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

GLOBAL = "[user]\n\tname = Maya Lindqvist\n\temail = maya@nordlys.example\n[init]\n\tdefaultBranch = main\n"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The user's home; afterwards their global configuration is what it was."""
    folder = tmp_path / "home"
    folder.mkdir()
    config = folder / ".gitconfig"
    config.write_text(GLOBAL)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "INFINIMEM_LIBRARY", "EMAIL", "GIT_AUTHOR_NAME",
                 "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_CONFIG_GLOBAL"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    yield folder
    assert config.read_text() in (GLOBAL, "")
    assert not (folder / "config" / "git").exists()
