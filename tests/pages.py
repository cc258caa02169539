"""The examples of a page of documentation: what they are, and a session that runs them.

In a page's source two comments may stand right above a block; readers do not see them:

    <!-- given: COMMANDS -->     run first: what the example takes for granted
    <!-- needs: PROGRAM -->      run only where this program is
    <!-- not run: REASON -->     it cannot be run here; a test counts these
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Sequence
from configparser import ConfigParser
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import yaml
from jsonschema import Draft202012Validator

from infinimem.config import load_settings
from infinimem.plan.paper import SCHEMA, parse_plan

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(
    r"(?P<notes>(?:^<!--(?:(?!-->).)*-->\n+)*)^(?P<indent> *)```(?P<kind>[^\n`]*)\n(?P<text>.*?)^ *```$", re.M | re.S
)
NOTE = re.compile(r"<!-- (given|needs|not run):\s*(.*?)\s*-->", re.S)
FILE_NAME = re.compile(r"# ([\w.-]+)\n")
"""The first line of a block that is a file of this name."""
SHOWN = ("", "text", "markdown", "py")
"""Blocks that show a file, an output or a signature; nothing to run."""
ELSEWHERE = {
    "console model": "tests/test_readme.py",
    "python anthropic": "tests/agents/",
    "python anthropic async": "tests/agents/",
    "python openai": "tests/agents/",
}


@dataclass(frozen=True)
class Example:
    """A block of a page: what language it is in, `line` where it starts, `given` what is run before it."""

    kind: str
    text: str
    line: int
    given: str = ""
    needs: str = ""
    excuse: str = ""


def examples_in(page: Path) -> list[Example]:
    """The blocks of a page, in order."""
    source = page.read_text("utf-8")
    found = []
    for match in BLOCK.finditer(source):
        notes = dict(NOTE.findall(match["notes"]))
        line = source.count("\n", 0, match.start("kind")) + 1
        text = textwrap.dedent(match["text"]) if match["indent"] else match["text"]
        given, needs, excuse = (notes.get(name, "") for name in ("given", "needs", "not run"))
        found.append(Example(match["kind"], text, line, given, needs, excuse))
    return found


# A session


class Session:
    """A shell that lives on: every command is a process of its own, exports and the working folder stay."""

    def __init__(self, folder: Path, state: Path, **more: str) -> None:
        self.folder = folder
        self.state = state
        self.fixed = more
        kept = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
        self.environment = {
            **kept,
            "HOME": str(folder),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "LC_ALL": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
            **more,
        }

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run a script where the last one stopped."""
        earlier = self.state.read_text() if self.state.exists() else ""
        keep = f'trap \'{{ export -p; printf "cd %q\\n" "$PWD"; }} > {self.state}\' EXIT\n'
        return subprocess.run(
            ["bash", "-c", f"{earlier}{self.exports()}{keep}{script}"],
            cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False, timeout=300,
        )  # fmt: skip

    def exports(self) -> str:
        """What a test has fixed, whatever the page exports."""
        return "".join(f"export {name}='{value}'\n" for name, value in self.fixed.items())


def play(examples: Sequence[Example], folder: Path, **more: str) -> None:
    """Run the examples as one session in a folder; what they print is what they show, what they are is valid."""
    folder.mkdir(exist_ok=True)
    session = Session(folder, folder.parent / f"{folder.name}.session", **more)
    for example in examples:
        if example.excuse or (example.needs and not shutil.which(example.needs)):
            continue
        if example.given:
            done = session.run(f"set -eu\n{example.given}")
            assert done.returncode == 0, f"line {example.line}, given:\n{example.given}\n{done.stdout}{done.stderr}"
        if example.kind.startswith("console"):
            for command, shown in scenes([example.text]):
                check_scene(session, command, shown)
        elif example.kind == "sh":
            done = session.run(f"set -eu\n{example.text}")
            assert done.returncode == 0, f"line {example.line}:\n{example.text}\n{done.stdout}{done.stderr}"
        elif example.kind == "python":
            check_program(session, example)
        elif example.kind not in SHOWN:
            check_file(example, folder)
            if name := FILE_NAME.match(example.text):
                (folder / name[1]).write_text(example.text, "utf-8")


def check_scene(session: Session, command: str, shown: Sequence[str]) -> None:
    """A command prints what is shown, both streams, and says with its exit code what the last line says."""
    done = session.run(command)
    both = (done.stdout + done.stderr, done.stderr + done.stdout)
    assert any(matches(shown, text) for text in both), f"$ {command}\n{both[0]}\nshown:\n" + "\n".join(shown)
    assert done.returncode == (1 if "not in memory" in both[0] else 0), f"$ {command}\n{both[0]}"


def scenes(blocks: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Each command with the lines that it is shown to print (standard output and standard error)."""
    found: list[tuple[str, list[str]]] = []
    for line in "".join(blocks).splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def matches(shown: Sequence[str], printed: str) -> bool:
    """Whether the output is what is shown; … stands for anything in a line, alone for any number of lines."""
    pattern = "".join(r"(?:.*\n)*" if line == "…" else re.escape(line).replace("…", ".*") + r"\n" for line in shown)
    return re.fullmatch(pattern, printed) is not None


# Programs and files

VALUE = r"""True|False|None|\[.*\]|\(.*\)|\{.*\}|".*"|'.*'|[A-Z]\w*\(.*\)|-?[0-9][0-9.]*"""
COMMENT = re.compile(rf"^(?P<code>\S[^#\n]*?)  +# (?P<value>{VALUE})$", re.M)


def with_shown_values(code: str) -> str:
    """A program in which `expression  # value` prints the expression where its value is another."""
    return COMMENT.sub(lambda match: f"shown({match['code']}, {match['value']!r})", code)


def check_program(session: Session, example: Example) -> None:
    """A program runs, and each `expression  # value` in it has that value; … stands for anything."""
    shown = (
        "import re as _re\n"
        "def shown(value, text):\n"
        "    pattern = _re.escape(text).replace('…', '.*')\n"
        "    assert _re.fullmatch(pattern, repr(value), _re.S), f'shown {text}, but it is {value!r}'\n"
    )
    program = session.folder.parent / f"{session.folder.name}-{example.line}.py"
    program.write_text(shown + with_shown_values(example.text), "utf-8")
    done = session.run(f"'{sys.executable}' '{program}'")
    assert done.returncode == 0, f"line {example.line}:\n{done.stdout}{done.stderr}"


def check_file(example: Example, folder: Path) -> None:
    """A file in its format is valid. Settings become those of the page's library, `memory`."""
    match example.kind:
        case "json":
            json.loads(example.text)
        case "toml":
            tomllib.loads(example.text)
        case "ini":
            ConfigParser(strict=False, interpolation=None).read_string(example.text)
        case "xml":
            ElementTree.fromstring(example.text)
        case "yaml":
            check_yaml(example.text, folder / "memory")
        case other:
            assert other in ELSEWHERE or other.startswith("{"), f"line {example.line}: nothing runs {other!r} blocks"


def check_yaml(text: str, library: Path) -> None:
    """A plan parses and fits its schema, a pre-commit configuration names our hook, settings are understood."""
    value = yaml.safe_load(text)
    if "plan" in value:
        assert not list(Draft202012Validator(SCHEMA).iter_errors(value))
        assert parse_plan(text, "page").steps
    elif "repos" in value:
        hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
        assert {hook["id"] for repo in value["repos"] for hook in repo["hooks"]} <= {hook["id"] for hook in hooks}
    else:
        library.mkdir(exist_ok=True)
        (library / "infinimem.yaml").write_text(f"format: 1\n{text}", "utf-8")
        settings = load_settings(library)
        assert any("infinimem.yaml" in origin for origin in settings.origins.values())
