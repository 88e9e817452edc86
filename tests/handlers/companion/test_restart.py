"""After a restart nothing is replayed (CP-4.13)."""

from __future__ import annotations

import pytest

from protocols.companion.states import State
from tests.support.companion_world import World


@pytest.mark.requirement("CP-4.13")
def test_what_was_open_is_failed_once_and_not_shown_again(world: World) -> None:
    session = world.session("c1")
    made = [session.choose() for _ in range(4)]
    world.presenter.presented(made[0].request_id)
    world.restart()
    shown = len(world.presenter.pictures())
    world.presenter.ready()
    session = world.session("c1")
    ended = [session.get(one.request_id) for one in made]
    assert {(one.state, one.reason) for one in ended} == {(State.FAILED, "runtime_restarted")}
    assert {one.runtime_instance_id for one in ended} == {"run 1"}
    assert [one.revision for one in ended] == [3, 2, 2, 2]
    assert len(world.presenter.pictures()) == shown
    world.restart()
    assert [world.request(one.request_id).revision for one in made] == [3, 2, 2, 2]


@pytest.mark.requirement("CP-4.13", "CP-4.1")
def test_a_retry_after_the_restart_finds_the_failed_request_and_asks_nobody(world: World) -> None:
    made = world.session("c1").choose(idempotency_key="k")
    world.restart()
    world.presenter.ready()
    shown = len(world.presenter.pictures())
    again = world.session("c1").choose(idempotency_key="k")
    assert (again.request_id, again.reason) == (made.request_id, "runtime_restarted")
    assert len(world.presenter.pictures()) == shown


@pytest.mark.requirement("CP-4.13")
def test_what_had_ended_stays_as_it_ended(world: World) -> None:
    session = world.session("c1")
    ended = session.cancel(session.choose().request_id)
    world.restart()
    assert world.session("c1").get(ended.request_id) == ended
