"""Deleting for good (CP-4.14, CP-4.15): a revoked client with all that it had, or what the person has cleared.

    asked for ── some rows a decision ──> nothing is left of it ── Scrub ──> not a byte of it is left ──> forgotten

Each decision drops a few rows and asks for the next one once it is stored, so everybody else gets their turn.  Then
the files are scrubbed: the rows are gone, but a database keeps stale copies of what it has moved about.  The wipe
itself is a row, so a start goes on where the last run ended.  Nobody sees anything of what is still to be dropped: a
revoked client is nobody, and what was cleared counts as gone at once (`handlers.companion.retention`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeVar

import attrs

from handlers.companion.losses import lose_records
from handlers.companion.retention_rows import RECORD_COUNTS, TOMBSTONES, end_of_age
from handlers.companion.rows import CLIENTS, REQUESTS
from handlers.events import ForgetKey, Scrub, Scrubbed, Started, Then
from handlers.rule import Draft, Event, Keep, Now, Row, Table

STEP_ROWS = 64
"""How many rows one decision drops."""

R = TypeVar("R", bound=Row)

CLEARED = "cleared"
"""The wipe of what the person has cleared; no client has this id."""


@attrs.frozen
class Wipe:
    """What is to be deleted: everything of the client of this id, or (CLEARED) what had ended at the age `until`."""

    id: str
    until: int = 0
    dropped: bool = False
    """Whether only the scrubbing is left to do."""
    revision: int = 0


WIPES: Table[Wipe] = Table(name="wipes", row=Wipe, keep=Keep.STORED, key=lambda row: row.id)


@attrs.frozen
class WipeOn(Event):
    """The wipe goes on, now that its last decision is stored."""

    owed: ClassVar[bool] = True
    id: str


def begin(draft: Draft, client_id: str) -> None:
    """Delete everything of a client that is revoked, and what the user's own programs have kept of it."""
    draft.effect(ForgetKey(client_id))
    _begin(draft, Wipe(client_id))


def clear_records(draft: Draft, now: Now) -> None:
    """The person wants nothing kept: whatever has ended is gone from here on, whosever it is; open requests stay."""
    _begin(draft, Wipe(CLEARED, lose_records(draft, now)))


def started(draft: Draft, event: Started, now: Now) -> None:
    """Finish what the last run began.  A client may have been revoked before there were wipes."""
    for wipe in draft.all(WIPES):
        draft.effect(ForgetKey(wipe.id), _scrub(wipe) if wipe.dropped else Then(WipeOn(wipe.id)))
    for client in draft.all(CLIENTS):
        if client.revoked and draft.get(WIPES, client.id) is None:
            begin(draft, client.id)


def go_on(draft: Draft, event: WipeOn, now: Now) -> None:
    """Drop some more rows; behind the last of them come the client itself and the scrubbing."""
    wipe = draft.get(WIPES, event.id)
    if wipe is None or wipe.dropped:
        return
    if _drop_some(draft, wipe) == STEP_ROWS:
        draft.effect(Then(event))
        return
    draft.drop(CLIENTS, wipe.id)
    draft.drop(RECORD_COUNTS, wipe.id)
    draft.effect(_scrub(draft.put(WIPES, attrs.evolve(wipe, dropped=True))))


def scrubbed(draft: Draft, event: Scrubbed, now: Now) -> None:
    """Nothing is left to do, unless the same was asked for again meanwhile."""
    wipe = draft.get(WIPES, event.id)
    if wipe is not None and wipe.revision == event.revision:
        draft.drop(WIPES, wipe.id)


def _begin(draft: Draft, wipe: Wipe) -> None:
    draft.put(WIPES, wipe)
    draft.effect(Then(WipeOn(wipe.id)))


def _scrub(wipe: Wipe) -> Scrub:
    return Scrub(wipe.id, wipe.revision)


def _drop_some(draft: Draft, wipe: Wipe) -> int:
    requests = _some(draft, wipe, REQUESTS, STEP_ROWS)
    tombstones = _some(draft, wipe, TOMBSTONES, STEP_ROWS - len(requests))
    for request in requests:
        draft.drop(REQUESTS, request.id)
    for tombstone in tombstones:
        draft.drop(TOMBSTONES, tombstone.id)
    return len(requests) + len(tombstones)


def _some(draft: Draft, wipe: Wipe, table: Table[R], limit: int) -> Sequence[R]:
    if wipe.id == CLEARED:
        return draft.up_to(table, "age", end_of_age(wipe.until), limit)
    return draft.up_to(table, "client", wipe.id, limit, start=wipe.id)
