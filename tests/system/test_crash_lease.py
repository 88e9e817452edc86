"""lease.begin and lease.renew on a real broker that is SIGKILLed before and after each call to its store.

Both write a lease and a receipt in one decision, so a case is wholly there when both are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.crashes import AFTER_REPLY, Case, committed_points, crash_at_each, points, store_calls
from tests.support.holder import Holder
from tests.support.leases_over_crashes import (
    HOLDER,
    Told,
    ask,
    has_receipt,
    key_of,
    listed,
    same_time,
    seconds_of,
)

CALLS = store_calls("begin", "write leases", "write receipts", "commit")
at_each_point = pytest.mark.parametrize("point", points(CALLS))
FIRST_SECONDS, SECONDS = 300, 900


@attrs.frozen
class Seen:
    """The lease as it is listed, and whether the message under test has a receipt."""

    lease: dict[str, Any] | None
    receipt: bool


class Grants:
    """Each case sends one lease.begin or lease.renew about an app key of its own; a renew has a lease to renew."""

    def __init__(self, action: str) -> None:
        self.action = action
        self.begun: dict[str, Any] = {}

    def prepare(self, broker: BrokerProcess) -> None:
        pass

    def act(self, broker: BrokerProcess, case: Case, arm: Callable[[], None]) -> Told:
        with broker.holder(HOLDER) as holder:
            if self.action == "lease.renew":
                self.begun[case.point] = holder.begin(key_of(case), FIRST_SECONDS)
            arm()
            return ask(lambda: self._send(holder, case))

    def look(self, broker: BrokerProcess, case: Case) -> Seen:
        with broker.holder(HOLDER) as holder:
            return Seen(listed(broker).get(key_of(case)), has_receipt(holder, case.point))

    def repeat(self, broker: BrokerProcess, case: Case) -> Told:
        with broker.holder(HOLDER) as holder:
            return ask(lambda: self._send(holder, case))

    def _send(self, holder: Holder, case: Case) -> dict[str, Any]:
        return holder.ask(self.action, requestId=case.point, appKey=key_of(case), leaseSeconds=SECONDS)


@attrs.frozen
class Crashed:
    """An operation and its cases."""

    operation: Grants
    cases: dict[str, Case]


@pytest.fixture(scope="module", params=["lease.begin", "lease.renew"])
def crashed(request: pytest.FixtureRequest) -> Crashed:
    operation = Grants(request.param)
    return Crashed(operation, crash_at_each(CALLS, operation))


@at_each_point
def test_the_crash_points_are_all_the_calls_that_a_grant_makes_to_the_store(
    crashed: Crashed, point: str
) -> None:
    case = crashed.cases[point]
    assert crashed.cases[AFTER_REPLY].calls == list(CALLS)
    assert case.calls == list(CALLS[: case.number])


@pytest.mark.requirement("LP-4", "LP-6")
@at_each_point
def test_a_grant_is_acknowledged_only_when_it_is_stored(crashed: Crashed, point: str) -> None:
    case = crashed.cases[point]
    if point == AFTER_REPLY:
        assert case.told.response["code"] == "accepted"
        assert case.told.granted(case.told.response["expiresAt"], SECONDS)
    else:
        assert case.told.response is None


@pytest.mark.requirement("LP-4", "LP-12")
@at_each_point
def test_a_grant_is_wholly_there_or_wholly_absent(crashed: Crashed, point: str) -> None:
    case = crashed.cases[point]
    assert len(case.seen) >= 2
    begun = crashed.operation.begun.get(point)
    for seen in case.seen:
        assert seen.receipt == case.committed
        if case.committed:
            assert seen.lease["leaseSeconds"] == SECONDS
        elif begun is None:
            assert seen.lease is None
        else:
            assert seen.lease["leaseSeconds"] == FIRST_SECONDS
            assert same_time(seen.lease["expiresAt"], begun["expiresAt"])


@pytest.mark.requirement("LP-8", "LP-12")
@pytest.mark.parametrize("point", committed_points(CALLS))
def test_a_lease_holds_what_remains_of_it(crashed: Crashed, point: str) -> None:
    case = crashed.cases[point]
    for seen in case.seen:
        assert seen.lease["state"] == "active"
        assert case.told.granted(seen.lease["expiresAt"], SECONDS)  # from the grant, never from a restart
        grace_seconds = seconds_of(seen.lease["graceEndsAt"]) - seconds_of(seen.lease["expiresAt"])
        assert round(grace_seconds, 3) == 0.1


@pytest.mark.requirement("LP-4")
@at_each_point
def test_a_repeated_message_gets_the_same_answer_or_is_decided_now(crashed: Crashed, point: str) -> None:
    case = crashed.cases[point]
    again = case.repeated.response
    assert again["code"] == "accepted"
    assert same_time(case.afterwards.lease["expiresAt"], again["expiresAt"])
    if case.told.response is not None:
        assert again == case.told.response
    decided = case.told if case.committed else case.repeated
    assert decided.granted(again["expiresAt"], SECONDS)
