"""How an app stands: what forbids its close right now, before any holder is asked.

This is the one place that says `free`.  Whatever a close check finds out, its verdict is taken from here
again, so no app is ever called free while a lease of it, or a grace, is alive.
"""

from __future__ import annotations

import attrs

from handlers.lease import holds, quits
from handlers.lease.apps import base_key
from handlers.lease.book import in_scope
from handlers.lease.rows import Lease
from handlers.rule import Draft, Now
from protocols.control.leases import Reason
from protocols.lease.states import LeaseState


@attrs.frozen
class Verdict:
    """Whether an app may be closed, why not, and when it is worth asking again."""

    reason: Reason
    retry_after_ms: int | None = None

    @property
    def allowed(self) -> bool:
        """Whether the app may be closed at this instant."""
        return self.reason is Reason.FREE


def standing(draft: Draft, app_key: str, now: Now) -> Verdict | None:
    """The verdict that needs no question; None when holders have to be asked first."""
    base = base_key(draft.environment.policy.apps, app_key)
    if base is None:
        return Verdict(Reason.UNKNOWN_APP)
    if (mark := quits.mark_on(draft, base)) is not None:
        return Verdict(Reason.QUIT_COMMITTED, mark.until - now.awake)
    if (hold := holds.running(draft, now)) is not None:
        return Verdict(*hold)
    return _of_leases(in_scope(draft, app_key, base))


def _of_leases(leases: list[Lease]) -> Verdict | None:
    if any(lease.state is LeaseState.ACTIVE for lease in leases):
        return Verdict(Reason.LEASED)
    if any(lease.state.protects for lease in leases):
        return Verdict(Reason.GRACE)
    return None if leases else Verdict(Reason.FREE)


def to_be_asked(draft: Draft, app_key: str) -> list[Lease]:
    """The leases whose holders stand in the way until they are asked: expired, not ended, not allowed."""
    base = base_key(draft.environment.policy.apps, app_key)
    leases = [] if base is None else in_scope(draft, app_key, base)
    return [lease for lease in leases if lease.state is LeaseState.EXPIRED]
