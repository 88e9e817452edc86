"""A connected Unix stream socket that never waits; whoever holds it waits in the way of its own loop.

What the bytes mean is for the engines of `protocols`.
"""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path

from broker.client.errors import ConnectionLost, NotConnected

READ_SIZE = 65_536
FIRST_BACKLOG_PAUSE_SECONDS = 0.01
LONGEST_BACKLOG_PAUSE_SECONDS = 0.2
"""How long to wait before a full backlog is tried again: from the first pause, doubled each time, to the longest."""


class Channel:
    """One end of a connection, as bytes."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._socket.setblocking(False)

    def fileno(self) -> int:
        """The descriptor, to wait on; -1 once it is closed."""
        return self._socket.fileno()

    def send_now(self, data: bytes | memoryview) -> int:
        """How many bytes went out; 0 when the other side takes none at present.  Raises ConnectionLost."""
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            raise ConnectionLost("the broker closed the connection") from None

    def receive_now(self) -> bytes | None:
        """What has arrived; None when nothing has, b"" at the end of the stream."""
        try:
            return self._socket.recv(READ_SIZE)
        except BlockingIOError:
            return None
        except OSError:  # a reset: what was on its way is gone
            return b""

    def close(self) -> None:
        """Close; twice is fine."""
        self._socket.close()


def connect_now(path: Path) -> socket.socket | None:
    """A socket that is connected to `path`; None when the broker's backlog is full (EAGAIN on Linux), which means
    that it is there and busy.

    Raises NotConnected when nobody listens there.
    """
    with contextlib.ExitStack() as on_failure:
        sock = on_failure.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        sock.setblocking(False)
        try:
            sock.connect(str(path))
        except BlockingIOError:
            return None
        except OSError as error:
            raise NotConnected(f"no broker answers at its socket ({error.strerror or error})") from None
        on_failure.pop_all()
        return sock
