"""Watching the library: `watch`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infinimem.cli.request import command_app, examples, open_library, wants_json
from infinimem.cli.show import count, paint, place_of, shown
from infinimem.cli.talk import close_quietly, give_up, say

if TYPE_CHECKING:
    from pathlib import Path

    from infinimem.watch.bell import Bell
    from infinimem.watch.loop import News

app = command_app()

TALK = frozenset({"watching", "polling", "waiting", "lost", "back", "stopped"})
"""What is about the watch itself and not about the library: talk, not data."""


@app.command(epilog=examples("infinimem watch", "infinimem watch --json"))
def watch(
    ctx: typer.Context,
    poll: Annotated[
        bool, typer.Option("--poll", help="Look every few seconds; for network folders that tell of no changes.")
    ] = False,
) -> int:
    """Say at once what is wrong with what was just saved; sign plain bullets; flush when due.

    It runs until Ctrl-C or SIGTERM, which are exit code 0. Nothing depends on it: every command sees every save by
    itself. With --json, each line is one event.
    """
    from infinimem.watch.bell import Bell
    from infinimem.watch.loop import watch

    library = open_library(ctx)
    bell = Bell()
    stop_on_signals(bell)
    tell = printer(library.root, bell, as_json=wants_json(ctx))
    watch(library, tell, bell, poll=poll)
    return 0


def stop_on_signals(bell: Bell) -> None:
    """Ctrl-C, SIGTERM and a closed terminal stop the watch when it is done with what it does; a second one at once."""

    def stop(number: int, frame: Any) -> None:
        signal.signal(number, signal.SIG_DFL)
        bell.stop()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup, or a job in the background of a script
            signal.signal(number, stop)


def printer(root: Path, bell: Bell, *, as_json: bool) -> Callable[[News], None]:
    """What prints an event, as a line for a person or as one of JSON."""

    def tell(news: News) -> None:
        if as_json:
            print_line(json_of(news), bell)
        elif news.event in TALK:
            say(line_of(news, root))
        else:
            print_line(line_of(news, root), bell)

    return tell


def print_line(text: str, bell: Bell) -> None:
    """Have a line read now; a reader that has gone is a wish to stop."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        close_quietly()
        bell.stop()
    except OSError as error:
        give_up(sys.stdout, error)


def json_of(news: News) -> str:
    """An event as one line of JSON."""
    import json

    text = json.dumps(values_of(news), ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def values_of(news: News) -> dict[str, Any]:
    """An event as JSON has it."""
    from datetime import UTC, datetime

    return {
        "at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "event": news.event,
        "path": news.path,
        "line": news.line,
        "message": news.message,
        "code": news.code,
        "blocking": news.blocking,
        "fixable": news.fixable,
        "seqs": list(news.seqs),
        "count": news.count,
    }


def line_of(news: News, root: Path) -> str:
    """`path:line: what is wrong`, `path: saved`, or what else there is to say."""
    message = shown(news.message)
    match news.event:
        case "watching":
            return f"watching {message}: {count(news.count, 'topic')}; Ctrl-C stops"
        case "problem":
            colour = "red" if news.blocking else "yellow"
            remedy = "; infinimem check --fix mends it" if news.fixable else ""
            return f"{place_of(root, news.path, news.line)}: {paint(message + remedy, colour)}"
        case "saved" | "gone" if news.count:
            return paint(f"{count(news.count, 'file')} {news.event}", "dim")
        case "saved" | "gone" | "moved":
            return f"{place_of(root, news.path)}: {paint(f'{news.event} {message}'.rstrip(), 'dim')}"
        case "flushed":
            return paint(f"flushed {message}", "green")
        case "stopped":
            return "stopped"
        case _:
            colour = {"failed": "red", "signed": "green"}.get(news.event, "")
            place = f"{place_of(root, news.path)}: " if news.path else ""
            return f"{place}{paint(message, colour)}"
