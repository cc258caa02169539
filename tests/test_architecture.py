"""The house rules that a reader of the code relies on, read off the imports themselves."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import infinimem

PACKAGE = Path(infinimem.__file__).parent
LAYERS = {
    "errors": -1,
    "model": 0,
    "text": 1,
    "plan": 2, "search": 2, "store": 2, "config": 2, "grep": 2, "secrets": 2,
    "llm": 3, "consolidate": 3, "readers": 3, "ask": 3, "reading": 3, "indexing": 3, "check": 3, "stats": 3, "git": 3,
    "sound": 3, "exchange": 3, "saved": 3, "forgetting": 3, "access": 3, "evolve": 3,
    "library": 4, "watch": 4, "fleet": 4,
    "agents": 5, "cli": 5, "__main__": 5,
}  # fmt: skip
HEAVY = ("openai", "numpy", "rank_bm25", "rich", "pydantic", "yaml", "watchdog", "tantivy", "sqlite3", "Stemmer", "re2",
         "mcp", "anthropic", "detect_secrets", "requests", "distributed")  # fmt: skip


def imports_of(path: Path) -> set[str]:
    """The infinimem modules that a file imports, as dotted names below the package."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "infinimem":
            rest = node.module.split(".")[1:]
            found.update([".".join(rest)] if rest else [name.name for name in node.names])
        elif isinstance(node, ast.Import):
            found.update(name.name.removeprefix("infinimem.") for name in node.names if "infinimem." in name.name)
    return {name for name in found if name.split(".")[0] in LAYERS}


def test_modules_import_from_lower_layers_only() -> None:
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        here = path.relative_to(PACKAGE).with_suffix("").as_posix().split("/")[0]
        if here == "__init__":
            continue
        assert here in LAYERS, f"{here} has no layer; give it one above"
        for name in imports_of(path):
            there = name.split(".")[0]
            if there != here and LAYERS[there] >= LAYERS[here] and not (LAYERS[here] == LAYERS[there] >= 3):
                wrong.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert not wrong


def test_there_is_no_import_cycle() -> None:
    graph: dict[str, set[str]] = {}
    names = {
        path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__"): path
        for path in PACKAGE.rglob("*.py")
    }
    for name, path in names.items():
        top = [node for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.ImportFrom)]
        modules = [node.module for node in top if node.module and node.module.startswith("infinimem.")]
        direct = {module.removeprefix("infinimem.") for module in modules}
        graph[name] = {target for target in direct if target in names}
    order: list[str] = []
    open_: set[str] = set()

    def visit(name: str) -> None:
        assert name not in open_, f"import cycle through {name}"
        if name in order:
            return
        open_.add(name)
        for target in sorted(graph[name] - {name}):
            visit(target)
        open_.remove(name)
        order.append(name)

    for name in sorted(graph):
        visit(name)


def loaded_by(code: str) -> set[str]:
    """The heavy packages that a piece of code loads in a fresh interpreter."""
    script = f"import sys\n{code}\nprint(' '.join(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded_by("import infinimem, infinimem.library, infinimem.model, infinimem.errors") == set()


def test_writing_through_the_api_loads_nothing_heavy(tmp_path: Path) -> None:
    code = f"from infinimem import Library; Library.open({str(tmp_path / 'm')!r}, create=True).write('a fact')"
    assert loaded_by(code) == set()
