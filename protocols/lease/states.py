"""The states of a lease, as a table: an event that is not in it changes nothing and raises (lease.md).

    active     held; no close
    grace      the time ran out; no close yet, and the holder may still renew
    ending     the grace of a lease that its holder ended, or whose holder died: after it nobody is asked
    expired    the grace is over; before a close the holder has to be asked
    ended      no lease; kept for an hour so that repeated messages get their old answers

`extend` is a grant that a close check brings: the reply itself, or a begin or renew while the check is open.
`allow` is the holder's consent, or what counts as one: the third silence, or no connection at the second
asking. On the wire `ending` is the state grace with the reason ended or holder_died; a lease that is
ended is not listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from protocols.errors import OurError


class LeaseState(Enum):
    """See the module header."""

    ACTIVE = "active"
    GRACE = "grace"
    ENDING = "ending"
    EXPIRED = "expired"
    ENDED = "ended"

    @property
    def protects(self) -> bool:
        """Whether the app must not be closed while the lease is in this state."""
        return self in _PROTECTING


class LeaseEvent(Enum):
    """What happens to a lease."""

    BEGIN = "begin"
    RENEW = "renew"
    EXTEND = "extend"
    END = "end"
    EXPIRE = "expire"
    GRACE_OVER = "grace_over"
    HOLDER_DIED = "holder_died"
    ALLOW = "allow"
    REBOOT = "reboot"
    """The broker finds a lease from before the machine was started anew: leases do not outlive that."""


class IllegalStep(OurError):
    """An event that the lease's state does not allow."""


_PROTECTING = frozenset({LeaseState.ACTIVE, LeaseState.GRACE, LeaseState.ENDING})

_GRANTS = {
    LeaseEvent.BEGIN: LeaseState.ACTIVE,
    LeaseEvent.RENEW: LeaseState.ACTIVE,
    LeaseEvent.EXTEND: LeaseState.ACTIVE,
}
_NEW_GRANTS = {
    LeaseEvent.BEGIN: LeaseState.ACTIVE,
    LeaseEvent.EXTEND: LeaseState.ACTIVE,
}  # a renew comes too late here: request_expired
_LETS_GO = {LeaseEvent.END: LeaseState.ENDING, LeaseEvent.HOLDER_DIED: LeaseState.ENDING}
_REBOOT = {LeaseEvent.REBOOT: LeaseState.ENDED}

TRANSITIONS: Mapping[LeaseState, Mapping[LeaseEvent, LeaseState]] = {
    LeaseState.ACTIVE: {**_GRANTS, **_LETS_GO, LeaseEvent.EXPIRE: LeaseState.GRACE, **_REBOOT},
    LeaseState.GRACE: {**_GRANTS, **_LETS_GO, LeaseEvent.GRACE_OVER: LeaseState.EXPIRED, **_REBOOT},
    LeaseState.ENDING: {**_GRANTS, **_LETS_GO, LeaseEvent.GRACE_OVER: LeaseState.ENDED, **_REBOOT},
    LeaseState.EXPIRED: {
        **_NEW_GRANTS,
        LeaseEvent.END: LeaseState.ENDED,
        LeaseEvent.HOLDER_DIED: LeaseState.ENDED,
        LeaseEvent.ALLOW: LeaseState.ENDED,
        **_REBOOT,
    },
    LeaseState.ENDED: {**_NEW_GRANTS, **_REBOOT},
}


def step(state: LeaseState, event: LeaseEvent) -> LeaseState:
    """The state after the event; IllegalStep where the table has none."""
    try:
        return TRANSITIONS[state][event]
    except KeyError:
        raise IllegalStep(f"{event.value} in {state.value}") from None
