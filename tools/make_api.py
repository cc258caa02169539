"""Write the second half of docs/api.md, every public name of the package, from signatures and docstrings.

python tools/make_reference.py    # does this, too; a test compares
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import infinimem

PAGE = "docs/api.md"
MARK = "<!-- From here on made by tools/make_reference.py from signatures and docstrings. -->\n"
LIBRARY = {
    "Open and close": "open close __enter__ settings",
    "Write": "write write_all extract recover sign",
    "Find and read": "search ask feedback catalog topics_like grep read trace status stats usage file_of",
    "The past": "history diff timeline summaries",
    "Consolidate": "flush plan_template undo split merge divide join review take drop judge reconsolidate",
    "Check": "check check_file check_preview",
    "Move and erase": "import_ export load_export forget",
    "Who may see what": "place is_restricted owner_only",
    "For programs that build on it": "index index_at model_for finish_merges merge_is_pending",
}
LAST = "For programs that build on it"
"""Where a method comes that is listed nowhere."""
NAMES = {
    "What is found": "Hit Unit Answer Evidence Round CatalogRow Match Page Trace Held Filter Switches",
    "What was done": "Appended Extracted Report Outcome Imported Exported Loaded Forgotten Learned Usage",
    "The state of a library": "Status Stats Spent Finding Problem Review Edit Row Comparison Strayed Version",
    "Documents": "parse render Document Header Block Entry Signature Span CURRENT",
    "Plans": "Plan Create Extend Join Retire Split Part Merge Summarise Divide Link",
    "Models": "Model Request Reply Message Tool Call Scripted",
}
ELSEWHERE = ("Library", "__version__")


def public_page(guide: str) -> str:
    """The page: the guide as it is written by hand, and below it every public name."""
    return guide + MARK + "\n".join(reference()) + "\n"


def guide_of(page: Path) -> str:
    """What stands above the mark."""
    return page.read_text("utf-8").partition(MARK)[0]


def reference() -> Iterator[str]:
    """Every public name with what it promises."""
    yield "\n## Every public name\n\n### Library\n"
    yield text_of(infinimem.Library)
    listed = " ".join(LIBRARY.values()).split()
    others = [name for name in vars(infinimem.Library) if not name.startswith("_") and name not in listed]
    for title, names in LIBRARY.items():
        yield f"\n#### {title}\n"
        for name in [*names.split(), *(others if title == LAST else [])]:
            yield member(infinimem.Library, name)
    for title, names in NAMES.items():
        yield f"\n### {title}\n"
        for name in names.split():
            yield one(name)
    yield "\n### Inside other values\n\nTheir attributes stay; their classes have no public name.\n"
    for inner in inner_classes():
        yield value(inner)
    yield "\n### Errors\n\nAll below `InfinimemError`, each with the `exit_code` that the command line gives it.\n"
    yield "| error | below | exit code | |\n|---|---|---|---|"
    for error in errors():
        parent = error.__mro__[1].__name__
        yield f"| `{error.__name__}` | `{parent}` | {error.exit_code} | {text_of(error)} |"


def one(name: str) -> str:
    """One public name that is neither the library nor an error."""
    found = getattr(infinimem, name)
    if inspect.isclass(found):
        return value(found)
    if callable(found):
        return f"```py\n{signature(name, found)}\n```\n\n{text_of(found)}\n"
    return f"**`{name}`** = `{found!r}`: the id of the buffer wherever a topic's is expected.\n"


def errors() -> list[Any]:
    """The classes of errors, the tree top down."""
    found = [getattr(infinimem, name) for name in infinimem.__all__]
    tree = [one for one in found if inspect.isclass(one) and issubclass(one, infinimem.InfinimemError)]
    return sorted(tree, key=lambda error: [(one.exit_code, one.__name__) for one in reversed(error.__mro__[:-3])])


def member(owner: type, name: str) -> str:
    """A method or property of the library."""
    found = inspect.getattr_static(owner, name)
    if isinstance(found, property):
        kind = found.fget.__annotations__["return"] if found.fget else ""
        return f"```py\n{name}: {kind}\n```\n\n{text_of(found)}\n"
    function = found.__func__ if isinstance(found, classmethod) else found
    shown = "Library.open" if isinstance(found, classmethod) else name
    if name == "__enter__":
        return "```py\nwith Library.open(path) as library: ...\n```\n\nCalls `close` at its end.\n"
    return f"```py\n{signature(shown, function)}\n```\n\n{text_of(function)}\n"


def signature(name: str, function: Any) -> str:
    """A signature on one line, or an argument a line."""
    found = inspect.signature(function)
    parameters = [one for one in found.parameters.values() if one.name not in ("self", "cls")]
    gives = found.return_annotation
    shown = plain_annotations(function, parameters)
    line = f"{name}({', '.join(shown)}) -> {gives}"
    if len(line) <= 100:
        return line
    return f"{name}(\n" + "".join(f"    {part},\n" for part in shown) + f") -> {gives}"


def plain_annotations(function: Any, parameters: list[inspect.Parameter]) -> list[str]:
    """Each parameter with its type and default as written."""
    shown: list[str] = []
    for one in parameters:
        if one.kind is one.KEYWORD_ONLY and "*" not in shown:
            shown.append("*")
        default = "" if one.default is one.empty else f" = {default_of(one.default)}"
        shown.append(f"{one.name}: {one.annotation}{default}")
    return shown


def default_of(given: Any) -> str:
    """A default as a reader would write it."""
    if callable(given) and not dataclasses.is_dataclass(given):
        return given.__name__ if given.__name__ != "<lambda>" else "…"
    return f"{type(given).__name__}()" if dataclasses.is_dataclass(given) else repr(given).replace("'", '"')


def value(owner: Any) -> str:
    """A class of values: what it promises, its fields, its properties and methods."""
    lines = [*field_lines(owner), *property_lines(owner)]
    block = "\n".join(["```py", f"class {owner.__name__}:", *(f"    {line}" for line in lines), "```"])
    return f"{block if lines else f'**`{owner.__name__}`**'}\n\n{text_of(owner)}\n"


def field_lines(owner: Any) -> Iterator[str]:
    """The fields of a dataclass, each with its type, default and what is said below it."""
    if not dataclasses.is_dataclass(owner):
        return
    said = said_of_fields(owner)
    for one in dataclasses.fields(owner):
        default = "" if one.default is dataclasses.MISSING else f" = {default_of(one.default)}"
        yield noted(f"{one.name}: {one.type}{default}", said.get(one.name, ""))


def property_lines(owner: Any) -> Iterator[str]:
    """Properties and methods, in the order of the source."""
    for name, found in vars(owner).items():
        if name.startswith("_"):
            continue
        if isinstance(found, property) and found.fget:
            yield noted(f"{name}: {found.fget.__annotations__['return']}", text_of(found))
        elif inspect.isfunction(found):
            yield noted(f"def {signature(name, found)}", text_of(found))


def noted(code: str, text: str) -> str:
    """A line of code with what is said of it."""
    return f"{code}  # {' '.join(text.split())}" if text else code


def said_of_fields(owner: Any) -> dict[str, str]:
    """The texts that stand below fields in the source."""
    [tree] = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
    assert isinstance(tree, ast.ClassDef)
    found: dict[str, str] = {}
    for here, below in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(here, ast.AnnAssign) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            assert isinstance(here.target, ast.Name)
            found[here.target.id] = str(below.value.value)
    return found


def inner_classes() -> list[Any]:
    """Our dataclasses that public values hold and that have no public name."""
    public = [getattr(infinimem, name) for names in NAMES.values() for name in names.split()]
    waiting = [one for one in public if dataclasses.is_dataclass(one)]
    found: list[Any] = []
    while waiting:
        owner: Any = waiting.pop(0)
        names = set(re.findall(r"\w+", " ".join(str(one.type) for one in dataclasses.fields(owner))))
        for name in sorted(names):
            inner: Any = getattr(sys.modules[owner.__module__], name, None)
            ours = dataclasses.is_dataclass(inner) and inner.__module__.startswith("infinimem")
            if ours and inner not in public and inner not in found:
                found.append(inner)
                waiting.append(inner)
    return sorted(found, key=lambda one: str(one.__name__))


def text_of(owner: Any) -> str:
    """A docstring as paragraphs."""
    text = inspect.getdoc(owner) or ""
    return text if inspect.isfunction(owner) or owner is infinimem.Library else " ".join(text.split())
