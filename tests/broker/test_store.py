"""The SQLite file: whole batches or nothing, the revision as an assertion, committed rows only for readers."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import attrs
import pytest

from broker.daemon.ledger import Write
from broker.daemon.migrations import MIGRATIONS as BROKER_MIGRATIONS
from broker.daemon.migrations import Step, rows_table
from broker.daemon.store import Reader, Store, StoreDisagrees, StoreTooNew
from tests.support.memory_disk import MemoryDisk
from tests.support.toy_routes import MIGRATIONS, PAPERS, PARKED, SETTINGS, TABLES, Item, ItemTable, order_of


class Hook:
    """A fault hook that writes down every call, and does at some what the test wants done."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.at: dict[str, Callable[[], object]] = {}

    def __call__(self, name: str) -> None:
        self.calls.append(name)
        if name in self.at:
            self.at[name]()


def fail() -> None:
    """What SQLite raises when the disk does not work."""
    raise sqlite3.OperationalError("injected")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite3"


@pytest.fixture
def hook() -> Hook:
    return Hook()


@pytest.fixture
def store(path: Path, hook: Hook) -> Iterator[Store]:
    store = Store(path, hook, MIGRATIONS)
    hook.calls.clear()
    yield store
    store.close()


@pytest.fixture
def reader(store: Store, path: Path) -> Iterator[Reader]:
    reader = Reader(path)
    yield reader
    reader.close()


def item(key: str, revision: int = 1, owner: str = "ann", value: int = 0, done: bool = False) -> Item:
    return Item(key, owner, value, done=done, revision=revision)


def insert(row: Item, table: ItemTable = PAPERS) -> Write:
    return Write(table, row.key, None, row)


def update(row: Item, before: int, table: ItemTable = PAPERS) -> Write:
    return Write(table, row.key, before, row)


def delete(key: str, before: int, table: ItemTable = PAPERS) -> Write:
    return Write(table, key, before, None)


def on_disk(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """What another connection finds in the toy tables."""
    db = sqlite3.connect(path)
    try:
        return {
            table: db.execute(f"SELECT key, revision, live FROM {table} ORDER BY key").fetchall()
            for table in ("papers", "settings")
        }
    finally:
        db.close()


# -- batches -------------------------------------------------------------------------------------------------


def test_a_batch_inserts_updates_and_deletes(store: Store, path: Path) -> None:
    store.commit([insert(item("x")), insert(item("y")), insert(item("a"), SETTINGS)])
    store.commit([update(item("x", 2), 1), delete("y", 1), insert(item("z"))])
    assert on_disk(path) == {"papers": [("x", 2, 1), ("z", 1, 1)], "settings": [("a", 1, 1)]}


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(insert(item("x")), id="insert of a row that is there"),
        pytest.param(update(item("x", 3), 2), id="update of another revision"),
        pytest.param(update(item("nowhere", 2), 1), id="update of no row"),
        pytest.param(delete("x", 2), id="delete of another revision"),
        pytest.param(delete("nowhere", 1), id="delete of no row"),
    ],
)
def test_a_revision_that_is_not_on_disk_is_an_error_and_nothing_of_the_batch_is_written(
    store: Store, path: Path, wrong: Write
) -> None:
    store.commit([insert(item("x"))])
    with pytest.raises(StoreDisagrees):
        store.commit([insert(item("y")), wrong, insert(item("z"))])
    assert on_disk(path)["papers"] == [("x", 1, 1)]
    store.commit([update(item("x", 2), 1)])
    assert on_disk(path)["papers"] == [("x", 2, 1)]


@pytest.mark.requirement("CP-5.7")
def test_the_store_and_its_side_files_are_their_owners_alone(store: Store, path: Path) -> None:
    store.commit([])
    modes = {stat.S_IMODE(file.stat().st_mode) for file in path.parent.glob(f"{path.name}*")}
    assert modes == {0o600}


def test_an_empty_batch_does_not_touch_the_disk(store: Store, hook: Hook) -> None:
    store.commit([])
    assert hook.calls == []


# -- reading -------------------------------------------------------------------------------------------------


def test_a_reader_finds_rows_by_key_and_by_lookup_settled_or_not(store: Store, reader: Reader) -> None:
    x, y, z = item("x"), item("y", done=True), item("z", owner="bob")
    store.commit([insert(x), insert(y), insert(z)])
    assert reader.read(PAPERS, "y") == y
    assert reader.read(PAPERS, "nowhere") is None
    assert set(map(repr, reader.look_up(PAPERS, "owner", "ann"))) == {repr(x), repr(y)}
    assert reader.look_up(PAPERS, "owner", "nobody") == []


def test_a_reader_finds_rows_in_order_and_counts_them_but_for_those_that_are_excepted(
    store: Store, reader: Reader
) -> None:
    disk = MemoryDisk()
    writes = [
        insert(item(f"{n:02d}", owner="ann" if n % 3 else "bob", value=n % 7, done=n % 2 == 0))
        for n in range(40)
    ]
    store.commit(writes)
    disk.apply(writes)
    for besides in ((), ("03",), tuple(f"{n:02d}" for n in range(0, 40, 3))):
        for owner in ("ann", "bob", "nobody"):
            assert reader.count(PAPERS, "owner", owner, besides) == disk.count(
                PAPERS, "owner", owner, besides
            )
        for first, last, limit in ((0, 9, 5), (2, 4, 50), (2, 2, 3), (5, 3, 9)):
            bounds = order_of(first), order_of(last + 1)
            expected = list(disk.up_to(PAPERS, "order", bounds, limit, besides))
            assert reader.up_to(PAPERS, "order", bounds, limit, besides) == expected


def test_more_rows_can_be_excepted_than_a_statement_has_parameters(store: Store, reader: Reader) -> None:
    store.commit([insert(item("x")), insert(item("y"))])
    besides = ["x", *map(str, range(300_000))]
    assert reader.count(PAPERS, "owner", "ann", besides) == 1
    assert reader.up_to(PAPERS, "owner", ("ann", "ann"), 9, besides) == [item("y")]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT revision, body FROM papers WHERE by_order BETWEEN '1' AND '2' ORDER BY by_order LIMIT 9",
        "SELECT COUNT(*) FROM papers WHERE by_owner = 'ann'",
    ],
)
def test_reading_in_order_and_counting_need_no_look_at_other_rows(store: Store, sql: str) -> None:
    plan = str(store._db.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall())
    assert "USING" in plan
    assert "INDEX papers_by_" in plan
    assert "TEMP B-TREE" not in plan


def test_a_lookup_follows_its_row(store: Store, reader: Reader) -> None:
    store.commit([insert(item("x", owner="ann"))])
    store.commit([update(item("x", 2, owner="bob"), 1)])
    assert reader.look_up(PAPERS, "owner", "ann") == []
    assert reader.look_up(PAPERS, "owner", "bob") == [item("x", 2, owner="bob")]


def test_a_reader_sees_no_row_before_its_commit(store: Store, reader: Reader, hook: Hook) -> None:
    seen: list[object] = []
    hook.at["before commit"] = hook.at["after commit"] = lambda: seen.append(reader.read(PAPERS, "x"))
    store.commit([insert(item("x"))])
    assert seen == [None, item("x")]


def test_a_reader_cannot_write(store: Store, reader: Reader) -> None:
    with pytest.raises(sqlite3.OperationalError):
        reader._db.execute("DELETE FROM papers")


def test_only_rows_that_are_not_settled_are_loaded(store: Store) -> None:
    live, settled, setting = item("x"), item("y", done=True), item("a")
    store.commit([insert(live), insert(settled), insert(setting, SETTINGS)])
    assert list(store.load(TABLES)) == [(PAPERS, live), (SETTINGS, setting)]
    store.commit([update(attrs.evolve(live, done=True, revision=2), 1)])
    assert list(store.load(TABLES)) == [(SETTINGS, setting)]


def test_tables_that_are_not_stored_are_not_looked_for(store: Store) -> None:
    assert list(store.load([PARKED])) == []


def test_rows_outlive_the_store(path: Path) -> None:
    first = Store(path, migrations=MIGRATIONS)
    first.commit([insert(item("x"))])
    first.close()
    second = Store(path, migrations=MIGRATIONS)
    assert list(second.load(TABLES)) == [(PAPERS, item("x"))]
    second.close()


def test_a_row_whose_body_tells_another_revision_is_not_trusted(
    store: Store, reader: Reader, path: Path
) -> None:
    store.commit([insert(item("x"))])
    with sqlite3.connect(path) as db:
        db.execute("UPDATE papers SET revision = 2")
    db.close()
    with pytest.raises(StoreDisagrees):
        reader.read(PAPERS, "x")


# -- faults --------------------------------------------------------------------------------------------------

BATCH_CALLS = [
    f"{when} {call}"
    for call in ("begin", "write papers", "write settings", "commit")
    for when in ("before", "after")
]
BATCH = [insert(item("x")), insert(item("a"), SETTINGS)]


def test_the_hook_is_called_before_and_after_every_call_of_a_batch_and_of_a_probe(
    store: Store, hook: Hook
) -> None:
    store.commit(BATCH)
    assert hook.calls == BATCH_CALLS
    hook.calls.clear()
    store.probe()
    calls = [f"{when} {call}" for call in ("begin", "probe", "commit") for when in ("before", "after")]
    assert hook.calls == calls


@pytest.mark.requirement("CP-4.12")
@pytest.mark.parametrize("call", BATCH_CALLS[:-1])
def test_whichever_call_fails_nothing_of_the_batch_is_on_disk_and_the_next_one_works(
    store: Store, hook: Hook, path: Path, call: str
) -> None:
    hook.at[call] = fail
    with pytest.raises(sqlite3.OperationalError):
        store.commit(BATCH)
    assert on_disk(path) == {"papers": [], "settings": []}
    hook.at.clear()
    store.probe()
    store.commit(BATCH)
    assert on_disk(path) == {"papers": [("x", 1, 1)], "settings": [("a", 1, 1)]}


@pytest.mark.parametrize("call", ["before begin", "before probe", "before commit"])
def test_a_probe_that_fails_says_so(store: Store, hook: Hook, call: str) -> None:
    hook.at[call] = fail
    with pytest.raises(sqlite3.OperationalError):
        store.probe()
    hook.at.clear()
    store.probe()


# -- opening -------------------------------------------------------------------------------------------------


def version_of(path: Path) -> int:
    db = sqlite3.connect(path)
    (version,) = db.execute("PRAGMA user_version").fetchone()
    db.close()
    assert isinstance(version, int)
    return version


def tables_of(path: Path) -> set[str]:
    db = sqlite3.connect(path)
    names = {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    db.close()
    return names


def test_a_new_file_is_migrated_from_version_0(path: Path) -> None:
    Store(path).close()
    assert version_of(path) == len(BROKER_MIGRATIONS)
    assert {"probe", "clients", "requests", "leases"} <= tables_of(path)


def test_opening_a_store_of_the_same_version_changes_nothing(path: Path, hook: Hook) -> None:
    Store(path, hook, MIGRATIONS).close()
    hook.calls.clear()
    Store(path, hook, MIGRATIONS).close()
    assert hook.calls == []


def test_only_the_missing_steps_are_done(path: Path) -> None:
    first = Store(path, migrations=MIGRATIONS)
    first.commit([insert(item("x"))])
    first.close()
    later: tuple[Step, ...] = (*MIGRATIONS, rows_table("stamps"), ("DROP TABLE settings",))
    second = Store(path, migrations=later)
    assert list(second.load([PAPERS])) == [(PAPERS, item("x"))]
    second.close()
    assert version_of(path) == 3
    assert tables_of(path) == {"probe", "papers", "stamps"}


def test_a_store_of_a_newer_version_is_refused_and_left_alone(path: Path) -> None:
    Store(path, migrations=(*MIGRATIONS, rows_table("stamps"))).close()
    with pytest.raises(StoreTooNew):
        Store(path, migrations=MIGRATIONS)
    assert version_of(path) == 2


@pytest.mark.parametrize("nth", range(8))
def test_a_step_that_is_interrupted_leaves_the_version_before_it(path: Path, nth: int) -> None:
    calls = 0

    def interrupt(name: str) -> None:
        nonlocal calls
        calls += 1
        if calls == nth + 1:
            raise KeyboardInterrupt

    step = ("CREATE TABLE one (a)", "CREATE TABLE two (b)")
    Store(path, migrations=MIGRATIONS).close()
    with pytest.raises(KeyboardInterrupt):
        Store(path, interrupt, (*MIGRATIONS, step))
    assert version_of(path) == 1
    assert tables_of(path) == {"probe", "papers", "settings"}
    Store(path, migrations=(*MIGRATIONS, step)).close()
    assert version_of(path) == 2
    assert tables_of(path) == {"probe", "papers", "settings", "one", "two"}


@pytest.mark.parametrize(
    ("pragma", "value"),
    [
        ("journal_mode", "wal"),
        ("synchronous", 2),
        ("secure_delete", 1),
        ("temp_store", 2),
        ("trusted_schema", 0),
    ],
)
def test_the_writing_connection_is_set_up_for_durability(store: Store, pragma: str, value: object) -> None:
    assert store._db.execute(f"PRAGMA {pragma}").fetchone() == (value,)


@pytest.mark.requirement("CP-4.14")
def test_of_many_rows_that_sqlite_has_moved_about_nothing_is_left_in_a_rewritten_file(
    store: Store, path: Path
) -> None:
    """Zeroing a deleted row where it lay last is not enough: that left copies of some of these."""
    random = Random(2)
    secret = "a very particular secret "
    keys = [random.randbytes(16).hex() for _ in range(2_000)]
    for start in range(0, len(keys), 16):
        rows = [item(key, owner=_of_any_size(random, secret if n % 2 else "x")) for n, key in enumerate(keys)]
        store.commit([insert(row) for row in rows[start : start + 16]])
    store.commit([delete(key, 1) for key in keys[1::2]])
    store.rewrite()
    assert store.truncate_log()
    content = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert secret.encode() not in content
    assert len(on_disk(path)["papers"]) == 1_000


def _of_any_size(random: Random, text: str) -> str:
    return text * random.choice((1, 3, 20, 60, 400))


def test_the_log_is_not_truncated_while_somebody_reads_it_and_nobody_waits_for_that(
    store: Store, path: Path
) -> None:
    store.commit([insert(item("x"))])
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT COUNT(*) FROM papers").fetchone()
        store.commit([insert(item("y"))])
        assert store.truncate_log() is False
        store.commit([insert(item("z"))])
    assert store.truncate_log() is True
    assert path.with_name(f"{path.name}-wal").stat().st_size == 0
    assert store._db.execute("PRAGMA busy_timeout").fetchone() == (5_000,)


def test_the_hook_is_called_for_the_rewriting_and_the_truncating(store: Store, hook: Hook) -> None:
    store.rewrite()
    store.truncate_log()
    assert hook.calls == [
        f"{when} {call}" for call in ("rewrite", "truncate") for when in ("before", "after")
    ]


@pytest.mark.requirement("CP-4.14")
def test_deleted_and_replaced_text_is_not_left_in_the_file(store: Store, path: Path) -> None:
    secret, other = "a very particular secret", "another particular secret"
    store.commit([insert(item("x", owner=secret)), insert(item("y", owner=other))])
    store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert secret.encode() in path.read_bytes()
    store.commit([delete("x", 1), update(item("y", 2, owner="nobody"), 1)])
    assert store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    content = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert secret.encode() not in content
    assert other.encode() not in content
