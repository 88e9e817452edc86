"""Every file of JSONTestSuite as a frame: whatever it is, the next good line is answered (wire.md, strict JSON).

A file that is longer than a frame may be is answered by the error that names the limit, and a new connection works.
"""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from tests.support.broker_process import APP, CONFIG, ROOT, BrokerProcess
from tests.support.holder import Holder
from tests.support.lines import Rpc

BROKER_CONFIG = CONFIG + "[limits]\ncallsPerSecond = 1000000\n"
SUITE = ROOT / "fixtures" / "corpora" / "JSONTestSuite" / "test_parsing"
FRAME_BYTES = 65_536
LEASE_FRAME_BYTES = 8_192


@attrs.frozen
class Sample:
    """One file that is one line."""

    name: str
    data: bytes

    @property
    def blank(self) -> bool:
        return not self.data.strip(b" \t\r")


def samples() -> list[Sample]:
    found = [Sample(file.name, file.read_bytes()) for file in sorted(SUITE.glob("*.json"))]
    return [sample for sample in found if b"\n" not in sample.data]


SAMPLES = samples()


def test_the_samples_are_there() -> None:
    assert len(SAMPLES) > 280
    assert [sample.name for sample in SAMPLES if len(sample.data) > FRAME_BYTES] == [
        "n_structure_100000_opening_arrays.json"
    ]


@pytest.mark.requirement("G01", "CP-6.3")
def test_no_frame_keeps_a_companion_session_from_answering_the_next(broker: BrokerProcess) -> None:
    client = broker.agent("discover")
    for sample in SAMPLES:
        client.send(sample.data + b"\n")
        if len(sample.data) > FRAME_BYTES:
            (error,) = client.rest()
            assert error["error"]["data"]["limitBytes"] == FRAME_BYTES
            client = broker.agent("discover")
        client.send({"jsonrpc": "2.0", "id": sample.name, "method": "runtime.describe"})
        errors, reply = read_up_to(client, sample.name)
        assert "result" in reply
        assert len(errors) == (0 if sample.blank or len(sample.data) > FRAME_BYTES else 1), sample.name
        assert all(is_refusal(error) for error in errors), sample.name
    assert client.nothing()


@pytest.mark.requirement("G01", "LP-6")
def test_no_frame_keeps_a_lease_session_from_answering_the_next(broker: BrokerProcess) -> None:
    holder = broker.holder("suite")
    for sample in SAMPLES:
        holder.send(sample.data + b"\n")
        if len(sample.data) > LEASE_FRAME_BYTES:
            (error,) = holder.rest()
            assert error["code"] == "invalid_payload"
            assert str(LEASE_FRAME_BYTES) in error["message"]
            holder = broker.holder("suite")
        elif not sample.blank:
            answer = holder.read()
            assert (answer["action"], answer["requestId"]) == ("lease.response", None), sample.name
            assert answer["code"] in ("invalid_payload", "unknown_action"), sample.name
        assert still_served(holder), sample.name


@pytest.mark.requirement("G01")
def test_no_frame_keeps_the_control_socket_from_answering_the_next(broker: BrokerProcess) -> None:
    control = broker.control()
    for sample in SAMPLES:
        if len(sample.data) <= FRAME_BYTES:
            control.send(sample.data + b"\n")
            control.send({"jsonrpc": "2.0", "id": sample.name, "method": "status"})
            assert "result" in read_up_to(control, sample.name)[1]


@pytest.mark.requirement("CP-5.7", "LP-5")
@pytest.mark.parametrize("socket", ["companion.sock", "ai-protection.sock"])
def test_before_authentication_a_bad_frame_is_answered_once_and_is_the_last(
    broker: BrokerProcess, socket: str
) -> None:
    for sample in SAMPLES[:: len(SAMPLES) // 12]:
        client = broker.connect(socket)
        client.send(sample.data + b"\n")
        if not sample.blank:
            assert len(client.rest()) == 1, sample.name


def read_up_to(client: Rpc, call_id: str) -> tuple[list[Any], Any]:
    """The lines before the reply to this call, and the reply."""
    before: list[Any] = []
    while True:
        message = client.read()
        if isinstance(message, dict) and message.get("id") == call_id:
            return before, message
        before.append(message)


def is_refusal(reply: Any) -> bool:
    """An error that says that this is no request, or a batch of them."""
    errors = reply if isinstance(reply, list) else [reply]
    return bool(errors) and all(error["error"]["code"] in (-32700, -32600) for error in errors)


def still_served(holder: Holder) -> bool:
    """Whether the next good line gets its own answer; one that came too fast for the published rate is one, too."""
    return holder.begin(APP, 60)["code"] in ("accepted", "not_entitled")
