"""The person answers, closes, or comes too late (presenter.md, answer, dismissed, Arming)."""

from __future__ import annotations

import pytest

from protocols.companion.messages import CancelRequest
from protocols.companion.states import State
from protocols.json_values import JSONObject
from protocols.presenter.messages import COMMITTED, Deferred, Present, rejected, too_late
from tests.support.stage import POLICY, Screen, Stage, choice

ARMING = POLICY.arming_ms


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def screen(stage: Stage) -> Screen:
    return stage.presenter()


@pytest.fixture
def agent(stage: Stage, screen: Screen) -> int:
    return stage.client("interact", "notify")


def on_screen(stage: Stage, screen: Screen, agent: int, title: str = "Read file?") -> Present:
    """A choice that is on the screen and armed."""
    shown = screen.present(stage.ask(agent, choice(title)).request_id)
    stage.wait(ARMING)
    return shown


@pytest.mark.requirement("CP-3.5", "CP-3.7", "G14")
def test_picking_deny_is_completed_with_that_option(stage: Stage, screen: Screen, agent: int) -> None:
    shown = on_screen(stage, screen, agent)
    assert screen.answer(shown, {"selectedId": "n"}) == COMMITTED
    request = stage.request(shown.request_id)
    assert (request.state, request.reason, request.result) == (
        State.COMPLETED,
        "answered",
        '{"selectedId":"n"}',
    )


@pytest.mark.requirement("CP-3.5", "CP-3.7", "G14")
def test_closing_the_bubble_is_cancelled_and_carries_no_option(
    stage: Stage, screen: Screen, agent: int
) -> None:
    shown = on_screen(stage, screen, agent)
    assert screen.dismiss(shown) == COMMITTED
    request = stage.request(shown.request_id)
    assert (request.state, request.reason, request.result) == (State.CANCELLED, "dismissed_by_user", None)


@pytest.mark.requirement("CP-3.6")
def test_closing_a_notice_is_completed_as_presented(stage: Stage, screen: Screen, agent: int) -> None:
    id = stage.ask(agent, {"text": "Done."}, "notice.show").request_id
    shown = screen.present(id)
    stage.wait(ARMING)
    assert screen.dismiss(shown) == COMMITTED
    assert (stage.request(id).state, stage.request(id).reason) == (State.COMPLETED, "presented")


@pytest.mark.requirement("CP-3.10", "G12")
def test_a_click_at_the_last_moment_after_a_cancel_changes_nothing(
    stage: Stage, screen: Screen, agent: int
) -> None:
    shown = on_screen(stage, screen, agent)
    stage.call(agent, CancelRequest(request_id=shown.request_id))
    cancelled = stage.request(shown.request_id)
    assert [gone.request_id for gone in screen.dismissals()] == [shown.request_id]
    assert screen.answer(shown, {"selectedId": "y"}) == too_late("cancelled", "cancelled_by_client")
    assert stage.request(shown.request_id) == cancelled


@pytest.mark.requirement("CP-3.10")
def test_second_answer_is_too_late(stage: Stage, screen: Screen, agent: int) -> None:
    shown = on_screen(stage, screen, agent)
    screen.answer(shown, {"selectedId": "y"})
    assert screen.answer(shown, {"selectedId": "n"}) == too_late("completed", "answered")
    assert screen.dismiss(shown) == too_late("completed", "answered")
    assert stage.request(shown.request_id).result == '{"selectedId":"y"}'


@pytest.mark.requirement("CP-3.8", "CP-3.7")
def test_an_answer_at_the_deadline_is_too_late(stage: Stage, screen: Screen, agent: int) -> None:
    shown = screen.present(stage.ask(agent, choice(), timeout_ms=2_000).request_id)
    stage.sleep(2_000)
    assert screen.answer(shown, {"selectedId": "y"}) == too_late("expired", "deadline")
    assert stage.request(shown.request_id).result is None


@pytest.mark.requirement("G13")
def test_the_second_click_of_a_double_click_does_not_answer_the_next_question(
    stage: Stage, screen: Screen, agent: int
) -> None:
    first = on_screen(stage, screen, agent, "Read file?")
    second = stage.ask(agent, choice("Delete folder?")).request_id
    assert screen.answer(first, {"selectedId": "y"}) == COMMITTED
    shown = screen.present(second)
    stage.wait(150)
    assert screen.answer(shown, {"selectedId": "y"}) == rejected("not_armed")
    assert stage.request(second).state is State.AWAITING_USER


@pytest.mark.requirement("G13")
def test_a_key_held_down_since_before_the_question_does_not_answer_it(
    stage: Stage, screen: Screen, agent: int
) -> None:
    shown = on_screen(stage, screen, agent)
    stage.wait(1_000)
    assert screen.answer(shown, {"selectedId": "y"}, age=1_001) == rejected("not_armed")
    assert screen.dismiss(shown, age=1_001) == rejected("not_armed")
    assert screen.answer(shown, {"selectedId": "y"}, age=1_000) == COMMITTED


@pytest.mark.requirement("G13")
def test_arming_is_measured_by_the_brokers_clock_while_awake(
    stage: Stage, screen: Screen, agent: int
) -> None:
    shown = screen.present(stage.ask(agent, choice()).request_id)
    stage.sleep(10_000)
    assert screen.answer(shown, {"selectedId": "y"}) == rejected("not_armed")
    stage.wait(ARMING)
    assert screen.answer(shown, {"selectedId": "y"}) == COMMITTED


def test_what_was_not_reported_as_presented_cannot_be_answered(
    stage: Stage, screen: Screen, agent: int
) -> None:
    shown = screen.shown(stage.ask(agent, choice()).request_id)
    stage.wait(1_000)
    assert screen.answer(shown, {"selectedId": "y"}) == rejected("not_presented")
    assert screen.dismiss(shown) == rejected("not_presented")


def test_what_is_deferred_again_cannot_be_answered(stage: Stage, screen: Screen, agent: int) -> None:
    shown = on_screen(stage, screen, agent)
    deferred = Deferred(request_id=shown.request_id, revision=shown.revision, why="locked")
    stage.call(screen.connection, deferred)
    assert screen.answer(shown, {"selectedId": "y"}) == rejected("not_presented")
    screen.present(shown.request_id)
    assert screen.answer(shown, {"selectedId": "y"}) == rejected("not_armed")


def test_an_answer_to_another_picture_is_stale(stage: Stage, screen: Screen, agent: int) -> None:
    shown = on_screen(stage, screen, agent)
    assert screen.answer(shown, {"selectedId": "y"}, digest="0" * 64) == rejected("stale")
    assert stage.request(shown.request_id).state is State.AWAITING_USER


@pytest.mark.parametrize(
    "result",
    [{}, {"selectedId": "Allow"}, {"selectedId": 1}, {"text": "y"}, {"selectedId": "y", "text": "y"}],
)
@pytest.mark.requirement("CP-2.14")
def test_an_answer_that_is_no_option_is_invalid(
    stage: Stage, screen: Screen, agent: int, result: JSONObject
) -> None:
    shown = on_screen(stage, screen, agent)
    assert screen.answer(shown, result) == rejected("invalid")
    assert stage.request(shown.request_id).state is State.AWAITING_USER


def test_the_checks_come_in_the_order_of_the_protocol(stage: Stage, screen: Screen, agent: int) -> None:
    bad: JSONObject = {"selectedId": "?"}
    shown = screen.shown(stage.ask(agent, choice()).request_id)
    assert screen.answer(shown, bad, age=9_999, digest="0" * 64) == rejected("not_presented")
    screen.present(shown.request_id)
    assert screen.answer(shown, bad, age=9_999, digest="0" * 64) == rejected("stale")
    assert screen.answer(shown, bad, age=9_999) == rejected("invalid")
    assert screen.answer(shown, {"selectedId": "y"}, age=9_999) == rejected("not_armed")
    stage.call(agent, CancelRequest(request_id=shown.request_id))
    late = screen.answer(shown, bad, age=9_999, digest="0" * 64)
    assert late == too_late("cancelled", "cancelled_by_client")


def test_only_the_presenter_that_shows_it_can_answer(stage: Stage, screen: Screen, agent: int) -> None:
    shown = on_screen(stage, screen, agent)
    newer = stage.presenter()
    assert screen.answer(shown, {"selectedId": "y"}) == rejected("not_presented")
    newer.present(shown.request_id)
    stage.wait(ARMING)
    assert screen.answer(shown, {"selectedId": "y"}) == rejected("not_presented")
    assert newer.answer(shown, {"selectedId": "y"}) == COMMITTED


@pytest.mark.requirement("CP-4.12")
def test_an_answer_that_is_not_saved_leaves_the_prompt_on_the_screen(
    stage: Stage, screen: Screen, agent: int
) -> None:
    shown = on_screen(stage, screen, agent)
    screen.news()
    stage.saving = False
    stage.replies.clear()
    with pytest.raises(AssertionError, match="NotSaved"):
        screen.answer(shown, {"selectedId": "y"})
    assert screen.news() == []
    assert stage.request(shown.request_id).state is State.AWAITING_USER
    stage.saving = True
    assert screen.answer(shown, {"selectedId": "y"}) == COMMITTED


@pytest.mark.requirement("CP-3.5", "CP-3.7")
def test_where_no_person_can_be_nothing_is_an_answer(stage: Stage, screen: Screen, agent: int) -> None:
    first = on_screen(stage, screen, agent)
    stage.close(screen.connection)
    alone = stage.presenter(person=False)
    shown = alone.present(first.request_id)
    stage.wait(ARMING)
    assert alone.answer(shown, {"selectedId": "y"}) == rejected("not_armed")
    assert alone.dismiss(shown) == rejected("not_armed")
    assert stage.request(first.request_id).state is State.AWAITING_USER
