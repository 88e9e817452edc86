"""The calls of an asker: pairing.request, pairing.wait and pairing.cancel (companion.md, Pairing).

A pairing belongs to the connection that asked; to every other one it does not exist.  What was shown is what is
granted (G10): the question is fixed when it is asked, and a connection has one open pairing at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from handlers.companion import pairing_lifecycle
from handlers.companion.calls import Declined, declined
from handlers.companion.names import check_name, is_in_use, is_reserved
from handlers.companion.pairing_rows import PAIRING_PARKS, PAIRINGS, Pairing
from handlers.companion.settings import access_enabled, settings
from handlers.connections import caller
from handlers.events import Call, Closed, Sent, Started
from handlers.presenter import showing
from handlers.routes import Routes
from handlers.rule import Draft, Now, derive, new_id
from protocols.companion.pairing import (
    SCOPES,
    PairingCancel,
    PairingCancelled,
    PairingOutcome,
    PairingRequest,
    PairingRequested,
    PairingWait,
    RetentionNotice,
)
from protocols.errors import InvalidValue
from protocols.jsonrpc_session import invalid_params
from protocols.refusal import ErrorCode
from protocols.timestamps import rfc3339

OPEN_MS = 300_000
"""How long a pairing waits for the person's decision, and for the asker to fetch the key."""

M = TypeVar("M")


def _answered(
    handler: Callable[[Draft, Call[M], Now], object | None],
) -> Callable[[Draft, Call[M], Now], None]:
    """A handler of calls from one that returns its answer; a None means that the reply comes later."""

    @wraps(handler)
    def answered(draft: Draft, call: Call[M], now: Now) -> None:
        try:
            body = handler(draft, call, now)
        except Declined as no:
            body = no.refused
        except InvalidValue as error:
            body = invalid_params(error)
        if body is not None:
            pairing_lifecycle.tell(draft, call.ref, body)

    return answered


@_answered
def request(draft: Draft, call: Call[PairingRequest], now: Now) -> PairingRequested | None:
    """Put the question on the screen, if there is a person to ask (CP-5.6)."""
    asked = call.message
    connection = caller(draft, call.ref)
    if connection is None:
        return None
    _check_name(draft, asked.client_name)
    _check_available(draft)
    _check_place(draft, connection.number, now)
    pairing = Pairing(
        id=new_id(call.seed, "pairing"),
        connection=connection.number,
        client_name=asked.client_name,
        name_in_use=is_in_use(draft, asked.client_name),
        scopes=tuple(scope for scope in SCOPES if scope in asked.scopes),
        purpose=asked.purpose,
        program=connection.program,
        pid=connection.pid,
        code=_verification_code(call.seed),
        deadline=now.elapsed + OPEN_MS,
        expires_at=now.wall + OPEN_MS,
    )
    for ended in draft.find(PAIRINGS, "connection", str(connection.number)):
        pairing_lifecycle.forget(draft, ended)
    showing.show_pairing(draft, draft.put(PAIRINGS, pairing), now)
    return _requested(draft, pairing)


@_answered
def wait(draft: Draft, call: Call[PairingWait], now: Now) -> PairingOutcome | None:
    """The decision at once where there is one, or the call is parked until it comes."""
    limit = draft.environment.policy.limits.max_wait_ms
    if call.message.wait_ms > limit:
        raise InvalidValue("waitMs", "too large", limit)
    pairing = _own(draft, call.ref.connection, call.message.pairing_id, now)
    if pairing.status == "pending" and call.message.wait_ms > 0:
        pairing_lifecycle.park(draft, pairing, call.ref, now.elapsed + call.message.wait_ms)
        return None
    return pairing_lifecycle.outcome(draft, pairing, call.seed)


@_answered
def cancel(draft: Draft, call: Call[PairingCancel], now: Now) -> PairingCancelled:
    """Take the question back; one that has ended, and a key that was handed over, stay as they are."""
    pairing = _own(draft, call.ref.connection, call.message.pairing_id, now)
    if pairing.open:
        pairing = pairing_lifecycle.end(draft, pairing, "cancelled")
    return PairingCancelled(status=pairing.status)


def _own(draft: Draft, connection: int, pairing_id: str, now: Now) -> Pairing:
    pairing = pairing_lifecycle.current(draft, pairing_id, now)
    if pairing is None or pairing.connection != connection:
        raise declined(ErrorCode.NOT_FOUND, "no such pairing")
    return pairing


def _requested(draft: Draft, pairing: Pairing) -> PairingRequested:
    retention = draft.environment.policy.retention
    return PairingRequested(
        pairing_id=pairing.id,
        verification_code=pairing.code,
        expires_at=rfc3339(pairing.expires_at),
        retention=RetentionNotice(hours=retention.hours, tombstone_days=retention.tombstone_days),
    )


# -- the door ----------------------------------------------------------------------------------------------


def _check_name(draft: Draft, name: str) -> None:
    check_name(name, "clientName")
    if is_reserved(draft, name):
        raise InvalidValue("clientName", "reserved")


def _check_place(draft: Draft, connection: int, now: Now) -> None:
    """One open pairing a connection, a few in all; those that are open stay untouched."""
    pairings = [pairing for pairing in draft.all(PAIRINGS) if pairing.open]
    own = [pairing for pairing in pairings if pairing.connection == connection]
    full = len(pairings) >= draft.environment.policy.limits.max_pending_pairings
    if own or full:
        retry_after_ms = max(0, min(pairing.deadline for pairing in own or pairings) - now.elapsed)
        raise declined(
            ErrorCode.RATE_LIMITED,
            "a pairing is open already",
            reason="pairings",
            retryAfterMs=retry_after_ms,
        )


def _check_available(draft: Draft) -> None:
    """Nobody is asked who does not want to be asked, or is not there."""
    said = settings(draft)
    presenter = showing.link(draft)
    if not access_enabled(draft):
        raise _unavailable("access_off")
    if said.hidden or said.paused:
        raise _unavailable("hidden" if said.hidden else "paused")
    if presenter is None or not presenter.person:
        raise _unavailable("no_presenter")


def _unavailable(reason: str) -> Declined:
    return declined(ErrorCode.RUNTIME_UNAVAILABLE, "nobody can be asked now", reason=reason)


def _verification_code(seed: bytes) -> str:
    """Six digits that the person compares on both screens."""
    return f"{int.from_bytes(derive(seed, 'verification code')) % 1_000_000:06d}"


ROUTES = Routes(
    tables=(PAIRINGS, PAIRING_PARKS),
    calls={PairingRequest: request, PairingWait: wait, PairingCancel: cancel},
    due={
        PAIRINGS.name: pairing_lifecycle.deadline,
        PAIRING_PARKS.name: pairing_lifecycle.wait_over,
    },
    facts={
        Closed: (pairing_lifecycle.closed,),
        Sent: (pairing_lifecycle.sent,),
        Started: (pairing_lifecycle.started,),
    },
    settle=(pairing_lifecycle.deny_when_tightened,),
)
