"""A real broker whose disk takes no writes: nothing is acknowledged, nothing is lost, and it goes on or ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from broker.daemon.__main__ import EXIT_STORE_LOST
from tests.support.broker_process import APP, BrokerProcess, running_broker
from tests.support.crashes import CONFIG, answer_to, pushed, ready_presenter
from tests.support.faulty_broker import Faults
from tests.support.leases_over_crashes import HOLDER, listed
from tests.support.lines import Rpc

NO_WRITES = [
    pytest.param(("SQLITE_FULL", "before commit"), id="full"),
    pytest.param(("SQLITE_READONLY", "before begin"), id="read-only"),
]
# The probe of committer.py has no write of requests, so it gets through and the broker knows where it is.
UNSURE = pytest.param(
    ("SQLITE_IOERR", "before write requests"), id="an error whose outcome the probe settles"
)
LOST = ("SQLITE_IOERR", "before begin")
NOT_SAVED = {"outcome": "rejected", "reason": "not_saved"}
WRITABLE_SECONDS = 10.0


@attrs.frozen
class Prompt:
    """A broker with one agent's question on the screen."""

    broker: BrokerProcess
    faults: Faults
    agent: Rpc
    credential: tuple[str, str]
    shown: dict[str, Any]
    snapshot: dict[str, Any]

    def answer(self) -> Any:
        """What the presenter is told of an answer."""
        return self.broker.presenter.call("answer", **answer_to(self.shown, "y"))

    def get(self) -> Any:
        """The snapshot now."""
        return self.agent.call("requests.get", requestId=self.snapshot["requestId"])


@pytest.fixture
def prompt(folder: Path) -> Iterator[Prompt]:
    faults = Faults(folder)
    with running_broker(folder, config=CONFIG, command=faults.command) as broker:
        ready_presenter(broker)
        credential = broker.pair("agent", ["interact"])
        agent = broker.session(credential)
        shown, snapshot = broker.show(agent, agent.call("requests.create", **_question("first")))
        yield Prompt(broker, faults, agent, credential, shown, snapshot)


def _question(key: str) -> dict[str, Any]:
    options = [{"id": "y", "label": "Allow"}, {"id": "n", "label": "Deny"}]
    return {
        "capability": "interaction.choose",
        "params": {"title": "Read file?", "options": options},
        "timeoutMs": 3_600_000,
        "idempotencyKey": key,
    }


def _once_writable(call: Callable[[], Any], refusal: Any) -> Any:
    """The first other outcome than the refusal; the broker looks at its disk each second."""
    until = time.monotonic() + WRITABLE_SECONDS
    while (outcome := call()) == refusal:
        assert time.monotonic() < until, "the broker has not noticed that the disk takes writes again"
        time.sleep(0.05)
    return outcome


def _lift_after_a_probe(faults: Faults) -> None:
    """Let the broker find out that it cannot write, and then that it can."""
    until = time.monotonic() + WRITABLE_SECONDS
    while "before probe" not in faults.calls() and time.monotonic() < until:
        time.sleep(0.02)
    faults.lift()


@pytest.mark.requirement("CP-4.12")
@pytest.mark.parametrize("fault", [*NO_WRITES, UNSURE])
def test_a_create_that_cannot_be_stored_is_refused_and_makes_nothing(
    prompt: Prompt, fault: tuple[str, str]
) -> None:
    prompt.faults.fail(*fault)
    refused = prompt.agent.refused("requests.create", **_question("second"))
    assert (refused["code"], refused["reason"]) == ("RUNTIME_UNAVAILABLE", "not_saved")
    assert refused["retryable"] is True
    prompt.faults.lift()

    def create() -> Any:
        return prompt.agent.reply(prompt.agent.start("requests.create", **_question("second"))).get("result")

    request = _once_writable(create, None)
    assert (request["state"], request["revision"]) == ("queued", 1)
    assert prompt.agent.call("requests.create", **_question("second")) == request
    assert pushed(prompt.broker.presenter, "present") == []


@pytest.mark.requirement("CP-4.12", "CP-3.7")
@pytest.mark.parametrize("fault", [*NO_WRITES, UNSURE])
def test_an_answer_that_cannot_be_stored_is_rejected_and_can_be_given_again(
    prompt: Prompt, fault: tuple[str, str]
) -> None:
    news = prompt.agent.start(
        "requests.wait",
        requestId=prompt.snapshot["requestId"],
        afterRevision=prompt.snapshot["revision"],
        waitMs=60_000,
    )
    assert prompt.get() == prompt.snapshot  # calls of one connection are decided in order: the wait is parked
    prompt.faults.fail(*fault)
    assert prompt.answer() == NOT_SAVED
    assert prompt.answer() == NOT_SAVED
    assert prompt.get() == prompt.snapshot
    prompt.faults.lift()
    assert _once_writable(prompt.answer, NOT_SAVED) == {"outcome": "committed"}
    answered = prompt.agent.reply(news)["result"]["request"]
    assert (answered["state"], answered["result"]) == ("completed", {"selectedId": "y"})
    assert answered["revision"] == prompt.snapshot["revision"] + 1
    assert prompt.get() == answered


@pytest.mark.requirement("CP-4.12")
@pytest.mark.parametrize("fault", NO_WRITES)
def test_reads_go_on_while_nothing_can_be_written(prompt: Prompt, fault: tuple[str, str]) -> None:
    prompt.faults.fail(*fault)
    assert prompt.answer() == NOT_SAVED
    assert prompt.agent.call("runtime.describe")["access"] == {"enabled": True}
    assert prompt.agent.call("requests.create", **_question("first")) == prompt.get() == prompt.snapshot
    with prompt.broker.session(prompt.credential) as another:
        after = {"requestId": prompt.snapshot["requestId"], "afterRevision": 1, "waitMs": 60_000}
        assert another.call("requests.wait", **after)["request"] == prompt.snapshot
    with prompt.broker.control() as control:
        assert control.call("status")["openRequests"] == 1


@pytest.mark.requirement("LP-6", "LP-12")
@pytest.mark.parametrize("fault", NO_WRITES)
def test_a_lease_that_cannot_be_stored_is_not_granted(prompt: Prompt, fault: tuple[str, str]) -> None:
    holder = prompt.broker.holder(HOLDER)
    prompt.faults.fail(*fault)
    refused = holder.ask("lease.begin", requestId="1", appKey=APP, leaseSeconds=600)
    assert refused["code"] == "not_entitled"
    assert listed(prompt.broker) == {}
    prompt.faults.lift()

    def begin() -> str:
        code: str = holder.ask("lease.begin", requestId="1", appKey=APP, leaseSeconds=600)["code"]
        return code

    assert _once_writable(begin, "not_entitled") == "accepted"
    assert listed(prompt.broker)[APP]["state"] == "active"


@pytest.mark.requirement("CP-4.12", "CP-4.13")
def test_a_store_that_cannot_be_trusted_ends_the_broker_and_nobody_is_told_anything(
    prompt: Prompt, folder: Path
) -> None:
    broker, agent = prompt.broker, prompt.agent
    after = {"requestId": prompt.snapshot["requestId"], "afterRevision": prompt.snapshot["revision"]}
    agent.start("requests.wait", **after, waitMs=60_000)
    assert prompt.get() == prompt.snapshot  # and so the wait is parked
    holder, watcher = broker.holder(HOLDER), broker.control()
    prompt.faults.fail(*LOST)
    agent.start("requests.create", **_question("second"))
    assert agent.rest() == []
    assert holder.rest() == []
    assert watcher.rest() == []
    assert broker.presenter.rest() == []
    assert broker.process.wait(timeout=10) == EXIT_STORE_LOST
    prompt.faults.lift()
    with running_broker(folder, config=CONFIG) as restarted, restarted.session(prompt.credential) as again:
        request = again.call("requests.get", requestId=prompt.snapshot["requestId"])
        assert (request["state"], request["reason"]) == ("failed", "runtime_restarted")
        assert request["revision"] == prompt.snapshot["revision"] + 1
        refused = again.refused("requests.create", **_question("second"))
        assert refused["reason"] == "no_presenter"


@pytest.mark.requirement("CP-4.12")
def test_an_answer_is_not_confirmed_when_the_store_is_lost(prompt: Prompt) -> None:
    prompt.faults.fail(*LOST)
    prompt.broker.presenter.start("answer", **answer_to(prompt.shown, "y"))
    assert prompt.broker.presenter.rest() == []
    assert prompt.broker.process.wait(timeout=10) == EXIT_STORE_LOST


@pytest.mark.requirement("CP-4.12", "CP-4.13")
def test_a_broker_that_cannot_store_its_restart_lets_nobody_in_until_it_can(
    prompt: Prompt, folder: Path
) -> None:
    prompt.broker.kill()
    prompt.faults.fail("SQLITE_FULL", "before commit")
    lifting = threading.Thread(target=_lift_after_a_probe, args=(prompt.faults,))
    lifting.start()
    with running_broker(folder, config=CONFIG, command=prompt.faults.command) as restarted:
        with restarted.session(prompt.credential) as again:
            request = again.call("requests.get", requestId=prompt.snapshot["requestId"])
        lifting.join()
        assert "waiting_for_the_disk" in restarted.log
    assert (request["state"], request["reason"]) == ("failed", "runtime_restarted")
    assert request["revision"] == prompt.snapshot["revision"] + 1
