"""No quit after a start of the broker or a sleep of the machine (lease.md, broker restart and sleep).

Holders need the time to come back.  A sleep shows in the clocks: elapsed time goes on, awake time does
not.  They are compared every few seconds of awake time and whenever somebody asks, so a hold never starts
before the resume, and at most that much after it.
"""

from __future__ import annotations

import attrs

from handlers.lease.rows import HOLDS, HOLDS_KEY, Holds
from handlers.rule import Draft, Due, Now
from protocols.control.leases import Reason

LOOK_EVERY_MS = 10_000
SHORTEST_SLEEP_MS = 1_000


def started(draft: Draft, now: Now) -> None:
    """The broker starts."""
    start_until = now.awake + draft.environment.policy.lease.startup_hold_ms
    draft.put(HOLDS, Holds(start_until, now.awake, _offset(now), now.awake + LOOK_EVERY_MS))


def due(draft: Draft, event: Due, now: Now) -> None:
    """Time to compare the clocks again."""
    _look(draft, now)


def running(draft: Draft, now: Now) -> tuple[Reason, int] | None:
    """The hold that forbids every quit at this instant and its remaining milliseconds; None when there is
    none.
    """
    holds = _look(draft, now)
    until, reason = max(
        (holds.start_until, Reason.STARTUP_HOLD), (holds.resume_until, Reason.RESUME_HOLD), key=lambda x: x[0]
    )
    return (reason, until - now.awake) if until > now.awake else None


def _look(draft: Draft, now: Now) -> Holds:
    holds = draft.get(HOLDS, HOLDS_KEY)
    if holds is None:  # nobody said when the broker started, so it starts now
        started(draft, now)
        return _look(draft, now)
    if _offset(now) - holds.offset >= SHORTEST_SLEEP_MS:
        resume_until = now.awake + draft.environment.policy.lease.resume_hold_ms
        holds = attrs.evolve(holds, offset=_offset(now), resume_until=resume_until)
    elif holds.look_at > now.awake:
        return holds
    return draft.put(HOLDS, attrs.evolve(holds, look_at=now.awake + LOOK_EVERY_MS))


def _offset(now: Now) -> int:
    return now.elapsed - now.awake
