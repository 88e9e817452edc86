"""Pairing: how a client asks a person for a key (companion.md, Pairing; docs/authentication.md).

`pairing.request` puts a question on the screen, `pairing.wait` hands the key over once it was approved, and
`pairing.cancel` takes the question back.  All three work before authentication, on the connection that asked.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

from protocols.errors import InvalidValue
from protocols.jsonrpc_session import Method
from protocols.members import absent, array, integer, text
from protocols.session import Charge

Scope: TypeAlias = Literal["discover", "animate", "notify", "interact"]
SCOPES: tuple[Scope, ...] = ("discover", "animate", "notify", "interact")
"""What a client may be allowed to do (CP-5.3), in the order in which people read it."""

Status: TypeAlias = Literal["pending", "approved", "denied", "expired", "cancelled"]

MAX_CLIENT_NAME = 64
"""Visible code points.  Invisible ones are not counted; the screen shows them, so they are bounded too."""
MAX_CLIENT_NAME_RAW = 128
MAX_PURPOSE = 200
_MAX_INTEGER = 2**63 - 1


@attrs.frozen(kw_only=True, repr=False)
class PairingRequest:
    """Ask for a key with these scopes; the answer comes by `pairing.wait`.

    `client_name` is what the client calls itself, no proof of anything (CP-5.6); the handler counts its
    visible code points.  `scopes` are those of the question; the person may grant fewer.
    """

    client_name: str = text(1, MAX_CLIENT_NAME_RAW)
    scopes: tuple[Scope, ...] = array(1, len(SCOPES))
    purpose: str | None = text(1, MAX_PURPOSE, absent=True)

    def __attrs_post_init__(self) -> None:
        if len(set(self.scopes)) < len(self.scopes):
            raise InvalidValue("scopes", "named twice")


@attrs.frozen(kw_only=True)
class RetentionNotice:
    """How long the broker keeps what this client sends (CP-4.10)."""

    hours: int
    tombstone_days: int


@attrs.frozen(kw_only=True, repr=False)
class PairingRequested:
    """The question is on its way to the screen.  The person compares `verification_code` (six digits)."""

    pairing_id: str
    verification_code: str
    expires_at: str
    retention: RetentionNotice


@attrs.frozen(kw_only=True)
class PairingWait:
    """Wait up to `wait_ms` for the decision.  Its bound is the published limit of requests.wait."""

    pairing_id: str = text(1, 128)
    wait_ms: int = integer(0, _MAX_INTEGER)


@attrs.frozen(kw_only=True, repr=False)
class PairingOutcome:
    """Where the pairing stands.  `key` (32 bytes, base64url without padding) is handed over exactly once."""

    status: Status
    client_id: str | None = absent()
    key: str | None = absent()
    scopes: tuple[Scope, ...] | None = absent()


@attrs.frozen(kw_only=True)
class PairingCancel:
    """Take the question back; a decided pairing stays decided."""

    pairing_id: str = text(1, 128)


@attrs.frozen(kw_only=True)
class PairingCancelled:
    """The pairing is no longer open; `status` tells how it ended."""

    status: Status


@attrs.frozen
class PairingEnded:
    """Pushed to the companion engine when the pairing of its connection has ended; nothing of it is sent.

    The time limit of the handshake, suspended by the accepted request, runs again from here (wire.md, time).
    """


PAIRING_METHODS = (
    Method("pairing.request", PairingRequest, PairingRequested, batched=False),
    Method("pairing.wait", PairingWait, PairingOutcome, charge=Charge.WAIT, batched=False),
    Method("pairing.cancel", PairingCancel, PairingCancelled, charge=Charge.FREE, batched=False),
)
