"""The command line: a thin layer over `infinimem.Library`. `main` is its one edge to the shell."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; gives the exit code. Whatever goes wrong is one line on standard error."""
    try:
        return run(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt:
        return failed("interrupted; the library is as it was before or after, never between", 130)


def run(arguments: Sequence[str]) -> int:
    """Run one command and turn every way it can end into an exit code."""
    from infinimem.cli import talk
    from infinimem.cli.commands import UsageError, root_command
    from infinimem.cli.request import Request
    from infinimem.errors import InfinimemError

    request = Request()
    talk.set_streams()
    try:
        code = root_command().main(
            args=list(arguments), prog_name="infinimem", standalone_mode=False, obj=request
        )
        code = code if isinstance(code, int) else 0
    except UsageError as error:
        code = failed(usage_of(error), 2)
    except InfinimemError as error:
        code = failed(str(error), error.exit_code)
    except BrokenPipeError:
        talk.close_quietly()
        code = 0
    except OSError as error:
        if request.debug:
            raise
        place = f"{error.filename}: " if error.filename else ""
        code = failed(f"{place}{error.strerror or error}; nothing was lost. Look with: infinimem check", 3)
    except Exception as error:
        if request.debug:
            raise
        what = f"unexpected {type(error).__name__}: {error}"
        code = failed(f"{what}; this is a bug in infinimem. For a report, run the command again with --debug", 3)
    return talk.finish(130 if code == 130 else code)


def failed(message: str, code: int) -> int:
    """Say what went wrong, on one line; gives the code back."""
    from infinimem.cli import talk

    talk.say("infinimem: " + " ".join(message.split("\n")))
    return code


def usage_of(error: Exception) -> str:
    """A wrong use of the command line, and where the right one is explained."""
    message: str = error.format_message()  # type: ignore[attr-defined]
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "infinimem"
    message = message.rstrip(".?")
    dash = getattr(error, "option_name", "")
    hint = "; put -- before text that begins with -" if dash and path.split()[-1] in ("write", "ask", "search") else ""
    return f"{message}{hint}. See: {path} --help"
