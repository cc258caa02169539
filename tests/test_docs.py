"""The pages: what they show is run, links lead somewhere, every command and option is in the reference."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path

import pytest
import yaml

from infinimem.cli import main
from infinimem.cli.commands import COMMANDS
from infinimem.config import SETTINGS
from infinimem.plan.paper import STEPS
from tests.pages import PAGES, ROOT, SHOWN, examples_in, play
from tests.test_architecture import LAYERS
from tools.make_reference import COMPLETION, MANUAL, write_all

MOST_NOT_RUN = 10
UNLISTED = ("__init__.py", "__main__.py", "py.typed")
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]*)(?:#([^)\s]+))?\)")
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


LINKED = [*PAGES, ROOT / "CHANGELOG.md", ROOT / "benchmarks" / "README.md"]


@pytest.mark.parametrize("page", LINKED, ids=lambda page: f"{page.parent.name}-{page.name}")
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
    for link, anchor in LINK.findall(text):
        if "://" in link or link.startswith("mailto:"):
            continue
        target = page.parent / link if link else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), f"{link}#{anchor}"


def anchors(page: Path) -> set[str]:
    """The anchors that a page's headings get, on GitHub and by MyST alike."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    names = [re.sub(r"[^\w\- ]", "", name).strip().lower() for name in re.findall(r"^#{1,6} (.*)$", text, re.MULTILINE)]
    return {name.replace(" ", "-") for name in names}


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


def test_what_a_script_makes_of_the_code_is_up_to_date(tmp_path: Path) -> None:
    write_all(tmp_path)
    made = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(made) == 6
    for path in made:
        kept = ROOT / path.relative_to(tmp_path)
        assert path.read_bytes() == kept.read_bytes(), f"{kept.name}; run: python tools/make_reference.py"


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


# Where things are


def places() -> list[list[str]]:
    """What the README's list names, a list a layer."""
    section = (ROOT / "README.md").read_text("utf-8").partition("## Where things are")[2].partition("```\n")[2]
    groups = section.partition("\n```")[0].split("\n\n")
    found = []
    for group in groups:
        names: list[str] = []
        for line in group.splitlines():
            first, *others = re.split(r", | {2,}", line.partition("  ")[0])
            names += [first, *(f"{first.rpartition('/')[0]}/{other}" for other in others)]
        found.append(names)
    return found


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="the files of a checkout are asked from git")
def test_the_readme_lists_every_folder_and_module_and_no_other() -> None:
    named = {name for group in places() for name in group}
    assert not [name for name in named if not (ROOT / name).exists()], "gone; README, Where things are"
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    tops = {f"{path.partition('/')[0]}/" for path in tracked if "/" in path} - {"infinimem/"}
    inside = [path.removeprefix("infinimem/").partition("/") for path in tracked if path.startswith("infinimem/")]
    ours = {f"infinimem/{name}{slash}" for name, slash, _ in inside} - {f"infinimem/{name}" for name in UNLISTED}
    assert not (tops | ours) - named, "new; put it into the README's Where things are, in its layer"


def test_the_list_in_the_readme_and_the_one_in_contributing_are_the_layers() -> None:
    layers = [
        {re.sub(r"^infinimem/|\.py$|/.*$", "", name) for name in group if name.startswith("infinimem/")}
        for group in places()
    ]
    known = [
        {name for name, at in LAYERS.items() if at == layer} - {"__main__"} for layer in sorted({*LAYERS.values()})
    ]
    assert [group for group in layers if group] == known
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("reads the imports:\n")[2].partition(". What")[0]
    assert [set(re.findall(r"`(\w+)`", group)) for group in page.split("·")] == known


def test_contributing_is_one_page() -> None:
    assert len((ROOT / "CONTRIBUTING.md").read_text("utf-8").splitlines()) <= 66


# Commands named in a text

SPAN = re.compile(r"`([^`]+)`")


@pytest.mark.parametrize("page", LINKED, ids=lambda page: f"{page.parent.name}-{page.name}")
def test_every_command_and_option_that_a_page_names_exists(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    wrong = []
    for span in (" ".join(span.split()) for span in SPAN.findall(text)):
        words = re.sub(r"^infinimem |-L \S+ ", "", span).split()
        is_call = span.startswith("infinimem ") and bool(words)
        if is_call and not words[0].startswith("--") and words[0] not in (*COMMANDS, "…", "COMMAND"):
            wrong.append(span)
        elif is_call or (len(words) > 1 and words[0] in COMMANDS and "=" not in words[1]):
            known = options_of(words[0] if words[0] in COMMANDS else "write")
            wrong += [span for option in OPTION.findall(" ".join(words)) if option not in known]
    assert not wrong


@cache
def options_of(name: str) -> frozenset[str]:
    """The options that a command takes, the general ones among them."""
    caught = io.StringIO()
    with redirect_stdout(caught):
        main([name, "--help"])
        main(["--help"])
    return frozenset(OPTION.findall(caught.getvalue()))


@pytest.mark.parametrize("page", LINKED, ids=lambda page: f"{page.parent.name}-{page.name}")
def test_every_file_and_setting_that_a_page_names_exists(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    spans = SPAN.findall(text)
    paths = [span for span in spans if re.fullmatch(r"(infinimem|tests|tools|benchmarks|docs|prompts)/[\w./-]*", span)]
    assert not [path for path in paths if not (ROOT / path).exists()]
    groups = "|".join({setting.name.partition(".")[0] for setting in SETTINGS if "." in setting.name})
    named = {span.partition(":")[0] for span in spans if re.match(rf"({groups})\.[a-z_]+(:|$)", span)}
    assert named <= {setting.name for setting in SETTINGS} | {"git.md"}
