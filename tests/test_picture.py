"""The picture in the README shows what its commands print today; it moves and asks the network for nothing."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from tests.pages import ROOT
from tools.make_picture import COLUMNS, COMMANDS, PICTURE, Scene, lines_in, picture, plain_lines, record, screen

SVG = PICTURE.read_text("utf-8")
CHANGES = re.compile(r"\d{4}-\d\d-\d\d(?:T[\d:]+Z)?|\([\d.]+ s\)")
"""Dates, and what a command took."""


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> list[Scene]:
    return record(tmp_path_factory.mktemp("recorded"))


def test_the_picture_shows_what_the_commands_print(scenes: list[Scene]) -> None:
    now = plain_lines(scenes)
    shown = [CHANGES.sub("…", line) for line in lines_in(SVG)]
    assert shown == [CHANGES.sub("…", line) for line in now], "run: python tools/make_picture.py"
    assert [line[2:] for line in shown if line.startswith("$ ")] == [CHANGES.sub("…", one) for one in COMMANDS]
    assert max(map(len, now)) <= COLUMNS


def test_the_picture_is_drawn_by_the_script_and_needs_nothing_else(scenes: list[Scene]) -> None:
    drawn, kept = (list(ElementTree.fromstring(svg).iter()) for svg in (picture(scenes), SVG))
    assert [(one.get("class"), one.get("style"), one.get("y")) for one in drawn] == [
        (one.get("class"), one.get("style"), one.get("y")) for one in kept
    ]
    assert not re.search(r"url\(|@import|@font-face|<script|<image|href", SVG)
    assert re.findall(r"https?://[^\"]+", SVG) == ["http://www.w3.org/2000/svg"]
    for query in ("prefers-color-scheme:dark", "prefers-reduced-motion"):
        assert query in SVG


def test_what_a_program_takes_back_from_the_screen_is_not_shown() -> None:
    assert screen("one\r\n\x1b[?25lbar 1\r\x1b[2Kbar 2\r\x1b[2K\x1b[1mdone\x1b[0m\r\n") == ["one", "\x1b[1mdone\x1b[0m"]
    assert screen("a\r\nbar\r\n\x1b[1A\x1b[2Kb\r\n") == ["a", "b"]


def test_the_readme_shows_it() -> None:
    assert "](docs/terminal.svg)" in (ROOT / "README.md").read_text("utf-8")
