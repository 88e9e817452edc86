"""What a connection makes of its engine's events, whichever way it waits for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from broker.client.errors import CallFailed, ProtocolBroken
from protocols.errors import TheirError
from protocols.jsonrpc_client import CallError

if (
    TYPE_CHECKING
):  # the owner's tools need nothing of the companion protocol, and every import is start-up time
    from protocols.companion.client import SessionEvent

REPLY_SECONDS = 10.0
"""How long a reply may take, on top of what a call itself asks the broker to wait."""


class Engine(Protocol):
    """The verbs of `JsonRpcClient` and `CompanionClient`."""

    def call(self, method: str, params: object) -> int: ...
    def take_output(self) -> bytes: ...
    def receive(self, data: bytes) -> None: ...
    def end_of_stream(self) -> None: ...
    def next_event(self) -> SessionEvent | None: ...


def read_event(engine: Engine) -> SessionEvent | None:
    """The engine's next event; raises ProtocolBroken for what no broker may send."""
    try:
        return engine.next_event()
    except TheirError as error:
        raise ProtocolBroken(f"the broker broke the protocol ({type(error).__name__})") from None


def call_failed(error: CallError) -> CallFailed:
    """An error reply as an exception."""
    return CallFailed(error.code, error.message, error.retryable, error.details)
