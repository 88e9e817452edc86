"""A keeper of leases for a loop that blocks: it can also be waited for, until the leases are held or given back."""

from __future__ import annotations

import select
import time

from broker.client.blocking.stream import Deadline
from broker.client.keeper import LeaseKeeper


class BlockingKeeper(LeaseKeeper):
    """A `LeaseKeeper`, to be stepped by its owner's loop as well."""

    def settle(self, timeout: float) -> None:
        """Wait until every app was answered or the broker turned out not to be there."""
        deadline = Deadline.after(timeout)
        while not self.settled and not deadline.passed:
            self._wait(deadline)
            self.step()

    def finish(self, timeout: float) -> None:
        """End the leases and close; what cannot be told in time ends with this process."""
        deadline = Deadline.after(timeout)
        for hold in self.holds:
            self.give_back(hold)
        self.step()
        while self.holds and self.channel is not None and not deadline.passed:
            self._wait(deadline)
            self.step()
        self.close()

    def __enter__(self) -> BlockingKeeper:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _wait(self, deadline: Deadline) -> None:
        poll = select.poll()
        if self.channel is not None:
            poll.register(self.channel, select.POLLIN)
        seconds = deadline.sooner(max(0.0, self.wake_at - time.monotonic()))
        poll.poll(None if seconds == float("inf") else seconds * 1000)
