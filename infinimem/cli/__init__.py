"""The command line: a thin layer over `infinimem.Library`. `main` is its one edge to the shell."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

STOPPED = "interrupted; the library is as it was before or after, never between"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; gives the exit code. Whatever goes wrong is one line on standard error."""
    if arguments is not None:
        return guarded(arguments)
    # What imports make lives as long as the process: not to search it for garbage, neither while it is
    # made nor at exit, takes an eighth off the CPU time of a `write`.
    gc.set_threshold(50_000)
    code = guarded(sys.argv[1:])
    gc.freeze()
    return code


def guarded(arguments: Sequence[str]) -> int:
    """Run one command; an interrupt ends it with 130 wherever it comes."""
    try:
        return run(arguments)
    except KeyboardInterrupt:
        return failed(STOPPED, 130)


def run(arguments: Sequence[str]) -> int:
    """Run one command and turn every way it can end into an exit code."""
    from infinimem.cli import talk
    from infinimem.cli.commands import UsageError, root_command
    from infinimem.cli.request import Request
    from infinimem.errors import InfinimemError

    request = Request()
    talk.set_streams()
    try:
        code = root_command().main(args=list(arguments), prog_name="infinimem", standalone_mode=False, obj=request)
        code = code if isinstance(code, int) else 0
    except UsageError as error:
        code = failed(usage_of(error, arguments), 2)
    except InfinimemError as error:
        code = failed(str(error), error.exit_code)
    except BrokenPipeError:
        talk.close_quietly()
        code = 0
    except SystemExit as stop:  # completion scripts; help into a closed pipe
        code = stop.code if isinstance(stop.code, int) and not isinstance(stop.__context__, OSError) else 0
    except Exception as error:
        code = failed(unexpected(error), 3, debug=request.debug)
    if code == 130:
        failed(STOPPED, code)
    elif request.root:
        remind(request.root)
    return talk.finish(code)


def remind(root: str) -> None:
    """Say, once a day, that this clone does not know how memory is merged."""
    if not os.path.exists(f"{root}/.gitattributes"):  # noqa: PTH110 - every command passes here
        return
    from pathlib import Path

    from infinimem.cli import talk
    from infinimem.git.registered import reminder

    line = reminder(Path(root))
    if line:
        talk.say(line)


def failed(message: str, code: int, *, debug: bool = False) -> int:
    """Say what went wrong, on one line; gives the code back."""
    from infinimem.cli import talk

    if debug:
        import traceback

        traceback.print_exc()
    talk.say("infinimem: " + " ".join(message.split("\n")))
    return code


def unexpected(error: Exception) -> str:
    """An error that nothing in the program expected."""
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror or error}; nothing was lost. Look with: infinimem check"
    what = f"unexpected {type(error).__name__}: {error}"
    return f"{what}; this is a bug in infinimem. For a report, run the command again with --debug"


def usage_of(error: Exception, arguments: Sequence[str]) -> str:
    """A wrong use of the command line, and where the right one is explained."""
    from infinimem.cli.commands import COMMANDS

    message: str = error.format_message()  # type: ignore[attr-defined]
    context = getattr(error, "ctx", None)
    # an option without its value does not say whose it is
    named = next((f" {word}" for word in arguments if word in COMMANDS), "")
    path = context.command_path if context is not None else f"infinimem{named}"
    is_option = hasattr(error, "possibilities")
    dashed = is_option and path.split()[-1] in ("write", "ask", "search", "grep")
    hint = "; put -- before text that begins with -" if dashed else ""
    message = message.rstrip(".") + hint
    return f"{message}{'' if message.endswith('?') else '.'} See: {path} --help"
