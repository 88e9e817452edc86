"""What lies in the store's place: a whole store is opened, a damaged one kept aside, anything else left alone."""

from __future__ import annotations

import os
import random
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import attrs
import pytest

from broker.daemon.errors import StartRefused
from broker.daemon.ledger import Write
from broker.daemon.migrations import Step, rows_table
from broker.daemon.store import Store, StoreTooNew
from broker.daemon.store_file import damaged_at, open_store
from tests.support.toy_routes import MIGRATIONS, PAPERS, TABLES, Item

WALL_MS = 1_800_000_000_123
NOBODY = 65_534
ASIDE = "store.sqlite3.damaged-20270115T080000.123Z"

pytestmark = pytest.mark.requirement("CP-4.15", "G22")


@attrs.define
class Place:
    """Where a store lies, and what was warned of."""

    path: Path
    warned: list[tuple[str, str]] = attrs.field(factory=list)

    def open(self, wall_ms: int = WALL_MS, migrations: tuple[Step, ...] = MIGRATIONS) -> Store:
        warn = lambda reason, name: self.warned.append((reason, name))  # noqa: E731
        return open_store(self.path, TABLES, wall_ms=wall_ms, warn=warn, migrations=migrations)

    def items(self) -> list[str]:
        """Open it and close it again; the keys of the papers that it holds."""
        store = self.open()
        papers = [row.key for table, row in store.load(TABLES) if table is PAPERS and isinstance(row, Item)]
        store.close()
        return papers

    def fill(self, papers: int = 400) -> bytes:
        """Make a store of several pages; its content."""
        store = self.open()
        store.commit([Write(PAPERS, f"{n:04d}", None, _paper(f"{n:04d}")) for n in range(papers)])
        store.close()
        return self.path.read_bytes()

    def names(self) -> set[str]:
        return {file.name for file in self.path.parent.iterdir()}


def _paper(key: str) -> Item:
    return Item(key, "ann", 1, revision=1)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "store.sqlite3")


# -- a store that can be used ------------------------------------------------------------------------------------


def test_a_fresh_store_is_whole_private_and_without_side_files_of_its_making(place: Place) -> None:
    store = place.open()
    assert place.names() <= {"store.sqlite3", "store.sqlite3-wal", "store.sqlite3-shm"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in place.path.parent.iterdir()} == {0o600}
    store.close()
    assert place.warned == []
    assert damaged_at(place.path) is None


def test_a_whole_store_is_opened_with_everything_in_it(place: Place) -> None:
    place.fill(3)
    assert place.items() == ["0000", "0001", "0002"]
    assert place.warned == []


def test_what_a_crash_left_in_the_log_is_there(place: Place) -> None:
    """A killed broker leaves its store with a log beside it, which holds the newest commits."""
    folder = place.path.parent
    store = place.open()
    store.commit([Write(PAPERS, "x", None, _paper("x"))])
    left = {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.endswith("-shm")}
    store.close()
    for name, content in left.items():
        (folder / name).write_bytes(content)
    assert "store.sqlite3-wal" in left
    assert place.items() == ["x"]
    assert place.warned == []


def test_a_store_whose_making_was_interrupted_is_made_anew(place: Place) -> None:
    place.path.with_name("store.sqlite3.new").write_bytes(b"half a store")
    place.path.with_name("store.sqlite3.new-wal").write_bytes(b"and its log")
    place.open().close()
    assert place.names() == {"store.sqlite3"}
    assert place.warned == []


def test_a_store_that_others_may_read_is_made_private(place: Place) -> None:
    place.fill(1)
    place.path.chmod(0o644)
    assert place.items() == ["0000"]
    assert stat.S_IMODE(place.path.stat().st_mode) == 0o600


def test_a_store_of_a_newer_version_is_refused_and_not_taken_for_damage(place: Place) -> None:
    place.open(migrations=(*MIGRATIONS, rows_table("stamps"))).close()
    with pytest.raises(StoreTooNew):
        place.open()
    assert place.names() == {"store.sqlite3"}


# -- a damaged one -----------------------------------------------------------------------------------------------


def _random_bytes(content: bytes) -> bytes:
    return random.Random(7).randbytes(len(content))


def _zeroed_page(content: bytes) -> bytes:
    return content[:8192] + bytes(4096) + content[12288:]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "one byte": lambda content: content[:1],
    "half a header": lambda content: content[:50],
    "a header": lambda content: content[:100],
    "half a file": lambda content: content[: len(content) // 2],
    "a page short": lambda content: content[:-4096],
    "a byte short": lambda content: content[:-1],
    "random bytes": _random_bytes,
    "zeros": lambda content: bytes(len(content)),
    "a page of zeros": _zeroed_page,
    "text": lambda content: b'{"clients": [',
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_store_is_moved_aside_as_it_was_and_a_fresh_one_begun(place: Place, damage: str) -> None:
    damaged = DAMAGES[damage](place.fill())
    place.path.write_bytes(damaged)
    assert place.items() == []
    assert place.path.with_name(ASIDE).read_bytes() == damaged
    assert [name for _, name in place.warned] == [ASIDE]
    assert damaged_at(place.path) == WALL_MS


def test_a_fresh_store_after_damage_keeps_what_is_put_into_it(place: Place) -> None:
    place.path.write_bytes(b"")
    place.fill(2)
    assert place.items() == ["0000", "0001"]
    assert len(place.warned) == 1


def test_another_programs_database_is_no_store(place: Place) -> None:
    with sqlite3.connect(place.path) as db:
        db.execute("CREATE TABLE bookmarks (url TEXT)")
    db.close()
    assert place.items() == []
    assert ASIDE in place.names()


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param("DROP TABLE papers", id="a table is missing"),
        pytest.param("UPDATE papers SET body = '{\"key\": ' WHERE key = '0000'", id="half a row"),
        pytest.param("UPDATE papers SET revision = 7 WHERE key = '0000'", id="a row of another revision"),
        pytest.param("UPDATE papers SET body = CAST(x'ff00ff' AS TEXT) WHERE key = '0000'", id="no text"),
    ],
)
def test_a_store_whose_rows_cannot_be_read_is_damaged(place: Place, spoil: str) -> None:
    place.fill(2)
    with sqlite3.connect(place.path) as db:
        db.execute(spoil)
    db.close()
    assert place.items() == []
    assert ASIDE in place.names()


def test_the_side_files_go_with_their_store(place: Place) -> None:
    place.path.write_bytes(b"damaged")
    place.path.with_name("store.sqlite3-wal").write_bytes(b"its log")
    place.path.with_name("store.sqlite3-shm").write_bytes(b"its index")
    assert place.items() == []
    assert place.path.with_name(f"{ASIDE}-wal").read_bytes() == b"its log"
    assert place.names() == {"store.sqlite3", ASIDE, f"{ASIDE}-wal", f"{ASIDE}-shm"}


def test_a_log_without_its_store_is_not_read_into_a_fresh_one(place: Place) -> None:
    store = place.open()
    store.commit([Write(PAPERS, "x", None, _paper("x"))])
    log = place.path.with_name("store.sqlite3-wal").read_bytes()
    store.close()
    place.path.unlink()
    place.path.with_name("store.sqlite3-wal").write_bytes(log)
    assert place.items() == []
    assert damaged_at(place.path) == WALL_MS


def test_a_second_damage_of_the_same_instant_gets_a_name_of_its_own(place: Place) -> None:
    for content in (b"first", b"second"):
        place.path.write_bytes(content)
        assert place.items() == []
    assert place.path.with_name(ASIDE).read_bytes() == b"first"
    assert place.path.with_name(ASIDE.replace(".123Z", ".124Z")).read_bytes() == b"second"
    assert damaged_at(place.path) == WALL_MS + 1


def test_a_crash_between_moving_aside_and_beginning_anew_does_not_hide_the_loss(place: Place) -> None:
    place.path.write_bytes(b"damaged")
    place.path.rename(place.path.with_name(ASIDE))
    assert place.items() == []
    assert damaged_at(place.path) == WALL_MS


def test_names_that_only_look_like_ours_tell_of_no_damage(place: Place) -> None:
    for name in (
        "store.sqlite3.damaged-99999999T999999.000Z",
        "store.sqlite3.damaged-by-me",
        "other.damaged",
    ):
        place.path.with_name(name).write_bytes(b"")
    assert damaged_at(place.path) is None


# -- what is not ours to judge -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["folder", "link", "link to nothing", "pipe"])
def test_what_is_no_regular_file_refuses_the_start_and_stays(place: Place, kind: str) -> None:
    elsewhere = place.path.with_name("elsewhere")
    if kind == "folder":
        place.path.mkdir()
    elif kind == "pipe":
        os.mkfifo(place.path)
    else:
        if kind == "link":
            elsewhere.write_bytes(b"")
        place.path.symlink_to(elsewhere)
    before = place.names()
    with pytest.raises(StartRefused, match="is not a regular file"):
        place.open()
    assert place.names() == before
    assert place.warned == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_another_users_store_refuses_the_start_and_stays(place: Place) -> None:
    content = place.fill(1)
    os.chown(place.path, NOBODY, -1)
    with pytest.raises(StartRefused, match="belongs to another user"):
        place.open()
    assert place.path.read_bytes() == content


def test_a_store_that_another_program_keeps_locked_is_not_damaged(place: Place) -> None:
    place.fill(1)
    with closing(sqlite3.connect(place.path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StartRefused, match="cannot be opened: SQLITE_BUSY"):
            place.open()
    assert place.items() == ["0000"]


def test_a_store_that_its_owner_may_not_read_is_moved_aside(short_path: Path) -> None:
    place = Place(short_path / "store.sqlite3")
    content = place.fill(1)
    place.path.chmod(0)
    with _whom_modes_keep_out(short_path, place.path):
        place.open().close()
    aside = place.path.with_name(ASIDE)
    aside.chmod(0o600)
    assert aside.read_bytes() == content
    assert place.warned == [("unreadable", ASIDE)]


@contextmanager
def _whom_modes_keep_out(*paths: Path) -> Iterator[None]:
    """Act as a user whom the modes of files keep out, as they do everybody but root; the paths are that user's."""
    if os.geteuid() != 0:
        yield
        return
    for path in paths:
        os.chown(path, NOBODY, -1)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
