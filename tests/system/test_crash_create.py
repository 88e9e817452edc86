"""requests.create on a real broker that is SIGKILLed before and after each call to its store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.crashes import (
    AFTER_REPLY,
    Case,
    committed_points,
    crash_at_each,
    points,
    pushed,
    ready_presenter,
    store_calls,
    told,
)

CALLS = store_calls("begin", "write requests", "commit")
at_each_point = pytest.mark.parametrize("point", points(CALLS))


class Creates:
    """Each case creates a request under a key of its own."""

    def prepare(self, broker: BrokerProcess) -> None:
        ready_presenter(broker)
        self.credential = broker.pair("agent", ["interact"])

    def act(self, broker: BrokerProcess, case: Case, arm: Callable[[], None]) -> Any:
        ready_presenter(broker)
        with broker.session(self.credential) as agent:
            arm()
            return told(lambda: agent.call("requests.create", **_params(case)))

    def look(self, broker: BrokerProcess, case: Case) -> Any:
        """The snapshot; no presenter is ready, so a key that made no request makes none now."""
        with broker.session(self.credential) as agent:
            reply = agent.reply(agent.start("requests.create", **_params(case)))
        if "error" in reply:
            assert reply["error"]["data"]["reason"] == "no_presenter", reply
            return None
        return reply["result"]

    def repeat(self, broker: BrokerProcess, case: Case) -> Any:
        presenter = ready_presenter(broker)
        with broker.session(self.credential) as agent:
            first, second = (agent.call("requests.create", **_params(case)) for _ in range(2))
            conflict = agent.refused("requests.create", **_params(case, title="Delete folder?"))
            prompts = [prompt["requestId"] for prompt in pushed(presenter, "present")]
            agent.call("requests.cancel", requestId=first["requestId"])  # the next one gets its place
        return {"first": first, "second": second, "conflict": conflict, "prompts": prompts}


def _params(case: Case, title: str = "Read file?") -> dict[str, Any]:
    options = [{"id": "y", "label": "Allow"}, {"id": "n", "label": "Deny"}]
    return {
        "capability": "interaction.choose",
        "params": {"title": title, "options": options},
        "timeoutMs": 3_600_000,
        "idempotencyKey": case.point,
    }


@pytest.fixture(scope="module")
def cases() -> dict[str, Case]:
    return crash_at_each(CALLS, Creates())


@at_each_point
def test_the_crash_points_are_all_the_calls_that_create_makes_to_the_store(
    cases: dict[str, Case], point: str
) -> None:
    case = cases[point]
    assert cases[AFTER_REPLY].calls == list(CALLS)
    assert case.calls == list(CALLS[: case.number])


@pytest.mark.requirement("CP-4.12")
@at_each_point
def test_acceptance_is_acknowledged_only_when_it_is_stored(cases: dict[str, Case], point: str) -> None:
    case = cases[point]
    assert (case.told is not None) == (point == AFTER_REPLY)
    if case.told is not None:
        assert {seen["requestId"] for seen in case.seen} == {case.told["requestId"]}


@pytest.mark.requirement("CP-3.2", "CP-4.12")
@at_each_point
def test_a_request_is_wholly_there_or_wholly_absent(cases: dict[str, Case], point: str) -> None:
    case = cases[point]
    assert len(case.seen) >= 2
    assert [seen is not None for seen in case.seen] == [case.committed] * len(case.seen)


@pytest.mark.requirement("CP-4.13")
@pytest.mark.parametrize("point", committed_points(CALLS))
def test_an_unfinished_request_fails_once_by_the_restart(cases: dict[str, Case], point: str) -> None:
    case = cases[point]
    first = case.seen[0]
    assert (first["state"], first["reason"]) == ("failed", "runtime_restarted")
    assert (first["revision"], first["result"]) == (2, None)
    assert [*case.seen, case.repeated["first"], case.afterwards] == [first] * (len(case.seen) + 2)


@pytest.mark.requirement("CP-4.1", "CP-4.2")
@at_each_point
def test_a_retry_with_the_same_key_makes_one_request(cases: dict[str, Case], point: str) -> None:
    case = cases[point]
    ids = {seen["requestId"] for seen in [*case.seen, case.afterwards] if seen is not None}
    ids |= {case.repeated[name]["requestId"] for name in ("first", "second")}
    assert len(ids) == 1
    assert case.repeated["conflict"]["code"] == "IDEMPOTENCY_CONFLICT"


@pytest.mark.requirement("CP-4.2", "CP-4.13")
@at_each_point
def test_a_retry_shows_no_second_prompt(cases: dict[str, Case], point: str) -> None:
    case = cases[point]
    made_now = [] if case.committed else [case.repeated["first"]["requestId"]]
    assert case.repeated["prompts"] == made_now
