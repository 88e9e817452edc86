"""get, wait and cancel are bound to ownership alone (CP-4.3, CP-5.3)."""

from __future__ import annotations

import pytest

from protocols.companion.messages import GetRequest
from protocols.companion.states import State
from tests.support.companion_world import Session, World, refusal


@pytest.mark.requirement("CP-4.3", "CP-6.8", "CP-5.9")
def test_somebody_elses_request_is_as_unknown_as_none(world: World) -> None:
    owner, stranger = world.session("c1"), world.session("c2")
    made = owner.choose(task_id="t1")

    def replies(session: Session, request_id: str) -> list[object]:
        wait = session.wait(request_id, 0)
        return [session.get(request_id), session.cancel(request_id), world.reply(wait)]

    assert replies(stranger, made.request_id) == replies(stranger, "no such request")
    assert {refusal(body)[0] for body in replies(stranger, made.request_id)} == {"NOT_FOUND"}
    assert owner.get(made.request_id).state is State.RUNNING


@pytest.mark.requirement("CP-3.1")
def test_a_task_id_opens_nothing(world: World) -> None:
    world.session("c1").choose(task_id="t1")
    assert refusal(world.session("c2").get("t1"))[0] == "NOT_FOUND"


@pytest.mark.requirement("CP-5.3")
def test_an_owner_needs_no_scope_for_what_it_has(world: World) -> None:
    session = world.session("c1", "interact")
    made = session.choose()
    world.presenter.user("narrow", client_id="c1", scopes=())
    assert session.get(made.request_id).reason == "scope_revoked"
    assert world.reply(session.wait(made.request_id, 0)).request.reason == "scope_revoked"


def test_another_session_of_the_same_client_is_the_owner_too(world: World) -> None:
    made = world.session("c1").choose()
    assert world.session("c1").cancel(made.request_id).reason == "cancelled_by_client"


@pytest.mark.requirement("CP-3.3")
def test_an_ended_request_is_read_from_disk(world: World) -> None:
    session = world.session("c1")
    ended = session.cancel(session.choose().request_id)
    assert session.get(ended.request_id) == ended


def test_a_call_whose_connection_has_gone_is_nobodys(world: World) -> None:
    session = world.session("c1")
    made = session.choose()
    session.close()
    assert refusal(session.call(GetRequest(request_id=made.request_id)))[0] == "UNAUTHENTICATED"
