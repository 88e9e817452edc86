"""requests.wait (CP-3.9, G05, G12)."""

from __future__ import annotations

from typing import Any

import pytest

from handlers.companion.rows import WAITS
from handlers.policy import Limits
from protocols.companion.messages import CancelRequest, WaitResult
from protocols.companion.states import State
from protocols.refusal import Refused
from tests.support.companion_world import Session, World


@pytest.mark.requirement("CP-3.9")
def test_a_wait_is_answered_by_the_next_change(world: World, session: Session) -> None:
    made = session.choose()
    ref = session.wait(made.request_id, made.revision)
    assert world.reply(ref) is None
    world.presenter.presented(made.request_id)
    result = world.reply(ref)
    assert isinstance(result, WaitResult)
    assert result.changed
    assert (result.request.state, result.request.revision) == (State.AWAITING_USER, made.revision + 1)
    assert result.request == session.get(made.request_id)


@pytest.mark.requirement("CP-3.9")
def test_news_that_are_there_already_are_told_at_once(world: World, session: Session) -> None:
    made = session.choose()
    assert world.reply(session.wait(made.request_id, 0)) == WaitResult(changed=True, request=made)


@pytest.mark.requirement("CP-3.9")
def test_a_wait_that_runs_out_is_a_normal_result_and_cancels_nothing(world: World, session: Session) -> None:
    made = session.choose()
    world.presenter.presented(made.request_id)
    ref = session.wait(made.request_id, made.revision + 1, 1_000)
    world.advance(999)
    assert world.reply(ref) is None
    world.advance(1)
    result = world.reply(ref)
    assert isinstance(result, WaitResult)
    assert not result.changed
    assert result.request.state is State.AWAITING_USER
    assert len(world.presenter.pictures()) == 1


def test_a_wait_of_no_time_is_answered_at_once(world: World, session: Session) -> None:
    made = session.choose()
    assert world.reply(session.wait(made.request_id, made.revision, 0)) == WaitResult(
        changed=False, request=made
    )


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_terminal_request_answers_at_once(world: World, session: Session, after: int) -> None:
    ended = session.cancel(session.choose().request_id)
    result = world.reply(session.wait(ended.request_id, after))
    assert result == WaitResult(changed=after < 2, request=ended)


def test_a_revision_from_the_future_is_refused(world: World, session: Session) -> None:
    made = session.choose()
    body = world.reply(session.wait(made.request_id, made.revision + 1))
    assert isinstance(body, Refused)
    assert (body.code.value, body.details["field"], body.details["limit"]) == (
        "INVALID_PARAMS",
        "afterRevision",
        made.revision,
    )


@pytest.mark.requirement("CP-3.9")
@pytest.mark.parametrize(("limits", "limit"), [(Limits(), 60_000), (Limits(max_wait_ms=500), 500)])
def test_more_than_the_published_time_is_refused_with_the_limit(limits: Limits, limit: int) -> None:
    world = World(limits)
    world.presenter.ready()
    session = world.session("c1")
    made = session.choose()
    assert world.reply(session.wait(made.request_id, made.revision, limit)) is None
    body: Any = world.reply(session.wait(made.request_id, made.revision, limit + 1))
    assert (body.code.value, body.details["field"], body.details["limit"]) == (
        "INVALID_PARAMS",
        "waitMs",
        limit,
    )


@pytest.mark.requirement("G05")
def test_fifty_waits_are_answered_once_each_by_one_answer(world: World, session: Session) -> None:
    made = session.choose()
    world.presenter.presented(made.request_id)
    refs = [session.wait(made.request_id, made.revision + 1) for _ in range(50)]
    world.advance(500)
    world.presenter.answer(made.request_id, "allow")
    assert {world.reply(ref).request.state for ref in refs} == {State.COMPLETED}
    assert world.ledger.rows.all(WAITS) == []


@pytest.mark.requirement("G12", "CP-3.10")
def test_a_cancel_overtakes_a_wait_of_the_same_connection(world: World, session: Session) -> None:
    made = session.choose()
    wait = session.wait(made.request_id, made.revision)
    cancelled = session.cancel(made.request_id)
    assert cancelled.state is State.CANCELLED
    assert world.reply(wait) == WaitResult(changed=True, request=cancelled)
    assert world.presenter.dismissed() == {made.request_id: "cancelled_by_client"}


def test_disconnecting_ends_waits_and_never_requests(world: World, session: Session) -> None:
    made = session.choose()
    ref = session.wait(made.request_id, made.revision)
    session.close()
    world.presenter.presented(made.request_id)
    assert world.reply(ref) is None
    assert world.ledger.rows.all(WAITS) == []
    assert world.session("c1").get(made.request_id).state is State.AWAITING_USER


def test_a_wait_that_ends_with_the_request_itself_is_answered_once(world: World, session: Session) -> None:
    made = session.choose(timeout_ms=1_000)
    refs = [session.wait(made.request_id, made.revision, 1_000) for _ in range(2)]
    world.advance(1_000)
    assert {(world.reply(ref).changed, world.reply(ref).request.state) for ref in refs} == {
        (True, State.EXPIRED)
    }


def test_after_a_long_sleep_a_wait_is_told_once_how_its_request_ended(world: World, session: Session) -> None:
    made = session.choose(timeout_ms=1_000)
    ref = session.wait(made.request_id, made.revision, 500)
    world.suspend(2_000)
    world.advance(0)
    assert (world.reply(ref).changed, world.reply(ref).request.state) == (True, State.EXPIRED)


@pytest.mark.requirement("CP-4.12")
def test_a_wait_is_not_told_of_what_could_not_be_stored(world: World, session: Session) -> None:
    made = session.choose()
    wait = session.wait(made.request_id, made.revision)
    world.holding = True
    cancel = session.ask(CancelRequest(request_id=made.request_id))
    assert world.reply(wait) is None
    world.fail_commit()
    assert world.reply(wait) is None
    assert type(world.reply(cancel)).__name__ == "NotSaved"
    assert session.get(made.request_id) == made
