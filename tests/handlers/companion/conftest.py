"""What most claims about requests begin with: a broker that is at rest, its presenter ready, and one client."""

from __future__ import annotations

import pytest

from tests.support.companion_world import Session, World


@pytest.fixture
def world() -> World:
    """A world with a presenter that can draw everything."""
    world = World()
    world.presenter.ready()
    return world


@pytest.fixture
def session(world: World) -> Session:
    """An authenticated session of a client named c1."""
    return world.session("c1")
