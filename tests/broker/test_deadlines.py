"""The deadline heap: what is due comes, in order, on two clocks, and is never lost."""

from __future__ import annotations

import attrs
import hypothesis
import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from broker.daemon.clocks import ManualClocks
from broker.daemon.deadlines import AGAIN_MS, Deadlines
from broker.daemon.protocol_table import all_routes, protocol_table
from handlers.policy import Policy
from handlers.routes import merge
from handlers.rule import Deadline, Now, Table


def key(name: str) -> tuple[str, str]:
    return ("papers", name)


def at(elapsed: int, awake: int | None = None) -> Now:
    """An instant; awake time follows elapsed time unless it is given."""
    return Now(elapsed=elapsed, awake=elapsed if awake is None else awake, wall=0)


def take_all(deadlines: Deadlines, now: Now) -> list[str]:
    """The keys that are due, in the order in which they are taken."""
    taken = []
    while (due := deadlines.take_due(now)) is not None:
        taken.append(due[1])
    return taken


def test_nothing_is_due_where_nothing_was_set() -> None:
    deadlines = Deadlines()
    assert deadlines.take_due(at(10**12)) is None
    assert deadlines.next_in(at(0)) is None


def test_a_deadline_is_due_at_its_millisecond_and_not_before() -> None:
    deadlines = Deadlines()
    deadlines.set(key("x"), Deadline(1_000))
    assert deadlines.next_in(at(400)) == 600
    assert take_all(deadlines, at(999)) == []
    assert take_all(deadlines, at(1_000)) == ["x"]


def test_what_was_due_first_comes_first() -> None:
    deadlines = Deadlines()
    for name, instant in (("late", 30), ("early", 10), ("middle", 20)):
        deadlines.set(key(name), Deadline(instant))
    assert take_all(deadlines, at(100)) == ["early", "middle", "late"]


def test_equal_deadlines_come_in_the_order_in_which_they_were_set() -> None:
    deadlines = Deadlines()
    for name in ("b", "a", "c"):
        deadlines.set(key(name), Deadline(10))
    assert take_all(deadlines, at(10)) == ["b", "a", "c"]


def test_awake_deadlines_stand_still_while_the_machine_sleeps() -> None:
    deadlines = Deadlines()
    deadlines.set(key("lease"), Deadline(1_000, "awake"))
    deadlines.set(key("request"), Deadline(1_000, "elapsed"))
    slept = at(elapsed=5_000, awake=400)
    assert take_all(deadlines, slept) == ["request"]
    assert deadlines.next_in(slept) == 600


def test_a_renewed_deadline_replaces_the_old_one_earlier_or_later_or_on_the_other_clock() -> None:
    deadlines = Deadlines()
    deadlines.set(key("x"), Deadline(1_000))
    deadlines.set(key("x"), Deadline(2_000))
    assert take_all(deadlines, at(1_500)) == []
    deadlines.set(key("x"), Deadline(500))
    assert deadlines.next_in(at(0)) == 500
    deadlines.set(key("x"), Deadline(500, "awake"))
    assert take_all(deadlines, at(elapsed=600, awake=499)) == []
    assert take_all(deadlines, at(elapsed=600, awake=500)) == ["x"]


def test_a_removed_deadline_does_not_come() -> None:
    deadlines = Deadlines()
    deadlines.set(key("x"), Deadline(1_000))
    deadlines.set(key("x"), None)
    deadlines.set(key("never set"), None)
    assert take_all(deadlines, at(2_000)) == []
    assert deadlines.contents() == {}


def test_a_taken_deadline_comes_again_until_its_row_lets_go_of_it() -> None:
    deadlines = Deadlines()
    deadlines.set(key("x"), Deadline(1_000))
    assert take_all(deadlines, at(1_300)) == ["x"]
    assert deadlines.contents() == {key("x"): Deadline(1_000)}
    assert deadlines.next_in(at(1_300)) == AGAIN_MS
    assert take_all(deadlines, at(1_299 + AGAIN_MS)) == []
    assert take_all(deadlines, at(1_300 + AGAIN_MS)) == ["x"]
    deadlines.set(key("x"), None)
    assert take_all(deadlines, at(10_000)) == []


def test_setting_a_taken_deadline_to_the_same_instant_does_not_bring_it_at_once() -> None:
    deadlines = Deadlines()
    deadlines.set(key("x"), Deadline(1_000))
    assert take_all(deadlines, at(1_000)) == ["x"]
    deadlines.set(key("x"), Deadline(1_000))
    assert take_all(deadlines, at(1_000)) == []


def test_a_taken_deadline_that_was_undone_comes_at_once() -> None:
    deadlines = Deadlines()
    deadlines.set(key("x"), Deadline(1_000))
    assert take_all(deadlines, at(1_000)) == ["x"]
    deadlines.set(key("x"), None)  # the decision
    deadlines.set(key("x"), Deadline(1_000))  # and its undoing
    assert take_all(deadlines, at(1_000)) == ["x"]


def test_ten_thousand_renewals_of_one_deadline_leave_no_heap_behind() -> None:
    deadlines = Deadlines()
    for instant in range(10_000):
        deadlines.set(key("x"), Deadline(instant + 60_000, "awake"))
    assert max(map(len, deadlines._heaps.values())) < 100
    assert deadlines.next_in(at(0)) == 69_999


def test_every_table_of_the_broker_that_has_deadlines_has_a_handler_for_them() -> None:
    routes = merge(all_routes(protocol_table(Policy())))
    no_deadline = attrs.fields(Table).deadline.default
    assert {table.name for table in routes.tables if table.deadline is not no_deadline} == set(routes.due)


class AgainstADictionary(RuleBasedStateMachine):
    """Any sequence of calls leaves what a dictionary of deadlines, searched from end to end, would leave."""

    names = st.sampled_from([f"row {number}" for number in range(90)])
    deadlines_ = st.builds(Deadline, st.integers(0, 5_000), st.sampled_from(["elapsed", "awake"]))

    def __init__(self) -> None:
        super().__init__()
        self.clocks = ManualClocks(at(0))
        self.deadlines = Deadlines()
        self.expected: dict[tuple[str, str], Deadline] = {}
        self.again_at: dict[tuple[str, str], int] = {}

    @rule(name=names, deadline=st.none() | deadlines_)
    def set(self, name: str, deadline: Deadline | None) -> None:
        self.deadlines.set(key(name), deadline)
        if self.expected.get(key(name)) != deadline:
            self.again_at.pop(key(name), None)
        if deadline is None:
            self.expected.pop(key(name), None)
        else:
            self.expected[key(name)] = deadline

    @rule(start=st.integers(0, 5_000), every=st.integers(1, 20))
    def set_many(self, start: int, every: int) -> None:
        for number in range(90):
            self.set(f"row {number}", Deadline(start + number * every))

    @rule(seconds=st.floats(0, 2), asleep=st.booleans())
    def pass_time(self, seconds: float, asleep: bool) -> None:
        (self.clocks.sleep if asleep else self.clocks.advance)(seconds)

    @rule()
    def take(self) -> None:
        waits = self._waits()
        taken = self.deadlines.take_due(self.clocks.now())
        if taken is None:
            assert all(wait > 0 for wait in waits.values())
        else:
            assert waits[taken] <= 0
            time = getattr(self.clocks.now(), self.expected[taken].clock)
            self.again_at[taken] = time + AGAIN_MS

    @invariant()
    def knows_every_deadline_and_the_next(self) -> None:
        assert self.deadlines.contents() == self.expected
        waits = self._waits().values()
        assert self.deadlines.next_in(self.clocks.now()) == (max(0, min(waits)) if waits else None)

    def _waits(self) -> dict[tuple[str, str], int]:
        now = self.clocks.now()
        return {
            one: self.again_at.get(one, deadline.at) - getattr(now, deadline.clock)
            for one, deadline in self.expected.items()
        }


TestAgainstADictionary = AgainstADictionary.TestCase
TestAgainstADictionary.settings = hypothesis.settings(max_examples=40, deadline=None)
