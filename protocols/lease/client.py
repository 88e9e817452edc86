"""The holder's side of a lease connection, without input or output: requests to bytes, bytes to typed
messages.

    client = LeaseClient("agent.local.test")
    send(client.hello("Test Agent", pid))
    send(client.begin("req_1", "com.example.Editor", 600))        only after Ready has come
    client.receive(data)
    client.next_message()        Ready, SessionError, Response, CanCloseRequest, or None: more bytes needed

A request id must be used once a holder; sent again with the same content it gets the same answer, so that
a message whose answer was lost can be repeated (lease.md, requestId).  Actions and members that this
version does not know are ignored.
"""

from __future__ import annotations

from typing import Literal

from protocols.errors import InvalidValue
from protocols.framing import FrameSplitter, frame
from protocols.lease.messages import (
    PROTOCOL_VERSION,
    SERVER_ACTIONS,
    Begin,
    CanCloseReply,
    CanCloseRequest,
    ClientMessage,
    End,
    Hello,
    Ready,
    Renew,
    ServerMessage,
    encode_message,
)
from protocols.strict_json import decode
from protocols.structure import structure

FRAME_LIMIT = 8192
"""Bytes of the longest frame that a server sends (wire.md, size)."""


class LeaseClient:
    """One connection of one holder; its methods give the bytes to send.

    `limits` is known once Ready has come.
    """

    def __init__(self, holder_id: str) -> None:
        self.holder_id = holder_id
        self.ready: Ready | None = None
        self._frames = FrameSplitter(FRAME_LIMIT)

    # -- requests --------------------------------------------------------------------------------------

    def hello(self, client_name: str, pid: int) -> bytes:
        """The first message; `pid` is the holder's process: this one, one of its ancestors, or 0 for this
        one.
        """
        return _line(
            Hello(
                protocol_version=PROTOCOL_VERSION, holder_id=self.holder_id, client_name=client_name, pid=pid
            )
        )

    def begin(self, request_id: str, app_key: str, lease_seconds: int) -> bytes:
        """Ask for a lease on an app."""
        return _line(
            Begin(
                request_id=request_id, holder_id=self.holder_id, app_key=app_key, lease_seconds=lease_seconds
            )
        )

    def renew(self, request_id: str, app_key: str, lease_seconds: int) -> bytes:
        """Let the own lease end `lease_seconds` from now."""
        return _line(
            Renew(
                request_id=request_id, holder_id=self.holder_id, app_key=app_key, lease_seconds=lease_seconds
            )
        )

    def end(self, request_id: str, app_key: str) -> bytes:
        """Give the own lease back; the app stays protected for the grace."""
        return _line(End(request_id=request_id, holder_id=self.holder_id, app_key=app_key))

    def allow(self, request: CanCloseRequest) -> bytes:
        """Answer a close check: the app may be closed."""
        return self._reply(request, "allow_close", None)

    def extend(self, request: CanCloseRequest, lease_seconds: int) -> bytes:
        """Answer a close check: keep the app open that much longer."""
        return self._reply(request, "extend_lease", lease_seconds)

    def _reply(
        self,
        request: CanCloseRequest,
        result: Literal["allow_close", "extend_lease"],
        lease_seconds: int | None,
    ) -> bytes:
        reply = CanCloseReply(
            request_id=request.request_id,
            holder_id=self.holder_id,
            app_key=request.app_key,
            result=result,
            lease_seconds=lease_seconds,
        )
        return _line(reply)

    # -- what comes back -------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Take bytes from the server, cut anyhow."""
        self._frames.feed(data)

    def end_of_stream(self) -> None:
        """The server sends no more."""
        self._frames.finish()

    def next_message(self) -> ServerMessage | None:
        """The next message, or None until more bytes come.

        Raises ParseError, FrameTooLong or InvalidValue for what no server of this version sends.
        """
        while (line := self._frames.next_frame()) is not None:
            message = _read(line)
            if isinstance(message, Ready):
                self.ready = message
            if message is not None:
                return message
        return None


def _line(message: ClientMessage) -> bytes:
    return frame(encode_message(message))


def _read(line: bytes) -> ServerMessage | None:
    document = decode(line)
    if document.flaw is not None:
        raise InvalidValue(document.flaw.dotted, document.flaw.reason)
    if not isinstance(document.value, dict):
        raise InvalidValue("", "not an object")
    action = document.value.get("action")
    kind = SERVER_ACTIONS.get(action) if isinstance(action, str) else None
    return None if kind is None else structure(kind, document.value, unknown="ignore")
