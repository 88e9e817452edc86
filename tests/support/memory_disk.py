"""A disk of memory: what is committed, as the ledger reads it and a starting broker loads it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from broker.daemon.ledger import Write
from handlers.rule import Row, Table, is_within


class MemoryDisk:
    """Committed rows, by table and key."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], Row] = {}

    def apply(self, writes: Iterable[Write]) -> None:
        """Commit a batch."""
        for write in writes:
            if write.after is None:
                self.rows.pop((write.table.name, write.key), None)
            else:
                self.rows[write.table.name, write.key] = write.after

    def read(self, table: Table[Any], key: str) -> Row | None:
        return self.rows.get((table.name, key))

    def look_up(self, table: Table[Any], index: str, value: str) -> Sequence[Row]:
        of_row = table.indexes[index]
        return [row for (name, _), row in self.rows.items() if name == table.name and of_row(row) == value]

    def up_to(
        self, table: Table[Any], index: str, bounds: tuple[str, str], limit: int, besides: Collection[str]
    ) -> Sequence[Row]:
        of_row = table.indexes[index]
        found = [row for row in self._others(table, besides) if is_within(of_row(row), *bounds)]
        return sorted(found, key=lambda row: of_row(row) or "")[:limit]

    def count(self, table: Table[Any], index: str, value: str, besides: Collection[str]) -> int:
        return sum(table.indexes[index](row) == value for row in self._others(table, besides))

    def _others(self, table: Table[Any], besides: Collection[str]) -> Iterator[Any]:
        return (row for (name, key), row in self.rows.items() if name == table.name and key not in besides)

    def live(self, tables: Iterable[Table[Any]]) -> Iterator[tuple[Table[Any], Row]]:
        """What a starting broker loads: settled rows stay on the disk."""
        by_name = {table.name: table for table in tables}
        for (name, _), row in self.rows.items():
            if not by_name[name].settled(row):
                yield by_name[name], row
