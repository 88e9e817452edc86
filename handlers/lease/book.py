"""The book of leases: every change of a lease's row, each one a step of the state machine (lease.md).

Nothing else writes leases.  A step that the table does not have raises before anything is changed.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from handlers.lease.rows import LEASES, RECEIPTS, Lease, Session, key_of, lease_key
from handlers.rule import Draft, Due, Now
from protocols.lease.states import LeaseEvent, LeaseState, step


def find(draft: Draft, holder_id: str, app_key: str) -> Lease | None:
    """What a holder has, or had within the last hour, on an app key."""
    return draft.get(LEASES, lease_key(holder_id, app_key))


def in_scope(draft: Draft, app_key: str, base_key: str) -> list[Lease]:
    """The leases that have not ended and stand in the way of closing the app: for a base key the union with
    its variants', for a variant its own.
    """
    leases: Iterable[Lease] = draft.find(LEASES, "base", base_key)
    return sorted((x for x in leases if app_key in (base_key, x.app_key)), key=lambda lease: lease.holder_id)


@attrs.frozen
class Grant:
    """What a begin, renew or extend asks for, checked: by whom, on which app, for how long."""

    event: LeaseEvent
    session: Session
    app_key: str
    base_key: str
    lease_seconds: int


def granted(draft: Draft, old: Lease | None, grant: Grant, now: Now) -> Lease:
    """The row of a grant, not yet put.

    A begin on a lease that is active keeps the later of the two ends; renew and extend set theirs.
    """
    state = step(LeaseState.ENDED if old is None else old.state, grant.event)
    lease_seconds, expires_at = grant.lease_seconds, now.awake + grant.lease_seconds * 1000
    running = old is not None and old.state is LeaseState.ACTIVE and grant.event is LeaseEvent.BEGIN
    if running and old is not None and old.expires_at > expires_at:
        lease_seconds, expires_at = old.lease_seconds, old.expires_at
    return Lease(
        holder_id=grant.session.holder_id,
        app_key=grant.app_key,
        base_key=grant.base_key,
        process=grant.session.process,
        client_name=grant.session.client_name,
        boot_id=draft.environment.boot_id,
        state=state,
        lease_seconds=lease_seconds,
        expires_at=expires_at,
        grace_ends_at=expires_at + draft.environment.policy.lease.grace_ms,
        accepted=0 if old is None else old.accepted,
    )


def moved(draft: Draft, lease: Lease, event: LeaseEvent, now: Now) -> Lease:
    """The row after any other event, not yet put."""
    policy = draft.environment.policy.lease
    state = step(lease.state, event)
    after = attrs.evolve(lease, state=state, died=lease.died or event is LeaseEvent.HOLDER_DIED)
    if lease.state is LeaseState.ACTIVE and state is not LeaseState.ACTIVE:
        # The grace runs from the end of the active time, however late that end was noticed.
        ended_at = min(lease.expires_at, now.awake)
        after = attrs.evolve(after, expires_at=ended_at, grace_ends_at=ended_at + policy.grace_ms)
    if state is LeaseState.ENDED:
        after = attrs.evolve(after, forget_at=now.awake + policy.receipt_ms)
    return after


def move(draft: Draft, lease: Lease, event: LeaseEvent, now: Now) -> Lease:
    """Change a lease by an event."""
    return draft.put(LEASES, moved(draft, lease, event, now))


def due(draft: Draft, event: Due, now: Now) -> None:
    """The time of a lease's state is over."""
    lease = draft.get(LEASES, event.key)
    if lease is None:
        return
    if lease.state is LeaseState.ENDED:
        forget(draft, lease)
    else:
        active = lease.state is LeaseState.ACTIVE
        move(draft, lease, LeaseEvent.EXPIRE if active else LeaseEvent.GRACE_OVER, now)


def forget(draft: Draft, lease: Lease) -> None:
    """Drop an ended lease and the receipts of what was ever accepted about it."""
    for receipt in draft.find(RECEIPTS, "lease", key_of(lease)):
        draft.drop(RECEIPTS, RECEIPTS.key(receipt))
    draft.drop(LEASES, key_of(lease))
