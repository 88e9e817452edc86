"""Revoking on a real broker that is SIGKILLed before and after each call to its store, the wiping among them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.crashes import AFTER_REPLY, Case, crash_at_each, points, ready_presenter, store_calls, told
from tests.support.faulty_broker import Faults
from tests.support.lines import until

REVOKE = ("begin", "write clients", "write wipes", "commit")
DROP = ("begin", "write requests", "write clients", "write wipes", "commit")
SCRUB = ("rewrite", "truncate")
FORGET = ("begin", "write wipes", "commit")
CALLS = store_calls(*REVOKE, *DROP, *SCRUB, *FORGET)
REVOKED_AT = len(store_calls(*REVOKE))
"""The number of the call behind which the revoke is stored."""
at_each_point = pytest.mark.parametrize("point", points(CALLS))


def revoked(case: Case) -> bool:
    return case.number is None or case.number >= REVOKED_AT


@attrs.frozen
class Seen:
    """What is left of a client: whether it is listed, and how many of its rows are in which table."""

    listed: bool
    rows: dict[str, int]


class Revokes:
    """Each case revokes a client of its own, which has one ended request."""

    def prepare(self, broker: BrokerProcess) -> None:
        ready_presenter(broker)
        self.clients: dict[str, str] = {}
        for point in points(CALLS):
            credential = broker.pair(f"agent {point}", ["notify"])
            self.clients[point] = credential[0]
            with broker.session(credential) as agent:
                notice = {"capability": "notice.show", "params": {"text": "Hello"}, "timeoutMs": 600_000}
                made = agent.call("requests.create", **notice)
                agent.call("requests.cancel", requestId=made["requestId"])

    def act(self, broker: BrokerProcess, case: Case, arm: Callable[[], None]) -> Any:
        with broker.control() as owner:
            arm()
            outcome = told(lambda: owner.call("clients.revoke", clientId=self.clients[case.point]))
        if case.number is None:
            until(
                lambda: len(Faults(broker.folder).calls()) >= len(CALLS)
            )  # the last one is seen before it returns
        else:
            broker.process.wait()
        return outcome

    def look(self, broker: BrokerProcess, case: Case) -> Seen:
        client_id = self.clients[case.point]
        with broker.control() as owner:
            page = owner.call("clients.list", limit=100)
        assert page["nextCursor"] is None
        listed = [client["clientId"] for client in page["clients"]]
        return Seen(client_id in listed, _rows_of(broker, client_id))

    def repeat(self, broker: BrokerProcess, case: Case) -> Any:
        with broker.control() as owner:
            reply = owner.reply(owner.start("clients.revoke", clientId=self.clients[case.point]))
        _wait_until_forgotten(broker, self.clients[case.point])
        return reply.get("result", reply.get("error", {}).get("data", {}).get("code"))


def _rows_of(broker: BrokerProcess, client_id: str) -> dict[str, int]:
    found = {}
    with closing(_store(broker.folder)) as db:
        for table, column in (("clients", "key"), ("requests", "by_client"), ("wipes", "key")):
            sql = f"SELECT COUNT(*) FROM {table} WHERE {column} = ?"
            (found[table],) = db.execute(sql, [client_id]).fetchone()
    return found


def _store(folder: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{(folder / 'state' / 'companion.db').as_uri()}?mode=ro", uri=True)


def _wait_until_forgotten(broker: BrokerProcess, client_id: str) -> None:
    until(lambda: not any(_rows_of(broker, client_id).values()))


@pytest.fixture(scope="module")
def cases() -> dict[str, Case]:
    return crash_at_each(CALLS, Revokes())


pytestmark = pytest.mark.timeout(600)  # the fixture ends and starts a broker at each of the points


@at_each_point
def test_the_crash_points_are_all_the_calls_that_a_revoke_makes_to_the_store(
    cases: dict[str, Case], point: str
) -> None:
    case = cases[point]
    assert cases[AFTER_REPLY].calls == list(CALLS)
    assert case.calls == list(CALLS[: case.number])


@pytest.mark.requirement("CP-4.12", "CP-4.14")
@at_each_point
def test_a_revoke_is_acknowledged_only_when_it_is_stored(cases: dict[str, Case], point: str) -> None:
    case = cases[point]
    assert case.told in (({},) if point == AFTER_REPLY else (None, {}) if revoked(case) else (None,))


@pytest.mark.requirement("CP-4.14")
@at_each_point
def test_a_revoked_client_is_gone_with_everything_before_the_next_broker_listens(
    cases: dict[str, Case], point: str
) -> None:
    case = cases[point]
    assert len(case.seen) >= 2
    left = 0 if revoked(case) else 1
    expected = Seen(not revoked(case), {"clients": left, "requests": left, "wipes": 0})
    assert case.seen == [expected] * len(case.seen)


@pytest.mark.requirement("CP-4.14")
@at_each_point
def test_a_revoke_that_was_not_stored_can_be_made_again(cases: dict[str, Case], point: str) -> None:
    case = cases[point]
    assert case.repeated == ("NOT_FOUND" if revoked(case) else {})
    assert case.afterwards == Seen(False, {"clients": 0, "requests": 0, "wipes": 0})
