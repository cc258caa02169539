"""Everything that the README shows is run: its console blocks as one session, its Python as one program."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.llm.planner import sensible, step_of
from tests.llm.server import Answer, Behaviour, Payload, serving
from tests.pages import ROOT, examples_in, play, scenes

README = (ROOT / "README.md").read_text("utf-8")
EXAMPLES = examples_in(ROOT / "README.md")
CONSOLE = [example for example in EXAMPLES if example.kind == "console"]
WITH_MODEL = [example for example in EXAMPLES if example.kind == "console model"]
PYTHON = [example.text for example in EXAMPLES if example.kind == "python"]


def test_the_console_blocks_print_what_they_show(tmp_path: Path) -> None:
    assert len(scenes([example.text for example in CONSOLE])) >= 10
    play(CONSOLE, tmp_path / "home")


def test_the_blocks_with_a_model_print_what_they_show(tmp_path: Path) -> None:
    planner = sensible(
        lambda new, words, old, others: "replaces" if "Nordlys" in words and "works at Fjord" in others else ""
    )

    def answer(payload: Payload) -> Answer:
        step = step_of(payload)
        if step == "search":
            told = str(payload["messages"])
            found = re.findall(r"\[(maya:\d+)\]", told)
            call = ("finish", {"places": found[-1:]}) if len(payload["messages"]) > 2 else ("search", {"query": "Maya"})
            function = {"name": call[0], "arguments": json.dumps(call[1])}
            return {"content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]}
        if step == "answer":
            number = re.findall(r"\[(\d+)\] [^\n]*works at Nordlys", str(payload["messages"][1]["content"]))[0]
            return f"Maya works at Nordlys now [{number}]."
        return planner(payload)

    assert len(scenes([example.text for example in WITH_MODEL])) >= 6
    with serving(Behaviour(answer)) as url:
        play(WITH_MODEL, tmp_path / "home", OPENAI_BASE_URL=url)


def test_the_python_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(PYTHON)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "True" in done.stdout


def test_the_two_commands_are_those_that_ci_runs() -> None:
    assert "./dev test" in (ROOT / ".ci" / "run").read_text("utf-8")
    assert "\n./dev demo\n" in README
    assert "\n./dev test\n" in README
    assert os.access(ROOT / "dev", os.X_OK)


def test_every_command_is_in_the_readme() -> None:
    from infinimem.cli.commands import COMMANDS

    names = set(COMMANDS)
    missing = {name for name in names if not re.search(rf"\b{name}\b", README)}
    assert not missing, f"the README never names {sorted(missing)}"


def test_relative_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", README):
        assert (ROOT / target).exists(), target
