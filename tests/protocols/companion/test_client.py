"""The client's side of a session, held against the broker's engine: what one writes the other reads."""

from __future__ import annotations

import pytest

from protocols.companion.client import CompanionClient, Credential, Ready, TurnedAway
from protocols.companion.engine import CompanionEngine
from protocols.companion.messages import (
    Authenticate,
    AuthenticateResult,
    GetRequest,
    Hello,
    HelloResult,
    Implementation,
    WaitRequest,
)
from protocols.errors import FrameTooLong, TheirError
from protocols.jsonrpc_client import Answer, Failure
from protocols.refusal import ErrorCode, Refused
from protocols.session import Deliver, Send
from tests.support.snapshots import snapshot

PROGRAM = Implementation(name="test", version="1")
CREDENTIAL = Credential("c1", "k" * 43)
HELLO = HelloResult(
    protocol_version="0.1", runtime_instance_id="r1", implementation=PROGRAM, access_enabled=True
)
IDENTITY = AuthenticateResult(client_id="c1", label="Test", scopes=("discover",))


class Conversation:
    """A client and an engine with a wire between them; answers come from `replies`, by the class of the message."""

    def __init__(self, client: CompanionClient) -> None:
        self.client = client
        self.engine = CompanionEngine()
        self.replies: dict[type, object] = {Hello: HELLO, Authenticate: IDENTITY}
        self.delivered: list[Deliver] = []

    def run(self) -> list[object]:
        """Move bytes until both sides are quiet; returns the client's events."""
        events: list[object] = []
        while data := self.client.take_output():
            self.engine.receive(data)
            self.drain()
            while (event := self.client.next_event()) is not None:
                events.append(event)
        return events

    def drain(self) -> None:
        while (output := self.engine.next_output()) is not None:
            if isinstance(output, Send):
                self.client.receive(output.data)
            elif isinstance(output, Deliver):
                self.delivered.append(output)
                if (reply := self.replies.get(type(output.message))) is not None:
                    self.engine.reply(output.number, reply)


def test_the_client_says_hello_and_authenticates_by_itself() -> None:
    conversation = Conversation(CompanionClient(PROGRAM, CREDENTIAL))
    assert conversation.run() == [Ready(HELLO, IDENTITY)]
    assert conversation.engine.authenticated


def test_without_a_credential_the_session_is_ready_after_hello_and_can_be_taken_on_later() -> None:
    conversation = Conversation(CompanionClient(PROGRAM))
    assert conversation.run() == [Ready(HELLO, None)]
    conversation.client.authenticate(CREDENTIAL)
    assert conversation.run() == [Ready(HELLO, IDENTITY)]


@pytest.mark.parametrize("refused", [Hello, Authenticate])
def test_a_refused_handshake_is_told_with_its_code(refused: type) -> None:
    conversation = Conversation(CompanionClient(PROGRAM, CREDENTIAL))
    conversation.replies[refused] = Refused(ErrorCode.UNAUTHENTICATED, "no", {"reason": "test"})
    [event] = conversation.run()
    assert isinstance(event, TurnedAway)
    assert (event.error.code, event.error.retryable) == ("UNAUTHENTICATED", False)
    assert event.error.details == {"reason": "test"}


def test_a_timeout_of_the_handshake_turns_the_client_away() -> None:
    conversation = Conversation(CompanionClient(PROGRAM, CREDENTIAL))
    conversation.engine.handshake_timeout()
    conversation.drain()
    event = conversation.client.next_event()
    assert isinstance(event, TurnedAway)
    assert event.error.details == {"reason": "timeout"}


def test_an_error_about_the_connection_after_the_handshake_is_a_failure_of_no_call() -> None:
    conversation = Conversation(CompanionClient(PROGRAM, CREDENTIAL))
    conversation.run()
    conversation.engine.fail(Refused(ErrorCode.UNAUTHENTICATED, "revoked"))
    conversation.drain()
    event = conversation.client.next_event()
    assert isinstance(event, Failure)
    assert (event.number, event.error.code) == (None, "UNAUTHENTICATED")


def test_answers_are_matched_in_whatever_order_they_come() -> None:
    conversation = Conversation(CompanionClient(PROGRAM, CREDENTIAL))
    conversation.run()
    waiting = conversation.client.call(
        "requests.wait", WaitRequest(request_id="r1", after_revision=1, wait_ms=1)
    )
    getting = conversation.client.call("requests.get", GetRequest(request_id="r2"))
    conversation.replies[GetRequest] = snapshot("r2")
    [event] = conversation.run()
    assert isinstance(event, Answer)
    assert (event.number, event.result) == (getting, snapshot("r2"))
    assert conversation.client.waiting == 1
    conversation.engine.reply(conversation.delivered[-2].number, Refused(ErrorCode.NOT_FOUND, "no"))
    conversation.drain()
    event = conversation.client.next_event()
    assert isinstance(event, Failure)
    assert (event.number, event.error.code) == (waiting, "NOT_FOUND")
    assert conversation.client.waiting == 0


@pytest.mark.requirement("CP-7.6")
def test_members_of_a_newer_server_are_ignored_and_kept_in_the_raw_result() -> None:
    client = CompanionClient(PROGRAM)
    client.receive(
        b'{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"0.1","runtimeInstanceId":"r1","new":[1],'
        b'"implementation":{"name":"test","version":"1","more":{}},"accessEnabled":true}}\n'
    )
    assert client.next_event() == Ready(HELLO, None)


def test_a_server_that_chose_another_version_is_left() -> None:
    client = CompanionClient(PROGRAM, CREDENTIAL)
    client.receive(
        b'{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"0.2","runtimeInstanceId":"r1",'
        b'"implementation":{"name":"test","version":"1"},"accessEnabled":true}}\n'
    )
    client.take_output()
    assert isinstance(client.next_event(), TurnedAway)
    assert client.take_output() == b""


@pytest.mark.parametrize(
    "line",
    [
        b"not json",
        b'{"jsonrpc":"2.0","id":99,"result":{}}',
        b'{"jsonrpc":"2.0","id":"1","result":{}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}',
    ],
)
def test_a_server_that_breaks_the_rules_is_an_error_of_theirs(line: bytes) -> None:
    client = CompanionClient(PROGRAM)
    client.receive(line + b"\n")
    with pytest.raises(TheirError):
        client.next_event()


def test_a_call_that_the_server_would_not_take_is_not_sent() -> None:
    conversation = Conversation(CompanionClient(PROGRAM))
    conversation.run()
    with pytest.raises(FrameTooLong) as error:
        conversation.client.authenticate(Credential("c", "k" * 5_000))
    assert error.value.limit_bytes == 4_096
    assert conversation.client.take_output() == b""
    assert conversation.client.waiting == 0


@pytest.mark.requirement("CP-5.5")
def test_the_key_is_in_no_repr() -> None:
    assert CREDENTIAL.key not in repr(CREDENTIAL)
