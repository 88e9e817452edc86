"""Paired clients for the owner's tools: listing them, and taking rights away."""

from __future__ import annotations

from collections import Counter

from handlers.companion import clients
from handlers.companion.mutes import muted_until
from handlers.companion.rows import CLIENTS, REQUESTS, Client
from handlers.connections import CONNECTIONS
from handlers.events import Call, Reply
from handlers.rule import Draft, Now
from protocols.control.clients import (
    ClientList,
    ListClients,
    ListedClient,
    NarrowClient,
    NarrowedClient,
    RevokeClient,
)
from protocols.control.messages import Done
from protocols.control.pages import fitting
from protocols.refusal import ErrorCode, Refused
from protocols.timestamps import rfc3339

_UNKNOWN = Refused(ErrorCode.NOT_FOUND, "no such client")


def list_clients(draft: Draft, call: Call[ListClients], now: Now) -> None:
    """Answer clients.list; the cursor is the place of the last client told."""
    after = call.message.cursor or ""
    paired = [client for client in draft.all(CLIENTS) if not client.revoked and _place(client) > after]
    paired.sort(key=_place)
    unfinished = Counter(request.client_id for request in draft.all(REQUESTS) if not request.ended)
    page = fitting((_listed(draft, client, unfinished) for client in paired), call.message.limit)
    more = len(page) < len(paired)
    cursor = _place(paired[len(page) - 1]) if more else None
    draft.effect(Reply(call.ref, ClientList(clients=page, next_cursor=cursor)))


def revoke(draft: Draft, call: Call[RevokeClient], now: Now) -> None:
    """Answer clients.revoke (CP-4.14)."""
    found = clients.revoke(draft, call.message.client_id, now)
    draft.effect(Reply(call.ref, Done() if found else _UNKNOWN))


def narrow(draft: Draft, call: Call[NarrowClient], now: Now) -> None:
    """Answer clients.narrow."""
    asked = call.message
    if not clients.narrow(draft, asked.client_id, asked.scopes, now):
        draft.effect(Reply(call.ref, _UNKNOWN))
        return
    client = draft.get(CLIENTS, asked.client_id)
    assert client is not None  # it has just been narrowed
    draft.effect(Reply(call.ref, NarrowedClient(scopes=client.scopes)))


def _place(client: Client) -> str:
    """Where a client stands in the list, as a text that sorts so."""
    return f"{client.created_at:016d} {client.id}"


def _listed(draft: Draft, client: Client, unfinished: Counter[str]) -> ListedClient:
    return ListedClient(
        client_id=client.id,
        label=client.label,
        scopes=client.scopes,
        created_at=rfc3339(client.created_at),
        connections=len(draft.find(CONNECTIONS, "client", client.id)),
        open_requests=unfinished[client.id],
        muted_until=muted_until(client),
    )
