"""A blocking Unix stream socket: bytes out, bytes in, every wait with a deadline.

What the bytes mean is for the engines: one `receive` gives whatever has arrived, so callers loop until their
engine has a whole frame.
"""

from __future__ import annotations

import select
import socket
import time
from pathlib import Path

import attrs

from broker.client.errors import ConnectionLost, NotConnected, TimedOut

READ_SIZE = 65_536
_FIRST_PAUSE_SECONDS = 0.01
_LONGEST_PAUSE_SECONDS = 0.2


@attrs.frozen
class Deadline:
    """A moment of the monotonic clock; `None` never comes."""

    at: float | None

    @classmethod
    def after(cls, seconds: float | None) -> Deadline:
        """So many seconds from now; None: never."""
        return cls(None if seconds is None else time.monotonic() + seconds)

    @property
    def remaining(self) -> float | None:
        """Seconds until then, never below zero; None: without end."""
        return None if self.at is None else max(0.0, self.at - time.monotonic())

    @property
    def passed(self) -> bool:
        """Whether the moment has come."""
        return self.remaining == 0.0

    def pause(self, seconds: float) -> None:
        """Sleep, but not beyond the deadline."""
        time.sleep(seconds if self.remaining is None else min(seconds, self.remaining))


class Stream:
    """A connected socket.  Not for two threads at once."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._socket.setblocking(False)

    @classmethod
    def connect(cls, path: Path, deadline: Deadline) -> Stream:
        """Connect to the socket at `path`.

        A full backlog (EAGAIN on Linux) means a busy broker: it is tried again until the deadline.  Raises
        NotConnected when nobody listens there, TimedOut when the backlog stays full.
        """
        pause = _FIRST_PAUSE_SECONDS
        while True:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                sock.setblocking(False)
                sock.connect(str(path))
                return cls(sock)
            except BlockingIOError:
                sock.close()
            except OSError as error:
                sock.close()
                raise NotConnected(f"no broker answers at its socket ({error.strerror or error})") from None
            if deadline.passed:
                raise TimedOut("the broker has no room for another connection")
            deadline.pause(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def fileno(self) -> int:
        """The descriptor, to wait on together with others."""
        return self._socket.fileno()

    def send(self, data: bytes, deadline: Deadline) -> None:
        """Send all of it.

        Raises TimedOut, and ConnectionLost when the other side has closed; what it said before that can still be
        received.
        """
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self._socket.send(rest) :]
            except BlockingIOError:
                self._wait(select.POLLOUT, deadline)
            except OSError:
                raise ConnectionLost("the broker closed the connection") from None

    def receive(self, deadline: Deadline) -> bytes:
        """What has arrived, at least one byte; b"" at the end of the stream.  Raises TimedOut."""
        while True:
            try:
                return self._socket.recv(READ_SIZE)
            except BlockingIOError:
                self._wait(select.POLLIN, deadline)
            except OSError:  # a reset: what was on its way is gone
                return b""

    def receive_nowait(self) -> bytes | None:
        """What has arrived; None when nothing has, b"" at the end of the stream."""
        try:
            return self._socket.recv(READ_SIZE)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def close(self) -> None:
        """Close; twice is fine."""
        self._socket.close()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _wait(self, event: int, deadline: Deadline) -> None:
        poll = select.poll()
        poll.register(self._socket, event)
        remaining = deadline.remaining
        if remaining == 0.0 or not poll.poll(None if remaining is None else remaining * 1000):
            raise TimedOut("the broker did not answer in time")
