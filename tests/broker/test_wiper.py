"""Scrubbing is tried until it has worked, and the profiles of a revoked client go meanwhile."""

from __future__ import annotations

import io
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import attrs
import pytest
import trio
from trio.testing import MockClock

from broker.credentials import Credential, list_profiles, write_credential
from broker.daemon.committer import StoreThread
from broker.daemon.logs import Log
from broker.daemon.store import Store
from broker.daemon.wiper import AGAIN_SECONDS, Wiper
from handlers.events import ForgetKey, Scrub, Scrubbed
from handlers.rule import Event

pytestmark = pytest.mark.requirement("CP-4.14")


@attrs.define
class Bench:
    """A wiper over a real store whose calls fail as often as the test says."""

    folder: Path
    failing: dict[str, int] = attrs.field(factory=dict)
    calls: list[str] = attrs.field(factory=list)
    told: list[Event] = attrs.field(factory=list)
    logged: io.StringIO = attrs.field(factory=io.StringIO)

    def fault(self, name: str) -> None:
        self.calls.append(name)
        if self.failing.get(name, 0) > 0:
            self.failing[name] -= 1
            raise sqlite3.OperationalError("the disk is full")

    @asynccontextmanager
    async def wiper(self) -> AsyncIterator[Wiper]:
        """The wiper; its tasks are over when the block is."""
        thread = StoreThread(partial(Store, self.folder / "store.db", self.fault))
        await thread.start()
        self.calls.clear()
        try:
            async with trio.open_nursery() as nursery:
                yield Wiper(thread, nursery, self.folder, Log(self.logged), self.told.append)
        finally:
            thread.stop()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    tmp_path.chmod(0o700)
    return Bench(tmp_path)


async def test_the_file_is_rewritten_then_the_log_is_emptied_then_that_is_told(bench: Bench) -> None:
    async with bench.wiper() as wiper:
        wiper.scrub(Scrub("c1", 3))
    assert bench.calls == ["before rewrite", "after rewrite", "before truncate", "after truncate"]
    assert bench.told == [Scrubbed("c1", 3)]
    assert bench.logged.getvalue() == ""


@pytest.mark.parametrize("call", ["before rewrite", "before truncate"])
async def test_a_disk_that_takes_nothing_is_tried_again_until_it_does(
    bench: Bench, autojump_clock: MockClock, call: str
) -> None:
    bench.failing[call] = 30
    async with bench.wiper() as wiper:
        wiper.scrub(Scrub("c1", 1))
    assert bench.calls.count(call) == 31
    assert bench.calls.count("after rewrite") == 1
    assert bench.told == [Scrubbed("c1", 1)]
    assert bench.logged.getvalue().count("store_not_scrubbed_yet") == 1
    assert trio.current_time() >= AGAIN_SECONDS


async def test_only_the_profiles_of_that_client_are_forgotten(bench: Bench) -> None:
    for profile, client_id in (("one", "c1"), ("two", "c2"), ("three", "c1")):
        write_credential(bench.folder, profile, Credential(client_id, ("notify",), "k" * 43))
    async with bench.wiper() as wiper:
        wiper.forget(ForgetKey("c1"))
    assert list_profiles(bench.folder) == ["two"]
    assert "count=2" in bench.logged.getvalue()
    assert "c1" not in bench.logged.getvalue()
