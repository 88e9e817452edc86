"""Params of the host are read as a client's are: the same message, or the same no (CP-1.3)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.daemon.host import HostRefused, read_params
from protocols.companion.engine import FRAME_BYTES, CompanionEngine
from protocols.companion.messages import AuthenticateResult, HelloResult, Implementation
from protocols.companion.methods import METHODS
from protocols.json_values import JSONObject
from protocols.session import Deliver, Send
from tests.protocols.json_strategies import json_objects, json_values, texts

OPENING = (
    ("session.hello", {"protocolVersions": ["0.1"], "client": {"name": "t", "version": "1"}}),
    ("session.authenticate", {"clientId": "c", "key": "k"}),
)
IMPLEMENTATION = Implementation(name="t", version="1")
ANSWERS = (
    HelloResult(
        protocol_version="0.1", runtime_instance_id="r", implementation=IMPLEMENTATION, access_enabled=True
    ),
    AuthenticateResult(client_id="c", label="C", scopes=()),
)
NUMBERS = st.integers(-(2**70), 2**70)
"""Some of them are over the 64 bits of the wire."""
MEMBERS: dict[str, st.SearchStrategy[Any]] = {
    "capability": st.just("notice.show") | texts | json_values,
    "params": json_objects | json_values,
    "timeoutMs": st.integers(1, 60_000) | NUMBERS | json_values,
    "requestId": texts,
    "afterRevision": NUMBERS,
    "expectedRevision": NUMBERS,
    "waitMs": NUMBERS | json_values,
    "allowSubstitution": st.booleans() | st.integers(0, 1),
    "taskId": texts | st.text(max_size=3),
    "clientId": texts,
}


def as_a_client(method: str, params: JSONObject) -> object:
    """What the engine of a client's connection delivers for these params, or the details of its refusal."""
    engine = CompanionEngine()
    for (name, said), answer in zip(OPENING, ANSWERS, strict=True):
        engine.receive(line(name, said))
        delivered = engine.next_output()
        assert isinstance(delivered, Deliver)
        engine.reply(delivered.number, answer)
        assert isinstance(engine.next_output(), Send)
    engine.receive(line(method, params))
    output = engine.next_output()
    if isinstance(output, Deliver):
        return output.message
    assert isinstance(output, Send)
    refused: JSONObject = json.loads(output.data)["error"]["data"]
    return refused


def as_the_host(method: str, params: JSONObject) -> object:
    try:
        return read_params(METHODS[method].params, params, FRAME_BYTES)
    except HostRefused as no:
        return {"code": no.code.value, "retryable": no.retryable, **no.details}


def line(method: str, params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n"


@pytest.mark.requirement("CP-1.3", "CP-7.5")
@pytest.mark.parametrize("method", [name for name in METHODS if name.startswith("requests.")])
@given(st.fixed_dictionaries({}, optional=MEMBERS))
def test_the_host_is_read_as_a_client_is(method: str, params: JSONObject) -> None:
    assert as_the_host(method, params) == as_a_client(method, params)
