"""The list of commands. A command's module is imported only when that command is run."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup, TyperOption

from infinimem.cli.request import Request

# typer brings its own copy of click from some version on; either way these are its base classes.
UsageError: type[Exception] = typer.BadParameter.__bases__[0].__bases__[0]

GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Memory": {
        "init": ("care", "Make a library; harmless on an existing one."),
        "write": ("write", "Append entries; they are on disk when it returns."),
        "flush": ("flush", "Sort what was written into topic documents."),
        "ask": ("find", "Answer a question with cited evidence."),
    },
    "Look": {
        "status": ("look", "Sizes, ages and health, on one screen."),
        "catalog": ("look", "Every topic in one line."),
        "search": ("find", "The entries most like a query, best first."),
        "grep": ("find", "The lines that match a regular expression."),
        "read": ("look", "A topic, some of its lines, or what stands under a heading."),
        "trace": ("look", "One entry's story: its words, its place, what replaced it."),
        "history": ("past", "What happened, newest first; of a topic or an entry."),
        "diff": ("past", "What changed since the last commit or a date, by entry."),
        "timeline": ("evolve", "From when to when each statement held, and what replaced it."),
        "stats": ("stats", "Sizes and growth; --cost: what models took."),
    },
    "Care": {
        "check": ("care", "Look for anything amiss; --fix repairs what is safe."),
        "split": ("flush", "Split a topic by its subjects."),
        "merge": ("flush", "Merge topics into one."),
        "review": ("evolve", "Proposals to take or drop, recent edits to judge."),
        "feedback": ("evolve", "Say whether the last ask was answered well."),
        "reconsolidate": ("evolve", "Link entries that answered questions together."),
        "undo": ("flush", "Take the last flush, split or merge back."),
        "recover": ("care", "Bring back entries that an editor saved over."),
        "forget": ("forget", "Erase entries for good, and prove it."),
        "edit": ("edit", "Open a topic in your editor, then check what was saved."),
        "watch": ("watch", "Check saves as they happen; flush when due."),
    },
    "Exchange": {
        "import": ("exchange", "Bring in chats, sessions and notes from elsewhere."),
        "export": ("export", "JSON lines that restore it, one document, or a site to read."),
    },
    "More": {
        "merge-driver": ("git", "Called by git: merge a file of a library by entry."),
        "mcp": ("agents", "Serve memory to agents over standard input and output."),
        "config": ("about", "Every setting, its value and where it comes from."),
        "schema": ("about", "JSON schemas: plan, config, and what --json prints."),
        "demo": ("demo", "A guided run on a copy of the sample library."),
    },
}
COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}


class LazyGroup(TyperGroup):
    """The `infinimem` command: knows its sub-commands by name and imports the one that is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """One command, built now."""
        if cmd_name in COMMANDS:
            return build(cmd_name)
        if not ctx.resilient_parsing and not cmd_name.startswith("-"):
            near = get_close_matches(cmd_name, COMMANDS, 1, 0.5)
            ctx.fail(f"there is no command {cmd_name!r}" + (f"; did you mean {near[0]}?" if near else ""))
        return None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The commands by group, without importing any."""
        for group, members in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(name, help) for name, (_, help) in members.items()])


def build(name: str) -> Any:
    """A command with the options that every command has."""
    app: typer.Typer = import_module(f"infinimem.cli.{COMMANDS[name][0]}").app
    command: Any = typer.main.get_command(app)
    if isinstance(command, TyperGroup):
        command = command.commands[name]
    command.params.extend(shared_options())
    return command


def shared_options() -> list[TyperOption]:
    """`-L`, `--json` and `--debug`, noted in the request."""
    return [
        TyperOption(
            param_decls=["--json"], is_flag=True, expose_value=False, callback=note_json,
            help="Print JSON (see: infinimem schema).",
        ),
        TyperOption(
            param_decls=["--library", "-L"], type=str, metavar="DIR", expose_value=False,
            callback=note_library, help="The library to use.",
        ),
        TyperOption(
            param_decls=["--debug"], is_flag=True, expose_value=False, callback=note_debug, is_eager=True,
            help="Show the traceback of an unexpected error.",
        ),
    ]  # fmt: skip


def note_json(ctx: Any, param: Any, value: Any) -> None:
    """`--json` was given."""
    if value and isinstance(ctx.obj, Request):
        ctx.obj.as_json = True


def note_library(ctx: Any, param: Any, value: Any) -> None:
    """`-L DIR` was given, before the command's name or after it (which wins)."""
    if value is not None and isinstance(ctx.obj, Request):
        ctx.obj.library = value


def note_debug(ctx: Any, param: Any, value: Any) -> None:
    """`--debug` was given."""
    if value and isinstance(ctx.obj, Request):
        ctx.obj.debug = True


def show_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        from infinimem import __version__
        from infinimem.cli.talk import out

        out(f"infinimem {__version__}")
        raise typer.Exit


def root_command() -> Any:
    """The whole program as one command object."""
    app = typer.Typer(
        cls=LazyGroup,
        invoke_without_command=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        help=ABOUT,
        epilog=EXAMPLE,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(root)
    command: Any = typer.main.get_command(app)
    command.params[1:1] = [option for option in shared_options() if option.name != "json"]
    return command


ABOUT = """Memory for people and agents: a folder of plain text that tidies itself and answers with its sources.

    The library is -L DIR, else $INFINIMEM_LIBRARY, else the one that this folder lies in, else your own."""
EXAMPLE = "\b\nExamples:\n  $ infinimem demo\n  $ infinimem write 'The boiler was serviced.' --time 2026-05-01"


def root(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    if ctx.invoked_subcommand is None:
        from infinimem.cli.talk import out

        out(ctx.get_help())
