"""The note in the lock file: what an append is about to do, or what the files looked like after it.

While an append is under way it says where, so that whoever takes the lock next can cut off a torn one; afterwards it
says what the files looked like, so that the next write need not read them.
"""

from __future__ import annotations

import binascii
import contextlib
import os
from pathlib import Path

from infinimem.store.layout import EVIDENCE, LOG, evidence_names

NOTE_SIZE = 256
"""Bytes of the lock file: a note is half as long."""


def set_note(note: int, text: str) -> None:
    """Replace the lock file's content; the checksum tells a torn note from a whole one.

    Padded to one length, so that nothing of a longer one is left behind and no call is needed to cut it off.
    """
    content = f"{text} {binascii.crc32(text.encode()):08x}".encode() if text else b""
    os.pwrite(note, content.ljust(NOTE_SIZE), 0)


def get_note(note: int) -> str:
    """The lock file's content; "" when there is none, or none that is whole."""
    text, _, checksum = os.pread(note, NOTE_SIZE, 0).decode("utf-8", "replace").rstrip().rpartition(" ")
    return text if text and checksum == f"{binascii.crc32(text.encode()):08x}" else ""


def set_ready(note: int, looks: str, ending: str, following: int) -> None:
    """The note of a library that is at rest. It only saves work: without it the next write looks for itself."""
    mark = "crlf" if ending == "\r\n" else "lf"
    with contextlib.suppress(OSError):
        set_note(note, f"ready {looks} {mark} {following}")


def set_rest(note: int, following: int) -> None:
    """The note after an append that came to nothing: the files must be looked at, but the seqs given are known."""
    set_note(note, f"ready unknown lf {following}")


def read_note(note: int, looks: str) -> tuple[int, str] | None:
    """The next seq and line ending, if things look as they did when the note was left."""
    words = get_note(note).split()
    if not words or words[0] != "ready" or " ".join(words[1:-2]) != looks:
        return None
    return int(words[-1]), "\r\n" if words[-2] == "crlf" else "\n"


def noted_seq(note: int) -> int:
    """The seq that was to come next when the note was left; 1 without a note. Evidence may have been deleted since."""
    words = get_note(note).split()
    return int(words[-1]) if words and words[0] == "ready" else 1


def fingerprint(here: os.stat_result, log: int, evidence: str) -> str:
    """What CURRENT, the log and evidence look like from outside, in one line."""
    return f"{here.st_ino} {here.st_size} {here.st_mtime_ns} {here.st_ctime_ns} {log} {evidence}"


def log_size(root: Path) -> int:
    """Bytes in the log of writes."""
    try:
        return os.stat(f"{root}/{LOG}").st_size  # noqa: PTH116 - paths as objects would double what this costs
    except FileNotFoundError:
        return 0


def evidence_looks(root: Path) -> str:
    """The size of evidence and when it was last written to."""
    newest = total = 0
    for name in evidence_names(root):
        with contextlib.suppress(FileNotFoundError):
            seen = os.stat(f"{root}/{EVIDENCE}/{name}")  # noqa: PTH116
            newest = max(newest, seen.st_mtime_ns)
            total += seen.st_size
    return f"{total} {newest}"
