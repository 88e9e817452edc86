"""The serving side of a companion session: the order of its calls, and what that order changes.

    hello  ->  authenticate  ->  business calls
           ->  pairing.*         (before authentication; so is runtime.describe)

Until authentication frames are small and any garbage ends the connection; afterwards frames may be as long as
the published limit and garbage costs one error a line (wire.md).  Who the caller is and what it may do is
for the handlers; the engine only knows how far the session has come.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from protocols.companion import pairing
from protocols.companion.messages import Authenticate
from protocols.companion.methods import METHODS
from protocols.jsonrpc import MAX_BATCH
from protocols.jsonrpc_session import JsonRpcEngine, Method
from protocols.refusal import ErrorCode, Refused
from protocols.session import Deliver

HANDSHAKE_FRAME_BYTES = 4_096
"""The longest frame before authentication (wire.md, size)."""
FRAME_BYTES = 65_536

_HELLO = "session.hello"
_AUTHENTICATE = "session.authenticate"
_PAIRING_REQUEST = "pairing.request"
_OPEN: Final = {_AUTHENTICATE, "runtime.describe", *(method.name for method in pairing.PAIRING_METHODS)}
"""Besides hello, the calls that need no authentication."""


def _out_of_order(reason: str, *, closes: bool) -> Refused:
    message = "the call does not fit the session"
    return Refused(ErrorCode.INVALID_PARAMS, message, {"reason": reason}, closes=closes)


_HELLO_MISSING = _out_of_order("hello missing", closes=True)
_HELLO_REPEATED = _out_of_order("hello repeated", closes=True)
_ALREADY_AUTHENTICATED = _out_of_order("already authenticated", closes=False)
_UNAUTHENTICATED = Refused(ErrorCode.UNAUTHENTICATED, "not authenticated", closes=True)


class CompanionEngine(JsonRpcEngine):
    """Sans-I/O server of one companion connection (companion.md, Session).

    `max_frame_bytes` is the published limit that holds after authentication, `max_batch` that of a batch's calls.
    """

    methods: ClassVar[Mapping[str, Method]] = METHODS

    def __init__(self, max_frame_bytes: int = FRAME_BYTES, max_batch: int = MAX_BATCH) -> None:
        super().__init__(HANDSHAKE_FRAME_BYTES, max_batch)
        self._max_frame_bytes = max_frame_bytes
        self._greeted = False
        self._pairing = False
        self._pairings_ended = 0
        self._authenticating: int | None = None

    @property
    def handshake_suspended(self) -> bool:
        """Whether the time for the handshake stands still: a person is deciding on a pairing, or the broker
        itself holds the answer to an authenticate back.  Only the end of a pairing gives the full time anew."""
        return self._pairing or self._authenticating is not None

    @property
    def handshakes(self) -> int:
        return 1 + self._pairings_ended

    def admit(self, method: Method) -> Refused | None:
        """Whether the session has come far enough for the method, or too far."""
        if method.name == _HELLO:
            return _HELLO_REPEATED if self._greeted else None
        if not self._greeted:
            return _HELLO_MISSING
        if not self.authenticated:
            return None if method.name in _OPEN else _UNAUTHENTICATED
        return _ALREADY_AUTHENTICATED if method.name == _AUTHENTICATE else None

    def unknown_method(self) -> Refused:
        """Before authentication a peer does not even learn which methods exist."""
        if not self._greeted:
            return _HELLO_MISSING
        return super().unknown_method() if self.authenticated else _UNAUTHENTICATED

    def deliver(self, output: Deliver) -> None:
        if isinstance(output.message, Authenticate):
            self._authenticating = output.number
        super().deliver(output)

    def reply(self, number: int, body: object) -> None:
        if number == self._authenticating:
            self._authenticating = None
        super().reply(number, body)

    def on_result(self, method: Method, body: object) -> None:
        """A successful session or pairing call moves the session on."""
        if method.name == _HELLO:
            self._greeted = True
        elif method.name == _AUTHENTICATE:
            self.authenticated = True
            self.limit = self._max_frame_bytes
        elif method.name == _PAIRING_REQUEST:
            self._pairing = True

    def push(self, body: object) -> None:
        """The end of a pairing; nothing of it is sent."""
        if not isinstance(body, pairing.PairingEnded):
            raise TypeError(f"the companion protocol has no push for {type(body).__name__}")
        self._pairings_ended += self._pairing
        self._pairing = False
