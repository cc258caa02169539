"""Curves as an SVG, from the JSON files that the benchmarks here write: no dependency, readable in light and dark.

    python benchmarks/plot.py RUN.json [MORE.json …] --x entries --y seconds --by tool --log xy --out speed.svg
    python benchmarks/plot.py recall.json --at curves --where unit=turn --x k --y recall --by ranking --out recall.svg

A file's `results` is a list of rows, or `--at KEY[.KEY]` says where in it the list stands; a row is a JSON object.
`--by KEY[,KEY]` names what tells the lines apart, `--where KEY=VALUE` (repeatable) which rows count, `--log x`, `y` or
`xy` which axes are logarithmic, `--title`, `--x-label` and `--y-label` what is written there. With several files whose
rows look alike, `--by file` tells them apart. Rows without a number for x or y are left out.

In Python: `svg([Series("search", ((1e2, 0.18), (1e6, 0.31)))], title="…", x="entries", y="seconds", log="xy")`.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

WIDTH, HEIGHT = 760, 440
LEFT, TOP, RIGHT, BOTTOM = 64, 44, 210, 52
COLOURS = ("#3b7dd8", "#d9730d", "#2f9e62", "#c2457a", "#8a63d2", "#a8801a", "#1597a5", "#d14343", "#7a7f87")
DASHES = ("", "7 3", "2 3", "9 3 2 3")
STYLE = """
svg { background: #fff; font: 13px system-ui, sans-serif; }
text { fill: #24292f; } .quiet { fill: #59636e; } .title { font-size: 15px; font-weight: 600; }
.grid { stroke: #d8dee4; } .axis { stroke: #8c959f; }
@media (prefers-color-scheme: dark) {
  svg { background: #0d1117; }
  text { fill: #e6edf3; } .quiet { fill: #9198a1; }
  .grid { stroke: #2a313a; } .axis { stroke: #6e7681; }
}
"""


@dataclass(frozen=True)
class Series:
    """A line: its name and its points, in order of x."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Axis:
    """From values to a length between 0 and 1, and where its ticks are."""

    low: float
    high: float
    log: bool
    ticks: tuple[float, ...]

    def place(self, value: float) -> float:
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", help="JSON files of benchmarks")
    parser.add_argument("--at", default="", help="where in `results` the rows stand")
    parser.add_argument("--x", required=True)
    parser.add_argument("--y", required=True)
    parser.add_argument("--by", default="", help="keys that tell the lines apart, by comma; file = the file's name")
    parser.add_argument("--where", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--log", choices=("", "x", "y", "xy"), default="")
    parser.add_argument("--title", default="")
    parser.add_argument("--x-label")
    parser.add_argument("--y-label")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    wanted = dict(condition.split("=", 1) for condition in given.where)
    rows = [
        row
        for path in given.runs
        for row in rows_of(path, given.at)
        if all(str(row.get(key, "")) == value for key, value in wanted.items())
    ]
    lines = series_of(rows, given.x, given.y, [key for key in given.by.split(",") if key])
    if not lines:
        parser.error(f"no row has a number for both {given.x} and {given.y}")
    given.out.write_text(
        svg(lines, title=given.title, x=given.x_label or given.x, y=given.y_label or given.y, log=given.log),
        encoding="utf-8",
    )


def rows_of(path: Path, at: str) -> list[dict[str, Any]]:
    """The rows of a run, each with the name of its file."""
    found = json.loads(path.read_text(encoding="utf-8"))["results"]
    for key in filter(None, at.split(".")):
        found = found[key]
    return [{"file": path.stem, **row} for row in found]


def series_of(rows: Iterable[dict[str, Any]], x: str, y: str, by: Sequence[str]) -> list[Series]:
    """A line for each combination of values of `by`, in the order in which they come up."""
    found: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if _is_number(row.get(x)) and _is_number(row.get(y)):
            name = ", ".join(str(row.get(key, "")) for key in by) or y
            found.setdefault(name, []).append((float(row[x]), float(row[y])))
    return [Series(name, tuple(sorted(points))) for name, points in found.items()]


def svg(lines: Sequence[Series], *, title: str = "", x: str = "", y: str = "", log: str = "") -> str:
    """The plot; ValueError where a logarithmic axis meets a number that is not positive."""
    points = [point for line in lines for point in line.points]
    across = axis_of([point[0] for point in points], "x" in log)
    up = axis_of([point[1] for point in points], "y" in log)

    def left(value: float) -> float:
        return LEFT + across.place(value) * (WIDTH - LEFT - RIGHT)

    def top(value: float) -> float:
        return HEIGHT - BOTTOM - up.place(value) * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
        f' aria-label="{escape(title or f"{y} by {x}")}">',
        f"<style>{STYLE}</style>",
        f'<text class="title" x="{LEFT}" y="24">{escape(title)}</text>',
        *_grid(across, up, left, top),
        f'<text class="quiet" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}"'
        f' text-anchor="middle">{escape(x)}</text>',
        f'<text class="quiet" transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)"'
        f' text-anchor="middle">{escape(y)}</text>',
    ]
    names = _apart([top(line.points[-1][1]) for line in lines], 17)
    for number, (line, height) in enumerate(zip(lines, names, strict=True)):
        parts += _line(line, COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % 4], left, top, height)
    return "\n".join([*parts, "</svg>", ""])


def axis_of(values: Sequence[float], log: bool) -> Axis:
    """An axis that holds all values, with ticks at round numbers."""
    low, high = min(values), max(values)
    if log:
        if low <= 0:
            raise ValueError(f"{low} has no place on a logarithmic axis")
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        tens = [10.0**power for power in range(first, max(last, first + 1) + 1)]
        inside = tuple(ten for ten in tens if low / 1.5 <= ten <= high * 1.5)
        if len(inside) < 2:  # hardly a decade: its round parts too
            inside = tuple(ten * part for ten in tens for part in (1, 2, 5) if low / 1.5 <= ten * part <= high * 1.5)
        return Axis(min(low, *inside) / 1.15, max(high, *inside) * 1.15, True, inside)
    room = (high - low or abs(high) or 1.0) * 0.05
    start = 0.0 if 0 <= low < high / 3 else low - room
    step = _round_step((high + room - start) / 6)
    ticks = tuple(step * count for count in range(math.ceil(start / step), math.floor((high + room) / step) + 1))
    return Axis(start, high + room, False, ticks)


def _round_step(rough: float) -> float:
    """1, 2 or 5 times a power of ten, at least `rough`."""
    ten = 10.0 ** math.floor(math.log10(rough))
    return next((ten * part for part in (1, 2, 5) if ten * part >= rough), ten * 10)


def _grid(across: Axis, up: Axis, left: Callable[[float], float], top: Callable[[float], float]) -> Iterable[str]:
    for tick in up.ticks:
        at = f"{top(tick):.1f}"
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at}" y2="{at}"/>'
        yield f'<text class="quiet" x="{LEFT - 8}" y="{at}" dy="4" text-anchor="end">{_figure(tick)}</text>'
    for tick in across.ticks:
        at = f"{left(tick):.1f}"
        yield f'<line class="grid" x1="{at}" x2="{at}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
        yield f'<text class="quiet" x="{at}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{_figure(tick)}</text>'
    yield f'<path class="axis" fill="none" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>'


def _line(
    line: Series,
    colour: str,
    dash: str,
    left: Callable[[float], float],
    top: Callable[[float], float],
    name_at: float,
) -> Iterable[str]:
    """A line with its points, and its name at its right end, moved to where there is room."""
    places = [(left(x), top(y)) for x, y in line.points]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    yield f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>'
    for (x, y), (own_x, own_y) in zip(places, line.points, strict=True):
        told = escape(f"{line.name}: {_figure(own_x)}, {_figure(own_y)}")
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"><title>{told}</title></circle>'
    end, height = places[-1]
    edge = WIDTH - RIGHT + 14
    yield (
        f'<path d="M{end:.1f} {height:.1f}L{edge} {name_at:.1f}h8" fill="none" stroke="{colour}"'
        f' stroke-width="1" stroke-opacity="0.6"/>'
    )
    yield f'<text x="{edge + 12}" y="{name_at:.1f}" dy="4" style="fill:{colour}">{escape(line.name)}</text>'


def _apart(heights: Sequence[float], gap: float) -> list[float]:
    """Heights moved as little as keeps each `gap` from the next, inside the plot where they fit."""
    order = sorted(range(len(heights)), key=heights.__getitem__)
    found = [0.0] * len(heights)
    below = TOP - gap
    for at in order:
        below = found[at] = max(heights[at], below + gap)
    above = HEIGHT - BOTTOM + gap
    for at in reversed(order):
        above = found[at] = min(found[at], above - gap)
    return found


def _figure(value: float) -> str:
    """A number as a person writes it: 1,000, 0.02."""
    if abs(value) >= 10_000_000:
        return f"{value:.0e}".replace("e+0", "e").replace("e+", "e")
    return f"{round(value, 6):,.10g}" if abs(value) < 100 else f"{value:,.0f}"


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


if __name__ == "__main__":
    main()
