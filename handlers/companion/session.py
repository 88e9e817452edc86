"""session.hello and session.authenticate (companion.md, Session).

An unknown client, a wrong key and a revoked client are told apart by nothing: the same error, after the same
work, with the same delay.  The delay grows with the failures of the peer's process, whatever connection it
comes by.
"""

from __future__ import annotations

import hashlib
import hmac

import attrs

from handlers.companion.calls import paired
from handlers.companion.rows import FAILURES, Client, Failures
from handlers.companion.settings import access_enabled
from handlers.connections import CONNECTIONS, Connection, caller
from handlers.events import Call, Closed, Reply
from handlers.policy import MINUTE
from handlers.rule import Draft, Due, Now
from protocols.companion.messages import (
    PROTOCOL_VERSION,
    Authenticate,
    AuthenticateResult,
    Hello,
    HelloResult,
    Implementation,
)
from protocols.json_values import JSONObject
from protocols.refusal import ErrorCode, Refused

MAX_FAILURES = 3
"""The failure of a session that ends it."""
FORGOTTEN_AFTER_MS = 10 * MINUTE
_FIRST_DELAY_MS = 100
_LONGEST_DELAY_MS = 10_000
_NO_KEY = "0" * 64
"""What is compared with where there is no client: no key has this digest."""


def hello(draft: Draft, call: Call[Hello], now: Now) -> None:
    """Agree on the protocol version, or refuse explicitly (CP-7.1)."""
    environment = draft.environment
    if PROTOCOL_VERSION not in call.message.protocol_versions:
        details: JSONObject = {"field": "protocolVersions", "reason": "no common version"}
        no = Refused(ErrorCode.INVALID_PARAMS, "no common protocol version", details, closes=True)
        draft.effect(Reply(call.ref, no))
        return
    result = HelloResult(
        protocol_version=PROTOCOL_VERSION,
        runtime_instance_id=environment.runtime_instance_id,
        implementation=Implementation(
            name=environment.implementation_name, version=environment.implementation_version
        ),
        access_enabled=access_enabled(draft),
    )
    draft.effect(Reply(call.ref, result))


def authenticate(draft: Draft, call: Call[Authenticate], now: Now) -> None:
    """Check a client's key; from here on the connection's row says who it is."""
    connection = caller(draft, call.ref)
    if connection is None:
        return
    delay_ms = _delay(draft, connection)
    body = _judge(draft, connection, call.message)
    if isinstance(body, AuthenticateResult):
        draft.put(CONNECTIONS, attrs.evolve(connection, client_id=body.client_id))
    elif body.code is ErrorCode.UNAUTHENTICATED:
        _count_failure(draft, _process_key(connection), now)
        failures = _count_failure(draft, _connection_key(connection.number), now)
        body = attrs.evolve(body, closes=failures >= MAX_FAILURES)
    draft.effect(Reply(call.ref, body, delay_ms))


def forget(draft: Draft, event: Due, now: Now) -> None:
    """Failures that are long past count no more."""
    draft.drop(FAILURES, event.key)


def closed(draft: Draft, event: Closed, now: Now) -> None:
    """The failures of a session end with it; those of its process do not."""
    draft.drop(FAILURES, _connection_key(event.connection))


def _judge(draft: Draft, connection: Connection, claim: Authenticate) -> AuthenticateResult | Refused:
    if not access_enabled(draft):
        return Refused(ErrorCode.RUNTIME_UNAVAILABLE, "external access is off", {"reason": "access_off"})
    client = paired(draft, claim.client_id)
    if not _proves(claim.key, client) or client is None:
        return Refused(ErrorCode.UNAUTHENTICATED, "unknown client or wrong key")
    limit = draft.environment.policy.limits.max_connections_per_client
    others = [row for row in draft.find(CONNECTIONS, "client", client.id) if row.number != connection.number]
    if len(others) >= limit:
        details: JSONObject = {"reason": "maxConnectionsPerClient", "limit": limit, "retryAfterMs": 1_000}
        return Refused(ErrorCode.RATE_LIMITED, "too many connections of this client", details)
    return AuthenticateResult(client_id=client.id, label=client.label, scopes=client.scopes)


def _proves(key: str, client: Client | None) -> bool:
    """Whether the key is the client's: the same work for every outcome, in constant time on bytes."""
    stored = _NO_KEY if client is None else client.key_sha256
    claimed = hashlib.sha256(key.encode()).hexdigest()
    same = hmac.compare_digest(claimed.encode(), stored.encode())
    return same and client is not None


def _delay(draft: Draft, connection: Connection) -> int:
    failures = draft.get(FAILURES, _process_key(connection))
    if failures is None:
        return 0
    return min(_FIRST_DELAY_MS << min(failures.count - 1, 10), _LONGEST_DELAY_MS)


def _count_failure(draft: Draft, peer: str, now: Now) -> int:
    before = draft.get(FAILURES, peer)
    count = 1 if before is None else before.count + 1
    draft.put(FAILURES, Failures(peer, count, now.elapsed + FORGOTTEN_AFTER_MS))
    return count


def _process_key(connection: Connection) -> str:
    process = connection.process
    if process is None:
        return f"peer of connection {connection.number}"
    return f"process {process.pid} {process.started}"


def _connection_key(number: int) -> str:
    return f"connection {number}"
