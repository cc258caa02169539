"""Where things are in a library, how one is found, and how one is made."""

from __future__ import annotations

import os
import re
import stat
import sys
from contextlib import suppress
from pathlib import Path

from infinimem.errors import BadInput, NeedsAttention, NoLibrary, StorageFailed
from infinimem.store import files
from infinimem.store.files import make_folder, write_once, write_private

BUFFER = "CURRENT.md"
TOPICS = "topics"
EVIDENCE = "evidence"
SETTINGS = "infinimem.yaml"
STATE = files.STATE
ATTRIBUTES = ".gitattributes"

LOCK = f"{STATE}/lock"
FLUSH_LOCK = f"{STATE}/flush.lock"
EDIT_LOCK = f"{STATE}/edit.lock"
WATCH_LOCK = f"{STATE}/watch.lock"
LOG = f"{STATE}/written.log"
LOOKED = f"{STATE}/looked"
"""When topics were last looked through for plain bullets, as the change time of the newest."""
COMMIT = f"{STATE}/commit"
MANIFEST = f"{STATE}/commit.json"
UNDO = f"{STATE}/undo"
KEPT = f"{STATE}/kept"
INDEX = f"{STATE}/index"
VIEWS = f"{STATE}/views"

MARKER = "format: 1\n"
BUFFER_HEAD = b"# CURRENT\n\n"
IGNORE_ALL = b"*\n"
FORMAT = re.compile(r"^\ufeff?format:[ \t]*(\S+)", re.MULTILINE)


def is_library(folder: Path) -> bool:
    """Whether the folder's `infinimem.yaml` says `format: 1`. A later format is refused by name."""
    try:
        text = (folder / SETTINGS).read_text("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise StorageFailed(f"{folder / SETTINGS} cannot be read: {error.strerror}; check its permissions") from error
    match = FORMAT.search(text)
    if match is None:
        return False
    if match[1].strip("'\"") != "1":
        raise BadInput(f"{folder / SETTINGS}: format {match[1]} is not known to this version; upgrade infinimem")
    return True


def default_folder() -> Path:
    """The user's own library: the platform's data folder, below `infinimem/memory`."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "infinimem" / "memory"
    base = os.environ.get("XDG_DATA_HOME", "")
    root = Path(base) if base.startswith("/") else Path.home() / ".local" / "share"
    return root / "infinimem" / "memory"


def find_library(named: str | None = None, *, create: bool = False) -> tuple[Path, str]:
    """The library to use and where its name came from: option, environment, folder, default.

    Raises `NoLibrary` where there is none; with `create`, the default (or the named folder) is returned
    all the same, to be made by the caller.
    """
    for name, origin in ((named, "--library"), (os.environ.get("INFINIMEM_LIBRARY"), "$INFINIMEM_LIBRARY")):
        if name:
            folder = Path(name).expanduser().absolute()
            if not create and not is_library(folder):
                raise NoLibrary(f"{folder} ({origin}) is not a library; make it one with: infinimem init '{folder}'")
            return folder, origin
    here = Path.cwd()
    for folder in (here, *here.parents):
        if is_library(folder):
            return folder, "current folder"
    folder = default_folder()
    if create or is_library(folder):
        return folder, "default"
    raise NoLibrary(f"no library in {here} or above, and none at {folder}; make one with: infinimem init")


def create_library(root: Path) -> bool:
    """Make what is missing of a library, private to the user; harmless on an existing one.

    Returns whether anything that marks a library was made. Safe when several processes do it at once.
    """
    try:
        made = not is_library(root)
        if made:
            refuse_inside(root)
        for folder in (root, root / TOPICS, root / EVIDENCE, root / STATE):
            make_folder(folder)
        if made:
            write_once(root / SETTINGS, MARKER.encode())
            if not is_library(root):  # a file that was there before, not one that another process has just made
                mark_settings(root / SETTINGS)
        write_once(root / STATE / ".gitignore", IGNORE_ALL)
    except OSError as error:
        raise StorageFailed(f"cannot make a library in {root}: {error.strerror}; choose another folder") from error
    return made


def refuse_inside(root: Path) -> None:
    """Stop at a folder that holds another library's own files: one within its topics would be read as part of it."""
    for folder in root.parents:
        if is_library(folder) and root.relative_to(folder).parts[0] in (TOPICS, EVIDENCE, STATE):
            raise BadInput(f"{root} is among the files of the library {folder}; make one in a folder of its own")


def hide_state(root: Path) -> None:
    """Have git ignore our derived files in a library that came as a clone: what is ignored is not cloned either."""
    folder = root / STATE
    if (folder / ".gitignore").exists() or folder.is_symlink():
        return
    with suppress(OSError):  # a library that can only be read has nothing to hide
        make_folder(folder)
        write_once(folder / ".gitignore", IGNORE_ALL)


def mark_settings(settings: Path) -> None:
    """Add `format: 1` to settings that lack it, if they then still read as settings."""
    import yaml

    from infinimem.text.header import load_yaml

    old = settings.read_bytes()
    new = old + (b"" if old.endswith(b"\n") or not old else b"\n") + MARKER.encode()
    try:
        content = load_yaml(new.decode("utf-8-sig"))
    except (yaml.YAMLError, UnicodeDecodeError):
        content = None
    if not isinstance(content, dict) or content.get("format") != 1:
        raise BadInput(f"{settings} is no settings file of a library; add `format: 1` to it, or choose another folder")
    write_private(settings, new)


def merges_by_entry(root: Path) -> bool:
    """Whether git was told to merge this library by entry (`infinimem init --git`)."""
    try:
        return b"merge=infinimem" in (root / ATTRIBUTES).read_bytes()
    except OSError:
        return False


def safe_path(root: Path, path: str) -> Path:
    """The absolute path of a library-relative one; raises `BadInput` if it leads out of the library.

    Neither `..` nor a symbolic link on the way is followed (`NeedsAttention`): nothing outside the library is ever
    written.
    """
    pieces = path.split("/")
    if path.startswith("/") or "\\" in path or "\0" in path or any(piece in ("", ".", "..") for piece in pieces):
        raise BadInput(f"{path!r} is not a path inside the library; use words joined by - and /")
    place = root
    for piece in pieces:
        place = place / piece
        try:
            mode = place.lstat().st_mode
        except FileNotFoundError:
            continue
        except OSError as error:
            raise BadInput(f"{path!r} cannot be used as a name: {error.strerror}") from error
        if stat.S_ISLNK(mode):
            link = place.relative_to(root)
            raise NeedsAttention(
                f"{path}: {link} is a symbolic link, through which nothing is written; move the real one here"
            )
    return place


def evidence_names(root: Path) -> list[str]:
    """The names of the evidence files, oldest month first."""
    try:
        return sorted(name for name in os.listdir(f"{root}/{EVIDENCE}") if name.endswith(".md"))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise StorageFailed(f"{root / EVIDENCE} cannot be read: {error.strerror}; check its permissions") from error
