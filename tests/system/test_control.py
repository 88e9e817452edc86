"""The owner's own socket: clients are listed and lose their rights, and a monitor sees it (wire.md)."""

from __future__ import annotations

import os
import sys

import psutil
import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.byte_scan import scan
from tests.support.questions import ask, withdraw


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


@pytest.mark.requirement("CP-4.15")
def test_the_person_clears_and_the_asker_is_told_when_nothing_is_left(alone: BrokerProcess) -> None:
    broker, secret = alone, "a question to forget"
    client = broker.agent("interact")
    gone = withdraw(client, ask(client, title=secret))
    assert scan((broker.folder,), {"title": secret.encode()}) != {}
    control = broker.control()
    assert control.call("status")["recordsLostAt"] is None
    call = control.start("data.clear")
    shown = broker.presenter.wait_for("present", source={"label": "Companion", **asker()})
    broker.presenter.presented(shown)
    assert broker.presenter.answer(shown, "clear") == {"outcome": "committed"}
    assert control.reply(call)["result"] == {"status": "cleared"}
    assert scan((broker.folder,), {"title": secret.encode()}) == {}
    lost_at = control.call("status")["recordsLostAt"]
    assert client.refused("requests.get", requestId=gone["requestId"])["recordsLostAt"] == lost_at


def test_the_question_leaves_the_screen_with_its_asker(broker: BrokerProcess) -> None:
    presenter = broker.presenter
    with broker.control() as control:
        control.start("data.clear")
        shown = presenter.wait_for("present", source={"label": "Companion", **asker()})
    gone = presenter.wait_for("dismiss", requestId=shown["requestId"])
    assert gone["reason"] == "cancelled_by_client"


def asker() -> dict[str, object]:
    """The test itself, as the kernel names it."""
    me = psutil.Process()
    return {
        "program": os.readlink(f"/proc/{me.pid}/exe") if sys.platform == "linux" else me.exe(),
        "pid": me.pid,
    }


def test_a_monitor_goes_on_answering_and_ends_with_its_connection(broker: BrokerProcess) -> None:
    with broker.control() as monitor:
        monitor.call("monitor")
        assert monitor.call("status")["connections"]["control"] >= 1
        with broker.control() as other:
            other.call("status")
        monitor.notification("event", kind="connection", protocol="control", state="closed")
    assert broker.control().call("status")["connections"]["control"] >= 1
