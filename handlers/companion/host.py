"""The host that embeds the broker, as one client among the others (CP-1.3, CP-7.5).

Its calls come by a connection that no socket leads to, and take the way of every call: the same checks, the same
queue, the same life of a request.  What it is, is known by that connection's protocol alone.  It is paired with
nobody, so it stands in no table: no row can be it, no key proves to be it, and nothing can be taken from it.

What the person says of external programs (access off, pause) does not concern it.  That the companion is hidden
does, as does everything else that the person has set.
"""

from __future__ import annotations

from handlers.companion.rows import Client
from handlers.connections import Connection
from handlers.rule import Draft
from protocols.companion.pairing import SCOPES

HOST = "host"
"""The protocol of its connection, and the id under which its requests stand."""
HOST_CONNECTION = 0
"""The number of its connection; those of sockets count from 1."""


def host_client(draft: Draft) -> Client:
    """The host as a client: with every scope, and with a key that nobody has."""
    return Client(HOST, draft.environment.host_label, SCOPES, key_sha256="", created_at=0)


def is_host(client_id: str) -> bool:
    """Whether a request with this owner is the host's own."""
    return client_id == HOST


def speaks_for_host(connection: Connection) -> bool:
    """Whether the calls of a connection are the host's; what else its row says makes no difference."""
    return connection.protocol == HOST
