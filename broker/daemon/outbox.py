"""The one writer of a connection: a bounded buffer that is sent at once while the socket takes it.

`put` never waits.  What the socket does not take is sent by a flush task that lives only while there is something
to flush.  No deadline and no cancellation ever cuts a frame: a connection whose buffer overflows is reset instead,
so that nothing can follow a half line (wire.md, outbox).
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Callable

import trio

_RESET = struct.pack("ii", 1, 0)


class Outbox:
    """Bytes on their way to one peer.

    `limit` is in bytes; over half of it the peer should not be read from (`crowded`).  `on_room` is called when
    the buffer is empty again, `on_broken` when the connection can no longer be written to.
    """

    def __init__(
        self,
        sock: socket.socket,
        limit: int,
        nursery: trio.Nursery,
        on_room: Callable[[], None],
        on_broken: Callable[[], None],
    ) -> None:
        self._socket = sock
        self._limit = limit
        self._nursery = nursery
        self._on_room = on_room
        self._on_broken = on_broken
        self._buffer = bytearray()
        self._flushing = False
        self.broken = False

    @property
    def empty(self) -> bool:
        """Whether everything was handed to the kernel."""
        return not self._buffer

    @property
    def crowded(self) -> bool:
        """Whether the peer reads so slowly that no more of its calls should be taken."""
        return len(self._buffer) > self._limit // 2

    def put(self, data: bytes) -> None:
        """Send whole frames, now or as soon as the peer reads."""
        if self.broken:
            return
        if self._buffer:
            self._buffer += data
            if len(self._buffer) > self._limit:
                self._break()
            return
        sent = self._send(data)
        if sent < len(data) and not self.broken:
            self._buffer += memoryview(data)[sent:]
            self._flushing = True
            self._nursery.start_soon(self._flush)

    def reset(self) -> None:
        """Give up on the peer: closing the socket will reset the connection, and nothing more is sent."""
        self.broken = True
        self._buffer.clear()
        with contextlib.suppress(OSError):  # the socket may be closed already
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)

    def _send(self, data: bytes | bytearray) -> int:
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            self._break()
            return 0

    async def _flush(self) -> None:
        while self._buffer and not self.broken:
            try:
                await trio.lowlevel.wait_writable(self._socket.fileno())
            except (OSError, trio.ClosedResourceError):
                self._break()
                break
            if not self.broken:
                del self._buffer[: self._send(self._buffer)]
        self._flushing = False
        self._on_room()

    def _break(self) -> None:
        if not self.broken:
            self.reset()
            self._on_broken()
