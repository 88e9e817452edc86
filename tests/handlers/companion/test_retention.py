"""How long what has ended can be read, in virtual time over days, restarts and boots of the machine."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

import attrs
import hypothesis
import hypothesis.strategies as st
import pytest

from handlers.companion.age import AGES, SAVE_EVERY_MS
from handlers.companion.retention import STEP_ROWS
from handlers.companion.retention_rows import SWEEPS, TOMBSTONES, Tombstone
from handlers.companion.rows import REQUESTS
from handlers.policy import DAY, HOUR, MINUTE, Limits, Retention
from protocols.companion.messages import CancelRequest, CreateRequest, GetRequest, UpdateRequest, WaitRequest
from protocols.companion.states import State
from tests.support.companion_world import CHOICE, Session, World, refusal

YEAR = 365 * DAY
KEPT = 24 * HOUR
STONES = 7 * DAY

CALLS: dict[str, Callable[[str], Any]] = {
    "get": lambda id: GetRequest(request_id=id),
    "wait": lambda id: WaitRequest(request_id=id, after_revision=0, wait_ms=30_000),
    "cancel": lambda id: CancelRequest(request_id=id),
    "update": lambda id: UpdateRequest(request_id=id, expected_revision=1, params={"fraction": 0.5}),
}


def ended(session: Session, **members: Any) -> str:
    """A request that ends in this instant."""
    request_id: str = session.choose(**members).request_id
    session.cancel(request_id)
    return request_id


def later(world: World, ms: int) -> None:
    """Let time pass, deadlines at their instants, with no presenter: its pulse would be felt every few seconds."""
    if world.presenter.connection is not None:
        world.presenter.gone()
    world.advance(ms)
    world.presenter.ready()


def code(session: Session, request_id: str) -> str:
    """What its owner reads: its state, or the code of the refusal."""
    body = session.get(request_id)
    return refusal(body)[0] if not hasattr(body, "state") else body.state.value


def kept(world: World, table: Any) -> int:
    """How many rows of the table are on the disk."""
    return sum(name == table.name for name, _ in world.disk.rows)


# -- a day, a week ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-4.10", "CP-6.8")
def test_a_result_is_read_for_24_hours_then_it_is_expired_for_7_days_then_it_was_never_there(
    world: World,
) -> None:
    session = world.session("c1")
    request_id = ended(session)
    for ms, expected in (
        (KEPT - 1, "cancelled"),
        (1, "RESULT_EXPIRED"),
        (STONES - 1, "RESULT_EXPIRED"),
        (1, "NOT_FOUND"),
    ):
        later(world, ms)
        assert code(session, request_id) == expected


@pytest.mark.requirement("CP-6.8")
@pytest.mark.parametrize("method", CALLS)
def test_every_method_says_expired_and_then_what_it_says_of_no_request(world: World, method: str) -> None:
    session = world.session("c1")
    call = CALLS[method]
    request_id = ended(session)
    never = session.call(call("never"))
    later(world, KEPT)
    assert refusal(session.call(call(request_id)))[0] == "RESULT_EXPIRED"
    later(world, STONES)
    assert session.call(call(request_id)) == never


@pytest.mark.requirement("CP-4.10")
def test_the_time_counts_from_the_end_and_not_from_the_beginning(world: World) -> None:
    session = world.session("c1")
    request_id = session.create("progress.track", {"title": "t"}, timeout_ms=DAY).request_id
    world.presenter.presented(request_id)
    world.suspend(20 * HOUR)
    session.cancel(request_id)
    world.suspend(KEPT - 1)
    assert code(session, request_id) == "cancelled"
    world.suspend(1)
    assert code(session, request_id) == "RESULT_EXPIRED"


@pytest.mark.requirement("CP-4.10")
def test_the_configuration_can_keep_longer() -> None:
    world = World(retention=Retention(hours=72))
    world.presenter.ready()
    session = world.session("c1")
    request_id = ended(session)
    later(world, 72 * HOUR - 1)
    assert code(session, request_id) == "cancelled"
    later(world, 1)
    assert code(session, request_id) == "RESULT_EXPIRED"


@pytest.mark.requirement("CP-4.10")
def test_what_nobody_reads_is_deleted_all_the_same(world: World) -> None:
    session = world.session("c1")
    for _ in range(3):
        ended(session)
    session.close()
    later(world, KEPT - 1)
    assert (kept(world, REQUESTS), kept(world, TOMBSTONES)) == (3, 0)
    later(world, 1)
    assert (kept(world, REQUESTS), kept(world, TOMBSTONES)) == (0, 3)
    later(world, STONES - 1)
    assert kept(world, TOMBSTONES) == 3
    later(world, 1)
    assert kept(world, TOMBSTONES) == 0


@pytest.mark.requirement("CP-4.10")
def test_nothing_of_its_content_is_in_what_remains(world: World) -> None:
    session = world.session("c1")
    ended(session, idempotency_key="deploy", task_id="task")
    later(world, KEPT)
    (stone,) = (row for (name, _), row in world.disk.rows.items() if name == TOMBSTONES.name)
    assert isinstance(stone, Tombstone)
    assert set(attrs.asdict(stone)) == {"id", "client_id", "age", "wall", "revision"}


@pytest.mark.requirement("CP-4.10")
def test_many_are_deleted_in_small_decisions() -> None:
    world = World(Limits(max_queued_per_client=1000, max_queued_total=1000))
    world.presenter.ready()
    session = world.session("c1")
    for _ in range(3 * STEP_ROWS + 1):
        ended(session)
    later(world, KEPT - 1)
    left = [kept(world, REQUESTS)]
    while left[-1]:
        world.advance(1)
        left.append(kept(world, REQUESTS))
    deleted = [before - after for before, after in pairwise(left) if before != after]
    assert deleted == [STEP_ROWS, STEP_ROWS, STEP_ROWS, 1]


@pytest.mark.requirement("CP-4.10", "CP-4.12")
def test_a_deletion_that_could_not_be_stored_is_made_up_for(world: World) -> None:
    session = world.session("c1")
    request_id = ended(session)
    later(world, KEPT - 1)
    world.holding = True
    world.advance(1)
    world.fail_commit(refusing=True)
    assert kept(world, REQUESTS) == 1
    assert code(session, request_id) == "RESULT_EXPIRED"  # reads go on
    world.ledger.resume()
    world.advance(1_000)
    assert (kept(world, REQUESTS), kept(world, TOMBSTONES)) == (0, 1)


# -- a key lives as long as its result ------------------------------------------------------------------------------


@pytest.mark.requirement("CP-4.1")
def test_a_key_finds_its_request_as_long_as_the_result_is_kept_and_then_makes_a_new_one(world: World) -> None:
    session = world.session("c1")
    request_id = ended(session, idempotency_key="k")
    later(world, KEPT - 1)
    assert session.choose(idempotency_key="k").request_id == request_id
    conflict = session.create("notice.show", {"text": "x"}, idempotency_key="k")
    assert refusal(conflict)[0] == "IDEMPOTENCY_CONFLICT"
    later(world, 1)
    fresh = session.create("notice.show", {"text": "x"}, idempotency_key="k")
    assert fresh.request_id != request_id
    assert code(session, request_id) == "RESULT_EXPIRED"
    assert session.create("notice.show", {"text": "x"}, idempotency_key="k").request_id == fresh.request_id


@pytest.mark.requirement("CP-4.1")
def test_a_key_is_free_at_once_although_the_sweep_comes_later(world: World) -> None:
    """The machine has slept over the instant, and nobody has looked since."""
    session = world.session("c1")
    request_id = ended(session, idempotency_key="k")
    world.suspend(KEPT)
    world.holding = True
    ref = session.ask(create_again("k"))
    world.holding = False
    world.settle()
    assert world.reply(ref).request_id != request_id
    assert [key for name, key in world.disk.rows if name == REQUESTS.name] == [world.reply(ref).request_id]


def create_again(key: str) -> CreateRequest:
    return CreateRequest(
        capability="interaction.choose", params=CHOICE, timeout_ms=60_000, idempotency_key=key
    )


@pytest.mark.requirement("CP-4.1", "CP-4.10")
def test_a_key_of_a_long_request_lives_from_its_end(world: World) -> None:
    session = world.session("c1")
    made = session.create("progress.track", {"title": "t"}, timeout_ms=DAY, idempotency_key="k")
    world.presenter.presented(made.request_id)
    world.suspend(DAY)
    assert code(session, made.request_id) == "expired"
    world.suspend(KEPT - 1)
    again = session.create("progress.track", {"title": "t"}, timeout_ms=DAY, idempotency_key="k")
    assert again.request_id == made.request_id


# -- clocks that are set, boots of the machine ----------------------------------------------------------------------


@pytest.mark.requirement("CP-4.10")
@pytest.mark.parametrize("step", [HOUR, KEPT, YEAR, 20 * YEAR])
def test_a_wall_clock_that_is_set_forwards_takes_nothing_away(world: World, step: int) -> None:
    session = world.session("c1")
    request_id = ended(session)
    world.clocks.step_wall(step / 1000)
    later(world, KEPT - 1)
    assert code(session, request_id) == "cancelled"
    later(world, 1)
    assert code(session, request_id) == "RESULT_EXPIRED"


@pytest.mark.requirement("CP-4.10")
@pytest.mark.parametrize("step", [HOUR, KEPT - 1, KEPT + 1, YEAR, 20 * YEAR])
def test_a_wall_clock_that_is_set_back_takes_nothing_away_and_keeps_nothing_for_ever(
    world: World, step: int
) -> None:
    """What is kept longer is kept for another day at most, however far the clock was set back."""
    session = world.session("c1")
    request_id = ended(session)
    world.clocks.step_wall(-step / 1000)
    later(world, KEPT - 1)
    assert code(session, request_id) == "cancelled"
    later(world, KEPT + 1)
    assert code(session, request_id) == "RESULT_EXPIRED"


@pytest.mark.requirement("CP-4.10")
@pytest.mark.parametrize("step", [YEAR, -YEAR, HOUR, -HOUR])
def test_a_step_that_is_undone_changes_nothing(world: World, step: int) -> None:
    session = world.session("c1")
    request_id = ended(session)
    world.clocks.step_wall(step / 1000)
    later(world, 2 * HOUR)
    world.clocks.step_wall(-step / 1000)
    later(world, KEPT - 2 * HOUR - 1)
    assert code(session, request_id) == "cancelled"
    later(world, 1)
    assert code(session, request_id) == "RESULT_EXPIRED"


@pytest.mark.requirement("CP-4.10")
def test_records_that_only_the_wall_clock_keeps_do_not_hold_up_those_behind_them(world: World) -> None:
    session = world.session("c1")
    for _ in range(STEP_ROWS + 5):
        ended(session)
    world.clocks.step_wall(-12 * HOUR / 1000)
    for _ in range(3):
        ended(session)
    later(world, KEPT + MINUTE)
    assert kept(world, REQUESTS) == STEP_ROWS + 5
    later(world, 12 * HOUR)
    assert kept(world, REQUESTS) == 0


@pytest.mark.requirement("CP-4.10")
def test_time_goes_on_while_no_broker_runs_and_while_the_machine_sleeps(world: World) -> None:
    request_id = ended(world.session("c1"))
    world.restart(down_seconds=20 * 3600)
    world.suspend(4 * HOUR - 1)
    assert code(world.session("c1"), request_id) == "cancelled"
    world.suspend(1)
    assert code(world.session("c1"), request_id) == "RESULT_EXPIRED"


@pytest.mark.requirement("CP-4.10")
def test_what_came_due_while_no_broker_ran_is_deleted_soon_after_the_start(world: World) -> None:
    for _ in range(3):
        ended(world.session("c1"))
    world.restart(down_seconds=2 * KEPT / 1000)
    later(world, 10 * MINUTE)
    assert (kept(world, REQUESTS), kept(world, TOMBSTONES)) == (0, 3)


@pytest.mark.requirement("CP-4.10")
def test_the_time_that_the_machine_was_off_is_not_counted(world: World) -> None:
    """Nobody can tell how long it was: the wall clock may have been set meanwhile."""
    request_id = ended(world.session("c1"))
    later(world, 10 * HOUR)
    world.restart(reboot=True, down_seconds=YEAR / 1000)
    later(world, 14 * HOUR - 1)
    assert code(world.session("c1"), request_id) == "cancelled"
    later(world, 1)
    assert code(world.session("c1"), request_id) == "RESULT_EXPIRED"


@pytest.mark.requirement("CP-4.10")
def test_a_boot_costs_no_more_than_what_was_not_saved_yet(world: World) -> None:
    request_id = ended(world.session("c1"))
    for _ in range(24):
        later(world, HOUR + SAVE_EVERY_MS)
        world.restart(reboot=True)
    assert code(world.session("c1"), request_id) == "RESULT_EXPIRED"


@pytest.mark.requirement("CP-4.10")
def test_the_age_clock_is_saved_now_and_then_and_at_no_other_time(world: World) -> None:
    revision = world.disk.rows[AGES.name, "age"].revision
    later(world, DAY)
    assert world.disk.rows[AGES.name, "age"].revision == revision + DAY // SAVE_EVERY_MS


@pytest.mark.requirement("CP-4.10", "CP-6.8")
@hypothesis.given(st.randoms(use_true_random=False))
@hypothesis.settings(max_examples=60, deadline=None)
def test_whatever_the_clocks_do_nothing_is_gone_before_a_day_nor_stays_for_ever(random: Random) -> None:
    """Sleep, restarts, boots and steps of the wall clock in any order; real time is kept by the test."""
    world = World()
    world.presenter.ready()
    request_id = ended(world.session("c1"))
    world.presenter.gone()
    real = 0
    for _ in range(random.randrange(12)):
        real += _something_happens(world, random)
        seen = looked_up(world, request_id)
        if real < KEPT:
            assert seen == "cancelled"
        if real < KEPT + STONES:
            assert seen != "NOT_FOUND"
    hours_go_by(world, 2 * KEPT)
    assert looked_up(world, request_id) != "cancelled"
    hours_go_by(world, 2 * STONES)
    assert looked_up(world, request_id) == "NOT_FOUND"
    assert (kept(world, REQUESTS), kept(world, TOMBSTONES)) == (0, 0)


def hours_go_by(world: World, ms: int) -> None:
    """Time passes, and the broker gets to look once an hour."""
    for _ in range(ms // HOUR):
        world.sleep(HOUR / 1000)


def looked_up(world: World, request_id: str) -> str:
    session = world.session("c1")
    seen = code(session, request_id)
    session.close()
    return seen


def _something_happens(world: World, random: Random) -> int:
    """One of the things that a clock has to bear; how long it really took."""
    ms = random.choice((1, MINUTE, HOUR, 5 * HOUR, KEPT))
    match random.randrange(5):
        case 0:
            later(world, ms)
        case 1:
            world.suspend(ms)
        case 2:
            world.restart(down_seconds=ms / 1000)
        case 3:
            world.restart(reboot=True, down_seconds=ms / 1000)
        case 4:
            world.clocks.step_wall(random.choice((-1, 1)) * random.choice((ms, YEAR)) / 1000)
            return 0
    return ms


# -- the record limit -----------------------------------------------------------------------------------------------


LIMIT = 3


@pytest.fixture
def small() -> World:
    world = World(Limits(max_records_per_client=LIMIT))
    world.presenter.ready()
    return world


def full(session: Session) -> bool:
    """Whether a create is refused for the records of its client; one that is not is cancelled at once."""
    body = session.create("notice.show", {"text": "x"})
    if isinstance(getattr(body, "state", None), State):
        session.cancel(body.request_id)
        return False
    assert refusal(body) == ("QUEUE_FULL", "records")
    assert (body.details["limit"], body.details["limitName"]) == (LIMIT, "maxRecordsPerClient")
    return True


@pytest.mark.requirement("CP-4.11")
def test_at_the_record_limit_new_requests_are_refused_and_no_result_is_evicted(small: World) -> None:
    session, other = small.session("c1"), small.session("c2")
    made = [ended(session, idempotency_key=f"k{n}") for n in range(LIMIT)]
    assert full(session)
    assert not full(other)
    assert [code(session, request_id) for request_id in made] == ["cancelled"] * LIMIT
    assert session.choose(idempotency_key="k0").request_id == made[0]


@pytest.mark.requirement("CP-4.11")
def test_open_requests_are_records_too(small: World) -> None:
    session = small.session("c1")
    for _ in range(LIMIT):
        session.choose()
    assert full(session)


@pytest.mark.requirement("CP-4.11")
def test_there_is_room_again_when_records_are_deleted(small: World) -> None:
    session = small.session("c1")
    for _ in range(LIMIT):
        ended(session)
    later(small, KEPT - 1)
    assert full(session)
    later(small, 1)
    assert [full(session) for _ in range(LIMIT + 1)] == [False] * LIMIT + [True]


@pytest.mark.requirement("CP-4.11")
def test_the_count_survives_a_restart(small: World) -> None:
    for _ in range(LIMIT - 1):
        ended(small.session("c1"))
    small.restart()
    small.presenter.ready()
    session = small.session("c1")
    assert [full(session), full(session)] == [False, True]


@pytest.mark.requirement("CP-4.11", "CP-4.12")
@pytest.mark.parametrize("counted_before", [True, False])
def test_a_create_that_could_not_be_stored_does_not_count(small: World, counted_before: bool) -> None:
    session = small.session("c1")
    if counted_before:
        ended(session)
    else:
        small.restart()
        small.presenter.ready()
        session = small.session("c1")
    small.holding = True
    for _ in range(2):
        session.ask(create_again("k"))
    small.fail_commit()
    left = LIMIT - 1 if counted_before else LIMIT
    assert [full(session) for _ in range(left + 1)] == [False] * left + [True]


@pytest.mark.requirement("CP-4.11")
def test_a_create_that_frees_its_own_key_counts_once(small: World) -> None:
    session = small.session("c1")
    for n in range(LIMIT):
        ended(session, idempotency_key=f"k{n}")
    small.clocks.sleep(KEPT / 1000)
    small.restart()
    small.presenter.ready()
    small.ledger.rows.set(SWEEPS, REQUESTS.name, None)  # the sweep is late
    session = small.session("c1")
    assert session.create("notice.show", {"text": "x"}, idempotency_key="k0").state is State.RUNNING
    assert full(session)
