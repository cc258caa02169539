"""Text for people: rich draws it where a person looks; a program gets plain lines, and rich is not imported.

What a user wrote is never read as markup: it reaches rich as finished text only.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from infinimem.cli.talk import is_terminal, out
from infinimem.text.lines import counted

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console, RenderableType
    from rich.text import Text

CONTROLS = {
    **{code: 0x2400 + code for code in range(32) if code not in (9, 10)},
    **dict.fromkeys(range(127, 160), 0xFFFD),
}
"""Control characters in a text, shown instead of obeyed: a note must not repaint someone's terminal."""
NO_LINKS = frozenset({"", "dumb", "linux", "eterm", "eterm-color", "vt100", "vt220", "cons25"})
"""Terminals that would print a link's address instead of hiding it."""
READABLE = 100
"""Columns beyond which running text is hard to follow."""
OTHERS = 20
"""Columns that a long id leaves to what stands beside it."""
count = counted
"""What the commands call it."""


def is_forced() -> bool:
    """Whether colour is wanted in a pipe, too."""
    return os.environ.get("FORCE_COLOR", "0") not in ("", "0")


@cache
def console() -> Console:
    """Standard output as rich sees it: width, and colour as TERM, FORCE_COLOR and above all NO_COLOR say.

    It only renders; `out` writes, so that a closed pipe or a full disk ends every command alike.
    """
    from rich.console import Console

    system = None if os.environ.get("NO_COLOR") else "standard" if is_forced() else "auto"
    return Console(
        force_terminal=True,
        color_system=system,  # type: ignore[arg-type]
        markup=False,
        emoji=False,
        highlight=False,
    )


def paint(text: str, style: str) -> str:
    """The text in a style of rich's (`bold cyan`) where standard output shows colour."""
    if not text or not style or not (is_terminal() or is_forced()) or console().color_system is None:
        return text
    return console().get_style(style).render(text)


@cache
def shows_links() -> bool:
    """Whether standard output is a terminal that makes links of OSC 8, and the user wants them."""
    if not is_terminal() or os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") in NO_LINKS:
        return False
    from infinimem.config import load_settings
    from infinimem.errors import InfinimemError

    try:
        return load_settings().text("hyperlinks") != "never"
    except InfinimemError:  # said by the command itself where it matters
        return False


def address(root: Path, path: str, line: int = 0) -> str:
    """The file's address: with the machine's name, as a terminal may be another one's, and the line for who uses it."""
    from urllib.parse import quote_from_bytes

    place = quote_from_bytes(os.fsencode(root / path))
    return f"file://{os.uname().nodename}{place}" + (f"#{line}" if line else "")


def linked(text: str, root: Path, path: str, line: int = 0) -> str:
    """The text as a link to a file of the library, where the terminal has links."""
    if not text or not shows_links():
        return text
    return f"\x1b]8;;{address(root, path, line)}\x1b\\{text}\x1b]8;;\x1b\\"


def place_of(root: Path, path: str, line: int = 0) -> str:
    """`path:line`, in the colour of places and as a link."""
    return linked(paint(shown(f"{path}:{line}" if line else path), "cyan"), root, path, line)


def draw(what: RenderableType) -> None:
    """Print what rich lays out, without the blanks that it fills lines with."""
    here = console()
    with here.capture() as drawn:
        here.print(what)
    for line in drawn.get().removesuffix("\n").split("\n"):
        out(line.rstrip(" "))


def width() -> int:
    """Columns of the terminal."""
    return max(30, console().width)


def shown(text: str) -> str:
    """A user's text as it can be shown: on a terminal no control character is obeyed."""
    return text.translate(CONTROLS) if is_terminal() else text


def on_one_line(text: str) -> str:
    """A text with its line breaks and runs of blanks folded."""
    return " ".join(text.split())


def cut(text: str, room: int) -> str:
    """The text, or as much of it as fits into `room` columns and an ellipsis."""
    from rich.text import Text

    line = Text(text)
    line.truncate(room, overflow="ellipsis")
    return line.plain


def wrap(text: str, room: int) -> Iterator[str]:
    """The text in lines of at most `room` columns; its own line breaks and indents are kept."""
    from rich.text import Text

    for line in text.split("\n"):
        words = line.strip(" ")
        indent = " " * min(len(line) - len(line.lstrip(" ")), room // 2)
        for piece in Text(words).wrap(console(), room - len(indent)):
            yield (indent + piece.plain.strip(" ")).rstrip()


def paragraph(text: str, indent: str = "  ", hang: str = "") -> str:
    """A text under a heading line: wrapped on a terminal, further lines also behind `hang`; else as it is."""
    if not is_terminal():
        return "\n".join(indent + line if line else "" for line in text.split("\n"))
    first, *more = wrap(shown(text), min(width(), READABLE) - len(indent + hang))
    return "\n".join(line.rstrip(" ") for line in (indent + first, *(indent + hang + line for line in more)))


def table(rows: Iterable[Sequence[str | Text]], styles: Sequence[str], *, cutting: bool = False) -> None:
    """Rows on a terminal, with a style for each column; `>` before it sets numbers to the right.

    What does not fit is wrapped; with `cutting`, the last column is cut to one line and the others stay whole.
    """
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2, 0, 0))
    for at, style in enumerate(styles, 1):
        grid.add_column(
            style=style.removeprefix(">"),
            justify="right" if style.startswith(">") else "left",
            # of columns that may be wrapped rich takes the room it lacks, of the others only in need
            no_wrap=cutting and at < len(styles),
            overflow="ellipsis" if cutting else "fold",
            max_width=width() - OTHERS if cutting and at == 1 else None,
        )
    for row in rows:
        cells = [Text(shown(cell)) if isinstance(cell, str) else cell for cell in row]
        if cutting:
            cells[-1].no_wrap, cells[-1].overflow = True, "ellipsis"
        grid.add_row(*cells)
    if grid.rows:
        draw(grid)


def duration(seconds: float) -> str:
    """`0.3 s`, `42 s`, `12 min`, `3 h`, `5 days`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    from infinimem.consolidate.due import readable_age

    return readable_age(seconds)


def noted(observed: str) -> str:
    """When something was written down, where nobody said when it happened; "" for unknown."""
    return f"noted {observed[:10]}" if observed else ""


def date_notes(text: str, at: str) -> str:
    """` (yesterday = 2026-05-06)`: what a text's words for time mean, seen from when it was said; "" for none."""
    pairs = date_pairs(text, at)
    return f" ({'; '.join(f'{words} = {meaning}' for words, meaning in pairs)})" if pairs else ""


def date_values(text: str, at: str) -> list[dict[str, str]]:
    """The same as JSON has it."""
    return [{"words": words, "means": meaning} for words, meaning in date_pairs(text, at)]


def date_pairs(text: str, at: str) -> list[tuple[str, str]]:
    """What a text's words for time mean; nothing where the day on which they were said is not known."""
    if len(at) < len("2026-05-01"):
        return []
    from infinimem.text.when import dates_shown

    return dates_shown(text, at)
