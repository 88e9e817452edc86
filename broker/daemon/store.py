"""The SQLite file: one table a kind of row, each row a revision and a JSON body, written in whole batches.

`Store` is used by one thread only (`broker/daemon/committer.py` owns it); `Reader` is the event loop's own
query-only connection.  The revision a row must have is checked in memory when the decision is made; here the same
comparison is an assertion: a write that hits any other number of rows than one means that memory and disk
disagree, and the broker must stop (`StoreDisagrees`).

`fault` is called with a name before and after every call that writes: "before begin", "after begin", then `write
TABLE` for each row, `commit`; `probe`, `migrate`, `rewrite` and `truncate` likewise.  Tests make it raise, or end the
process.  (After a commit it should only end the process: raising there would deny what is on disk.)
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from broker.daemon.ledger import Write
from broker.daemon.migrations import MIGRATIONS, Step
from broker.daemon.rows import AnyTable
from handlers.rule import Keep, Row
from protocols.strict_json import decode, encode
from protocols.structure import structure, unstructure

Fault = Callable[[str], None]
_BUSY_MS = 5_000
_PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "secure_delete=ON",
    "temp_store=MEMORY",  # rewriting the file must leave no copy of it elsewhere
    "trusted_schema=OFF",
    f"busy_timeout={_BUSY_MS}",
)


class StoreDisagrees(Exception):
    """Ours: memory and disk hold different revisions of a row; the broker must not go on."""


class StoreTooNew(Exception):
    """Ours: the file was written by a newer version, and a downgrade is refused."""


def no_fault(name: str) -> None:
    """The fault hook of a real broker."""


def stored(tables: Iterable[AnyTable]) -> list[AnyTable]:
    """The tables that are on disk."""
    return [table for table in tables if table.keep is Keep.STORED]


class Store:
    """The writing connection.  Raises sqlite3.Error as SQLite gives it; opening raises StoreTooNew too."""

    def __init__(self, path: Path, fault: Fault = no_fault, migrations: Sequence[Step] = MIGRATIONS) -> None:
        self._fault = fault
        self._migrations = migrations
        _create_private(path)
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            self._prepare()
        except BaseException:
            self._db.close()
            raise

    def _prepare(self) -> None:
        version = self._version()
        for pragma in _PRAGMAS:
            self._db.execute(f"PRAGMA {pragma}")
        if sys.platform == "darwin":
            self._db.execute("PRAGMA fullfsync=ON")
        for number, step in enumerate(self._migrations[version:], start=version + 1):
            for statement in ("BEGIN IMMEDIATE", *step, f"PRAGMA user_version={number}", "COMMIT"):
                self._execute("migrate", statement)

    def _version(self) -> int:
        version: int = self._db.execute("PRAGMA user_version").fetchone()[0]
        known = len(self._migrations)
        if version > known:
            raise StoreTooNew(f"the store has schema version {version}, this broker knows {known}")
        return version

    def commit(self, writes: Sequence[Write]) -> None:
        """Write one batch; when this returns it is on disk."""
        if not writes:
            return
        with self._transaction():
            for write in writes:
                self._write(write)

    def probe(self) -> None:
        """A small write of its own: once it is on disk, a batch that failed before it is certainly not."""
        with self._transaction():
            self._execute("probe", "UPDATE probe SET count = count + 1")

    def rewrite(self) -> None:
        """Write every row anew into fresh pages: no page keeps a copy of what was deleted or moved."""
        self._execute("rewrite", "VACUUM")

    def truncate_log(self) -> bool:
        """Move the log into the file and leave it empty; False while somebody reads what it holds, at once."""
        self._db.execute("PRAGMA busy_timeout=0")
        try:
            self._fault("before truncate")
            (busy, *_) = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self._fault("after truncate")
        finally:
            self._db.execute(f"PRAGMA busy_timeout={_BUSY_MS}")
        return bool(busy == 0)

    def load(self, tables: Iterable[AnyTable]) -> Iterator[tuple[AnyTable, Row]]:
        """The rows that live in memory: those that are not settled."""
        for table in stored(tables):
            for revision, body in self._db.execute(f"SELECT revision, body FROM {table.name} WHERE live = 1"):
                yield table, _row(table, revision, body)

    def close(self) -> None:
        """Close the file; everything acknowledged is on disk already."""
        self._db.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._execute("begin", "BEGIN IMMEDIATE")
            yield
            self._execute("commit", "COMMIT")
        except BaseException:
            if self._db.in_transaction:
                with contextlib.suppress(sqlite3.Error):  # a probe finds out whether the file is still usable
                    self._db.execute("ROLLBACK")
            raise

    def _write(self, write: Write) -> None:
        name = write.table.name
        try:
            count = self._execute(f"write {name}", *_statement(write))
        except sqlite3.IntegrityError as error:
            raise StoreDisagrees(name) from error
        if count != 1:
            raise StoreDisagrees(name)

    def _execute(self, name: str, sql: str, values: Sequence[object] = ()) -> int:
        self._fault(f"before {name}")
        count = self._db.execute(sql, values).rowcount
        self._fault(f"after {name}")
        return count


class Reader:
    """The event loop's query-only connection: committed rows by key or by a lookup column."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA query_only=ON")

    def read(self, table: AnyTable, key: str) -> Row | None:
        """The committed row under this key."""
        found = self._db.execute(f"SELECT revision, body FROM {table.name} WHERE key = ?", (key,)).fetchone()
        return None if found is None else _row(table, *found)

    def look_up(self, table: AnyTable, index: str, value: str) -> list[Row]:
        """The committed rows with this value in a lookup column."""
        found = self._db.execute(f"SELECT revision, body FROM {table.name} WHERE by_{index} = ?", (value,))
        return [_row(table, revision, body) for revision, body in found.fetchall()]

    def up_to(
        self, table: AnyTable, index: str, bounds: tuple[str, str], limit: int, besides: Collection[str]
    ) -> list[Row]:
        """The first `limit` committed rows within the bounds, in the order of a lookup column, but for some keys."""
        found = self._db.execute(
            f"SELECT revision, body FROM {table.name} WHERE by_{index} BETWEEN ? AND ? AND {_BESIDES}"
            f" ORDER BY by_{index} LIMIT ?",
            (*bounds, _keys(besides), limit),
        )
        return [_row(table, revision, body) for revision, body in found.fetchall()]

    def count(self, table: AnyTable, index: str, value: str, besides: Collection[str]) -> int:
        """How many committed rows have this value in a lookup column, but for some keys."""
        sql = f"SELECT COUNT(*) FROM {table.name} WHERE by_{index} = ? AND {_BESIDES}"
        (count,) = self._db.execute(sql, (value, _keys(besides))).fetchone()
        return int(count)

    def close(self) -> None:
        """Close the connection."""
        self._db.close()


_BESIDES = "key NOT IN (SELECT value FROM json_each(?))"
"""A list of keys in one parameter: their number has no bound that SQLite would mind."""


def _keys(keys: Collection[str]) -> str:
    return encode(list(keys)).decode()


def _statement(write: Write) -> tuple[str, list[object]]:
    name = write.table.name
    if write.after is None:
        return f"DELETE FROM {name} WHERE key = ? AND revision = ?", [write.key, write.before]
    columns, values = _columns(write.table, write.key, write.after)
    if write.before is None:
        places = ", ".join("?" * len(columns))
        return f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({places})", values
    pairs = ", ".join(f"{column} = ?" for column in columns)
    return f"UPDATE {name} SET {pairs} WHERE key = ? AND revision = ?", [*values, write.key, write.before]


def _create_private(path: Path) -> None:
    """Make the file, if there is none, readable by its owner only; SQLite gives its side files the same mode."""
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _columns(table: AnyTable, key: str, row: Any) -> tuple[list[str], list[object]]:
    columns = ["key", "revision", "live", "body"]
    values: list[object] = [key, row.revision, int(not table.settled(row)), encode(unstructure(row)).decode()]
    for index in table.lookups:
        columns.append(f"by_{index}")
        values.append(table.indexes[index](row))
    return columns, values


def _row(table: AnyTable, revision: int, body: str) -> Row:
    row: Row = structure(table.row, decode(body.encode()).value)
    if row.revision != revision:
        raise StoreDisagrees(table.name)
    return row
