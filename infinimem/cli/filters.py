"""Options that several reading commands share, and the filter they describe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from infinimem.cli.request import pair_of, request_of

if TYPE_CHECKING:
    from infinimem.model import Filter

Where = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="K=V", help="Only entries whose field K is V; may be repeated."),
]
Since = Annotated[str, typer.Option("--since", metavar="DATE", help="Only what happened then or later.")]
Until = Annotated[str, typer.Option("--until", metavar="DATE", help="Only what happened then or earlier.")]
Namespace = Annotated[str, typer.Option("--ns", metavar="NAME", help="Only this namespace.")]
AsOf = Annotated[
    str, typer.Option("--as-of", metavar="DATE", help="What held at that date; of a partial one, at its end.")
]
KnownAt = Annotated[
    str, typer.Option("--known-at", metavar="DATE", help="What the library knew by the end of that date.")
]
Everything = Annotated[bool, typer.Option("--all", help="Entries that were replaced or retired, too.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would change as a diff; change nothing.")]


def filter_of(
    where: list[str] | None,
    since: str,
    until: str,
    ns: str,
    as_of: str,
    known_at: str,
    everything: bool,
) -> Filter:
    """The filter that the options describe. Raises `BadInput` naming the option."""
    from infinimem.model import Filter

    pairs = tuple(pair_of(text, "--where") for text in where or ())
    for option, value in (("--since", since), ("--until", until), ("--as-of", as_of), ("--known-at", known_at)):
        check_date(option, value)
    namespace = (("ns", ns),) if ns else ()
    return Filter((*pairs, *namespace), since, until, "", everything, as_of, known_at)


def check_date(option: str, value: str) -> None:
    """Refuse what is no date, possibly partial."""
    from datetime import datetime

    from infinimem.errors import BadInput
    from infinimem.store.drafts import TIME

    text = value.strip().replace(" ", "T", 1)
    is_date = not text or TIME.fullmatch(text) is not None
    if is_date and len(text) >= 10:
        try:
            datetime.fromisoformat(text)
        except ValueError:
            is_date = False
    if not is_date:
        raise BadInput(f"{option} is a date such as 2026, 2026-05, 2026-05-01 or 2026-05-01T09:00, not {value!r}")


def topic_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """Topic ids for shell completion: a directory listing, nothing is parsed."""
    import os

    from infinimem.errors import InfinimemError
    from infinimem.store.layout import TOPICS, find_library

    if os.environ.get("INFINIMEM_AUDIENCE"):  # some of them may not be for it
        return []
    try:
        folder = find_library(request_of(ctx).library or None)[0] / TOPICS
    except (InfinimemError, OSError):
        return []
    found = []
    for place, _, names in os.walk(folder):
        found += [os.path.relpath(f"{place}/{name[:-3]}", folder) for name in names if name.endswith(".md")]
    return sorted(name for name in ["CURRENT", *found] if name.startswith(incomplete))
