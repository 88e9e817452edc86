"""A presenter that no longer answers is closed, and so started again (presenter.md, ping)."""

from __future__ import annotations

import pytest

from handlers.presenter.pulse import ANSWER_MS, ASK_EVERY_MS
from handlers.presenter.rows import PULSE
from protocols.presenter.messages import Ping, Pong
from tests.support.companion_world import World
from tests.support.presenter_end import Presenter


@pytest.fixture
def world() -> World:
    return World()


def silent(world: World) -> Presenter:
    """A presenter that answers no ping before it is told to."""
    presenter = world.new_presenter()
    presenter.pongs = False
    return presenter


@pytest.fixture
def screen(world: World) -> Presenter:
    return silent(world)


def pings(screen: Presenter) -> int:
    return sum(one == Ping() for one in screen.news())


def test_a_presenter_that_answers_is_asked_again_and_stays(world: World, screen: Presenter) -> None:
    for _ in range(3):
        world.advance(ASK_EVERY_MS)
        assert pings(screen) == 1
        world.advance(ANSWER_MS - 1)
        screen.call(Pong())
    assert world.hung_up() == []


def test_no_answer_within_five_seconds_closes_it(world: World, screen: Presenter) -> None:
    world.advance(ASK_EVERY_MS + ANSWER_MS - 1)
    assert world.hung_up() == []
    world.advance(1)
    assert world.hung_up() == [screen.connection]
    world.advance(ASK_EVERY_MS)
    assert world.hung_up() == [screen.connection]


def test_a_sleeping_machine_is_no_silence(world: World, screen: Presenter) -> None:
    world.advance(ASK_EVERY_MS)
    world.sleep(1000)
    assert world.hung_up() == []


def test_an_older_presenters_answer_says_nothing_of_the_new_one(world: World, screen: Presenter) -> None:
    newer = silent(world)
    world.advance(ASK_EVERY_MS)
    screen.call(Pong())
    world.advance(ANSWER_MS)
    assert world.hung_up() == [newer.connection]


def test_nobody_is_asked_when_nobody_is_there(world: World, screen: Presenter) -> None:
    screen.gone()
    assert world.rows(PULSE) == []
    world.advance(2 * ASK_EVERY_MS)
    assert pings(screen) == 0
