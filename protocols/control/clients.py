"""The clients.* methods of the control protocol: who is paired, and taking rights away."""

from __future__ import annotations

import attrs

from protocols.companion.pairing import SCOPES, Scope
from protocols.control.pages import MAX_CURSOR, MAX_PAGE
from protocols.structure import array, integer, text

MAX_ID = 128


@attrs.frozen(kw_only=True)
class ListClients:
    """`clients.list`: the paired clients, oldest pairing first."""

    cursor: str | None = text(1, MAX_CURSOR, absent=True)
    limit: int = integer(1, MAX_PAGE, default=50)


@attrs.frozen(kw_only=True)
class ListedClient:
    """One paired client.  `label` is the name that it gave itself when it was paired (CP-5.6).

    `connections` and `open_requests` are of this instant; `muted_until` is RFC 3339, null: not muted.
    """

    client_id: str
    label: str
    scopes: tuple[str, ...]
    created_at: str
    connections: int
    open_requests: int
    muted_until: str | None


@attrs.frozen(kw_only=True)
class ClientList:
    """A page of clients; a page may be shorter than the limit, and null is the end."""

    clients: tuple[ListedClient, ...]
    next_cursor: str | None


@attrs.frozen(kw_only=True)
class RevokeClient:
    """`clients.revoke`: the client's key is worth nothing from here on (CP-4.14)."""

    client_id: str = text(1, MAX_ID)


@attrs.frozen(kw_only=True)
class NarrowClient:
    """`clients.narrow`: of the client's scopes only these remain; one that it does not have is not given."""

    client_id: str = text(1, MAX_ID)
    scopes: tuple[Scope, ...] = array(0, len(SCOPES))


@attrs.frozen(kw_only=True)
class NarrowedClient:
    """The scopes that the client has left."""

    scopes: tuple[str, ...]
