"""A disk for the toy protocol, and the way in which a promise of the concurrency rule is held to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from broker.daemon.deadlines import Key as RowKey
from broker.daemon.ledger import Write
from broker.daemon.rows import AnyTable
from handlers.rule import Row, is_within
from tests.support.toy_routes import PAPERS, TABLES, TALLY

BY_NAME: dict[str, AnyTable] = {table.name: table for table in (*TABLES, TALLY)}
State = dict[RowKey, Row]


class Broken(AssertionError):
    """The ledger has broken a promise."""


def expect(holds: bool, promise: str, *evidence: object) -> None:
    """Raise Broken with the promise unless it holds."""
    if not holds:
        raise Broken(f"{promise}: {', '.join(map(repr, evidence))}")


def expect_equal(promise: str, found: object, expected: object) -> None:
    """Raise Broken with the promise unless both are equal."""
    expect(found == expected, promise, found, expected)


class ToyDisk:
    """A disk that applies batches, and asserts as SQLite does that each row has the revision it should have."""

    def __init__(self) -> None:
        self.rows: State = {}

    def apply(self, writes: Iterable[Write]) -> None:
        """Commit a batch."""
        for write in writes:
            key = (write.table.name, write.key)
            row = self.rows.pop(key, None)
            on_disk = None if row is None else row.revision
            expect(
                on_disk == write.before,
                "the disk holds the revision that the batch builds on",
                write,
                on_disk,
            )
            if write.after is not None:
                self.rows[key] = write.after

    def read(self, table: AnyTable, key: str) -> Row | None:
        """The committed row under this key."""
        expect(table is PAPERS, "only rows that leave memory are read from the disk", table.name)
        return self.rows.get((table.name, key))

    def look_up(self, table: AnyTable, index: str, value: str) -> list[Row]:
        """The committed rows with this value in a lookup column."""
        of_row = table.indexes[index]
        return [row for (name, _), row in self.rows.items() if name == table.name and of_row(row) == value]

    def up_to(
        self, table: AnyTable, index: str, bounds: tuple[str, str], limit: int, besides: Collection[str]
    ) -> list[Row]:
        """The first committed rows within the bounds, in the order of the lookup column, but for some keys."""
        of_row = table.indexes[index]
        found = [row for row in self._others(table, besides) if is_within(of_row(row), *bounds)]
        return sorted(found, key=lambda row: of_row(row) or "")[:limit]

    def count(self, table: AnyTable, index: str, value: str, besides: Collection[str]) -> int:
        """How many committed rows have this value in a lookup column, but for some keys."""
        return sum(table.indexes[index](row) == value for row in self._others(table, besides))

    def _others(self, table: AnyTable, besides: Collection[str]) -> Iterator[Row]:
        expect(table is PAPERS, "only rows that leave memory are read from the disk", table.name)
        return (row for (name, key), row in self.rows.items() if name == table.name and key not in besides)

    def live(self) -> list[tuple[AnyTable, Row]]:
        """What a starting broker would load."""
        rows = [(BY_NAME[name], row) for (name, _), row in self.rows.items()]
        return [(table, row) for table, row in rows if not table.settled(row)]
