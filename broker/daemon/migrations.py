"""The schema of the store, as the list of steps that lead to it; the version is the number of steps done.

A step is never changed once it has been released; a new one is appended, and a store of every released version is
kept under fixtures/stores/ to migrate in tests.
"""

from __future__ import annotations

Step = tuple[str, ...]
"""Statements that are carried out together or not at all."""


def rows_table(name: str, *lookups: str) -> Step:
    """The statements that create the table of one kind of row; `lookups` as in `handlers.rule.Table`."""
    columns = [
        "key TEXT PRIMARY KEY",
        "revision INTEGER NOT NULL",
        "live INTEGER NOT NULL",
        "body TEXT NOT NULL",
    ]
    columns += [f"by_{lookup} TEXT" for lookup in lookups]
    return (
        f"CREATE TABLE {name} ({', '.join(columns)})",
        f"CREATE INDEX {name}_live ON {name} (live) WHERE live = 1",
        *(f"CREATE INDEX {name}_by_{lookup} ON {name} (by_{lookup})" for lookup in lookups),
    )


def lookup(table: str, name: str) -> Step:
    """The statements that add a lookup to a table that is there."""
    return (
        f"ALTER TABLE {table} ADD COLUMN by_{name} TEXT",
        f"CREATE INDEX {table}_by_{name} ON {table} (by_{name})",
    )


PROBE: Step = ("CREATE TABLE probe (count INTEGER NOT NULL)", "INSERT INTO probe VALUES (0)")
"""Where `Store.probe` writes."""

MIGRATIONS: tuple[Step, ...] = (
    (
        *PROBE,
        *rows_table("clients"),
        *rows_table("requests", "client", "idempotency"),
        *rows_table("settings"),
        *rows_table("leases"),
        *rows_table("receipts"),
        *rows_table("lease_blocks"),
    ),
    rows_table("losses"),
    (
        *rows_table("ages"),
        *rows_table("tombstones", "client", "age"),
        *lookup("requests", "age"),
        # The age of what has ended before there was an age clock counts from its first start.
        "UPDATE requests SET body = json_set(body, '$.endedAge', 0), by_age = printf('%020d %s', 0, key)"
        " WHERE live = 0",
    ),
    rows_table("wipes"),
)
