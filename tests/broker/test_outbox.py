"""The outbox never waits, never cuts a frame and never grows beyond its limit (wire.md, outbox)."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
import trio
import trio.testing

from broker.daemon.outbox import Outbox

pytestmark = pytest.mark.requirement("G06")

LIMIT = 1_000_000


class Ends:
    """Both ends of a socketpair, and what the outbox has called."""

    def __init__(self) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.ours.setblocking(False)
        self.theirs.setblocking(False)
        self.called: list[str] = []
        self.got = b""

    def outbox(self, nursery: trio.Nursery, limit: int = LIMIT) -> Outbox:
        return Outbox(
            self.ours,
            limit,
            nursery,
            lambda: self.called.append("empty"),
            lambda: self.called.append("overflow"),
        )

    async def read_on(self) -> None:
        """Read whatever comes until nothing more does."""
        while True:
            try:
                self.got += self.theirs.recv(65_536)
            except BlockingIOError:
                await trio.testing.wait_all_tasks_blocked()
                if not self._readable():
                    return

    def _readable(self) -> bool:
        try:
            return bool(self.theirs.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False


@pytest.fixture
def ends() -> Iterator[Ends]:
    ends = Ends()
    yield ends
    ends.ours.close()
    ends.theirs.close()


def frame(number: int, size: int) -> bytes:
    return f"{number:08}".encode().ljust(size - 1, b".") + b"\n"


def fill(outbox: Outbox, size: int) -> bytes:
    """Put frames until the socket takes no more; what was put."""
    put = b""
    while outbox.empty:
        put += frame(len(put), size)
        outbox.put(put[-size:])
    return put


async def test_what_the_socket_takes_is_sent_at_once(ends: Ends, nursery: trio.Nursery) -> None:
    outbox = ends.outbox(nursery)
    outbox.put(b"now\n")
    assert outbox.empty
    assert ends.theirs.recv(100) == b"now\n"
    assert ends.called == []


@pytest.mark.parametrize("size", [100, 30_000, 65_537, 300_000])
async def test_what_it_does_not_take_follows_in_order_when_the_peer_reads(
    ends: Ends, nursery: trio.Nursery, size: int
) -> None:
    outbox = ends.outbox(nursery)
    put = fill(outbox, size)
    for number in range(3):
        outbox.put(frame(number, size))
        put += frame(number, size)
    assert not outbox.empty
    await ends.read_on()
    assert ends.got == put
    assert outbox.empty
    assert ends.called == ["empty"]


async def test_over_half_of_its_limit_the_peer_is_not_to_be_read_from(
    ends: Ends, nursery: trio.Nursery
) -> None:
    outbox = ends.outbox(nursery)
    fill(outbox, 1_000)
    outbox.put(frame(0, LIMIT // 2 - 1_000))
    assert not outbox.crowded
    outbox.put(frame(0, 1_001))
    assert outbox.crowded
    await ends.read_on()
    assert not outbox.crowded


@pytest.mark.parametrize("size", [100, 30_000, 65_537, 300_000])
async def test_a_peer_that_is_given_up_gets_the_rest_of_a_frame_that_is_half_out_and_nothing_more(
    ends: Ends, nursery: trio.Nursery, size: int
) -> None:
    outbox = ends.outbox(nursery)
    put = fill(outbox, size)
    while not outbox.closed:
        outbox.put(frame(0, size))
    outbox.put(b"goes nowhere\n")
    assert ends.called[0] == "overflow"
    await ends.read_on()
    assert outbox.empty
    assert put.startswith(ends.got)
    assert ends.got.endswith(b"\n")
    assert len(ends.got) >= len(put) - size


@pytest.mark.parametrize("size", [100, 5_000, 30_000])
async def test_a_peer_that_reads_slowly_has_whole_lines_only(
    ends: Ends, nursery: trio.Nursery, size: int
) -> None:
    outbox = ends.outbox(nursery)
    fill(outbox, size)
    for number in range(LIMIT // size - 10):
        outbox.put(frame(number, size))
    for _ in range(5):
        ends.theirs.recv(70_000)
        await trio.testing.wait_all_tasks_blocked()
    outbox.reset()
    ends.ours.close()  # as a connection would that is over
    rest = b""
    while data := ends.theirs.recv(65_536):
        rest += data
    assert rest.endswith(b"\n")


async def test_a_peer_that_is_gone_costs_nothing_more(ends: Ends, nursery: trio.Nursery) -> None:
    outbox = ends.outbox(nursery)
    fill(outbox, 1_000)
    ends.theirs.close()
    await trio.testing.wait_all_tasks_blocked()
    assert outbox.closed
    assert outbox.empty
    outbox.put(b"goes nowhere\n")
    assert outbox.empty
    assert ends.called == ["empty"]
