"""A toy protocol for tests of the concurrency rule: a table of each kind, and events that say what is to be done.

    papers     STORED; leave memory when they are done, and are looked up by their owner and in their order on disk
    settings   STORED; stay in memory until they are dropped
    parked     MEMORY
    sighted    FACT
    tally      MEMORY; follows from any decision about papers: how many of them are not done

An `Act` is a short program over these tables.  Its one effect, `Told`, carries everything that it read, so that
whoever sees the effect knows what was revealed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import attrs

from broker.daemon.migrations import PROBE, Step, rows_table
from handlers.environment import Environment
from handlers.policy import Policy
from handlers.routes import Routes
from handlers.rule import Deadline, Decision, Draft, Due, Effect, Event, Keep, Now, Table

ENVIRONMENT = Environment(Policy(), runtime_instance_id="toy", boot_id="toy")


@attrs.frozen
class Item:
    """A row of any toy table; `value` is the number of the act that wrote it."""

    key: str
    owner: str
    value: int
    due: int | None = None
    done: bool = False
    revision: int = 0


@attrs.frozen
class Tally:
    """How many papers are not done."""

    count: int
    revision: int = 0


@attrs.frozen(eq=False, repr=False)
class ItemTable(Table[Item]):
    """A table of items, shown by its name."""

    def __repr__(self) -> str:
        return self.name


def _table(name: str, keep: Keep, deadline: Callable[[Item], Deadline | None]) -> ItemTable:
    indexes = {"owner": lambda item: item.owner, "order": lambda item: order_of(item.value, item.key)}
    return ItemTable(name, Item, keep, lambda item: item.key, indexes, deadline=deadline)


def order_of(value: int, key: str = "") -> str:
    """The place of an item among others, each a place of its own; without a key, that before all of this value."""
    return f"{value:06d} {key}"


def _elapsed(item: Item) -> Deadline | None:
    return None if item.due is None or item.done else Deadline(item.due)


def _awake(item: Item) -> Deadline | None:
    return None if item.due is None else Deadline(item.due, "awake")


PAPERS: ItemTable = attrs.evolve(
    _table("papers", Keep.STORED, _elapsed), lookups=("owner", "order"), settled=lambda item: item.done
)
SETTINGS = _table("settings", Keep.STORED, _awake)
PARKED = _table("parked", Keep.MEMORY, _awake)
SIGHTED = _table("sighted", Keep.FACT, _elapsed)
TABLES = (PAPERS, SETTINGS, PARKED, SIGHTED)

TALLY_KEY = "papers"
TALLY: Table[Tally] = Table("tally", Tally, Keep.MEMORY, lambda row: TALLY_KEY)

MIGRATIONS: tuple[Step, ...] = ((*PROBE, *rows_table("papers", "owner", "order"), *rows_table("settings")),)


# -- what an act does ----------------------------------------------------------------------------------------


@attrs.frozen
class Get:
    """Read one row."""

    table: ItemTable
    key: str


@attrs.frozen
class Find:
    """Read the rows of an owner."""

    table: ItemTable
    owner: str


@attrs.frozen
class All:
    """Read a whole table."""

    table: ItemTable


@attrs.frozen
class UpTo:
    """Read the first items whose value is at most this."""

    table: ItemTable
    value: int
    limit: int


@attrs.frozen
class Count:
    """Count the rows of an owner."""

    table: ItemTable
    owner: str


@attrs.frozen
class Put:
    """Add or replace a row."""

    table: ItemTable
    item: Item

    @property
    def key(self) -> str:
        return self.item.key


@attrs.frozen
class Drop:
    """Remove a row."""

    table: ItemTable
    key: str


Reading = Get | Find | All | UpTo | Count
Answer = frozenset[Item] | tuple[Item, ...] | int
"""Rows in no order, rows in their order, or how many."""


class ToyFault(Exception):
    """A handler of the toy protocol fails."""


@attrs.frozen
class Act(Event):
    """Reads first, then writes, then (`fails`) raises; `lane` is its order key."""

    number: int
    reads: tuple[Reading, ...] = ()
    writes: tuple[Put | Drop, ...] = ()
    lane: str | None = None
    fails: bool = False

    def unsaved(self) -> tuple[Effect, ...]:
        return (Unsaved(self.number),)

    @property
    def order(self) -> str | None:
        return self.lane


@attrs.frozen
class OwedAct(Act):
    """An act of the world, which cannot be told no."""

    owed: ClassVar[bool] = True


@attrs.frozen(eq=False)
class Told(Effect):
    """What the decision about this event read, each reading with its answer.  Each one is unique."""

    event: Event
    readings: tuple[tuple[Reading, Answer], ...]


@attrs.frozen
class Unsaved(Effect):
    """The act of this number was not saved."""

    number: int


# -- handlers ------------------------------------------------------------------------------------------------


def read(draft: Draft, reading: Reading) -> Answer:
    """The answer to one reading."""
    match reading:
        case Get(table, key):
            item = draft.get(table, key)
            return frozenset() if item is None else frozenset((item,))
        case Find(table, owner):
            return frozenset(draft.find(table, "owner", owner))
        case All(table):
            return frozenset(draft.all(table))
        case UpTo(table, value, limit):
            return tuple(draft.up_to(table, "order", order_of(value + 1), limit))
        case Count(table, owner):
            return draft.count(table, "owner", owner)


def act(draft: Draft, event: Act, now: Now) -> None:
    """Do what the act says and tell what it read."""
    readings = tuple((reading, read(draft, reading)) for reading in event.reads)
    for write in event.writes:
        match write:
            case Put(table, item):
                draft.put(table, item)
            case Drop(table, key):
                draft.drop(table, key)
    if event.fails:
        raise ToyFault
    draft.effect(Told(event, readings))


def due(table: ItemTable) -> Callable[[Draft, Due, Now], None]:
    """The handler of a table's deadlines: papers are done, settings lose their deadline, the rest is dropped.

    While the owner has something parked, settings are left as they are.
    """

    def handle(draft: Draft, event: Due, now: Now) -> None:
        item = draft.get(table, event.key)
        assert item is not None
        readings = (Get(table, event.key), Find(PARKED, item.owner))
        answers = tuple(read(draft, reading) for reading in readings)
        if table is PAPERS:
            draft.put(table, attrs.evolve(item, done=True))
        elif table is not SETTINGS:
            draft.drop(table, event.key)
        elif not answers[-1]:
            draft.put(table, attrs.evolve(item, due=None))
        draft.effect(Told(event, tuple(zip(readings, answers, strict=True))))

    return handle


def count_papers(draft: Draft, now: Now) -> None:
    """The step that follows from any decision about papers."""
    if draft.has_changed(PAPERS):
        draft.put(TALLY, Tally(sum(not paper.done for paper in draft.all(PAPERS))))


def toy_routes(watch: Callable[[Decision], None] = lambda decision: None) -> Routes:
    """The toy protocol; `watch` sees each decision as the handlers leave it, before the ledger does."""
    return Routes(
        tables=(*TABLES, TALLY),
        due={table.name: due(table) for table in TABLES},
        facts={Act: (act,), OwedAct: (act,)},
        settle=(count_papers, lambda draft, now: watch(draft.decision())),
    )
