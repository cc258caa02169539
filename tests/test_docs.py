"""The pages: what they show is run, links lead somewhere, every command and option is in the reference."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from infinimem.cli import main
from infinimem.cli.commands import COMMANDS
from infinimem.plan.paper import STEPS
from tests.pages import PAGES, ROOT, SHOWN, examples_in, play
from tools.make_reference import COMPLETION, MANUAL, write_all

MOST_NOT_RUN = 14
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


@pytest.mark.parametrize("page", PAGES[1:], ids=lambda page: page.name)
def test_the_examples_of_a_page_do_what_it_shows(page: Path, tmp_path: Path) -> None:
    """The README's are run by test_readme.py."""
    play(examples_in(page), tmp_path / "home")


def test_few_examples_are_not_run_and_each_says_why() -> None:
    excuses = [example.excuse for page in PAGES for example in examples_in(page) if example.excuse]
    assert len(excuses) <= MOST_NOT_RUN
    assert all(len(excuse) > 10 for excuse in excuses)


def test_no_command_hides_in_a_block_that_is_not_run() -> None:
    for page in PAGES:
        for example in examples_in(page):
            hidden = example.kind in SHOWN and re.search(r"^\$ ", example.text, re.MULTILINE)
            assert not hidden, f"{page.name}:{example.line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    links = [link for link in LINK.findall(text) if "://" not in link and not link.startswith("mailto:")]
    assert not [link for link in links if not (page.parent / link).exists()]


def test_every_page_is_in_the_contents() -> None:
    contents = (ROOT / "docs" / "index.md").read_text("utf-8").splitlines()
    assert not [page.stem for page in PAGES[2:] if page.stem not in (*contents, "index")]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_in_the_reference(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([name, "--help"])
    options = set(OPTION.findall(capsys.readouterr().out))
    page = (ROOT / "docs" / "reference.md").read_text("utf-8").partition(f"### {name}\n")[2].partition("\n### ")[0]
    manual = (ROOT / MANUAL).read_text("utf-8").replace("\\-", "-").partition(f".SS {name}\n")[2].partition("\n.SS ")[0]
    assert options, name
    assert options <= set(OPTION.findall(page)), "run: python tools/make_reference.py"
    assert options <= set(OPTION.findall(manual)), "run: python tools/make_reference.py"


def test_the_completion_scripts_are_what_the_command_gives(tmp_path: Path) -> None:
    write_all(tmp_path)
    for path in COMPLETION.values():
        assert (tmp_path / path).read_text("utf-8") == (ROOT / path).read_text("utf-8")


def test_bash_completes_a_command(tmp_path: Path) -> None:
    script = f". '{ROOT / COMPLETION['bash']}'; COMP_WORDS=(infinimem timel); COMP_CWORD=1; "
    script += "_infinimem_completion infinimem; echo ${COMPREPLY[*]}"
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run(
        ["bash", "-c", script], env={"PATH": path, "HOME": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["timeline"], done.stderr


def test_every_kind_of_step_is_on_the_page_of_plans_and_carried_out() -> None:
    """Those of the last plan there are refused, as it says; the others are what the session runs."""
    plans = [yaml.safe_load(one.text) for one in examples_in(ROOT / "docs" / "plan.md") if one.kind == "yaml"]
    carried_out = {kind for plan in plans[:-1] for step in plan["steps"] for kind in step}
    assert carried_out == {kind for step in plans[-1]["steps"] for kind in step} == set(STEPS)
