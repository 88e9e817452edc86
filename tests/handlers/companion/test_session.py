"""session.hello and session.authenticate (companion.md, Session)."""

from __future__ import annotations

import attrs
import pytest

from handlers.companion.rows import CLIENTS, FAILURES
from handlers.events import CallRef
from handlers.policy import Limits
from protocols.companion.messages import (
    Authenticate,
    AuthenticateResult,
    GetRequest,
    Hello,
    HelloResult,
    Implementation,
)
from protocols.process import ProcessId
from protocols.refusal import Refused
from protocols.session import NotSaved
from tests.support.companion_world import World, key_of, refusal

PROGRAM = Implementation(name="test", version="1")


def authenticate(world: World, connection: int, client_id: str = "c1", key: str | None = None) -> CallRef:
    key = key_of(client_id) if key is None else key
    return world.ask(connection, Authenticate(client_id=client_id, key=key))


def hello(world: World, *versions: str) -> object:
    body: object = world.reply(world.ask(world.open(), Hello(protocol_versions=versions, client=PROGRAM)))
    return body


@pytest.mark.requirement("CP-7.1")
def test_hello_agrees_on_the_version_that_both_speak() -> None:
    result = hello(World(), "9.9", "0.1")
    assert isinstance(result, HelloResult)
    assert (result.protocol_version, result.runtime_instance_id) == ("0.1", "run 1")
    assert result.access_enabled


@pytest.mark.requirement("CP-7.1")
@pytest.mark.parametrize("version", ["0.2", "0.1.0", "1"])
def test_hello_without_a_common_version_is_refused_and_closes(version: str) -> None:
    result = hello(World(), version)
    assert isinstance(result, Refused)
    assert refusal(result) == ("INVALID_PARAMS", "no common version")
    assert result.closes


@pytest.mark.requirement("CP-5.1")
def test_access_is_off_until_somebody_turns_it_on() -> None:
    world = World(access=False)
    world.pair("c1")
    result = hello(world, "0.1")
    assert isinstance(result, HelloResult)
    assert not result.access_enabled
    assert refusal(world.reply(authenticate(world, world.open()))) == ("RUNTIME_UNAVAILABLE", "access_off")


def test_the_right_key_gives_the_identity_of_the_pairing_record() -> None:
    world = World()
    world.pair("c1", "discover", "interact")
    result = world.reply(authenticate(world, world.open()))
    assert result == AuthenticateResult(client_id="c1", label="C1", scopes=("discover", "interact"))


@pytest.mark.requirement("CP-3.1")
def test_a_connection_that_has_proved_nothing_is_nobody() -> None:
    world = World()
    world.pair("c1")
    connection = world.open()
    authenticate(world, connection, key="wrong")
    assert refusal(world.reply(world.ask(connection, GetRequest(request_id="r"))))[0] == "UNAUTHENTICATED"


@pytest.mark.requirement("CP-5.2")
def test_unknown_wrong_and_revoked_are_one_and_the_same_reply() -> None:
    world = World()
    world.pair("c1")
    revoked = attrs.evolve(world.pair("c2"), revoked=True)
    world.ledger.load([(CLIENTS, revoked)])
    replies = [
        world.reply(authenticate(world, world.open(), client_id, key))
        for client_id, key in (("nobody", "x"), ("c1", "x"), ("c2", key_of("c2")), ("c1", ""), ("c2", "x"))
    ]
    assert {reply.code.value for reply in replies} == {"UNAUTHENTICATED"}
    assert len(set(map(repr, replies))) == 1


def test_three_failures_close_the_session() -> None:
    world = World()
    world.pair("c1")
    connection = world.open()
    closes = [world.reply(authenticate(world, connection, key="x")).closes for _ in range(3)]
    assert closes == [False, False, True]


def test_a_session_is_not_closed_for_what_others_did() -> None:
    world = World()
    process = ProcessId(1, "1")
    for _ in range(2):
        connection = world.open(process=process)
        authenticate(world, connection, "nobody")
        authenticate(world, connection, "nobody")
        world.close(connection)
    assert [row.peer for row in world.ledger.rows.all(FAILURES)] == ["process 1 1"]  # type: ignore[attr-defined]
    assert not world.reply(authenticate(world, world.open(process=process), "nobody")).closes


def test_each_failure_of_a_process_makes_its_next_reply_later_up_to_ten_seconds() -> None:
    world = World()
    world.pair("c1")
    process = ProcessId(1, "1")
    refs = [authenticate(world, world.open(process=process), key="x") for _ in range(9)]
    assert [world.delays[ref] for ref in refs] == [0, 100, 200, 400, 800, 1600, 3200, 6400, 10_000]


def test_the_right_key_is_delayed_like_a_wrong_one_and_other_processes_are_not() -> None:
    world = World()
    world.pair("c1")
    process = ProcessId(1, "1")
    for _ in range(2):
        authenticate(world, world.open(process=process), key="x")
    right = authenticate(world, world.open(process=process))
    assert isinstance(world.reply(right), AuthenticateResult)
    assert world.delays[right] == 200
    assert world.delays[authenticate(world, world.open())] == 0


def test_a_pid_that_was_given_again_is_another_process() -> None:
    world = World()
    authenticate(world, world.open(process=ProcessId(1, "1")))
    assert world.delays[authenticate(world, world.open(process=ProcessId(1, "2")))] == 0


def test_failures_are_forgotten_after_a_while() -> None:
    world = World()
    process = ProcessId(1, "1")
    authenticate(world, world.open(process=process))
    world.advance(600_000)
    assert world.delays[authenticate(world, world.open(process=process))] == 0
    world.advance(600_000)
    assert world.ledger.rows.all(FAILURES) == []


@pytest.mark.requirement("CP-4.5")
def test_a_client_has_a_published_number_of_sessions() -> None:
    world = World(Limits(max_connections_per_client=2))
    sessions = [world.session("c1"), world.session("c1")]
    assert refusal(world.reply(authenticate(world, world.open()))) == (
        "RATE_LIMITED",
        "maxConnectionsPerClient",
    )
    sessions[0].close()
    assert isinstance(world.reply(authenticate(world, world.open())), AuthenticateResult)


def test_a_session_that_asks_again_does_not_stand_in_its_own_way() -> None:
    world = World(Limits(max_connections_per_client=1))
    world.presenter.ready()
    world.pair("c1")
    connection = world.open()
    world.holding = True
    world.presenter.user("narrow", client_id="c1", scopes=("notify",))
    unsaved = authenticate(world, connection)
    world.fail_commit()
    assert isinstance(world.reply(unsaved), NotSaved)
    assert isinstance(world.reply(authenticate(world, connection)), AuthenticateResult)


@pytest.mark.requirement("CP-5.5")
def test_no_key_is_in_any_reply_or_row() -> None:
    world = World()
    world.session("c1")
    authenticate(world, world.open(), key="a wrong key")
    told = repr((world.effects, list(world.ledger.rows.contents().values()), world.disk.rows))
    assert key_of("c1") not in told
    assert "a wrong key" not in told
