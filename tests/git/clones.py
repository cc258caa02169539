"""Clones of one library, synchronised through a bare repository; and what must hold once all have synchronised."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from infinimem import Library
from infinimem.git.settle import refuse_under_way
from infinimem.model import path_of
from infinimem.store.evidence import all_records, retirement
from infinimem.store.read import list_files, read_file
from infinimem.text.document import edit, entry_lines, render

ATTRIBUTES = "CURRENT.md merge=union\nevidence/*.md merge=union\ntopics/**/*.md merge=infinimem\n"
LOCAL = "CURRENT.md merge=infinimem\nevidence/*.md merge=infinimem\n"
DRIVER = f"'{sys.executable}' -m infinimem merge-driver %O %A %B %P"
SETTINGS = "format: 1\nsplit: {max_tokens: 400}\nmerge: {max_tokens: 150}\n"


def git(folder: Path, *arguments: str, fails: bool = False) -> str:
    """Run git with nothing of the machine's own configuration."""
    environment = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": folder.name,
        "GIT_AUTHOR_EMAIL": f"{folder.name}@example.org",
        "GIT_COMMITTER_NAME": folder.name,
        "GIT_COMMITTER_EMAIL": f"{folder.name}@example.org",
    }
    done = subprocess.run(["git", *arguments], cwd=folder, env=environment, capture_output=True, text=True)
    assert fails or done.returncode == 0, f"git {' '.join(arguments)} in {folder.name}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


@dataclass
class Clone:
    """One machine's copy."""

    root: Path
    library: Library = field(init=False)

    def __post_init__(self) -> None:
        self.library = Library.open(self.root)

    def sync(self, *, rebase: bool = False) -> None:
        """Commit, pull, finish what the merge left, push; again if somebody was faster."""
        self.commit("work")
        for _ in range(5):
            self.pull(rebase=rebase)
            self.library.check(fix=True)
            self.commit("finish the merge")
            if "rejected" not in git(self.root, "push", "-q", "origin", "HEAD:main", fails=True):
                return
        raise AssertionError("the push was rejected again and again")

    def commit(self, message: str) -> None:
        """Commit whatever has changed."""
        git(self.root, "add", "-A")
        if git(self.root, "status", "--porcelain"):
            git(self.root, "commit", "-qm", message)

    def pull(self, *, rebase: bool = False) -> None:
        """Take in what others have pushed; a conflict fails."""
        git(self.root, "pull", "-q", "--rebase" if rebase else "--no-rebase", "--no-edit", "origin", "main")
        refuse_under_way(self.root)

    def files(self) -> dict[str, bytes]:
        """Memory as it lies there."""
        return {path: (self.root / path).read_bytes() for path in list_files(self.root)}

    def shown(self) -> dict[int, tuple[str, str]]:
        """Each visible seq with its topic and words."""
        found = {}
        for path in list_files(self.root):
            if path.startswith("topics/"):
                for entry in read_file(self.root, path).document.entries:
                    found.update((seq, (entry.topic, entry.text)) for seq in entry.seqs)
        return found

    def change_words(self, seq: int, text: str) -> None:
        """Edit an entry by hand."""
        topic, _ = self.shown()[seq]
        file = read_file(self.root, path_of(topic))
        entry = next(entry for entry in file.document.entries if seq in entry.seqs)
        edited = edit(file.document, [(entry.span, entry_lines(entry.signature, text))])
        (self.root / file.path).write_bytes(render(edited))

    def delete(self, seq: int) -> None:
        """Delete an entry's line by hand."""
        topic, _ = self.shown()[seq]
        file = read_file(self.root, path_of(topic))
        entry = next(entry for entry in file.document.entries if seq in entry.seqs)
        (self.root / file.path).write_bytes(render(edit(file.document, [(entry.span, ())])))


def make_clones(folder: Path, names: list[str], *, drivers: bool = True) -> list[Clone]:
    """A bare repository and clones of it; without `drivers`, clones that know of no merge by entry."""
    origin = folder / "origin.git"
    git(folder, "init", "-q", "--bare", "-b", "main", str(origin))
    clones = []
    for name in names:
        root = folder / name
        git(folder, "clone", "-q", str(origin), str(root))
        if not clones:
            Library.open(root, create=True)
            (root / "infinimem.yaml").write_text(SETTINGS)
            (root / ".gitattributes").write_text(ATTRIBUTES)
            git(root, "checkout", "-q", "-b", "main", fails=True)
            git(root, "add", "-A")
            git(root, "commit", "-qm", "a library")
            git(root, "push", "-q", "origin", "HEAD:main")
        if drivers:
            git(root, "config", "merge.infinimem.driver", DRIVER)
            (root / ".git" / "info").mkdir(exist_ok=True)
            (root / ".git" / "info" / "attributes").write_text(LOCAL)
        clones.append(Clone(root))
    return clones


def words_in(text: str) -> set[str]:
    """The unique words by which entries are followed, whatever their seqs become."""
    return set(re.findall(r"\bzq[0-9a-z]+z\b", text))


def assert_kept(clone: Clone, written: set[str]) -> None:
    """Every word ever written is shown once, or retired; and in evidence if it has left CURRENT; all refers rightly."""
    current = (clone.root / "CURRENT.md").read_text() if (clone.root / "CURRENT.md").exists() else ""
    waiting = words_in(current)
    shown: list[str] = []
    for path in list_files(clone.root):
        if path.startswith("topics/"):
            for entry in read_file(clone.root, path).document.entries:
                shown += sorted(words_in(entry.text))
    records = all_records(clone.root)
    evident: set[str] = set()
    gone: set[str] = set()
    for record in records.values():
        for _, entry in record.entries:
            evident |= words_in(entry.text)
            if retirement(record) is not None:
                gone |= words_in(entry.text)
    doubled = {word for word in shown if shown.count(word) > 1} | (set(shown) & waiting)
    assert not doubled, f"{clone.root.name}: shown twice: {doubled}"
    lost = written - set(shown) - waiting - gone
    assert not lost, f"{clone.root.name}: lost: {lost}"
    assert written - waiting <= evident, f"{clone.root.name}: not in evidence: {written - waiting - evident}"
