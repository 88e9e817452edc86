"""How old records are (CP-4.10): a count of milliseconds that goes on over restarts and boots.

Wall time can be set, and elapsed time begins anew with each boot of the machine, so neither alone says that a day
has passed.  The age clock counts the elapsed time that a broker can answer for.  Within one boot it goes on while no
broker runs; over a boot it goes on from where it was last saved, so it may be late, never early: a record is kept
longer rather than shorter.
"""

from __future__ import annotations

import attrs

from handlers.events import Started
from handlers.policy import MINUTE
from handlers.rule import Deadline, Draft, Due, Keep, Now, Table

SAVE_EVERY_MS = 10 * MINUTE
"""What a boot of the machine can cost the age clock, besides the time that the machine was off."""


@attrs.frozen
class AgeClock:
    """At `elapsed` milliseconds of this boot the count stood at `count` milliseconds."""

    count: int
    elapsed: int
    boot_id: str
    revision: int = 0


AGE_KEY = "age"
AGES: Table[AgeClock] = Table(
    name="ages",
    row=AgeClock,
    keep=Keep.STORED,
    key=lambda row: AGE_KEY,
    deadline=lambda row: Deadline(row.elapsed + SAVE_EVERY_MS),
)


def age_now(draft: Draft, now: Now) -> int:
    """What the age clock shows at this instant."""
    clock = draft.get(AGES, AGE_KEY)
    return 0 if clock is None else clock.count + max(0, now.elapsed - clock.elapsed)


def tick(draft: Draft, now: Now) -> int:
    """What the age clock shows; whatever comes after is younger, even within the same millisecond."""
    clock, age = draft.get(AGES, AGE_KEY), age_now(draft, now)
    if clock is not None:
        draft.put(AGES, attrs.evolve(clock, count=age + 1, elapsed=now.elapsed))
    return age


def started(draft: Draft, event: Started, now: Now) -> None:
    """A fresh store begins at 0; another boot of the machine has its own elapsed time."""
    boot_id = draft.environment.boot_id
    clock = draft.get(AGES, AGE_KEY)
    if clock is None:
        draft.put(AGES, AgeClock(0, now.elapsed, boot_id))
    elif clock.boot_id != boot_id or now.elapsed < clock.elapsed:
        draft.put(AGES, attrs.evolve(clock, elapsed=now.elapsed, boot_id=boot_id))


def save(draft: Draft, event: Due, now: Now) -> None:
    """Save how far it has come, for the next boot."""
    clock = draft.get(AGES, AGE_KEY)
    if clock is not None:
        draft.put(AGES, attrs.evolve(clock, count=age_now(draft, now), elapsed=now.elapsed))
