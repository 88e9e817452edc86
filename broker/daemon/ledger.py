"""The one concurrency rule: decide, apply at once, batch, hold effects until the commit, undo when it fails.

Theory of operation.  `decide` first fires the deadlines that are due, then runs the handlers of one event over a
draft and applies its changes to the rows in memory, so that the next decision builds on them whether or not they
are on disk.  Changes to STORED rows go into the open batch.  A decision's effects wait for the newest batch that
wrote anything that the decision wrote or read; with none outstanding they are ready at once.  Thus nobody ever
sees what a crash could take back, reads included.

    open batch --take_batch()--> batch on its way --committed()--> its held effects become ready
                                                  --failed()-----> both batches undone, newest first

`failed` restores the before-images of the batch on its way and of the one that was built on top of it.  None of
their effects run: senders are told by `Event.unsaved`, and what the world did (owed events) is decided again once
the store is back.  While `refusing`, decisions that would store something are refused and deadlines pause.

The ledger does no input or output and knows no clock but the one it is given; `broker/daemon/committer.py` moves
batches between it and the disk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Protocol, TypeVar

import attrs

from broker.daemon.deadlines import Deadlines, Key
from broker.daemon.rows import GONE, AnyTable, Gone, Rows
from handlers.environment import Environment
from handlers.routes import Routes, decide
from handlers.rule import Change, Decision, Draft, Due, Effect, Event, Keep, Now, Row, Table, is_within

R = TypeVar("R", bound=Row)


class Disk(Protocol):
    """Reading committed rows that are not in memory."""

    def read(self, table: AnyTable, key: str) -> Row | None: ...

    def look_up(self, table: AnyTable, index: str, value: str) -> Sequence[Row]: ...

    def up_to(
        self, table: AnyTable, index: str, bounds: tuple[str, str], limit: int, besides: Collection[str]
    ) -> Sequence[Row]:
        """The first `limit` rows within the bounds, both included, in the order of the index, but for some keys."""
        ...

    def count(self, table: AnyTable, index: str, value: str, besides: Collection[str]) -> int:
        """How many rows have this value, but for some keys."""
        ...


@attrs.frozen
class Write:
    """The net change of one row by a batch; `before` is the revision that the disk must hold, None for no row."""

    table: AnyTable
    key: str
    before: int | None
    after: Row | None


@attrs.frozen
class Held:
    """An event whose effects wait for a batch; `number` grows from one to the next."""

    number: int
    event: Event
    effects: tuple[Effect, ...]


@attrs.define
class Batch:
    """Changes that are committed or undone together, and the effects that wait for them."""

    number: int
    log: list[Change] = attrs.field(factory=list)
    held: list[Held] = attrs.field(factory=list)
    marks: set[Key] = attrs.field(factory=set)

    def writes(self) -> list[Write]:
        """Each stored row's net change."""
        net: dict[Key, Change] = {}
        for change in self.log:
            if change.table.keep is Keep.STORED:
                key = (change.table.name, change.key)
                first = net.get(key, change)
                net[key] = attrs.evolve(change, before=first.before)
        return [
            Write(c.table, c.key, None if c.before is None else c.before.revision, c.after)
            for c in net.values()
            if not (c.before is None and c.after is None)
        ]


class Ledger:
    """See the module header.  `report` is told of a fault in a handler that no caller can be told of."""

    def __init__(
        self,
        routes: Routes,
        environment: Environment,
        disk: Disk,
        now: Callable[[], Now],
        report: Callable[[Event, Exception], None],
    ) -> None:
        self.deadlines = Deadlines()
        self.rows = Rows(routes.tables, self.deadlines)
        self.refusing = False
        self._routes = routes
        self._environment = environment
        self._disk = disk
        self._now = now
        self._report = report
        self._dirty: dict[Key, int] = {}
        self._dirty_tables: dict[str, int] = {}
        self._committed = 0
        self._open = Batch(1)
        self._on_its_way: Batch | None = None
        self._held = 0
        self._ready: deque[Effect] = deque()
        self._owed: deque[Event] = deque()

    # -- deciding ---------------------------------------------------------------------------------------------

    def decide(self, event: Event) -> None:
        """Decide one event; a handler's exception leaves everything as it was and is raised."""
        now = self._now()
        self.fire_due(now)
        self._decide(event, now)

    def fire_due(self, now: Now | None = None) -> None:
        """Decide every deadline that is due; they pause while the store refuses writes.

        One whose handler fails, or leaves its row as it was, comes again later (`broker/daemon/deadlines.py`).
        """
        now = self._now() if now is None else now
        while not self.refusing and (key := self.deadlines.take_due(now)) is not None:
            event = Due(*key)
            try:
                self._decide(event, now)
            except Exception as error:  # a fault in one row's handler must not stop the others
                self._report(event, error)

    def _decide(self, event: Event, now: Now) -> None:
        view = _View(self)
        draft = Draft(view, self._environment)
        decide(self._routes, draft, event, now)
        decision = draft.decision()
        if decision.stores and self.refusing:
            self._refuse(event)
            return
        self._carry_out(event, decision, view.newest)

    def _carry_out(self, event: Event, decision: Decision, newest_read: int) -> None:
        order = None if event.order is None else ("", event.order)
        newest_in_order = 0 if order is None else self._dirty.get(order, 0)
        batch = self._batch(self._open.number if decision.stores else max(newest_read, newest_in_order))
        for change in decision.changes:
            self._apply(change, batch)
        if batch is None:
            self._ready += decision.effects
            return
        self._held += 1
        batch.held.append(Held(self._held, event, decision.effects))
        if order is not None:
            self._mark(order, batch)

    def _batch(self, number: int) -> Batch | None:
        if number <= self._committed:
            return None
        if self._on_its_way is not None and number == self._on_its_way.number:
            return self._on_its_way
        return self._open

    def _apply(self, change: Change, batch: Batch | None) -> None:
        gone = GONE if change.table.keep is Keep.STORED else None
        self.rows.set(change.table, change.key, gone if change.after is None else change.after)
        if batch is None or change.table.keep is Keep.FACT:
            return
        batch.log.append(change)
        self._mark((change.table.name, change.key), batch)
        newest = self._dirty_tables.get(change.table.name, 0)
        self._dirty_tables[change.table.name] = max(newest, batch.number)

    def _mark(self, key: Key, batch: Batch) -> None:
        self._dirty[key] = batch.number  # never an older batch: whoever writes a row has read it before
        batch.marks.add(key)

    def _refuse(self, event: Event) -> None:
        if event.owed:
            self._owed.append(event)
        else:
            self._ready += event.unsaved()

    # -- committing -------------------------------------------------------------------------------------------

    @property
    def has_batch(self) -> bool:
        """Whether the open batch has anything to commit or to release."""
        return bool(self._open.log or self._open.held)

    @property
    def busy(self) -> bool:
        """Whether anything decided is still to be committed."""
        return self._on_its_way is not None or self.has_batch

    @property
    def outstanding(self) -> int:
        """How many events have effects that still wait: zero at every quiet point."""
        on_its_way = 0 if self._on_its_way is None else len(self._on_its_way.held)
        return on_its_way + len(self._open.held) + len(self._owed)

    def take_batch(self) -> Batch | None:
        """Close the open batch and send it on its way; None while one is under way or nothing is to commit."""
        if self._on_its_way is not None or not self.has_batch:
            return None
        self._on_its_way, self._open = self._open, Batch(self._open.number + 1)
        return self._on_its_way

    def committed(self) -> None:
        """The batch on its way is on disk: release its effects."""
        batch = self._close()
        self._committed = batch.number
        for key in batch.marks:
            if self._dirty.get(key) == batch.number:
                del self._dirty[key]
        for change in batch.log:
            self._let_go(change)
        for held in batch.held:
            self._ready += held.effects

    def failed(self, refusing: bool) -> None:
        """The batch on its way is certainly not on disk: undo it and what was built on it.

        `refusing`: the disk takes no writes for now (full, read-only); call `resume` when it does again.
        """
        newest, oldest = self._open, self._close()
        for change in [*reversed(newest.log), *reversed(oldest.log)]:
            self._undo(change)
        self._dirty.clear()
        self._dirty_tables.clear()
        self._committed = newest.number
        self._open = Batch(newest.number + 1)
        self.refusing = refusing
        for held in sorted(oldest.held + newest.held, key=lambda held: held.number):
            self._refuse(held.event)
        if not refusing:
            self.resume()

    def resume(self) -> None:
        """The disk takes writes (again): decide what the world did meanwhile."""
        self.refusing = False
        owed, self._owed = self._owed, deque()
        now = self._now()
        for event in owed:
            try:
                self._decide(event, now)
            except Exception as error:
                self._report(event, error)

    def take_ready(self) -> Effect | None:
        """The next effect to carry out, in the order of release."""
        return self._ready.popleft() if self._ready else None

    def load(self, rows: Iterable[tuple[AnyTable, Row]]) -> None:
        """Take in the committed rows of a starting broker."""
        for table, row in rows:
            self.rows.set(table, table.key(row), row)

    def _close(self) -> Batch:
        batch = self._on_its_way
        assert batch is not None, "no batch is on its way"
        self._on_its_way = None
        return batch

    def _let_go(self, change: Change) -> None:
        """Forget rows that only had to stay in memory until they were committed."""
        key = (change.table.name, change.key)
        if key in self._dirty:
            return
        row = self.rows.get(change.table, change.key)
        if isinstance(row, Gone) or (row is not None and change.table.settled(row)):
            self.rows.set(change.table, change.key, None)

    def _undo(self, change: Change) -> None:
        before = change.before
        if before is not None and change.table.settled(before):
            before = None  # it was read from the disk, and is there still
        self.rows.set(change.table, change.key, before)


class _View:
    """The rows as a decision sees them; notes the newest uncommitted batch among what it read."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._read: dict[Key, Row] = {}
        """What was read from the disk: whoever finds rows and then changes them reads each once."""
        self.newest = 0

    def get(self, table: Table[R], key: str) -> R | None:
        ledger = self._ledger
        self._note(ledger._dirty.get((table.name, key), 0))
        row = ledger.rows.get(table, key)
        if row is None and table.reads_disk:
            row = self._read.get((table.name, key)) or ledger._disk.read(table, key)
        return None if isinstance(row, Gone) else row  # type: ignore[return-value]

    def find(self, table: Table[R], index: str, value: str) -> list[R]:
        ledger = self._ledger
        self._note_all(table)
        found: list[Any] = list(ledger.rows.find(table, index, value))
        if index in table.lookups:
            on_disk = ledger._disk.look_up(table, index, value)
            found += [
                row for row in self._kept(table, on_disk) if ledger.rows.get(table, table.key(row)) is None
            ]
        return found

    def all(self, table: Table[R]) -> list[R]:
        self._note_all(table)
        return list(self._ledger.rows.all(table))  # type: ignore[arg-type]

    def up_to(self, table: Table[R], index: str, value: str, limit: int, start: str = "") -> list[R]:
        self._note_all(table)
        of_row: Callable[[Any], str | None] = table.indexes[index]
        found: list[Any] = []
        if _on_disk(table, index):
            dirty = self._dirty_rows(table)
            found += self._kept(
                table, self._ledger._disk.up_to(table, index, (start, value), limit, dirty.keys())
            )
            in_memory: Iterable[Any] = dirty.values()
        else:
            in_memory = self._ledger.rows.all(table)
        found += [row for row in in_memory if row is not None and is_within(of_row(row), start, value)]
        return sorted(found, key=lambda row: of_row(row) or "")[:limit]

    def count(self, table: Table[R], index: str, value: str) -> int:
        self._note_all(table)
        if not _on_disk(table, index):
            return len(self._ledger.rows.find(table, index, value))
        of_row: Callable[[Any], str | None] = table.indexes[index]
        dirty = self._dirty_rows(table)
        uncommitted = sum(row is not None and of_row(row) == value for row in dirty.values())
        return uncommitted + self._ledger._disk.count(table, index, value, dirty.keys())

    def _dirty_rows(self, table: AnyTable) -> dict[str, Row | None]:
        """The rows that the disk may hold otherwise, or not at all, or still (None).

        The disk is asked for all others in one statement, for it may take in a batch at any time.
        """
        keys = (key for name, key in self._ledger._dirty if name == table.name)
        rows = {key: self._ledger.rows.get(table, key) for key in keys}
        return {key: None if isinstance(row, Gone) else row for key, row in rows.items()}

    def _kept(self, table: AnyTable, rows: Iterable[Any]) -> Iterable[Any]:
        for row in rows:
            self._read[table.name, table.key(row)] = row
            yield row

    def _note_all(self, table: AnyTable) -> None:
        self._note(self._ledger._dirty_tables.get(table.name, 0))

    def _note(self, number: int) -> None:
        if number > self._ledger._committed:
            self.newest = max(self.newest, number)


def _on_disk(table: AnyTable, index: str) -> bool:
    """Whether rows with a value in this index may be on disk only."""
    return table.reads_disk and index in table.lookups
