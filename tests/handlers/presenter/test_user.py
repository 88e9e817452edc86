"""What the person does outside of any request, and what they may look at."""

from __future__ import annotations

from typing import Any

import pytest

from handlers.companion.rows import CLIENTS, REQUESTS, SETTINGS, SETTINGS_KEY
from protocols.companion.pairing import PairingRequest
from protocols.companion.states import State
from protocols.errors import InvalidValue
from protocols.json_values import JSONObject
from protocols.presenter.messages import Dismiss, Done, List, Listing, Setting, Settings, User
from protocols.refusal import ErrorCode, Refused
from protocols.structure import structure
from protocols.timestamps import rfc3339
from tests.support.companion_world import World
from tests.support.presenter_end import Presenter


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def screen(world: World) -> Presenter:
    return world.new_presenter()


@pytest.mark.requirement("CP-4.9")
@pytest.mark.parametrize(("action", "reason"), [("hide", "hidden_by_user"), ("pause", "paused_by_user")])
def test_hide_and_pause_cancel_and_take_off_the_screen(
    world: World, screen: Presenter, action: str, reason: str
) -> None:
    id = world.session().choose().request_id
    screen.presented(id)
    assert screen.user(action) == Done()
    assert (world.request(id).state, world.request(id).reason) == (State.CANCELLED, reason)
    assert screen.dismissals() == [Dismiss(request_id=id, reason=reason)]


@pytest.mark.parametrize(
    ("actions", "members"),
    [
        (["hide"], (None, True, False)),
        (["hide", "show"], (None, False, False)),
        (["pause"], (None, False, True)),
        (["pause", "resume"], (None, False, False)),
        (["disable_access"], (False, False, False)),
        (["disable_access", "enable_access"], (True, False, False)),
    ],
)
@pytest.mark.requirement("CP-5.1")
def test_the_person_tightens_and_loosens(
    world: World, screen: Presenter, actions: list[str], members: tuple[bool | None, bool, bool]
) -> None:
    for action in actions:
        assert screen.user(action) == Done()
    said = world.row(SETTINGS, SETTINGS_KEY)
    assert (said.access, said.hidden, said.paused) == members


def test_what_the_person_sets_reaches_the_presenter_and_outlives_a_restart(
    world: World, screen: Presenter
) -> None:
    told: dict[str, Any] = {
        "visible": True,
        "paused": False,
        "access_enabled": True,
        "language": "en",
        "reduced_motion": False,
        "sound": False,
    }
    assert screen.news() == [Settings(**told)]
    changes: list[tuple[str, Any]] = [("reduced_motion", True), ("sound", True), ("language", "zh-Hant")]
    for name, value in changes:
        told[name] = value
        assert screen.user("set", setting=Setting(**{name: value})) == Done()
        assert screen.news() == [Settings(**told)]
    world.restart()
    assert world.new_presenter().news() == [Settings(**told)]


def test_setting_what_is_set_already_changes_nothing(world: World, screen: Presenter) -> None:
    screen.user("set", setting=Setting(sound=True))
    before = world.row(SETTINGS, SETTINGS_KEY)
    screen.user("set", setting=Setting(sound=True))
    assert world.row(SETTINGS, SETTINGS_KEY) == before


@pytest.mark.parametrize(
    "setting",
    [
        {},
        {"character": ""},
        {"reducedMotion": "yes"},
        {"sound": 1},
        {"volume": 3},
        {"language": "e"},
        {"language": "EN"},
        {"language": "en_US"},
        {"language": "en\n"},
        {"language": "x" * 36},
    ],
)
def test_what_is_no_setting_does_not_reach_the_handlers(setting: JSONObject) -> None:
    with pytest.raises(InvalidValue):
        structure(User, {"action": "set", "setting": setting})


@pytest.mark.requirement("CP-4.14", "CP-5.1")
def test_revoke_ends_what_the_client_has_open(world: World, screen: Presenter) -> None:
    agent = world.session()
    id = agent.choose().request_id
    assert screen.user("revoke", client_id=agent.client_id) == Done()
    assert world.hung_up() == [agent.connection]
    assert (REQUESTS.name, id) not in world.disk.rows
    assert (CLIENTS.name, agent.client_id) not in world.disk.rows


def test_narrow_leaves_what_remains(world: World, screen: Presenter) -> None:
    agent = world.session("c1", "discover", "interact")
    assert screen.user("narrow", client_id=agent.client_id, scopes=("discover",)) == Done()
    assert world.row(CLIENTS, agent.client_id).scopes == ("discover",)


@pytest.mark.parametrize(
    ("action", "members", "code"),
    [
        ("revoke", {"client_id": "nobody"}, ErrorCode.NOT_FOUND),
        ("narrow", {"client_id": "nobody", "scopes": ()}, ErrorCode.NOT_FOUND),
        ("revoke", {}, ErrorCode.INVALID_PARAMS),
        ("narrow", {"client_id": "nobody"}, ErrorCode.INVALID_PARAMS),
        ("mute", {"client_id": "nobody", "seconds": 60}, ErrorCode.NOT_FOUND),
        ("mute", {"seconds": 60}, ErrorCode.INVALID_PARAMS),
        ("set", {}, ErrorCode.INVALID_PARAMS),
        ("set", {"setting": Setting(character="nobody")}, ErrorCode.INVALID_PARAMS),
    ],
)
def test_what_cannot_be_done_is_refused(
    world: World, screen: Presenter, action: str, members: dict[str, Any], code: ErrorCode
) -> None:
    body = screen.user(action, **members)
    assert isinstance(body, Refused)
    assert body.code is code


@pytest.mark.requirement("CP-4.3")
def test_pending_says_who_asks_but_not_what(world: World, screen: Presenter) -> None:
    agent = world.session(label="Ag\u202eent")
    ids = [agent.choose("Secret?", timeout_ms=30_000).request_id for _ in range(4)]
    asker = world.open()
    world.call(asker, PairingRequest(client_name="Other", scopes=("discover",)))
    listing = screen.call(List(what="pending"))
    assert isinstance(listing, Listing)
    pairing, *requests = listing.pending or ()
    assert (pairing.label, pairing.state, pairing.remaining_ms) == ("Other", "pending", 300_000)
    assert [one.request_id for one in requests] == ids
    assert [one.state for one in requests] == ["running"] * 3 + ["queued"]
    assert {one.label for one in requests} == {"Ag<U+202E>ent"}
    assert {one.remaining_ms for one in requests} == {30_000}
    assert "Secret?" not in repr(listing)


def test_clients_are_those_that_are_not_revoked(world: World, screen: Presenter) -> None:
    first, second = world.session("a", "discover", label="First"), world.session("b")
    screen.user("revoke", client_id=second.client_id)
    listing = screen.call(List(what="clients"))
    [one] = listing.clients
    assert (one.client_id, one.label, one.scopes) == (first.client_id, "First", ("discover",))
    assert (one.connected, one.created_at) == (True, rfc3339(0))


def test_a_list_ends_before_the_frame_is_full(world: World, screen: Presenter) -> None:
    for number in range(600):
        world.pair(f"client {number}", label="\u200b" * 60)
    listing = screen.call(List(what="clients"))
    assert 60 < len(listing.clients) < 600


def test_the_inbox_is_not_available(world: World, screen: Presenter) -> None:
    body = screen.call(List(what="inbox"))
    assert isinstance(body, Refused)
    assert body.code is ErrorCode.INVALID_PARAMS


@pytest.mark.requirement("CP-4.9", "CP-5.6")
@pytest.mark.parametrize(
    ("action", "members"),
    [
        ("show", {}),
        ("resume", {}),
        ("enable_access", {}),
        ("mute", {"seconds": 60}),
        ("mute", {}),
        ("clear_records", {}),
        ("set", {"setting": Setting(sound=True)}),
    ],
)
def test_where_no_person_is_nothing_is_loosened(
    world: World, screen: Presenter, action: str, members: dict[str, Any]
) -> None:
    agent = world.session()
    for tightened in ("hide", "pause", "disable_access"):
        screen.user(tightened)
    before = world.row(SETTINGS, SETTINGS_KEY)
    screen.gone()
    if action == "mute":
        members = {**members, "client_id": agent.client_id}
    body = world.new_presenter(person=False).user(action, **members)
    assert isinstance(body, Refused)
    assert (body.code, body.details) == (ErrorCode.FORBIDDEN, {"reason": "no_person"})
    assert world.row(SETTINGS, SETTINGS_KEY) == before
    assert world.row(CLIENTS, agent.client_id).mute is None


@pytest.mark.requirement("CP-4.9")
@pytest.mark.parametrize(
    ("action", "members"),
    [("hide", {}), ("pause", {}), ("disable_access", {}), ("revoke", {}), ("narrow", {"scopes": ()})],
)
def test_tightening_needs_no_person(world: World, action: str, members: dict[str, Any]) -> None:
    agent = world.session()
    if action in ("revoke", "narrow"):
        members = {**members, "client_id": agent.client_id}
    assert world.new_presenter(person=False).user(action, **members) == Done()
