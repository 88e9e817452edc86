"""What every protocol's engine has in common: bytes in, typed messages and bytes out, no input or output done.

An engine serves one connection.  Its three verbs are those of every sans-I/O engine:

    engine.receive(data)             bytes from the peer; engine.end_of_stream() when there are no more
    engine.next_output()             what to do next, or None: more data is needed, or a reply is awaited
    engine.reply(number, body)       the answer to a delivered message; engine.push(body) without a question

Frames are cut lazily, one `next_output` at a time, since a message may change what holds for the next one:
authentication raises the frame limit, and nothing behind a session message is read before its reply is there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from enum import Enum

import attrs

from protocols.errors import FrameTooLong
from protocols.framing import FrameSplitter, frame


class Charge(Enum):
    """To which published quota a call is charged until its reply (wire.md, quotas)."""

    CALL = "call"
    WAIT = "wait"
    FREE = "free"


@attrs.frozen
class Deliver:
    """A typed message for the handlers; its reply is given under `number`."""

    number: int
    message: object
    charge: Charge = Charge.CALL


@attrs.frozen
class Send:
    """Bytes for the peer: one or more whole frames."""

    data: bytes = attrs.field(repr=False)


@attrs.frozen
class Close:
    """Close the connection once everything before has been flushed."""


Output = Deliver | Send | Close


class Refusal:
    """A reply that no handler gave: the broker itself could not serve the call."""


@attrs.frozen
class NotSaved(Refusal):
    """The decision could not be stored, so nothing of it holds (CP-4.12)."""


@attrs.frozen
class RateLimited(Refusal):
    """A published quota of the connection is used up; which one `reason` says."""

    retry_after_ms: int
    reason: str


@attrs.frozen
class Stopping(Refusal):
    """The broker is shutting down."""


@attrs.frozen
class Fault(Refusal):
    """A handler failed: an error of ours, which ends this connection and no other."""


class LineEngine(ABC):
    """The part of an engine that cuts frames and queues outputs.

    `limit` is the frame limit in bytes; a subclass raises it when the session is authenticated.  While `paused`
    no further frame is looked at.
    """

    def __init__(self, limit: int) -> None:
        self._frames = FrameSplitter(limit)
        self._outputs: deque[Output] = deque()
        self._ended = False
        self._closed = False
        self.paused = False
        self.authenticated = False
        """Whether the handshake is over: until then its deadline runs."""

    @property
    def limit(self) -> int:
        """The frame limit in force, in bytes without the line break."""
        return self._frames.limit

    @limit.setter
    def limit(self, value: int) -> None:
        self._frames.limit = value

    def receive(self, data: bytes) -> None:
        """Take bytes from the peer, cut anyhow."""
        if not self._closed:
            self._frames.feed(data)

    def end_of_stream(self) -> None:
        """The peer sends no more; unterminated bytes count as a line (wire.md, frame)."""
        if not self._ended:
            self._ended = True
            self._frames.finish()

    def next_output(self) -> Output | None:
        """The next thing to do; None when more bytes or a reply are needed first."""
        while not self._outputs and not self.paused and not self._closed:
            try:
                line = self._frames.next_frame()
            except FrameTooLong as error:
                self.on_too_long(error.limit_bytes)
                break
            if line is None:
                break
            self.on_frame(line)
        return self._outputs.popleft() if self._outputs else None

    def take_output(self) -> Output | None:
        """The next output that is queued already; unlike `next_output` it looks at no further frame."""
        return self._outputs.popleft() if self._outputs else None

    def turn_away(self, limit: str) -> None:
        """The broker is full (`limit` names the published limit): tell the peer where there is a way to, close."""
        self.close()

    @property
    def handshake_suspended(self) -> bool:
        """Whether the handshake's time stands still, as it does while a person decides on a pairing."""
        return False

    @property
    def handshakes(self) -> int:
        """How often the handshake's time has begun: at accept, and anew when what suspended it gives it anew."""
        return 1

    def send(self, payload: bytes) -> None:
        """Queue one frame for the peer."""
        if not self._closed:
            self._outputs.append(Send(frame(payload)))

    def close(self) -> None:
        """Queue the end of the connection; nothing is read or sent after it."""
        if not self._closed:
            self._closed = True
            self._outputs.append(Close())

    def deliver(self, output: Deliver) -> None:
        """Queue a typed message for the handlers."""
        self._outputs.append(output)

    @property
    @abstractmethod
    def outstanding(self) -> int:
        """How many delivered messages have no reply yet; at a half-close the connection lives until none is."""

    @abstractmethod
    def on_frame(self, line: bytes) -> None:
        """Interpret one whole frame."""

    @abstractmethod
    def on_too_long(self, limit: int) -> None:
        """A frame exceeded the limit: one error that names it, then close (wire.md, size)."""

    @abstractmethod
    def reply(self, number: int, body: object) -> None:
        """Queue the answer to a delivered message: a typed result or a `Refusal`."""

    @abstractmethod
    def push(self, body: object) -> None:
        """Queue a message that no call asked for."""

    @abstractmethod
    def handshake_timeout(self) -> None:
        """The time for the handshake is over: one error and close (wire.md, time)."""
