"""A file as lines: cut at newlines only, terminators kept, every byte recoverable."""

from __future__ import annotations

import re

from infinimem.model import Problem

BOM = "\ufeff"
BLANK = " \t\r\n"
FENCE = re.compile(r"([ \t]*(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)*)(`{3,}(?=[^`]*$)|~{3,})")
MARKER = re.compile(r"[^ \t]")
UNDECODED = re.compile("[\udc80-\udcff]")
MAC_LINES = re.compile(r"^\ufeff?---\r[^\n]|\r(?:[-*+]|#+) [^\r\n]*\r")
CONFLICT = re.compile(r"(?:<<<<<<<|>>>>>>>)(?=[ \r\n]|$)")


def split_lines(content: bytes) -> tuple[str, ...]:
    """The lines of a file, each with its terminator.

    `str.splitlines` also cuts at form feeds and U+2028, which are the user's text. Bytes that are not
    UTF-8 become lone surrogates, so that joining gives the same bytes back.
    """
    text = content.decode("utf-8", "surrogateescape")
    if not text:
        return ()
    pieces = text.split("\n")
    lines = [piece + "\n" for piece in pieces[:-1]]
    if pieces[-1]:
        lines.append(pieces[-1])
    return tuple(lines)


def join_lines(lines: tuple[str, ...]) -> bytes:
    """The bytes that `split_lines` read."""
    return "".join(lines).encode("utf-8", "surrogateescape")


def is_decodable(line: str) -> bool:
    """Whether the line was valid UTF-8."""
    return line.isascii() or UNDECODED.search(line) is None


def undecodable(path: str, lines: tuple[str, ...]) -> tuple[Problem, ...]:
    """One problem for the first line that is not UTF-8."""
    for at, line in enumerate(lines):
        if not is_decodable(line):
            message = "the file is not UTF-8; save it as UTF-8, until then it is left as it is"
            return (Problem(path, at + 1, message, code="encoding"),)
    return ()


def bare_returns(path: str, lines: tuple[str, ...]) -> tuple[Problem, ...]:
    """The problem of a file whose lines end in carriage returns alone, so that it is one line to everybody else."""
    if len(lines) == 1 and MAC_LINES.search(lines[0]):
        message = "its lines end in carriage returns alone; convert it (mac2unix), until then it is left as it is"
        return (Problem(path, 1, message, code="encoding"),)
    return ()


def ending_of(lines: tuple[str, ...]) -> str:
    """The document's line terminator: what its first line ends with, or will once it is no longer the last."""
    return "\r\n" if lines and lines[0].removesuffix("\n").endswith("\r") else "\n"


def strip_ending(line: str, ending: str) -> str:
    """The line without its terminator. In a document of plain newlines a carriage return is text."""
    if ending == "\r\n" and line.endswith("\r\n"):
        return line[:-2]
    return line[:-1] if line.endswith("\n") else line


def is_blank(line: str) -> bool:
    """Whether the line holds nothing but spaces, tabs and its terminator."""
    return not line.strip(BLANK)


def indent_of(line: str) -> str:
    """The spaces and tabs that the line begins with."""
    return line[: len(line) - len(line.lstrip(" \t"))]


def width_of(indent: str) -> int:
    """Columns of an indent, a tab reaching to the next multiple of four."""
    return len(indent.expandtabs(4)) if "\t" in indent else len(indent)


OpenFences = dict[tuple[str, int], tuple[int, int, int]]
"""For a mark and a width: the last fence found open (its length, its line) and the line that the search reached."""


def closing_fence(lines: tuple[str, ...], start: int, known: OpenFences | None = None) -> int:
    """The line that closes the code fence opened at `start`, or -1 when it opens none.

    A fence nobody closes is a line of text: otherwise an entry appended after it would vanish into it.
    It closes at its own indent (one space more or less at the margin), never by a line of some entry's
    text, which is always indented by two or more; a nested fence ends where its list item ends. A fence
    may be the first thing in a list item. One `known` for a whole document keeps many open ones linear.
    """
    opening = FENCE.match(lines[start])
    if opening is None:
        return -1
    width = width_of(MARKER.sub(" ", opening[1]))
    marks = opening[2]
    length, first, reached = (known or {}).get((marks[0], width), (0, 0, 0))
    if first <= start < reached and len(marks) >= length:
        return -1
    for at in range(start + 1, len(lines)):
        line = lines[at]
        stripped = line.strip(BLANK)
        if not stripped:
            continue
        indent = width_of(indent_of(line))
        if width > 1 and indent < width:
            reached = at
            break
        if stripped.startswith(marks) and not stripped.strip(marks[0]) and indent <= max(width, 1):
            return at
    else:
        reached = len(lines)
    if known is not None:
        known[marks[0], width] = (len(marks), start, reached)
    return -1


def cut_at_word(text: str, longest: int) -> str:
    """A text on one line, with … for what is beyond so many characters."""
    words = " ".join(text.split())
    return words if len(words) <= longest else f"{words[:longest].rsplit(' ', 1)[0]} …"


def counted(number: int, one: str, many: str = "") -> str:
    """`1 entry`, `12,345 entries`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
