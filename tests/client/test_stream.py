"""The blocking transport: whole frames from any fragments, deadlines, and a broker that is not there or busy."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import pytest

from broker.client.blocking.stream import Deadline, Stream
from broker.client.errors import ConnectionLost, NotConnected, TimedOut


def test_nobody_listening_is_not_connected(folder: Path) -> None:
    with pytest.raises(NotConnected):
        Stream.connect(folder / "no.sock", Deadline.after(1))


def test_a_stale_socket_is_not_connected(folder: Path) -> None:
    path = folder / "s"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    with pytest.raises(NotConnected):
        Stream.connect(path, Deadline.after(1))


def test_a_path_too_long_for_a_socket_is_not_connected(folder: Path) -> None:
    with pytest.raises(NotConnected):
        Stream.connect(folder / ("s" * 200), Deadline.after(1))


def full_listener(path: Path) -> tuple[socket.socket, list[socket.socket]]:
    """A listener whose backlog has no room left, and the connections that fill it."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(0)
    waiting: list[socket.socket] = []
    while True:
        one = socket.socket(socket.AF_UNIX)
        one.setblocking(False)
        waiting.append(one)
        try:
            one.connect(str(path))
        except BlockingIOError:
            return listener, waiting


def test_a_full_backlog_is_tried_again_until_there_is_room(folder: Path) -> None:
    listener, waiting = full_listener(folder / "s")

    def accept_one() -> None:
        listener.accept()[0].close()

    accepting = threading.Timer(0.05, accept_one)
    accepting.start()
    Stream.connect(folder / "s", Deadline.after(5)).close()
    accepting.join()
    for one in (listener, *waiting):
        one.close()


def test_a_backlog_that_stays_full_times_out(folder: Path) -> None:
    listener, waiting = full_listener(folder / "s")
    with pytest.raises(TimedOut):
        Stream.connect(folder / "s", Deadline.after(0.05))
    for one in (listener, *waiting):
        one.close()


@pytest.fixture
def pair() -> tuple[Stream, socket.socket]:
    ours, theirs = socket.socketpair()
    return Stream(ours), theirs


def test_receive_gives_up_at_its_deadline(pair: tuple[Stream, socket.socket]) -> None:
    stream, theirs = pair
    started = time.monotonic()
    with pytest.raises(TimedOut), stream, theirs:
        stream.receive(Deadline.after(0.05))
    assert time.monotonic() - started > 0.04  # how long after depends on what else the machine does


def test_sending_to_a_reader_that_does_not_read_gives_up_at_its_deadline(
    pair: tuple[Stream, socket.socket],
) -> None:
    stream, theirs = pair
    with pytest.raises(TimedOut), stream, theirs:
        stream.send(b"x" * 10_000_000, Deadline.after(0.05))


def test_what_was_said_before_the_end_can_be_received_after_a_failed_send(
    pair: tuple[Stream, socket.socket],
) -> None:
    stream, theirs = pair
    theirs.sendall(b"last words\n")
    theirs.close()
    with stream:
        with pytest.raises(ConnectionLost):
            stream.send(b"x", Deadline.after(1))
        assert stream.receive(Deadline.after(1)) == b"last words\n"
        assert stream.receive(Deadline.after(1)) == b""
