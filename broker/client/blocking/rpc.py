"""One JSON-RPC connection, blocking: a sans-I/O client engine over a stream, one call at a time."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from broker.client.blocking.stream import Deadline, Stream
from broker.client.errors import ConnectionLost
from broker.client.replies import REPLY_SECONDS, Engine, call_failed, read_event
from protocols.jsonrpc_client import Answer, Failure

if TYPE_CHECKING:  # every import is start-up time
    from protocols.companion.client import SessionEvent


class RpcConnection:
    """A stream with its engine.  After an error other than CallFailed it is of no more use."""

    def __init__(self, stream: Stream, engine: Engine) -> None:
        self._stream = stream
        self._engine = engine
        self._ended = False

    def call(self, method: str, params: object, seconds: float = REPLY_SECONDS) -> Answer:
        """Call and wait for the answer.

        Raises CallFailed for an error reply, NotConnected when the answer did not come, and FrameTooLong, with
        nothing sent, for params that are too long.
        """
        deadline = Deadline.after(seconds)
        number = self._engine.call(method, params)
        while True:
            event = self.next_event(deadline)
            if isinstance(event, Failure) and event.number in (number, None):
                raise call_failed(event.error)
            if isinstance(event, Answer) and event.number == number:
                return event

    def next_event(self, deadline: Deadline) -> SessionEvent:
        """What the engine says next; sends what it has to send first."""
        while True:
            event = read_event(self._engine)
            self._flush(deadline)
            if event is not None:
                return event
            self._receive(deadline)

    def close(self) -> None:
        """End the connection."""
        self._stream.close()

    def _flush(self, deadline: Deadline) -> None:
        with contextlib.suppress(ConnectionLost):  # reading comes to the end too, after what was said last
            self._stream.send(self._engine.take_output(), deadline)

    def _receive(self, deadline: Deadline) -> None:
        """Read on; raises ConnectionLost at the end of the stream."""
        if self._ended:
            raise ConnectionLost("the broker closed the connection")
        data = self._stream.receive(deadline)
        if data:
            self._engine.receive(data)
        else:
            self._engine.end_of_stream()
            self._ended = True
