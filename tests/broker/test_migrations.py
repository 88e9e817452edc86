"""The schema: what its steps lead to, and every store that a released version may have left."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from broker.daemon.migrations import MIGRATIONS
from broker.daemon.protocol_table import all_routes, protocol_table
from broker.daemon.store import Reader, Store, stored
from broker.daemon.store_file import open_store
from handlers.companion.retention_rows import place_in_age
from handlers.companion.rows import CLIENTS, REQUESTS, Request
from handlers.policy import Policy
from handlers.routes import merge
from handlers.rule import Row

STORES = sorted((Path(__file__).parents[2] / "fixtures" / "stores").glob("*.sql"))
TABLES = stored(merge(all_routes(protocol_table(Policy()))).tables)


def columns_of(database: sqlite3.Connection) -> dict[str, list[str]]:
    names = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return {
        name: [row[1] for row in database.execute(f'PRAGMA table_info("{name}")')]
        for name in names
        if name != "probe"
    }


def indexes_of(database: sqlite3.Connection) -> set[tuple[str, str]]:
    found = database.execute("SELECT tbl_name, name FROM sqlite_schema WHERE type = 'index'").fetchall()
    return set(found)


def test_the_schema_has_exactly_the_stored_tables_and_their_lookups() -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        for step in MIGRATIONS:
            for statement in step:
                database.execute(statement)
        columns = columns_of(database)
    assert columns == {
        table.name: ["key", "revision", "live", "body", *(f"by_{lookup}" for lookup in table.lookups)]
        for table in TABLES
    }


@pytest.fixture(params=STORES, ids=lambda path: path.stem)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A store as a broker of that version has left it."""
    path = tmp_path / "companion.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(request.param.read_text(encoding="utf-8"))
    return path


@pytest.fixture
def migrated(old: Path) -> Iterator[Store]:
    damages: list[str] = []
    store = open_store(old, TABLES, wall_ms=0, warn=lambda reason, name: damages.append(reason))
    yield store
    store.close()
    assert damages == []


def test_a_store_of_every_version_is_kept() -> None:
    assert [path.stem for path in STORES] == ["0001"]


def test_an_old_store_gets_the_schema_of_a_fresh_one(migrated: Store, tmp_path: Path) -> None:
    with closing(Store(tmp_path / "fresh.db")) as fresh:
        assert columns_of(migrated._db) == columns_of(fresh._db)
        assert indexes_of(migrated._db) == indexes_of(fresh._db)


def test_everything_in_an_old_store_can_be_read(migrated: Store, old: Path) -> None:
    loaded = {(table.name, table.key(row)) for table, row in migrated.load(TABLES)}
    assert {(CLIENTS.name, "client-a"), (CLIENTS.name, "client-b")} <= loaded
    with closing(Reader(old)) as reader:
        rows = [
            reader.read(table, key)
            for table in TABLES
            for (key,) in migrated._db.execute(f"SELECT key FROM {table.name}")
        ]
    assert len(rows) > len(loaded)
    assert None not in rows


def test_an_old_request_is_found_by_its_client_and_its_key(migrated: Store, old: Path) -> None:
    with closing(Reader(old)) as reader:
        of_client = _requests(reader.look_up(REQUESTS, "client", "client-a"))
        answered = _requests(reader.look_up(REQUESTS, "idempotency", "client-a answered"))
    assert len(of_client) == 5
    assert [request.result for request in answered] == ['{"selectedId":"allow"}']


def test_what_had_ended_before_there_was_an_age_clock_is_found_in_its_order(
    migrated: Store, old: Path
) -> None:
    with closing(Reader(old)) as reader:
        ended = _requests(reader.up_to(REQUESTS, "age", ("", place_in_age(1, "")), 9, ()))
    assert len(ended) == 5
    assert {request.ended_age for request in ended} == {0}
    assert [request.id for request in ended] == sorted(request.id for request in ended)


def _requests(rows: list[Row]) -> list[Request]:
    return [row for row in rows if isinstance(row, Request)]
