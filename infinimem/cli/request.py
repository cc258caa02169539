"""What a command was asked for: the library, the form of the output, and how commands are declared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from pathlib import Path

    from infinimem.library import Library


class Request:
    """The options that every command has. Plain, because making a dataclass costs `write` a millisecond."""

    __slots__ = ("as_json", "debug", "library", "root")

    def __init__(self, library: str = "", as_json: bool = False, debug: bool = False) -> None:
        self.library = library
        self.as_json = as_json
        self.debug = debug
        self.root = ""
        """The library that the command used, once it has found it."""


def command_app() -> typer.Typer:
    """A holder for a module's commands: no rich, no completion machinery of its own."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def examples(*lines: str) -> str:
    """An epilog with the examples of a command, one a line; a test runs each of them."""
    title = "Examples" if len(lines) > 1 else "Example"
    return "\n".join(["\b", f"{title}:", *(f"  $ {line}" for line in lines)])


def request_of(ctx: typer.Context) -> Request:
    """The options that every command has."""
    return ctx.obj if isinstance(ctx.obj, Request) else Request()


def wants_json(ctx: typer.Context) -> bool:
    """Whether `--json` was given."""
    return request_of(ctx).as_json


def open_library(ctx: typer.Context) -> Library:
    """The library that this command is about, as $INFINIMEM_AUDIENCE may see it. Raises `NoLibrary`."""
    import os

    from infinimem.library import Library
    from infinimem.store.layout import find_library

    root, origin = find_library(request_of(ctx).library or None)
    request_of(ctx).root = str(root)
    if origin.startswith("$"):
        say_elsewhere(root, origin)
    return Library.open(root, audience=os.environ.get("INFINIMEM_AUDIENCE", ""))


def say_elsewhere(root: Path, origin: str) -> None:
    """Name the library where a variable says another one than that which the user stands in."""
    from pathlib import Path

    from infinimem.cli.talk import say
    from infinimem.store.layout import is_library

    here = Path.cwd()
    inside = next((folder for folder in (here, *here.parents) if is_library(folder)), None)
    if inside is not None and inside.resolve() != root.resolve():
        say(f"this is about {root} ({origin}), not the library you stand in")


def pair_of(text: str, option: str) -> tuple[str, str]:
    """`key=value` as a pair."""
    from infinimem.errors import BadInput

    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise BadInput(f"{option} is a field and its value such as source=user, not {text!r}")
    return key.strip(), value


def seqs_of(texts: list[str]) -> list[int]:
    """Seqs given as arguments, such as 12, 12-15 or 12-15+18."""
    from infinimem.errors import BadInput
    from infinimem.text.signature import parse_seqs

    found: dict[int, None] = {}
    for text in texts:
        seqs = parse_seqs(text.strip().removeprefix("#"))
        if not seqs:
            raise BadInput(f"a seq is a number such as 12, 12-15 or 12-15+18, not {text!r}")
        found.update(dict.fromkeys(seqs))
    return list(found)
