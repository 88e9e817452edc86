"""The thread that owns the store: one job after the other, none abandoned, errors where they belong."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest
import trio
import trio.testing

from broker.daemon.committer import StoreThread
from broker.daemon.migrations import rows_table
from broker.daemon.store import Store, StoreTooNew
from tests.support.toy_broker import PATIENCE_SECONDS, Gate
from tests.support.toy_routes import MIGRATIONS


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite3"


def toy_thread(path: Path) -> StoreThread:
    """A thread for a toy store, not started."""
    return StoreThread(lambda: Store(path, migrations=MIGRATIONS))


async def test_the_store_is_opened_and_used_in_one_thread_of_its_own(path: Path) -> None:
    threads: list[threading.Thread] = []

    def open_store() -> Store:
        threads.append(threading.current_thread())
        return Store(path, migrations=MIGRATIONS)

    thread = StoreThread(open_store)
    await thread.start()
    await thread.run(lambda store: threads.append(threading.current_thread()))
    thread.stop()
    assert threads[0] is threads[1] is not threading.current_thread()
    assert not threads[0].is_alive()


async def test_start_raises_what_opening_raises_and_the_thread_ends(path: Path) -> None:
    Store(path, migrations=(*MIGRATIONS, rows_table("stamps"))).close()
    thread = toy_thread(path)
    before = threading.active_count()
    with pytest.raises(StoreTooNew):
        await thread.start()
    thread.stop()
    assert threading.active_count() == before


async def test_a_job_raises_where_it_was_asked_for_and_the_next_one_works(path: Path) -> None:
    thread = toy_thread(path)
    await thread.start()

    def fail(store: Store) -> None:
        raise sqlite3.OperationalError("injected")

    with pytest.raises(sqlite3.OperationalError):
        await thread.run(fail)
    await thread.run(Store.probe)
    thread.stop()


async def test_jobs_asked_for_at_once_are_done_one_after_the_other_and_all_are_told(path: Path) -> None:
    thread = toy_thread(path)
    await thread.start()
    done: list[int] = []
    with trio.fail_after(PATIENCE_SECONDS):
        async with trio.open_nursery() as nursery:
            for number in range(10):
                nursery.start_soon(thread.run, lambda store, number=number: done.append(number))
    thread.stop()
    assert sorted(done) == list(range(10))


async def test_a_cancelled_job_is_waited_for(path: Path) -> None:
    thread = toy_thread(path)
    await thread.start()
    gate = Gate()
    ended = trio.Event()

    async def ask(scope: trio.CancelScope) -> None:
        with scope:
            await thread.run(lambda store: gate.hold())
        ended.set()

    async with trio.open_nursery() as nursery:
        scope = trio.CancelScope()
        nursery.start_soon(ask, scope)
        await gate.reached.wait()
        scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert not ended.is_set()
        gate.open()
        with trio.fail_after(PATIENCE_SECONDS):
            await ended.wait()
    thread.stop()


async def test_stop_closes_the_store(path: Path) -> None:
    thread = toy_thread(path)
    await thread.start()
    stores: list[Store] = []
    await thread.run(stores.append)
    thread.stop()
    with pytest.raises(sqlite3.ProgrammingError):
        stores[0].probe()
