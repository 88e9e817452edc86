"""The order of a companion session, on the wire (companion.md, Session; wire.md, size and garbage)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from protocols.companion import pairing
from protocols.companion.engine import HANDSHAKE_FRAME_BYTES, CompanionEngine
from protocols.companion.messages import (
    Authenticate,
    AuthenticateResult,
    DescribeRuntime,
    GetRequest,
    Hello,
    HelloResult,
    Implementation,
)
from protocols.refusal import ErrorCode, Refused
from protocols.session import Charge, Close, Deliver, Send

PROGRAM = {"name": "test", "version": "1"}
HELLO = {"protocolVersions": ["0.1"], "client": PROGRAM}
KEY = {"clientId": "c1", "key": "k" * 43}


def call(method: str, params: dict[str, Any] | None = None, id: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}


class Peer:
    """A client at the other end of an engine; `session`, `pairing` and describe calls are answered with success."""

    def __init__(self) -> None:
        self.engine = CompanionEngine()
        self.closed = False
        self.delivered: list[Deliver] = []

    def say(self, *frames: dict[str, Any] | list[Any] | bytes) -> list[Any]:
        """Send frames in one write; returns the replies."""
        for frame in frames:
            data = frame if isinstance(frame, bytes) else json.dumps(frame).encode()
            self.engine.receive(data + b"\n")
        return self.run()

    def run(self) -> list[Any]:
        replies: list[Any] = []
        while (output := self.engine.next_output()) is not None:
            if isinstance(output, Send):
                replies += [json.loads(line) for line in output.data.splitlines()]
            elif isinstance(output, Close):
                self.closed = True
            else:
                self.delivered.append(output)
                if (answer := self.answer(output.message)) is not None:
                    self.engine.reply(output.number, answer)
        return replies

    def answer(self, message: object) -> object | None:
        if isinstance(message, Hello):
            version = Implementation(name="broker", version="1")
            return HelloResult(
                protocol_version="0.1", runtime_instance_id="r1", implementation=version, access_enabled=True
            )
        if isinstance(message, Authenticate):
            return AuthenticateResult(client_id=message.client_id, label="Test", scopes=("discover",))
        return None

    @property
    def messages(self) -> list[object]:
        return [deliver.message for deliver in self.delivered]


@pytest.fixture
def peer() -> Peer:
    return Peer()


@pytest.fixture
def greeted(peer: Peer) -> Peer:
    peer.say(call("session.hello", HELLO))
    return peer


@pytest.fixture
def authenticated(greeted: Peer) -> Peer:
    greeted.say(call("session.authenticate", KEY))
    return greeted


def data_of(reply: Any) -> Any:
    return reply["error"]["data"]


@pytest.mark.requirement("CP-7.1")
@pytest.mark.parametrize("method", ["session.authenticate", "runtime.describe", "requests.get", "no.such"])
def test_anything_before_hello_is_refused_and_closes(peer: Peer, method: str) -> None:
    [reply] = peer.say(call(method))
    assert reply["error"]["code"] == -32602
    assert data_of(reply)["code"] == "INVALID_PARAMS"
    assert data_of(reply)["reason"] == "hello missing"
    assert peer.closed


def test_a_second_hello_is_refused_and_closes(greeted: Peer) -> None:
    [reply] = greeted.say(call("session.hello", HELLO))
    assert data_of(reply)["reason"] == "hello repeated"
    assert greeted.closed


def test_a_hello_that_the_handler_refuses_leaves_the_session_before_hello(peer: Peer) -> None:
    peer.answer = lambda message: Refused(ErrorCode.INVALID_PARAMS, "no", closes=True)  # type: ignore[method-assign]
    peer.say(call("session.hello", HELLO))
    assert peer.closed


@pytest.mark.requirement("CP-5.7")
@pytest.mark.parametrize(
    "method", ["requests.create", "requests.get", "requests.wait", "requests.cancel", "x"]
)
def test_a_business_call_before_authentication_is_refused_and_closes(greeted: Peer, method: str) -> None:
    [reply] = greeted.say(call(method))
    assert data_of(reply)["code"] == "UNAUTHENTICATED"
    assert greeted.closed
    assert len(greeted.delivered) == 1  # hello


def test_the_error_of_a_refused_batch_comes_before_the_close(greeted: Peer) -> None:
    [[reply]] = greeted.say([call("requests.get", {"requestId": "r"})])
    assert data_of(reply)["code"] == "UNAUTHENTICATED"
    assert greeted.closed


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        ("runtime.describe", {}, DescribeRuntime),
        ("pairing.request", {"clientName": "n", "scopes": ["discover"]}, pairing.PairingRequest),
        ("pairing.wait", {"pairingId": "p", "waitMs": 0}, pairing.PairingWait),
        ("pairing.cancel", {"pairingId": "p"}, pairing.PairingCancel),
    ],
)
def test_description_and_pairing_need_no_authentication(
    greeted: Peer, method: str, params: dict[str, Any], message: type
) -> None:
    assert greeted.say(call(method, params)) == []
    assert isinstance(greeted.messages[-1], message)
    assert not greeted.closed


def test_after_authentication_business_calls_are_delivered(authenticated: Peer) -> None:
    authenticated.say(call("requests.get", {"requestId": "r1"}))
    assert authenticated.messages[-1] == GetRequest(request_id="r1")
    assert authenticated.engine.authenticated


def test_a_second_authenticate_is_refused_and_the_session_stays(authenticated: Peer) -> None:
    [reply] = authenticated.say(call("session.authenticate", KEY))
    assert data_of(reply)["code"] == "INVALID_PARAMS"
    assert not authenticated.closed
    authenticated.say(call("requests.get", {"requestId": "r1"}))
    assert authenticated.messages[-1] == GetRequest(request_id="r1")


def test_a_refused_key_leaves_the_session_unauthenticated(greeted: Peer) -> None:
    greeted.answer = lambda message: Refused(ErrorCode.UNAUTHENTICATED, "no")  # type: ignore[method-assign]
    [reply] = greeted.say(call("session.authenticate", KEY))
    assert data_of(reply)["code"] == "UNAUTHENTICATED"
    assert not greeted.closed
    assert not greeted.engine.authenticated


@pytest.mark.requirement("CP-5.7")
def test_a_frame_before_authentication_may_have_4096_bytes(greeted: Peer) -> None:
    padded = json.dumps(call("runtime.describe")).encode()
    assert greeted.say(padded + b" " * (HANDSHAKE_FRAME_BYTES - len(padded))) == []
    assert isinstance(greeted.messages[-1], DescribeRuntime)
    [reply] = greeted.say(padded + b" " * (HANDSHAKE_FRAME_BYTES + 1 - len(padded)))
    assert reply["id"] is None
    assert data_of(reply)["limitBytes"] == HANDSHAKE_FRAME_BYTES
    assert greeted.closed


@pytest.mark.requirement("G03")
def test_a_frame_after_authentication_may_have_65536_bytes(authenticated: Peer) -> None:
    padded = json.dumps(call("runtime.describe")).encode()
    assert authenticated.say(padded + b" " * (65_536 - len(padded))) == []
    [reply] = authenticated.say(padded + b" " * (65_537 - len(padded)))
    assert reply["error"]["code"] == -32600
    assert data_of(reply)["limitBytes"] == 65_536
    assert authenticated.closed


def test_a_long_frame_written_together_with_the_handshake_is_read_under_the_new_limit(peer: Peer) -> None:
    long = json.dumps(call("requests.get", {"requestId": "r1"})).encode() + b" " * 10_000
    peer.say(call("session.hello", HELLO), call("session.authenticate", KEY), long)
    assert peer.messages[-1] == GetRequest(request_id="r1")


@pytest.mark.requirement("G01")
def test_garbage_after_authentication_costs_one_error_a_line(authenticated: Peer) -> None:
    replies = authenticated.say(
        b'{"jsonrpc":"2.0","method":"runtime.describe","params":', b"not json at all", call("no.such", id=0)
    )
    assert [(reply["id"], reply["error"]["code"]) for reply in replies] == [
        (None, -32700),
        (None, -32700),
        (0, -32601),
    ]
    assert not authenticated.closed


@pytest.mark.parametrize("garbage", [b"nonsense", b"[]", b"7", b'{"jsonrpc":"2.0","id":1}', b"[1]"])
def test_garbage_before_authentication_costs_the_connection(greeted: Peer, garbage: bytes) -> None:
    assert len(greeted.say(garbage, call("runtime.describe"))) == 1
    assert greeted.closed
    assert len(greeted.delivered) == 1  # hello


@pytest.mark.requirement("G07")
def test_half_an_emoji_is_refused_under_the_calls_own_id(authenticated: Peer) -> None:
    replies = authenticated.say(
        b'{"jsonrpc":"2.0","id":1,"method":"requests.create","params":{"capability":"notice.show","\\ud800":1,'
        b'"params":{"text":"hi"},"timeoutMs":60000}}',
        b'{"jsonrpc":"2.0","id":2,"method":"requests.create","params":{"capability":"notice.show",'
        b'"params":{"text":"hi \\ud83d"},"timeoutMs":60000}}',
        b'{"jsonrpc":"2.0","id":3,"method":"no.such.\\udc00"}',
    )
    assert [reply["id"] for reply in replies] == [1, 2, 3]
    assert {data_of(reply)["code"] for reply in replies} == {"INVALID_PARAMS"}


@pytest.mark.parametrize("method", ["session.hello", "requests.wait", "pairing.request", "pairing.wait"])
def test_session_pairing_and_wait_calls_cannot_be_part_of_a_batch(authenticated: Peer, method: str) -> None:
    [[reply]] = authenticated.say([call(method, id="b")])
    assert (reply["id"], reply["error"]["code"]) == ("b", -32600)


def test_waits_are_charged_to_the_waits_and_cancel_to_nothing(authenticated: Peer) -> None:
    authenticated.say(
        call("requests.wait", {"requestId": "r", "afterRevision": 1, "waitMs": 5}),
        call("requests.cancel", {"requestId": "r"}),
        call("requests.get", {"requestId": "r"}),
    )
    charges = [deliver.charge for deliver in authenticated.delivered[-3:]]
    assert charges == [Charge.WAIT, Charge.FREE, Charge.CALL]


def test_calls_without_id_have_no_effect(authenticated: Peer) -> None:
    before = len(authenticated.delivered)
    cancel = {"jsonrpc": "2.0", "method": "requests.cancel", "params": {"requestId": "r"}}
    assert authenticated.say(cancel, [cancel]) == []
    assert len(authenticated.delivered) == before


def test_not_authenticated_in_time_is_one_error_and_close(greeted: Peer) -> None:
    greeted.engine.handshake_timeout()
    [reply] = greeted.run()
    assert (reply["id"], data_of(reply)["code"], data_of(reply)["reason"]) == (
        None,
        "UNAUTHENTICATED",
        "timeout",
    )
    assert greeted.closed


def test_an_accepted_pairing_suspends_the_handshake_until_it_has_ended(greeted: Peer) -> None:
    greeted.say(call("pairing.request", {"clientName": "n", "scopes": ["discover"]}))
    assert not greeted.engine.handshake_suspended
    retention = pairing.RetentionNotice(hours=24, tombstone_days=7)
    accepted = pairing.PairingRequested(
        pairing_id="p", verification_code="000000", expires_at="2026-01-01T00:00:00.000Z", retention=retention
    )
    greeted.engine.reply(greeted.delivered[-1].number, accepted)
    assert greeted.engine.handshake_suspended
    greeted.run()
    greeted.engine.push(pairing.PairingEnded())
    assert not greeted.engine.handshake_suspended
    assert greeted.run() == []


def test_a_refused_pairing_suspends_nothing(greeted: Peer) -> None:
    greeted.say(call("pairing.request", {"clientName": "n", "scopes": ["discover"]}))
    greeted.engine.reply(greeted.delivered[-1].number, Refused(ErrorCode.RATE_LIMITED, "no"))
    assert not greeted.engine.handshake_suspended


def test_the_handshake_stands_still_while_the_broker_holds_the_answer_back(greeted: Peer) -> None:
    greeted.answer = lambda message: None  # type: ignore[method-assign]
    greeted.say(call("runtime.describe"), call("session.authenticate", KEY))
    describe, authenticate = greeted.delivered[-2:]
    greeted.engine.reply(describe.number, Refused(ErrorCode.INTERNAL_ERROR, "no"))
    assert greeted.engine.handshake_suspended
    greeted.engine.reply(authenticate.number, Refused(ErrorCode.UNAUTHENTICATED, "no"))
    assert not greeted.engine.handshake_suspended


def test_the_key_is_in_no_repr(greeted: Peer) -> None:
    greeted.say(call("session.authenticate", KEY))
    assert KEY["key"] not in repr(greeted.delivered)
