"""What the person may see of what is going on: who asks and where it stands, not what it says."""

from __future__ import annotations

from itertools import accumulate
from typing import TypeVar

from handlers.companion.mutes import muted_until
from handlers.companion.pairing_rows import PAIRINGS
from handlers.companion.rows import CLIENTS, REQUESTS
from handlers.connections import CONNECTIONS
from handlers.events import Call, Reply
from handlers.presenter.pictures import label_of
from handlers.rule import Draft, Now
from protocols.errors import InvalidValue
from protocols.jsonrpc_session import invalid_params
from protocols.presenter.messages import ClientItem, List, Listing, PendingItem
from protocols.strict_json import encode
from protocols.structure import unstructure
from protocols.text import neutralize
from protocols.timestamps import rfc3339

MAX_BYTES = 60_000
"""What an answer may take of a frame; a longer list ends early."""

ItemT = TypeVar("ItemT", PendingItem, ClientItem)


def list_(draft: Draft, call: Call[List], now: Now) -> None:
    """The pending requests and pairings, or the paired clients."""
    what = call.message.what
    if what == "inbox":
        body: object = invalid_params(InvalidValue("what", "not available"))
    elif what == "clients":
        body = Listing(clients=_that_fit(_clients(draft)))
    else:
        body = Listing(pending=_that_fit(_pairings(draft, now) + _requests(draft, now)))
    draft.effect(Reply(call.ref, body))


def _that_fit(items: list[ItemT]) -> tuple[ItemT, ...]:
    sizes = accumulate(len(encode(unstructure(item))) + 1 for item in items)
    return tuple(item for item, size in zip(items, sizes, strict=True) if size <= MAX_BYTES)


def _pairings(draft: Draft, now: Now) -> list[PendingItem]:
    return [
        PendingItem(
            pairing_id=pairing.id,
            state=pairing.status,
            label=neutralize(pairing.client_name, multiline=False),
            remaining_ms=max(0, pairing.deadline - now.elapsed),
        )
        for pairing in draft.all(PAIRINGS)
        if pairing.status == "pending"
    ]


def _requests(draft: Draft, now: Now) -> list[PendingItem]:
    open_requests = [request for request in draft.all(REQUESTS) if not request.ended]
    return [
        PendingItem(
            request_id=request.id,
            state=request.state.value,
            label=neutralize(label_of(draft, request), multiline=False),
            capability=request.resolved_capability,
            remaining_ms=max(0, request.deadline - now.elapsed),
        )
        for request in sorted(open_requests, key=lambda row: row.order)
    ]


def _clients(draft: Draft) -> list[ClientItem]:
    paired = [client for client in draft.all(CLIENTS) if not client.revoked]
    return [
        ClientItem(
            client_id=client.id,
            label=neutralize(client.label, multiline=False),
            scopes=client.scopes,
            created_at=rfc3339(client.created_at),
            connected=bool(draft.find(CONNECTIONS, "client", client.id)),
            muted_until=muted_until(client),
        )
        for client in sorted(paired, key=lambda row: (row.created_at, row.id))
    ]
