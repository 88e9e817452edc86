"""What is deleted for good: everything of a revoked client, and whatever the person has cleared."""

from __future__ import annotations

import attrs
import pytest

from handlers.companion.retention_rows import RECORD_COUNTS, TOMBSTONES
from handlers.companion.rows import CLIENTS, REQUESTS, Client
from handlers.companion.wiping import CLEARED, STEP_ROWS, WIPES
from handlers.events import ForgetKey, Hangup, Reply, Scrub, Scrubbed
from handlers.policy import DAY, Limits
from handlers.rule import Effect
from protocols.companion.messages import CreateRequest, GetRequest
from protocols.presenter.messages import Done, User
from protocols.session import NotSaved
from protocols.timestamps import rfc3339
from tests.support.companion_world import CHOICE, Session, World, refusal

KEPT = ("clients", "requests", "tombstones", "wipes")


@pytest.fixture
def world() -> World:
    world = World(Limits(max_queued_per_client=1000, max_queued_total=1000))
    world.presenter.ready()
    return world


def ended(session: Session, number: int = 1, key: str | None = None) -> list[str]:
    """Requests that have ended."""
    made = [session.choose(idempotency_key=key).request_id for _ in range(number)]
    for request_id in made:
        session.cancel(request_id)
    return made


def left_of(world: World, client_id: str) -> set[str]:
    """The tables in which there is anything of a client, on disk or in memory."""
    rows = [*world.disk.rows.items(), *world.ledger.rows.contents().items()]
    return {table for (table, _), row in rows if table in KEPT and client_id in attrs.astuple(row)}  # type: ignore[arg-type]


def of_kind(world: World, *kinds: type[Effect]) -> list[type[Effect]]:
    return [type(effect) for effect in world.effects if isinstance(effect, kinds)]


# -- a revoked client ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-4.14")
def test_a_revoke_leaves_nothing_of_the_client_and_everything_of_all_others(world: World) -> None:
    session, other = world.session("c1"), world.session("c2")
    ended(session, 2, "k")
    world.sleep(DAY / 1000)  # these are tombstones
    ended(session)
    session.choose()
    spared = ended(other)[0]
    world.presenter.user("revoke", client_id="c1")
    assert left_of(world, "c1") == set()
    assert world.ledger.rows.get(RECORD_COUNTS, "c1") is None
    assert other.get(spared).reason == "cancelled_by_client"
    assert left_of(world, "c2") == {"clients", "requests"}


@pytest.mark.requirement("CP-4.14")
def test_a_client_that_had_nothing_is_wiped_too(world: World) -> None:
    world.pair("c1")
    world.presenter.user("revoke", client_id="c1")
    assert left_of(world, "c1") == set()


@pytest.mark.requirement("CP-4.14")
def test_sessions_end_before_the_wiping_begins_and_the_scrubbing_comes_last(world: World) -> None:
    session = world.session("c1")
    ended(session, STEP_ROWS)
    world.effects.clear()
    world.presenter.user("revoke", client_id="c1")
    assert of_kind(world, Hangup, ForgetKey, Scrub) == [Hangup, ForgetKey, Scrub]


@pytest.mark.requirement("CP-4.14")
def test_many_records_are_dropped_in_small_decisions_between_which_others_get_their_turn(
    world: World,
) -> None:
    session, other = world.session("c1"), world.session("c2")
    ended(session, 3 * STEP_ROWS)
    world.holding = True
    world.presenter.say(User(action="revoke", client_id="c1"))
    sizes = []
    asked = other.ask(GetRequest(request_id="nothing"))
    while (batch := world.ledger.take_batch()) is not None:
        sizes.append(sum(write.table is REQUESTS and write.after is None for write in batch.writes()))
        world.disk.apply(batch.writes())
        world.ledger.committed()
        while world._carry_out():
            pass
        assert refusal(world.reply(asked))[0] == "NOT_FOUND"
        asked = other.ask(GetRequest(request_id="nothing"))
    assert [size for size in sizes if size] == [STEP_ROWS] * 3
    assert left_of(world, "c1") == set()


@pytest.mark.requirement("CP-4.14", "CP-4.12")
def test_a_revoke_that_could_not_be_stored_has_not_happened(world: World) -> None:
    session = world.session("c1")
    request_id = ended(session)[0]
    world.effects.clear()
    world.holding = True
    ref = world.presenter.say(User(action="revoke", client_id="c1"))
    world.fail_commit()
    assert isinstance(world.reply(ref), NotSaved)
    assert of_kind(world, Hangup, ForgetKey, Scrub) == []
    assert session.get(request_id).reason == "cancelled_by_client"


@pytest.mark.requirement("CP-4.14", "CP-4.12")
def test_a_wipe_that_meets_a_full_disk_goes_on_when_there_is_room(world: World) -> None:
    session = world.session("c1")
    ended(session, 2 * STEP_ROWS)
    world.holding = True
    world.presenter.say(User(action="revoke", client_id="c1"))
    batch = world.ledger.take_batch()
    assert batch is not None
    world.disk.apply(batch.writes())
    world.ledger.committed()
    while world._carry_out():
        pass
    world.fail_commit(refusing=True)
    assert left_of(world, "c1") == {"clients", "requests", "wipes"}
    world.ledger.resume()
    world.settle()
    assert left_of(world, "c1") == set()


@pytest.mark.requirement("CP-4.14", "CP-4.13")
@pytest.mark.parametrize("commits", range(1, 6))
def test_a_wipe_that_a_crash_has_cut_off_is_finished_by_the_next_start(world: World, commits: int) -> None:
    session = world.session("c1")
    ended(session, 2 * STEP_ROWS)
    session.choose()
    world.files_are_read = True
    world.holding = True
    world.presenter.say(User(action="revoke", client_id="c1"))
    for _ in range(commits):
        batch = world.ledger.take_batch()
        if batch is None:  # the scrubbing hangs
            break
        world.disk.apply(batch.writes())
        world.ledger.committed()
        while world._carry_out():
            pass
    assert "wipes" in left_of(world, "c1")
    world.holding = world.files_are_read = False
    world.effects.clear()
    world.restart()
    assert left_of(world, "c1") == set()
    assert of_kind(world, ForgetKey, Scrub) == [ForgetKey, Scrub]


@pytest.mark.requirement("CP-4.14")
def test_a_client_that_was_revoked_before_there_were_wipes_is_wiped_by_the_start(world: World) -> None:
    ended(world.session("c1"))
    client = world.disk.rows[CLIENTS.name, "c1"]
    assert isinstance(client, Client)
    world.disk.rows[CLIENTS.name, "c1"] = attrs.evolve(client, revoked=True)
    world.restart()
    assert left_of(world, "c1") == set()


@pytest.mark.requirement("CP-4.14", "CP-3.10")
def test_a_create_that_is_being_decided_meanwhile_loses(world: World) -> None:
    """Before or after the revoke, in the same commit: no request of it is left, and nobody is shown one."""
    session = world.session("c1")
    create = CreateRequest(capability="interaction.choose", params=CHOICE, timeout_ms=60_000)
    world.holding = True
    before = session.ask(create)
    world.presenter.say(User(action="revoke", client_id="c1"))
    after = session.ask(create)
    world.holding = False
    world.settle()
    assert refusal(world.reply(after))[0] == "UNAUTHENTICATED"
    made = world.reply(before).request_id
    assert left_of(world, "c1") == set()
    assert world.presenter.dismissed() == {made: "key_revoked"}
    assert refusal(session.call(GetRequest(request_id=made)))[0] == "UNAUTHENTICATED"


@pytest.mark.requirement("CP-4.14")
def test_narrowing_deletes_nothing(world: World) -> None:
    session = world.session("c1", "notify", "interact")
    request_id = ended(session, key="k")[0]
    world.presenter.user("narrow", client_id="c1", scopes=("interact",))
    assert session.get(request_id).reason == "cancelled_by_client"
    assert session.choose(idempotency_key="k").request_id == request_id
    assert of_kind(world, Scrub, ForgetKey) == []


# -- what the person clears -----------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-4.15")
def test_clearing_takes_what_has_ended_whosever_it_is_and_leaves_what_is_open(world: World) -> None:
    session, other = world.session("c1"), world.session("c2")
    stones = ended(session) + ended(other)
    world.sleep(DAY / 1000)
    gone = ended(session, 2) + ended(other)
    open_id = session.choose().request_id
    assert world.presenter.user("clear_records") == Done()
    for request_id in (*stones, *gone):
        for reader in (session, other):
            body = reader.get(request_id)
            assert refusal(body)[0] == "NOT_FOUND"
            assert body.details["recordsLostAt"] == rfc3339(world.clocks.now().wall)
    assert session.get(open_id).state.value == "running"
    assert left_of(world, CLEARED) == set()
    assert {key for name, key in world.disk.rows if name in (REQUESTS.name, TOMBSTONES.name)} == {open_id}


@pytest.mark.requirement("CP-4.15")
def test_what_was_cleared_is_gone_at_once_although_it_is_deleted_step_by_step(world: World) -> None:
    session = world.session("c1")
    made = ended(session, 2 * STEP_ROWS)
    expired = made[0]
    world.holding = True
    world.presenter.say(User(action="clear_records"))
    seen = [session.ask(GetRequest(request_id=request_id)) for request_id in (expired, made[-1])]
    batch = world.ledger.take_batch()
    assert batch is not None
    world.disk.apply(batch.writes())
    world.ledger.committed()
    while (effect := world.ledger.take_ready()) is not None:
        if isinstance(effect, Reply):
            world.replies.setdefault(effect.to, []).append(effect.body)
    assert {refusal(world.reply(ref))[0] for ref in seen} == {"NOT_FOUND"}
    assert sum(name == REQUESTS.name for name, _ in world.disk.rows) == 2 * STEP_ROWS


@pytest.mark.requirement("CP-4.15", "CP-4.1")
def test_a_cleared_key_makes_a_new_request_and_what_ends_later_is_kept(world: World) -> None:
    session = world.session("c1")
    old = ended(session, key="k")[0]
    world.presenter.user("clear_records")
    fresh = session.choose(idempotency_key="k").request_id
    assert fresh != old
    session.cancel(fresh)
    world.restart()
    assert world.session("c1").get(fresh).reason == "cancelled_by_client"
    assert refusal(world.session("c1").get(old))[0] == "NOT_FOUND"


@pytest.mark.requirement("CP-4.15", "CP-4.11")
def test_there_is_room_for_new_records_after_clearing() -> None:
    world = World(Limits(max_records_per_client=2))
    world.presenter.ready()
    session = world.session("c1")
    ended(session, 2)
    assert refusal(session.create("notice.show", {"text": "x"})) == ("QUEUE_FULL", "records")
    world.presenter.user("clear_records")
    session.choose()


@pytest.mark.requirement("CP-4.15")
def test_what_was_cleared_becomes_no_tombstone(world: World) -> None:
    session = world.session("c1")
    request_id = ended(session)[0]
    world.presenter.user("clear_records")
    world.sleep(2 * DAY / 1000)
    assert refusal(session.get(request_id))[0] == "NOT_FOUND"


@pytest.mark.requirement("CP-4.15")
def test_clearing_again_while_the_files_are_scrubbed_is_finished_too(world: World) -> None:
    session = world.session("c1")
    ended(session)
    world.files_are_read = True
    world.presenter.user("clear_records")
    first = next(effect for effect in world.effects if isinstance(effect, Scrub))
    ended(session)
    world.presenter.user("clear_records")
    assert len(of_kind(world, Scrub)) == 2
    world.submit(Scrubbed(first.id, first.revision))
    assert (WIPES.name, CLEARED) in world.disk.rows  # the second is still to be scrubbed
    world.files_are_read = False
    world.restart()
    assert (WIPES.name, CLEARED) not in world.disk.rows


@pytest.mark.requirement("CP-4.15", "CP-4.12")
def test_a_clearing_that_could_not_be_stored_has_taken_nothing(world: World) -> None:
    session = world.session("c1")
    request_id = ended(session)[0]
    world.holding = True
    ref = world.presenter.say(User(action="clear_records"))
    world.fail_commit()
    assert isinstance(world.reply(ref), NotSaved)
    assert session.get(request_id).reason == "cancelled_by_client"
    assert "recordsLostAt" not in session.get("nothing").details


@pytest.mark.requirement("CP-4.15")
def test_the_newest_loss_is_told(world: World) -> None:
    session = world.session("c1")
    for _ in range(2):
        world.advance(1_000)
        world.presenter.user("clear_records")
        assert session.get("nothing").details["recordsLostAt"] == rfc3339(world.clocks.now().wall)
