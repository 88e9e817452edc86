"""The lease protocol's two sets of codes (LP-5, LP-6); the values are the words on the wire.

A handshake code comes with `session.error`, after which the connection is closed.  A business code comes with
`lease.response`, and the session goes on.
"""

from __future__ import annotations

from enum import Enum


class HandshakeCode(Enum):
    """Why there is no session."""

    INVALID_HANDSHAKE = "invalid_handshake"
    """The hello is no good, too late or the second one, or a connection is over a published limit."""
    UNSUPPORTED_PROTOCOL_VERSION = "unsupported_protocol_version"
    HOLDER_ID_MISMATCH = "holder_id_mismatch"
    """The holder id is bound to another process, which is alive."""
    UNAUTHENTICATED = "unauthenticated"
    """A business message before ready, or a pid that is neither the peer nor one of its ancestors."""


class Code(Enum):
    """What became of a business message."""

    ACCEPTED = "accepted"
    INVALID_PAYLOAD = "invalid_payload"
    UNKNOWN_ACTION = "unknown_action"
    UNKNOWN_APP = "unknown_app"
    NOT_ENTITLED = "not_entitled"
    """AI protection is off, the user blocks the holder, or a published quota is used up; the message says
    which.
    """
    HOLDER_MISMATCH = "holder_mismatch"
    """The holder is not this session's, or somebody else holds the app."""
    REQUEST_EXPIRED = "request_expired"
    """The lease or the close check that the message speaks of is over."""
    LEASE_CONFLICT = "lease_conflict"
    """The app is being quit."""
