"""Commits that fail: who is told what and when, and what a disk that refuses or that is lost leads to."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import trio
import trio.testing

from broker.daemon import committer as module
from broker.daemon.committer import StoreLost
from broker.daemon.store import Store
from handlers.rule import Keep
from tests.support.toy_broker import (
    FULL,
    IO_ERROR,
    PATIENCE_SECONDS,
    READ_ONLY,
    ToyBroker,
    get,
    open_toy_broker,
    owed_write,
    run_toy_broker,
    write,
)
from tests.support.toy_disk import BY_NAME
from tests.support.toy_routes import SETTINGS

BATCH_CALLS = ["before begin", "after begin", "before write papers", "after write papers", "before commit"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite3"


@pytest.fixture
async def broker(path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ToyBroker]:
    monkeypatch.setattr(module, "PROBE_EVERY_SECONDS", 0.001)
    async with run_toy_broker(path) as broker:
        yield broker


def stored_rows(broker: ToyBroker) -> dict[tuple[str, str], object]:
    """The rows in memory that must be on disk."""
    contents = broker.ledger.rows.contents()
    return {key: row for key, row in contents.items() if BY_NAME[key[0]].keep is Keep.STORED}


# -- an error, and a probe that gets to the disk -----------------------------------------------------------------


@pytest.mark.requirement("CP-4.12")
@pytest.mark.parametrize("call", BATCH_CALLS)
async def test_a_failed_commit_is_told_as_unsaved_and_the_next_one_works(
    broker: ToyBroker, call: str
) -> None:
    broker.submit(write(1, "x"))
    await broker.hear("told 1")
    broker.faults.fail_once(call, IO_ERROR)
    broker.submit(write(2, "x"), write(3, "y"))
    await broker.hear("unsaved 3")
    assert broker.told == ["told 1", "unsaved 2", "unsaved 3"]
    assert stored_rows(broker) == broker.on_disk()
    broker.submit(write(4, "x"), write(5, "y"))
    await broker.hear("told 5")
    assert stored_rows(broker) == broker.on_disk()
    assert broker.ledger.outstanding == 0


@pytest.mark.requirement("CP-4.12")
async def test_nobody_is_told_of_a_failure_before_a_probe_is_on_disk(broker: ToyBroker) -> None:
    gate = broker.faults.gate("before probe")
    broker.faults.fail_once("before commit", IO_ERROR)
    broker.submit(write(1, "x"))
    await gate.reached.wait()
    broker.submit(get(2, "x"))
    await trio.testing.wait_all_tasks_blocked()
    assert broker.told == []
    gate.open()
    await broker.hear("unsaved 1", "unsaved 2")


async def test_a_failed_commit_takes_back_what_was_decided_during_it(broker: ToyBroker) -> None:
    gate = broker.faults.gate("before commit")
    broker.faults.fail_once("before commit", IO_ERROR)
    broker.submit(write(1, "x"))
    await gate.reached.wait()
    broker.submit(write(2, "x"), write(3, "y"))
    gate.open()
    await broker.hear("unsaved 1", "unsaved 2", "unsaved 3")
    assert broker.on_disk() == stored_rows(broker) == {}


async def test_what_the_world_did_is_committed_after_a_failure(broker: ToyBroker) -> None:
    broker.faults.fail_once("before commit", IO_ERROR)
    broker.submit(owed_write(1, "x"), write(2, "y"))
    await broker.hear("told 1")
    assert broker.told == ["unsaved 2", "told 1"]
    assert {key for _, key in broker.on_disk()} == {"x"}


async def test_a_store_that_fails_again_and_again_is_given_a_rest(broker: ToyBroker) -> None:
    rest = (
        broker.faults.gate("before probe"),
        broker.faults.gate("before probe"),
        broker.faults.gate("before probe"),
    )
    broker.faults.fail("before write papers", IO_ERROR)
    broker.submit(owed_write(1, "x"))
    for gate in rest[:2]:  # the first failure and, at once, the second
        await gate.reached.wait()
        gate.open()
    await rest[2].reached.wait()  # the first probe of the rest
    assert broker.ledger.refusing
    assert broker.faults.count("before write papers") == 2
    broker.faults.mend()
    rest[2].open()
    await broker.hear("told 1")
    assert not broker.ledger.refusing


# -- a disk that refuses ---------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-4.12")
@pytest.mark.parametrize("error", [FULL, READ_ONLY], ids=["full", "read-only"])
async def test_while_the_disk_refuses_reads_go_on_and_writes_are_refused_until_a_probe_succeeds(
    broker: ToyBroker, error: Exception
) -> None:
    broker.submit(write(1, "x"))
    await broker.hear("told 1")
    broker.faults.fail("before write papers", error)
    broker.faults.fail("before probe", error)
    broker.submit(write(2, "x"), get(3, "x"))
    await broker.hear("unsaved 2", "unsaved 3")
    assert broker.ledger.refusing
    broker.submit(get(4, "x"), write(5, "x"), owed_write(6, "y"))
    assert broker.told[3:] == ["told 4", "unsaved 5"]
    assert broker.ledger.outstanding == 1
    broker.faults.mend()
    await broker.hear("told 6")
    broker.submit(write(7, "x"))
    await broker.hear("told 7")
    assert stored_rows(broker) == broker.on_disk()
    assert broker.ledger.outstanding == 0


async def test_a_refusing_disk_is_probed_again_and_again(broker: ToyBroker) -> None:
    broker.faults.fail("before probe", FULL)
    broker.faults.fail_once("before write papers", FULL)
    broker.submit(write(1, "x"))
    await broker.hear("unsaved 1")
    for _ in range(3):
        gate = broker.faults.gate("before probe")
        with trio.fail_after(PATIENCE_SECONDS):
            await gate.reached.wait()
        gate.open()
        assert broker.ledger.refusing


async def test_deadlines_pause_while_the_disk_refuses_and_come_afterwards(broker: ToyBroker) -> None:
    broker.submit(write(1, "x", SETTINGS, due=1_000))
    await broker.hear("told 1")
    broker.faults.fail("before write papers", FULL)
    broker.faults.fail("before probe", FULL)
    broker.submit(write(2, "y"))
    await broker.hear("unsaved 2")
    broker.clocks.advance(60)
    broker.fire_due()
    broker.submit(get(3, "y"))
    assert broker.told == ["told 1", "unsaved 2", "told 3"]
    broker.faults.mend()
    broker.submit(owed_write(4, "y"))
    await broker.hear("told 4")
    broker.fire_due()
    await broker.hear("due")
    assert stored_rows(broker) == broker.on_disk()


async def test_a_broker_that_starts_on_a_refusing_disk_goes_on_when_it_takes_writes(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PROBE_EVERY_SECONDS", 0.001)
    async with open_toy_broker(path) as broker, trio.open_nursery() as nursery:
        broker.faults.fail_once("before write papers", FULL)
        broker.ledger.decide(owed_write(1, "x"))
        await broker.committer.flush()
        assert broker.ledger.refusing
        nursery.start_soon(broker.committer.run)
        await broker.hear("told 1")
        nursery.cancel_scope.cancel()


async def test_an_end_while_the_disk_refuses_comes_at_once(path: Path) -> None:
    async with run_toy_broker(path) as broker:
        broker.faults.fail("before write papers", FULL)
        broker.submit(write(1, "x"), owed_write(2, "y"))
        await broker.hear("unsaved 1")
        calls = len(broker.faults.calls)
    assert broker.faults.count("before write papers") == 1
    assert len(broker.faults.calls) == calls


def page_limit(pages: int) -> Callable[[Store], None]:
    """A job for the store's thread: the file may not grow beyond this, as if the disk were full."""

    def limit(store: Store) -> None:
        store._db.execute(f"PRAGMA max_page_count={pages}")

    return limit


def query_only(value: bool) -> Callable[[Store], None]:
    """A job for the store's thread: SQLite refuses writes, as on a read-only file system."""

    def limit(store: Store) -> None:
        store._db.execute(f"PRAGMA query_only={int(value)}")

    return limit


@pytest.mark.requirement("CP-4.12")
async def test_sqlite_itself_says_full_although_a_small_probe_still_fits(broker: ToyBroker) -> None:
    await broker.thread.run(page_limit(1))  # SQLite takes the present size for 1
    big = [write(number, f"{number} {'x' * 4_000}") for number in range(10)]
    broker.submit(*big, get(100, "absent"))
    await broker.hear("unsaved 9")
    assert broker.told[0] == "told 100"
    assert broker.on_disk() == stored_rows(broker) == {}
    await broker.thread.run(page_limit(1_000_000))
    broker.submit(owed_write(101, "y"))
    await broker.hear("told 101")
    assert stored_rows(broker) == broker.on_disk()


@pytest.mark.requirement("CP-4.12")
async def test_sqlite_itself_says_read_only(broker: ToyBroker) -> None:
    await broker.thread.run(query_only(True))
    broker.submit(write(1, "x"), owed_write(2, "y"))
    await broker.hear("unsaved 1")
    assert broker.ledger.refusing
    await broker.thread.run(query_only(False))
    await broker.hear("told 2")


# -- a disk that is lost ---------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-4.12")
@pytest.mark.parametrize(
    ("commit_error", "probe_error"),
    [(IO_ERROR, IO_ERROR), (IO_ERROR, FULL), (IO_ERROR, READ_ONLY)],
    ids=["error and error", "error and full", "error and read-only"],
)
async def test_an_error_whose_probe_does_not_get_to_the_disk_ends_the_broker_and_nobody_is_told(
    path: Path, commit_error: Exception, probe_error: Exception
) -> None:
    async with open_toy_broker(path) as broker:
        broker.faults.fail("before commit", commit_error)
        broker.faults.fail("before probe", probe_error)
        broker.submit(write(1, "x"), owed_write(2, "y"), get(3, "x"))
        with pytest.raises(StoreLost):
            await broker.committer.run()
        broker.committer.kick()
        assert broker.told == []


async def test_a_disk_that_first_refuses_and_then_breaks_ends_the_broker(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PROBE_EVERY_SECONDS", 0.001)
    async with open_toy_broker(path) as broker:
        broker.faults.fail("before commit", FULL)
        broker.faults.fail("before probe", IO_ERROR)
        broker.submit(write(1, "x"))
        with pytest.raises(StoreLost):
            await broker.committer.run()
        assert broker.told == ["unsaved 1"]


async def test_an_error_without_a_code_is_no_refusal(path: Path) -> None:
    async with open_toy_broker(path) as broker:
        broker.faults.fail("before begin", sqlite3.OperationalError("database is locked"))
        broker.submit(write(1, "x"))
        with pytest.raises(StoreLost):
            await broker.committer.run()
        assert broker.told == []
