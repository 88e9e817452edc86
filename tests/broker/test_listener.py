"""The door: who comes in, who waits, who is turned away, and what cannot stop the listener."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import attrs
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.daemon.connection import Terms
from broker.daemon.listener import MAX_IN_HANDSHAKE, Service
from broker.daemon.peer import Peer as KernelPeer
from tests.support.toy_dispatch import SECRET, TOY, ToyDispatch, open_toy_dispatch
from tests.support.toy_session import PATIENCE_SECONDS, Peer, ToyEngine

SLOW = attrs.evolve(TOY, engine=lambda: ToyEngine(authenticated=False))


@pytest.fixture
def place(short_path: Path) -> Iterator[socket.socket]:
    """A listening socket."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.setblocking(False)
        sock.bind(str(short_path / "toy.sock"))
        sock.listen(1024)
        yield sock


def call_at(place: socket.socket) -> Peer:
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(place.getsockname())
    return Peer(sock)


async def is_served(peer: Peer) -> bool:
    await peer.send("ask")
    return "result" in (await peer.read() or {})


@pytest.mark.requirement("CP-4.5")
async def test_at_most_64_are_in_the_handshake_and_the_next_come_in_when_one_leaves(
    place: socket.socket, autojump_clock: MockClock
) -> None:
    async with open_toy_dispatch() as toy, AsyncExitStack() as peers:
        toy.dispatch.nursery.start_soon(toy.door.listen, place, SLOW)
        callers = [await peers.enter_async_context(call_at(place)) for _ in range(MAX_IN_HANDSHAKE + 2)]
        await trio.sleep(1)
        assert len(toy.dispatch.connections) == MAX_IN_HANDSHAKE
        await callers[0].stream.aclose()
        await trio.sleep(1)
        assert max(toy.dispatch.connections) == MAX_IN_HANDSHAKE + 1
        toy.dispatch.connections[2].engine.authenticated = True
        await trio.sleep(1)
        assert max(toy.dispatch.connections) == MAX_IN_HANDSHAKE + 2


async def test_those_without_a_handshake_do_not_wait_behind_those_with_one(
    place: socket.socket, autojump_clock: MockClock
) -> None:
    async with open_toy_dispatch() as toy, AsyncExitStack() as peers:
        for _ in range(MAX_IN_HANDSHAKE):
            await peers.enter_async_context(toy.connect(SLOW))
        toy.dispatch.nursery.start_soon(toy.door.listen, place, attrs.evolve(TOY, handshake=False))
        assert await is_served(await peers.enter_async_context(call_at(place)))
        assert trio.current_time() < 1


@pytest.mark.requirement("CP-4.5")
async def test_over_the_total_clients_are_turned_away_and_the_presenter_is_not(place: socket.socket) -> None:
    async with open_toy_dispatch(max_connections=1) as toy:
        toy.dispatch.nursery.start_soon(toy.door.listen, place, TOY)
        async with call_at(place) as first, call_at(place) as second:
            assert await is_served(first)
            (told,) = await second.rest()
            assert told["error"]["data"]["reason"] == "maxConnectionsTotal"
            async with toy.connect() as presenter:
                assert await is_served(presenter)
            assert await is_served(first)


@pytest.mark.requirement("CP-4.5")
async def test_over_the_total_the_owners_tools_still_come_in(place: socket.socket) -> None:
    async with open_toy_dispatch(max_connections=1) as toy, toy.connect():
        toy.dispatch.nursery.start_soon(toy.door.listen, place, attrs.evolve(TOY, handshake=False))
        async with call_at(place) as tool:
            assert await is_served(tool)


def broken_engine() -> ToyEngine:
    raise RuntimeError(SECRET)


def broken_terms(peer: KernelPeer) -> Terms:
    raise RuntimeError(SECRET)


@pytest.mark.requirement("G01")
@pytest.mark.parametrize(
    "broken", [attrs.evolve(TOY, engine=broken_engine), attrs.evolve(TOY, terms=broken_terms)]
)
async def test_a_client_that_cannot_be_let_in_does_not_stop_the_listener(
    place: socket.socket, broken: Service
) -> None:
    async with open_toy_dispatch() as toy:
        toy.dispatch.nursery.start_soon(toy.door.listen, place, broken)
        for _ in range(2):
            async with call_at(place) as caller:
                assert await caller.rest() == []
        assert not toy.dispatch.connections
        assert toy.logged.getvalue().count("connection_not_admitted") == 2
        assert SECRET not in toy.logged.getvalue()


@pytest.mark.parametrize("full", [True, False])
async def test_listening_ends_when_the_socket_is_closed_whether_it_waits_or_pauses(
    place: socket.socket, autojump_clock: MockClock, full: bool
) -> None:
    async with open_toy_dispatch() as toy, AsyncExitStack() as peers:
        if full:
            await fill_the_handshake(toy, peers)
            await peers.enter_async_context(call_at(place))
        with trio.fail_after(PATIENCE_SECONDS):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(toy.door.listen, place, SLOW)
                await wait_all_tasks_blocked()
                trio.lowlevel.notify_closing(place.fileno())
                place.close()


async def fill_the_handshake(toy: ToyDispatch, peers: AsyncExitStack) -> None:
    for _ in range(MAX_IN_HANDSHAKE):
        await peers.enter_async_context(toy.connect(SLOW))
