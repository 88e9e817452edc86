"""What the crash tests of lease operations share: looking at leases and receipts without changing them, and times."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import attrs

from tests.support.broker_process import APP, BrokerProcess
from tests.support.crashes import Case, told
from tests.support.holder import Holder

HOLDER = "agent"
CLOCK_SECONDS = 0.05
"""What two readings of the clocks may differ by when one instant is told twice."""


@attrs.frozen
class Told:
    """The holder's answer, None when the connection broke, and between which wall times it was decided."""

    response: dict[str, Any] | None
    since: float
    until: float

    def granted(self, expires_at: str, lease_seconds: int) -> bool:
        """Whether this is the end of a lease of so many seconds that was decided meanwhile."""
        start = seconds_of(expires_at) - lease_seconds
        return self.since - CLOCK_SECONDS <= start <= self.until + CLOCK_SECONDS


def ask(call: Callable[[], dict[str, Any]]) -> Told:
    """Ask as a holder, and note the time."""
    since = time.time()
    response = told(call)
    return Told(response, since, time.time())


def key_of(case: Case) -> str:
    """Each case has an app key of its own, all of them variants of one app."""
    return f"{APP}#{case.point.replace(' ', '-')}"


def listed(broker: BrokerProcess) -> dict[str, Any]:
    """The leases that have not ended, by app key."""
    with broker.control() as control:
        return {lease["appKey"]: lease for lease in control.call("leases.list", limit=100)["leases"]}


def has_receipt(holder: Holder, request_id: str) -> bool:
    """Whether the broker remembers that it accepted this id: then it refuses other content under it, before it looks
    at the app, which it does not know."""
    response = holder.ask("lease.begin", requestId=request_id, appKey="org.example.Unknown", leaseSeconds=60)
    return {"invalid_payload": True, "unknown_app": False}[response["code"]]


def seconds_of(timestamp: str) -> float:
    """A time of the wire as seconds since the epoch."""
    return datetime.fromisoformat(timestamp).timestamp()


def same_time(one: str, other: str) -> bool:
    """Whether two times of the wire tell of one instant."""
    return abs(seconds_of(one) - seconds_of(other)) <= CLOCK_SECONDS
