"""The person answers, closes, or comes too late (presenter.md, answer, dismissed, Arming)."""

from __future__ import annotations

import pytest

from handlers.policy import Policy
from protocols.companion.states import State
from protocols.json_values import JSONObject
from protocols.presenter.messages import COMMITTED, Deferred, Present, rejected, too_late
from tests.support.companion_world import Session, World
from tests.support.presenter_end import Presenter

ARMING = Policy().arming_ms


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def screen(world: World) -> Presenter:
    return world.new_presenter()


@pytest.fixture
def agent(world: World, screen: Presenter) -> Session:
    return world.session()


def on_screen(world: World, screen: Presenter, agent: Session, title: str = "Read file?") -> Present:
    """A choice that is on the screen and armed."""
    shown = screen.presented(agent.choose(title).request_id)
    world.advance(ARMING)
    return shown


@pytest.mark.requirement("CP-3.5", "CP-3.7", "G14")
def test_picking_deny_is_completed_with_that_option(world: World, screen: Presenter, agent: Session) -> None:
    shown = on_screen(world, screen, agent)
    assert screen.answer_to(shown, {"selectedId": "deny"}) == COMMITTED
    request = world.request(shown.request_id)
    assert (request.state, request.reason, request.result) == (
        State.COMPLETED,
        "answered",
        '{"selectedId":"deny"}',
    )


@pytest.mark.requirement("CP-3.5", "CP-3.7", "G14")
def test_closing_the_bubble_is_cancelled_and_carries_no_option(
    world: World, screen: Presenter, agent: Session
) -> None:
    shown = on_screen(world, screen, agent)
    assert screen.dismiss(shown) == COMMITTED
    request = world.request(shown.request_id)
    assert (request.state, request.reason, request.result) == (State.CANCELLED, "dismissed_by_user", None)


@pytest.mark.requirement("CP-3.6")
def test_closing_a_notice_is_completed_as_presented(world: World, screen: Presenter, agent: Session) -> None:
    id = agent.notice({"text": "Done."}).request_id
    shown = screen.presented(id)
    world.advance(ARMING)
    assert screen.dismiss(shown) == COMMITTED
    assert (world.request(id).state, world.request(id).reason) == (State.COMPLETED, "presented")


@pytest.mark.requirement("CP-3.10", "G12")
def test_a_click_at_the_last_moment_after_a_cancel_changes_nothing(
    world: World, screen: Presenter, agent: Session
) -> None:
    shown = on_screen(world, screen, agent)
    agent.cancel(shown.request_id)
    cancelled = world.request(shown.request_id)
    assert [gone.request_id for gone in screen.dismissals()] == [shown.request_id]
    assert screen.answer_to(shown, {"selectedId": "allow"}) == too_late("cancelled", "cancelled_by_client")
    assert world.request(shown.request_id) == cancelled


@pytest.mark.requirement("CP-3.10")
def test_second_answer_is_too_late(world: World, screen: Presenter, agent: Session) -> None:
    shown = on_screen(world, screen, agent)
    screen.answer_to(shown, {"selectedId": "allow"})
    assert screen.answer_to(shown, {"selectedId": "deny"}) == too_late("completed", "answered")
    assert screen.dismiss(shown) == too_late("completed", "answered")
    assert world.request(shown.request_id).result == '{"selectedId":"allow"}'


@pytest.mark.requirement("CP-3.8", "CP-3.7")
def test_an_answer_at_the_deadline_is_too_late(world: World, screen: Presenter, agent: Session) -> None:
    shown = screen.presented(agent.choose(timeout_ms=2_000).request_id)
    world.sleep(2)
    assert screen.answer_to(shown, {"selectedId": "allow"}) == too_late("expired", "deadline")
    assert world.request(shown.request_id).result is None


@pytest.mark.requirement("G13")
def test_the_second_click_of_a_double_click_does_not_answer_the_next_question(
    world: World, screen: Presenter, agent: Session
) -> None:
    first = on_screen(world, screen, agent, "Read file?")
    second = agent.choose("Delete folder?").request_id
    assert screen.answer_to(first, {"selectedId": "allow"}) == COMMITTED
    shown = screen.presented(second)
    world.advance(150)
    assert screen.answer_to(shown, {"selectedId": "allow"}) == rejected("not_armed")
    assert world.request(second).state is State.AWAITING_USER


@pytest.mark.requirement("G13")
def test_a_key_held_down_since_before_the_question_does_not_answer_it(
    world: World, screen: Presenter, agent: Session
) -> None:
    shown = on_screen(world, screen, agent)
    world.advance(1_000)
    assert screen.answer_to(shown, {"selectedId": "allow"}, age=1_001) == rejected("not_armed")
    assert screen.dismiss(shown, age=1_001) == rejected("not_armed")
    assert screen.answer_to(shown, {"selectedId": "allow"}, age=1_000) == COMMITTED


@pytest.mark.requirement("G13")
def test_arming_is_measured_by_the_brokers_clock_while_awake(
    world: World, screen: Presenter, agent: Session
) -> None:
    shown = screen.presented(agent.choose().request_id)
    world.sleep(10)
    assert screen.answer_to(shown, {"selectedId": "allow"}) == rejected("not_armed")
    world.advance(ARMING)
    assert screen.answer_to(shown, {"selectedId": "allow"}) == COMMITTED


def test_what_was_not_reported_as_presented_cannot_be_answered(
    world: World, screen: Presenter, agent: Session
) -> None:
    shown = screen.picture(agent.choose().request_id)
    world.advance(1_000)
    assert screen.answer_to(shown, {"selectedId": "allow"}) == rejected("not_presented")
    assert screen.dismiss(shown) == rejected("not_presented")


def test_what_is_deferred_again_cannot_be_answered(world: World, screen: Presenter, agent: Session) -> None:
    shown = on_screen(world, screen, agent)
    deferred = Deferred(request_id=shown.request_id, revision=shown.revision, why="locked")
    screen.call(deferred)
    assert screen.answer_to(shown, {"selectedId": "allow"}) == rejected("not_presented")
    screen.presented(shown.request_id)
    assert screen.answer_to(shown, {"selectedId": "allow"}) == rejected("not_armed")


def test_an_answer_to_another_picture_is_stale(world: World, screen: Presenter, agent: Session) -> None:
    shown = on_screen(world, screen, agent)
    assert screen.answer_to(shown, {"selectedId": "allow"}, digest="0" * 64) == rejected("stale")
    assert world.request(shown.request_id).state is State.AWAITING_USER


@pytest.mark.parametrize(
    "result",
    [{}, {"selectedId": "Allow"}, {"selectedId": 1}, {"text": "y"}, {"selectedId": "y", "text": "y"}],
)
@pytest.mark.requirement("CP-2.14")
def test_an_answer_that_is_no_option_is_invalid(
    world: World, screen: Presenter, agent: Session, result: JSONObject
) -> None:
    shown = on_screen(world, screen, agent)
    assert screen.answer_to(shown, result) == rejected("invalid")
    assert world.request(shown.request_id).state is State.AWAITING_USER


def test_the_checks_come_in_the_order_of_the_protocol(
    world: World, screen: Presenter, agent: Session
) -> None:
    bad: JSONObject = {"selectedId": "?"}
    shown = screen.picture(agent.choose().request_id)
    assert screen.answer_to(shown, bad, age=9_999, digest="0" * 64) == rejected("not_presented")
    screen.presented(shown.request_id)
    assert screen.answer_to(shown, bad, age=9_999, digest="0" * 64) == rejected("stale")
    assert screen.answer_to(shown, bad, age=9_999) == rejected("invalid")
    assert screen.answer_to(shown, {"selectedId": "allow"}, age=9_999) == rejected("not_armed")
    agent.cancel(shown.request_id)
    late = screen.answer_to(shown, bad, age=9_999, digest="0" * 64)
    assert late == too_late("cancelled", "cancelled_by_client")


def test_only_the_presenter_that_shows_it_can_answer(world: World, screen: Presenter, agent: Session) -> None:
    shown = on_screen(world, screen, agent)
    newer = world.new_presenter()
    assert screen.answer_to(shown, {"selectedId": "allow"}) == rejected("not_presented")
    newer.presented(shown.request_id)
    world.advance(ARMING)
    assert screen.answer_to(shown, {"selectedId": "allow"}) == rejected("not_presented")
    assert newer.answer_to(shown, {"selectedId": "allow"}) == COMMITTED


@pytest.mark.requirement("CP-4.12")
def test_an_answer_that_is_not_saved_leaves_the_prompt_on_the_screen(
    world: World, screen: Presenter, agent: Session
) -> None:
    shown = on_screen(world, screen, agent)
    screen.news()
    world.saving = False
    world.replies.clear()
    with pytest.raises(AssertionError, match="NotSaved"):
        screen.answer_to(shown, {"selectedId": "allow"})
    assert screen.news() == []
    assert world.request(shown.request_id).state is State.AWAITING_USER
    world.saving = True
    assert screen.answer_to(shown, {"selectedId": "allow"}) == COMMITTED


@pytest.mark.requirement("CP-3.5", "CP-3.7")
def test_where_no_person_can_be_nothing_is_an_answer(world: World, screen: Presenter, agent: Session) -> None:
    first = on_screen(world, screen, agent)
    screen.gone()
    alone = world.new_presenter(person=False)
    shown = alone.presented(first.request_id)
    world.advance(ARMING)
    assert alone.answer_to(shown, {"selectedId": "allow"}) == rejected("not_armed")
    assert alone.dismiss(shown) == rejected("not_armed")
    assert world.request(first.request_id).state is State.AWAITING_USER
