from __future__ import annotations

import sqlite3

from broker.daemon.migrations import MIGRATIONS
from broker.daemon.protocol_table import all_routes, protocol_table
from broker.daemon.store import stored
from handlers.policy import Policy
from handlers.routes import merge


def test_the_schema_has_exactly_the_stored_tables_and_their_lookups() -> None:
    database = sqlite3.connect(":memory:")
    for step in MIGRATIONS:
        for statement in step:
            database.execute(statement)
    names = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    columns = {
        name: {row[1] for row in database.execute(f'PRAGMA table_info("{name}")')}
        for name in names - {"probe"}
    }
    database.close()
    tables = stored(merge(all_routes(protocol_table(Policy()))).tables)
    assert columns == {
        table.name: {"key", "revision", "live", "body", *(f"by_{lookup}" for lookup in table.lookups)}
        for table in tables
    }
