"""The monitor of the control protocol: live events about everything, and the content of nothing.

`monitor` is answered once; from then on each stored change comes as the notification `event`, until the
connection ends.  Events name things by their ids and tell states and reasons.  What clients and people wrote
(titles, texts, answers, names, purposes, keys, verification codes) is never in them (CP-4.10, CP-5.9).

| kind | members | state |
|---|---|---|
| request | requestId, clientId, capability, revision, reason? | as in its snapshot |
| client | clientId, scopes | paired, narrowed, muted, unmuted, revoked, removed |
| pairing | pairingId, connection | pending, approved, denied, expired, cancelled |
| connection | connection, protocol, pid?, clientId? | opened, authenticated, closed |
| presenter | connection | ready, gone |
| settings | | hidden, shown, paused, resumed, access_on, access_off, changed |
| records | | clearing, cleared (those of all ended requests, to the last byte) |
| lease | appKey, holderId, reason? | active, grace, expired, ended |
| close_check | appKey | asked, over |
| quit | appKey | committed, over |
"""

from __future__ import annotations

from typing import Literal

import attrs

from protocols.structure import absent


@attrs.frozen(kw_only=True)
class Monitor:
    """`monitor`: tell this connection of every change from here on."""


Kind = Literal[
    "request",
    "client",
    "pairing",
    "connection",
    "presenter",
    "settings",
    "records",
    "lease",
    "close_check",
    "quit",
]


@attrs.frozen(kw_only=True)
class Event:
    """The notification `event`; which members go with which kind is in the module header.

    `at` is when it was decided, RFC 3339; it is sent once it is stored.
    """

    at: str
    kind: Kind
    state: str
    reason: str | None = absent()
    request_id: str | None = absent()
    client_id: str | None = absent()
    capability: str | None = absent()
    revision: int | None = absent()
    scopes: tuple[str, ...] | None = absent()
    pairing_id: str | None = absent()
    connection: int | None = absent()
    protocol: str | None = absent()
    pid: int | None = absent()
    app_key: str | None = absent()
    holder_id: str | None = absent()
