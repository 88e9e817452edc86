"""A broker that is killed in the middle and started again: what its clients see of it, in both flavours."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from broker.client import blocking
from broker.client.errors import NotConnected
from broker.client.outcomes import Failed
from protocols.companion.client import Credential
from tests.client.agents import FLAVOURS, Agent
from tests.client.conftest import SCOPES
from tests.client.desk import Desk
from tests.support.broker_process import BrokerProcess, running_broker

OPTIONS = {"a": "A", "b": "B"}


class Life:
    """Brokers that follow one another in one folder, each with a person at it."""

    def __init__(self, folder: Path, brokers: ExitStack) -> None:
        self.folder = folder
        self._brokers = brokers
        self.broker, self.desk = self._start(pair=True)

    @property
    def path(self) -> Path:
        return self.broker.runtime / "companion.sock"

    def agent(self, flavour: str, patience: float = 10.0) -> Agent:
        return FLAVOURS[flavour](self.path, self.credential, patience)

    def restart(self) -> None:
        """Kill the broker and start the next."""
        self.broker.kill()
        self.broker, self.desk = self._start(pair=False)

    def _start(self, *, pair: bool) -> tuple[BrokerProcess, Desk]:
        broker = self._brokers.enter_context(running_broker(self.folder))
        if pair:
            self.credential = Credential(*broker.credential(*SCOPES))
        return broker, Desk(broker.presenter)


@pytest.fixture
def life(folder: Path) -> Iterator[Life]:
    with ExitStack() as brokers:
        yield Life(folder, brokers)


def in_background(work: Callable[[], Any]) -> Future[Any]:
    with_thread = ThreadPoolExecutor(1)
    future = with_thread.submit(work)
    with_thread.shutdown(wait=False)
    return future


@pytest.mark.requirement("CP-4.2", "CP-4.13")
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_question_outlives_no_restart_and_says_so(life: Life, flavour: str) -> None:
    agent = life.agent(flavour)
    asked = in_background(lambda: agent("ask", "Deploy?", OPTIONS))
    life.desk.seen("Deploy?")
    life.restart()
    with pytest.raises(Failed) as caught:
        asked.result(30)
    assert caught.value.reason == "runtime_restarted"
    assert life.desk.count("Deploy?") == 0
    life.desk.on("Deploy?", choose="a")
    assert agent("ask", "Deploy?", OPTIONS) == "a"


@pytest.mark.requirement("CP-4.1", "CP-4.2")
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_the_answer_of_an_earlier_life_is_found_by_its_key(life: Life, flavour: str) -> None:
    agent = life.agent(flavour)
    life.desk.on("Once?", choose="b")
    assert agent("ask", "Once?", OPTIONS, key="k") == "b"
    life.restart()
    assert agent("ask", "Once?", OPTIONS, key="k") == "b"
    assert life.desk.count("Once?") == 0


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_work_goes_on_when_the_broker_is_restarted_under_it(life: Life, flavour: str) -> None:
    done: list[int] = []
    ended = life.agent(flavour).work(
        "Work",
        lambda: life.desk.seen("Work"),
        life.restart,
        {"fraction": 0.5},
        lambda: done.append(1),
        {"fraction": 1.0},
    )
    assert isinstance(ended, Failed)
    assert (ended.reason, done) == ("runtime_restarted", [1])


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_broker_that_stays_away_is_told(life: Life, flavour: str) -> None:
    agent = life.agent(flavour, patience=0.3)
    asked = in_background(lambda: agent("ask", "Away?", OPTIONS))
    life.desk.seen("Away?")
    life.broker.kill()
    with pytest.raises(NotConnected):
        asked.result(30)


def test_one_companion_goes_on_over_restarts_in_all_of_its_threads(life: Life) -> None:
    answers: list[str] = []

    def ask_on() -> None:
        for number in range(3):
            title = f"{threading.get_ident()} {number}"
            life.desk.on(title, choose="a")
            answers.append(companion.ask(title, OPTIONS))

    with blocking.Companion.open(path=life.path, credential=life.credential, patience=10) as companion:
        for _ in range(2):
            threads = [threading.Thread(target=ask_on) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            life.restart()
        assert companion.describe().authorization.authenticated
    assert answers == ["a"] * 18
