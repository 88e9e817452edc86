"""ProcessWatch tells of each death once, with a pidfd and without, and keeps no descriptor."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AsyncExitStack

import attrs
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from broker.daemon.processes import ProcessWatch, open_pidfd
from protocols.process import ProcessId
from tests.support.children import child, identity, kill_uncollected


def no_pidfd(pid: int) -> int | None:
    return None


HAS_PIDFD = open_pidfd(os.getpid()) is not None
each_way = pytest.mark.parametrize(
    "pidfd",
    [
        pytest.param(open_pidfd, marks=pytest.mark.skipif(not HAS_PIDFD, reason="no pidfd here")),
        no_pidfd,
    ],
)
Pidfd = Callable[[int], int | None]


class Deaths:
    """A running watch and what it has told."""

    def __init__(self, pidfd: Pidfd) -> None:
        self.told: list[ProcessId] = []
        self._one = trio.Event()
        self.watch = ProcessWatch(self._died, poll_seconds=0.01, pidfd=pidfd)

    def _died(self, process: ProcessId) -> None:
        self.told.append(process)
        self._one.set()

    async def wait(self) -> None:
        with trio.fail_after(10):
            await self._one.wait()


def descriptors() -> int:
    return len(os.listdir("/dev/fd"))


@each_way
@pytest.mark.requirement("G24")
async def test_a_process_that_dies_uncollected_is_told_once(pidfd: Pidfd, nursery: trio.Nursery) -> None:
    deaths = Deaths(pidfd)
    nursery.start_soon(deaths.watch.run)
    with child() as process:
        watched = identity(process)
        deaths.watch.watch(watched)
        deaths.watch.watch(watched)
        await wait_all_tasks_blocked()
        assert deaths.told == []
        kill_uncollected(process)
        await deaths.wait()
    await wait_all_tasks_blocked(0.03)
    assert deaths.told == [watched]


@each_way
async def test_a_process_that_is_dead_already_is_told(pidfd: Pidfd, nursery: trio.Nursery) -> None:
    deaths = Deaths(pidfd)
    with child() as process:
        watched = identity(process)
    deaths.watch.watch(watched)  # before `run` is another moment that must do
    nursery.start_soon(deaths.watch.run)
    await deaths.wait()
    assert deaths.told == [watched]


@each_way
async def test_the_death_of_a_former_owner_of_the_pid_is_told(pidfd: Pidfd, nursery: trio.Nursery) -> None:
    deaths = Deaths(pidfd)
    nursery.start_soon(deaths.watch.run)
    with child() as process:
        former = attrs.evolve(identity(process), started="1")
        deaths.watch.watch(former)
        await deaths.wait()
        assert process.poll() is None
    assert deaths.told == [former]


@each_way
async def test_an_unwatched_process_dies_in_silence(pidfd: Pidfd, nursery: trio.Nursery) -> None:
    deaths = Deaths(pidfd)
    nursery.start_soon(deaths.watch.run)
    with child() as process, child() as other:
        deaths.watch.watch(identity(process))
        deaths.watch.watch(identity(other))
        await wait_all_tasks_blocked()
        deaths.watch.unwatch(identity(process))
        deaths.watch.unwatch(identity(process))
        expected = [identity(other)]
        kill_uncollected(process)
        kill_uncollected(other)
        await deaths.wait()
    assert deaths.told == expected


@each_way
async def test_a_process_can_be_watched_again(pidfd: Pidfd, nursery: trio.Nursery) -> None:
    deaths = Deaths(pidfd)
    nursery.start_soon(deaths.watch.run)
    with child() as process:
        watched = identity(process)
        deaths.watch.watch(watched)
        await wait_all_tasks_blocked()
        deaths.watch.unwatch(watched)
        deaths.watch.watch(watched)
        kill_uncollected(process)
        await deaths.wait()
    await wait_all_tasks_blocked(0.03)
    assert deaths.told == [watched]


@pytest.mark.skipif(not HAS_PIDFD, reason="no pidfd here")
async def test_no_descriptor_is_left_however_the_watching_ended() -> None:
    async with AsyncExitStack() as stack:
        processes = [stack.enter_context(child()) for _ in range(3)]
        watched = [identity(process) for process in processes]
        before = descriptors()
        deaths = Deaths(open_pidfd)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(deaths.watch.run)
            for process in watched:
                deaths.watch.watch(process)
            await wait_all_tasks_blocked()
            assert descriptors() == before + len(watched)
            deaths.watch.unwatch(watched[0])
            kill_uncollected(processes[1])
            await deaths.wait()
            await wait_all_tasks_blocked()
            assert descriptors() == before + 1
            nursery.cancel_scope.cancel()
        assert descriptors() == before
        assert deaths.told == [watched[1]]
