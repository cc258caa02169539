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

README = (Path(__file__).resolve().parent.parent / "README.md").read_text("utf-8")
DOCS = Path(__file__).resolve().parent.parent / "docs"
CONSOLE = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
WITH_MODEL = re.findall(r"```console model\n(.*?)```", README, re.DOTALL)
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def scenes(blocks: list[str]) -> list[tuple[str, list[str]]]:
    """Each command with the lines that it is shown to print (standard output and standard error)."""
    found: list[tuple[str, list[str]]] = []
    for line in "".join(blocks).splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def pattern_of(line: str) -> str:
    return re.escape(line).replace("…", ".*")


def matches(shown: list[str], printed: str) -> bool:
    """Whether the output is what is shown; a line of … alone stands for any number of lines."""
    pattern = "".join(r"(?:.*\n)*" if line == "…" else pattern_of(line) + r"\n" for line in shown)
    return re.fullmatch(pattern, printed) is not None


def play(blocks: list[str], folder: Path, **more: str) -> None:
    """Run the blocks as one session and hold what each command prints against what is shown."""
    shell = Path(sys.executable).parent
    environment = {**os.environ, "HOME": str(folder), "PATH": f"{shell}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    environment.pop("XDG_CONFIG_HOME", None)
    environment.update(more)
    exports = ""
    for command, shown in scenes(blocks):
        if command.startswith("export "):
            name = command.removeprefix("export ").partition("=")[0]
            exports += "" if name in more else f"{command}\n"
            continue
        done = subprocess.run(
            ["sh", "-c", exports + command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        both = (done.stdout + done.stderr, done.stderr + done.stdout)
        assert any(matches(shown, text) for text in both), f"$ {command}\n{both[0]}\nshown:\n" + "\n".join(shown)
        assert done.returncode == (1 if "not in memory" in both[0] else 0)


def test_the_console_blocks_print_what_they_show(tmp_path: Path) -> None:
    assert len(scenes(CONSOLE)) >= 10
    play(CONSOLE, tmp_path)


def test_the_tutorials_console_blocks_print_what_they_show(tmp_path: Path) -> None:
    blocks = re.findall(r"```console\n(.*?)```", (DOCS / "tutorial.md").read_text("utf-8"), re.DOTALL)
    assert len(scenes(blocks)) >= 10
    play(blocks, tmp_path)


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

    assert len(scenes(WITH_MODEL)) >= 6
    with serving(Behaviour(answer)) as url:
        play(WITH_MODEL, tmp_path, OPENAI_BASE_URL=url)


def test_the_python_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(PYTHON)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "True" in done.stdout


def test_the_two_commands_are_those_that_ci_runs() -> None:
    root = Path(__file__).resolve().parent.parent
    assert "./dev test" in (root / ".ci" / "run").read_text("utf-8")
    assert "\n./dev demo\n" in README
    assert "\n./dev test\n" in README
    assert os.access(root / "dev", os.X_OK)


def test_every_command_is_in_the_readme() -> None:
    from infinimem.cli.commands import COMMANDS

    names = set(COMMANDS)
    missing = {name for name in names if not re.search(rf"\b{name}\b", README)}
    assert not missing, f"the README never names {sorted(missing)}"


def test_relative_links_lead_somewhere() -> None:
    root = Path(__file__).resolve().parent.parent
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", README):
        assert (root / target).exists(), target
