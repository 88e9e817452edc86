"""A ledger of the toy protocol on a real SQLite file, with a real store thread and a committer: real time, no sleeps.

`Faults` is the store's hook: it writes down every call, makes some fail, and holds the store's thread at others.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from broker.daemon.clocks import ManualClocks
from broker.daemon.committer import Committer, StoreThread
from broker.daemon.ledger import Ledger
from broker.daemon.store import Reader, Store
from handlers.rule import Effect, Event, Now
from tests.support.toy_disk import BY_NAME
from tests.support.toy_routes import (
    ENVIRONMENT,
    MIGRATIONS,
    PAPERS,
    Act,
    Get,
    Item,
    ItemTable,
    OwedAct,
    Put,
    Told,
    Unsaved,
    toy_routes,
)

PATIENCE_SECONDS = 10
"""Longer than anything takes here: a test that would wait for ever fails."""


def disk_error(code: int) -> sqlite3.OperationalError:
    """The error that SQLite raises with this code."""
    error = sqlite3.OperationalError("injected")
    error.sqlite_errorcode = code
    return error


FULL = disk_error(sqlite3.SQLITE_FULL)
READ_ONLY = disk_error(sqlite3.SQLITE_READONLY_DBMOVED)  # an extended code: its low byte counts
IO_ERROR = disk_error(sqlite3.SQLITE_IOERR_FSYNC)


class Gate:
    """Where the store's thread is held: `reached` is set when it is there, `open` lets it go on."""

    def __init__(self) -> None:
        self.reached = trio.Event()
        self._token = trio.lowlevel.current_trio_token()
        self._opened = threading.Event()

    def open(self) -> None:
        """Let the thread go on."""
        self._opened.set()

    def hold(self) -> None:
        """Called by the thread."""
        self._token.run_sync_soon(self.reached.set)
        self._opened.wait(PATIENCE_SECONDS)


class Faults:
    """See the module header."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._errors: dict[str, Exception] = {}
        self._once: dict[str, list[Exception]] = defaultdict(list)
        self._gates: dict[str, list[Gate]] = defaultdict(list)

    def __call__(self, name: str) -> None:
        self.calls.append(name)
        if self._gates[name]:
            self._gates[name].pop(0).hold()
        if self._once[name]:
            raise self._once[name].pop(0)
        if name in self._errors:
            raise self._errors[name]

    def fail(self, name: str, error: Exception) -> None:
        """Let every call of this name fail from now on."""
        self._errors[name] = error

    def fail_once(self, name: str, error: Exception) -> None:
        """Let one call of this name fail, the next or the one after those that were asked for before."""
        self._once[name].append(error)

    def mend(self) -> None:
        """Let nothing fail any more."""
        self._errors.clear()
        self._once.clear()

    def gate(self, name: str) -> Gate:
        """Hold the next call of this name."""
        gate = Gate()
        self._gates[name].append(gate)
        return gate

    def count(self, name: str) -> int:
        """How many calls of this name there were."""
        return self.calls.count(name)


class ToyBroker:
    """See the module header; `told` is what was told so far, in its order."""

    def __init__(self, path: Path, faults: Faults, thread: StoreThread) -> None:
        self.path = path
        self.faults = faults
        self.thread = thread
        self.clocks = ManualClocks(Now(elapsed=0, awake=0, wall=0))
        self.reader = Reader(path)
        self.ledger = Ledger(toy_routes(), ENVIRONMENT, self.reader, self.clocks.now, self._report)
        self.committer = Committer(self.ledger, thread, self._perform)
        self.told: list[str] = []
        self.on_effect: Callable[[str], None] = lambda name: None
        """Called while an effect is carried out, with its name as in `told`."""
        self.stop: Callable[[], None] = lambda: None
        """Cancels the committer, where it runs."""
        self._news = trio.Event()

    def submit(self, *events: Event) -> None:
        """Decide events in one scheduler pass, as the dispatch does."""
        for event in events:
            self.ledger.decide(event)
            self.committer.kick()

    def fire_due(self) -> None:
        """Decide the deadlines that are due, as the dispatch does."""
        self.ledger.fire_due()
        self.committer.kick()

    async def hear(self, *names: str) -> None:
        """Wait until all of these were told."""
        with trio.fail_after(PATIENCE_SECONDS):
            while not set(names) <= set(self.told):
                await self._news.wait()

    def on_disk(self) -> dict[tuple[str, str], object]:
        """The rows that another connection finds, settled ones too."""
        reader = sqlite3.connect(self.path)
        try:
            found: dict[tuple[str, str], object] = {}
            for table in ("papers", "settings"):
                for (key,) in reader.execute(f"SELECT key FROM {table}"):
                    found[table, key] = self.reader.read(BY_NAME[table], key)
            return found
        finally:
            reader.close()

    def _report(self, event: Event, error: Exception) -> None:
        raise error

    def _perform(self, effect: Effect) -> None:
        name = _name(effect)
        self.told.append(name)
        self.on_effect(name)
        self._news.set()
        self._news = trio.Event()


def _name(effect: Effect) -> str:
    match effect:
        case Told(event=Act(number=number)):
            return f"told {number}"
        case Unsaved(number=number):
            return f"unsaved {number}"
    return "due"


def write(number: int, key: str = "x", table: ItemTable = PAPERS, due: int | None = None) -> Act:
    """An act that puts one row."""
    return Act(number, writes=(Put(table, Item(key, "ann", number, due)),))


def owed_write(number: int, key: str = "x") -> OwedAct:
    """An act of the world that puts one paper."""
    return OwedAct(number, writes=(Put(PAPERS, Item(key, "ann", number)),))


def get(number: int, key: str = "x") -> Act:
    """An act that reads one paper."""
    return Act(number, reads=(Get(PAPERS, key),))


@asynccontextmanager
async def open_toy_broker(path: Path) -> AsyncIterator[ToyBroker]:
    """A toy broker whose committer the test runs or does not run; the store's thread is ended at the end."""
    faults = Faults()
    thread = StoreThread(lambda: Store(path, faults, MIGRATIONS))
    await thread.start()
    faults.calls.clear()
    broker = ToyBroker(path, faults, thread)
    try:
        yield broker
    finally:
        broker.reader.close()
        thread.stop()


@asynccontextmanager
async def run_toy_broker(path: Path) -> AsyncIterator[ToyBroker]:
    """A toy broker whose committer runs; at the end it is cancelled, as at the end of a real one."""
    async with open_toy_broker(path) as broker, trio.open_nursery() as nursery:
        nursery.start_soon(broker.committer.run)
        broker.stop = nursery.cancel_scope.cancel
        yield broker
        broker.stop()
