"""What one connection does or suffers is no other's business (wire.md, transport; G01, why)."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.support.broker_process import APP, SOCKETS, BrokerProcess
from tests.support.children import child, read_line
from tests.support.lines import Lines, call_of, line_of, until
from tests.support.questions import ask, withdraw

pytestmark = pytest.mark.requirement("G01")

HELLO = line_of(
    call_of(1, "session.hello", protocolVersions=["0.1"], client={"name": "rude", "version": "1"})
)
DIES = """
import os, socket, sys
sock = socket.socket(socket.AF_UNIX)
sock.connect(sys.argv[1])
sock.sendall(b'{"jsonrpc":"2.0","id":1,"met')
print("there", flush=True)
sys.stdin.read()
"""


def nothing(connection: Lines) -> None:
    """Connect and go."""


def half_a_line(connection: Lines) -> None:
    connection.send(HELLO[:20])


def unread_answers(connection: Lines) -> None:
    connection.send(HELLO + line_of(call_of(2, "runtime.describe")) * 20)


def too_long(connection: Lines) -> None:
    with suppress(OSError):
        connection.send(b"x" * 300_000)


def zeros(connection: Lines) -> None:
    with suppress(OSError):
        connection.send(b"\0\n" * 5_000)


def reset(connection: Lines) -> None:
    connection.send(HELLO)
    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def half_closed(connection: Lines) -> None:
    connection.send(HELLO)
    connection.half_close()


def deaf_and_half_closed(connection: Lines) -> None:
    connection.socket.shutdown(socket.SHUT_RD)
    with suppress(OSError):
        connection.send(HELLO)


RUDE: list[Callable[[Lines], None]] = [
    nothing,
    half_a_line,
    unread_answers,
    too_long,
    zeros,
    reset,
    half_closed,
    deaf_and_half_closed,
]


def test_however_rudely_some_leave_the_others_are_served(broker: BrokerProcess) -> None:
    client, holder, control = broker.agent("discover", "interact"), broker.holder("polite"), broker.control()
    _, snapshot = broker.show(client, ask(client))
    waiting = client.start(
        "requests.wait",
        requestId=snapshot["requestId"],
        afterRevision=snapshot["revision"],
        waitMs=60_000,
    )
    for _ in range(10):
        for behave in RUDE:
            for name in SOCKETS:
                with Lines.connect(broker.runtime / name) as connection:
                    behave(connection)
        client.call("runtime.describe")
        assert holder.begin(APP, 60)["code"] == "accepted"
        control.call("status")
    until(lambda: connections(broker) == {"companion": 1, "lease": 1, "control": 2, "presenter": 1})
    final = withdraw(client, snapshot)
    assert client.reply(waiting)["result"]["request"] == final
    assert client.nothing()


def test_a_client_that_is_killed_within_a_line_is_forgotten(broker: BrokerProcess) -> None:
    bystander = broker.agent("discover")
    command = (sys.executable, "-c", DIES, str(broker.runtime / "companion.sock"))
    with child(command, stderr=subprocess.DEVNULL) as client:
        assert read_line(client) == "there"
        assert connections(broker)["companion"] == 2
        client.kill()
        until(lambda: connections(broker)["companion"] == 1)
    bystander.call("runtime.describe")


def connections(broker: BrokerProcess) -> dict[str, int]:
    with broker.control() as control:
        counts: dict[str, int] = control.call("status")["connections"]
    return counts
