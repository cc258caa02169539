"""What the command line says: data on standard output, talk on standard error. Kept small: `write` loads it."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any, TextIO

from infinimem.errors import StorageFailed


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
    if sys.stdout is not None:
        with suppress(OSError):  # said when the data itself is handed over
            sys.stdout.flush()
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
    except OSError as error:
        give_up(stream, error)


def flush(stream: TextIO | None) -> None:
    """Have it shown now, unless the reader has gone."""
    if stream is None:
        return
    try:
        stream.flush()
    except OSError as error:
        give_up(stream, error)


def give_up(stream: TextIO, error: OSError) -> None:
    """Write nothing more to a stream that failed. A reader that left is no error, a full disk is."""
    close_quietly()
    if stream is sys.stdout and not isinstance(error, BrokenPipeError):
        raise StorageFailed(
            f"standard output cannot be written: {error.strerror}; the library is as it should be"
        ) from error


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
    """Hand over what is still buffered; gives the exit code."""
    try:
        flush(sys.stdout)
    except StorageFailed as error:
        say(f"infinimem: {error}")
        return code or error.exit_code
    return code
