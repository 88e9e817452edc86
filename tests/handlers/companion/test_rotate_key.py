"""session.rotate_key: another key for the same client, that locks nobody out and opens nothing twice."""

from __future__ import annotations

import hashlib
from typing import Any

import attrs
import pytest

from handlers.companion.rows import CLIENTS, Client
from handlers.policy import Limits
from protocols.companion.messages import (
    Authenticate,
    AuthenticateResult,
    GetRequest,
    RotatedKey,
    RotateKey,
)
from protocols.session import NotSaved
from tests.support.companion_world import Session, World, key_of, refusal

pytestmark = pytest.mark.requirement("CP-5.1", "CP-5.2")


@pytest.fixture
def world() -> World:
    world = World()
    world.presenter.ready()
    return world


def rotate(session: Session) -> str:
    """The new key."""
    rotated = session.call(RotateKey())
    assert isinstance(rotated, RotatedKey)
    assert rotated.client_id == "c1"
    return rotated.key


def log_in(world: World, key: str, connection: int | None = None) -> Any:
    """What a connection is told that authenticates with this key."""
    connection = world.open() if connection is None else connection
    return world.reply(world.ask(connection, Authenticate(client_id="c1", key=key)))


def holds(world: World, key: str) -> bool:
    """Whether a key opens a session; it is closed again."""
    connection = world.open()
    body = log_in(world, key, connection)
    world.close(connection)
    return isinstance(body, AuthenticateResult)


def test_a_new_key_is_told_once_and_only_its_digest_is_kept(world: World) -> None:
    key = rotate(world.session("c1"))
    assert len(key) == 43
    row = world.disk.rows[CLIENTS.name, "c1"]
    assert isinstance(row, Client)
    assert row.next_key_sha256 == hashlib.sha256(key.encode()).hexdigest()
    assert key not in str(attrs.asdict(row))
    assert key not in repr(RotatedKey(client_id="c1", key=key))


def test_both_keys_hold_until_the_new_one_is_used(world: World) -> None:
    key = rotate(world.session("c1"))
    assert holds(world, key_of("c1"))
    world.restart()
    assert holds(world, key_of("c1"))
    assert holds(world, key)
    assert not holds(world, key_of("c1"))
    world.restart()
    assert holds(world, key)
    assert not holds(world, key_of("c1"))


@pytest.mark.requirement("CP-4.14")
def test_using_the_new_key_ends_the_sessions_and_the_waits_of_the_old_one(world: World) -> None:
    first, second, other = world.session("c1"), world.session("c1"), world.session("c2")
    made = first.choose()
    key = rotate(first)
    waits = [session.wait(made.request_id, made.revision) for session in (first, second)]
    connection = world.open()
    assert isinstance(log_in(world, key, connection), AuthenticateResult)
    assert [refusal(world.reply(ref))[0] for ref in waits] == ["UNAUTHENTICATED"] * 2
    assert sorted(world.hung_up()) == [first.connection, second.connection]
    assert Session(world, connection).get(made.request_id).request_id == made.request_id, "the same client"
    assert refusal(other.get("nothing"))[0] == "NOT_FOUND"


def test_a_new_key_is_the_same_client_with_its_scopes_and_records(world: World) -> None:
    session = world.session("c1", "notify", "interact")
    made = session.choose(idempotency_key="k")
    key = rotate(session)
    world.presenter.user("narrow", client_id="c1", scopes=("interact",))
    connection = world.open()
    body = log_in(world, key, connection)
    assert (body.client_id, body.label, body.scopes) == ("c1", "C1", ("interact",))
    assert Session(world, connection).choose(idempotency_key="k").request_id == made.request_id


def test_another_rotation_before_the_new_key_is_used_takes_its_place(world: World) -> None:
    session = world.session("c1")
    lost, found = rotate(session), rotate(session)
    assert not holds(world, lost)
    assert holds(world, found)


def test_a_client_at_its_limit_of_connections_can_use_its_new_key(world: World) -> None:
    limit = Limits().max_connections_per_client
    sessions = [world.session("c1") for _ in range(limit)]
    key = rotate(sessions[0])
    assert refusal(log_in(world, key_of("c1")))[0] == "RATE_LIMITED"
    assert isinstance(log_in(world, key), AuthenticateResult)
    assert len(world.hung_up()) == limit


@pytest.mark.requirement("CP-4.14")
def test_a_revoke_kills_both_keys(world: World) -> None:
    key = rotate(world.session("c1"))
    world.presenter.user("revoke", client_id="c1")
    assert not holds(world, key)
    assert not holds(world, key_of("c1"))


@pytest.mark.requirement("CP-4.12")
def test_a_rotation_that_could_not_be_stored_leaves_the_key_as_it_was(world: World) -> None:
    session = world.session("c1")
    world.holding = True
    ref = session.ask(RotateKey())
    world.fail_commit()
    assert isinstance(world.reply(ref), NotSaved)
    assert holds(world, key_of("c1"))


@pytest.mark.requirement("CP-4.12")
def test_a_new_key_whose_use_could_not_be_stored_leaves_both(world: World) -> None:
    key = rotate(world.session("c1"))
    connection = world.open()
    world.holding = True
    ref = world.ask(connection, Authenticate(client_id="c1", key=key))
    world.fail_commit()
    assert isinstance(world.reply(ref), NotSaved)
    assert world.hung_up() == []
    assert holds(world, key_of("c1"))
    assert isinstance(log_in(world, key, world.open()), AuthenticateResult)


def test_who_is_nobody_gets_no_key(world: World) -> None:
    session = world.session("c1")
    world.presenter.user("revoke", client_id="c1")
    assert refusal(session.call(RotateKey()))[0] == "UNAUTHENTICATED"
    assert refusal(session.call(GetRequest(request_id="x")))[0] == "UNAUTHENTICATED"
