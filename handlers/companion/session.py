"""session.hello, session.authenticate and session.rotate_key (companion.md, Session; docs/authentication.md).

An unknown client, a wrong key and a revoked client are told apart by nothing: the same error, after the same
work, with the same delay.  The delay grows with the failures of the peer's process, whatever connection it
comes by.
"""

from __future__ import annotations

import attrs

from handlers.companion.calls import declined, for_client, paired
from handlers.companion.clients import end_sessions
from handlers.companion.host import is_host
from handlers.companion.keys import has_digest, new_key
from handlers.companion.rows import CLIENTS, FAILURES, Client, Failures
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
    RotatedKey,
    RotateKey,
)
from protocols.json_values import JSONObject
from protocols.refusal import ErrorCode, Refused

MAX_FAILURES = 3
"""The failure of a session that ends it."""
FORGOTTEN_AFTER_MS = 10 * MINUTE
_FIRST_DELAY_MS = 100
_LONGEST_DELAY_MS = 10_000


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


@for_client
def rotate_key(draft: Draft, client: Client, call: Call[RotateKey], now: Now) -> RotatedKey:
    """Another key for the client: both hold until the new one is used, so none that is lost locks anybody out.

    One that was asked for before and not used yet is worth nothing from here on.
    """
    if is_host(client.id):
        raise declined(ErrorCode.FORBIDDEN, "the host has no key")
    made = new_key(call.seed)
    draft.put(CLIENTS, attrs.evolve(client, next_key_sha256=made.sha256))
    return RotatedKey(client_id=client.id, key=made.key)


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
    held = has_digest(claim.key, None if client is None else client.key_sha256)
    asked_for = has_digest(claim.key, None if client is None else client.next_key_sha256)
    if client is None or not (held or asked_for):
        return Refused(ErrorCode.UNAUTHENTICATED, "unknown client or wrong key")
    if asked_for:
        _use_next_key(draft, client, connection)
    limit = draft.environment.policy.limits.max_connections_per_client
    others = [row for row in draft.find(CONNECTIONS, "client", client.id) if row.number != connection.number]
    if len(others) >= limit and not asked_for:
        details: JSONObject = {"reason": "maxConnectionsPerClient", "limit": limit, "retryAfterMs": 1_000}
        return Refused(ErrorCode.RATE_LIMITED, "too many connections of this client", details)
    return AuthenticateResult(client_id=client.id, label=client.label, scopes=client.scopes)


def _use_next_key(draft: Draft, client: Client, connection: Connection) -> None:
    """The client has its new key: the old one is dead, and so are the sessions that it has opened."""
    assert client.next_key_sha256 is not None
    draft.put(CLIENTS, attrs.evolve(client, key_sha256=client.next_key_sha256, next_key_sha256=None))
    end_sessions(draft, client.id, but=connection.number)


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
