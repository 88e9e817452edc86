"""A key that its asker never took, over a real broker: once the asker has gone there is no such client."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.lines import Rpc, until

pytestmark = pytest.mark.requirement("CP-5.1", "CP-5.2")

DESCRIBE = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "runtime.describe"}).encode() + b"\n"


def stuck_asker(broker: BrokerProcess) -> tuple[Rpc, int]:
    """An asker whose pairing is approved while it reads nothing, and so much is on its way that the broker has kept
    the key; the id of its wait."""
    presenter = broker.presenter
    asker = broker.greet()
    pairing = asker.call("pairing.request", clientName="agent", scopes=["notify"])
    wait = asker.start("pairing.wait", pairingId=pairing["pairingId"], waitMs=60_000)
    asker.send_until_stuck(DESCRIBE * 100_000)
    presenter.approve(pairingId=pairing["pairingId"])
    return asker, wait


def clients(broker: BrokerProcess) -> list[Any]:
    with broker.control() as owner:
        listed: list[Any] = owner.call("clients.list")["clients"]
    return listed


def test_a_key_that_was_never_flushed_leaves_no_client(alone: BrokerProcess) -> None:
    asker, _ = stuck_asker(alone)
    assert len(clients(alone)) == 1
    asker.close()
    until(lambda: clients(alone) == [])


@pytest.mark.xfail(
    strict=False, reason="an asker that closes at once behind its key can be taken for one that never got it"
)
def test_a_key_that_was_flushed_late_is_a_key(alone: BrokerProcess) -> None:
    asker, wait = stuck_asker(alone)
    outcome = asker.reply(wait)["result"]
    asker.close()
    alone.session((outcome["clientId"], outcome["key"])).call("runtime.describe")
    assert [client["clientId"] for client in clients(alone)] == [outcome["clientId"]]
