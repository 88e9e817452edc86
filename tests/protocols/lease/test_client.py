"""The holder's engine talks to the server's: what one writes the other reads."""

from __future__ import annotations

import pytest

from protocols.errors import FrameTooLong, InvalidValue, ParseError
from protocols.lease.client import LeaseClient
from protocols.lease.engine import LeaseEngine
from protocols.lease.messages import (
    Begin,
    CanCloseReply,
    CanCloseRequest,
    End,
    Hello,
    Renew,
    Response,
    SessionError,
    encode_message,
)
from protocols.session import Deliver
from tests.support.lease_world import EDITOR, LeaseWorld

REQUEST = CanCloseRequest(request_id="close_1", holder_id="agent", app_key=EDITOR, timeout_seconds=3)


@pytest.mark.requirement("LP-2", "LP-4", "LP-10")
def test_the_server_reads_what_the_client_writes() -> None:
    client = LeaseClient("agent")
    world = LeaseWorld()
    peer = world.connect("lease")
    peer.send(client.hello("Test Agent", 0))
    peer.send(
        client.begin("r1", EDITOR, 60)
        + client.renew("r2", EDITOR, 90)
        + client.end("r3", EDITOR)
        + client.allow(REQUEST)
        + client.extend(REQUEST, 60)
    )
    for one in peer.lines:
        client.receive(one + b"\n")
    ready = client.next_message()
    assert ready is not None
    assert ready is client.ready
    codes = []
    while (message := client.next_message()) is not None:
        assert isinstance(message, Response)
        codes.append((message.request_id, message.code.value))
    assert codes == [
        ("r1", "accepted"),
        ("r2", "accepted"),
        ("r3", "accepted"),
        ("close_1", "request_expired"),
        ("close_1", "request_expired"),
    ]


def test_each_call_writes_its_message() -> None:
    client = LeaseClient("agent")
    engine = LeaseEngine()
    engine.authenticated = True
    engine.receive(
        client.begin("r1", EDITOR, 60)
        + client.renew("r2", EDITOR, 60)
        + client.end("r3", EDITOR)
        + client.extend(REQUEST, 60)
    )
    kinds = []
    while isinstance(output := engine.next_output(), Deliver):
        kinds.append(type(output.message))
    assert kinds == [Begin, Renew, End, CanCloseReply]
    engine = LeaseEngine()
    engine.receive(client.hello("Test Agent", 7))
    output = engine.next_output()
    assert isinstance(output, Deliver)
    assert output.message == Hello(protocol_version=1, holder_id="agent", client_name="Test Agent", pid=7)


def test_messages_come_in_any_fragmentation() -> None:
    client = LeaseClient("agent")
    for byte in encode_message(REQUEST) + b"\n":
        assert client.next_message() is None
        client.receive(bytes([byte]))
    assert client.next_message() == REQUEST


def test_actions_and_members_of_a_later_version_are_ignored() -> None:
    client = LeaseClient("agent")
    client.receive(b'{"action":"lease.later"}\n{"later":1}\n')
    client.receive(b'{"action":"session.error","code":"unauthenticated","message":"no","later":1}\n')
    assert isinstance(client.next_message(), SessionError)
    assert client.next_message() is None


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b"not json\n", ParseError),
        (b"[]\n", InvalidValue),
        (b'{"action":"session.error","code":"new","message":"x"}\n', InvalidValue),
        (b'{"action":"session.error","code":"unauthenticated","message":"\\ud800"}\n', InvalidValue),
        (b"x" * 8193, FrameTooLong),
    ],
)
def test_what_no_server_sends_raises(line: bytes, error: type[Exception]) -> None:
    client = LeaseClient("agent")
    client.receive(line)
    with pytest.raises(error):
        client.next_message()


def test_the_last_line_may_lack_its_end() -> None:
    client = LeaseClient("agent")
    client.receive(encode_message(REQUEST))
    client.end_of_stream()
    assert client.next_message() == REQUEST
