"""Five seconds to get ready, and what stops that clock (wire.md, time)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.lines import Lines, Rpc, Stopwatch

LIMIT_SECONDS = 5.0
SLOW_SECONDS = 5.0
"""How much later than that a slow machine may be."""
COMPANION, LEASE = "companion.sock", "ai-protection.sock"


@attrs.frozen
class Ended:
    """What a connection was told until it was closed, and after how many seconds that was."""

    lines: list[Any]
    seconds: float


@attrs.define
class Watched:
    """Connections that run out at the same time, each watched by a thread of its own."""

    broker: BrokerProcess
    ended: dict[str, Ended] = attrs.field(factory=dict)
    threads: list[threading.Thread] = attrs.field(factory=list)

    def add(self, name: str, begin: Callable[[], Lines]) -> None:
        watch = Stopwatch()
        connection = begin()

        def wait() -> None:
            self.ended[name] = Ended(connection.rest(), watch.seconds)

        self.threads.append(threading.Thread(target=wait))
        self.threads[-1].start()

    def join(self) -> dict[str, Ended]:
        for thread in self.threads:
            thread.join()
        return self.ended


@pytest.mark.requirement("CP-5.7", "LP-5")
def test_who_is_not_ready_in_time_is_told_so_and_closed(broker: BrokerProcess) -> None:
    asking, pairing = Stopwatch(), request_pairing(broker)
    ready = [broker.agent("discover"), broker.control()]
    holder = broker.holder("patient")
    watched = Watched(broker)
    watched.add("silent", lambda: broker.connect(COMPANION))
    watched.add("greeted", broker.greet)
    watched.add("half a line", lambda: said(broker.connect(COMPANION), b'{"jsonrpc"'))
    watched.add("trickling", lambda: trickling(broker.connect(COMPANION)))
    watched.add("silent holder", lambda: broker.connect(LEASE))
    watched.add("trickling holder", lambda: trickling(broker.connect(LEASE)))

    # A pairing that a person decides on stops the clock until it has ended; then the time begins anew.
    sleep_until(asking, 3)
    assert pairing.call("pairing.cancel", pairingId=pairing.pairing_id) == {"status": "cancelled"}
    sleep_until(asking, LIMIT_SECONDS + 1)
    pairing.call("runtime.describe")
    (late,) = pairing.rest()
    assert 3 + LIMIT_SECONDS <= asking.seconds < 3 + LIMIT_SECONDS + SLOW_SECONDS

    ended = watched.join()
    assert_timed_out(late)
    for name in ("silent", "greeted", "half a line", "trickling"):
        (error,) = ended[name].lines
        assert_timed_out(error)
    for name in ("silent holder", "trickling holder"):
        (error,) = ended[name].lines
        assert (error["action"], error["code"]) == ("session.error", "invalid_handshake")
    early = {name: end.seconds for name, end in ended.items() if end.seconds < LIMIT_SECONDS - 0.1}
    late_ones = {
        name: end.seconds for name, end in ended.items() if end.seconds > LIMIT_SECONDS + SLOW_SECONDS
    }
    assert (early, late_ones) == ({}, {})

    # Whoever is ready may be as silent as it likes.
    assert [client.nothing(0.01) for client in (*ready, holder)] == [True] * 3
    ready[0].call("runtime.describe")
    ready[1].call("status")
    assert holder.end("org.example.App")["code"] == "request_expired"


@pytest.mark.requirement("CP-5.6")
def test_the_connection_that_has_paired_may_authenticate(broker: BrokerProcess) -> None:
    client = broker.greet()
    pairing = client.call("pairing.request", clientName="same connection", scopes=["discover"])
    broker.presenter.approve()
    outcome = client.call("pairing.wait", pairingId=pairing["pairingId"], waitMs=10_000)
    client.call("session.authenticate", clientId=outcome["clientId"], key=outcome["key"])
    assert client.call("runtime.describe")["authorization"]["clientId"] == outcome["clientId"]


class Pairing(Rpc):
    """A connection with a pending pairing."""

    pairing_id = ""


def request_pairing(broker: BrokerProcess) -> Pairing:
    presenter = broker.presenter
    client = Pairing(broker.greet().socket)
    asked = client.call("pairing.request", clientName="hesitant", scopes=["discover"])
    client.pairing_id = asked["pairingId"]
    presenter.presented(presenter.wait_for("confirm_pairing", pairingId=client.pairing_id))
    return client


def said(connection: Lines, data: bytes) -> Lines:
    connection.send(data)
    return connection


def trickling(connection: Lines) -> Lines:
    """One byte at a time, as slowly as somebody would who wants to stay."""

    def trickle() -> None:
        try:
            while True:
                connection.send(b" ")
                time.sleep(0.3)
        except OSError:
            pass  # it was closed

    threading.Thread(target=trickle, daemon=True).start()
    return connection


def sleep_until(watch: Stopwatch, seconds: float) -> None:
    time.sleep(max(0.0, seconds - watch.seconds))


def assert_timed_out(error: dict[str, Any]) -> None:
    assert error["id"] is None
    assert (error["error"]["data"]["code"], error["error"]["data"]["reason"]) == (
        "UNAUTHENTICATED",
        "timeout",
    )
