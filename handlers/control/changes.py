"""What a decision has changed, told as events: ids, states and reasons, never what anybody has written.

One short function a table gives the state that has changed between two rows, None where nothing has that
concerns anybody (a lease's count of receipts, the parts of a pairing).
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from handlers.companion.pairing_rows import PAIRINGS, Pairing
from handlers.companion.rows import CLIENTS, REQUESTS, SETTINGS, Client, Settings
from handlers.companion.wiping import CLEARED, WIPES
from handlers.connections import CONNECTIONS, Connection
from handlers.lease.listing import reason_of, wire_state
from handlers.lease.rows import CHECKS, LEASES, QUIT_MARKS, Lease
from handlers.presenter.rows import LINK
from handlers.rule import Draft, Now
from protocols.control.monitor import Event
from protocols.timestamps import rfc3339


def events(draft: Draft, now: Now) -> Iterator[Event]:
    """The draft's changes so far, as `protocols/control/monitor.py` lists them."""
    at = rfc3339(now.wall)
    yield from _connections(draft, at)
    yield from _presenter(draft, at)
    yield from _settings(draft, at)
    yield from _clients(draft, at)
    yield from _pairings(draft, at)
    yield from _requests(draft, at)
    yield from _records(draft, at)
    yield from _leases(draft, at)
    yield from _quits(draft, at)


def _connections(draft: Draft, at: str) -> Iterator[Event]:
    for before, after in draft.changes(CONNECTIONS):
        row, state = after or before, _connection_state(before, after)
        if row is not None and state is not None:
            yield Event(
                at=at,
                kind="connection",
                state=state,
                connection=row.number,
                protocol=row.protocol,
                pid=row.pid,
                client_id=row.client_id,
            )


def _connection_state(before: Connection | None, after: Connection | None) -> str | None:
    if before is None:
        return "opened"
    if after is None:
        return "closed"
    return "authenticated" if after.client_id != before.client_id else None


def _presenter(draft: Draft, at: str) -> Iterator[Event]:
    for before, after in draft.changes(LINK):
        link = after or before
        if link is not None:
            state = "gone" if after is None else "ready"
            yield Event(at=at, kind="presenter", state=state, connection=link.connection)


def _settings(draft: Draft, at: str) -> Iterator[Event]:
    for before, after in draft.changes(SETTINGS):
        for state in _settings_states(before or Settings(), after or Settings()):
            yield Event(at=at, kind="settings", state=state)


def _settings_states(before: Settings, after: Settings) -> Iterator[str]:
    if after.hidden != before.hidden:
        yield "hidden" if after.hidden else "shown"
    if after.paused != before.paused:
        yield "paused" if after.paused else "resumed"
    if after.access != before.access:
        yield "access_on" if after.access else "access_off"
    if _chosen(before) != _chosen(after):
        yield "changed"


def _chosen(said: Settings) -> Settings:
    """What the person has chosen, without what is told on its own."""
    return attrs.evolve(said, access=None, hidden=False, paused=False, revision=0)


def _clients(draft: Draft, at: str) -> Iterator[Event]:
    for before, after in draft.changes(CLIENTS):
        client, state = after or before, _client_state(before, after)
        if client is not None and state is not None:
            yield Event(at=at, kind="client", state=state, client_id=client.id, scopes=client.scopes)


def _client_state(before: Client | None, after: Client | None) -> str | None:
    if before is None:
        return "paired"
    if after is None:
        return "removed"
    if after.revoked != before.revoked:
        return "revoked"
    if after.scopes != before.scopes:
        return "narrowed"
    if after.mute != before.mute:
        return "unmuted" if after.mute is None else "muted"
    return None


def _pairings(draft: Draft, at: str) -> Iterator[Event]:
    for before, after in draft.changes(PAIRINGS):
        pairing, state = after or before, _pairing_state(before, after)
        if pairing is not None and state is not None:
            yield Event(
                at=at, kind="pairing", state=state, pairing_id=pairing.id, connection=pairing.connection
            )


def _pairing_state(before: Pairing | None, after: Pairing | None) -> str | None:
    """The status where it has changed; one that is forgotten while it was open has been taken back."""
    status = None if before is None else before.status
    if after is not None:
        return after.status if after.status != status else None
    return "cancelled" if before is not None and before.open else None


def _requests(draft: Draft, at: str) -> Iterator[Event]:
    for _, request in draft.changes(REQUESTS):
        if request is not None:
            yield Event(
                at=at,
                kind="request",
                state=request.state.value,
                reason=request.reason,
                request_id=request.id,
                client_id=request.client_id,
                capability=request.capability,
                revision=request.revision,
            )


def _records(draft: Draft, at: str) -> Iterator[Event]:
    for before, after in draft.changes(WIPES):
        wipe = after or before
        if wipe is not None and wipe.id == CLEARED and (before is None or after is None):
            yield Event(at=at, kind="records", state="cleared" if after is None else "clearing")


def _leases(draft: Draft, at: str) -> Iterator[Event]:
    for before, after in draft.changes(LEASES):
        lease, state = after or before, _lease_state(before, after)
        if lease is not None and state is not None:
            reason = None if after is None else reason_of(after)
            yield Event(
                at=at,
                kind="lease",
                state=state,
                reason=reason,
                app_key=lease.app_key,
                holder_id=lease.holder_id,
            )


def _lease_state(before: Lease | None, after: Lease | None) -> str | None:
    """The state where it has changed, or the active time has (a renewal)."""
    was, is_ = _wire_state(before), _wire_state(after)
    renewed = before is not None and after is not None and before.expires_at != after.expires_at
    return is_ if is_ != was or (renewed and is_ == "active") else None


def _wire_state(lease: Lease | None) -> str:
    return wire_state(lease) if lease is not None and lease.lives else "ended"


def _quits(draft: Draft, at: str) -> Iterator[Event]:
    for check, new_check in draft.changes(CHECKS):
        if check is None and new_check is not None:
            yield Event(at=at, kind="close_check", state="asked", app_key=new_check.app_key)
        elif check is not None and new_check is None:
            yield Event(at=at, kind="close_check", state="over", app_key=check.app_key)
    for mark, new_mark in draft.changes(QUIT_MARKS):
        if mark is None and new_mark is not None:
            yield Event(at=at, kind="quit", state="committed", app_key=new_mark.base_key)
        elif mark is not None and new_mark is None:
            yield Event(at=at, kind="quit", state="over", app_key=mark.base_key)
