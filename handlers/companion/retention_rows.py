"""The rows of retention: what is left of a request whose time is over, and when to look for more of them."""

from __future__ import annotations

import attrs

from handlers.rule import Deadline, Keep, Table


def place_in_age(age: int, key: str) -> str:
    """The value of an index in which rows are ordered by their age: each has a place of its own."""
    return f"{age:020d} {key}"


def end_of_age(age: int) -> str:
    """The value behind all rows of this age and before all that are younger."""
    return place_in_age(age + 1, "")


@attrs.frozen
class Tombstone:
    """The id and the owner of a request that is no longer kept (CP-6.8).

    `age` (of the age clock) and `wall` (milliseconds) are the instant at which its time was over.
    """

    id: str
    client_id: str
    age: int
    wall: int
    revision: int = 0


TOMBSTONES: Table[Tombstone] = Table(
    name="tombstones",
    row=Tombstone,
    keep=Keep.STORED,
    key=lambda row: row.id,
    indexes={"client": lambda row: row.client_id, "age": lambda row: place_in_age(row.age, row.id)},
    lookups=("client", "age"),
    settled=lambda row: True,
)


@attrs.frozen
class Sweep:
    """When (elapsed milliseconds) the rows of a table are next looked at, from the place `start` on."""

    table: str
    at: int
    start: str = ""
    revision: int = 0


SWEEPS: Table[Sweep] = Table(
    name="sweeps",
    row=Sweep,
    keep=Keep.MEMORY,
    key=lambda row: row.table,
    deadline=lambda row: Deadline(row.at),
)


@attrs.frozen
class RecordCount:
    """How many requests of a client are kept; no row: nobody has counted yet in this run."""

    client_id: str
    count: int
    revision: int = 0


RECORD_COUNTS: Table[RecordCount] = Table(
    name="record_counts", row=RecordCount, keep=Keep.MEMORY, key=lambda row: row.client_id
)
