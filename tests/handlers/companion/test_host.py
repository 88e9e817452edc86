"""The host's own requests: the way of every request, under an identity that nobody else can have (CP-1.3, CP-7.5)."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from handlers.companion.host import HOST, HOST_CONNECTION
from handlers.companion.rows import CLIENTS
from handlers.connections import CONNECTIONS, Connection
from handlers.events import Abandoned
from handlers.policy import Limits
from protocols.companion.messages import (
    Authenticate,
    CancelRequest,
    CreateRequest,
    GetRequest,
    Snapshot,
    UpdateRequest,
    WaitRequest,
)
from protocols.errors import InvalidValue
from protocols.json_values import JSONObject
from protocols.presenter.messages import Setting
from protocols.presenter.messages import Settings as SettingsMessage
from protocols.refusal import ErrorCode, Refused
from protocols.structure import structure
from tests.support.companion_world import CHOICE, key_of, refusal
from tests.support.control_world import ControlWorld

NOTICE: JSONObject = {"text": "hello"}


@pytest.fixture
def world() -> ControlWorld:
    world = ControlWorld()
    world.presenter.ready()
    return world


# -- the same way ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-1.3", "CP-3.10")
def test_a_question_of_the_hosts_lives_as_any_other(world: ControlWorld) -> None:
    host = world.host()
    asked = host.choose(idempotency_key="k", task_id="t")
    assert (asked.state.value, asked.revision, asked.task_id) == ("running", 1, "t")
    waiting = host.wait(asked.request_id, asked.revision)
    world.presenter.presented(asked.request_id)
    assert world.reply(waiting).request.state.value == "awaiting_user"
    world.advance(1_000)
    world.presenter.answer(asked.request_id, "allow")
    ended = host.get(asked.request_id)
    assert (ended.state.value, ended.reason, ended.result) == (
        "completed",
        "answered",
        {"selectedId": "allow"},
    )
    assert host.create("interaction.choose", CHOICE, idempotency_key="k") == ended
    assert host.cancel(asked.request_id) == ended


CREATES: dict[str, dict[str, Any]] = {
    "unknown capability": {"capability": "interaction.think", "params": {}},
    "unknown member": {"capability": "notice.show", "params": {**NOTICE, "html": True}},
    "wrong type": {"capability": "notice.show", "params": {"text": 7}},
    "an option twice": {
        "capability": "interaction.choose",
        "params": {"title": "?", "options": [{"id": "a", "label": "A"}, {"id": "a", "label": "B"}]},
    },
    "too long a life": {"capability": "notice.show", "params": NOTICE, "timeout_ms": 600_001},
    "unknown character": {"capability": "notice.show", "params": NOTICE, "character": "nobody"},
    "unsupported by it": {"capability": "progress.track", "params": {"title": "x"}, "character": "momo"},
    "unknown style": {"capability": "notice.show", "params": NOTICE, "style": "none"},
}


@pytest.mark.requirement("CP-1.3", "CP-7.2")
@pytest.mark.parametrize("case", CREATES)
def test_what_is_refused_to_a_client_is_refused_to_the_host(world: ControlWorld, case: str) -> None:
    host, client = world.host(), world.session("c1", "animate", "notify", "interact")
    create = CreateRequest(**{"timeout_ms": 60_000, **CREATES[case]})
    refused = host.call(create)
    assert isinstance(refused, Refused)
    assert refused == client.call(create)
    assert world.presenter.shown() == []


@pytest.mark.requirement("CP-1.3", "CP-4.5")
def test_the_published_capacities_hold_for_the_host() -> None:
    world = ControlWorld(Limits(max_queued_per_client=2, max_queued_total=3))
    world.presenter.ready()
    host, client = world.host(), world.session("c1")
    for _ in range(2):
        host.choose()
    full = host.create("interaction.choose", CHOICE)
    assert (refusal(full), full.details["limitName"]) == (("QUEUE_FULL", "queue"), "maxQueuedPerClient")
    client.choose()
    full = client.create("interaction.choose", CHOICE)
    assert full.details["limitName"] == "maxQueuedTotal"


@pytest.mark.requirement("CP-7.5", "CP-4.7")
def test_the_host_takes_its_turn_at_the_display_as_every_client_does() -> None:
    world = ControlWorld(Limits(max_displayed=1))
    world.presenter.ready()
    host, client = world.host(), world.session("c1")
    first = [host.choose().request_id for _ in range(3)]
    second = [client.choose().request_id for _ in range(3)]
    for request_id in (first[0], second[0], first[1], second[1], first[2]):
        assert world.presenter.shown()[-1] == request_id
        (host if request_id in first else client).cancel(request_id)
    assert world.presenter.shown()[-1] == second[2]


@pytest.mark.requirement("CP-4.13", "CP-1.3")
def test_a_restart_ends_what_the_host_had_open(world: ControlWorld) -> None:
    asked = world.host().choose()
    world.restart()
    ended = world.host().get(asked.request_id)
    assert (ended.state.value, ended.reason) == ("failed", "runtime_restarted")


@pytest.mark.requirement("CP-4.1")
def test_the_hosts_keys_are_its_own(world: ControlWorld) -> None:
    host, client = world.host(), world.session("c1")
    one, other = host.choose(idempotency_key="k"), client.choose(idempotency_key="k")
    assert one.request_id != other.request_id


def test_a_wait_that_is_abandoned_leaves_no_row_and_the_others_stay(world: ControlWorld) -> None:
    host = world.host()
    asked = host.choose()
    gone, stays = host.wait(asked.request_id, 1), host.wait(asked.request_id, 1)
    world.submit(Abandoned(gone))
    host.cancel(asked.request_id)
    assert world.reply(gone) is None
    assert world.reply(stays).request.state.value == "cancelled"


# -- what the person has said ----------------------------------------------------------------------------------


@pytest.mark.requirement("CP-4.9", "CP-7.5")
def test_hidden_the_companion_is_not_summoned_by_the_host_either(world: ControlWorld) -> None:
    host = world.host()
    asked, notice = host.choose(), host.notice()
    world.presenter.user("hide")
    for request_id in (asked.request_id, notice.request_id):
        ended = host.get(request_id)
        assert (ended.state.value, ended.reason) == ("cancelled", "hidden_by_user")
    assert refusal(host.create("notice.show", NOTICE)) == ("RUNTIME_UNAVAILABLE", "hidden")
    world.presenter.user("show")
    assert isinstance(host.create("notice.show", NOTICE), Snapshot)


@pytest.mark.requirement("CP-4.9", "CP-7.5")
@pytest.mark.parametrize(
    ("action", "reason"), [("pause", "paused_by_user"), ("disable_access", "access_disabled")]
)
def test_what_is_said_of_external_programs_does_not_concern_the_host(
    world: ControlWorld, action: str, reason: str
) -> None:
    host, client = world.host(), world.session("c1")
    own, foreign = host.choose(), client.choose()
    world.presenter.user(action)
    assert host.get(own.request_id).state.value == "running"
    assert world.request(foreign.request_id).reason == reason
    assert isinstance(host.create("notice.show", NOTICE), Snapshot)
    assert HOST_CONNECTION not in world.hung_up()


@pytest.mark.requirement("CP-7.5")
def test_what_waits_of_the_hosts_comes_to_the_screen_while_others_are_paused() -> None:
    world = ControlWorld(Limits(max_displayed=1))
    world.presenter.ready()
    host = world.host()
    first, second = host.choose(), host.choose()
    world.presenter.user("pause")
    host.cancel(first.request_id)
    assert world.presenter.shown() == [first.request_id, second.request_id]


@pytest.mark.requirement("CP-7.5")
def test_without_a_person_the_host_can_ask_nobody() -> None:
    world = ControlWorld()
    host = world.host()
    assert refusal(host.create("notice.show", NOTICE)) == ("RUNTIME_UNAVAILABLE", "no_presenter")
    world.presenter.ready(person=False)
    assert refusal(host.create("interaction.choose", CHOICE)) == ("RUNTIME_UNAVAILABLE", "no_presenter")


@pytest.mark.requirement("CP-7.5")
def test_the_persons_choices_hold_for_what_the_host_shows(world: ControlWorld) -> None:
    world.presenter.user("set", setting=Setting(character="momo", reduced_motion=True, sound=False))
    settings = [body for body in world.presenter.pushed if isinstance(body, SettingsMessage)]
    host = world.host()
    shown = host.create("animation.play", {"expression": "happy"})
    assert (shown.resolved_character, shown.substitution.reason) == ("momo", "reduced_motion")
    assert settings[-1].sound is False
    assert settings == [body for body in world.presenter.pushed if isinstance(body, SettingsMessage)]


def test_no_call_can_ask_for_a_sound(world: ControlWorld) -> None:
    host = world.host()
    refused = host.create("notice.show", {**NOTICE, "sound": True})
    assert (refused.code, refused.details["field"]) == (ErrorCode.INVALID_PARAMS, "params.sound")


# -- an identity that nobody else has --------------------------------------------------------------------------


@pytest.mark.requirement("CP-4.4")
def test_the_person_reads_the_hosts_label_and_no_program(world: ControlWorld) -> None:
    host, client = world.host(), world.session("c1")
    own = world.presenter.picture(host.choose().request_id)
    foreign = world.presenter.picture(client.choose().request_id)
    assert (own.source.label, own.source.program, own.source.pid) == ("Companion", None, None)
    assert foreign.source.label == "C1"


def forge_host(world: ControlWorld) -> None:
    """A row that no decision makes: a client under the host's id, with a key that somebody knows."""
    world.pair(HOST)


@pytest.mark.requirement("CP-1.3", "CP-4.4")
@pytest.mark.parametrize("forged", [False, True])
@pytest.mark.parametrize("key", ["", "x", "host"])
def test_nobody_can_authenticate_as_the_host(world: ControlWorld, key: str, forged: bool) -> None:
    if forged:
        forge_host(world)
    world.host()
    claim = Authenticate(client_id=HOST, key=key_of(HOST) if forged else key)
    said = world.reply(world.ask(world.open(), claim))
    assert refusal(said) == ("UNAUTHENTICATED", None)
    unknown = world.reply(world.ask(world.open(), attrs.evolve(claim, client_id="nobody")))
    assert attrs.evolve(said, closes=False) == attrs.evolve(unknown, closes=False)


@pytest.mark.requirement("CP-1.3")
@pytest.mark.parametrize("protocol", ["companion", "control", "lease", "presenter", "", "HOST", "host "])
def test_a_connection_is_not_the_hosts_by_what_its_row_says(world: ControlWorld, protocol: str) -> None:
    forge_host(world)
    number = world.open()
    forged = Connection(number, protocol, None, None, client_id=HOST)
    world.ledger.rows.set(CONNECTIONS, str(number), forged)
    for message in (
        CreateRequest(capability="notice.show", params=NOTICE, timeout_ms=60_000),
        GetRequest(request_id="x"),
        WaitRequest(request_id="x", after_revision=0, wait_ms=0),
        CancelRequest(request_id="x"),
        UpdateRequest(request_id="x", expected_revision=1, params={"fraction": 1}),
    ):
        assert refusal(world.reply(world.ask(number, message)))[0] == "UNAUTHENTICATED"


@pytest.mark.requirement("CP-3.1", "CP-4.4")
@pytest.mark.parametrize("member", ["clientId", "source", "label", "host", "sourceLabel", "program"])
def test_no_member_of_a_call_says_who_asks(world: ControlWorld, member: str) -> None:
    call: JSONObject = {"capability": "notice.show", "params": NOTICE, "timeoutMs": 60_000}
    with pytest.raises(InvalidValue) as refused:
        structure(CreateRequest, {**call, member: HOST})
    assert (refused.value.field, refused.value.reason) == (member, "unknown member")
    session = world.session("c1")
    inner = session.create("notice.show", {**NOTICE, member: HOST})
    assert (inner.code, inner.details["field"]) == (ErrorCode.INVALID_PARAMS, f"params.{member}")


@pytest.mark.requirement("CP-4.3", "CP-6.8", "CP-7.5")
def test_the_host_and_its_clients_do_not_see_each_others_requests(world: ControlWorld) -> None:
    host, client = world.host(), world.session("c1")
    own, foreign = host.choose().request_id, client.choose().request_id
    for session, request_id in ((host, foreign), (client, own)):
        for message in (
            GetRequest(request_id=request_id),
            WaitRequest(request_id=request_id, after_revision=1, wait_ms=0),
            CancelRequest(request_id=request_id),
            UpdateRequest(request_id=request_id, expected_revision=1, params={"fraction": 1}),
        ):
            never = attrs.evolve(message, request_id="never")
            assert session.call(message) == session.call(never)
            assert refusal(session.call(message))[0] == "NOT_FOUND"
    assert world.request(own).state.value == "running"
    assert world.request(foreign).state.value == "running"


@pytest.mark.requirement("CP-1.3")
def test_nothing_can_be_taken_from_the_host(world: ControlWorld) -> None:
    host = world.host()
    asked = host.choose()
    owner = world.owner()
    assert owner.refused("clients.revoke", clientId=HOST)["code"] == "NOT_FOUND"
    assert owner.refused("clients.narrow", clientId=HOST, scopes=[])["code"] == "NOT_FOUND"
    assert refusal(world.presenter.user("revoke", client_id=HOST))[0] == "NOT_FOUND"
    assert refusal(world.presenter.user("narrow", client_id=HOST, scopes=()))[0] == "NOT_FOUND"
    assert refusal(world.presenter.user("mute", client_id=HOST, seconds=60))[0] == "NOT_FOUND"
    assert host.get(asked.request_id).state.value == "running"


def test_the_host_is_no_paired_client_and_no_connection_of_a_socket(world: ControlWorld) -> None:
    world.host().choose()
    owner = world.owner()
    assert owner.call("clients.list")["clients"] == []
    status = owner.call("status")
    assert (status["clients"], status["openRequests"]) == (0, 1)
    assert "host" not in status["connections"]


@pytest.mark.requirement("CP-4.4")
def test_a_client_that_was_paired_under_the_label_of_today_is_told_apart(world: ControlWorld) -> None:
    client = attrs.evolve(world.pair("c1"), label="companion")
    world.ledger.load([(CLIENTS, client)])
    session = world.session("c1")
    assert world.presenter.picture(session.choose().request_id).source.label == "companion (external)"
