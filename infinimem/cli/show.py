"""Text for people: colour, columns and wrapping where a terminal is there, plain text where not."""

from __future__ import annotations

import os
from collections.abc import Sequence

from infinimem.cli.talk import is_terminal, out

CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
CONTROLS = {
    **{code: 0x2400 + code for code in range(32) if code not in (9, 10)},
    **dict.fromkeys(range(127, 160), 0xFFFD),
}
"""Control characters in a text, shown instead of obeyed: a note must not repaint someone's terminal."""


def has_colour() -> bool:
    """NO_COLOR, then FORCE_COLOR, then whether standard output is a terminal that can."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") != "0":
        return True
    return is_terminal() and os.environ.get("TERM", "") != "dumb"


def paint(text: str, *names: str) -> str:
    """The text in colour where standard output shows colour."""
    if not text or not names or not has_colour():
        return text
    return f"\x1b[{';'.join(CODES[name] for name in names)}m{text}\x1b[0m"


def width() -> int:
    """Columns of the terminal, within reason."""
    from shutil import get_terminal_size

    return max(30, min(get_terminal_size((80, 24)).columns, 200))


def shown(text: str) -> str:
    """A user's text as it can be shown: on a terminal no control character is obeyed."""
    return text.translate(CONTROLS) if is_terminal() else text


def on_one_line(text: str) -> str:
    """A text with its line breaks and runs of blanks folded."""
    return " ".join(text.split())


def cells(text: str) -> int:
    """Columns that a text takes: two for a wide character, none for a combining one."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def cut(text: str, room: int) -> str:
    """The text, or as much of it as fits into `room` columns and an ellipsis."""
    if cells(text) <= room:
        return text
    kept = ""
    taken = 0
    for char in text:
        taken += cells(char)
        if taken > room - 1:
            break
        kept += char
    return kept.rstrip() + "…"


def pad(text: str, room: int) -> str:
    """The text with blanks up to `room` columns."""
    return text + " " * max(0, room - cells(text))


def wrap(text: str, room: int) -> list[str]:
    """The text in lines of at most `room` columns; its own line breaks and indents are kept."""
    lines: list[str] = []
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip(" "))]
        pieces = [""]
        for word in line.split(" "):
            joined = f"{pieces[-1]} {word}" if pieces[-1].strip() else pieces[-1] + (word or " ")
            if cells(joined) <= room:
                pieces[-1] = joined
                continue
            if pieces[-1].strip():
                pieces.append(indent)
            for char in word:
                if cells(pieces[-1] + char) > room and pieces[-1].strip():
                    pieces.append(indent)
                pieces[-1] += char
        lines += [piece.rstrip() for piece in pieces]
    return lines


def paragraph(text: str, indent: str = "  ") -> str:
    """A user's text under a heading line: wrapped on a terminal, as it is otherwise."""
    if not is_terminal():
        return "\n".join(indent + line if line else "" for line in text.split("\n"))
    return "\n".join(indent + line if line else "" for line in wrap(shown(text), width() - len(indent)))


def table(rows: Sequence[tuple[str, ...]], styles: Sequence[tuple[str, ...]] = ()) -> None:
    """Rows in aligned columns; the last column takes what room a terminal leaves."""
    if not rows:
        return
    widths = [min(40, max(cells(row[at]) for row in rows)) for at in range(len(rows[0]) - 1)]
    room = width() - sum(widths) - 2 * len(widths)
    for row in rows:
        last = shown(row[-1])
        last = cut(last, max(10, room)) if is_terminal() else last
        texts = [*(pad(shown(text), wide) for text, wide in zip(row, widths, strict=False)), last]
        painted = [paint(text, *names) for text, names in zip(texts, (*styles, *[()] * len(texts)), strict=False)]
        out("  ".join(painted).rstrip())


def count(number: int, one: str, many: str = "") -> str:
    """`1 entry`, `12,345 entries`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def duration(seconds: float) -> str:
    """`0.3 s`, `42 s`, `12 min`, `3 h`, `5 days`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    for size, name in ((86400, "day"), (3600, "h"), (60, "min")):
        if seconds >= size:
            number = int(seconds // size)
            return f"{number} {name}{'s' if name == 'day' and number > 1 else ''}"
    return f"{int(seconds)} s"
