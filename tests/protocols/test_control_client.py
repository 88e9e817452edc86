"""The calling side of the control protocol: answers by call, notifications in their order."""

from __future__ import annotations

import json

import pytest

from protocols.control.client import ControlClient
from protocols.control.messages import Done
from protocols.control.monitor import Event, Monitor
from protocols.errors import InvalidValue
from protocols.jsonrpc_client import Answer

EVENT = {"at": "2026-01-01T00:00:00.000Z", "kind": "settings", "state": "hidden"}


def told(client: ControlClient, *messages: object) -> None:
    for message in messages:
        client.receive(json.dumps(message).encode() + b"\n")


def pushed(**params: object) -> object:
    return {"jsonrpc": "2.0", "method": "event", "params": EVENT | params}


def test_notifications_are_kept_beside_the_answers() -> None:
    client = ControlClient()
    number = client.call("monitor", Monitor())
    told(client, pushed(), {"jsonrpc": "2.0", "id": number, "result": {}}, pushed(state="shown"))
    assert client.next_event() == Answer(number, Done(), {})
    assert client.next_event() is None
    assert [one.body for one in client.pushed] == [
        Event(at=EVENT["at"], kind="settings", state="hidden"),
        Event(at=EVENT["at"], kind="settings", state="shown"),
    ]
    assert client.pushed[0].raw == EVENT


@pytest.mark.requirement("CP-7.6")
def test_what_a_newer_broker_adds_is_passed_over() -> None:
    client = ControlClient()
    told(client, {"jsonrpc": "2.0", "method": "newer", "params": {}}, pushed(newer=1), [], {"jsonrpc": "2.0"})
    assert client.next_event() is None
    (only,) = client.pushed
    assert only.body == Event(at=EVENT["at"], kind="settings", state="hidden")


def test_a_call_of_the_broker_is_no_notification() -> None:
    client = ControlClient()
    told(client, {"jsonrpc": "2.0", "id": 1, "method": "event", "params": EVENT})
    assert client.next_event() is None
    assert not client.pushed


def test_an_event_that_is_none_breaks_the_protocol() -> None:
    client = ControlClient()
    told(client, pushed(state=1))
    with pytest.raises(InvalidValue):
        client.next_event()
