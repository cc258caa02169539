"""`init --git`: the library's attributes, and the merge driver in this clone's own configuration."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from infinimem.errors import BadInput, StorageFailed
from infinimem.git.registered import SAID
from infinimem.git.run import must_git, run_git, work_tree
from infinimem.store.files import PRIVATE_FILE, read_bytes, write_private
from infinimem.store.layout import ATTRIBUTES, BUFFER, EVIDENCE, SETTINGS, TOPICS

# -text: no conversion of line endings, whatever core.autocrlf says, so that a file is everywhere the bytes
# that were committed. merge=union is what a clone without the driver falls back to: it keeps both sides' lines.
# For topics it would double the keys of front matter, so there the fall-back is git's ordinary text merge.
LINES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (BUFFER, ("-text", "merge=union")),
    (f"{EVIDENCE}/*.md", ("-text", "merge=union")),
    (f"{TOPICS}/**/*.md", ("-text", "merge=infinimem")),
    (SETTINGS, ("-text",)),
)
BY_LINE = (BUFFER, f"{EVIDENCE}/*.md")
"""What git merges by line unless this clone's own attributes, which outrank the library's, name the driver."""
NAME = "infinimem: by entry"
OTHERWISE = "case $? in 1) exit 1;; *) git merge-file -L ours -L base -L theirs %A %O %B;; esac"
"""1: the driver left conflict markers. Anything else: it is gone, too old, or failed, and our side is as it was."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What `init --git` found and made; `done` in words, empty when everything was there already.

    `waiting` says that some of memory is in no commit yet.
    """

    tree: Path
    done: tuple[str, ...]
    waiting: bool = False


def set_up(root: Path) -> Setup:
    """Have git keep and merge a library by entry. Harmless when repeated; touches only this repository."""
    done = []
    tree = work_tree(root)
    if tree is None or is_ignored(tree, root):
        must_git(root, "init", "--quiet")
        tree = root
        done.append(f"made a git repository in {root}")
    if add_lines(root / ATTRIBUTES, lacking(root / ATTRIBUTES, LINES)):
        done.append(f"{ATTRIBUTES} says how memory is merged")
    if register(tree):
        done.append("registered the merge driver in this clone")
    own = Path(must_git(tree, "rev-parse", "--git-path", "info/attributes").text)
    prefix = root.resolve().relative_to(tree.resolve()).as_posix()
    lead = "/" if prefix == "." else f"/{escaped(prefix)}/"
    wanted = [(quoted(lead + pattern), ("merge=infinimem",)) for pattern in BY_LINE]
    (tree / own).parent.mkdir(exist_ok=True)
    if add_lines(tree / own, lacking(tree / own, wanted)):
        done.append(f"{BUFFER} and {EVIDENCE}/ are merged by entry in this clone")
    (root / SAID).unlink(missing_ok=True)
    status = run_git(root, "status", "--porcelain", "--", BUFFER, TOPICS, EVIDENCE)
    return Setup(tree, tuple(done), waiting=bool(status.out))


def is_ignored(tree: Path, root: Path) -> bool:
    """Whether the repository around a library leaves it out: then the library gets one of its own."""
    if tree.resolve() == root.resolve():
        return False
    return run_git(root, "check-ignore", "--quiet", "--no-index", SETTINGS).code == 0


def register(tree: Path) -> bool:
    """Name the driver's command in the repository's own configuration; whether that changed anything."""
    wanted = {"merge.infinimem.name": NAME, "merge.infinimem.driver": driver_command()}
    changed = False
    for key, value in wanted.items():
        if run_git(tree, "config", "--local", "--get", key).text != value:
            must_git(tree, "config", "--local", "--replace-all", key, value)
            changed = True
    return changed


def driver_command() -> str:
    """The driver as git's shell runs it. Where the program has gone or failed, the file is merged as text.

    git takes a driver that cannot be started for one that met a conflict, and leaves our side without a mark.
    """
    return f"{program()} merge-driver %O %A %B %P || {OTHERWISE}"


def program() -> str:
    """This infinimem for a shell: its plain name where the path leads to it without an activated environment."""
    own = Path(sys.executable).parent / "infinimem"
    if not own.is_file():
        return f"{quote(sys.executable)} -m infinimem"
    found = shutil.which("infinimem")
    is_activated = sys.prefix != sys.base_prefix and found is not None and Path(found).parent == own.parent
    if found is not None and not is_activated and Path(found).resolve() == own.resolve():
        return "infinimem"
    return quote(str(own))


def switch_commits_on(root: Path) -> str:
    """Have every flush be a commit, in the library's own settings; what stands in the way, or ""."""
    from infinimem.config import load_settings

    settings = load_settings(root)
    origin = settings.origins["git.commit"]
    if settings.truth("git.commit"):
        return ""
    if origin != "default":
        return f"{origin} says git.commit: false; change it there"
    add_lines(root / SETTINGS, ["git.commit: true"])
    return ""


# Attributes


def lacking(place: Path, wanted: Iterable[tuple[str, Sequence[str]]]) -> list[str]:
    """The lines that a file of attributes has to gain: what it says of a pattern itself is left to it."""
    text = (read_bytes(place) or b"").decode("utf-8", "surrogateescape")
    said: dict[str, set[str]] = {}
    for line in text.splitlines():
        pattern, words = split_pattern(line)
        said.setdefault(pattern, set()).update(attribute_of(word) for word in words)
    lines = []
    for pattern, attributes in wanted:
        new = [word for word in attributes if attribute_of(word) not in said.get(split_pattern(pattern)[0], ())]
        lines += [" ".join([pattern, *new])] if new else []
    return lines


def split_pattern(line: str) -> tuple[str, list[str]]:
    """The pattern of a line, as it is written, and its attributes."""
    line = line.strip()
    if line.startswith('"'):
        at = 1
        while at < len(line) and line[at] != '"':
            at += 2 if line[at] == "\\" else 1
        return line[: at + 1], line[at + 1 :].split()
    pattern, *words = line.split() or [""]
    return pattern, words


def attribute_of(word: str) -> str:
    """The name of the attribute that `-text`, `!text` or `merge=union` speaks of."""
    return word.lstrip("-!").partition("=")[0]


def add_lines(place: Path, lines: Sequence[str]) -> bool:
    """Add lines to the end of a file and leave the rest of it byte for byte; whether there were any."""
    if not lines:
        return False
    if place.is_symlink():
        raise BadInput(f"{place} is a symbolic link, which git does not follow; replace it by the file itself")
    old = read_bytes(place) or b""
    ending = b"\r\n" if old.split(b"\n", 1)[0].endswith(b"\r") else b"\n"
    lead = old if not old or old.endswith(b"\n") else old + ending
    new = lead + b"".join(line.encode("utf-8", "surrogateescape") + ending for line in lines)
    beside = place.with_name(f"{place.name}.infinimem.tmp")
    beside.unlink(missing_ok=True)  # a repository may bring a link of that name
    try:
        mode = place.stat().st_mode & 0o7777 if place.exists() else PRIVATE_FILE
        write_private(beside, new)
        beside.chmod(mode)
        beside.replace(place)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise StorageFailed(f"{place} cannot be written: {error.strerror}; the file is as it was") from error
    return True


def escaped(path: str) -> str:
    """A path as a pattern that means only itself."""
    return "".join(f"\\{char}" if char in "*?[\\" else char for char in path)


def quoted(pattern: str) -> str:
    """A pattern as a file of attributes has it: in quotes, as in C, where it has to be."""
    if not any(char in pattern for char in ' \t"\n') and not pattern.startswith(("#", "!")):
        return pattern
    return '"' + "".join({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}.get(char, char) for char in pattern) + '"'
