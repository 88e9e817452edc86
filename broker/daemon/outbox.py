"""The one writer of a connection: a bounded buffer that is sent at once while the socket takes it.

`put` never waits.  What the socket does not take is sent by a flush task that lives only while there is something
to flush.  No deadline and no cancellation ever cuts a frame.  When the buffer overflows, the peer is given up: all
but the rest of a frame that is half out is thrown away, so that the stream can still end at a line end, and
nothing ever follows a half line (wire.md, outbox).
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Callable

import trio

_RESET = struct.pack("ii", 1, 0)
_PIECE_BYTES = 32_768
"""Linux takes a write of this size to a Unix socket whole or not at all: a slow peer is seldom left half a line."""


class Outbox:
    """Bytes on their way to one peer.

    `limit` is in bytes; over half of it the peer should not be read from (`crowded`).  `on_empty` is called when
    a flush has ended, `on_overflow` when the peer is given up because it does not read.
    """

    def __init__(
        self,
        sock: socket.socket,
        limit: int,
        nursery: trio.Nursery,
        on_empty: Callable[[], None],
        on_overflow: Callable[[], None],
    ) -> None:
        self._socket = sock
        self._limit = limit
        self._nursery = nursery
        self._on_empty = on_empty
        self._on_overflow = on_overflow
        self._buffer = bytearray()
        self._in_frame = False
        """Whether what was sent ends within a frame."""
        self.closed = False
        """Whether no further frame is taken: the peer does not read or is gone, or `reset` was called."""

    @property
    def empty(self) -> bool:
        """Whether nothing is left to hand to the kernel."""
        return not self._buffer

    @property
    def crowded(self) -> bool:
        """Whether the peer reads so slowly that no more of its calls should be taken."""
        return len(self._buffer) > self._limit // 2

    def put(self, data: bytes) -> None:
        """Send whole frames, now or as soon as the peer reads; after the end of the outbox they go nowhere."""
        if self.closed:
            return
        if self._buffer:
            self._buffer += data
            if len(self._buffer) > self._limit:
                self._overflow()
            return
        sent = self._send(data)
        if sent < len(data) and not self.closed:
            self._buffer += memoryview(data)[sent:]
            self._nursery.start_soon(self._flush)

    def reset(self) -> None:
        """Send nothing more: where the platform knows a reset, closing the socket now is one."""
        self.closed = True
        self._buffer.clear()
        with contextlib.suppress(OSError):  # the socket may be closed already
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)

    def _send(self, data: bytes | bytearray) -> int:
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            return 0
        except OSError:  # the peer is gone
            self.reset()
            return 0
        self._in_frame = not data.endswith(b"\n", 0, sent)
        return sent

    async def _flush(self) -> None:
        while self._buffer:
            try:
                await trio.lowlevel.wait_writable(self._socket.fileno())
            except (OSError, trio.ClosedResourceError):
                self.reset()
            else:
                del self._buffer[: self._send(self._piece())]
        self._on_empty()

    def _piece(self) -> bytearray:
        """The next frames that fit into one piece, or a longer one alone."""
        end = self._buffer.rfind(b"\n", 0, _PIECE_BYTES)
        return self._buffer[: (self._buffer.find(b"\n") if end < 0 else end) + 1]

    def _overflow(self) -> None:
        self.closed = True
        rest_of_frame = self._buffer.index(b"\n") + 1 if self._in_frame else 0
        del self._buffer[rest_of_frame:]
        self._on_overflow()
