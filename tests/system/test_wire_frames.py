"""The frame limits, and garbage before and after authentication (wire.md, size and garbage)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.broker_process import APP, BrokerProcess
from tests.support.holder import hello_of
from tests.support.lines import Lines, call_of, line_of

HANDSHAKE_BYTES = 4_096
FRAME_BYTES = 65_536
LEASE_FRAME_BYTES = 8_192
HELLO = call_of("h", "session.hello", protocolVersions=["0.1"], client={"name": "test", "version": "1"})

pytestmark = pytest.mark.requirement("CP-5.7")


# -- companion and control -----------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_before_authentication_a_frame_has_4_kib(broker: BrokerProcess, ending: bytes) -> None:
    client = broker.connect("companion.sock")
    client.send(line_of(HELLO, HANDSHAKE_BYTES).removesuffix(b"\n") + ending)
    assert "result" in client.reply("h")
    client.send(line_of(call_of(1, "runtime.describe"), HANDSHAKE_BYTES + 1).removesuffix(b"\n") + ending)
    assert_too_long(client, HANDSHAKE_BYTES)


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_after_authentication_a_frame_has_64_kib(broker: BrokerProcess, ending: bytes) -> None:
    client = broker.agent("discover")
    assert client.call("runtime.describe")["limits"]["maxFrameBytes"] == FRAME_BYTES
    client.send(line_of(call_of("l", "runtime.describe"), FRAME_BYTES).removesuffix(b"\n") + ending)
    assert "result" in client.reply("l")
    client.send(line_of(call_of("m", "runtime.describe"), FRAME_BYTES + 1).removesuffix(b"\n") + ending)
    assert_too_long(client, FRAME_BYTES)


def test_the_larger_limit_holds_from_the_very_next_frame(broker: BrokerProcess) -> None:
    client_id, key = broker.pair("eager", ["discover"])
    client = broker.greet()
    authenticate = call_of("a", "session.authenticate", clientId=client_id, key=key)
    client.send(line_of(authenticate) + line_of(call_of("l", "runtime.describe"), FRAME_BYTES))
    assert "result" in client.reply("a")
    assert "result" in client.reply("l")


def test_the_control_socket_takes_64_kib_at_once(broker: BrokerProcess) -> None:
    control = broker.control()
    control.send(line_of(call_of("s", "status"), FRAME_BYTES))
    assert "result" in control.reply("s")
    control.send(line_of(call_of("t", "status"), FRAME_BYTES + 1))
    assert_too_long(control, FRAME_BYTES)


def test_a_line_without_end_is_refused_when_it_is_over_the_limit(broker: BrokerProcess) -> None:
    client = broker.greet()
    client.send(b"x" * HANDSHAKE_BYTES)
    assert client.nothing()
    client.send(b"xx")
    assert_too_long(client, HANDSHAKE_BYTES)


def test_what_came_before_a_line_that_is_too_long_is_answered(broker: BrokerProcess) -> None:
    client = broker.agent("discover")
    client.send(line_of(call_of("before", "runtime.describe")) + b"x" * (FRAME_BYTES + 1) + b"\n")
    client.reply("before")
    assert_too_long(client, FRAME_BYTES)


def test_blank_bytes_are_no_way_round_the_limit(broker: BrokerProcess) -> None:
    client = broker.greet()
    client.send(b" " * (HANDSHAKE_BYTES + 1) + b"\n")
    assert_too_long(client, HANDSHAKE_BYTES)


# -- lease ---------------------------------------------------------------------------------------------------


@pytest.mark.requirement("LP-5")
def test_a_lease_hello_has_4_kib(broker: BrokerProcess) -> None:
    ready = broker.connect("ai-protection.sock")
    ready.send(line_of(hello_of("frames", 0), HANDSHAKE_BYTES))
    assert ready.read()["limits"]["maxFrameBytes"] == LEASE_FRAME_BYTES
    refused = broker.connect("ai-protection.sock")
    refused.send(line_of(hello_of("frames", 0), HANDSHAKE_BYTES + 1))
    (error,) = refused.rest()
    assert (error["action"], error["code"]) == ("session.error", "invalid_handshake")
    assert str(HANDSHAKE_BYTES) in error["message"]


@pytest.mark.requirement("LP-6")
def test_a_lease_message_has_8_kib(broker: BrokerProcess) -> None:
    holder = broker.holder("frames")
    begin = {"action": "lease.begin", "requestId": "b", "holderId": "frames"} | {
        "appKey": APP,
        "leaseSeconds": 60,
    }
    holder.send(line_of(begin, LEASE_FRAME_BYTES))
    assert holder.read()["code"] == "accepted"
    holder.send(line_of({**begin, "requestId": "c"}, LEASE_FRAME_BYTES + 1))
    (error,) = holder.rest()
    assert (error["requestId"], error["code"]) == (None, "invalid_payload")
    assert str(LEASE_FRAME_BYTES) in error["message"]


# -- garbage -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"GET / HTTP/1.1\r\n", -32700),
        (b"\x16\x03\x01\x02\x00\n", -32700),
        (b'{"jsonrpc":"2.0","id":1,"id":1,"method":"session.hello"}\n', -32700),
        (b'"session.hello"\n', -32600),
        (b'{"id":1,"method":"session.hello"}\n', -32600),
    ],
)
@pytest.mark.parametrize("greeted", [False, True])
def test_garbage_before_authentication_ends_the_connection(
    broker: BrokerProcess, line: bytes, code: int, greeted: bool
) -> None:
    client = broker.greet() if greeted else broker.connect("companion.sock")
    client.send(line + line_of(HELLO))
    (error,) = client.rest()
    assert error["error"]["code"] == code
    assert error["error"]["data"]["code"] == "INVALID_PARAMS"


@pytest.mark.requirement("LP-5")
@pytest.mark.parametrize("line", [b"GET / HTTP/1.1\r\n", b"[]\n", b'{"action":"session.hello"}\n', b"{}\n"])
def test_garbage_before_ready_ends_the_lease_connection(broker: BrokerProcess, line: bytes) -> None:
    client = broker.connect("ai-protection.sock")
    client.send(line + line_of(hello_of("late", 0)))
    (error,) = client.rest()
    assert (error["action"], error["code"]) == ("session.error", "invalid_handshake")


@pytest.mark.requirement("G01")
@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"id":1,"method":"runtime.describe"}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"runtime.describe","x":NaN}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"runtime.describe","x":-Infinity}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"runtime.describe"} {}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"\xff"}\n',
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"runtime.describe"}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"runtime.describe","x":' + b"[" * 32 + b"]" * 32 + b"}\n",
        b"\x00\n",
    ],
)
def test_what_is_not_strict_json_is_a_parse_error_and_no_more(broker: BrokerProcess, line: bytes) -> None:
    client = broker.agent("discover")
    client.send(line)
    error = client.read()
    assert (error["id"], error["error"]["code"]) == (None, -32700)
    assert error["error"]["data"]["code"] == "INVALID_PARAMS"
    client.call("runtime.describe")


def test_32_levels_are_not_too_deep(broker: BrokerProcess) -> None:
    client = broker.agent("discover")
    nested = b"[" * 31 + b"]" * 31
    client.send(b'{"jsonrpc":"2.0","id":"deep","method":"runtime.describe","x":' + nested + b"}\n")
    assert "result" in client.reply("deep")


def assert_too_long(client: Lines, limit: int) -> None:
    (error,) = client.rest()
    assert (error["id"], error["error"]["code"]) == (None, -32600)
    data: dict[str, Any] = error["error"]["data"]
    assert (data["code"], data["limitBytes"]) == ("INVALID_PARAMS", limit)
