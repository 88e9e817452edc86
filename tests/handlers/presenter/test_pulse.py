"""A presenter that no longer answers is closed, and so started again (presenter.md, ping)."""

from __future__ import annotations

import pytest

from handlers.presenter.pulse import ANSWER_MS, ASK_EVERY_MS
from handlers.presenter.rows import PULSE
from protocols.presenter.messages import Ping, Pong
from tests.support.stage import Screen, Stage


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def screen(stage: Stage) -> Screen:
    return stage.presenter()


def pings(screen: Screen) -> int:
    return sum(one == Ping() for one in screen.news())


def test_a_presenter_that_answers_is_asked_again_and_stays(stage: Stage, screen: Screen) -> None:
    for _ in range(3):
        stage.wait(ASK_EVERY_MS)
        assert pings(screen) == 1
        stage.wait(ANSWER_MS - 1)
        stage.call(screen.connection, Pong())
    assert stage.hung_up == []


def test_no_answer_within_five_seconds_closes_it(stage: Stage, screen: Screen) -> None:
    stage.wait(ASK_EVERY_MS + ANSWER_MS - 1)
    assert stage.hung_up == []
    stage.wait(1)
    assert stage.hung_up == [screen.connection]
    stage.wait(ASK_EVERY_MS)
    assert stage.hung_up == [screen.connection]


def test_a_sleeping_machine_is_no_silence(stage: Stage, screen: Screen) -> None:
    stage.wait(ASK_EVERY_MS)
    stage.sleep(1_000_000)
    assert stage.hung_up == []


def test_an_older_presenters_answer_says_nothing_of_the_new_one(stage: Stage, screen: Screen) -> None:
    newer = stage.presenter()
    stage.wait(ASK_EVERY_MS)
    stage.call(screen.connection, Pong())
    stage.wait(ANSWER_MS)
    assert stage.hung_up == [newer.connection]


def test_nobody_is_asked_when_nobody_is_there(stage: Stage, screen: Screen) -> None:
    stage.close(screen.connection)
    assert stage.rows(PULSE) == []
    stage.wait(2 * ASK_EVERY_MS)
    assert pings(screen) == 0
