"""Whether this clone knows the merge driver. Every command asks it, so it starts no process and reads little."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

from infinimem.git.run import git_folder, work_tree
from infinimem.store.layout import STATE, hide_state

ATTRIBUTES = ".gitattributes"
OURS = b"merge=infinimem"
SAID = f"{STATE}/driver-said"
AGAIN = 86400.0
"""Seconds after which a clone without the driver is reminded of it again."""
NOT_REGISTERED = "this clone does not merge memory by entry yet; run: infinimem init --git"

SECTION = re.compile(rb"^[ \t]*\[([^\]\n]*)\]", re.MULTILINE)
PATH = re.compile(rb'^[ \t]*path[ \t]*=[ \t]*"?([^"\n]*?)"?[ \t\r]*$', re.MULTILINE | re.IGNORECASE)
DRIVER = re.compile(rb"^[ \t]*driver[ \t]*=", re.MULTILINE | re.IGNORECASE)
DEEPEST = 3
"""How far includes of includes are followed."""


def driver_missing(root: Path) -> bool:
    """Whether the library asks for our merge driver and this clone has none: git does not clone configuration."""
    try:
        wanted = OURS in (root / ATTRIBUTES).read_bytes()
    except OSError:
        return False
    tree = work_tree(root) if wanted else None
    if tree is None:
        return False
    return not any(registers(place, 0) for place in configurations(git_folder(tree)))


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
    try:
        content = place.read_bytes() if place.is_file() else b""
    except OSError:
        return False
    heads = list(SECTION.finditer(content))
    for at, head in enumerate(heads):
        body = content[head.end() : heads[at + 1].start() if at + 1 < len(heads) else len(content)]
        name = b" ".join(head[1].split())
        if name.lower().startswith(b"merge ") and name[6:] == b'"infinimem"' and DRIVER.search(body):
            return True
        if name.lower().startswith(b"include") and depth < DEEPEST:
            for path in PATH.findall(body):
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
        said.write_bytes(b"")
        os.utime(said)
    except OSError:
        return ""  # where nothing can be noted it would be said by every command, and nothing can be merged
    return NOT_REGISTERED if is_here(root) else f"{NOT_REGISTERED} {quote(str(root))}"


def is_here(folder: Path) -> bool:
    """Whether a folder is the current one, which may have been removed."""
    try:
        return folder == Path.cwd()
    except OSError:
        return False
