"""The monitor: every change, told once it is stored, and the content of nothing (CP-4.10, CP-5.9)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_args

import attrs
import pytest

from broker.daemon.protocol_table import all_routes, protocol_table
from handlers.control.monitor import tell
from handlers.policy import Policy
from handlers.routes import merge
from protocols.companion.messages import CreateRequest
from protocols.companion.pairing import PairingRequest
from protocols.control import monitor
from protocols.control.monitor import Event
from protocols.json_values import JSON
from protocols.presenter.messages import PairingDecision, Presented, Setting
from protocols.structure import structure
from tests.support.companion_world import CHOICE
from tests.support.control_world import APP, ControlWorld, Owner

SECRET = "words of a client"


@pytest.fixture
def world() -> ControlWorld:
    world = ControlWorld()
    world.presenter.ready()
    return world


def listening(world: ControlWorld) -> Owner:
    owner = world.owner()
    assert owner.call("monitor") == {}
    assert owner.events() == []
    return owner


def test_a_request_is_told_with_each_of_its_revisions(world: ControlWorld) -> None:
    session, owner = world.session("c1"), listening(world)
    request = session.choose()
    world.presenter.presented(request.request_id)
    world.advance(1_000)
    world.presenter.answer(request.request_id, "allow")
    common = {
        "kind": "request",
        "requestId": request.request_id,
        "clientId": "c1",
        "capability": "interaction.choose",
    }
    assert owner.events() == [
        {**common, "state": "running", "revision": 1},
        {**common, "state": "awaiting_user", "revision": 2},
        {**common, "state": "completed", "reason": "answered", "revision": 3},
    ]


def test_time_alone_is_told_as_well(world: ControlWorld) -> None:
    session, owner = world.session("c1"), listening(world)
    world.presenter.presented(session.choose(timeout_ms=5_000).request_id)
    owner.events()
    world.advance(5_000)
    assert [(event["state"], event["reason"]) for event in owner.events()] == [("expired", "deadline")]


def test_connections_are_told_with_what_they_have_proved(world: ControlWorld) -> None:
    owner = listening(world)
    session = world.session("c1")
    session.close()
    common = {"kind": "connection", "connection": session.connection, "protocol": "companion"}
    opened, authenticated, closed = owner.events()
    assert opened == {**common, "state": "opened", "pid": opened["pid"]}
    assert authenticated == {**opened, "state": "authenticated", "clientId": "c1"}
    assert closed == {**authenticated, "state": "closed"}


def test_a_pairing_and_its_client_are_told_without_name_and_code(world: ControlWorld) -> None:
    owner = listening(world)
    asker = world.open()
    owner.events()
    pairing = world.reply(
        world.ask(asker, PairingRequest(client_name=SECRET, scopes=("notify",), purpose=SECRET))
    )
    shown = world.presenter.pushed[-1]
    world.presenter.say(Presented(pairing_id=pairing.pairing_id, digest=shown.digest))  # type: ignore[attr-defined]
    world.advance(1_000)
    world.presenter.say(
        PairingDecision(
            pairing_id=pairing.pairing_id,
            digest=shown.digest,  # type: ignore[attr-defined]
            input_started_ms=0,
            approved=True,
            scopes=("notify",),
        )
    )
    world.close(asker)  # before it has fetched its key
    events = owner.events()
    client_id = events[1]["clientId"]
    common = {"kind": "pairing", "pairingId": pairing.pairing_id, "connection": asker}
    client = {"kind": "client", "clientId": client_id, "scopes": ["notify"]}
    assert [event for event in events if event["kind"] != "connection"] == [
        {**common, "state": "pending"},
        {**client, "state": "paired"},
        {**common, "state": "approved"},
        {**client, "state": "removed"},
        {**common, "state": "cancelled"},
    ]


def test_what_is_taken_from_a_client_is_told(world: ControlWorld) -> None:
    world.pair("c1", "notify", "interact")
    owner = listening(world)
    world.owner().call("clients.narrow", clientId="c1", scopes=["notify"])
    world.owner().call("clients.revoke", clientId="c1")
    told = [event for event in owner.events() if event["kind"] == "client"]
    assert told == [
        {"kind": "client", "state": "narrowed", "clientId": "c1", "scopes": ["notify"]},
        {"kind": "client", "state": "revoked", "clientId": "c1", "scopes": ["notify"]},
        {"kind": "client", "state": "removed", "clientId": "c1", "scopes": ["notify"]},
    ]


@pytest.mark.requirement("CP-4.9")
def test_a_mute_is_told_and_so_is_its_end(world: ControlWorld) -> None:
    world.pair("c1")
    owner = listening(world)
    world.presenter.user("mute", client_id="c1", seconds=60)
    world.wait(60)
    world.presenter.user("mute", client_id="c1", seconds=60)
    world.presenter.user("mute", client_id="c1")
    told = [event["state"] for event in owner.events() if event["kind"] == "client"]
    assert told == ["muted", "unmuted", "muted", "unmuted"]


def test_what_the_person_has_set_is_told(world: ControlWorld) -> None:
    owner = listening(world)
    for action in ("hide", "show", "pause", "resume", "disable_access", "enable_access", "enable_access"):
        world.presenter.user(action)
    world.presenter.user("set", setting=Setting(reduced_motion=True))
    told = [event["state"] for event in owner.events() if event["kind"] == "settings"]
    assert told == ["hidden", "shown", "paused", "resumed", "access_off", "access_on", "changed"]


@pytest.mark.requirement("CP-4.15")
def test_a_clearing_is_told_as_a_whole_and_not_by_each_record(world: ControlWorld) -> None:
    session = world.session("c1")
    for _ in range(100):
        session.cancel(session.choose().request_id)
    owner = listening(world)
    world.presenter.user("clear_records")
    assert owner.events() == [
        {"kind": "records", "state": "clearing"},
        {"kind": "records", "state": "cleared"},
    ]


def test_the_presenter_is_told_as_it_comes_and_goes(world: ControlWorld) -> None:
    owner = listening(world)
    world.presenter.gone()
    world.presenter.ready()
    told = [event["state"] for event in owner.events() if event["kind"] == "presenter"]
    assert told == ["gone", "ready"]


def test_leases_checks_and_quits_are_told(world: ControlWorld) -> None:
    owner = listening(world)
    holder = world.holder("agent")
    holder.begin(APP, 60)
    world.wait(10)
    holder.renew(APP, 60)
    world.wait(121)
    asked = world.owner()
    call = asked.start("leases.may_close", appKey=APP, reserve=True)
    holder.reply(holder.pushed(), "allow_close")
    asked.call("leases.quit_done", ticket=asked.reply(call)["result"]["ticket"])
    events = [event for event in owner.events() if event["kind"] != "connection"]
    common = {"kind": "lease", "appKey": APP, "holderId": "agent"}
    assert events == [
        {**common, "state": "active"},
        {**common, "state": "active"},
        {**common, "state": "grace", "reason": "expired"},
        {**common, "state": "expired"},
        {"kind": "close_check", "state": "asked", "appKey": APP},
        {**common, "state": "ended"},
        {"kind": "close_check", "state": "over", "appKey": APP},
        {"kind": "quit", "state": "committed", "appKey": APP},
        {"kind": "quit", "state": "over", "appKey": APP},
    ]


# -- what it never tells --------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-5.9", "CP-4.10")
def test_no_content_is_ever_told(world: ControlWorld) -> None:
    owner = listening(world)
    options: list[JSON] = [{"id": SECRET, "label": "Yes"}, {"id": "n", "label": "No"}]
    session = world.session("c1")
    request = session.create(
        "interaction.choose",
        {"title": SECRET, "options": options},
        task_id=SECRET,
        idempotency_key=SECRET,
    )
    world.presenter.presented(request.request_id)
    world.advance(1_000)
    world.presenter.answer(request.request_id, SECRET)
    session.notice({"text": SECRET, "title": SECRET})
    world.ask(world.open(), PairingRequest(client_name=SECRET, scopes=("notify",), purpose=SECRET))
    holder = world.holder()
    holder.begin(APP)
    told = json.dumps(owner.events())
    assert request.request_id in told
    assert SECRET not in told
    assert "secret name" not in told  # what the holder calls itself
    assert "label" not in told


def test_every_member_of_an_event_is_an_id_a_state_or_a_number() -> None:
    allowed = {
        *("at", "kind", "state", "reason", "revision", "scopes", "protocol", "pid", "connection"),
        *("request_id", "client_id", "pairing_id", "holder_id", "app_key", "capability"),
    }
    assert {field.name for field in attrs.fields(Event)} == allowed


def test_the_page_of_the_events_names_every_kind() -> None:
    rows = [line for line in (monitor.__doc__ or "").splitlines() if line.startswith("| ")]
    assert [row.split("|")[1].strip() for row in rows[1:]] == list(get_args(monitor.Kind))


# -- when it tells --------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-4.12")
def test_nothing_is_told_that_is_not_stored(world: ControlWorld) -> None:
    session, owner = world.session("c1"), listening(world)
    world.holding = True
    session.ask(CreateRequest(capability="interaction.choose", params=CHOICE, timeout_ms=60_000))
    assert owner.events() == []
    world.fail_commit()
    assert owner.events() == []
    session.choose()
    assert [event["state"] for event in owner.events()] == ["running"]


def test_whoever_listens_twice_is_told_once(world: ControlWorld) -> None:
    session, owner = world.session("c1"), listening(world)
    owner.call("monitor")
    session.choose()
    assert len(owner.events()) == 1


def test_a_monitor_that_has_gone_is_told_nothing_and_the_others_of_its_end(world: ControlWorld) -> None:
    first, second = listening(world), listening(world)
    first.events()
    first.peer.disconnect()
    (closed,) = second.events()
    assert (closed["state"], closed["connection"]) == ("closed", first.peer.number)
    before = len(world.effects)
    world.session("c1").choose()
    pushed = [getattr(effect, "connection", None) for effect in world.effects[before:]]
    assert first.peer.number not in pushed
    assert second.peer.number in pushed


def test_a_monitor_is_still_a_connection_like_any_other(world: ControlWorld) -> None:
    owner = listening(world)
    assert owner.call("status")["hidden"] is False
    assert owner.call("hide") == {}
    assert [event["state"] for event in owner.events()] == ["hidden"]


def test_the_step_of_the_monitor_is_the_last_of_all() -> None:
    assert merge(all_routes(protocol_table(Policy()))).settle[-1] is tell


def test_events_read_as_they_are_described(world: ControlWorld) -> None:
    owner = world.owner()
    owner.start("monitor")
    world.session("c1").choose()
    lines: Iterator[Any] = iter([json.loads(line) for line in owner.peer.lines])
    assert next(lines) == {"jsonrpc": "2.0", "id": 1, "result": {}}
    for line in lines:
        assert (line["jsonrpc"], line["method"]) == ("2.0", "event")
        assert structure(Event, line["params"]).at == "2027-01-15T08:00:00.000Z"
