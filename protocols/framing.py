"""Framing: one line of bytes is one frame (wire.md, frame and size).

A `FrameSplitter` takes bytes in any fragmentation and gives whole lines, one at a time and only when asked:
its `limit` may be changed between two frames, since authentication raises it. Bytes become text only after
they are a line, so a character cut in two by the transport stays whole. Every byte is searched once.
"""

from __future__ import annotations

import attrs

from protocols.errors import FrameTooLong, OurError

_BLANK = b" \t\r"


@attrs.define
class FrameSplitter:
    """Cuts a stream into frames of at most `limit` bytes; the line break (`\\n` or `\\r\\n`) is not counted.

    Use: `feed` what arrived, then `next_frame` until it gives None. What is held back is then less than one
    frame.
    """

    limit: int
    _buffer: bytearray = attrs.field(factory=bytearray, init=False, repr=False)
    _searched: int = attrs.field(default=0, init=False)
    _finished: bool = attrs.field(default=False, init=False)

    def feed(self, data: bytes) -> None:
        """Add bytes as they came from the peer."""
        if self._finished:
            raise OurError("bytes after the end of the stream")
        self._buffer += data

    def finish(self) -> None:
        """Mark the end of the stream: unterminated bytes count as a line from now on."""
        self._finished = True

    def next_frame(self) -> bytes | None:
        """The next line that is not blank, or None until more is fed.

        Raises FrameTooLong as soon as the line at hand is known to be over the limit, with or without its
        end, and again on every later call: after it the stream is of no use.
        """
        while (end := self._line_end()) is not None:
            line = self._take_line(end)
            if line.strip(_BLANK):
                return line
        return None

    def _line_end(self) -> int | None:
        end = self._buffer.find(b"\n", self._searched)
        if end >= 0:
            return end
        self._searched = len(self._buffer)
        if self._finished and self._buffer:
            return len(self._buffer)
        self._check(self._searched)
        return None

    def _take_line(self, end: int) -> bytes:
        self._check(end)
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._searched = 0
        return line.removesuffix(b"\r")

    def _check(self, end: int) -> None:
        """A last `\\r` does not count: it belongs to the line break, or may turn out to."""
        counted = end - self._buffer.endswith(b"\r", 0, end)
        if counted > self.limit:
            raise FrameTooLong(self.limit)


def frame(payload: bytes) -> bytes:
    """The payload as one line."""
    return payload + b"\n"
