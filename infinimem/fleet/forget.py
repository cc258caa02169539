"""Entries forgotten in every library below a folder, several libraries at once, none stopped by another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from infinimem.errors import BadInput, InfinimemError
from infinimem.fleet.below import libraries_below
from infinimem.fleet.crew import MOST, Crew, cores
from infinimem.forgetting.forget import Forgotten
from infinimem.grep import compile_pattern
from infinimem.library import Library

LIMIT = 1800.0
"""Seconds that one library may take: every one of its files is read, and its git history is searched."""
DIED = "the process that forgot in it died, three times; forget in it alone to see why"
LATE = "it took longer than {limit:g} s and was left; forget in it alone to see why"


@dataclass(frozen=True, slots=True)
class Below:
    """What was forgotten in one library. With a `why` nothing was, and `report` is empty."""

    path: str
    report: Forgotten = field(default_factory=Forgotten)
    why: str = ""


class Order(NamedTuple):
    """A library, and what is to be forgotten there."""

    path: str
    where: tuple[tuple[str, str], ...]
    pattern: str
    ignore_case: bool
    copies: bool
    dry_run: bool
    audience: str


def forget_below(
    root: Path,
    *,
    where: Mapping[str, str] | None = None,
    pattern: str = "",
    ignore_case: bool = False,
    copies: bool = False,
    dry_run: bool = False,
    audience: str = "",
    processes: int = 0,
    limit: float = LIMIT,
    progress: Callable[[int], None] = lambda done: None,
) -> Iterator[Below]:
    """Forget entries in every library below a folder, as `Library.forget` does; gives each library as it is done.

    A library in which it cannot be done says `why` and stops no other. Run it again after an interruption: what is
    forgotten is not there any more. Raises `BadInput`, `BadPattern` before anything is changed.
    """
    if not (where or pattern):
        raise BadInput("say what to forget in all of them: --where source=Ines, or --pattern 'Nordlys'")
    if pattern:
        compile_pattern(pattern, ignore_case=ignore_case)
    order = Order("", tuple((where or {}).items()), pattern, ignore_case, copies, dry_run, audience)
    unread: list[Below] = []
    paths = libraries_below(root, lambda folder, why: unread.append(Below(str(folder), why=why)))

    def lost(order: Order, is_late: bool) -> Below:
        return Below(order.path, why=LATE.format(limit=limit) if is_late else DIED)

    with Crew(processes or min(2 * cores(), MOST), limit) as crew:
        orders = ((order._replace(path=str(path)),) for path in paths)
        for number, one in enumerate(crew.work_through(forget_one, orders, lost), 1):
            progress(number)
            yield one
    yield from unread


def forget_one(order: Order) -> Below:
    """Forget in one library; whatever happens is told, never raised."""
    try:
        library = Library.open(order.path, audience=order.audience, keep_index=False)
        report = library.forget(
            where=dict(order.where),
            pattern=order.pattern,
            ignore_case=order.ignore_case,
            copies=order.copies,
            dry_run=order.dry_run,
        )
    except (InfinimemError, OSError) as error:
        return Below(order.path, why=str(error))
    except Exception as error:  # one library's trouble, of whatever kind, is not the others'
        return Below(order.path, why=f"unexpected {type(error).__name__}: {error}")
    return Below(order.path, report)
