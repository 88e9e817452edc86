"""The answer extend_lease to a close check, on a broker that is SIGKILLed before and after each call to its store."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.crashes import AFTER_REPLY, Case, crash_at_each, points, store_calls, told
from tests.support.holder import Holder
from tests.support.leases_over_crashes import HOLDER, Told, ask, key_of, listed, same_time
from tests.support.lines import Rpc

CALLS = store_calls("begin", "write leases", "commit")
at_each_point = pytest.mark.parametrize("point", points(CALLS))
SECONDS = 900


@attrs.frozen
class Extended:
    """What the holder and the asker of a close check were told; None when the connection broke."""

    holder: Told
    asker: dict[str, Any] | None


class Extends:
    """Each case has a lease of one second, which is over, and a close check about it."""

    def prepare(self, broker: BrokerProcess) -> None:
        self.checks: dict[str, Any] = {}
        with broker.holder(HOLDER) as holder:
            for point in points(CALLS):
                assert holder.begin(key_of(Case(point)), 1)["code"] == "accepted"
        wait_for_states(broker, "expired")
        self.expired = listed(broker)

    def act(self, broker: BrokerProcess, case: Case, arm: Callable[[], None]) -> Extended:
        with broker.holder(HOLDER) as holder, broker.control() as asker:
            asked = asker.start("leases.may_close", appKey=key_of(case))
            check = self.checks[case.point] = holder.pushed()
            arm()
            extended = ask(lambda: _extend(holder, check))
            return Extended(extended, told(lambda: _verdict(asker, asked)))

    def look(self, broker: BrokerProcess, case: Case) -> Any:
        return listed(broker)[key_of(case)]

    def repeat(self, broker: BrokerProcess, case: Case) -> dict[str, Any]:
        """Answer the check of before the crash; then somebody asks again."""
        with broker.holder(HOLDER) as holder, broker.control() as asker:
            late = _extend(holder, self.checks[case.point])
            asked = asker.start("leases.may_close", appKey=key_of(case))
            if self.look(broker, case)["state"] == "expired":
                assert _extend(holder, holder.pushed())["code"] == "accepted"
            return {"late": late["code"], "verdict": _verdict(asker, asked)["reason"]}


def _extend(holder: Holder, check: dict[str, Any]) -> dict[str, Any]:
    return holder.answer(check, "extend_lease", leaseSeconds=SECONDS)


def _verdict(asker: Rpc, asked: int) -> dict[str, Any]:
    verdict: dict[str, Any] = asker.reply(asked)["result"]
    return verdict


def wait_for_states(broker: BrokerProcess, *states: str) -> None:
    """Wait until every lease that is listed is in one of the states."""
    while any(lease["state"] not in states for lease in listed(broker).values()):
        time.sleep(0.02)


@pytest.fixture(scope="module")
def operation() -> Extends:
    return Extends()


@pytest.fixture(scope="module")
def cases(operation: Extends) -> dict[str, Case]:
    return crash_at_each(CALLS, operation)


@at_each_point
def test_the_crash_points_are_all_the_calls_that_an_extension_makes_to_the_store(
    cases: dict[str, Case], point: str
) -> None:
    case = cases[point]
    assert cases[AFTER_REPLY].calls == list(CALLS)
    assert case.calls == list(CALLS[: case.number])


@pytest.mark.requirement("LP-10")
@at_each_point
def test_neither_holder_nor_asker_hears_of_an_extension_that_is_not_stored(
    cases: dict[str, Case], point: str
) -> None:
    extended = cases[point].told
    if point == AFTER_REPLY:
        assert extended.holder.response["code"] == "accepted"
        assert (extended.asker["allowed"], extended.asker["reason"]) == (False, "kept")
    else:
        assert (extended.holder.response, extended.asker) == (None, None)


@pytest.mark.requirement("LP-10", "LP-12")
@at_each_point
def test_an_extended_lease_holds_what_remains_and_another_stays_expired(
    cases: dict[str, Case], operation: Extends, point: str
) -> None:
    case = cases[point]
    assert len(case.seen) >= 2
    for lease in case.seen:
        if case.committed:
            assert (lease["state"], lease["leaseSeconds"]) == ("active", SECONDS)
            assert case.told.holder.granted(lease["expiresAt"], SECONDS)
        else:
            before = operation.expired[lease["appKey"]]
            assert (lease["state"], lease["leaseSeconds"]) == ("expired", 1)
            assert same_time(lease["expiresAt"], before["expiresAt"])


@pytest.mark.requirement("LP-9", "LP-10")
@at_each_point
def test_a_close_check_does_not_outlive_the_broker(cases: dict[str, Case], point: str) -> None:
    case = cases[point]
    assert case.repeated["late"] == "request_expired"
    assert case.repeated["verdict"] == ("leased" if case.committed else "kept")
    assert case.afterwards["state"] == "active"
