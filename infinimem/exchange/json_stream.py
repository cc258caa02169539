"""JSON of any size, read piece by piece: arrays and objects are walked through, what lies in them is decoded whole.

The standard library's decoder does the work on a window of the file, so that memory follows the largest piece and not
the file, and what stands behind a broken piece can still be read. A streaming parser such as ijson gives up at the
first fault and knows no NaN, both of which real exports hold.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from typing import IO, Any

WINDOW = 1 << 18
LARGEST_PIECE = 48 << 20
"""Characters of one piece: with its copy and its value this is what 300 MB of memory hold."""
LONG_NUMBER = "a number of thousands of digits"
"""The one thing that Python's decoder refuses although it is JSON."""
SPACE = re.compile(r"[ \t\r\n]*")
DECODER = json.JSONDecoder(strict=False)
CUT_OFF = 16
"""A fault so near the end of the window may only be its edge (`-Infinit`, `\\ud83d\\ude0`)."""
OVERLAP = 4096
"""Characters that the beginning of an element may have, its title among them."""
SCALAR = r'(?:null|true|false|[-+.0-9eE]+|"(?:[^"\\]|\\.)*")'
BEGINNING = re.compile(rf'{{\s*"((?:[^"\\])*)"\s*:(?:\s*{SCALAR}\s*,\s*"([^"\\]*)"\s*:)?')


class Broken(Exception):
    """This is no JSON from here on; `byte` is about where, counted from 0."""

    def __init__(self, why: str, byte: int) -> None:
        super().__init__(f"{why.removesuffix(' at')} at byte {byte:,}")
        self.byte = byte


class JsonStream:
    """One JSON text. `elements` and `members` walk through an array or object, `value` decodes what comes next."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._text = ""
        self._at = 0
        self._passed = 0
        self._over = False
        self._fault: Broken | None = None
        self._more(WINDOW)
        if self._text.startswith("\ufeff"):
            self._at = 1

    @property
    def byte(self) -> int:
        """How many bytes have been read past."""
        return self._passed + len(self._text[: self._at].encode("utf-8", "surrogateescape"))

    def peek(self) -> str:
        """The character that comes next, white space passed over; "" at the end."""
        while True:
            match = SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more(WINDOW):
                return ""

    def value(self) -> Any:
        """What comes next, whole. Raises `Broken`; then nothing has been passed."""
        self.peek()
        while True:
            try:
                value, end = DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                near = error.pos >= len(self._text) - CUT_OFF or error.msg.startswith("Unterminated string")
                if near and self._longer():
                    continue
                raise Broken(error.msg.lower(), self._byte_of(error.pos)) from error
            except RecursionError as error:
                raise Broken("nested too deep", self.byte) from error
            except ValueError as error:
                raise Broken(LONG_NUMBER, self.byte) from error
            # `1.` and `1.5e+` at the window's edge read as 1 and 1.5
            if end > len(self._text) - 3 and self._text[end - 1] not in '"]}' and self._longer():
                continue
            self._at = end
            return value

    def elements(self, on_fault: Callable[[int, Broken], None] | None = None) -> Iterator[int]:
        """The elements of the array that comes next, by number from 0; each is to be read before the next.

        Raises `Broken`; with `on_fault` that is called instead, and it goes on with the next element that looks like
        the first, which it does too when the reader of an element has called `fail`.
        """
        self._take("[")
        if self._passes("]"):
            return
        alike = self._alike()
        number = 0
        while True:
            self._fault = None
            yield number
            try:
                if self._fault is not None:
                    raise self._fault
                if self._passes("]"):
                    return
                self._take(",")
            except Broken as error:
                if on_fault is None:
                    raise
                on_fault(number, error)
                if self._fault is not None:
                    self._at = min(self._at + 1, len(self._text))
                if alike is None or not self._skip_to(alike):
                    return
            number += 1

    def first_name(self) -> str:
        """The first name in the object that comes next, which is not passed; "" where there is none."""
        self.peek()
        match = BEGINNING.match(self._text, self._at)
        return match[1] if match else ""

    def fail(self, error: Broken) -> None:
        """The element that is being read is broken: `elements` says so and goes on behind it."""
        self._fault = error

    def members(self) -> Iterator[str]:
        """The names in the object that comes next; the value of each is to be read before the next. Raises `Broken`."""
        self._take("{")
        if self._passes("}"):
            return
        while True:
            name = self.value() if self.peek() == '"' else None
            if not isinstance(name, str):
                raise Broken("expecting a name", self.byte)
            self._take(":")
            yield name
            if self._passes("}"):
                return
            self._take(",")

    def _skip_to(self, pattern: re.Pattern[str]) -> bool:
        """Go on to where a pattern next matches; False when it never does."""
        while True:
            match = pattern.search(self._text, self._at)
            if match and (match.end() < len(self._text) or self._over):
                self._at = match.start()
                return True
            self._at = max(self._at, len(self._text) - OVERLAP)
            if not self._more(WINDOW):
                self._at = len(self._text)
                return False

    def _alike(self) -> re.Pattern[str] | None:
        """What the beginning of the element that comes next looks like: its first name or two."""
        self.peek()
        match = BEGINNING.match(self._text, self._at)
        if match is None:
            return None
        first, second = (re.escape(name) if name else "" for name in match.groups())
        return re.compile(rf'{{\s*"{first}"\s*:' + (rf'\s*{SCALAR}\s*,\s*"{second}"\s*:' if second else ""))

    def _take(self, char: str) -> None:
        if self.peek() != char:
            raise Broken(f"expecting {char}" if self.peek() else f"the end where {char} should come", self.byte)
        self._at += 1

    def _passes(self, char: str) -> bool:
        if self.peek() != char:
            return False
        self._at += 1
        return True

    def _byte_of(self, position: int) -> int:
        return self._passed + len(self._text[:position].encode("utf-8", "surrogateescape"))

    def _longer(self) -> bool:
        """Make the window longer for a piece that does not fit; False where there is no more, or it is too large."""
        held = len(self._text) - self._at
        if held > LARGEST_PIECE:
            raise Broken("a piece of more than 48 million characters", self.byte)
        return self._more(max(WINDOW, held))

    def _more(self, size: int) -> bool:
        if self._over:
            return False
        self._passed += len(self._text[: self._at].encode("utf-8", "surrogateescape"))
        content = self._file.read(size)
        self._over = not content
        self._text = self._text[self._at :] + self._decoder.decode(content, final=self._over)
        self._at = 0
        return True
