"""A monitor is a connection like any other: one that does not read is dropped, and nobody else notices."""

from __future__ import annotations

import json

import pytest

from broker.daemon.connection import Terms
from broker.daemon.listener import Service
from handlers.control.routes import ROUTES
from handlers.events import Closed, Opened
from protocols.control.engine import ControlEngine
from tests.support.toy_dispatch import open_toy_dispatch
from tests.support.toy_session import Peer

CONTROL = Service(
    "control", lambda: ControlEngine(65_536), lambda peer: Terms(outbox_bytes=50_000), handshake=False
)
MONITOR = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "monitor"}).encode() + b"\n"
OTHERS = range(10_000, 12_500)
"""Connections that come and go: more than a buffer of the kernel and an outbox hold events of."""


async def listen(peer: Peer) -> None:
    await peer.stream.send_all(MONITOR)
    assert await peer.read() == {"jsonrpc": "2.0", "id": 1, "result": {}}


async def event_about(peer: Peer, number: int) -> str:
    """The state in the next event about this connection."""
    while True:
        params = (await peer.read() or {})["params"]
        if params["connection"] == number:
            return str(params["state"])


@pytest.mark.requirement("CP-4.5", "CP-4.7")
async def test_a_monitor_that_does_not_read_is_dropped_and_nobody_else_notices() -> None:
    async with (
        open_toy_dispatch(more=ROUTES) as toy,
        toy.connect() as client,
        toy.connect(CONTROL) as reader,
        toy.connect(CONTROL) as deaf,
    ):
        await listen(reader)
        await listen(deaf)
        deaf_number = max(toy.dispatch.connections)
        for number in OTHERS:
            toy.dispatch.submit(Opened(number, "toy", None))
            toy.dispatch.submit(Closed(number))
            assert await event_about(reader, number) == "opened"
            assert await event_about(reader, number) == "closed"
        assert deaf_number not in toy.dispatch.connections
        await client.stream.send_all(client.line("ask", 1))
        assert (await client.read() or {})["result"] == {"words": "1"}
        assert 0 < len(await deaf.rest()) < 2 * len(OTHERS)  # whole lines, then the end
        assert toy.logged.getvalue() == ""
