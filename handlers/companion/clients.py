"""Taking rights from a paired client: what is open ends at once (CP-4.14, companion.md, Requests)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import attrs

from handlers.companion import waits, wiping
from handlers.companion.calls import UNAUTHENTICATED
from handlers.companion.lifecycle import finish
from handlers.companion.rows import CLIENTS, REQUESTS, WAITS, Request, capability_of
from handlers.connections import CONNECTIONS
from handlers.events import Hangup
from handlers.rule import Draft, Now
from protocols.companion.states import Step

_REVOKED = attrs.evolve(UNAUTHENTICATED, closes=False)
"""Every wait of a connection is told; what closes it comes behind the last of them."""


def revoke(draft: Draft, client_id: str, now: Now) -> bool:
    """The client's key is worth nothing from here on; False when there is no such client or it is revoked.

    Its waits get UNAUTHENTICATED, its unfinished requests are cancelled/key_revoked, its sessions end, and
    everything that is kept of it is wiped (`handlers.companion.wiping`).
    """
    client = draft.get(CLIENTS, client_id)
    if client is None or client.revoked:
        return False
    draft.put(CLIENTS, attrs.evolve(client, revoked=True))
    end_sessions(draft, client_id)
    for request in _unfinished(draft, client_id):
        finish(draft, request, now, Step.CANCEL, "key_revoked")
    wiping.begin(draft, client_id)
    return True


def end_sessions(draft: Draft, client_id: str, but: int | None = None) -> None:
    """Every wait of a client's sessions gets UNAUTHENTICATED, then they are closed; all but one, if it is named."""
    for connection in draft.find(CONNECTIONS, "client", client_id):
        if connection.number != but:
            for wait in draft.find(WAITS, "connection", str(connection.number)):
                waits.answer(draft, wait, _REVOKED)
            draft.effect(Hangup(connection.number))


def narrow(draft: Draft, client_id: str, scopes: Collection[str], now: Now) -> bool:
    """Only these of the client's scopes remain; False when there is no such client or it is revoked.

    Unfinished work of a scope that it lost is cancelled/scope_revoked; get and wait go on.
    """
    client = draft.get(CLIENTS, client_id)
    if client is None or client.revoked:
        return False
    remaining = tuple(scope for scope in client.scopes if scope in scopes)
    if remaining != client.scopes:
        draft.put(CLIENTS, attrs.evolve(client, scopes=remaining))
    for request in _unfinished(draft, client_id):
        if not set(capability_of(draft, request).required_scopes) <= set(remaining):
            finish(draft, request, now, Step.CANCEL, "scope_revoked")
    return True


def _unfinished(draft: Draft, client_id: str) -> Sequence[Request]:
    return [
        request for request in draft.all(REQUESTS) if request.client_id == client_id and not request.ended
    ]
