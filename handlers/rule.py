"""The vocabulary of the one concurrency rule: what a handler reads, decides and asks for.

A handler is a function of (draft, event, now).  It reads rows through the draft, puts and drops rows in it,
and names the effects that shall happen once the decision is on disk.  It never awaits and never opens anything:
time comes in as `now`, randomness as `event.seed`, the outside world as events.  `broker/daemon/ledger.py`
runs the handlers and keeps the promise that nobody sees an effect before the rows that it tells of are stored.

Rows are frozen values with a `revision`; a `Table` says how its rows are kept:

    STORED   written to disk with the decision's batch; undone when that batch fails
    MEMORY   never written; undone together with the batch of the decision that changed it
    FACT     what the world did (a connection opened, a process died): never undone
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import ClassVar, Generic, Literal, Protocol, TypeVar

import attrs

from handlers.environment import Environment


@attrs.frozen
class Now:
    """One instant on the three clocks of wire.md, each in milliseconds."""

    elapsed: int
    """Real elapsed time, sleep included: request deadlines."""
    awake: int
    """Time without sleep: leases, grace, idling, arming."""
    wall: int
    """Since the epoch: for display and retention only."""


class Keep(Enum):
    """What becomes of a table's rows on a commit and on a failed one; see the module header."""

    STORED = "stored"
    MEMORY = "memory"
    FACT = "fact"


@attrs.frozen(order=True)
class Deadline:
    """An instant on one clock at which a row has to be looked at again."""

    at: int
    clock: Literal["elapsed", "awake"] = "elapsed"


class Row(Protocol):
    """What every row has; the draft counts `revision` up by one a decision, starting at 1."""

    @property
    def revision(self) -> int: ...


R = TypeVar("R", bound=Row)
Index = Callable[[R], str | None]


def _no_deadline(row: object) -> Deadline | None:
    return None


def _never(row: object) -> bool:
    return False


@attrs.frozen(eq=False)
class Table(Generic[R]):
    """How rows of one kind are found, kept and timed.

    `indexes` are searched in memory.  Those named in `lookups` are columns on disk as well, so that rows which
    are `settled` (they have ended, and leave memory once committed) are still found, counted, and put in order.
    """

    name: str
    row: type[R]
    keep: Keep
    key: Callable[[R], str]
    indexes: Mapping[str, Index[R]] = attrs.field(factory=dict)
    lookups: tuple[str, ...] = ()
    deadline: Callable[[R], Deadline | None] = _no_deadline
    settled: Callable[[R], bool] = _never

    @property
    def reads_disk(self) -> bool:
        """Whether rows of this table may be on disk only."""
        return self.settled is not _never


class View(Protocol):
    """Reading access to the rows as the newest decision left them, committed or not."""

    def get(self, table: Table[R], key: str) -> R | None: ...

    def find(self, table: Table[R], index: str, value: str) -> Sequence[R]: ...

    def all(self, table: Table[R]) -> Sequence[R]:
        """Every row in memory; settled rows of the disk are not among them."""
        ...

    def up_to(self, table: Table[R], index: str, value: str, limit: int, start: str = "") -> Sequence[R]:
        """The first `limit` rows whose index is from `start` to `value`, in its order (that of code points)."""
        ...

    def count(self, table: Table[R], index: str, value: str) -> int:
        """How many rows `find` would find; none of them is read for it."""
        ...


class Effect:
    """Something to do in the world once the decision is stored.  Carries values, never ids to look up again."""


@attrs.frozen
class Event:
    """Something that happened, brought to the handlers."""

    owed: ClassVar[bool] = False
    """A caller can be told no; the world cannot.  An owed event whose decision could not be stored is decided
    again when the store is back, so its handler must bear being called twice."""

    def unsaved(self) -> tuple[Effect, ...]:
        """What its sender is told when the decision could not be stored (CP-4.12)."""
        return ()

    @property
    def order(self) -> str | None:
        """Effects of events with the same order key happen in the order of their decisions."""
        return None


@attrs.frozen
class Due(Event):
    """The deadline of a row has come."""

    table: str
    key: str


@attrs.frozen
class Change:
    """One row before and after a decision; None means that there is none."""

    table: Table[Row]
    key: str
    before: Row | None
    after: Row | None


@attrs.frozen
class Decision:
    """What one event led to: applied in memory at once, its effects held until it is stored."""

    changes: tuple[Change, ...]
    effects: tuple[Effect, ...]

    @property
    def stores(self) -> bool:
        """Whether the disk has to know of it."""
        return any(change.table.keep is Keep.STORED for change in self.changes)


Handler = Callable[["Draft", Event, Now], None]


class Draft:
    """A decision in the making: an overlay over a view that sees its own changes.

    `environment` holds what stays the same while the broker runs: the policies and the runtime instance.
    """

    def __init__(self, view: View, environment: Environment) -> None:
        self._view = view
        self.environment = environment
        self._changes: dict[tuple[str, str], Change] = {}
        self._effects: list[Effect] = []

    def get(self, table: Table[R], key: str) -> R | None:
        """The row under this key, or None."""
        change = self._changes.get((table.name, key))
        return self._view.get(table, key) if change is None else _as(table, change.after)

    def find(self, table: Table[R], index: str, value: str) -> list[R]:
        """The rows whose index has this value, in no promised order."""
        of_row = table.indexes[index]
        rows = [row for row in self._view.find(table, index, value) if not self._changed(table, row)]
        return rows + [row for row in self._own(table) if of_row(row) == value]

    def all(self, table: Table[R]) -> list[R]:
        """Every row that is in memory (settled ones are on disk only)."""
        rows = [row for row in self._view.all(table) if not self._changed(table, row)]
        return rows + list(self._own(table))

    def up_to(self, table: Table[R], index: str, value: str, limit: int, start: str = "") -> list[R]:
        """The first `limit` rows whose index is from `start` to `value`, in its order (that of code points).

        For work in small pieces over rows that may be on disk only: then the index must be a lookup.
        """
        of_row = table.indexes[index]
        more = limit + sum(name == table.name for name, _ in self._changes)
        found = [
            row for row in self._view.up_to(table, index, value, more, start) if not self._changed(table, row)
        ]
        found += [row for row in self._own(table) if is_within(of_row(row), start, value)]
        return sorted(found, key=lambda row: of_row(row) or "")[:limit]

    def count(self, table: Table[R], index: str, value: str) -> int:
        """How many rows `find` would find; none of them is read for it."""
        of_row = table.indexes[index]
        count = self._view.count(table, index, value)
        for before, after in self.changes(table):
            count += after is not None and of_row(after) == value
            count -= before is not None and of_row(before) == value
        return count

    def put(self, table: Table[R], row: R) -> R:
        """Add the row or replace the one with its key; returns it with the revision that it now has."""
        key = table.key(row)
        before = self._before(table, key)
        revision = 1 if before is None else before.revision + 1
        revised: R = attrs.evolve(row, revision=revision)  # type: ignore[misc]  # every row is an attrs class
        self._set(table, key, before, revised)
        return revised

    def drop(self, table: Table[R], key: str) -> None:
        """Remove the row under this key, if there is one."""
        self._set(table, key, self._before(table, key), None)

    def effect(self, *effects: Effect) -> None:
        """Ask for effects, in this order, once the decision is stored."""
        self._effects += effects

    def has_changed(self, *tables: Table[R]) -> bool:
        """Whether this draft changes a row of one of the tables: for steps that follow from a decision."""
        names = {table.name for table in tables}
        return any(name in names for name, _ in self._changes)

    def changes(self, table: Table[R]) -> list[tuple[R | None, R | None]]:
        """The table's rows before and after this draft, as it stands: for steps that follow from a decision.

        None: there is no such row.  Rows that came and went within the draft are left out.
        """
        changed = [change for (name, _), change in self._changes.items() if name == table.name]
        return [
            (_as(table, change.before), _as(table, change.after))
            for change in changed
            if not (change.before is None and change.after is None)
        ]

    def decision(self) -> Decision:
        """The finished decision; rows that came and went within it are left out."""
        changes = (c for c in self._changes.values() if not (c.before is None and c.after is None))
        return Decision(tuple(changes), tuple(self._effects))

    def _before(self, table: Table[R], key: str) -> R | None:
        change = self._changes.get((table.name, key))
        return self._view.get(table, key) if change is None else _as(table, change.before)

    def _set(self, table: Table[R], key: str, before: R | None, after: R | None) -> None:
        self._changes[table.name, key] = Change(table, key, before, after)  # type: ignore[arg-type]

    def _changed(self, table: Table[R], row: R) -> bool:
        return (table.name, table.key(row)) in self._changes

    def _own(self, table: Table[R]) -> Iterator[R]:
        for (name, _), change in list(self._changes.items()):
            if name == table.name and change.after is not None:
                yield change.after  # type: ignore[misc]  # rows under a table's name are of its class


def _as(table: Table[R], row: Row | None) -> R | None:
    assert row is None or isinstance(row, table.row)
    return row


def is_within(value: str | None, start: str, end: str) -> bool:
    """Whether the value of an index is in a range, both ends included."""
    return value is not None and start <= value <= end


def derive(seed: bytes, purpose: str) -> bytes:
    """32 bytes for one purpose from an event's seed, so that ids and keys tell nothing of each other."""
    return hashlib.sha256(purpose.encode() + b"\0" + seed).digest()


def new_id(seed: bytes, purpose: str) -> str:
    """A fresh id of 32 hexadecimal digits from an event's seed."""
    return derive(seed, purpose)[:16].hex()
