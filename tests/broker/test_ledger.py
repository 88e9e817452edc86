"""The concurrency rule by example; `test_ledger_rule.py` holds it to random scripts."""

from __future__ import annotations

import attrs
import pytest

from broker.daemon.clocks import ManualClocks
from broker.daemon.deadlines import AGAIN_MS
from broker.daemon.ledger import Ledger
from handlers.routes import Routes
from handlers.rule import Draft, Due, Effect, Event, Now
from tests.support.toy_disk import ToyDisk
from tests.support.toy_routes import (
    ENVIRONMENT,
    PAPERS,
    PARKED,
    SETTINGS,
    SIGHTED,
    Act,
    All,
    Count,
    Drop,
    Find,
    Get,
    Item,
    ItemTable,
    OwedAct,
    Put,
    Reading,
    Told,
    ToyFault,
    Unsaved,
    UpTo,
    toy_routes,
)


class Desk:
    """A ledger on a toy disk, and what it told so far."""

    def __init__(self, routes: Routes | None = None) -> None:
        self.clocks = ManualClocks(Now(elapsed=0, awake=0, wall=0))
        self.disk = ToyDisk()
        self.faults: list[tuple[Event, Exception]] = []
        self.ledger = Ledger(routes or toy_routes(), ENVIRONMENT, self.disk, self.clocks.now, self._report)

    def _report(self, event: Event, error: Exception) -> None:
        self.faults.append((event, error))

    def told(self) -> list[int | str]:
        """The numbers of the acts whose effects were released since the last look; "unsaved N" for the others."""
        effects: list[Effect] = []
        while (effect := self.ledger.take_ready()) is not None:
            effects.append(effect)
        return [_name(effect) for effect in effects]

    def commit(self) -> None:
        """Send the open batch to the disk and tell the ledger."""
        batch = self.ledger.take_batch()
        assert batch is not None
        self.disk.apply(batch.writes())
        self.ledger.committed()

    def row(self, table: ItemTable, key: str = "x") -> Item | None:
        """The row in memory."""
        row = self.ledger.rows.contents().get((table.name, key))
        assert row is None or isinstance(row, Item)
        return row


def _name(effect: Effect) -> int | str:
    match effect:
        case Told(event=Act(number=number)):
            return number
        case Told(event=Due(table=table, key=key)):
            return f"due {table} {key}"
        case Unsaved(number=number):
            return f"unsaved {number}"
    raise AssertionError(effect)


def item(value: int, key: str = "x", due: int | None = None, done: bool = False) -> Item:
    return Item(key, "ann", value, due, done)


def put(
    number: int, table: ItemTable = PAPERS, key: str = "x", due: int | None = None, done: bool = False
) -> Act:
    return Act(number, writes=(Put(table, item(number, key, due, done)),))


@pytest.fixture
def desk() -> Desk:
    return Desk()


READINGS: list[Reading] = [
    Get(PAPERS, "x"),
    Find(PAPERS, "ann"),
    All(PAPERS),
    UpTo(PAPERS, 0, 1),
    Count(PAPERS, "bob"),
]
"""The last two find nothing: that there is nothing is a reading, too."""


# -- who waits -------------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-4.12")
def test_an_acknowledgement_waits_for_its_commit(desk: Desk) -> None:
    desk.ledger.decide(put(1))
    assert desk.told() == []
    desk.commit()
    assert desk.told() == [1]


@pytest.mark.requirement("CP-4.12")
@pytest.mark.parametrize("reading", READINGS)
def test_whoever_reads_what_is_not_on_disk_waits_with_its_writer(desk: Desk, reading: Reading) -> None:
    desk.ledger.decide(put(1))
    desk.ledger.decide(Act(2, reads=(reading,)))
    assert desk.told() == []
    desk.commit()
    assert desk.told() == [1, 2]


def test_whoever_reads_only_what_is_on_disk_does_not_wait(desk: Desk) -> None:
    desk.ledger.decide(put(1, key="x"))
    desk.commit()
    desk.ledger.decide(put(2, key="y"))
    desk.ledger.decide(Act(3, reads=(Get(PAPERS, "x"), All(SETTINGS))))
    assert desk.told() == [1, 3]


def test_a_reader_of_the_batch_on_its_way_does_not_wait_for_the_next_one(desk: Desk) -> None:
    desk.ledger.decide(put(1, key="x"))
    batch = desk.ledger.take_batch()
    assert batch is not None
    desk.ledger.decide(put(2, key="y"))
    desk.ledger.decide(Act(3, reads=(Get(PAPERS, "x"),)))
    desk.disk.apply(batch.writes())
    desk.ledger.committed()
    assert desk.told() == [1, 3]


def test_effects_of_one_lane_keep_their_order_although_the_second_could_go_at_once(desk: Desk) -> None:
    desk.ledger.decide(attrs.evolve(put(1), lane="left"))
    desk.ledger.decide(Act(2, lane="left"))
    desk.ledger.decide(Act(3, lane="right"))
    assert desk.told() == [3]
    desk.commit()
    assert desk.told() == [1, 2]


def test_a_row_changed_twice_in_a_batch_is_written_once_with_its_first_revision(desk: Desk) -> None:
    desk.ledger.decide(put(1))
    desk.commit()
    desk.ledger.decide(put(2))
    desk.ledger.decide(put(3))
    batch = desk.ledger.take_batch()
    assert batch is not None
    (write,) = batch.writes()
    assert write.before == 1
    assert write.after == attrs.evolve(item(3), revision=3)


def test_a_row_that_came_and_went_in_a_batch_is_not_written_but_its_effects_wait(desk: Desk) -> None:
    desk.ledger.decide(put(1, SETTINGS))
    desk.ledger.decide(Act(2, writes=(Drop(SETTINGS, "x"),)))
    assert desk.told() == []
    batch = desk.ledger.take_batch()
    assert batch is not None
    assert batch.writes() == []
    desk.ledger.committed()
    assert desk.told() == [1, 2]


# -- what is in memory -------------------------------------------------------------------------------------------


def test_a_settled_row_leaves_memory_once_it_is_on_disk_and_is_still_found(desk: Desk) -> None:
    desk.ledger.decide(put(1, done=True))
    assert desk.row(PAPERS) is not None
    desk.commit()
    assert desk.row(PAPERS) is None
    seen: list[Told] = []
    reads = (Get(PAPERS, "x"), Find(PAPERS, "ann"), UpTo(PAPERS, 1, 9), Count(PAPERS, "ann"), All(PAPERS))
    desk.ledger.decide(Act(2, reads=reads))
    while (effect := desk.ledger.take_ready()) is not None:
        assert isinstance(effect, Told)
        seen.append(effect)
    answers = [answer for _, answer in seen[-1].readings]
    paper = attrs.evolve(item(1, done=True), revision=1)
    assert answers == [frozenset({paper}), frozenset({paper}), (paper,), 1, frozenset()]


def test_a_dropped_row_is_not_read_from_the_disk_that_still_has_it(desk: Desk) -> None:
    desk.ledger.decide(put(1, done=True))
    desk.commit()
    desk.ledger.decide(Act(2, writes=(Drop(PAPERS, "x"),)))
    desk.ledger.decide(put(3))
    paper = desk.row(PAPERS)
    assert paper is not None
    assert paper.revision == 1


@pytest.mark.requirement("CP-4.12")
def test_a_failed_commit_undoes_what_was_built_on_it_and_tells_every_sender_no(desk: Desk) -> None:
    desk.ledger.decide(put(1))
    desk.commit()
    before = desk.ledger.rows.contents()
    desk.ledger.decide(put(2))
    assert desk.ledger.take_batch() is not None
    desk.ledger.decide(put(3))
    desk.ledger.decide(Act(4, reads=(Get(PAPERS, "x"),), writes=(Put(PARKED, item(4)),)))
    assert desk.told() == [1]
    desk.ledger.failed(refusing=False)
    assert desk.told() == ["unsaved 2", "unsaved 3", "unsaved 4"]
    assert desk.ledger.rows.contents() == before
    assert desk.ledger.outstanding == 0


def test_what_the_world_did_is_not_undone(desk: Desk) -> None:
    desk.ledger.decide(Act(1, writes=(Put(PAPERS, item(1)), Put(SIGHTED, item(1)), Put(PARKED, item(1)))))
    assert desk.ledger.take_batch() is not None
    desk.ledger.failed(refusing=False)
    assert desk.row(SIGHTED) is not None
    assert desk.row(PAPERS) is None
    assert desk.row(PARKED) is None


def test_a_handlers_fault_leaves_everything_as_it_was(desk: Desk) -> None:
    desk.ledger.decide(put(1))
    before = desk.ledger.rows.contents()
    with pytest.raises(ToyFault):
        desk.ledger.decide(attrs.evolve(put(2), fails=True))
    assert desk.ledger.rows.contents() == before
    assert desk.ledger.outstanding == 1


# -- the world, and a disk that refuses --------------------------------------------------------------------------


def owed(number: int, key: str = "x") -> OwedAct:
    return OwedAct(number, writes=(Put(PAPERS, item(number, key)),))


def test_what_the_world_did_is_decided_again_after_a_failed_commit(desk: Desk) -> None:
    desk.ledger.decide(owed(1))
    assert desk.ledger.take_batch() is not None
    desk.ledger.failed(refusing=False)
    assert desk.told() == []
    desk.commit()
    assert desk.told() == [1]


def test_what_the_world_did_is_decided_again_in_its_order_whichever_batch_it_waited_for() -> None:
    decided: list[int | str] = []
    desk = Desk(toy_routes(lambda decision: decided.extend(map(_name, decision.effects))))
    desk.ledger.decide(put(1, key="x"))
    assert desk.ledger.take_batch() is not None
    desk.ledger.decide(owed(2, key="y"))
    desk.ledger.decide(OwedAct(3, reads=(Get(PAPERS, "x"),)))
    desk.ledger.failed(refusing=False)
    assert decided == [1, 2, 3, 2, 3]


def test_while_the_disk_refuses_reads_go_on_writes_are_refused_and_the_world_is_remembered(
    desk: Desk,
) -> None:
    desk.ledger.decide(put(1))
    desk.commit()
    desk.ledger.decide(put(2))
    assert desk.ledger.take_batch() is not None
    desk.ledger.failed(refusing=True)
    desk.ledger.decide(put(3))
    desk.ledger.decide(owed(4))
    desk.ledger.decide(Act(5, reads=(Get(PAPERS, "x"),)))
    desk.ledger.decide(put(6, PARKED))
    assert desk.told() == [1, "unsaved 2", "unsaved 3", 5, 6]
    assert not desk.ledger.has_batch
    assert desk.ledger.outstanding == 1
    desk.ledger.resume()
    desk.commit()
    assert desk.told() == [4]
    assert desk.ledger.outstanding == 0


# -- deadlines ---------------------------------------------------------------------------------------------------


def test_a_deadline_that_is_due_is_decided_before_the_event(desk: Desk) -> None:
    desk.ledger.decide(put(1, due=1_000))
    desk.clocks.advance(1)
    desk.ledger.decide(Act(2, reads=(Get(PAPERS, "x"),)))
    desk.commit()
    assert desk.told() == [1, "due papers x", 2]


def test_deadlines_pause_while_the_disk_refuses_and_come_once_it_takes_writes_again(desk: Desk) -> None:
    desk.ledger.decide(put(1, due=1_000))
    desk.commit()
    desk.ledger.decide(put(2, key="y"))
    assert desk.ledger.take_batch() is not None
    desk.ledger.failed(refusing=True)
    desk.clocks.advance(60)
    desk.ledger.fire_due()
    assert desk.told() == [1, "unsaved 2"]
    desk.ledger.resume()
    desk.ledger.fire_due()
    desk.commit()
    assert desk.told() == ["due papers x"]


def test_a_deadline_whose_decision_could_not_be_saved_comes_again(desk: Desk) -> None:
    desk.ledger.decide(put(1, due=1_000))
    desk.commit()
    desk.clocks.advance(1)
    desk.ledger.fire_due()
    assert desk.ledger.take_batch() is not None
    desk.ledger.failed(refusing=False)
    desk.ledger.fire_due()
    desk.commit()
    assert desk.told() == [1, "due papers x"]


class Stubborn:
    """A handler of paper deadlines that fails so many times, then leaves its row so many times, then works."""

    def __init__(self, faults: int, idle: int) -> None:
        self.faults = faults
        self.idle = idle
        self.calls: list[str] = []

    def __call__(self, draft: Draft, event: Due, now: Now) -> None:
        self.calls.append(event.key)
        if event.key != "x":
            draft.drop(PAPERS, event.key)
        elif self.faults:
            self.faults -= 1
            raise ToyFault
        elif self.idle:
            self.idle -= 1
        else:
            draft.drop(PAPERS, event.key)


def stubborn_desk(handler: Stubborn) -> Desk:
    """A desk with two papers that are due at the first second; `handler` has trouble with the first."""
    desk = Desk(attrs.evolve(toy_routes(), due={PAPERS.name: handler}))
    desk.ledger.decide(put(1, due=1_000))
    desk.ledger.decide(put(2, key="y", due=1_000))
    desk.commit()
    desk.clocks.advance(1)
    desk.ledger.fire_due()
    return desk


def test_a_deadline_whose_handler_fails_is_reported_stops_no_other_and_comes_again() -> None:
    handler = Stubborn(faults=2, idle=0)
    desk = stubborn_desk(handler)
    assert handler.calls == ["x", "y"]
    assert [type(error) for _, error in desk.faults] == [ToyFault]
    for expected in (["x", "y", "x"], ["x", "y", "x", "x"]):
        assert desk.ledger.deadlines.next_in(desk.clocks.now()) == AGAIN_MS
        desk.clocks.advance(AGAIN_MS / 1000)
        desk.ledger.fire_due()
        assert handler.calls == expected
    assert desk.ledger.deadlines.next_in(desk.clocks.now()) is None


def test_a_deadline_that_its_handler_leaves_to_its_row_comes_again_without_keeping_the_broker_busy() -> None:
    handler = Stubborn(faults=0, idle=1)
    desk = stubborn_desk(handler)
    desk.ledger.fire_due()
    assert handler.calls == ["x", "y"]
    desk.clocks.advance(AGAIN_MS / 1000)
    desk.ledger.fire_due()
    assert handler.calls == ["x", "y", "x"]
    assert desk.row(PAPERS) is None


# -- a start -----------------------------------------------------------------------------------------------------


def test_loaded_rows_are_clean_and_their_deadlines_run(desk: Desk) -> None:
    desk.ledger.load([(PAPERS, attrs.evolve(item(1, due=1_000), revision=7))])
    desk.ledger.decide(Act(2, reads=(Get(PAPERS, "x"),)))
    assert desk.told() == [2]
    desk.clocks.advance(1)
    desk.ledger.fire_due()
    batch = desk.ledger.take_batch()
    assert batch is not None
    assert [write.before for write in batch.writes()] == [7]
