"""How long an ended request is kept, and what is told of it afterwards (CP-4.10, CP-6.8; companion.md, Requests).

    ended ── retention.hours ──> a tombstone: its owner reads RESULT_EXPIRED ── 7 days ──> nothing: NOT_FOUND

A time is over when the age clock and the wall clock both say so, so that no step of the wall clock takes anything
away early; a wall clock that stands before the instant it counts from was set back, and is not asked.  Nobody is
shown a record whose time is over; the sweeps let go of it soon, in small decisions over rows that are on disk only,
in the order of their age.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import attrs

from handlers.companion.age import age_now
from handlers.companion.calls import declined
from handlers.companion.losses import is_cleared
from handlers.companion.retention_rows import SWEEPS, TOMBSTONES, Sweep, Tombstone, end_of_age
from handlers.companion.rows import REQUESTS, Request
from handlers.events import Started
from handlers.policy import MINUTE, Retention
from handlers.rule import Draft, Due, Now, Row, Table
from protocols.refusal import ErrorCode

STEP_ROWS = 64
"""How many rows one decision lets go of."""
PAUSE_MS = 10
"""Between two of them, for everybody else."""
_LOOK_AGAIN_MS = 10 * MINUTE
"""When to look again at rows that only the wall clock still keeps."""
_NEWEST_AGE = 10**19

R = TypeVar("R", bound=Row)


# -- one request -------------------------------------------------------------------------------------------


def is_over(draft: Draft, request: Request, now: Now) -> bool:
    """Whether the time of a request is over, which nobody is shown from then on."""
    return _is_over(draft, _RECORDS, request, now)


def bury(draft: Draft, request: Request) -> None:
    """Leave nothing of a request but its id and its owner; of one that was cleared nothing at all."""
    draft.drop(REQUESTS, request.id)
    stone = _tombstone(draft, request)
    if stone is not None:
        draft.put(TOMBSTONES, stone)


def check_not_expired(draft: Draft, client_id: str, request_id: str, now: Now) -> None:
    """Raises Declined for a request of this client that was kept as long as promised.

    Nothing is shown of another client's: whatever the id, what its answer waits for is the same.
    """
    request = draft.get(REQUESTS, request_id)
    if request is not None and is_over(draft, request, now):  # not swept yet
        stone = _tombstone(draft, request)
    else:
        stone = draft.get(TOMBSTONES, request_id)
    if stone is not None and stone.client_id == client_id and not _is_over(draft, _TOMBSTONES, stone, now):
        raise declined(ErrorCode.RESULT_EXPIRED, "the result is no longer kept")
    draft.all(TOMBSTONES)


def _tombstone(draft: Draft, request: Request) -> Tombstone | None:
    keep_ms = draft.environment.policy.retention.records_ms
    age, wall = _since(request)
    if is_cleared(draft, age):
        return None
    return Tombstone(request.id, request.client_id, age + keep_ms, wall + keep_ms)


def _since(request: Request) -> tuple[int, int]:
    assert request.ended_age is not None
    assert request.ended_at is not None
    return request.ended_age, request.ended_at


# -- the sweeps --------------------------------------------------------------------------------------------


@attrs.frozen
class _Kept(Generic[R]):
    """Rows that are kept for a time: `since` is when it began on the age clock and on the wall clock."""

    table: Table[R]
    keep_ms: Callable[[Retention], int]
    since: Callable[[R], tuple[int, int] | None]
    let_go: Callable[[Draft, R], None]


_RECORDS: _Kept[Request] = _Kept(
    REQUESTS,
    lambda policy: policy.records_ms,
    lambda request: _since(request) if request.ended else None,
    bury,
)
_TOMBSTONES: _Kept[Tombstone] = _Kept(
    TOMBSTONES,
    lambda policy: policy.tombstone_ms,
    lambda stone: (stone.age, stone.wall),
    lambda draft, stone: draft.drop(TOMBSTONES, stone.id),
)


def _is_over(draft: Draft, kept: _Kept[R], row: R, now: Now) -> bool:
    since = kept.since(row)
    if since is None:
        return False
    keep_ms = kept.keep_ms(draft.environment.policy.retention)
    if is_cleared(draft, since[0]):
        return True
    age, wall = age_now(draft, now) - since[0], now.wall - since[1]
    return age >= keep_ms and (wall >= keep_ms or wall < 0)


def started(draft: Draft, event: Started, now: Now) -> None:
    """Find out when the first of what is on disk is to go."""
    _plan(draft, _RECORDS, now)
    _plan(draft, _TOMBSTONES, now)


def sweep(draft: Draft, event: Due, now: Now) -> None:
    """Let go of some rows whose time is over."""
    if event.key == REQUESTS.name:
        _sweep(draft, _RECORDS, now)
    else:
        _sweep(draft, _TOMBSTONES, now)


def _sweep(draft: Draft, kept: _Kept[R], now: Now) -> None:
    at = draft.get(SWEEPS, kept.table.name)
    start = "" if at is None else at.start
    over = end_of_age(age_now(draft, now) - kept.keep_ms(draft.environment.policy.retention))
    rows = draft.up_to(kept.table, "age", over, STEP_ROWS, start)
    for row in rows:
        if _is_over(draft, kept, row, now):
            kept.let_go(draft, row)
    if len(rows) < STEP_ROWS:
        _plan(draft, kept, now)
        return
    next_place = (kept.table.indexes["age"](rows[-1]) or "") + "\0"
    draft.put(SWEEPS, Sweep(kept.table.name, now.elapsed + PAUSE_MS, next_place))


def _plan(draft: Draft, kept: _Kept[R], now: Now) -> None:
    """Sweep again when the oldest row's time is over."""
    since = [kept.since(row) for row in draft.up_to(kept.table, "age", end_of_age(_NEWEST_AGE), 1)]
    if not since or since[0] is None:
        draft.drop(SWEEPS, kept.table.name)
        return
    keep_ms = kept.keep_ms(draft.environment.policy.retention)
    left = since[0][0] + keep_ms - age_now(draft, now)
    wait_ms = left if left > 0 else _LOOK_AGAIN_MS
    draft.put(SWEEPS, Sweep(kept.table.name, now.elapsed + wait_ms))


# -- what follows from any decision ------------------------------------------------------------------------


def settle(draft: Draft, now: Now) -> None:
    """Whatever has ended will be swept."""
    _plan_first(draft, _RECORDS, now)
    _plan_first(draft, _TOMBSTONES, now)


def _plan_first(draft: Draft, kept: _Kept[R], now: Now) -> None:
    """A row that has come is the youngest, so a sweep that is planned comes early enough for it."""
    come = any(after is not None and kept.since(after) is not None for _, after in draft.changes(kept.table))
    if come and draft.get(SWEEPS, kept.table.name) is None:
        _plan(draft, kept, now)
