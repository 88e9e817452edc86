"""Who gets a display place (CP-4.6, CP-4.7)."""

from __future__ import annotations

import pytest

from handlers.policy import Limits
from protocols.companion.capabilities import Interaction, Kind
from protocols.companion.states import State
from tests.support.companion_world import World


def one_place() -> World:
    world = World(Limits(max_displayed=1))
    world.presenter.ready()
    return world


@pytest.mark.requirement("CP-4.5")
def test_no_more_are_shown_than_published() -> None:
    world = World(Limits(max_displayed=2))
    world.presenter.ready()
    session = world.session("c1")
    made = [session.choose() for _ in range(4)]
    assert world.presenter.shown() == [snapshot.request_id for snapshot in made[:2]]
    session.cancel(made[0].request_id)
    assert world.presenter.shown() == [snapshot.request_id for snapshot in made[:3]]


@pytest.mark.requirement("CP-4.7")
def test_places_go_round_among_the_clients_and_in_order_within_each() -> None:
    world = one_place()
    sessions = {name: world.session(name) for name in ("a", "b", "c")}
    made = [sessions[name].choose().request_id for name in ("a", "a", "a", "a", "c", "b", "b")]
    for request_id in list(made):
        owner = world.request(world.presenter.shown()[-1]).client_id
        sessions[owner].cancel(world.presenter.shown()[-1])
        assert request_id
    a1, a2, a3, a4, c1, b1, b2 = made
    assert world.presenter.shown() == [a1, b1, c1, a2, b2, a3, a4]


def test_the_place_in_the_queue_is_that_of_acceptance() -> None:
    world = one_place()
    sessions = [world.session("a"), world.session("b")]
    made = [sessions[n % 2].choose().request_id for n in range(5)]
    assert [world.request(request_id).order for request_id in made] == [1, 2, 3, 4, 5]


@pytest.mark.requirement("CP-4.6")
def test_everything_that_was_accepted_ends_and_says_why() -> None:
    world = one_place()
    session = world.session("c1")
    made = [session.notice({"displayMs": 1_000}).request_id for _ in range(3)]
    made += [session.choose(timeout_ms=5_000).request_id for _ in range(3)]
    for _ in range(3):
        world.presenter.presented(world.presenter.shown()[-1])
        world.advance(1_000)
    world.advance(5_000)
    reasons = [session.get(request_id).reason for request_id in made]
    assert reasons[:3] == ["presented"] * 3
    assert set(reasons[3:]) <= {"deadline", "render_failed"}


def test_a_queued_request_is_shown_in_the_very_decision_that_frees_the_place() -> None:
    world = one_place()
    session = world.session("c1")
    first, second = session.choose(), session.choose()
    wait = session.wait(second.request_id, second.revision)
    session.cancel(first.request_id)
    result = world.reply(wait)
    assert (result.request.state, result.request.revision) == (State.RUNNING, second.revision + 1)
    assert result.request == session.get(second.request_id)


def test_what_the_presenter_cannot_draw_waits_and_lets_the_rest_pass() -> None:
    world = one_place()
    session = world.session("c1")
    first, choice, notice = session.notice(), session.choose(), session.notice()
    world.presenter.gone()
    world.presenter.ready(kinds=(Kind.NOTICE,), interactions=())
    session.cancel(first.request_id)
    assert world.presenter.shown()[-1] == notice.request_id
    assert session.get(choice.request_id).state is State.QUEUED
    session.cancel(notice.request_id)
    world.presenter.gone()
    world.presenter.ready(kinds=(Kind.INTERACTION,), interactions=(Interaction.CHOICE,))
    assert world.presenter.shown()[-1] == choice.request_id


def test_nothing_is_handed_over_while_no_presenter_is_there() -> None:
    world = one_place()
    session = world.session("c1")
    first, second = session.choose(), session.choose()
    world.presenter.gone()
    session.cancel(first.request_id)
    assert session.get(second.request_id).state is State.QUEUED
    world.presenter.ready()
    assert session.get(second.request_id).state is State.RUNNING


@pytest.mark.requirement("CP-4.12")
def test_a_place_whose_giving_could_not_be_stored_is_given_again() -> None:
    world = one_place()
    session = world.session("c1")
    first, second = session.choose(timeout_ms=5_000), session.choose()
    world.presenter.presented(first.request_id)
    world.holding = True
    world.advance(5_000)
    world.fail_commit()
    world.advance(0)
    assert session.get(first.request_id).state is State.EXPIRED
    assert session.get(second.request_id).state is State.RUNNING
    assert world.presenter.shown().count(second.request_id) == 1


@pytest.mark.requirement("CP-3.8", "CP-4.9")
def test_what_is_past_its_deadline_is_not_shown_for_even_an_instant() -> None:
    """The machine has slept over both deadlines; the first one frees a place that the second must not get."""
    world = one_place()
    session = world.session("c1")
    first, second = session.choose(timeout_ms=1_000), session.choose(timeout_ms=1_001)
    world.suspend(1_001)
    world.advance(0)
    assert world.presenter.shown() == [first.request_id]
    assert (session.get(second.request_id).reason, session.get(second.request_id).revision) == ("deadline", 2)
