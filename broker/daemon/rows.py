"""The rows in memory, with their indexes and deadlines: what the newest decision left, committed or not.

One place keeps the three in step: `set` replaces a row and moves it in every index and in the deadline heap.
A row that was dropped but whose drop is not on disk yet is remembered as GONE, so that no reader finds the old
one on disk.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final

from broker.daemon.deadlines import Deadlines, Key
from handlers.rule import Row, Table


class Gone:
    """Marks a dropped row until the drop is committed."""


GONE: Final = Gone()
AnyTable = Table[Any]


class Rows:
    """Rows by table and key; `deadlines` always holds exactly the deadlines of these rows."""

    def __init__(self, tables: Iterable[AnyTable], deadlines: Deadlines) -> None:
        self._rows: dict[str, dict[str, Row | Gone]] = {table.name: {} for table in tables}
        self._indexes: dict[tuple[str, str], dict[str, dict[str, None]]] = defaultdict(dict)
        self._deadlines = deadlines

    def get(self, table: AnyTable, key: str) -> Row | Gone | None:
        """The row, GONE when its drop is not committed yet, or None when memory does not know the key."""
        return self._rows[table.name].get(key)

    def find(self, table: AnyTable, index: str, value: str) -> list[Row]:
        """The rows in memory with this value in an index, oldest entry first."""
        rows = self._rows[table.name]
        found = (rows[key] for key in self._indexes[table.name, index].get(value, ()))
        return [row for row in found if not isinstance(row, Gone)]

    def all(self, table: AnyTable) -> list[Row]:
        """Every row of a table in memory."""
        return [row for row in self._rows[table.name].values() if not isinstance(row, Gone)]

    def set(self, table: AnyTable, key: str, row: Row | Gone | None) -> None:
        """Put a row, mark it GONE, or (None) forget the key."""
        rows = self._rows[table.name]
        old = rows.get(key)
        if isinstance(old, Gone):
            old = None
        new = None if isinstance(row, Gone) else row
        if row is None:
            rows.pop(key, None)
        else:
            rows[key] = row
        for name, index in table.indexes.items():
            self._move(table.name, name, key, _value(index, old), _value(index, new))
        self._deadlines.set((table.name, key), None if new is None else table.deadline(new))

    def contents(self) -> dict[Key, Row]:
        """Every row by table and key: for comparing memory with disk in tests."""
        return {
            (name, key): row
            for name, rows in self._rows.items()
            for key, row in rows.items()
            if not isinstance(row, Gone)
        }

    def _move(self, table: str, index: str, key: str, old: str | None, new: str | None) -> None:
        if old == new:
            return
        entries = self._indexes[table, index]
        if old is not None:
            keys = entries[old]
            del keys[key]
            if not keys:
                del entries[old]
        if new is not None:
            entries.setdefault(new, {})[key] = None


def _value(index: Any, row: Row | None) -> str | None:
    if row is None:
        return None
    value: str | None = index(row)
    return value
