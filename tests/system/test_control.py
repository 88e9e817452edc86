"""The owner's own socket: clients are listed and lose their rights, and a monitor sees it (wire.md)."""

from __future__ import annotations

import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.questions import ask


@pytest.mark.requirement("CP-4.14", "CP-5.9")
def test_a_revocation_is_seen_by_the_monitor_and_by_the_client(broker: BrokerProcess) -> None:
    monitor, control = broker.control(), broker.control()
    assert monitor.call("monitor") == {}
    client_id, _ = broker.credential("interact")
    client = broker.agent("interact")
    shown, snapshot = broker.show(client, ask(client, title="a secret question"))
    waiting = client.start(
        "requests.wait",
        requestId=snapshot["requestId"],
        afterRevision=snapshot["revision"],
        waitMs=60_000,
    )
    listed = next(one for one in control.call("clients.list")["clients"] if one["clientId"] == client_id)
    assert (listed["label"], listed["connections"], listed["openRequests"]) == ("agent", 1, 1)
    assert control.call("clients.revoke", clientId=client_id) == {}
    assert client.reply(waiting)["error"]["data"]["code"] == "UNAUTHENTICATED"
    assert client.rest() == []

    cancelled = monitor.notification("event", requestId=snapshot["requestId"], state="cancelled")
    assert cancelled["reason"] == "key_revoked"
    assert (cancelled["clientId"], cancelled["capability"]) == (client_id, "interaction.choose")
    monitor.notification("event", kind="client", clientId=client_id, state="revoked")
    monitor.notification("event", kind="connection", clientId=client_id, state="closed")
    assert shown["title"] not in str(monitor._notifications)


def test_a_monitor_goes_on_answering_and_ends_with_its_connection(broker: BrokerProcess) -> None:
    with broker.control() as monitor:
        monitor.call("monitor")
        assert monitor.call("status")["connections"]["control"] >= 1
        with broker.control() as other:
            other.call("status")
        monitor.notification("event", kind="connection", protocol="control", state="closed")
    assert broker.control().call("status")["connections"]["control"] >= 1
