"""The words of the protocol are the documented ones, and every legal message fits its frame."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from protocols.lease.codes import Code, HandshakeCode
from protocols.lease.engine import HELLO_LIMIT
from protocols.lease.messages import (
    BUSINESS_ACTIONS,
    HELLO,
    SERVER_ACTIONS,
    Begin,
    CanCloseReply,
    CanCloseRequest,
    Hello,
    Response,
    encode_message,
    message_schema,
)
from protocols.strict_json import decode
from protocols.structure import structure

WIDE = "\N{FIRE}" * 128


@pytest.mark.requirement("LP-4", "LP-11")
def test_actions_are_the_documented_ones() -> None:
    assert set(BUSINESS_ACTIONS) == {"lease.begin", "lease.renew", "lease.end", "lease.can_close.reply"}
    assert set(SERVER_ACTIONS) | {HELLO} == {
        "session.hello",
        "session.ready",
        "session.error",
        "lease.response",
        "lease.can_close.request",
    }


@pytest.mark.requirement("LP-5", "LP-6", "LP-11")
def test_codes_are_the_documented_ones() -> None:
    assert {code.value for code in HandshakeCode} == {
        "invalid_handshake",
        "unsupported_protocol_version",
        "holder_id_mismatch",
        "unauthenticated",
    }
    assert {code.value for code in Code} == {
        "accepted",
        "invalid_payload",
        "unknown_action",
        "unknown_app",
        "not_entitled",
        "holder_mismatch",
        "request_expired",
        "lease_conflict",
    }


@pytest.mark.requirement("LP-2", "LP-4", "LP-10")
@pytest.mark.parametrize(
    ("kind", "line"),
    [
        (
            Hello,
            '{"action":"session.hello","protocolVersion":1,"holderId":"agent.local.test",'
            '"clientName":"Test Agent","pid":42}',
        ),
        (
            Begin,
            '{"action":"lease.begin","requestId":"req_123","holderId":"agent.local.test",'
            '"appKey":"com.google.Chrome","leaseSeconds":600}',
        ),
        (
            CanCloseReply,
            '{"action":"lease.can_close.reply","requestId":"close_777","holderId":"agent.local.test",'
            '"appKey":"com.google.Chrome","result":"extend_lease","leaseSeconds":300}',
        ),
    ],
)
def test_documented_examples_read_and_write_as_they_stand(kind: type, line: str) -> None:
    message: Any = structure(kind, decode(line.encode()).value, unknown="ignore")
    assert encode_message(message).decode() == line


def test_a_schema_takes_what_is_written_and_names_the_action() -> None:
    request = CanCloseRequest(request_id="close_1", holder_id="agent", app_key="app", timeout_seconds=3)
    schema = message_schema(CanCloseRequest)
    jsonschema.validate(json.loads(encode_message(request)), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"action": "lease.begin", "requestId": "close_1"}, schema)


def test_the_longest_hello_fits_its_frame_even_with_every_character_escaped() -> None:
    hello = Hello(protocol_version=1, holder_id=WIDE, client_name=WIDE, pid=2**63 - 1)
    assert len(json.dumps(json.loads(encode_message(hello)))) <= HELLO_LIMIT


def test_the_longest_messages_fit_their_frame_even_with_every_character_escaped() -> None:
    begin = Begin(request_id=WIDE, holder_id=WIDE, app_key=WIDE, lease_seconds=1800)
    response = Response(
        request_id=WIDE,
        code=Code.ACCEPTED,
        holder_id=WIDE,
        app_key=WIDE,
        lease_seconds=1800,
        expires_at="2027-01-15T08:00:00.000Z",
        grace_ends_at="2027-01-15T08:00:00.000Z",
    )
    assert len(json.dumps(json.loads(encode_message(begin)))) <= 8192
    assert len(json.dumps(json.loads(encode_message(response)))) <= 8192
