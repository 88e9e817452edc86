"""Rows on disk and back: every stored table of the broker has its place, and any row comes back as it was."""

from __future__ import annotations

import sqlite3
import tempfile
import types
import typing
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import attrs
import hypothesis
import hypothesis.strategies as st
import pytest

from broker.daemon.ledger import Write
from broker.daemon.migrations import PROBE, rows_table
from broker.daemon.protocol_table import all_routes, protocol_table
from broker.daemon.rows import AnyTable
from broker.daemon.store import Reader, Store, stored
from handlers.policy import Policy
from handlers.routes import merge
from handlers.rule import Keep, Row, Table
from protocols.errors import InvalidValue

STORED = stored(merge(all_routes(protocol_table(Policy()))).tables)


class Colour(Enum):
    """A member whose value is not ASCII, and one that is not a string."""

    RED = "röt"
    NONE = 0


@attrs.frozen
class Point:
    """A value within a row."""

    x: int
    label: str | None = None


@attrs.frozen
class Picture:
    """A row with a member of every kind."""

    name: str
    colour: Colour
    points: tuple[Point, ...] = ()
    tags: tuple[str, ...] = ()
    note: str | None = None
    seen: bool | None = None
    owner: str | None = None
    revision: int = 0


PICTURES: Table[Picture] = Table(
    name="pictures",
    row=Picture,
    keep=Keep.STORED,
    key=lambda picture: picture.name,
    indexes={"owner": lambda picture: picture.owner},
    lookups=("owner",),
)
MIGRATIONS = ((*PROBE, *rows_table("pictures", "owner")),)
PLAIN = Picture("plain", Colour.RED, revision=1)

TEXTS = [
    "",
    "naïve 猫🐈‍⬛",
    "\u202ertl\u202c",
    "a\0b",
    "line\nbreak\u2028\u2029\x7f",
    "'); DROP TABLE pictures; --",
    '"quoted" \\ {"a": 1}',
    "\U0010ffff\ufeff",
]


def strategy(kind: Any) -> st.SearchStrategy[Any]:
    """Any value that a member of this type can have."""
    simple = {
        str: st.text(st.characters(codec="utf-8")),
        int: st.integers(-(2**63), 2**63 - 1),
        bool: st.booleans(),
        types.NoneType: st.none(),
    }
    if kind in simple:
        return simple[kind]
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return st.one_of([strategy(choice) for choice in typing.get_args(kind)])
    if typing.get_origin(kind) is tuple:
        return st.lists(strategy(typing.get_args(kind)[0]), max_size=3).map(tuple)
    if issubclass(kind, Enum):
        return st.sampled_from(kind)
    hints = typing.get_type_hints(kind)
    members = {field.name: strategy(hints[field.name]) for field in attrs.fields(kind)}
    return st.builds(kind, **members)


class Shelf:
    """A store and a reader on one file."""

    def __init__(self, path: Path, migrations: Sequence[tuple[str, ...]] | None = None) -> None:
        self.store = Store(path) if migrations is None else Store(path, migrations=migrations)
        self.reader = Reader(path)

    def round_trip(self, table: AnyTable, row: Row) -> Row | None:
        """Write the row, read it back, and delete it."""
        key = table.key(row)
        self.store.commit([Write(table, key, None, row)])
        read = self.reader.read(table, key)
        self.store.commit([Write(table, key, row.revision, None)])
        return read

    def close(self) -> None:
        """Close both connections."""
        self.reader.close()
        self.store.close()


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    shelf = Shelf(tmp_path / "store.sqlite3", MIGRATIONS)
    yield shelf
    shelf.close()


@pytest.fixture(scope="module")
def broker_shelf() -> Iterator[Shelf]:
    """A store with the broker's own schema, for all examples of the property."""
    with tempfile.TemporaryDirectory() as folder:
        shelf = Shelf(Path(folder) / "store.sqlite3")
        yield shelf
        shelf.close()


# -- the codec -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "row",
    [
        PLAIN,
        attrs.evolve(PLAIN, colour=Colour.NONE),
        attrs.evolve(PLAIN, points=(Point(-(2**63)), Point(2**63 - 1, "ö")), tags=("", "ä")),
        attrs.evolve(PLAIN, note="", seen=False),
        attrs.evolve(PLAIN, note=None, seen=True, revision=2**63 - 1),
    ],
)
def test_every_kind_of_member_comes_back_as_it_was(shelf: Shelf, row: Picture) -> None:
    read = shelf.round_trip(PICTURES, row)
    assert read == row
    assert isinstance(read, Picture)
    assert type(read.colour) is Colour


@pytest.mark.parametrize("text", TEXTS)
def test_any_text_is_a_key_a_lookup_and_a_member(shelf: Shelf, text: str) -> None:
    row = attrs.evolve(PLAIN, name=text, owner=text, note=text, tags=(text,))
    shelf.store.commit([Write(PICTURES, text, None, PLAIN), Write(PICTURES, "other", None, PLAIN)])
    shelf.store.commit([Write(PICTURES, text, 1, attrs.evolve(row, revision=2))])
    assert shelf.reader.read(PICTURES, text) == attrs.evolve(row, revision=2)
    assert shelf.reader.look_up(PICTURES, "owner", text) == [attrs.evolve(row, revision=2)]


def test_rows_without_a_lookup_value_are_not_found_by_it(shelf: Shelf) -> None:
    shelf.store.commit([Write(PICTURES, "plain", None, PLAIN)])
    assert shelf.reader.look_up(PICTURES, "owner", "") == []
    assert shelf.reader.look_up(PICTURES, "owner", "None") == []


def test_a_row_of_an_older_broker_gets_the_defaults_of_members_that_it_has_not(shelf: Shelf) -> None:
    body = '{"name": "plain", "colour": "röt", "revision": 1}'
    shelf.store._db.execute("INSERT INTO pictures VALUES ('plain', 1, 1, ?, NULL)", [body])
    assert shelf.reader.read(PICTURES, "plain") == PLAIN


def test_a_row_with_a_member_that_nobody_knows_is_refused(shelf: Shelf) -> None:
    body = '{"name": "plain", "colour": "röt", "revision": 1, "weight": 3}'
    shelf.store._db.execute("INSERT INTO pictures VALUES ('plain', 1, 1, ?, NULL)", [body])
    with pytest.raises(InvalidValue):
        shelf.reader.read(PICTURES, "plain")


# -- the broker's own tables -----------------------------------------------------------------------------------


@pytest.mark.parametrize("table", STORED, ids=lambda table: table.name)
def test_every_stored_table_is_on_disk_with_its_lookups(broker_shelf: Shelf, table: AnyTable) -> None:
    columns = broker_shelf.store._db.execute(f'PRAGMA table_info("{table.name}")').fetchall()
    expected = ["key", "revision", "live", "body", *(f"by_{lookup}" for lookup in table.lookups)]
    assert [name for _, name, *_ in columns] == expected


def test_only_stored_tables_are_looked_up_on_disk_or_leave_memory() -> None:
    for table in merge(all_routes(protocol_table(Policy()))).tables:
        if table.keep is not Keep.STORED:
            assert not table.lookups
            assert not table.reads_disk
        assert set(table.lookups) <= set(table.indexes)


@pytest.mark.parametrize("table", STORED, ids=lambda table: table.name)
def test_any_row_of_every_stored_table_comes_back_as_it_was(broker_shelf: Shelf, table: AnyTable) -> None:
    broker_shelf.store._db.execute("PRAGMA synchronous=OFF")

    @hypothesis.given(strategy(table.row))
    @hypothesis.settings(max_examples=40, deadline=None)
    def check(row: Row) -> None:
        assert broker_shelf.round_trip(table, row) == row

    check()


def test_a_lookup_uses_its_index(broker_shelf: Shelf) -> None:
    plan = broker_shelf.store._db.execute(
        "EXPLAIN QUERY PLAN SELECT revision, body FROM requests WHERE by_client = 'x'"
    ).fetchall()
    assert "requests_by_client" in str(plan)


def test_looking_up_what_is_no_column_is_an_error_and_not_an_empty_answer(shelf: Shelf) -> None:
    with pytest.raises(sqlite3.OperationalError):
        shelf.reader.look_up(PICTURES, "colour", "red")
