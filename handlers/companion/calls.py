"""How a call of an authenticated client is answered: with what its handler returns, or with what it declines.

    @for_client
    def get(draft, client, call, now) -> Snapshot: ...

The client is read anew at each call, so a revoked key and narrowed scopes count at once (companion.md,
Session). A handler that declines has not changed anything but what time alone has changed (a deadline that
was due).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from handlers.companion.host import host_client, is_host, speaks_for_host
from handlers.companion.rows import CLIENTS, Client
from handlers.connections import caller
from handlers.events import Call, Reply
from handlers.rule import Draft, Now
from protocols.errors import InvalidValue
from protocols.json_values import JSON
from protocols.jsonrpc_session import invalid_params
from protocols.refusal import ErrorCode, Refused

M = TypeVar("M")

UNAUTHENTICATED = Refused(ErrorCode.UNAUTHENTICATED, "not authenticated", closes=True)


class Declined(Exception):
    """A handler's no, on its way to the reply."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.code.value)
        self.refused = refused


def declined(code: ErrorCode, message: str, **details: JSON) -> Declined:
    """A no with this code; `details` go into the error's data."""
    return Declined(Refused(code, message, details))


def require_scopes(client: Client, *scopes: str) -> None:
    """Raise Declined unless the client has all of these scopes now (CP-5.3)."""
    for scope in scopes:
        if scope not in client.scopes:
            raise declined(ErrorCode.FORBIDDEN, "the client does not have the scope", scope=scope)


def for_client(
    handler: Callable[[Draft, Client, Call[M], Now], object | None],
) -> Callable[[Draft, Call[M], Now], None]:
    """A handler of calls from a handler of a client's calls; a None from it means that the reply comes
    later."""

    @wraps(handler)
    def answered(draft: Draft, call: Call[M], now: Now) -> None:
        body = _body(draft, call, now, handler)
        if body is not None:
            draft.effect(Reply(call.ref, body))

    return answered


def _body(
    draft: Draft, call: Call[M], now: Now, handler: Callable[[Draft, Client, Call[M], Now], object | None]
) -> object | None:
    client = client_of(draft, call)
    if client is None:
        return UNAUTHENTICATED
    try:
        return handler(draft, client, call, now)
    except Declined as no:
        return no.refused
    except InvalidValue as error:
        return invalid_params(error)


def client_of(draft: Draft, call: Call[M]) -> Client | None:
    """The host, or the paired client that a call's connection has authenticated as, unless it is revoked."""
    connection = caller(draft, call.ref)
    if connection is None:
        return None
    if speaks_for_host(connection):
        return host_client(draft)
    return None if connection.client_id is None else paired(draft, connection.client_id)


def paired(draft: Draft, client_id: str) -> Client | None:
    """The client with this id, unless it is revoked; the host is none, whatever stands in the table."""
    client = None if is_host(client_id) else draft.get(CLIENTS, client_id)
    return None if client is None or client.revoked else client
