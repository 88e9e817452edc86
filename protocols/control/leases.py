"""The leases.* methods of the control protocol: what is held, may an app be closed, what became of the quit.

Params and results as lease.md has them, rows may_close and leases.list; the command line prints them as
they are.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal

import attrs

from protocols.control.pages import MAX_CURSOR, MAX_PAGE
from protocols.structure import absent, integer, text

MAX_HOLDERS = 100


class Reason(Enum):
    """Why an app may be closed (free), or why not."""

    FREE = "free"
    LEASED = "leased"
    GRACE = "grace"
    KEPT = "kept"
    """A holder that was asked extended its lease."""
    SILENT = "silent"
    """A holder that was asked gave no answer; it will be asked again."""
    DEFERRED = "deferred"
    """A holder would have to be asked, lives, and has no connection."""
    COOLDOWN = "cooldown"
    STARTUP_HOLD = "startup_hold"
    RESUME_HOLD = "resume_hold"
    QUIT_COMMITTED = "quit_committed"
    UNKNOWN_APP = "unknown_app"


WireState = Literal["active", "grace", "expired"]


@attrs.frozen(kw_only=True)
class MayClose:
    """`leases.may_close`: may this app be closed?  The answer may take the time of a close check.

    With `reserve` an allowed answer commits the quit: it carries a ticket, and while that is good nobody
    gets a lease on the app.  Without it the answer promises nothing about the next second.
    """

    app_key: str = text(1, 128)
    reserve: bool = False


@attrs.frozen(kw_only=True)
class Holder:
    """One holder of the app: its lease is active, in grace, or expired and not ended."""

    holder_id: str
    client_name: str
    pid: int
    state: WireState
    expires_at: str


@attrs.frozen(kw_only=True)
class MayCloseResult:
    """The answer; `holders` shows at most 100 (fewer where a frame cannot hold them), `holders_total`
    counts all.
    """

    allowed: bool
    reason: Reason
    holders: tuple[Holder, ...]
    holders_total: int
    retry_after_seconds: float | None = absent()
    ticket: str | None = absent()
    valid_seconds: float | None = absent()


@attrs.frozen(kw_only=True)
class QuitDone:
    """`leases.quit_done`: the reserved quit has happened."""

    ticket: str = text(1, 128)


@attrs.frozen(kw_only=True)
class QuitAbandoned:
    """`leases.quit_abandoned`: the reserved quit will not happen."""

    ticket: str = text(1, 128)


@attrs.frozen(kw_only=True)
class QuitEnded:
    """The ticket is void from now on; `app_key` is the app that it was for."""

    app_key: str


@attrs.frozen(kw_only=True)
class ListLeases:
    """`leases.list`: the leases that are active, in grace, or expired and not ended, in the order of app
    and holder.
    """

    cursor: str | None = text(1, MAX_CURSOR, absent=True)
    limit: int = integer(1, MAX_PAGE, default=50)


@attrs.frozen(kw_only=True)
class ListedLease:
    """One lease.  `reason` says why it is in grace: expired, ended (by its holder) or holder_died."""

    app_key: str
    holder_id: str
    client_name: str
    pid: int
    state: WireState
    reason: Literal["expired", "ended", "holder_died"] | None = absent()
    lease_seconds: int
    expires_at: str
    grace_ends_at: str


@attrs.frozen(kw_only=True)
class LeaseList:
    """A page of leases; a page may be shorter than the limit, and null is the end."""

    leases: tuple[ListedLease, ...]
    next_cursor: str | None
