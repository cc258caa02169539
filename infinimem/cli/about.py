"""What holds and what the output looks like: `config`, `schema`."""

from __future__ import annotations

from typing import Annotated

import typer

from infinimem.cli.request import command_app, examples, request_of, wants_json
from infinimem.cli.show import paint, table
from infinimem.cli.talk import emit, is_terminal, out, say

app = command_app()


@app.command(epilog=examples("infinimem config", "INFINIMEM_ASK_K=3 infinimem config --json"))
def config(ctx: typer.Context) -> int:
    """Every setting, its value, and where that comes from.

    A flag wins over the environment (INFINIMEM_ASK_K for ask.k), then your own configuration file, then the
    library's infinimem.yaml, then the default.
    """
    from pathlib import Path

    from infinimem.config import SETTINGS, load_settings, user_config
    from infinimem.errors import NoLibrary
    from infinimem.store.layout import find_library

    root: Path | None
    try:
        root = find_library(request_of(ctx).library or None)[0]
    except NoLibrary:
        if request_of(ctx).library:
            raise
        root = None
    settings = load_settings(root)
    rows = [(one.name, settings.values[one.name], settings.origins[one.name], one.about) for one in SETTINGS]
    if wants_json(ctx):
        emit({
            "library": str(root or ""),
            "user_config": str(user_config()),
            "settings": [
                {"name": name, "value": value, "origin": origin, "about": about} for name, value, origin, about in rows
            ],
        })  # fmt: skip
        return 0
    kinds = {one.name: one.kind for one in SETTINGS}
    print_settings([(name, setting_text(value, kinds[name]), origin, about) for name, value, origin, about in rows])
    say(f"library: {root or 'none here'}; your own configuration: {user_config()}")
    return 0


def setting_text(value: object, kind: str = "") -> str:
    """A value as a settings file has it; a duration in its largest whole unit: `1h`, `90s`."""
    if kind == "duration" and isinstance(value, float):
        from infinimem.config import SECONDS

        unit = next((unit for unit in "wdhm" if value and value % SECONDS[unit] == 0), "s")
        return f"{value / SECONDS[unit]:g}{unit}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def print_settings(rows: list[tuple[str, ...]]) -> None:
    """Columns on a terminal, tabs for a program."""
    if is_terminal():
        table(rows, ("cyan", "bold", "", "dim"))
        return
    for row in rows:
        out("\t".join(row))


@app.command(epilog=examples("infinimem schema", "infinimem schema plan", "infinimem schema search"))
def schema(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="plan, config, or a command's name.")] = "",
) -> int:
    """The JSON schema of a plan, of a configuration file, or of what a command prints with --json.

    Without a name: the names. What `config --json` prints is called settings.
    """
    from infinimem.cli.schemas import ABOUT, schema_of
    from infinimem.errors import BadInput

    if name and name not in ABOUT:
        from difflib import get_close_matches

        near = get_close_matches(name, ABOUT, 1, 0.5)
        raise BadInput(
            f"there is no schema {name!r}; " + (f"did you mean {near[0]}?" if near else "see: infinimem schema")
        )
    if name:
        emit(schema_of(name))
    elif wants_json(ctx):
        emit([{"name": one, "about": about} for one, about in ABOUT.items()])
    elif is_terminal():
        table([(one, about) for one, about in ABOUT.items()], ("cyan", ""))
    else:
        for one, about in ABOUT.items():
            out(f"{one}\t{paint(about, 'dim')}")
    return 0
