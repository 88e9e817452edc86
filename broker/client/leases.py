"""Leases as their owners see them, the same in both flavours."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from broker.client.errors import ClientError, LeaseRefused
from broker.client.keeper import LeaseKeeper
from broker.client.keeping import Allow, CloseCheck, Extend, Hold, HolderIdentity, Verdict
from broker.paths import find_paths
from protocols.lease.messages import CanCloseRequest

GIVE_BACK_SECONDS = 1.0
"""How long the end of a block waits until the broker has heard that its lease is over."""

note = logging.getLogger("broker.client").warning
"""Where a program hears in passing that protection is lost or back."""


class Lease:
    """A lease on one app, for the time of a block."""

    def __init__(self, hold: Hold) -> None:
        self.error: BaseException | None = None
        """What the close check's callback raised; the app was kept open, and the end of the block raises it."""
        self._hold = hold

    @property
    def app_key(self) -> str:
        """The app."""
        return self._hold.app_key

    @property
    def held(self) -> bool:
        """Whether the broker has said that the app is protected, over the connection that stands."""
        return self._hold.held

    @property
    def refused(self) -> LeaseRefused | None:
        """Why the broker did not grant the lease, or not again."""
        return self._hold.refused

    @property
    def failure(self) -> ClientError | None:
        """Why the lease is not held: the refusal, or what is wrong with the connection."""
        return self._hold.refused or self._hold.failure


def new_keeper(name: str | None, path: Path | None, id: str | None) -> LeaseKeeper:
    """A keeper for this process.

    `name` is what the owner of the machine is shown; default: the program's file name.  `path`: the user's own
    broker.  `id` stands for one process; default: one that nobody had before.
    """
    identity = HolderIdentity.of_this_process(name or Path(sys.argv[0]).name or "python")
    if id is not None:
        identity = HolderIdentity(id, identity.client_name, identity.pid)
    return LeaseKeeper(path or find_paths().lease_socket, identity, note)


def close_check(request: CanCloseRequest) -> CloseCheck:
    """A close check as its callback is told of it."""
    return CloseCheck(request.app_key, request.timeout_seconds)


def verdict_of(answer: object) -> Verdict:
    """What a callback has decided; raises TypeError for anything but a decision."""
    if isinstance(answer, Extend | Allow):
        return answer
    raise TypeError("a close check is answered with Extend(...) or Allow()")
