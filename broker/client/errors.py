"""What can go wrong for a client, apart by whose it is to mend; all of it is a `ClientError`.

Ours (`OurError`): no broker could be reached, or no answer came in time.  Theirs (`TheirError`): the broker answered,
and refused, or it broke the protocol.  How a request can end without being completed: `broker.client.outcomes`.
"""

from __future__ import annotations

from protocols.errors import OurError, TheirError
from protocols.json_values import JSONObject


class ClientError(Exception):
    """The root of everything that a client of the broker raises about the broker."""


class NotConnected(ClientError, OurError):
    """No broker answers at the socket: none runs, or it is another user's."""


class ConnectionLost(NotConnected):
    """The broker ended the connection; what became of a call that was under way is not known (CP-4.2)."""


class TimedOut(NotConnected):
    """A connection stands, but nothing came within the time; the outcome of a call is not known either."""


class ProtocolBroken(ClientError, TheirError):
    """The other side sent something that the protocol does not allow; nothing of it is quoted."""


class CallFailed(ClientError, TheirError):
    """A call was answered with an error (companion.md, error table).

    `code` is the stable word, `message` for people, `retryable` whether the same call may succeed later; `details` is
    the rest of the error's data.
    """

    def __init__(self, code: str, message: str, retryable: bool, details: JSONObject) -> None:
        told = [f"{name} {details[name]}" for name in ("field", "reason", "limit") if name in details]
        super().__init__(f"{code}: {message}" + (f" ({', '.join(told)})" if told else ""))
        self.code = code
        self.message = message
        self.retryable = retryable
        self.details = details


class LeaseRefused(ClientError, TheirError):
    """A lease message or the handshake was refused (LP-5, LP-6): `code` is the stable word."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
