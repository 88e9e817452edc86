"""The rows of the lease protocol: leases and their receipts, sessions, close checks, quit marks, holds.

Every instant is in awake milliseconds (wire.md, clocks), so it means something only within one boot of the
machine; the stored rows carry the boot's id.  What is volatile by nature (a check under way, a cooldown, a
reserved quit) is MEMORY: a restart voids it, and the start hold does its job meanwhile.
"""

from __future__ import annotations

from enum import Enum

import attrs

from handlers.rule import Deadline, Keep, Table
from protocols.lease.messages import Response
from protocols.lease.states import LeaseState
from protocols.process import ProcessId


def process_index(process: ProcessId) -> str:
    """A process as the value of an index."""
    return f"{process.pid} {process.started}"


# -- stored --------------------------------------------------------------------------------------------


@attrs.frozen
class Lease:
    """What one holder has on one app key: at most one row each, whatever became of it.

    In the states active, grace and ending `expires_at` is when the active time ended or will end, and
    `grace_ends_at` when the protection does.  `strikes` counts silences in a row, `deferred` says that the
    holder would have been asked once but had no connection.  `accepted` numbers the receipts.
    """

    holder_id: str
    app_key: str
    base_key: str
    """The app's key without a variant's suffix."""
    process: ProcessId
    client_name: str
    boot_id: str
    state: LeaseState
    lease_seconds: int
    expires_at: int
    grace_ends_at: int
    died: bool = False
    """Whether the holder's process is gone, when the state is ending."""
    strikes: int = 0
    deferred: bool = False
    accepted: int = 0
    forget_at: int | None = None
    """When an ended lease goes, and its receipts with it."""
    revision: int = 0

    @property
    def lives(self) -> bool:
        """Whether the holder still has something here: the lease has not ended."""
        return self.state is not LeaseState.ENDED


def lease_key(holder_id: str, app_key: str) -> str:
    """The key of a lease; sorted by it, leases stand grouped by app."""
    return f"{len(app_key)}:{app_key}{holder_id}"


def key_of(lease: Lease) -> str:
    """The key under which a lease stands."""
    return lease_key(lease.holder_id, lease.app_key)


def _lease_deadline(lease: Lease) -> Deadline | None:
    at = {
        LeaseState.ACTIVE: lease.expires_at,
        LeaseState.GRACE: lease.grace_ends_at,
        LeaseState.ENDING: lease.grace_ends_at,
        LeaseState.EXPIRED: None,
        LeaseState.ENDED: lease.forget_at,
    }[lease.state]
    return None if at is None else Deadline(at, "awake")


LEASES: Table[Lease] = Table(
    name="leases",
    row=Lease,
    keep=Keep.STORED,
    key=key_of,
    indexes={
        "holder": lambda lease: lease.holder_id if lease.lives else None,
        "base": lambda lease: lease.base_key if lease.lives else None,
        "process": lambda lease: process_index(lease.process) if lease.lives else None,
    },
    deadline=_lease_deadline,
)


@attrs.frozen
class Receipt:
    """An accepted message and its answer: sent again, it gets the same one (lease.md, requestId)."""

    holder_id: str
    request_id: str
    lease: str
    """The key of the lease that it was about; the receipt goes when that row goes."""
    number: int
    digest: str
    response: Response
    revision: int = 0


def receipt_key(holder_id: str, request_id: str) -> str:
    """Request ids are scoped to the holder."""
    return f"{len(holder_id)}:{holder_id}{request_id}"


def receipt_number(lease: str, number: int) -> str:
    """The value of the index that finds the receipt of a number."""
    return f"{number} {lease}"


RECEIPTS: Table[Receipt] = Table(
    name="receipts",
    row=Receipt,
    keep=Keep.STORED,
    key=lambda receipt: receipt_key(receipt.holder_id, receipt.request_id),
    indexes={
        "lease": lambda receipt: receipt.lease,
        "number": lambda receipt: receipt_number(receipt.lease, receipt.number),
    },
)


@attrs.frozen
class Block:
    """A holder that the user does not want to keep apps open."""

    holder_id: str
    revision: int = 0


BLOCKS: Table[Block] = Table(
    name="lease_blocks", row=Block, keep=Keep.STORED, key=lambda block: block.holder_id
)


# -- facts ---------------------------------------------------------------------------------------------


@attrs.frozen
class Session:
    """A connection that has said hello.  `order` grows with each hello of the holder: the newest is
    pushed to.

    `live`: the peer still reads and sends; a half-closed connection gets its answers but no pushes.
    """

    connection: int
    holder_id: str
    process: ProcessId
    client_name: str
    order: int
    live: bool = True
    process_died: bool = False
    revision: int = 0


SESSIONS: Table[Session] = Table(
    name="lease_sessions",
    row=Session,
    keep=Keep.FACT,
    key=lambda session: str(session.connection),
    indexes={
        "holder": lambda session: None if session.process_died else session.holder_id,
        "process": lambda session: process_index(session.process),
    },
)


@attrs.frozen
class Holds:
    """Until when no app may be quit at all: after a start of the broker, after a sleep of the machine.

    `offset` is elapsed minus awake time as last seen: it grows only while the machine sleeps.
    """

    start_until: int
    resume_until: int
    offset: int
    look_at: int
    revision: int = 0


HOLDS_KEY = "holds"
HOLDS: Table[Holds] = Table(
    name="lease_holds",
    row=Holds,
    keep=Keep.FACT,
    key=lambda holds: HOLDS_KEY,
    deadline=lambda holds: Deadline(holds.look_at, "awake"),
)


# -- in memory -----------------------------------------------------------------------------------------


class Answer(Enum):
    """How a holder that was asked has answered, or what took the answer's place."""

    ALLOWED = "allowed"
    EXTENDED = "extended"
    SILENT = "silent"
    STRUCK_OUT = "struck_out"
    """The last silence that is waited for counts as an allow."""
    DIED = "died"


@attrs.frozen
class Ask:
    """One holder asked about one lease, under its own close id; open while there is no `answer`.

    `connection` is where the push went last, None while the holder has no live connection.  An answered
    ask is remembered, so that a late reply can be told from one to a check that never was.
    """

    close_id: str
    holder_id: str
    app_key: str
    process: ProcessId
    connection: int | None
    until: int
    answer: Answer | None = None
    forget_at: int | None = None
    revision: int = 0

    @property
    def open(self) -> bool:
        """Whether the holder's answer is still awaited."""
        return self.answer is None


ASKS: Table[Ask] = Table(
    name="lease_asks",
    row=Ask,
    keep=Keep.MEMORY,
    key=lambda ask: ask.close_id,
    indexes={
        "lease": lambda ask: lease_key(ask.holder_id, ask.app_key) if ask.open else None,
        "holder": lambda ask: ask.holder_id if ask.open else None,
        "connection": lambda ask: str(ask.connection) if ask.open and ask.connection is not None else None,
    },
    deadline=lambda ask: Deadline(ask.until if ask.forget_at is None else ask.forget_at, "awake"),
)


@attrs.frozen
class Asker:
    """A parked leases.may_close: where its answer goes.

    `ticket` is for the case that it is an allowed reserve.
    """

    connection: int
    number: int
    reserve: bool
    ticket: str


@attrs.frozen
class Check:
    """A close check under way: several holders asked in parallel about one app key, several askers
    waiting.
    """

    app_key: str
    asks: tuple[str, ...]
    askers: tuple[Asker, ...] = ()
    revision: int = 0


CHECKS: Table[Check] = Table(
    name="lease_checks", row=Check, keep=Keep.MEMORY, key=lambda check: check.app_key
)


@attrs.frozen
class Cooldown:
    """No new push about this app key before `until`."""

    app_key: str
    until: int
    revision: int = 0


COOLDOWNS: Table[Cooldown] = Table(
    name="lease_cooldowns",
    row=Cooldown,
    keep=Keep.MEMORY,
    key=lambda cooldown: cooldown.app_key,
    deadline=lambda cooldown: Deadline(cooldown.until, "awake"),
)


@attrs.frozen
class QuitMark:
    """The quit of an app is committed: no leases on it or its variants until the mark goes.

    A reserved quit has a `ticket`, the broker's own the `process` that is to end.
    """

    base_key: str
    until: int
    ticket: str | None = None
    process: ProcessId | None = None
    revision: int = 0


QUIT_MARKS: Table[QuitMark] = Table(
    name="lease_quit_marks",
    row=QuitMark,
    keep=Keep.MEMORY,
    key=lambda mark: mark.base_key,
    indexes={
        "ticket": lambda mark: mark.ticket,
        "process": lambda mark: None if mark.process is None else process_index(mark.process),
    },
    deadline=lambda mark: Deadline(mark.until, "awake"),
)
