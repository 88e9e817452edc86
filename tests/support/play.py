"""Takes a ledger through a script, and holds it to the reference after each step.

What the ledger breaks is raised as a `Broken` promise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

from broker.daemon.clocks import ManualClocks
from broker.daemon.deadlines import Deadlines
from broker.daemon.deadlines import Key as RowKey
from broker.daemon.ledger import Ledger, Write
from broker.daemon.rows import Rows
from handlers.rule import Deadline, Effect, Event, Keep, Now
from tests.support.reference import Reference, is_due
from tests.support.scripts import OWNERS, Decide, Finish, Land, Outcome, Pass, Resume, Step, Take
from tests.support.toy_disk import BY_NAME, State, ToyDisk, expect, expect_equal
from tests.support.toy_routes import (
    ENVIRONMENT,
    PAPERS,
    TABLES,
    TALLY,
    TALLY_KEY,
    Act,
    Item,
    ItemTable,
    Tally,
    Told,
    ToyFault,
    Unsaved,
    toy_routes,
)

V = TypeVar("V")


class Play:
    """A ledger and its reference, on one disk and with one clock."""

    def __init__(self) -> None:
        self.clocks = ManualClocks(Now(elapsed=0, awake=0, wall=0))
        self.disk = ToyDisk()
        self.reference = Reference(self.clocks)
        routes = toy_routes(self.reference.on_decision)
        self.ledger = Ledger(routes, ENVIRONMENT, self.disk, self.clocks.now, self._report)
        self._decided: dict[int, Act] = {}
        self._outcomes: Counter[int] = Counter()
        self._newest_in_lane: dict[str, int] = {}
        self._on_its_way: list[Write] | None = None
        self._landed = False

    def run(self, script: Sequence[Step]) -> None:
        """Play every step, then come to rest."""
        for step in script:
            self._do(step)
            self._check()
        self._come_to_rest()

    def _report(self, event: Event, error: Exception) -> None:
        raise error

    # -- steps ----------------------------------------------------------------------------------------------

    def _do(self, step: Step) -> None:
        match step:
            case Decide(act):
                self._decide(act)
            case Take():
                self._take()
            case Land():
                self._land()
            case Finish(outcome):
                self._finish(outcome)
            case Resume() if self.reference.refusing:
                self._resume()
            case Pass(ms, asleep):
                self._pass(ms, asleep)

    def _decide(self, act: Act) -> None:
        late = self._late()
        self._decided[act.number] = act
        try:
            self.ledger.decide(act)
        except ToyFault:
            del self._decided[act.number]
        own = {(write.table.name, write.key) for write in act.writes}
        left = late.keys() & self._late().keys() - own
        expect_equal("deadlines that are due are decided before any event", left, set())

    def _take(self) -> None:
        batch = self.ledger.take_batch()
        if batch is not None:
            self._on_its_way, self._landed = batch.writes(), False
            self.reference.take()

    def _land(self) -> None:
        if self._on_its_way is not None and not self._landed:
            self.disk.apply(self._on_its_way)
            self._landed = True

    def _finish(self, outcome: Outcome) -> None:
        if self._on_its_way is None:
            return
        if outcome is Outcome.COMMITTED or self._landed:
            self._land()
            self.reference.commit()
            self.ledger.committed()
        else:
            refusing = outcome is Outcome.REFUSED
            self.reference.fail(refusing)
            self.ledger.failed(refusing)
        self._on_its_way = None

    def _resume(self) -> None:
        self.reference.resume()
        self.ledger.resume()

    def _pass(self, ms: int, asleep: bool) -> None:
        (self.clocks.sleep if asleep else self.clocks.advance)(ms / 1000)
        self.ledger.fire_due()
        expect_equal("no deadline is lost", self._late(), {})

    def _come_to_rest(self) -> None:
        self._finish(Outcome.COMMITTED)
        if self.reference.refusing:
            self._resume()
        self._pass(1_000, asleep=False)
        self._check()
        while self.ledger.has_batch:
            self._take()
            self._finish(Outcome.COMMITTED)
            self._check()
        self._check_quiet()
        expect_equal("every event has one outcome", self._outcomes, Counter(list(self._decided)))

    # -- checks ---------------------------------------------------------------------------------------------

    def _check(self) -> None:
        self._check_effects()
        self._check_memory()
        waiting = len(self.reference.waiting) + len(self.reference.owed)
        expect_equal("what still waits is counted", self.ledger.outstanding, waiting)
        if self._on_its_way is None and not self.ledger.has_batch and not self.reference.refusing:
            self._check_quiet()

    def _check_effects(self) -> None:
        effects: list[Effect] = []
        while (effect := self.ledger.take_ready()) is not None:
            effects.append(effect)
        self.reference.check_released(effects)
        for effect in effects:
            match effect:
                case Unsaved(number) | Told(event=Act(number=number)):
                    self._outcomes[number] += 1
                    self._check_lane(self._decided[number])

    def _check_lane(self, act: Act) -> None:
        if act.lane is not None:
            newest = self._newest_in_lane.get(act.lane, 0)
            expect(newest < act.number, "effects keep the order of their lane", newest, act.number)
            self._newest_in_lane[act.lane] = act.number

    def _check_memory(self) -> None:
        in_memory = self.reference.in_memory()
        rows, deadlines = self.ledger.rows, self.ledger.deadlines
        expect_equal("memory holds what the standing decisions made", rows.contents(), in_memory)
        expect_equal("the heap holds the deadlines of the rows", deadlines.contents(), self._deadlines())
        for table in TABLES:
            for owner in OWNERS:
                found = Counter(rows.find(table, "owner", owner))
                expect_equal("indexes follow the rows", found, Counter(_owned(in_memory, table, owner)))
        tally = rows.get(TALLY, TALLY_KEY)
        papers = [paper for owner in OWNERS for paper in _owned(in_memory, PAPERS, owner) if not paper.done]
        counted = tally.count if isinstance(tally, Tally) else 0
        expect_equal("memory is undone together with its cause", counted, len(papers))

    def _check_quiet(self) -> None:
        """Nothing is under way: the disk holds what memory says, and a restart would find the same."""
        expect_equal("memory and disk are equal", self.disk.rows, self.reference.on_disk())
        expect_equal("nothing is outstanding at a quiet point", self.ledger.outstanding, 0)
        deadlines = Deadlines()
        rows = Rows(BY_NAME.values(), deadlines)
        for table, row in self.disk.live():
            rows.set(table, table.key(row), row)
        kept_rows, kept_deadlines = self.ledger.rows.contents(), self.ledger.deadlines.contents()
        expect_equal("a restart finds the same rows", rows.contents(), _only_stored(kept_rows))
        expect_equal("a restart finds the same deadlines", deadlines.contents(), _only_stored(kept_deadlines))

    def _deadlines(self) -> dict[RowKey, Deadline]:
        rows = self.reference.in_memory().items()
        return {key: deadline for key, row in rows if (deadline := BY_NAME[key[0]].deadline(row)) is not None}

    def _late(self) -> dict[RowKey, Deadline]:
        """The deadlines that are due, and neither paused nor left to their rows by a handler."""
        if self.reference.refusing:
            return {}
        now, declined = self.clocks.now(), self.reference.declined
        due = {key: deadline for key, deadline in self._deadlines().items() if is_due(deadline, now)}
        return {key: deadline for key, deadline in due.items() if declined.get(key) != deadline}


def _owned(state: State, table: ItemTable, owner: str) -> list[Item]:
    items = [row for (name, _), row in state.items() if name == table.name and isinstance(row, Item)]
    return [item for item in items if item.owner == owner]


def _only_stored(by_key: Mapping[RowKey, V]) -> dict[RowKey, V]:
    return {key: value for key, value in by_key.items() if BY_NAME[key[0]].keep is Keep.STORED}
