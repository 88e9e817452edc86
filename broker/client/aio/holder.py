"""Keeps apps open while a program drives them (LP-12): leases as context managers, with trio.

    async with lease("org.example.Editor"):
        ...                                     the app is not quit meanwhile

    async with Holder.open("My Agent") as holder:          several apps over one connection
        async with holder.lease("org.example.Editor", on_close_check=decide):
            ...

A task of the holder's own renews, answers close checks and connects again; each callback is a task as well.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import trio

from broker.client.aio.background import background
from broker.client.keeper import LeaseKeeper
from broker.client.keeping import CloseCheck, Extend, Hold, Verdict
from broker.client.leases import GIVE_BACK_SECONDS, Lease, close_check, new_keeper, verdict_of
from protocols.lease.messages import CanCloseRequest

OnCloseCheck: TypeAlias = Callable[[CloseCheck], Awaitable[Verdict]]


class Holder:
    """See the module header.  Tasks may share it."""

    def __init__(self, keeper: LeaseKeeper, tasks: trio.Nursery) -> None:
        self._keeper = keeper
        self._tasks = tasks
        self._leases: dict[Hold, tuple[Lease, OnCloseCheck | None]] = {}
        self._changed = trio.Event()
        self._sleep = trio.CancelScope()
        self._stopping = False

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls, name: str | None = None, *, path: Path | None = None, id: str | None = None
    ) -> AsyncIterator[Holder]:
        """A holder, for the block.

        `name` is what the owner of the machine is shown; default: the program's file name.  `path` is another socket
        than that of the user's own broker.  `id` stands for one process and is new by default.
        """
        async with background() as tasks:
            holder = cls(new_keeper(name, path, id), tasks)
            tasks.start_soon(holder._run)
            try:
                yield holder
            finally:
                holder._stopping = True
                holder._sleep.cancel()

    @contextlib.asynccontextmanager
    async def lease(
        self,
        app_key: str,
        *,
        seconds: int | None = None,
        on_close_check: OnCloseCheck | None = None,
        renew: bool = True,
        required: bool = True,
    ) -> AsyncIterator[Lease]:
        """Hold an app open during the block.

        `seconds` is the term, renewed at a third of it; default: ten minutes, or what the broker allows.
        `on_close_check` decides, with `Extend()` or `Allow()`, when a lease that ran out is asked about; default:
        extend.  What it raises keeps the app open, and is raised at the end of the block.  With `renew` false the
        lease runs out, so that every further term is the callback's decision.  With `required` false the block runs
        without a lease where there is none to be had, and it is tried for on the way.

        Raises LeaseRefused and NotConnected before the block, ValueError for a second lease on an app.
        """
        hold = Hold(app_key, seconds, renews=renew, decides=on_close_check is not None)
        one = Lease(hold)
        self._keeper.hold(hold)
        self._leases[hold] = one, on_close_check
        self._sleep.cancel()
        try:
            await self._wait(lambda: hold.answered or hold.failure is not None)
            if required and not hold.held and one.failure is not None:
                raise one.failure
            yield one
        finally:
            with trio.CancelScope(shield=True):
                await self._give_back(hold)
        if one.error is not None:
            raise one.error

    async def _give_back(self, hold: Hold) -> None:
        keeper = self._keeper
        keeper.give_back(hold)
        self._sleep.cancel()
        with trio.move_on_after(GIVE_BACK_SECONDS):
            await self._wait(lambda: hold not in keeper.holds or keeper.channel is None)
        del self._leases[hold]

    async def _wait(self, fact: Callable[[], bool]) -> None:
        while not fact():
            await self._changed.wait()

    # -- the tasks --------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        """Runs until it is told to stop, also while the block is cancelled: leases are given back in good order."""
        with trio.CancelScope(shield=True):
            while not self._stopping:
                await self._until_news()
                self._keeper.step()
                for hold, request in self._keeper.take_checks():
                    self._tasks.start_soon(self._decide, hold, request)
                self._changed.set()
                self._changed = trio.Event()
        self._close()

    async def _until_news(self) -> None:
        """Until something arrives, is due, or was told to the keeper."""
        with trio.CancelScope() as self._sleep:
            seconds = max(0.0, self._keeper.wake_at - time.monotonic())
            with trio.move_on_after(seconds):
                if self._keeper.channel is None:
                    await trio.sleep_forever()
                await trio.lowlevel.wait_readable(self._keeper.channel.fileno())

    def _close(self) -> None:
        if self._keeper.channel is not None:
            trio.lowlevel.notify_closing(self._keeper.channel.fileno())
        self._keeper.close()

    async def _decide(self, hold: Hold, request: CanCloseRequest) -> None:
        one, callback = self._leases.get(hold, (None, None))
        if one is None or callback is None:  # given back meanwhile
            return
        verdict: Verdict = Extend()
        try:
            verdict = verdict_of(await callback(close_check(request)))
        except Exception as error:
            one.error = error
        self._keeper.decide(hold, request, verdict)
        self._sleep.cancel()


@contextlib.asynccontextmanager
async def lease(
    app_key: str,
    *,
    name: str | None = None,
    path: Path | None = None,
    seconds: int | None = None,
    on_close_check: OnCloseCheck | None = None,
    renew: bool = True,
    required: bool = True,
) -> AsyncIterator[Lease]:
    """Hold one app open during the block, as a holder of its own; see `Holder` and `Holder.lease`."""
    async with (
        Holder.open(name, path=path) as holder,
        holder.lease(
            app_key, seconds=seconds, on_close_check=on_close_check, renew=renew, required=required
        ) as one,
    ):
        yield one
