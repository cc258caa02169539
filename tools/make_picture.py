"""Record the picture of a terminal in the README: real commands in a real terminal, as a moving SVG.

    python tools/make_picture.py [FILE]    # docs/terminal.svg by default; a test runs the commands again

It moves by CSS alone, asks the network for nothing, follows the reader's light or dark, and stands still, with every
line shown, for who wants no motion.
"""

from __future__ import annotations

import argparse
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fcntl import ioctl
from html import escape
from pathlib import Path
from xml.etree import ElementTree

from rich.console import Console
from rich.style import Style
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "terminal.svg"
SAMPLE = ROOT / "sample_library"
BERTH = "330"
"""The entry of the sample library that says which berth Terna has."""
COMMANDS = (
    "infinimem ask 'Which berth does Terna have?' -k 1",
    f"infinimem write 'Terna has berth 7 for the winter.' --source Solveig --time 2026-11-02 --supersedes {BERTH}",
    "infinimem flush",
    "infinimem ask 'Which berth does Terna have?' -k 1",
    "infinimem ask 'Which berth does Terna have?' -k 1 --as-of 2026-06",
    f"infinimem trace {BERTH}",
    "infinimem ask Xylophone?",
)
TOKEN = re.compile(r"(\x1b\[\??([0-9;]*)([A-Za-z]))|([\r\n])|([^\x1b\r\n]+)")
"""What a program sends to a terminal: control sequences, line ends, words."""
COLUMNS, ROWS = 108, 40
ADVANCE, LINE, GAP, MARGIN, BAR = 8.4, 20, 8, 16, 30
PER_WORD, THINKING, PER_LINE, PAUSE = 0.09, 0.3, 0.25, 0.9
"""Seconds: for a word that is typed, until a command answers, to read a line of its answer, before the next."""
COLOURS = {
    "": ("#1f2328", "#e6edf3"), "green": ("#116329", "#7ee787"), "yellow": ("#7d4e00", "#e3b341"),
    "red": ("#a40e26", "#ff7b72"), "cyan": ("#0a5870", "#76e3ea"), "blue": ("#0550ae", "#79c0ff"),
    "magenta": ("#6e3fa3", "#d2a8ff"), "dim": ("#59636e", "#9198a1"), "back": ("#f6f8fa", "#151b23"),
    "edge": ("#d1d9e0", "#3d444d"),
}  # fmt: skip
CONSOLE = Console()
PALETTE = ("", "red", "green", "yellow", "blue", "magenta", "cyan", "")
SVG = "http://www.w3.org/2000/svg"


@dataclass(frozen=True)
class Scene:
    """A command and what it printed, a line each, with its colours as the terminal was sent them."""

    command: str
    lines: tuple[str, ...]


# Record


def record(folder: Path) -> list[Scene]:
    """Run the commands one after another in a terminal of their own, on a copy of the sample library."""
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "TERM": "xterm-256color",
        "LC_ALL": "C.UTF-8",
        "INFINIMEM_LIBRARY": "memory",
        "INFINIMEM_HYPERLINKS": "never",
    }
    shutil.copytree(SAMPLE, folder / "memory", ignore=shutil.ignore_patterns(".infinimem"))
    in_terminal("infinimem flush", folder, environment)
    return [Scene(command, tuple(in_terminal(command, folder, environment))) for command in COMMANDS]


def in_terminal(command: str, folder: Path, environment: dict[str, str]) -> list[str]:
    """The lines that a command shows on a terminal."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    process = subprocess.Popen(
        ["bash", "-c", command], cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown = b"".join(iter(lambda: read_from(ours), b""))
    os.close(ours)
    assert process.wait() in (0, 1), shown.decode()
    return screen(shown.decode())


def screen(written: str) -> list[str]:
    """The lines that stand on a terminal in the end, colours kept: a progress bar that was taken away is gone."""
    rows, at, over = [""], 0, False
    for code, number, letter, end, words in TOKEN.findall(written):
        if letter == "A":
            at = max(at - int(number or 1), 0)
        elif letter == "K":
            rows[at] = ""
        elif end == "\n":
            at += 1
            rows += [""] * (at + 1 - len(rows))
        elif words or letter == "m":
            rows[at] = (words or code) if over else rows[at] + (words or code)
        over = end == "\r"
    return [row for at, row in enumerate(rows) if any(rows[at:])]


def read_from(terminal: int) -> bytes:
    """What comes next; b"" when the other side is gone, which Linux reports as an error."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


# Draw


def picture(scenes: Sequence[Scene]) -> str:
    """The recording as a moving SVG."""
    rows = list(moving_rows(scenes))
    width = COLUMNS * ADVANCE + 2 * MARGIN
    height = BAR + len(rows) * LINE + len(scenes) * GAP + MARGIN
    body = "\n".join(rows)
    return f"""<svg xmlns="{SVG}" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" role="img">
<title>infinimem in a terminal: write, ask, flush, correct, trace</title>
<style>
{style()}
</style>
<rect class="back" x="0.5" y="0.5" width="{width - 1:g}" height="{height - 1:g}" rx="8"/>
{"".join(f'<circle class="edge" cx="{x}" cy="17" r="5"/>' for x in (20, 38, 56))}
{body}
</svg>
"""


def style() -> str:
    """The colours of light and dark, and the one movement."""

    def rules(which: int) -> str:
        named = {name: pair[which] for name, pair in COLOURS.items()}
        text = " ".join(
            f".{name or 'row'}{{fill:{value}}}" for name, value in named.items() if name not in ("back", "edge")
        )
        return f"{text} .back{{fill:{named['back']};stroke:{named['edge']}}} .edge{{fill:{named['edge']}}}"

    return (
        ".row{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre}\n"
        ".bold{font-weight:bold}\n"
        f"{rules(0)}\n@media (prefers-color-scheme:dark){{{rules(1)}}}\n"
        "@media (prefers-reduced-motion:no-preference){"
        ".at{animation:show .01s both}@keyframes show{from{fill-opacity:0}to{fill-opacity:1}}}"
    )


def moving_rows(scenes: Sequence[Scene]) -> Iterator[str]:
    """Every row of the screen, each piece with the moment at which it appears."""
    at, down = 0.4, BAR
    for scene in scenes:
        pieces = [piece_of("$ ", "dim", at)]
        for word in re.findall(r"\s*\S+", scene.command):
            at += PER_WORD
            pieces.append(piece_of(word, "bold", at))
        yield row_of(pieces, down := down + GAP + LINE, f"$ {scene.command}")
        at += THINKING
        for line in scene.lines:
            text = Text.from_ansi(line)
            yield row_of([piece_of(words, name, at) for words, name in spans_of(text)], down := down + LINE, text.plain)
        at += PAUSE + PER_LINE * len(scene.lines)


def row_of(pieces: Sequence[str], down: int, plain: str) -> str:
    """A row of text as wide as its columns, whatever font the reader has."""
    place = f'x="{MARGIN}" y="{down - 5}"'
    length = f' textLength="{len(plain) * ADVANCE:.1f}"' if plain.strip() else ""
    return f'<text class="row" xml:space="preserve" {place}{length}>{"".join(pieces)}</text>'


def piece_of(words: str, name: str, at: float) -> str:
    """Words that appear at a moment."""
    return (
        f'<tspan class="{f"at {name}".strip()}" style="animation-delay:{at:.2f}s">{escape(words, quote=False)}</tspan>'
    )


def spans_of(text: Text) -> Iterator[tuple[str, str]]:
    """The pieces of a line, each with the class of its colour."""
    for start, stop in zip(cuts := edges_of(text), cuts[1:], strict=False):
        yield text.plain[start:stop], name_of(text.get_style_at_offset(CONSOLE, start))


def edges_of(text: Text) -> list[int]:
    """Where the style changes."""
    inner = {edge for span in text.spans for edge in (span.start, span.end)}
    return sorted({0, len(text.plain), *inner})


def name_of(style: Style) -> str:
    """The class for a style of the terminal's palette."""
    number = style.color.number if style.color else None
    names = [PALETTE[number % 8]] if number is not None and PALETTE[number % 8] else []
    return " ".join([*names, *(["bold"] if style.bold else []), *(["dim"] if style.dim and not names else [])])


# Read back


def lines_in(svg: str) -> list[str]:
    """The lines that a picture shows."""
    return ["".join(row.itertext()) for row in ElementTree.fromstring(svg).iter(f"{{{SVG}}}text")]


def plain_lines(scenes: Sequence[Scene]) -> list[str]:
    """The lines of a recording, commands and what they printed."""
    return [
        text for one in scenes for text in (f"$ {one.command}", *(Text.from_ansi(line).plain for line in one.lines))
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", nargs="?", type=Path, default=Path(PICTURE), help=f"where to; {PICTURE} by default")
    target = parser.parse_args().file
    with tempfile.TemporaryDirectory() as place:
        scenes = record(Path(place))
    target.write_text(picture(scenes), "utf-8")
