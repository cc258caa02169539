"""What the command line says: data on standard output, talk on standard error. Kept small: `write` loads it."""

from __future__ import annotations

import os
import sys
from typing import Any, TextIO

def set_streams() -> None:
    """Data that is not for a terminal is UTF-8 whatever the locale, and bytes that are none pass through."""
    for stream in (sys.stdout, sys.stderr):
        change = getattr(stream, "reconfigure", None)
        if change is None:
            continue
        if is_terminal(stream):
            change(errors="replace")
        else:
            change(encoding="utf-8", errors="surrogateescape")


def is_terminal(stream: Any = None) -> bool:
    """Whether a person is looking at standard output (or another stream)."""
    stream = sys.stdout if stream is None else stream
    return bool(stream is not None and hasattr(stream, "isatty") and not stream.closed and stream.isatty())


# Saying


def out(text: str = "", end: str = "\n") -> None:
    """One piece of data. To a closed pipe it goes nowhere, quietly."""
    write_to(sys.stdout, text + end)


def say(text: str) -> None:
    """One line of talk."""
    if sys.stdout is not None and is_terminal(sys.stderr) and is_terminal():
        flush(sys.stdout)
    write_to(sys.stderr, text + "\n")


def emit(value: Any) -> None:
    """A value as JSON: indented for a person, one line for a program."""
    import json

    text = json.dumps(value, ensure_ascii=False, indent=2 if is_terminal() else None)
    # a byte that is no UTF-8 stays recognisable and the JSON valid
    out(text.encode("utf-8", "backslashreplace").decode("utf-8"))


def write_to(stream: TextIO | None, text: str) -> None:
    """Write, unless the reader has gone."""
    if stream is None:
        return
    try:
        stream.write(text)
    except BrokenPipeError:
        close_quietly()


def flush(stream: TextIO) -> None:
    """Have it shown now, unless the reader has gone."""
    try:
        stream.flush()
    except BrokenPipeError:
        close_quietly()


def close_quietly() -> None:
    """Let nothing more be written to a pipe without a reader, not even at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            try:
                os.dup2(nowhere, stream.fileno())
            except (OSError, ValueError, AttributeError):
                continue
    os.close(nowhere)


def finish(code: int) -> int:
    """Hand over what is still buffered; a full disk behind `> file` is said, not swallowed."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        close_quietly()
    except OSError as error:
        say(f"infinimem: standard output cannot be written: {error.strerror}; the library is as it should be")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code or 3
    return code
