"""Whether this clone knows the merge driver. Every command asks, so it starts no process and loads next to nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from infinimem.store.layout import ATTRIBUTES, STATE, hide_state, merges_by_entry

SAID = f"{STATE}/driver-said"
AGAIN = 86400.0
"""Seconds after which a clone without the driver is reminded of it again."""
NOT_REGISTERED = "this clone does not merge memory by entry yet; run: infinimem init --git"

SECTION = rb"^[ \t]*\[([^\]\n]*)\]"
PATH = rb'^[ \t]*path[ \t]*=[ \t]*"?([^"\n]*?)"?[ \t\r]*$'
DRIVER = rb"^[ \t]*driver[ \t]*="
DEEPEST = 3
"""How far includes of includes are followed."""


def driver_missing(root: Path) -> bool:
    """Whether the library asks for our merge driver and this clone has none: git does not clone configuration."""
    if not merges_by_entry(root) or is_plainly_registered(root):
        return False
    from infinimem.git.run import git_folder, work_tree

    tree = work_tree(root)
    return tree is not None and not any(registers(place, 0) for place in configurations(git_folder(tree)))


def is_plainly_registered(root: Path) -> bool:
    """Whether the repository's own configuration has the lines that `init --git` writes: most clones' case."""
    for folder in (root, *root.parents):
        try:
            content = (folder / ".git" / "config").read_bytes()
        except OSError:
            continue
        return b'[merge "infinimem"]' in content and b"infinimem merge-driver" in content
    return False


def configurations(folder: Path) -> Iterator[Path]:
    """The configuration files that hold for a work tree, the likeliest first."""
    try:
        shared = (folder / (folder / "commondir").read_text("utf-8").strip()).resolve()
    except (OSError, UnicodeDecodeError):
        shared = folder
    yield shared / "config"
    yield folder / "config.worktree"
    chosen = os.environ.get("GIT_CONFIG_GLOBAL")
    if chosen is not None:
        yield Path(chosen)
        return
    home = Path(expanded("~"))
    yield home / ".gitconfig"
    yield Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git" / "config"


def expanded(path: str) -> str:
    """A path with `~` written out where that can be: unlike pathlib's this never fails."""
    return os.path.expanduser(path)  # noqa: PTH111


def registers(place: Path, depth: int) -> bool:
    """Whether a configuration file, or one that it includes, names the driver's command."""
    import re

    try:
        content = place.read_bytes() if place.is_file() else b""
    except OSError:
        return False
    heads = list(re.finditer(SECTION, content, re.MULTILINE))
    for at, head in enumerate(heads):
        body = content[head.end() : heads[at + 1].start() if at + 1 < len(heads) else len(content)]
        name = b" ".join(head[1].split())
        if (
            name.lower().startswith(b"merge ")
            and name[6:] == b'"infinimem"'
            and re.search(DRIVER, body, re.MULTILINE | re.IGNORECASE)
        ):
            return True
        if name.lower().startswith(b"include") and depth < DEEPEST:
            for path in re.findall(PATH, body, re.MULTILINE | re.IGNORECASE):
                included = place.parent / expanded(os.fsdecode(path))
                if registers(included, depth + 1):
                    return True
    return False


def reminder(root: Path) -> str:
    """What to tell the user of this clone, once a day; "" when there is nothing to say or it was said."""
    if not (root / ATTRIBUTES).exists():
        return ""
    said = root / SAID
    try:
        if time.time() - said.stat().st_mtime < AGAIN:
            return ""
    except OSError:
        pass
    if not driver_missing(root):
        return ""
    try:
        hide_state(root)
        if (
            said.is_symlink() or said.parent.is_symlink()
        ):  # a repository may bring links: nothing is written through one
            return ""
        said.touch(0o600)
    except OSError:
        return ""  # where nothing can be noted it would be said by every command, and nothing can be merged
    from shlex import quote

    return NOT_REGISTERED if is_here(root) else f"{NOT_REGISTERED} {quote(str(root))}"


def is_here(folder: Path) -> bool:
    """Whether a folder is the current one, which may have been removed."""
    try:
        return folder == Path.cwd()
    except OSError:
        return False
