"""runtime.describe (CP-2.3)."""

from __future__ import annotations

import pytest

from handlers.policy import Limits
from protocols.companion.catalog import CATALOG
from protocols.companion.messages import DescribeRuntime, RuntimeDescription
from protocols.structure import unstructure
from tests.support.companion_world import World


def describe(world: World, connection: int) -> RuntimeDescription:
    result = world.reply(world.ask(connection, DescribeRuntime()))
    assert isinstance(result, RuntimeDescription)
    return result


@pytest.mark.requirement("CP-2.3")
def test_everything_that_describe_owes_is_there() -> None:
    world = World()
    world.presenter.ready()
    session = world.session("c1", "discover", "notify")
    assert unstructure(describe(world, session.connection)) == {
        "implementation": {"name": "companion-broker", "version": "0.1.0"},
        "protocolVersion": "0.1",
        "protocolVersions": ["0.1"],
        "runtimeInstanceId": "run 1",
        "catalogRevision": CATALOG.revision,
        "authorization": {"authenticated": True, "clientId": "c1", "scopes": ["discover", "notify"]},
        "access": {"enabled": True},
        "presenter": {"kind": "desktop", "person": True, "state": "visible"},
        "limits": Limits().published(),
        "retention": {"hours": 24, "tombstoneDays": 7},
    }


def test_before_authentication_the_description_says_that_there_is_no_authorization() -> None:
    world = World()
    authorization = describe(world, world.open()).authorization
    assert (authorization.authenticated, authorization.client_id, authorization.scopes) == (False, None, ())


@pytest.mark.requirement("CP-4.5")
def test_the_published_limits_are_the_configured_ones() -> None:
    world = World(Limits(max_queued_total=3, max_wait_ms=5))
    limits = describe(world, world.open()).limits
    assert (limits["maxQueuedTotal"], limits["maxWaitMs"]) == (3, 5)


def test_the_presenters_state_follows_the_user() -> None:
    world = World()
    connection = world.open()

    def state() -> tuple[str, str]:
        presenter = describe(world, connection).presenter
        return presenter.kind, presenter.state

    assert state() == ("desktop", "away")
    world.presenter.ready()
    assert state() == ("desktop", "visible")
    world.presenter.user("pause")
    assert state() == ("desktop", "paused")
    world.presenter.user("hide")
    assert state() == ("desktop", "hidden")
    world.presenter.user("show")
    world.presenter.user("resume")
    assert state() == ("desktop", "visible")
    world.presenter.gone()
    assert state() == ("desktop", "away")


def test_nobody_can_answer_at_a_presenter_that_is_away() -> None:
    world = World()
    world.presenter.ready()
    world.presenter.gone()
    assert describe(world, world.open()).presenter.person is False


class Headless(World):
    """A broker that has no presenter."""

    presenter_kind = "none"


def test_a_broker_without_a_presenter_says_that_there_is_none() -> None:
    world = Headless()
    presenter = describe(world, world.open()).presenter
    assert (presenter.kind, presenter.person, presenter.state) == ("none", False, "none")
