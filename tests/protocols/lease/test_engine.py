"""The serving engine alone: what it delivers, in which order it answers, when it stops.  Wire
conversations are in fixtures/conformance/lease; here are the things that a conversation cannot hold
still.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.errors import OurError
from protocols.lease.codes import Code, HandshakeCode
from protocols.lease.engine import MAX_UNANSWERED, LeaseEngine
from protocols.lease.messages import (
    Begin,
    CanCloseRequest,
    Hello,
    Ready,
    ReadyLimits,
    Response,
    SessionError,
)
from protocols.session import (
    Charge,
    Close,
    Deliver,
    Fault,
    NotSaved,
    Output,
    RateLimited,
    Refusal,
    Send,
    Stopping,
)

HELLO = {"action": "session.hello", "protocolVersion": 1, "holderId": "agent", "clientName": "A", "pid": 1}
READY = Ready(
    holder_id="agent",
    limits=ReadyLimits(
        min_lease_seconds=60,
        max_lease_seconds=1800,
        grace_seconds=60,
        close_check_timeout_seconds=3,
        close_check_cooldown_seconds=15,
        max_frame_bytes=8192,
        max_leases_per_holder=64,
        max_holders=1024,
        max_connections_per_holder=8,
        messages_per_second=200,
    ),
)


def line(message: Mapping[str, object]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def begin(request_id: str) -> bytes:
    members = {"requestId": request_id, "holderId": "agent", "appKey": "app", "leaseSeconds": 60}
    return line({"action": "lease.begin", **members})


def outputs(engine: LeaseEngine) -> list[Output]:
    found = []
    while (output := engine.next_output()) is not None:
        found.append(output)
    return found


def sent(found: list[Output]) -> list[Any]:
    return [json.loads(output.data) for output in found if isinstance(output, Send)]


def delivered(found: list[Output]) -> list[Deliver]:
    return [output for output in found if isinstance(output, Deliver)]


def ready_engine() -> LeaseEngine:
    engine = LeaseEngine()
    engine.receive(line(HELLO))
    (hello,) = delivered(outputs(engine))
    engine.reply(hello.number, READY)
    outputs(engine)
    return engine


def response(request_id: str) -> Response:
    return Response(request_id=request_id, code=Code.ACCEPTED)


@pytest.mark.requirement("LP-2", "LP-3")
def test_nothing_behind_a_hello_is_looked_at_before_its_answer() -> None:
    engine = LeaseEngine()
    engine.receive(line(HELLO) + begin("r1"))
    (hello,) = delivered(outputs(engine))
    assert isinstance(hello.message, Hello)
    assert hello.charge is Charge.FREE
    assert not engine.authenticated
    engine.reply(hello.number, READY)
    assert engine.authenticated
    found = outputs(engine)
    assert sent(found)[0]["action"] == "session.ready"
    assert [type(one.message) for one in delivered(found)] == [Begin]


def test_ready_raises_the_frame_limit() -> None:
    engine = LeaseEngine(max_frame_bytes=6000)
    assert engine.limit == 4096
    engine.receive(line(HELLO))
    engine.reply(delivered(outputs(engine))[0].number, READY)
    assert engine.limit == 6000


@pytest.mark.requirement("LP-5")
def test_a_refused_hello_ends_the_connection() -> None:
    engine = LeaseEngine()
    engine.receive(line(HELLO) + begin("r1"))
    error = SessionError(code=HandshakeCode.HOLDER_ID_MISMATCH, message="no")
    engine.reply(delivered(outputs(engine))[0].number, error)
    found = outputs(engine)
    assert sent(found) == [{"action": "session.error", "code": "holder_id_mismatch", "message": "no"}]
    assert found[-1] == Close()


@pytest.mark.requirement("LP-5")
@pytest.mark.parametrize("refusal", [NotSaved(), Stopping(), Fault(), RateLimited(5, "callsPerSecond")])
def test_a_hello_that_the_broker_cannot_serve_is_no_handshake(refusal: Refusal) -> None:
    engine = LeaseEngine()
    engine.receive(line(HELLO))
    engine.reply(delivered(outputs(engine))[0].number, refusal)
    found = outputs(engine)
    assert [one["code"] for one in sent(found)] == ["invalid_handshake"]
    assert found[-1] == Close()


def test_the_handshake_time_counts_until_ready_only() -> None:
    engine = ready_engine()
    engine.handshake_timeout()
    assert outputs(engine) == []


@pytest.mark.requirement("LP-5")
def test_a_hello_that_is_answered_too_late_is_answered_once() -> None:
    engine = LeaseEngine()
    engine.receive(line(HELLO))
    (hello,) = delivered(outputs(engine))
    engine.handshake_timeout()
    engine.reply(hello.number, READY)
    assert [one["action"] for one in sent(outputs(engine))] == ["session.error"]
    assert not engine.authenticated


@pytest.mark.requirement("LP-5")
def test_a_full_broker_turns_the_peer_away_by_name() -> None:
    engine = LeaseEngine()
    engine.turn_away("maxConnectionsTotal")
    found = outputs(engine)
    assert "maxConnectionsTotal" in sent(found)[0]["message"]
    assert found[-1] == Close()


@pytest.mark.requirement("LP-4")
def test_an_answer_waits_for_those_before_it() -> None:
    engine = ready_engine()
    engine.receive(begin("r1") + b"garbage\n" + begin("r2"))
    first, second = delivered(outputs(engine))
    engine.reply(second.number, response("r2"))
    assert outputs(engine) == []
    assert engine.outstanding == 1
    engine.reply(first.number, response("r1"))
    assert [one["requestId"] for one in sent(outputs(engine))] == ["r1", None, "r2"]
    assert engine.outstanding == 0


def test_a_push_does_not_queue() -> None:
    engine = ready_engine()
    engine.receive(begin("r1"))
    outputs(engine)
    engine.push(CanCloseRequest(request_id="c1", holder_id="agent", app_key="app", timeout_seconds=3))
    assert [one["action"] for one in sent(outputs(engine))] == ["lease.can_close.request"]
    with pytest.raises(OurError):
        engine.push("anything else")


@pytest.mark.requirement("LP-6")
@pytest.mark.parametrize(
    ("refusal", "says"),
    [
        (NotSaved(), "nothing was changed"),
        (RateLimited(250, "callsPerSecond"), "messagesPerSecond"),
        (Stopping(), "stopping"),
    ],
)
def test_a_refusal_of_the_broker_is_not_entitled_under_the_own_id(refusal: Refusal, says: str) -> None:
    engine = ready_engine()
    engine.receive(begin("r1"))
    engine.reply(delivered(outputs(engine))[0].number, refusal)
    (answer,) = sent(outputs(engine))
    assert (answer["requestId"], answer["code"]) == ("r1", "not_entitled")
    assert says in answer["message"]


def test_a_fault_ends_this_connection() -> None:
    engine = ready_engine()
    engine.receive(begin("r1") + begin("r2"))
    first, _ = delivered(outputs(engine))
    engine.reply(first.number, Fault())
    found = outputs(engine)
    assert [one["requestId"] for one in sent(found)] == ["r1"]
    assert found[-1] == Close()


def test_a_message_is_answered_once() -> None:
    engine = ready_engine()
    engine.receive(begin("r1"))
    (call,) = delivered(outputs(engine))
    engine.reply(call.number, response("r1"))
    engine.reply(call.number, response("r1"))
    assert len(sent(outputs(engine))) == 1


def test_a_peer_that_is_not_answered_is_not_read_without_end() -> None:
    engine = ready_engine()
    engine.receive(begin("r1") + b"x\n" * 1000)
    found = outputs(engine)
    assert engine.paused
    engine.reply(delivered(found)[0].number, response("r1"))
    assert len(sent(outputs(engine))) == 1001
    assert not engine.paused
    assert MAX_UNANSWERED < 1000


def test_a_second_hello_waits_for_the_answers_before_it() -> None:
    engine = ready_engine()
    engine.receive(begin("r1") + line(HELLO) + begin("r2"))
    (call,) = delivered(outputs(engine))
    assert engine.paused
    engine.reply(call.number, response("r1"))
    found = outputs(engine)
    assert [one["action"] for one in sent(found)] == ["lease.response", "session.error"]
    assert found[-1] == Close()


@given(data=st.binary(max_size=200), cut=st.integers(0, 200))
def test_no_bytes_raise_and_every_line_is_answered_or_delivered(data: bytes, cut: int) -> None:
    engine = ready_engine()
    engine.receive(data[:cut])
    found = outputs(engine)
    engine.receive(data[cut:])
    engine.end_of_stream()
    found += outputs(engine)
    lines = [one for one in data.split(b"\n") if one.strip(b" \t\r")]
    assert len(sent(found)) + len(delivered(found)) == len(lines)
