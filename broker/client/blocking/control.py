"""The owner's own connection: it may look and tighten (wire.md, Control protocol)."""

from __future__ import annotations

from pathlib import Path

from broker.client.blocking.rpc import RpcConnection
from broker.client.blocking.stream import Deadline, Stream
from broker.client.replies import REPLY_SECONDS, read_event
from protocols.control.client import ControlClient, Pushed


class ControlConnection(RpcConnection):
    """A connection to the control socket; the kernel's uid is all the authentication."""

    def __init__(self, stream: Stream, engine: ControlClient) -> None:
        super().__init__(stream, engine)
        self._pushed = engine.pushed

    @classmethod
    def open(cls, path: Path, timeout: float = REPLY_SECONDS) -> ControlConnection:
        """Connect; there is no handshake."""
        return cls(Stream.connect(path, Deadline.after(timeout)), ControlClient())

    def next_push(self, deadline: Deadline) -> Pushed:
        """The next notification; raises ConnectionLost when the broker ends, TimedOut at the deadline."""
        while not self._pushed:
            if read_event(self._engine) is None and not self._pushed:
                self._receive(deadline)
        return self._pushed.popleft()

    def __enter__(self) -> ControlConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
