"""Leases for people: the holders in an answer of may_close, and the pages of leases.list (lease.md)."""

from __future__ import annotations

from typing import Literal

from handlers.events import Call, Reply
from handlers.lease.apps import base_key
from handlers.lease.book import in_scope
from handlers.lease.rows import LEASES, Lease, key_of
from handlers.rule import Draft, Now
from protocols.control.leases import (
    MAX_HOLDERS,
    Holder,
    LeaseList,
    ListedLease,
    ListLeases,
    WireState,
)
from protocols.control.pages import fitting
from protocols.lease.states import LeaseState
from protocols.timestamps import rfc3339

_WIRE_STATES: dict[LeaseState, WireState] = {
    LeaseState.ACTIVE: "active",
    LeaseState.GRACE: "grace",
    LeaseState.ENDING: "grace",
    LeaseState.EXPIRED: "expired",
}


def wire_state(lease: Lease) -> WireState:
    """The state of a lease that lives, as it is told."""
    return _WIRE_STATES[lease.state]


def shown_time(awake_ms: int, now: Now) -> str:
    """An instant of awake time as the wall clock will show it, if the machine does not sleep until then."""
    return rfc3339(now.wall + awake_ms - now.awake)


def holders_of(draft: Draft, app_key: str, now: Now) -> tuple[tuple[Holder, ...], int]:
    """The holders that a frame can show, and how many there are."""
    base = base_key(draft.environment.policy.apps, app_key)
    leases = [] if base is None else in_scope(draft, app_key, base)
    return fitting((_holder(lease, now) for lease in leases), MAX_HOLDERS), len(leases)


def _holder(lease: Lease, now: Now) -> Holder:
    return Holder(
        holder_id=lease.holder_id,
        client_name=lease.client_name,
        pid=lease.process.pid,
        state=wire_state(lease),
        expires_at=shown_time(lease.expires_at, now),
    )


def list_leases(draft: Draft, call: Call[ListLeases], now: Now) -> None:
    """Answer leases.list; the cursor is the key of the last lease told."""
    after = call.message.cursor or ""
    leases = sorted(
        (lease for lease in draft.all(LEASES) if lease.lives and key_of(lease) > after), key=key_of
    )
    page = fitting((_listed(lease, now) for lease in leases), call.message.limit)
    more = len(page) < len(leases)
    cursor = key_of(leases[len(page) - 1]) if more else None
    draft.effect(Reply(call.ref, LeaseList(leases=page, next_cursor=cursor)))


def _listed(lease: Lease, now: Now) -> ListedLease:
    return ListedLease(
        app_key=lease.app_key,
        holder_id=lease.holder_id,
        client_name=lease.client_name,
        pid=lease.process.pid,
        state=wire_state(lease),
        reason=reason_of(lease),
        lease_seconds=lease.lease_seconds,
        expires_at=shown_time(lease.expires_at, now),
        grace_ends_at=shown_time(lease.grace_ends_at, now),
    )


def reason_of(lease: Lease) -> Literal["expired", "ended", "holder_died"] | None:
    """Why a lease that is in grace is so."""
    if lease.state is LeaseState.ENDING:
        return "holder_died" if lease.died else "ended"
    return "expired" if lease.state is LeaseState.GRACE else None
