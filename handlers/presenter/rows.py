"""What is known of the presenter: whether one is there, and what it has on the screen.

The link is a fact.  A showing belongs to its request (or pairing) and is undone with it when a commit fails.
"""

from __future__ import annotations

import attrs

from handlers.rule import Deadline, Keep, Table
from protocols.companion.capabilities import Interaction, Kind


@attrs.frozen
class Link:
    """The presenter that is connected and has said `ready`; no row: none is."""

    connection: int
    name: str
    person: bool
    kinds: tuple[Kind, ...]
    interactions: tuple[Interaction, ...]
    revision: int = 0


LINK_KEY = "presenter"
LINK: Table[Link] = Table(name="presenter_link", row=Link, keep=Keep.FACT, key=lambda row: LINK_KEY)


@attrs.frozen
class Pulse:
    """Whether the presenter is alive: at `at` (awake milliseconds) it is asked, or has not answered in time."""

    connection: int
    at: int
    asked: bool = False
    revision: int = 0


PULSE: Table[Pulse] = Table(
    name="presenter_pulse",
    row=Pulse,
    keep=Keep.FACT,
    key=lambda row: LINK_KEY,
    deadline=lambda row: Deadline(row.at, "awake"),
)

REQUEST = "request"
PAIRING = "pairing"


@attrs.frozen
class OnScreen:
    """What the presenter has reported as presented; `since` (awake milliseconds) its input is being armed."""

    picture: int
    digest: str
    since: int


@attrs.frozen
class Showing:
    """One picture handed to the presenter, or waiting for one to come back.  Times are awake milliseconds.

    `kind` says what `id` names: a REQUEST or a PAIRING.  `picture` is the revision that the last picture was
    made from, `digest` covers what must be on the screen, `connection` is the presenter's that it was sent to
    (None: it has gone).  `presented` is what that presenter last reported to be on the screen, `held` whether the
    person is looking at it more closely.  `report_by` is when a missing report is acted on, `attempts` counts the
    presents without one.  `lost_by` is when a picture that lost its presenter is given up, should none be there then.
    """

    id: str
    kind: str
    picture: int
    digest: str
    connection: int | None = None
    attempts: int = 1
    presented: OnScreen | None = None
    held: bool = False
    deferred: str | None = None
    report_by: int | None = None
    lost_by: int | None = None
    revision: int = 0


def _showing_deadline(row: Showing) -> Deadline | None:
    at = row.lost_by if row.connection is None else row.report_by
    return None if at is None else Deadline(at, "awake")


SHOWINGS: Table[Showing] = Table(
    name="showings",
    row=Showing,
    keep=Keep.MEMORY,
    key=lambda row: row.id,
    deadline=_showing_deadline,
)
