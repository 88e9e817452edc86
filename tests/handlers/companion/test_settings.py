"""Hiding, pausing, access (CP-4.9, CP-5.1), and taking rights from a client (CP-4.14)."""

from __future__ import annotations

import pytest

from handlers.companion.rows import CLIENTS
from protocols.companion.messages import Authenticate, CancelRequest, CreateRequest, WaitResult
from protocols.companion.states import State
from tests.support.companion_world import Session, World, key_of, refusal


def three_states(world: World, session: Session) -> list[str]:
    """An awaiting, two running and a queued request."""
    made = [session.choose().request_id, session.notice().request_id, session.choose().request_id]
    world.presenter.presented(made[0])
    made.append(session.choose().request_id)
    assert [session.get(id).state.value for id in made] == ["awaiting_user", "running", "running", "queued"]
    return made


@pytest.mark.requirement("CP-4.9")
@pytest.mark.parametrize(
    ("act", "reason"),
    [("hide", "hidden_by_user"), ("pause", "paused_by_user"), ("disable_access", "access_disabled")],
)
def test_what_is_open_is_cancelled_at_once_with_the_reason(
    world: World, session: Session, act: str, reason: str
) -> None:
    made = three_states(world, session)
    waits = [session.wait(id, session.get(id).revision) for id in made]
    world.presenter.user(act)
    rows = [world.request(id) for id in made]
    assert {(row.state, row.reason, row.result) for row in rows} == {(State.CANCELLED, reason, None)}
    assert [world.reply(wait).request.reason for wait in waits] == [reason] * 4
    assert world.presenter.dismissed() == dict.fromkeys(made[:3], reason)  # the fourth was never handed over


@pytest.mark.requirement("CP-4.9")
@pytest.mark.parametrize(("act", "back"), [("hide", "show"), ("pause", "resume")])
def test_the_companion_is_not_summoned_until_the_user_says_so(
    world: World, session: Session, act: str, back: str
) -> None:
    made = three_states(world, session)
    shown = len(world.presenter.pictures())
    world.presenter.user(act)
    assert refusal(session.create("notice.show", {"text": "x"}))[0] == "RUNTIME_UNAVAILABLE"
    world.presenter.user(back)
    assert len(world.presenter.pictures()) == shown
    assert session.get(made[0]).state is State.CANCELLED
    assert session.notice().state is State.RUNNING


@pytest.mark.requirement("CP-4.9", "CP-3.10")
def test_what_has_ended_but_is_not_on_disk_yet_is_not_cancelled_again(world: World, session: Session) -> None:
    made = session.choose()
    world.holding = True
    session.ask(CancelRequest(request_id=made.request_id))
    world.presenter.user("hide")
    world.holding = False
    world.settle()
    assert session.get(made.request_id).reason == "cancelled_by_client"


@pytest.mark.requirement("CP-5.1")
def test_turning_access_off_ends_the_sessions(world: World, session: Session) -> None:
    stranger = world.open()
    world.presenter.user("disable_access")
    assert world.hung_up() == [session.connection]
    assert stranger not in world.hung_up()
    again = world.ask(stranger, Authenticate(client_id="c1", key=key_of("c1")))
    assert refusal(world.reply(again)) == ("RUNTIME_UNAVAILABLE", "access_off")
    world.presenter.user("enable_access")
    again = world.ask(stranger, Authenticate(client_id="c1", key=key_of("c1")))
    assert world.reply(again).client_id == "c1"


@pytest.mark.parametrize("act", ["hide", "pause", "disable_access"])
def test_what_the_user_said_outlives_a_restart(world: World, act: str) -> None:
    world.presenter.user(act)
    world.restart()
    world.presenter.ready()
    connection = world.open()
    world.pair("c1")
    ref = world.ask(connection, Authenticate(client_id="c1", key=key_of("c1")))
    if act == "disable_access":
        assert refusal(world.reply(ref)) == ("RUNTIME_UNAVAILABLE", "access_off")
    else:
        body = Session(world, connection).create("notice.show", {"text": "x"})
        assert refusal(body)[0] == "RUNTIME_UNAVAILABLE"


# -- one client --------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-4.14", "CP-5.1")
def test_a_revoked_client_loses_its_requests_waits_and_sessions(world: World) -> None:
    session, second, other = world.session("c1"), world.session("c1"), world.session("c2")
    made = [session.choose() for _ in range(2)]
    spared = other.choose()
    asked = [(session, made[0]), (session, made[1]), (second, made[0])]
    waits = [each.wait(request.request_id, 1) for each, request in asked]
    world.presenter.user("revoke", client_id="c1")
    replies = [world.reply(wait) for wait in waits]
    assert [refusal(reply)[0] for reply in replies] == ["UNAUTHENTICATED"] * 3
    assert not any(reply.closes for reply in replies), "the first would cut off the others"
    assert {world.last_seen(one.request_id).reason for one in made} == {"key_revoked"}
    assert sorted(world.hung_up()) == [session.connection, second.connection]
    assert other.get(spared.request_id) == spared


@pytest.mark.requirement("CP-4.14")
def test_a_revoked_key_opens_nothing_and_the_session_is_nobodys_at_once(
    world: World, session: Session
) -> None:
    made = session.choose()
    world.presenter.user("revoke", client_id="c1")
    for body in (
        session.get(made.request_id),
        session.cancel(made.request_id),
        session.create("notice.show", {"text": "x"}),
    ):
        assert refusal(body)[0] == "UNAUTHENTICATED"
        assert body.closes
    again = world.ask(world.open(), Authenticate(client_id="c1", key=key_of("c1")))
    assert refusal(world.reply(again))[0] == "UNAUTHENTICATED"


@pytest.mark.requirement("CP-4.14")
def test_a_create_that_was_deciding_meanwhile_loses(world: World, session: Session) -> None:
    world.holding = True
    world.presenter.user("revoke", client_id="c1")
    ref = session.ask(CreateRequest(capability="notice.show", params={"text": "x"}, timeout_ms=1_000))
    world.holding = False
    world.settle()
    assert refusal(world.reply(ref))[0] == "UNAUTHENTICATED"
    assert world.presenter.pictures() == []


def test_revoking_twice_or_nobody_is_told(world: World, session: Session) -> None:
    world.presenter.user("revoke", client_id="c1")
    before = world.ledger.rows.get(CLIENTS, "c1")
    for client_id in ("c1", "nobody"):
        assert refusal(world.presenter.user("revoke", client_id=client_id))[0] == "NOT_FOUND"
    assert world.ledger.rows.get(CLIENTS, "c1") == before


@pytest.mark.requirement("CP-5.3")
def test_a_lost_scope_cancels_its_work_and_nothing_else(world: World) -> None:
    session = world.session("c1", "notify", "interact")
    question, notice = session.choose(), session.notice()
    wait = session.wait(question.request_id, 1)
    world.presenter.user("narrow", client_id="c1", scopes=("notify", "discover"))
    result = world.reply(wait)
    assert isinstance(result, WaitResult)
    assert result.request.reason == "scope_revoked"
    assert session.get(notice.request_id).state is State.RUNNING
    assert refusal(session.create("interaction.choose", {}))[0] == "FORBIDDEN"
    assert world.hung_up() == []
    client = world.ledger.rows.get(CLIENTS, "c1")
    assert client is not None
    assert getattr(client, "scopes", None) == ("notify",)  # narrowing adds nothing
