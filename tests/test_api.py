"""The Python API: documented, typed, quiet to import, raising what it says, at work from coroutines."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

import infinimem
from infinimem import InfinimemError, Library
from tests.faults.test_writers import assert_written_once
from tests.pages import COMMENT, ROOT, examples_in
from tools import make_api

PAGE = ROOT / make_api.PAGE
METHODS = {name for name in vars(Library) if not name.startswith("_")}
ERROR = re.compile(r"`([A-Z]\w+)`")


def errors_of(name: str) -> set[str]:
    """The errors that a method's docstring says it raises."""
    text = inspect.getdoc(getattr(Library, name)) or ""
    said = re.findall(r"[Rr]aises\s+(.*?)(?:\.(?=\s|$)|$)", text, re.DOTALL)
    names = {found for sentence in said for found in ERROR.findall(sentence)}
    return {one for one in names if one in infinimem.__all__}


# What is public


def test_the_page_is_what_the_docstrings_say() -> None:
    assert make_api.public_page(make_api.guide_of(PAGE)) == PAGE.read_text("utf-8"), (
        "run: python tools/make_reference.py"
    )


def test_every_public_name_is_documented_once() -> None:
    errors = {name for name in infinimem.__all__ if name in make_api_errors()}
    listed = " ".join(make_api.NAMES.values()).split()
    assert sorted([*listed, *errors, *make_api.ELSEWHERE]) == sorted(infinimem.__all__)
    assert set(" ".join(make_api.LIBRARY.values()).split()) <= {*METHODS, "__enter__"}
    page = PAGE.read_text("utf-8")
    assert not [name for name in METHODS if not re.search(rf"^(Library\.)?{name}[(:]", page, re.MULTILINE)]
    for name in (*listed, *METHODS):
        owner = getattr(Library, name) if name in METHODS else getattr(infinimem, name)
        assert name == "CURRENT" or len(inspect.getdoc(owner) or "") > 10, name


def test_what_the_page_for_agents_imports_is_there() -> None:
    page = (ROOT / "docs" / "agents.md").read_text("utf-8")
    found = re.findall(r"^from (infinimem\.[\w.]+) import (.+)$", page, re.MULTILINE)
    assert {module for module, _ in found} == {"infinimem.agents.memory_tool", "infinimem.agents.tools"}
    for module, names in found:
        owner = import_module(module)
        assert all(inspect.getdoc(getattr(owner, name.strip())) for name in names.split(","))


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(infinimem.__file__).parent / "py.typed").is_file()


def make_api_errors() -> set[str]:
    return {error.__name__ for error in make_api.errors()}


def test_type_checkers_and_programs_see_the_same_names() -> None:
    tree = ast.parse(Path(infinimem.__file__).read_text("utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    typed = {
        alias.name: str(node.module).removeprefix("infinimem.")
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    homes = {name: home for home, names in infinimem._HOMES.items() for name in names.split()}
    assert typed == homes
    assert {*homes, "__version__"} == set(infinimem.__all__)
    assert set(infinimem.__all__) <= set(dir(infinimem))
    with pytest.raises(AttributeError, match="no attribute 'Libary'"):
        _ = infinimem.Libary


def test_the_programs_of_the_page_are_well_typed(tmp_path: Path) -> None:
    """As in a program of somebody's own: what the package's hints say is all that is known."""
    programs = [example.text for example in examples_in(PAGE) if example.kind == "python"]
    assert len(programs) >= 9
    assert sum(len(COMMENT.findall(program)) for program in programs) >= 25
    paths = []
    for number, program in enumerate(programs):
        path = tmp_path / f"program{number}.py"
        path.write_text(program, "utf-8")
        paths.append(str(path))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", *paths],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


# Importing

QUIET = """
import logging, os, signal, sys, threading, warnings
before = (list(logging.root.handlers), logging.root.level, list(warnings.filters), signal.getsignal(signal.SIGINT),
          sys.excepthook, dict(os.environ))
known = set(sys.modules)
import infinimem
after = (list(logging.root.handlers), logging.root.level, list(warnings.filters), signal.getsignal(signal.SIGINT),
         sys.excepthook, dict(os.environ))
assert before == after
assert threading.active_count() == 1
new = {name.partition(".")[0] for name in set(sys.modules) - known}
assert new - sys.stdlib_module_names == {"infinimem"}, new
assert not new & {"asyncio", "logging", "json", "sqlite3", "dataclasses", "inspect", "subprocess", "email"}, new
assert not os.listdir("."), os.listdir(".")
from infinimem import Library, Filter, NoLibrary
foreign = {name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names - {"infinimem", "__main__"}
assert not {name for name in foreign if not name.startswith("_")}, foreign
"""


def test_importing_says_and_configures_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n{QUIET}"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_working_with_a_library_prints_and_logs_nothing(tmp_path: Path) -> None:
    code = (
        "import logging\nfrom infinimem import Library\n"
        "with Library.open('m', create=True) as library:\n"
        "    library.write('The boat Terna has berth 12.')\n    library.flush(planner='lexical')\n"
        "    assert library.ask('Which berth?', reader='bm25').found and library.check() == []\n"
        "assert not logging.root.handlers and logging.root.level == logging.WARNING\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# Errors


CONFLICT = "<<<<<<< HEAD\n- a\n=======\n- b\n>>>>>>> x\n"


def provoked(library: Library) -> dict[tuple[str, str], Callable[[], object]]:
    """For each method and error that its docstring names, a call that raises it."""
    root = library.root
    buffer, plan = root / "CURRENT.md", root / "plan.yaml"
    return {
        ("open", "NoLibrary"): lambda: Library.open(root / "nowhere"),
        ("settings", "BadInput"): lambda: (
            (root / "infinimem.yaml").write_text("format: 1\nask.k: many\n"),
            Library.open(root).settings,
        ),
        ("write", "BadInput"): lambda: library.write("x", time="soon"),
        ("write", "StorageFailed"): lambda: (buffer.unlink(), buffer.mkdir(), library.write("x")),
        ("extract", "BadInput"): lambda: library.extract("x"),
        ("import_", "BadInput"): lambda: library.import_(root / "nowhere"),
        ("flush", "BadInput"): lambda: library.flush(planner="best"),
        ("flush", "BadPlan"): lambda: (plan.write_text("plan: 1\nsteps: 7\n"), library.flush(plan=plan)),
        ("flush", "NeedsAttention"): lambda: (buffer.write_text(CONFLICT), library.flush(planner="lexical")),
        ("split", "UnknownTopic"): lambda: library.split("nothing"),
        ("merge", "UnknownTopic"): lambda: library.merge(["nothing", "boat"]),
        ("merge", "BadInput"): lambda: library.merge(["boat"]),
        ("divide", "UnknownSeq"): lambda: library.divide(99),
        ("join", "UnknownSeq"): lambda: library.join([1, 99]),
        ("join", "BadInput"): lambda: library.join([1]),
        ("recover", "UnknownSeq"): lambda: library.recover([99]),
        ("forget", "BadInput"): lambda: library.forget(),
        ("forget", "UnknownSeq"): lambda: library.forget([99]),
        ("forget", "BadPattern"): lambda: library.forget(pattern="("),
        ("export", "BadInput"): lambda: library.export("pdf"),
        ("export", "StorageFailed"): lambda: (plan.write_text(""), library.export("jsonl", plan / "x.jsonl")),
        ("load_export", "BadInput"): lambda: library.load_export(root / "infinimem.yaml"),
        ("take", "BadInput"): lambda: library.take([9]),
        ("drop", "BadInput"): lambda: library.drop([9]),
        ("feedback", "NotFound"): lambda: library.feedback("good"),
        ("feedback", "BadInput"): lambda: library.feedback("fine"),
        ("timeline", "UnknownSeq"): lambda: library.timeline(99),
        ("timeline", "BadInput"): lambda: library.timeline(" "),
        ("judge", "BadInput"): lambda: library.judge("1", "fine"),
        ("search", "UnknownTopic"): lambda: library.search("x", filter=infinimem.Filter(topic="nothing")),
        ("search", "BadInput"): lambda: library.search("x", filter=infinimem.Filter(since="soon")),
        ("ask", "BadInput"): lambda: library.ask("x", reader="best"),
        ("ask", "UnknownTopic"): lambda: library.ask("x", filter=infinimem.Filter(topic="nothing")),
        ("grep", "BadPattern"): lambda: library.grep("("),
        ("grep", "UnknownTopic"): lambda: library.grep("x", "nothing"),
        ("read", "UnknownTopic"): lambda: library.read("nothing"),
        ("read", "BadInput"): lambda: library.read("boat", 900),
        ("summaries", "UnknownTopic"): lambda: library.summaries("nothing"),
        ("trace", "UnknownSeq"): lambda: library.trace(99),
        ("history", "UnknownTopic"): lambda: library.history("nothing"),
        ("history", "UnknownSeq"): lambda: library.history(seq=99),
        ("diff", "BadInput"): lambda: library.diff("soon"),
        ("diff", "UnknownTopic"): lambda: library.diff(topic="nothing"),
        ("file_of", "UnknownTopic"): lambda: library.file_of("nothing"),
    }  # fmt: skip


HARD = {
    ("sign", "ChangedOnDisk"), ("sign", "NeedsAttention"), ("finish_merges", "NeedsAttention"),
    ("owner_only", "BadInput"),
}  # fmt: skip
"""Raised only in a race, in the midst of a git merge, or for an audience: tests/watch/, tests/git/, tests/access/."""


@pytest.fixture
def library(tmp_path: Path) -> Library:
    made = Library.open(tmp_path / "memory", create=True)
    made.write("The boat Terna has berth 12.")
    plan = infinimem.Plan((infinimem.Create("boat", "Boat"), infinimem.Extend("boat", "", (1,))), (1,))
    assert made.flush(plan=plan).exit_code == 0
    return made


def documented() -> set[tuple[str, str]]:
    return {(name, error) for name in METHODS for error in errors_of(name)}


def test_every_error_that_a_docstring_names_is_provoked(library: Library) -> None:
    assert documented() - HARD == set(provoked(library))


@pytest.mark.parametrize(("name", "error"), sorted(documented() - HARD))
def test_a_method_raises_what_its_docstring_says(name: str, error: str, library: Library) -> None:
    with pytest.raises(InfinimemError) as caught:
        provoked(library)[name, error]()
    assert isinstance(caught.value, getattr(infinimem, error))
    assert "\n" not in str(caught.value)


# Coroutines


def test_many_coroutines_write_and_search_while_one_flushes(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True)
    texts = [f"Locker {number} belongs to guest{number}." for number in range(200)]

    async def note(number: int) -> list[int]:
        seqs = await asyncio.to_thread(library.write, texts[number])
        [hit] = await asyncio.to_thread(library.search, f"guest{number}", 1)
        assert (hit.text, hit.seqs) == (texts[number], tuple(seqs))
        if number % 80 == 79:
            await asyncio.to_thread(library.flush, "lexical")
        return seqs

    async def main() -> list[list[int]]:
        return await asyncio.gather(*map(note, range(len(texts))))

    printed = asyncio.run(main())
    library.flush(planner="lexical")
    assert_written_once(library.root, printed, texts)


def test_a_coroutine_that_is_cancelled_and_tried_again_has_written_once(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True)

    async def main() -> list[int]:
        first = asyncio.create_task(asyncio.to_thread(library.write, "The code is 7.", key="once"))
        await asyncio.sleep(0)
        first.cancel()
        return await asyncio.to_thread(library.write, "The code is 7.", key="once")

    assert asyncio.run(main()) == [1]
    assert [unit.seqs for unit in library.index().entries(())] == [(1,)]
