"""Over the socket: somebody else's request reads like one that never was, byte for byte (CP-4.3, CP-6.8)."""

from __future__ import annotations

import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.questions import ask, withdraw
from tests.support.request_calls import CALLS, NEVER, line


@pytest.mark.requirement("CP-4.3", "CP-6.8", "CP-5.9")
def test_a_foreign_request_reads_like_one_that_never_was(broker: BrokerProcess) -> None:
    owner, stranger = broker.agent("interact"), broker.agent("interact", "discover")
    awaiting = broker.show(owner, ask(owner))[1]
    ended = withdraw(owner, ask(owner, "Really?"))
    for method, params in CALLS:
        told = []
        for request_id in (NEVER, awaiting["requestId"], ended["requestId"]):
            stranger.send(line(method, {**params, "requestId": request_id}))
            told.append(stranger.line())
        assert told == [told[0]] * 3, method
    assert owner.call("requests.get", requestId=awaiting["requestId"]) == awaiting
