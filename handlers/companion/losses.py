"""What cannot be had back, told plainly (CP-4.15): from the first loss on, every NOT_FOUND of a request says when
records were last lost, so that nobody takes "there is no such request" for "it never was".

What is told is the same for every client and every id: it is a fact about the store, not about the request.
"""

from __future__ import annotations

import attrs

from handlers.companion.age import tick
from handlers.companion.calls import Declined, declined
from handlers.events import Started
from handlers.rule import Draft, Keep, Now, Table
from protocols.refusal import ErrorCode
from protocols.timestamps import rfc3339


@attrs.frozen
class Loss:
    """Records from before `at` (wall milliseconds) may be gone: the store was damaged, or the person cleared them.

    What had ended when the age clock showed `cleared_age` counts as gone, whether or not it is deleted yet.
    """

    at: int
    cleared_age: int = -1
    revision: int = 0


LOSS_KEY = "loss"
LOSSES: Table[Loss] = Table(name="losses", row=Loss, keep=Keep.STORED, key=lambda row: LOSS_KEY)


def records_lost_at(draft: Draft) -> str | None:
    """When records were last lost, as it is told on the wire; None: never."""
    loss = draft.get(LOSSES, LOSS_KEY)
    return None if loss is None else rfc3339(loss.at)


def is_cleared(draft: Draft, age: int) -> bool:
    """Whether the person has cleared what had ended, or was put aside, at this age."""
    loss = draft.get(LOSSES, LOSS_KEY)
    return loss is not None and age <= loss.cleared_age


def lose_records(draft: Draft, now: Now) -> int:
    """Whatever has ended so far counts as gone; returns the age up to which it does."""
    cleared_age = tick(draft, now)
    draft.put(LOSSES, Loss(now.wall, cleared_age))
    return cleared_age


def not_found(draft: Draft) -> Declined:
    """The one answer about a request that is not there, or not the caller's (CP-6.8)."""
    lost_at = records_lost_at(draft)
    details = {} if lost_at is None else {"recordsLostAt": lost_at}
    return declined(ErrorCode.NOT_FOUND, "no such request", **details)


def started(draft: Draft, event: Started, now: Now) -> None:
    """The store of before is out of use, if it was found damaged; the newest loss is the one that counts."""
    loss = draft.get(LOSSES, LOSS_KEY)
    if event.damaged_at is None:
        return
    if loss is None:
        draft.put(LOSSES, Loss(event.damaged_at))
    elif loss.at < event.damaged_at:
        draft.put(LOSSES, attrs.evolve(loss, at=event.damaged_at))
