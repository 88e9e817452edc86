"""Requests of a character pack's own, and what is left of them when the pack has gone."""

from __future__ import annotations

from typing import Any

import pytest

from protocols.companion.catalog import CATALOG
from protocols.companion.messages import CancelRequest, GetRequest, WaitRequest
from protocols.companion.states import State
from protocols.json_values import JSONObject
from protocols.presenter.messages import Finished, Setting
from protocols.refusal import Refused
from tests.support.companion_world import Session, World, refusal
from tests.support.packs import HOP, catalog_with, pip

LEFT: JSONObject = {"side": "left"}


@pytest.fixture
def world() -> World:
    world = World(catalog=catalog_with(pip()))
    world.presenter.ready()
    return world


@pytest.fixture
def session(world: World) -> Session:
    return world.session("c1", "discover", "animate", "notify", "interact")


def remove_the_pack(world: World) -> Session:
    """The broker starts again without it."""
    world.catalog = CATALOG
    world.restart()
    world.presenter.ready()
    return world.session("c1")


@pytest.mark.requirement("CP-2.15", "CP-1.4")
def test_the_presenter_is_told_the_face_and_the_params_that_the_pack_declares(
    world: World, session: Session
) -> None:
    made = session.create(HOP, LEFT, character="pip")
    picture = world.presenter.picture(made.request_id)
    assert (picture.capability, picture.character, picture.expression) == (HOP, "pip", "hopping")
    assert picture.parameters == {"side": "left", "times": 2, "height": 1, "chirp": False}
    world.presenter.presented(made.request_id)
    world.presenter.say(Finished(request_id=made.request_id))
    assert (session.get(made.request_id).reason, session.get(made.request_id).result) == ("finished", None)


@pytest.mark.requirement("CP-1.4", "CP-2.12")
def test_params_that_are_named_like_the_cores_mean_nothing_of_the_cores(world: World) -> None:
    manifest = pip()
    word = {"type": "string", "enum": ["error"]}
    names: dict[str, Any] = dict.fromkeys(("title", "text", "detail", "tone", "expression"), word)
    number = {"type": "number", "minimum": 0, "maximum": 9}
    names |= dict.fromkeys(("fraction", "displayMs"), number)
    manifest["capabilities"][0]["inputSchema"] |= {"properties": names, "required": []}
    world = World(catalog=catalog_with(manifest))
    world.presenter.ready()
    params: JSONObject = {name: "error" if one is word else 1 for name, one in names.items()}
    made = world.session("c1", "animate").create(HOP, params, character="pip")
    picture = world.presenter.picture(made.request_id)
    for name in ("title", "text", "detail", "tone", "fraction", "display_ms"):
        assert getattr(picture, name) is None, name
    assert (picture.expression, picture.parameters) == ("hopping", params)


@pytest.mark.requirement("CP-2.16")
def test_elsewhere_the_declared_substitute_is_done_in_its_place(world: World, session: Session) -> None:
    assert refusal(session.create(HOP, LEFT))[0] == "UNSUPPORTED_CAPABILITY"
    made = session.create(HOP, LEFT, allow_substitution=True)
    assert (made.resolved_capability, made.resolved_character) == ("animation.play", "aion")
    picture = world.presenter.picture(made.request_id)
    assert (picture.expression, picture.parameters) == ("happy", None)


@pytest.mark.requirement("CP-7.2", "CP-2.9")
def test_the_params_are_checked_by_the_packs_schema(session: Session) -> None:
    body = session.create(HOP, {"side": "left", "times": 6}, character="pip")
    assert isinstance(body, Refused)
    assert (body.details["field"], body.details["limit"]) == ("params.times", 5)


@pytest.mark.requirement("CP-4.1")
def test_what_is_left_out_equals_its_default_in_the_idempotency_too(session: Session) -> None:
    made = session.create(HOP, LEFT, character="pip", idempotency_key="k")
    again = session.create(HOP, {"side": "left", "times": 2}, character="pip", idempotency_key="k")
    assert again == made
    other = session.create(HOP, {"side": "left", "times": 3}, character="pip", idempotency_key="k")
    assert refusal(other)[0] == "IDEMPOTENCY_CONFLICT"


# -- without the pack --------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-4.10", "CP-4.13")
def test_requests_of_a_pack_that_has_gone_are_still_told_to_their_owner(
    world: World, session: Session
) -> None:
    ended = session.cancel(session.create(HOP, LEFT, character="pip").request_id)
    open_ = session.create(HOP, LEFT, character="pip")
    world.presenter.presented(open_.request_id)
    session = remove_the_pack(world)
    assert session.get(ended.request_id) == ended
    failed = session.get(open_.request_id)
    assert (failed.state, failed.reason) == (State.FAILED, "runtime_restarted")
    assert (failed.capability, failed.resolved_character) == (HOP, "pip")
    for message in (
        GetRequest(request_id=open_.request_id),
        CancelRequest(request_id=open_.request_id),
    ):
        assert session.call(message) == failed
    waited = session.call(WaitRequest(request_id=open_.request_id, after_revision=0, wait_ms=30_000))
    assert waited.request == failed


@pytest.mark.requirement("CP-7.2")
def test_without_the_pack_its_capability_is_unknown(world: World, session: Session) -> None:
    session = remove_the_pack(world)
    body = session.create(HOP, LEFT, allow_substitution=True)
    assert refusal(body)[0] == "UNSUPPORTED_CAPABILITY"
    assert session.create("notice.show", {"text": "x"}, character="pip").details["field"] == "character"


@pytest.mark.requirement("CP-2.4")
def test_the_users_choice_of_a_character_waits_for_its_pack_to_come_back(
    world: World, session: Session
) -> None:
    world.presenter.user("set", setting=Setting(character="pip"))
    assert session.notice().resolved_character == "pip"
    assert remove_the_pack(world).notice().resolved_character == "aion"
    world.catalog = catalog_with(pip())
    world.restart()
    world.presenter.ready()
    assert world.session("c1").notice().resolved_character == "pip"


@pytest.mark.requirement("CP-4.9", "CP-5.3")
def test_taking_rights_away_does_not_stumble_over_what_has_ended(world: World, session: Session) -> None:
    session.create(HOP, LEFT, character="pip")
    remove_the_pack(world)
    for action, members in (
        ("hide", {}),
        ("show", {}),
        ("narrow", {"client_id": "c1", "scopes": ("discover",)}),
    ):
        assert not isinstance(world.presenter.user(action, **members), Refused)
    assert not isinstance(world.presenter.user("revoke", client_id="c1"), Refused)
