"""The table and the JSON of a run of any benchmark here: figures with the versions, seed and machine beside them."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import infinimem


def machine() -> dict[str, Any]:
    """What the figures depend on and a reader can compare: no host name, no path."""
    return {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
    }


def versions(packages: Sequence[str] = ()) -> dict[str, str]:
    """infinimem's version and those of the packages that took part, "absent" for what is not installed."""
    found = {"infinimem": infinimem.__version__}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "absent"
    return found


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table, as benchmarks/README.md holds it; floats with one decimal."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def write_json(
    path: Path | None,
    name: str,
    results: Mapping[str, Any] | Sequence[Any],
    *,
    limits: Sequence[str],
    packages: Sequence[str] = (),
    **settings: Any,
) -> None:
    """Writes to `path` (nothing without one) what was run, with what, on what, the figures, and their limits."""
    if path is None:
        return
    run = {
        "benchmark": name,
        "arguments": [Path(word).name if "/" in word else word for word in sys.argv[1:]],
        "settings": settings,
        "versions": versions(packages),
        "machine": machine(),
        "limits": list(limits),
        "results": results,
    }
    path.write_text(json.dumps(run, indent=1, ensure_ascii=False, default=str) + "\n", encoding="utf-8")


def _cell(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)
