"""What happens while the broker is down: time passes and processes die, and the restart takes both into account."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.support.broker_process import APP, BrokerProcess, running_broker
from tests.support.children import child, read_line
from tests.support.crashes import CONFIG, ready_presenter
from tests.support.leases_over_crashes import HOLDER, listed, same_time, seconds_of

DEAD_HOLDER = """
import os, socket, sys
sock = socket.socket(socket.AF_UNIX)
sock.connect(sys.argv[1])
with sock.makefile("rw") as lines:
    for line in sys.argv[2:]:
        print(line, file=lines, flush=True)
        print(lines.readline(), end="", flush=True)
    sys.stdin.read()
"""


@attrs.frozen
class Back:
    """The broker after its downtime, and what it had told before."""

    broker: BrokerProcess
    request: dict[str, Any]
    lease: dict[str, Any]
    agent: tuple[str, str]


@pytest.fixture(scope="module")
def back() -> Iterator[Back]:
    with tempfile.TemporaryDirectory(prefix="cb-") as name:
        folder = Path(name)
        with running_broker(folder, config=CONFIG) as broker:
            ready_presenter(broker)
            credential = broker.pair("agent", ["notify"])
            with broker.session(credential) as agent, broker.holder(HOLDER) as holder:
                request = agent.call(
                    "requests.create", capability="notice.show", params={"text": "Hello"}, timeoutMs=1000
                )
                lease = holder.begin(APP, 1)
            with child(_dead_holder(broker.runtime / "ai-protection.sock")) as process:
                codes = [json.loads(read_line(process)).get("code") for _ in range(2)]
                assert codes == [None, "accepted"]
                broker.kill()
        while time.time() < seconds_of(lease["expiresAt"]):
            time.sleep(0.02)
        with running_broker(folder, config=CONFIG) as broker:
            yield Back(broker, request, lease, credential)


def _dead_holder(path: Path) -> list[str]:
    """A process that takes a lease and dies with the broker; its socket's path, then what it says."""
    hello = {"action": "session.hello", "protocolVersion": 1, "clientName": "Test Agent", "pid": 0}
    begin = {"action": "lease.begin", "requestId": "1", "appKey": f"{APP}#dead", "leaseSeconds": 600}
    lines = [json.dumps({**message, "holderId": "dead"}) for message in (hello, begin)]
    return [sys.executable, "-c", DEAD_HOLDER, str(path), *lines]


@pytest.mark.requirement("LP-8", "LP-12")
def test_a_lease_that_ended_meanwhile_is_over_at_once(back: Back) -> None:
    lease = listed(back.broker)[APP]
    assert lease["state"] in ("grace", "expired")
    assert same_time(lease["expiresAt"], back.lease["expiresAt"])


@pytest.mark.requirement("LP-12", "G24")
def test_a_holder_that_died_meanwhile_protects_nothing_any_more(back: Back) -> None:
    while (lease := listed(back.broker).get(f"{APP}#dead")) is not None:
        assert (lease["state"], lease.get("reason")) in (("active", None), ("grace", "holder_died"))
        time.sleep(0.02)


@pytest.mark.requirement("CP-3.8")
def test_a_request_whose_deadline_passed_meanwhile_has_expired(back: Back) -> None:
    with back.broker.session(back.agent) as agent:
        request = agent.call("requests.get", requestId=back.request["requestId"])
    assert (request["state"], request["reason"]) == ("expired", "deadline")
