"""The owner's tools see who is paired and take rights away (wire.md, Control protocol)."""

from __future__ import annotations

from typing import Any

import pytest

from protocols.companion.messages import Authenticate
from protocols.companion.pairing import MAX_CLIENT_NAME_RAW
from tests.support.companion_world import key_of, refusal
from tests.support.control_world import ControlWorld


@pytest.fixture
def world() -> ControlWorld:
    world = ControlWorld()
    world.presenter.ready()
    return world


def ids(page: Any) -> list[str]:
    return [client["clientId"] for client in page["clients"]]


@pytest.mark.requirement("CP-5.1")
def test_a_client_is_listed_with_its_rights_and_with_what_it_has_open(world: ControlWorld) -> None:
    session = world.session("c1", "discover", "interact")
    world.session("c1")
    session.choose()
    session.cancel(session.choose().request_id)
    world.pair("c2", "notify")
    assert world.owner().call("clients.list") == {
        "clients": [
            {
                "clientId": "c1",
                "label": "C1",
                "scopes": ["discover", "interact"],
                "createdAt": "1970-01-01T00:00:00.000Z",
                "connections": 2,
                "openRequests": 1,
                "mutedUntil": None,
            },
            {
                "clientId": "c2",
                "label": "C2",
                "scopes": ["notify"],
                "createdAt": "1970-01-01T00:00:00.000Z",
                "connections": 0,
                "openRequests": 0,
                "mutedUntil": None,
            },
        ],
        "nextCursor": None,
    }


@pytest.mark.requirement("CP-4.9")
def test_a_client_that_is_muted_is_listed_with_the_end_of_it(world: ControlWorld) -> None:
    world.pair("c1")
    world.presenter.user("mute", client_id="c1", seconds=3600)
    owner = world.owner()
    assert owner.call("clients.list")["clients"][0]["mutedUntil"] == "2027-01-15T09:00:00.000Z"
    world.presenter.user("mute", client_id="c1")
    assert owner.call("clients.list")["clients"][0]["mutedUntil"] is None


@pytest.mark.requirement("CP-5.2")
def test_no_verification_material_is_told(world: ControlWorld) -> None:
    client = world.pair()
    owner = world.owner()
    owner.peer.send({"jsonrpc": "2.0", "id": 1, "method": "clients.list"})
    assert client.key_sha256.encode() not in owner.peer.lines[0]


def test_pages_tell_every_client_once_in_the_order_of_their_pairing(world: ControlWorld) -> None:
    paired = [world.pair(f"client {number:03d}").id for number in range(120)]
    owner = world.owner()
    page = owner.call("clients.list", limit=100)
    assert len(page["clients"]) == 100
    rest = owner.call("clients.list", limit=100, cursor=page["nextCursor"])
    assert ids(page) + ids(rest) == paired
    assert rest["nextCursor"] is None


def test_a_page_ends_where_a_frame_is_full(world: ControlWorld) -> None:
    for number in range(100):
        world.pair(f"{number:03d}" + "\U0001f600" * (MAX_CLIENT_NAME_RAW - 3))
    owner = world.owner()
    owner.start("clients.list", limit=100)
    (line,) = owner.peer.lines
    assert 40_000 < len(line) < 65_536
    page = owner.reply(1)["result"]
    assert 1 < len(page["clients"]) < 100
    assert page["nextCursor"] is not None


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 101}, "limit"),
        ({"cursor": ""}, "cursor"),
        ({"what": "all"}, "what"),
    ],
)
def test_a_list_is_asked_for_as_it_is_described(world: ControlWorld, params: Any, field: str) -> None:
    refused = world.owner().refused("clients.list", **params)
    assert (refused["code"], refused["field"]) == ("INVALID_PARAMS", field)


@pytest.mark.requirement("CP-4.14")
def test_a_revoked_client_is_out_at_once_and_is_not_listed(world: ControlWorld) -> None:
    session = world.session("c1")
    request = session.choose()
    waiting = session.wait(request.request_id, request.revision)
    owner = world.owner()
    assert owner.call("clients.revoke", clientId="c1") == {}
    assert refusal(world.reply(waiting)) == ("UNAUTHENTICATED", None)
    assert world.last_seen(request.request_id).reason == "key_revoked"
    assert session.connection in world.hung_up()
    assert owner.call("clients.list")["clients"] == []
    again = world.reply(world.ask(world.open(), Authenticate(client_id="c1", key=key_of("c1"))))
    assert refusal(again) == ("UNAUTHENTICATED", None)
    assert owner.refused("clients.revoke", clientId="c1")["code"] == "NOT_FOUND"


def test_a_narrowed_client_keeps_what_is_named_and_is_given_nothing(world: ControlWorld) -> None:
    session = world.session("c1", "notify", "interact")
    request = session.choose()
    owner = world.owner()
    narrowed = owner.call("clients.narrow", clientId="c1", scopes=["notify", "animate"])
    assert narrowed == {"scopes": ["notify"]}
    assert world.request(request.request_id).reason == "scope_revoked"
    assert owner.call("clients.narrow", clientId="c1", scopes=[]) == {"scopes": []}
    assert owner.call("clients.list")["clients"][0]["scopes"] == []


@pytest.mark.parametrize("client_id", ["nobody", "gone"])
def test_nothing_is_taken_from_a_client_that_is_not_there(world: ControlWorld, client_id: str) -> None:
    world.pair("gone")
    owner = world.owner()
    owner.call("clients.revoke", clientId="gone")
    assert owner.refused("clients.revoke", clientId=client_id)["code"] == "NOT_FOUND"
    assert owner.refused("clients.narrow", clientId=client_id, scopes=[])["code"] == "NOT_FOUND"


def test_a_scope_that_does_not_exist_is_refused(world: ControlWorld) -> None:
    world.pair("c1")
    refused = world.owner().refused("clients.narrow", clientId="c1", scopes=["notify", "admin"])
    assert (refused["code"], refused["field"]) == ("INVALID_PARAMS", "scopes.1")


@pytest.mark.requirement("CP-4.12")
def test_a_revocation_that_could_not_be_stored_is_not_acknowledged(world: ControlWorld) -> None:
    world.pair("c1")
    owner = world.owner()
    world.holding = True
    call = owner.start("clients.revoke", clientId="c1")
    assert owner.reply(call) is None
    world.fail_commit()
    assert owner.reply(call)["error"]["data"]["reason"] == "not_saved"
    assert [client["clientId"] for client in owner.call("clients.list")["clients"]] == ["c1"]
