"""Do one thing to a library and die at the N-th call that changes the file system.

    python die_at.py N MODE OPERATION LIBRARY [TEXT…]

Counts every write, fsync, rename, link, unlink, truncate and mkdir that the process makes below the library,
whichever module makes it, and acts *before* call N: MODE `kill` sends SIGKILL to itself, `half` lets half of a
write through first, `full` and `readonly` make that call and all later ones fail as a full disk or a read-only
file system do. N = 0 only counts. The count is written to the file named by $DIE_COUNT.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

AT = int(sys.argv[1])
MODE = sys.argv[2]
COUNTED = (
    "write",
    "pwrite",
    "fsync",
    "rename",
    "replace",
    "link",
    "unlink",
    "remove",
    "ftruncate",
    "truncate",
    "mkdir",
    "rmdir",
)
# What a full disk refuses; removing and truncating still work there.
NEEDS_ROOM = ("write", "pwrite", "mkdir", "link", "rename", "replace", "fsync")
count = 0


def counted(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        global count
        if name in ("write", "pwrite") and args and isinstance(args[0], int) and args[0] in (1, 2):
            return call(*args, **kwargs)
        count += 1
        if AT and count >= AT:
            if MODE == "full" and name in NEEDS_ROOM:
                raise OSError(errno.ENOSPC, "No space left on device")
            if MODE == "readonly":
                raise OSError(errno.EROFS, "Read-only file system")
            if count == AT and MODE in ("kill", "half"):
                if MODE == "half" and name in ("write", "pwrite"):
                    half = memoryview(args[1])[: len(args[1]) // 2]
                    call(args[0], half, *args[2:])
                os.kill(os.getpid(), signal.SIGKILL)
        return call(*args, **kwargs)

    return wrapper


for each in COUNTED:
    setattr(os, each, counted(each, getattr(os, each)))

from datetime import UTC, datetime  # noqa: E402 - after the calls are counted
from pathlib import Path  # noqa: E402

from infinimem import Library  # noqa: E402
from infinimem.errors import InfinimemError  # noqa: E402

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def operate(operation: str, folder: str, texts: list[str]) -> None:
    library = Library.open(folder, create=operation == "write", clock=lambda: NOW)
    if operation == "write":
        library.write(texts, source="user")
    elif operation == "flush":
        library.flush(planner="lexical")
    elif operation == "undo":
        library.undo()
    elif operation == "fix":
        library.check(fix=True)
    elif operation == "forget":
        library.forget(pattern=texts[0])
    elif operation == "load":
        library.load_export(texts[0])
    elif operation == "search":
        library.search("Nordlys")
    else:
        raise SystemExit(f"no operation {operation}")


code = 0
try:
    operate(sys.argv[3], sys.argv[4], sys.argv[5:])
except InfinimemError as error:
    print(error, file=sys.stderr)
    code = error.exit_code
finally:
    if os.environ.get("DIE_COUNT"):
        total = str(count)
        Path(os.environ["DIE_COUNT"]).write_text(total)
sys.exit(code)
