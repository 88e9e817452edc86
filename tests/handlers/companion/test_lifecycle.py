"""From handed over to ended: display, answers, closings, deadlines (CP-3.4 to CP-3.10, G14)."""

from __future__ import annotations

import attrs
import pytest

from handlers.companion import lifecycle
from handlers.companion.rows import DISPLAYS, REQUESTS, Display
from handlers.rule import Draft
from protocols.companion.messages import CancelRequest, CreateRequest, GetRequest, WaitRequest
from protocols.companion.states import REASONS, IllegalStep, State, Step, is_terminal
from protocols.presenter.messages import Attention
from protocols.session import NotSaved
from tests.support.companion_world import CHOICE, Session, World


def draft_of(world: World) -> Draft:
    class View:
        def get(self, table, key):  # type: ignore[no-untyped-def]
            return world.ledger.rows.get(table, key)

        def find(self, table, index, value):  # type: ignore[no-untyped-def]
            return world.ledger.rows.find(table, index, value)

        def all(self, table):  # type: ignore[no-untyped-def]
            return world.ledger.rows.all(table)

        def up_to(self, table, index, value, limit, start=""):  # type: ignore[no-untyped-def]
            return world.disk.up_to(table, index, (start, value), limit, ())

        def count(self, table, index, value):  # type: ignore[no-untyped-def]
            return world.disk.count(table, index, value, ())

    return Draft(View(), world.ledger._environment)


def create_again(key: str | None) -> CreateRequest:
    return CreateRequest(
        capability="interaction.choose", params=CHOICE, timeout_ms=1_000, idempotency_key=key
    )


def awaiting(world: World, session: Session, timeout_ms: int = 60_000, key: str | None = None) -> str:
    """A question that is on the screen and armed."""
    request_id = session.choose(timeout_ms=timeout_ms, idempotency_key=key).request_id
    world.presenter.presented(request_id)
    world.advance(500)
    return request_id


@pytest.mark.requirement("CP-3.6", "CP-3.4")
def test_a_question_awaits_its_user_from_the_moment_it_is_on_the_screen(
    world: World, session: Session
) -> None:
    made = session.choose()
    world.advance(1_000)
    assert session.get(made.request_id) == made
    world.presenter.presented(made.request_id)
    shown = session.get(made.request_id)
    assert (shown.state, shown.displayed_at) == (State.AWAITING_USER, "2027-01-15T08:00:01.000Z")
    assert shown.ended_at is None


@pytest.mark.requirement("CP-3.7", "G14")
def test_only_a_users_choice_completes_a_question(world: World, session: Session) -> None:
    request_id = awaiting(world, session)
    assert world.presenter.answer(request_id, "deny").outcome == "committed"
    ended = session.get(request_id)
    assert (ended.state, ended.reason, ended.result) == (State.COMPLETED, "answered", {"selectedId": "deny"})
    assert ended.ended_at is not None


@pytest.mark.requirement("CP-2.14")
def test_an_answer_that_is_no_option_changes_nothing(world: World, session: Session) -> None:
    request_id = awaiting(world, session)
    for selected_id in ("Allow", "other", ""):
        assert world.presenter.answer(request_id, selected_id).reason == "invalid"
    assert session.get(request_id).state is State.AWAITING_USER


@pytest.mark.requirement("CP-3.5", "CP-3.7", "G14")
def test_nobody_answered_closed_and_cancelled_are_told_apart_and_carry_no_answer(
    world: World, session: Session
) -> None:
    expired = awaiting(world, session, timeout_ms=2_000)
    closed = awaiting(world, session)
    cancelled = awaiting(world, session)
    world.presenter.close_bubble(closed)
    session.cancel(cancelled)
    world.advance(2_000)
    ends = {id: session.get(id) for id in (expired, closed, cancelled)}
    assert [(end.state, end.reason) for end in ends.values()] == [
        (State.EXPIRED, "deadline"),
        (State.CANCELLED, "dismissed_by_user"),
        (State.CANCELLED, "cancelled_by_client"),
    ]
    assert {end.result for end in ends.values()} == {None}
    assert world.presenter.dismissed() == {id: end.reason for id, end in ends.items()}


@pytest.mark.requirement("CP-3.10", "G12")
@pytest.mark.parametrize("first", ["answer", "cancel"])
def test_of_an_answer_and_a_cancel_the_first_wins(world: World, session: Session, first: str) -> None:
    request_id = awaiting(world, session)
    if first == "answer":
        world.presenter.answer(request_id, "allow")
        won = session.get(request_id)
        assert session.cancel(request_id) == won
    else:
        won = session.cancel(request_id)
        outcome = world.presenter.answer(request_id, "allow")
        assert (outcome.outcome, outcome.state) == ("too_late", "cancelled")
    assert session.get(request_id) == won
    assert won.state is (State.COMPLETED if first == "answer" else State.CANCELLED)


# -- deadlines ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-3.8")
def test_the_deadline_runs_from_acceptance_and_includes_queueing(world: World, session: Session) -> None:
    for _ in range(3):
        session.choose()
    queued = session.choose(timeout_ms=1_000)
    assert queued.state is State.QUEUED
    world.advance(999)
    assert session.get(queued.request_id).state is State.QUEUED
    world.advance(1)
    assert session.get(queued.request_id).reason == "deadline"


@pytest.mark.requirement("CP-3.10", "CP-4.12")
@pytest.mark.parametrize("path", ["get", "cancel", "wait", "create again", "answer", "dismiss"])
def test_past_the_deadline_nothing_is_told_but_expired_and_not_even_that_unsaved(
    world: World, session: Session, path: str
) -> None:
    """While the disk takes no writes deadlines pause, so each path has to look at the time by itself."""
    request_id = awaiting(world, session, timeout_ms=1_000, key="k")
    world.holding = True
    session.ask(create_again(None))
    world.fail_commit(refusing=True)
    world.suspend(500)
    message = {
        "get": GetRequest(request_id=request_id),
        "cancel": CancelRequest(request_id=request_id),
        "wait": WaitRequest(request_id=request_id, after_revision=2, wait_ms=1_000),
        "create again": create_again("k"),
    }.get(path)
    if path == "answer":
        told = world.presenter.answer(request_id, "allow")
    elif path == "dismiss":
        told = world.presenter.close_bubble(request_id)
    else:
        told = session.call(message)
    assert isinstance(told, NotSaved)
    world.ledger.resume()
    world.advance(0)
    assert session.get(request_id).reason == "deadline"


def test_a_machine_that_slept_past_the_deadline_wakes_to_an_expired_request(
    world: World, session: Session
) -> None:
    request_id = awaiting(world, session, timeout_ms=10_000)
    world.suspend(1_000_000)
    world.advance(0)
    assert world.request(request_id).state is State.EXPIRED


@pytest.mark.requirement("CP-3.8", "CP-4.12")
def test_what_is_past_its_deadline_is_not_presented_once_more(world: World, session: Session) -> None:
    """That it was presented could not be stored, and neither could its end: both are made up for now."""
    world.suspend(60_000)
    request_id = session.choose(timeout_ms=1_000).request_id
    world.holding = True
    world.presenter.presented(request_id)
    world.advance(5_000)
    world.fail_commit()
    world.advance(0)
    assert session.get(request_id).reason == "deadline"
    assert world.presenter.shown() == [request_id]


# -- notices -----------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-3.6", "CP-3.8")
def test_a_notice_is_completed_when_it_was_shown_as_long_as_agreed(world: World, session: Session) -> None:
    made = session.notice({"displayMs": 5_000})
    world.advance(1_500)
    world.presenter.presented(made.request_id)
    shown = session.get(made.request_id)
    assert (shown.state, shown.displayed_at) == (State.RUNNING, "2027-01-15T08:00:01.500Z")
    world.advance(4_999)
    assert session.get(made.request_id) == shown
    world.advance(1)
    ended = session.get(made.request_id)
    assert (ended.state, ended.reason, ended.result) == (State.COMPLETED, "presented", None)
    assert world.presenter.dismissed() == {made.request_id: "presented"}


def test_a_notice_that_the_person_closes_has_been_presented(world: World, session: Session) -> None:
    made = session.notice()
    world.presenter.presented(made.request_id)
    world.advance(500)
    world.presenter.close_bubble(made.request_id)
    assert session.get(made.request_id).reason == "presented"


@pytest.mark.requirement("CP-3.8")
def test_only_where_a_capability_declares_it_attention_stops_the_display_time(
    world: World, session: Session
) -> None:
    row = world.request(session.choose().request_id)
    world.ledger.load([(DISPLAYS, Display(row.id, until=5_000_000))])
    draft = draft_of(world)
    lifecycle.hold_display(draft, row, True, world.clocks.now())
    assert draft.decision().changes == ()


@pytest.mark.requirement("CP-3.8")
def test_attention_stops_the_display_time_of_a_notice_but_not_its_deadline(
    world: World, session: Session
) -> None:
    made = session.notice({"displayMs": 5_000}, timeout_ms=30_000)
    world.presenter.presented(made.request_id)
    world.advance(4_000)
    world.presenter.say(Attention(request_id=made.request_id, held=True))
    world.presenter.say(Attention(request_id=made.request_id, held=True))
    world.advance(10_000)
    held = session.get(made.request_id)
    assert (held.state, held.revision) == (State.RUNNING, 2)
    world.presenter.say(Attention(request_id=made.request_id, held=False))
    world.advance(999)
    assert session.get(made.request_id).state is State.RUNNING
    world.presenter.say(Attention(request_id=made.request_id, held=True))
    world.advance(20_000)
    assert session.get(made.request_id).reason == "deadline"


def test_where_the_deadline_and_the_display_time_have_both_passed_the_deadline_counts(
    world: World, session: Session
) -> None:
    made = session.notice({"displayMs": 5_000}, timeout_ms=6_000)
    world.presenter.presented(made.request_id)
    world.suspend(7_000)
    world.advance(0)
    assert session.get(made.request_id).state is State.EXPIRED


def test_a_second_report_of_the_same_picture_changes_nothing(world: World, session: Session) -> None:
    made = session.choose()
    world.presenter.presented(made.request_id)
    shown = session.get(made.request_id)
    world.advance(100)
    world.presenter.presented(made.request_id)
    assert session.get(made.request_id) == shown


# -- the presenter goes ------------------------------------------------------------------------------------


def test_a_question_whose_presenter_comes_back_is_shown_again_and_keeps_its_state(
    world: World, session: Session
) -> None:
    request_id = awaiting(world, session)
    before = session.get(request_id)
    world.presenter.gone()
    world.advance(1_000)
    world.presenter.ready()
    world.presenter.presented(request_id)
    assert session.get(request_id) == before
    world.advance(500)
    assert world.presenter.answer(request_id, "allow").outcome == "committed"


def test_a_deadline_that_comes_while_the_presenter_is_lost_is_presenter_lost(
    world: World, session: Session
) -> None:
    request_id = awaiting(world, session, timeout_ms=10_000)
    world.presenter.gone()
    world.advance(10_000)
    assert (session.get(request_id).state, session.get(request_id).reason) == (State.FAILED, "presenter_lost")


# -- the table ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-3.4")
@pytest.mark.parametrize("state", [state for state in State if is_terminal(state)])
def test_nothing_leads_out_of_a_terminal_state(world: World, session: Session, state: State) -> None:
    made = session.choose()
    row = attrs.evolve(world.request(made.request_id), state=state, reason="x")
    world.ledger.load([(REQUESTS, row)])
    draft = draft_of(world)
    reasons = {
        Step.COMPLETE: "answered",
        Step.CANCEL: "cancelled_by_client",
        Step.EXPIRE: "deadline",
        Step.FAIL: "render_failed",
    }
    for step, reason in reasons.items():
        with pytest.raises(IllegalStep):
            lifecycle.finish(draft, row, world.clocks.now(), step, reason)
    with pytest.raises(IllegalStep):
        lifecycle.hand_over(draft, row)
    assert draft.decision().changes == ()
    assert draft.decision().effects == ()


@pytest.mark.requirement("CP-3.7")
def test_only_an_answer_carries_a_result_and_every_state_has_its_own_reasons(
    world: World, session: Session
) -> None:
    row = world.request(session.choose().request_id)
    draft = draft_of(world)
    for step, reason, result in (
        (Step.CANCEL, "cancelled_by_client", "{}"),
        (Step.EXPIRE, "deadline", "{}"),
        (Step.COMPLETE, "deadline", None),
        (Step.CANCEL, "answered", None),
        (Step.FAIL, "cancelled_by_client", None),
    ):
        with pytest.raises(IllegalStep):
            lifecycle.finish(draft, row, world.clocks.now(), step, reason, result)
    assert set(REASONS) == {state for state in State if is_terminal(state)}
