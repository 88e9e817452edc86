"""The client library: what a program needs to ask a person, to show something, and to keep an app open.

    from broker.client import Companion          blocking; `broker.client.aio` has the same names for trio

Everything of both flavours that does not wait is in the modules of this package, over the engines of `protocols`;
`blocking/` and `aio/` only wait, each in its own way.  Names are imported when they are used, so that a short command
starts fast.  `docs/client-library.md` shows how they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.client.lazy import lazily

if TYPE_CHECKING:
    from broker.client.blocking.client import Companion, Progress
    from broker.client.blocking.holder import Holder, lease
    from broker.client.errors import (
        CallFailed,
        ClientError,
        ConnectionLost,
        LeaseRefused,
        NotConnected,
        ProtocolBroken,
        TimedOut,
    )
    from broker.client.keeping import Allow, CloseCheck, Extend
    from broker.client.leases import Lease
    from broker.client.outcomes import (
        Cancelled,
        Dismissed,
        Expired,
        Failed,
        Hidden,
        Muted,
        NotCompleted,
        Paused,
        Unavailable,
    )
    from broker.credentials import CredentialError
    from protocols.companion.client import Credential
    from protocols.companion.messages import Implementation, Snapshot
    from protocols.companion.states import State

__all__ = [
    "Allow",
    "CallFailed",
    "Cancelled",
    "ClientError",
    "CloseCheck",
    "Companion",
    "ConnectionLost",
    "Credential",
    "CredentialError",
    "Dismissed",
    "Expired",
    "Extend",
    "Failed",
    "Hidden",
    "Holder",
    "Implementation",
    "Lease",
    "LeaseRefused",
    "Muted",
    "NotCompleted",
    "NotConnected",
    "Paused",
    "Progress",
    "ProtocolBroken",
    "Snapshot",
    "State",
    "TimedOut",
    "Unavailable",
    "lease",
]

_ERRORS = (
    *("CallFailed", "ClientError", "ConnectionLost", "LeaseRefused", "NotConnected", "ProtocolBroken"),
    "TimedOut",
)
_OUTCOMES = (
    *("Cancelled", "Dismissed", "Expired", "Failed", "Hidden", "Muted", "NotCompleted", "Paused"),
    "Unavailable",
)

__getattr__ = lazily(
    __name__,
    {
        **dict.fromkeys(("Companion", "Progress"), "broker.client.blocking.client"),
        **dict.fromkeys(_ERRORS, "broker.client.errors"),
        **dict.fromkeys(_OUTCOMES, "broker.client.outcomes"),
        **dict.fromkeys(("Holder", "lease"), "broker.client.blocking.holder"),
        **dict.fromkeys(("Allow", "CloseCheck", "Extend"), "broker.client.keeping"),
        "Lease": "broker.client.leases",
        "Credential": "protocols.companion.client",
        "CredentialError": "broker.credentials",
        "Implementation": "protocols.companion.messages",
        "Snapshot": "protocols.companion.messages",
        "State": "protocols.companion.states",
    },
)
