"""The calling side of a companion session: says hello, authenticates, then calls (companion.md, Session).

The first event is `Ready` (or `TurnedAway`); with a credential that is after authentication, without one
after hello, when only pairing and runtime.describe are open.  After a pairing `authenticate` takes the same
session on.
"""

from __future__ import annotations

from typing import TypeAlias

import attrs

from protocols.companion.engine import HANDSHAKE_FRAME_BYTES
from protocols.companion.messages import (
    PROTOCOL_VERSION,
    Authenticate,
    AuthenticateResult,
    Hello,
    HelloResult,
    Implementation,
)
from protocols.companion.methods import METHODS
from protocols.jsonrpc_client import SEND_LIMIT, Answer, CallError, Event, Failure, JsonRpcClient


@attrs.frozen
class Credential:
    """A paired client's id and key."""

    client_id: str
    key: str = attrs.field(repr=False)


@attrs.frozen
class Ready:
    """The session is open; `identity` is None as long as it is not authenticated."""

    hello: HelloResult
    identity: AuthenticateResult | None


@attrs.frozen
class TurnedAway:
    """The handshake failed, or the key was refused."""

    error: CallError


SessionEvent: TypeAlias = "Event | Ready | TurnedAway"


class CompanionClient:
    """Sans-I/O client of one companion session; its verbs are those of `JsonRpcClient`."""

    def __init__(self, program: Implementation, credential: Credential | None = None) -> None:
        self._rpc = JsonRpcClient(METHODS, HANDSHAKE_FRAME_BYTES)
        self._credential = credential
        self._hello: HelloResult | None = None
        hello = Hello(protocol_versions=(PROTOCOL_VERSION,), client=program)
        self._handshake: int | None = self._rpc.call("session.hello", hello)

    @property
    def waiting(self) -> int:
        """How many calls have no answer yet."""
        return self._rpc.waiting

    def call(self, method: str, params: object) -> int:
        """Queue a call and return its number, once the session is `Ready`; raises FrameTooLong."""
        return self._rpc.call(method, params)

    def authenticate(self, credential: Credential) -> None:
        """Take a session that was opened without a credential on; `Ready` or `TurnedAway` follows."""
        claim = Authenticate(client_id=credential.client_id, key=credential.key)
        self._handshake = self._rpc.call("session.authenticate", claim)

    def take_output(self) -> bytes:
        """The bytes to send now; b"" when there are none."""
        return self._rpc.take_output()

    def receive(self, data: bytes) -> None:
        """Take bytes from the server, cut anyhow."""
        self._rpc.receive(data)

    def end_of_stream(self) -> None:
        """The server sends no more."""
        self._rpc.end_of_stream()

    def next_event(self) -> SessionEvent | None:
        """The next event; None until more bytes are there.  It may queue output.  Raises TheirError."""
        while (event := self._rpc.next_event()) is not None:
            if self._handshake is None:
                return event
            if event.number is None and isinstance(event, Failure):
                return TurnedAway(event.error)
            if event.number != self._handshake:
                return event
            if (news := self._on_handshake(event)) is not None:
                return news
        return None

    def _on_handshake(self, event: Event) -> Ready | TurnedAway | None:
        self._handshake = None
        if isinstance(event, Failure):
            return TurnedAway(event.error)
        return self._on_identity(event) if self._hello is not None else self._on_hello(event)

    def _on_hello(self, event: Answer) -> Ready | TurnedAway | None:
        assert isinstance(event.result, HelloResult)
        self._hello = event.result
        if self._hello.protocol_version != PROTOCOL_VERSION:
            return TurnedAway(CallError("INVALID_PARAMS", "no common protocol version", False))
        if self._credential is None:
            return Ready(self._hello, None)
        self.authenticate(self._credential)
        return None

    def _on_identity(self, event: Answer) -> Ready:
        assert isinstance(event.result, AuthenticateResult)
        assert self._hello is not None
        self._rpc.send_limit = SEND_LIMIT
        return Ready(self._hello, event.result)
