"""Everything that the README shows is run: its console blocks as one session, its Python as one program."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).resolve().parent.parent / "README.md").read_text("utf-8")
CONSOLE = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def scenes() -> list[tuple[str, list[str]]]:
    """Each command with the lines that it is shown to print (standard output and standard error)."""
    found: list[tuple[str, list[str]]] = []
    for line in "".join(CONSOLE).splitlines():
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


def test_the_console_blocks_print_what_they_show(tmp_path: Path) -> None:
    shell = Path(sys.executable).parent
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "PATH": f"{shell}:{os.environ['PATH']}",
        "LC_ALL": "C.UTF-8",
    }
    environment.pop("XDG_CONFIG_HOME", None)
    exports = ""
    assert len(scenes()) >= 10
    for command, shown in scenes():
        if command.startswith("export "):
            exports += f"{command}\n"
            continue
        done = subprocess.run(
            ["sh", "-c", exports + command],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        both = (done.stdout + done.stderr, done.stderr + done.stdout)
        assert any(matches(shown, text) for text in both), f"$ {command}\n{both[0]}\nshown:\n" + "\n".join(shown)
        assert done.returncode == (1 if "not in memory" in both[0] else 0)


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
