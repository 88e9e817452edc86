"""Batches go to a real SQLite file through a real thread, and only then do their effects happen."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
import trio.testing

from broker.daemon.store import StoreDisagrees
from tests.support.toy_broker import (
    PATIENCE_SECONDS,
    ToyBroker,
    get,
    open_toy_broker,
    run_toy_broker,
    write,
)
from tests.support.toy_routes import PARKED


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite3"


@pytest.fixture
async def broker(path: Path) -> AsyncIterator[ToyBroker]:
    async with run_toy_broker(path) as broker:
        yield broker


# -- group commit and pipelining -------------------------------------------------------------------------------


async def test_everything_that_is_decided_in_one_pass_shares_one_commit(broker: ToyBroker) -> None:
    broker.submit(*(write(number, key=f"row {number}") for number in range(50)))
    await broker.hear("told 49")
    assert broker.told == [f"told {number}" for number in range(50)]
    assert broker.faults.count("before commit") == 1
    assert len(broker.on_disk()) == 50


async def test_tasks_of_one_pass_share_one_commit(broker: ToyBroker) -> None:
    async def one(number: int) -> None:
        broker.submit(write(number, key=f"row {number}"))

    async with trio.open_nursery() as nursery:
        for number in range(10):
            nursery.start_soon(one, number)
    await broker.hear(*(f"told {number}" for number in range(10)))
    assert broker.faults.count("before commit") == 1


async def test_what_is_decided_during_a_commit_shares_the_next_one(broker: ToyBroker) -> None:
    gate = broker.faults.gate("before commit")
    broker.submit(write(1, "x"))
    await gate.reached.wait()
    broker.submit(write(2, "y"))
    await trio.testing.wait_all_tasks_blocked()
    broker.submit(write(3, "z"))
    assert broker.faults.count("before begin") == 1
    gate.open()
    await broker.hear("told 3")
    assert broker.told == ["told 1", "told 2", "told 3"]
    assert broker.faults.count("before commit") == 2


async def test_a_decision_that_stores_nothing_makes_no_commit(broker: ToyBroker) -> None:
    broker.submit(write(1, table=PARKED), get(2))
    assert broker.told == ["told 1", "told 2"]
    await trio.testing.wait_all_tasks_blocked()
    assert broker.faults.calls == []


# -- effects only after the commit -----------------------------------------------------------------------------


@pytest.mark.requirement("CP-4.12")
@pytest.mark.parametrize("call", ["before begin", "after write papers", "before commit", "after commit"])
async def test_a_commit_under_way_reveals_nothing_of_its_rows_and_holds_up_no_other(
    broker: ToyBroker, call: str
) -> None:
    broker.submit(write(1, "clean"))
    await broker.hear("told 1")
    gate = broker.faults.gate(call)
    broker.submit(write(2, "dirty"))
    await gate.reached.wait()
    broker.submit(get(3, "dirty"), get(4, "clean"), get(5, "absent"))
    await trio.testing.wait_all_tasks_blocked()
    assert broker.told == ["told 1", "told 4", "told 5"]
    gate.open()
    await broker.hear("told 3")
    assert broker.told == ["told 1", "told 4", "told 5", "told 2", "told 3"]


@pytest.mark.requirement("CP-4.12")
async def test_what_is_told_is_on_disk(broker: ToyBroker) -> None:
    seen: list[bool] = []
    broker.on_effect = lambda name: seen.append(("papers", name) in broker.on_disk())
    broker.submit(write(1, "told 1"))
    broker.submit(write(2, "told 2"))
    await broker.hear("told 2")
    assert seen == [True, True]


async def test_what_an_effect_leads_to_comes_after_the_effects_before_it(broker: ToyBroker) -> None:
    begun_and_ended: list[str] = []

    def chain(name: str) -> None:
        begun_and_ended.append(f"begin {name}")
        if name == "told 1":
            broker.submit(get(3, "absent"))
        begun_and_ended.append(f"end {name}")

    broker.on_effect = chain
    broker.submit(write(1, "x"), write(2, "y"))
    await broker.hear("told 3")
    names = ["told 1", "told 2", "told 3"]
    assert begun_and_ended == [f"{when} {name}" for name in names for when in ("begin", "end")]


async def test_a_long_chain_of_effects_does_not_grow_the_stack(broker: ToyBroker) -> None:
    def chain(name: str) -> None:
        number = int(name.removeprefix("told "))
        if number < 5_000:
            broker.submit(get(number + 1, "absent"))

    broker.on_effect = chain
    broker.submit(get(1, "absent"))
    assert broker.told[-1] == "told 5000"


# -- an orderly end --------------------------------------------------------------------------------------------


async def test_wait_quiet_waits_for_the_batch_on_its_way_and_the_open_one(broker: ToyBroker) -> None:
    gate = broker.faults.gate("before commit")
    broker.submit(write(1, "x"))
    await gate.reached.wait()
    broker.submit(write(2, "y"))
    gate.open()
    with trio.fail_after(PATIENCE_SECONDS):
        await broker.committer.wait_quiet()
    assert broker.told == ["told 1", "told 2"]
    assert broker.ledger.outstanding == 0


@pytest.mark.requirement("CP-4.12")
async def test_cancelling_abandons_no_commit_and_commits_what_was_decided(path: Path) -> None:
    async with open_toy_broker(path) as broker:
        gate = broker.faults.gate("before commit")
        ended = trio.Event()

        async def run(scope: trio.CancelScope) -> None:
            with scope:
                await broker.committer.run()
            ended.set()

        async with trio.open_nursery() as nursery:
            scope = trio.CancelScope()
            nursery.start_soon(run, scope)
            broker.submit(write(1, "x"))
            await gate.reached.wait()
            broker.submit(write(2, "y"))
            scope.cancel()
            await trio.testing.wait_all_tasks_blocked()
            assert not ended.is_set()
            assert broker.told == []
            gate.open()
            with trio.fail_after(PATIENCE_SECONDS):
                await ended.wait()
        assert broker.told == ["told 1", "told 2"]
        assert {key for _, key in broker.on_disk()} == {"x", "y"}
        assert broker.ledger.outstanding == 0


@pytest.mark.requirement("CP-4.12")
async def test_what_is_decided_after_the_cancelling_is_committed_too(path: Path) -> None:
    async with run_toy_broker(path) as broker:
        broker.submit(write(1, "x"))
        await broker.hear("told 1")
        broker.stop()
        broker.submit(write(2, "y"))
    assert broker.told == ["told 1", "told 2"]


async def test_flush_commits_everything_without_a_running_committer(path: Path) -> None:
    async with open_toy_broker(path) as broker:
        broker.submit(write(1, "x"))
        assert broker.told == []
        await broker.committer.flush()
        assert broker.told == ["told 1"]


@pytest.mark.requirement("CP-4.12")
async def test_a_disk_that_disagrees_ends_the_committer_and_nobody_is_told(path: Path) -> None:
    async with open_toy_broker(path) as broker:
        broker.submit(write(1, "x"))
        await broker.committer.flush()
        stranger = sqlite3.connect(path)
        stranger.execute("UPDATE papers SET revision = 5")
        stranger.commit()
        stranger.close()
        broker.submit(write(2, "x"))
        with pytest.raises(StoreDisagrees):
            await broker.committer.run()
        assert broker.told == ["told 1"]
