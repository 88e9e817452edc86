"""Keeps leases on apps over a socket that is connected again when it breaks (LP-9, LP-10, LP-12).

A `LeaseKeeper` never waits: its owner's loop waits for `channel` to become readable or for `wake_at`, and then calls
`step`.  What it says is `broker.client.keeping`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

from broker.client.channel import Channel, connect_now
from broker.client.errors import ClientError, TimedOut
from broker.client.keeping import Hold, HolderIdentity, Keeping, Verdict
from protocols.lease.messages import CanCloseRequest

_FULL_SOCKET_SECONDS = 0.05
"""When to go on sending to a broker that takes no more at present."""


class LeaseKeeper:
    """See the module header.  `note` is told, in a line each, when protection is lost and when it is back."""

    def __init__(
        self,
        path: Path,
        identity: HolderIdentity,
        note: Callable[[str], None],
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.channel: Channel | None = None
        self._path = path
        self._keeping = Keeping(identity, note, chance)
        self._output = b""

    @property
    def holds(self) -> list[Hold]:
        """The leases, those included whose end was not answered yet."""
        return self._keeping.holds

    @property
    def failure(self) -> ClientError | None:
        """Why there is no session now; None while there is one, or the first is being opened."""
        return self._keeping.failure

    @property
    def settled(self) -> bool:
        """Whether every lease was answered, or there is no session to answer it."""
        return self._keeping.settled

    @property
    def wake_at(self) -> float:
        """When `step` is due even if nothing arrives, by the monotonic clock."""
        if self._output:
            return time.monotonic() + _FULL_SOCKET_SECONDS
        return self._keeping.wake_at

    def hold(self, hold: Hold) -> None:
        """Take a lease; ValueError for a second one on an app."""
        self._keeping.hold(hold, time.monotonic())

    def give_back(self, hold: Hold) -> None:
        """End a lease."""
        self._keeping.give_back(hold, time.monotonic())

    def take_checks(self) -> list[tuple[Hold, CanCloseRequest]]:
        """The close checks that have come for the owners of leases to decide."""
        taken = list(self._keeping.checks)
        self._keeping.checks.clear()
        return taken

    def decide(self, hold: Hold, check: CanCloseRequest, verdict: Verdict) -> None:
        """Answer a close check."""
        self._keeping.decide(hold, check, verdict, time.monotonic())

    def step(self) -> None:
        """Read what has arrived, do what is due, and send what there is to say."""
        now = time.monotonic()
        try:
            if self.channel is not None:
                self._read(self.channel, now)
                self._keeping.step(now)
            elif now >= self._keeping.wake_at:
                self._connect(now)
            self._write()
        except ClientError as error:
            self.close()
            self._keeping.lost(error, now)

    def close(self) -> None:
        """Close the connection; the broker keeps the leases to their ends."""
        if self.channel is not None:
            self.channel.close()
        self.channel = None
        self._output = b""
        self._keeping.disconnected()

    def _connect(self, now: float) -> None:
        if (sock := connect_now(self._path)) is None:
            raise TimedOut("the broker has no room for another connection")
        self.channel = Channel(sock)
        self._keeping.connected(now)

    def _read(self, channel: Channel, now: float) -> None:
        while (data := channel.receive_now()) is not None:
            self._keeping.receive(data, now)

    def _write(self) -> None:
        self._output += self._keeping.take_output()
        while self._output and self.channel is not None:
            if not (sent := self.channel.send_now(self._output)):
                return
            self._output = self._output[sent:]
