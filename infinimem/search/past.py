"""An index of what there was at some moment: made in memory from a replay, asked like any other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from infinimem.model import FileState, Filter, Hit, Unit
from infinimem.search.index import Gathered, Index, ReadTail, ReadUnits
from infinimem.search.records import allows, describe
from infinimem.search.shelf import LARGE_HEAP, SMALL_HEAP, VISIBLE, Shelf
from infinimem.search.sources import Row

MANY = 10_000
"""Units from which on a big write buffer pays."""


class PastIndex(Index):
    """The units of a replay, all of them visible. `homes` says what topic a place outside the topics belongs to."""

    def __init__(self, root: Path, language: str, units: Sequence[Unit], homes: Mapping[tuple[str, int], str]) -> None:
        super().__init__(root, language)
        self._units_then = {(unit.path, unit.line): unit for unit in units}
        self._homes = homes
        shelf = Shelf.create(None)
        writer = shelf.writer(LARGE_HEAP if len(units) > MANY else SMALL_HEAP)
        rows: dict[str, Row] = {}
        for unit in units:
            record = describe(unit, language)
            writer.add(record, VISIBLE, unit.path)
            row = rows.get(unit.path, Row(FileState(0, 0, 0, 0)))
            entry = int(bool(unit.seqs))
            rows[unit.path] = row._replace(
                units=row.units + 1, terms=row.terms + len(record.own), entries=row.entries + entry
            )
        writer.commit()
        writer.close()
        shelf.reload()
        self._over, self._over_rows = shelf, rows

    def refresh(
        self,
        listing: Mapping[str, FileState],
        read_units: ReadUnits,
        read_tail: ReadTail | None = None,
        *,
        settled: bool = True,
    ) -> None:
        """The past stays as it is."""

    def units_then(self) -> Iterable[Unit]:
        """Everything that was there."""
        return self._units_then.values()

    def home(self, unit: Unit) -> str:
        """The topic that a unit belongs to: where it stands, or what took its place; "" for none."""
        return self._homes.get((unit.path, unit.line), unit.topic)

    def _gather(self, query: str, k: int, filter: Filter) -> Gathered:
        # what has no place in a topic any more may belong to it: `_allowed` tells
        return super()._gather(query, max(k, MANY // 10) if filter.topic else k, replace(filter, topic=""))

    def _allowed(self, hits: list[Hit], filter: Filter) -> list[Hit]:
        """The hits that were there then, in the words of then, and that pass the rest of the filter."""
        now = replace(filter, as_of="", known_at="", topic="", retired=True)
        found = [Hit(unit, hit.score) for hit in hits if (unit := self._units_then.get((hit.unit.path, hit.unit.line)))]
        return [hit for hit in found if filter.topic in ("", self.home(hit.unit)) and allows(now, hit.unit)]
