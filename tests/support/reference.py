"""What the concurrency rule promises, as a second and slower ledger of its own.

The `Reference` keeps every decision in one list and knows which of them a crash could take back.  The rows are
whatever the decisions that stand have made of them, one after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import attrs

from broker.daemon.clocks import ManualClocks
from broker.daemon.deadlines import Key as RowKey
from broker.daemon.rows import AnyTable
from handlers.rule import Change, Deadline, Decision, Due, Effect, Event, Keep, Now
from tests.support.toy_disk import BY_NAME, State, expect
from tests.support.toy_routes import (
    Act,
    All,
    Answer,
    Count,
    Drop,
    Find,
    Get,
    Item,
    Put,
    Reading,
    Told,
    Unsaved,
    UpTo,
)


@attrs.define(eq=False)
class Entry:
    """One decision; `batch` is the newest batch that it wrote or read from, 0 for none."""

    told: Told
    changes: tuple[Change, ...]
    batch: int
    lost: bool = False


class Reference:
    """See the module header.

    `due_now` are the effects that have to happen by the end of the step, `declined` the deadlines that came and
    whose handlers left them to their rows.
    """

    def __init__(self, clocks: ManualClocks) -> None:
        self.state: State = {}
        self.waiting: list[Entry] = []
        self.owed: list[Event] = []
        self.due_now: list[Effect] = []
        self.refusing = False
        self.declined: dict[RowKey, Deadline] = {}
        self._clocks = clocks
        self._entries: list[Entry] = []
        self._again: list[Event] = []
        self._batch_of: dict[RowKey, int] = {}
        self._batch_of_lane: dict[str, int] = {}
        self._committed = 0
        self._on_its_way: int | None = None
        self._open = 1

    # -- decisions ------------------------------------------------------------------------------------------

    def on_decision(self, decision: Decision) -> None:
        """The handlers have decided; the ledger has not applied it yet."""
        (told,) = decision.effects
        assert isinstance(told, Told)
        if self._again:
            expect(
                told.event is self._again.pop(0), "owed events are decided again in their order", told.event
            )
        self._check_decision(told, decision.changes)
        if decision.stores and self.refusing:
            self._refuse(told.event)
            return
        entry = Entry(told, decision.changes, self._newest(told, decision))
        self._entries.append(entry)
        for change in decision.changes:
            _apply(self.state, change)
            if change.table.keep is not Keep.FACT:
                self._batch_of[change.table.name, change.key] = entry.batch
        if told.event.order is not None:
            self._batch_of_lane[told.event.order] = entry.batch
        if isinstance(told.event, Due) and (deadline := self._deadline(told.event)) is not None:
            self.declined[told.event.table, told.event.key] = deadline
        if entry.batch > self._committed:
            self.waiting.append(entry)
        else:
            self.due_now.append(told)

    def _check_decision(self, told: Told, changes: tuple[Change, ...]) -> None:
        for reading, answer in told.readings:
            seen = self._is_answer(reading, answer)
            expect(
                seen, "reads see what the newest decision left", reading, answer, self._items(reading.table)
            )
        for change in changes:
            standing = self.state.get((change.table.name, change.key))
            expect(change.before == standing, "a change builds on the newest decision", change, standing)
            if change.after is not None:
                before = 0 if change.before is None else change.before.revision
                expect(change.after.revision == before + 1, "a revision has one winner", change)
        if isinstance(told.event, Due):
            due = is_due(self._deadline(told.event), self._clocks.now())
            expect(due, "deadlines do not fire early", told.event)
            expect(not self.refusing, "deadlines pause while the disk refuses writes", told.event)

    def _is_answer(self, reading: Reading, answer: Answer) -> bool:
        """Whether a reading has found what it had to: `all` may miss settled rows."""
        rows = frozenset(self._items(reading.table))
        match reading:
            case Get(_, key):
                return answer == frozenset(row for row in rows if row.key == key)
            case Find(_, owner):
                return answer == frozenset(row for row in rows if row.owner == owner)
            case All(table):
                assert isinstance(answer, frozenset)
                return {row for row in rows if not table.settled(row)} <= answer <= rows
            case UpTo(_, value, limit):
                first = sorted((row.value, row.key, row) for row in rows if row.value <= value)[:limit]
                return answer == tuple(row for *_, row in first)
            case Count(_, owner):
                return answer == sum(row.owner == owner for row in rows)

    def _deadline(self, event: Due) -> Deadline | None:
        row = self.state.get((event.table, event.key))
        return None if row is None else BY_NAME[event.table].deadline(row)

    def _items(self, table: AnyTable) -> set[Item]:
        return {row for (name, _), row in self.state.items() if name == table.name and isinstance(row, Item)}

    def _newest(self, told: Told, decision: Decision) -> int:
        if decision.stores:
            return self._open
        touched: list[Change | Put | Drop] = list(decision.changes)
        if isinstance(told.event, Act):
            touched += (
                told.event.writes
            )  # a row that is not there to be dropped is no change, but it was read
        batches = [self._batch_of.get((one.table.name, one.key), 0) for one in touched]
        batches += [self._batch_read(reading) for reading, _ in told.readings]
        if told.event.order is not None:
            batches.append(self._batch_of_lane.get(told.event.order, 0))
        newest = max(batches, default=0)
        return newest if newest > self._committed else 0

    def _batch_read(self, reading: Reading) -> int:
        if isinstance(reading, Get):
            return self._batch_of.get((reading.table.name, reading.key), 0)
        return max(
            (batch for (name, _), batch in self._batch_of.items() if name == reading.table.name), default=0
        )

    def _refuse(self, event: Event) -> None:
        if event.owed:
            self.owed.append(event)
        elif isinstance(event, Act):
            self.due_now.append(Unsaved(event.number))

    # -- batches --------------------------------------------------------------------------------------------

    def take(self) -> None:
        """The open batch is on its way."""
        self._on_its_way, self._open = self._open, self._open + 1

    def commit(self) -> None:
        """The batch on its way is on disk."""
        assert self._on_its_way is not None
        self._committed, self._on_its_way = self._on_its_way, None
        self.due_now += [entry.told for entry in self.waiting if entry.batch <= self._committed]
        self.waiting = [entry for entry in self.waiting if entry.batch > self._committed]

    def fail(self, refusing: bool) -> None:
        """Nothing that still waited has happened; the facts have."""
        lost, self.waiting = self.waiting, []
        for entry in lost:
            entry.lost = True
        self.state = {}
        for entry in self._entries:
            for change in entry.changes:
                if not entry.lost or change.table.keep is Keep.FACT:
                    _apply(self.state, change)
        self._on_its_way, self._committed, self._open = None, self._open, self._open + 1
        self._batch_of.clear()
        self._batch_of_lane.clear()
        self.refusing = refusing
        for entry in lost:
            self._refuse(entry.told.event)
        if not refusing:
            self.resume()

    def resume(self) -> None:
        """The next decisions are those about what is owed."""
        self.refusing = False
        self._again, self.owed = self.owed, []

    # -- what must hold after each step ---------------------------------------------------------------------

    def check_released(self, effects: Sequence[Effect]) -> None:
        """Exactly what had to happen has happened, and nothing that a crash could take back."""
        expect(not self._again, "owed events are decided again", self._again)
        waiting = {entry.told for entry in self.waiting}
        lost = {entry.told for entry in self._entries if entry.lost}
        for effect in effects:
            expect(effect not in waiting, "nothing is revealed before it is on disk", effect)
            expect(effect not in lost, "no effect of an undone decision happens", effect)
        expect(Counter(effects) == Counter(self.due_now), "each event has one outcome", effects, self.due_now)
        self.due_now.clear()

    def in_memory(self) -> State:
        """The rows that memory holds: not those that are settled and committed."""
        return {
            key: row
            for key, row in self.state.items()
            if not BY_NAME[key[0]].settled(row) or self._batch_of.get(key, 0) > self._committed
        }

    def on_disk(self) -> State:
        """The rows that the disk holds at a quiet point."""
        return {key: row for key, row in self.state.items() if BY_NAME[key[0]].keep is Keep.STORED}


def _apply(state: State, change: Change) -> None:
    key = (change.table.name, change.key)
    if change.after is None:
        state.pop(key, None)
    else:
        state[key] = change.after


def is_due(deadline: Deadline | None, now: Now) -> bool:
    return deadline is not None and deadline.at <= getattr(now, deadline.clock)
