"""Where the total is full: what cannot wait takes the room of a notice that nobody has seen (CP-4.5, CP-4.6)."""

from __future__ import annotations

import pytest

from handlers.policy import Limits
from protocols.companion.messages import CreateRequest, Snapshot
from protocols.companion.states import State
from protocols.json_values import JSONObject
from protocols.session import NotSaved
from tests.support.companion_world import CHOICE, World, refusal

LIMITS = Limits(max_displayed=1, max_queued_per_client=4, max_queued_total=6)


@pytest.fixture
def world() -> World:
    world = World(LIMITS)
    world.presenter.ready()
    return world


def fill(world: World, *owners: str) -> list[Snapshot]:
    """A question on the display, then notices of these clients until the total is reached."""
    world.session("z").choose()
    return [world.session(name).notice() for name in owners]


@pytest.mark.requirement("CP-4.6")
def test_a_question_takes_the_room_of_the_oldest_notice_of_who_has_most_open(world: World) -> None:
    notices = fill(world, "a", "b", "b", "b", "a")
    asked = world.session("c").choose()
    assert asked.state is State.QUEUED
    evicted = world.session("b").get(notices[1].request_id)
    assert (evicted.state, evicted.reason, evicted.result) == (State.CANCELLED, "queue_evicted", None)
    others = [world.request(notice.request_id).state for notice in notices if notice is not notices[1]]
    assert others == [State.QUEUED] * 4


@pytest.mark.requirement("CP-4.6", "CP-3.9")
def test_who_waits_for_an_evicted_notice_is_told(world: World) -> None:
    notices = fill(world, "a", "a", "a", "b", "b")
    wait = world.session("a").wait(notices[0].request_id, 1)
    world.session("c").choose()
    assert world.reply(wait).request.reason == "queue_evicted"


@pytest.mark.requirement("CP-4.6")
@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("progress.track", {"title": "x"}),
        ("animation.play", {"expression": "happy"}),
        ("interaction.ask_text", {"title": "x"}),
    ],
)
def test_whatever_is_not_evictable_itself_may_take_the_room(
    world: World, kind: str, params: JSONObject
) -> None:
    fill(world, "a", "a", "b", "b", "b")
    made = world.session("c").create(kind, params)
    assert isinstance(made, Snapshot)


@pytest.mark.requirement("CP-4.5", "CP-4.6")
def test_a_notice_evicts_nothing(world: World) -> None:
    notices = fill(world, "a", "a", "b", "b", "b")
    body = world.session("c").create("notice.show", {"text": "x"})
    assert refusal(body) == ("QUEUE_FULL", "queue")
    assert [world.request(notice.request_id).state for notice in notices] == [State.QUEUED] * 5


@pytest.mark.requirement("CP-4.6")
def test_a_notice_that_is_on_the_display_is_not_evicted(world: World) -> None:
    shown = world.session("a").notice()
    for name in ("a", "a", "b", "b", "b"):
        world.session(name).choose()
    assert refusal(world.session("c").create("interaction.choose", CHOICE)) == ("QUEUE_FULL", "queue")
    assert world.request(shown.request_id).state is State.RUNNING


@pytest.mark.requirement("CP-4.6")
def test_interactions_are_never_evicted(world: World) -> None:
    asked = [world.session(name).choose() for name in ("a", "a", "b", "b", "c", "c")]
    assert refusal(world.session("d").create("interaction.choose", CHOICE)) == ("QUEUE_FULL", "queue")
    assert all(not world.request(one.request_id).ended for one in asked)


@pytest.mark.requirement("CP-4.5")
def test_over_its_own_limit_a_client_evicts_not_even_itself(world: World) -> None:
    notices = [world.session("a").notice() for _ in range(4)]
    assert refusal(world.session("a").create("interaction.choose", CHOICE)) == ("QUEUE_FULL", "queue")
    assert not any(world.request(notice.request_id).ended for notice in notices)


@pytest.mark.requirement("CP-4.1", "CP-4.6")
def test_what_was_evicted_is_found_again_by_its_key_and_makes_no_second_request(world: World) -> None:
    a = world.session("a")
    world.session("z").choose()
    first = a.notice(idempotency_key="k")
    for name in ("a", "a", "b", "b"):
        world.session(name).notice()
    world.session("c").choose()
    again = a.notice(idempotency_key="k")
    assert (again.request_id, again.reason) == (first.request_id, "queue_evicted")


@pytest.mark.requirement("CP-3.2", "CP-4.6")
def test_a_refused_create_evicts_nothing(world: World) -> None:
    notices = fill(world, "a", "a", "b", "b", "b")
    session = world.session("c")
    session.create("interaction.choose", {"title": "no options"})
    session.create("interaction.choose", CHOICE, style="no such")
    assert not any(world.request(notice.request_id).ended for notice in notices)


@pytest.mark.requirement("CP-4.12", "CP-4.6")
def test_an_eviction_that_could_not_be_stored_has_not_been(world: World) -> None:
    notices = fill(world, "a", "a", "b", "b", "b")
    session = world.session("c")
    world.holding = True
    asked = session.ask(CreateRequest(capability="interaction.choose", params=CHOICE, timeout_ms=60_000))
    world.fail_commit()
    assert isinstance(world.reply(asked), NotSaved)
    assert not any(world.request(notice.request_id).ended for notice in notices)
