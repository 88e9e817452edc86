"""The owner's own connection: it may look and tighten (wire.md, Control protocol)."""

from __future__ import annotations

from pathlib import Path

from broker.client.blocking.rpc import RpcConnection
from broker.client.blocking.stream import Deadline, Stream
from broker.client.replies import REPLY_SECONDS
from protocols.control.engine import METHODS
from protocols.jsonrpc_client import JsonRpcClient


class ControlConnection(RpcConnection):
    """A connection to the control socket; the kernel's uid is all the authentication."""

    @classmethod
    def open(cls, path: Path, timeout: float = REPLY_SECONDS) -> ControlConnection:
        """Connect; there is no handshake."""
        return cls(Stream.connect(path, Deadline.after(timeout)), JsonRpcClient(METHODS))

    def __enter__(self) -> ControlConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
