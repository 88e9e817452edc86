"""Every message of the lease protocol, both ways, member by member as on the wire (LP-2, LP-4, lease.md).

A frame is one JSON object; its `action` says which class the other members belong to, and stands in the two
tables rather than in the classes.  Unknown members are ignored on both sides.  Ids, app keys and the client's
name have 1 to 128 code points, so that every message fits its frame even with every character escaped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import attrs

from protocols.errors import OurError
from protocols.json_schema import json_schema
from protocols.json_values import JSONObject
from protocols.lease.codes import Code, HandshakeCode
from protocols.strict_json import encode
from protocols.structure import absent, text, unstructure

PROTOCOL_VERSION = 1
MAX_ID = 128


# -- from the client -----------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Hello:
    """session.hello, the first message (LP-2).

    `pid` is the holder's: the peer's own or an ancestor's, 0 = the peer.
    """

    protocol_version: int
    holder_id: str = text(1, MAX_ID)
    client_name: str = text(1, MAX_ID)
    pid: int


@attrs.frozen(kw_only=True)
class Begin:
    """lease.begin: hold the app open for `lease_seconds`."""

    request_id: str = text(1, MAX_ID)
    holder_id: str = text(1, MAX_ID)
    app_key: str = text(1, MAX_ID)
    lease_seconds: int


@attrs.frozen(kw_only=True)
class Renew:
    """lease.renew: the own lease now ends `lease_seconds` from now."""

    request_id: str = text(1, MAX_ID)
    holder_id: str = text(1, MAX_ID)
    app_key: str = text(1, MAX_ID)
    lease_seconds: int


@attrs.frozen(kw_only=True)
class End:
    """lease.end: the app is no longer driven; after the grace it may be closed without asking this holder."""

    request_id: str = text(1, MAX_ID)
    holder_id: str = text(1, MAX_ID)
    app_key: str = text(1, MAX_ID)


@attrs.frozen(kw_only=True)
class CanCloseReply:
    """lease.can_close.reply, under the id of the request (LP-10); extend_lease needs `lease_seconds`."""

    request_id: str = text(1, MAX_ID)
    holder_id: str = text(1, MAX_ID)
    app_key: str = text(1, MAX_ID)
    result: Literal["allow_close", "extend_lease"]
    lease_seconds: int | None = absent()


# -- from the server -----------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class ReadyLimits:
    """The published limits (LP-8 and wire.md, quotas); seconds may have fractions where the owner scaled
    them.
    """

    min_lease_seconds: float
    max_lease_seconds: float
    grace_seconds: float
    close_check_timeout_seconds: float
    close_check_cooldown_seconds: float
    max_frame_bytes: int
    max_leases_per_holder: int
    max_holders: int
    max_connections_per_holder: int
    messages_per_second: int


@attrs.frozen(kw_only=True)
class Ready:
    """session.ready: the session stands, business messages are welcome (LP-3)."""

    protocol_version: int = PROTOCOL_VERSION
    holder_id: str
    limits: ReadyLimits


@attrs.frozen(kw_only=True)
class SessionError:
    """session.error: there is no session (LP-5); the connection closes after it."""

    code: HandshakeCode
    message: str


@attrs.frozen(kw_only=True)
class Response:
    """lease.response (LP-6): the answer to a business message.

    `request_id` is null when the line could not be read.  A code other than accepted comes with
    `message`; accepted with the holder and the app, and for a granted lease with its seconds and its
    times (RFC 3339 UTC), of which an accepted end has only `grace_ends_at` and an allow none.
    """

    request_id: str | None
    code: Code
    message: str | None = absent()
    holder_id: str | None = absent()
    app_key: str | None = absent()
    lease_seconds: int | None = absent()
    expires_at: str | None = absent()
    grace_ends_at: str | None = absent()


@attrs.frozen(kw_only=True)
class CanCloseRequest:
    """lease.can_close.request, pushed: may the app be closed?  (LP-9)"""

    request_id: str
    holder_id: str
    app_key: str
    timeout_seconds: float


# -- actions -------------------------------------------------------------------------------------------

BusinessMessage: TypeAlias = "Begin | Renew | End | CanCloseReply"
ClientMessage: TypeAlias = "Hello | Begin | Renew | End | CanCloseReply"
ServerMessage: TypeAlias = "Ready | SessionError | Response | CanCloseRequest"

HELLO = "session.hello"
BUSINESS_ACTIONS: Mapping[str, type[BusinessMessage]] = {
    "lease.begin": Begin,
    "lease.renew": Renew,
    "lease.end": End,
    "lease.can_close.reply": CanCloseReply,
}
SERVER_ACTIONS: Mapping[str, type[ServerMessage]] = {
    "session.ready": Ready,
    "session.error": SessionError,
    "lease.response": Response,
    "lease.can_close.request": CanCloseRequest,
}
_ACTIONS: Mapping[type, str] = {
    Hello: HELLO,
    **{message: action for table in (BUSINESS_ACTIONS, SERVER_ACTIONS) for action, message in table.items()},
}


def action_of(message: type) -> str:
    """The action of a message class."""
    return _ACTIONS[message]


def encode_message(message: ClientMessage | ServerMessage) -> bytes:
    """A message as the payload of a frame, `action` first."""
    members = unstructure(message)
    if not isinstance(members, dict):
        raise OurError(f"not a message: {type(message).__name__}")
    return encode({"action": action_of(type(message)), **members})


def message_schema(message: type) -> JSONObject:
    """The JSON Schema of a message with its action."""
    schema = json_schema(message, unknown="ignore")
    properties, required = schema["properties"], schema["required"]
    assert isinstance(properties, dict)
    assert isinstance(required, list)
    action: JSONObject = {"const": action_of(message)}
    return {**schema, "properties": {"action": action, **properties}, "required": ["action", *required]}
