"""The broker starts: what is left of the leases (lease.md, broker restart).

Within one boot of the machine awake time goes on, so a lease has what remains of it: the time that the
broker was away counts, and deadlines that passed meanwhile are due at once.  Checks, cooldowns and quit
marks were in memory only; the start hold keeps every app open until holders have come back.
"""

from __future__ import annotations

import attrs

from handlers.events import Started, Watch
from handlers.lease import holds
from handlers.lease.book import moved
from handlers.lease.rows import LEASES
from handlers.rule import Draft, Now
from protocols.lease.states import LeaseEvent


def started(draft: Draft, event: Started, now: Now) -> None:
    """Watch the holders of leases of this boot; end the leases of any other."""
    holds.started(draft, now)
    boot_id = draft.environment.boot_id
    for lease in draft.all(LEASES):
        if lease.boot_id != boot_id:
            ended = moved(draft, lease, LeaseEvent.REBOOT, now)
            draft.put(LEASES, attrs.evolve(ended, boot_id=boot_id))
        elif lease.lives:
            draft.effect(Watch(lease.process))
