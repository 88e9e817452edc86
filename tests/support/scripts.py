"""Random scripts of what happens to a ledger: events decided, batches taken, commits that succeed and fail, time.

`random_script` draws from any `random.Random`: hypothesis gives one that it can shrink, a seeded one makes the
same script for ever.  `tests/support/reference.py` plays scripts against a ledger.
"""

from __future__ import annotations

from enum import Enum
from random import Random

import attrs

from tests.support.toy_routes import (
    PARKED,
    SIGHTED,
    TABLES,
    Act,
    All,
    Count,
    Drop,
    Find,
    Get,
    Item,
    ItemTable,
    OwedAct,
    Put,
    Reading,
    UpTo,
)

OWNERS = ("ann", "bob")
KEYS = ("x", "y", "z")
SEEDS = range(300)
"""Of the scripts that find every mutant of the rule, and no fault in the rule itself."""


class Outcome(Enum):
    """What becomes of the batch on its way."""

    COMMITTED = "committed"
    FAILED = "failed"
    """An error, and the disk works again."""
    REFUSED = "refused"
    """The disk is full or read-only."""


@attrs.frozen
class Decide:
    """An event happens."""

    act: Act


@attrs.frozen
class Take:
    """The open batch is sent on its way."""


@attrs.frozen
class Land:
    """The batch on its way is on the disk, and the ledger does not know it yet."""


@attrs.frozen
class Finish:
    """The ledger is told what became of the batch on its way."""

    outcome: Outcome


@attrs.frozen
class Resume:
    """The disk takes writes again."""


@attrs.frozen
class Pass:
    """Time passes, on the awake clock as well or not."""

    ms: int
    asleep: bool


Step = Decide | Take | Land | Finish | Resume | Pass


def random_script(random: Random, length: int = 40) -> list[Step]:
    """A script in which everything that the ledger has to bear can happen."""
    return [_step(random, number) for number in range(1, length + 1)]


def _step(random: Random, number: int) -> Step:
    roll = random.randrange(100)
    if roll < 55:
        return Decide(_act(random, number))
    if roll < 70:
        return Take()
    if roll < 74:
        return Land()
    if roll < 88:
        return Finish(random.choice((Outcome.COMMITTED, *Outcome)))
    if roll < 92:
        return Resume()
    return Pass(random.randrange(1, 30), asleep=random.randrange(4) == 0)


def _act(random: Random, number: int) -> Act:
    kind = OwedAct if random.randrange(4) == 0 else Act
    lane = random.choice(("left", "right")) if kind is Act and random.randrange(4) == 0 else None
    reads = tuple(_reading(random) for _ in range(random.randrange(3)))
    writes = tuple(_write(random, number) for _ in range(random.choice((0, 0, 1, 1, 2))))
    return kind(number, reads, writes, lane, fails=random.randrange(20) == 0)


def _reading(random: Random) -> Reading:
    table = random.choice(TABLES)
    kind = random.randrange(7)
    if kind < 3:
        return Get(table, random.choice(KEYS))
    if kind == 3:
        return UpTo(table, random.randrange(1, 50), random.randrange(1, len(KEYS) + 1))
    if kind == 4:
        return All(table)
    return (Find if kind == 5 else Count)(table, random.choice(OWNERS))


def _write(random: Random, number: int) -> Put | Drop:
    table = random.choice((*TABLES, *TABLES, PARKED))
    key = random.choice(KEYS)
    if random.randrange(4) == 0:
        return Drop(table, key)
    return Put(table, _item(random, table, key, number))


def _item(random: Random, table: ItemTable, key: str, number: int) -> Item:
    due = number + random.randrange(40) if random.randrange(3) == 0 else None
    done = table is not SIGHTED and random.randrange(3) == 0
    return Item(key, random.choice(OWNERS), number, due, done)
