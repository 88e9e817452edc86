"""Moves batches from the ledger to the disk and their effects from the ledger into the world.

One task and one thread.  The task takes the open batch at the end of a scheduler pass when the thread is free, so
that everything decided in the pass shares one fsync; the thread owns the SQLite connection and wakes the task when
the batch is on disk.  Effects are carried out by this task; they cannot fail a decision.

When a commit fails because the disk is full, read-only or locked by somebody else, the ledger refuses writes until
a small probe write gets to the disk; it is tried each second.  After any other error it is not known whether the
batch will come back, so nothing is told until the probe is on disk; if that fails too the broker ends and tells
nobody.  A store that fails twice in a row rests like a full one, so that owed events, which are decided again,
cannot keep it busy.
"""

from __future__ import annotations

import queue
import sqlite3
import threading
from collections.abc import Callable
from typing import TypeVar

import attrs
import trio

from broker.daemon.ledger import Ledger, Write
from broker.daemon.store import Store
from handlers.rule import Effect

PROBE_EVERY_SECONDS = 1.0
T = TypeVar("T")
_REFUSALS = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


class StoreLost(Exception):
    """Ours: the store can be neither written nor trusted; the broker ends without telling anybody anything."""


@attrs.define(eq=False)
class _Job:
    """Something to do with the store, and what came of it."""

    work: Callable[[Store], None]
    done: trio.Event = attrs.field(factory=trio.Event)
    failure: BaseException | None = None


class StoreThread:
    """The thread that owns the store; one job at a time, none abandoned."""

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self._open_store = open_store
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="store", daemon=True)
        self._token = trio.lowlevel.current_trio_token()

    async def start(self) -> None:
        """Open the store in its thread; raises what opening raises."""
        self._thread.start()
        await self.run(lambda store: None)

    async def run(self, work: Callable[[Store], T]) -> T:
        """Do something in the thread, whatever is cancelled meanwhile; raises what the work raises."""
        results: list[T] = []
        job = _Job(lambda store: results.append(work(store)))
        self._jobs.put(job)
        with trio.CancelScope(shield=True):
            await job.done.wait()
        if job.failure is not None:
            raise job.failure
        return results[0]

    def stop(self) -> None:
        """Close the store and end the thread."""
        self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        try:
            store = self._open_store()
        except BaseException as error:
            if (first := self._jobs.get()) is not None:
                self._finish(first, error)
            return
        try:
            while (job := self._jobs.get()) is not None:
                try:
                    job.work(store)
                    failure = None
                except BaseException as error:
                    failure = error
                self._finish(job, failure)
        finally:
            store.close()

    def _finish(self, job: _Job, failure: BaseException | None) -> None:
        job.failure = failure
        self._token.run_sync_soon(job.done.set)


class Committer:
    """See the module header.  `perform` carries out one effect and never raises."""

    def __init__(self, ledger: Ledger, thread: StoreThread, perform: Callable[[Effect], None]) -> None:
        self._ledger = ledger
        self._thread = thread
        self._perform = perform
        self._work = trio.Event()
        self._progress = trio.Event()
        self._carrying_out = False
        self._last_failed = False

    def kick(self) -> None:
        """Something was decided: carry out what is ready, commit the rest at the end of this pass."""
        self.carry_out()
        if self._ledger.has_batch:
            self._work.set()

    def carry_out(self) -> None:
        """Carry out every effect that is ready, one after the other: what an effect leads to comes after it."""
        if self._carrying_out:
            return
        self._carrying_out = True
        try:
            while (effect := self._ledger.take_ready()) is not None:
                self._perform(effect)
        finally:
            self._carrying_out = False

    async def run(self) -> None:
        """Commit for ever; when cancelled, the batches that were decided are committed first."""
        try:
            while True:
                if self._ledger.refusing:
                    await self._wait_until_writable()
                await self._work.wait()
                self._work = trio.Event()
                await self.flush()
        finally:
            if not self._ledger.refusing:
                with trio.CancelScope(shield=True):
                    await self.flush()

    async def wait_quiet(self) -> None:
        """Wait until everything that was decided is on disk, or was refused."""
        while self._ledger.busy:
            await self._progress.wait()

    async def flush(self) -> None:
        """Commit until nothing is left to commit."""
        while (batch := self._ledger.take_batch()) is not None:
            await self._commit(batch.writes())
            self.carry_out()
            self._progress.set()
            self._progress = trio.Event()

    async def settle(self) -> None:
        """Commit what was decided, however long the disk takes no writes; owed events are decided again."""
        await self.flush()
        while self._ledger.refusing:
            await self._wait_until_writable()
            await self.flush()

    async def _commit(self, writes: list[Write]) -> None:
        try:
            await self._thread.run(lambda store: store.commit(writes))
        except sqlite3.Error as error:
            await self._take_back(error)
            self._last_failed = True
        else:
            self._ledger.committed()
            self._last_failed = False

    async def _take_back(self, error: sqlite3.Error) -> None:
        refused = _is_refusal(error)
        if not refused and not await self._probe():
            raise StoreLost from error  # nobody knows whether the batch will come back
        self._ledger.failed(refusing=refused or self._last_failed)

    async def _wait_until_writable(self) -> None:
        while True:
            await trio.sleep(PROBE_EVERY_SECONDS)
            if await self._probe():
                self._ledger.resume()
                self.kick()
                return

    async def _probe(self) -> bool:
        """Whether a small write gets to the disk; StoreLost when the disk can no longer be trusted."""
        try:
            await self._thread.run(lambda store: store.probe())
        except sqlite3.Error as error:
            if _is_refusal(error):
                return False
            raise StoreLost from error
        return True


def _is_refusal(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and (code & 0xFF) in _REFUSALS
