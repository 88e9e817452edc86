"""A blocking Unix stream socket: bytes out, bytes in, every wait with a deadline.

What the bytes mean is for the engines: one `receive` gives whatever has arrived, so callers loop until their
engine has a whole frame.
"""

from __future__ import annotations

import select
import time
from pathlib import Path
from typing import Self

import attrs

from broker.client.channel import (
    FIRST_BACKLOG_PAUSE_SECONDS,
    LONGEST_BACKLOG_PAUSE_SECONDS,
    Channel,
    connect_now,
)
from broker.client.errors import TimedOut


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

    def sooner(self, seconds: float) -> float:
        """So many seconds, or what remains if that is less."""
        return seconds if self.remaining is None else min(seconds, self.remaining)

    def pause(self, seconds: float) -> None:
        """Sleep, but not beyond the deadline."""
        time.sleep(self.sooner(seconds))


class Stream(Channel):
    """A connected socket.  Not for two threads at once."""

    @classmethod
    def connect(cls, path: Path, deadline: Deadline) -> Self:
        """Connect to the socket at `path`.

        A full backlog means a busy broker: it is tried again until the deadline.  Raises NotConnected when nobody
        listens there, TimedOut when the backlog stays full.
        """
        pause = FIRST_BACKLOG_PAUSE_SECONDS
        while (sock := connect_now(path)) is None:
            if deadline.passed:
                raise TimedOut("the broker has no room for another connection")
            deadline.pause(pause)
            pause = min(2 * pause, LONGEST_BACKLOG_PAUSE_SECONDS)
        return cls(sock)

    def send(self, data: bytes, deadline: Deadline) -> None:
        """Send all of it.

        Raises TimedOut, and ConnectionLost when the other side has closed; what it said before that can still be
        received.
        """
        rest = memoryview(data)
        while rest:
            sent = self.send_now(rest)
            rest = rest[sent:]
            if not sent:
                self._wait(select.POLLOUT, deadline)

    def receive(self, deadline: Deadline) -> bytes:
        """What has arrived, at least one byte; b"" at the end of the stream.  Raises TimedOut."""
        while (data := self.receive_now()) is None:
            self._wait(select.POLLIN, deadline)
        return data

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _wait(self, event: int, deadline: Deadline) -> None:
        poll = select.poll()
        poll.register(self._socket, event)
        remaining = deadline.remaining
        if remaining == 0.0 or not poll.poll(None if remaining is None else remaining * 1000):
            raise TimedOut("the broker did not answer in time")
