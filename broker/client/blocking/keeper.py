"""Keeps leases on apps for as long as something runs, over a connection that may break (LP-9, LP-10, LP-12).

A `LeaseKeeper` never waits: its owner's loop waits for `stream` to become readable or for `wake_at`, and then calls
`step`.  Per app it begins, renews at a third of the granted term, begins anew when a renewal came too late, and
answers every close check with extend.  A broken or silent connection is opened again with growing pauses; the
broker keeps the leases meanwhile, and a begin under the same holder id takes them up again (lease.md, begin on an
own lease).
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

from broker.client.blocking.lease import ANSWER_SECONDS, Holder, new_request_id, read_message
from broker.client.blocking.stream import Deadline, Stream
from broker.client.errors import ConnectionLost, LeaseRefused, NotConnected, ProtocolBroken, TimedOut
from protocols.lease.client import LeaseClient
from protocols.lease.codes import Code
from protocols.lease.messages import CanCloseRequest, Ready, Response, ServerMessage, SessionError

DEFAULT_SECONDS = 600
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
_SEND_SECONDS = 1.0
_TRANSIENT = (Code.LEASE_CONFLICT, Code.NOT_ENTITLED)
"""Refusals of a begin that may be over a while later."""


@attrs.define
class Hold:
    """One app: whether its lease is held, why not, when the next message about it is due, and which is on its way."""

    app_key: str
    held: bool = False
    refused: LeaseRefused | None = None
    due: float | None = None
    asked: str | None = None
    renewing: bool = False

    @property
    def answered(self) -> bool:
        """Whether the broker has said yes or no."""
        return self.held or self.refused is not None


class LeaseKeeper:
    """See the module header.

    `seconds` None: ten minutes, or what comes nearest to it within the broker's limits.  `note` is told, in a line
    each, when protection is lost and when it is back.
    """

    def __init__(
        self,
        path: Path,
        holder: Holder,
        app_keys: Sequence[str],
        seconds: int | None,
        note: Callable[[str], None],
    ) -> None:
        self.holds = [Hold(app_key) for app_key in app_keys]
        self.failure: NotConnected | LeaseRefused | ProtocolBroken | None = None
        """Why there is no session now; None while there is one, or the first is being opened."""
        self.stream: Stream | None = None
        self._path = path
        self._holder = holder
        self._wanted = seconds
        self._note = note
        self._client = LeaseClient(holder.id)
        self._pause = FIRST_PAUSE_SECONDS
        self._retry_at = 0.0
        self._answer_by: float | None = None

    # -- for the owner's loop ---------------------------------------------------------------------------------

    @property
    def wake_at(self) -> float:
        """When `step` is due even if nothing arrives, by the monotonic clock."""
        if self.stream is None:
            return self._retry_at
        times = [hold.due for hold in self.holds if hold.due is not None]
        return min(
            [*times, *([self._answer_by] if self._answer_by is not None else [])], default=float("inf")
        )

    def step(self) -> None:
        """Read what has arrived and do what is due."""
        now = time.monotonic()
        try:
            if self.stream is None:
                if now >= self._retry_at:
                    self._connect()
                return
            self._read()
            if self._answer_by is not None and now >= self._answer_by:
                raise TimedOut("the broker did not answer in time")
            self._send_due(now)
        except (NotConnected, LeaseRefused, ProtocolBroken) as error:
            self._drop(error)

    def settle(self, timeout: float) -> None:
        """Wait until every app was answered or the broker turned out not to be there."""
        deadline = Deadline.after(timeout)
        while not self._settled and not deadline.passed:
            self._wait(deadline)
            self.step()

    def finish(self, timeout: float) -> None:
        """End the leases that are held and close; what cannot be told in time ends with this process."""
        deadline = Deadline.after(timeout)
        for hold in self.holds:
            hold.due = None
            if self.stream is not None and hold.held:
                self._tell_end(hold)
        while self._answer_by is not None and self.stream is not None and not deadline.passed:
            self._wait(deadline)
            self.step()
        self.close()

    def __enter__(self) -> LeaseKeeper:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _settled(self) -> bool:
        return self.failure is not None or all(hold.answered for hold in self.holds)

    def _wait(self, deadline: Deadline) -> None:
        seconds = max(0.0, self.wake_at - time.monotonic())
        remaining = deadline.remaining
        if remaining is not None:
            seconds = min(seconds, remaining)
        readable = [] if self.stream is None else [self.stream]
        select.select(readable, [], [], seconds)

    # -- the connection ---------------------------------------------------------------------------------------

    def _connect(self) -> None:
        self._client = LeaseClient(self._holder.id)
        self.stream = Stream.connect(self._path, Deadline.after(0))
        self._send(self._client.hello(self._holder.client_name, self._holder.pid))

    def _send(self, frame: bytes) -> None:
        assert self.stream is not None
        self.stream.send(frame, Deadline.after(_SEND_SECONDS))
        if self._answer_by is None:
            self._answer_by = time.monotonic() + ANSWER_SECONDS

    def _read(self) -> None:
        assert self.stream is not None
        while (data := self.stream.receive_now()) is not None:
            if not data:
                raise ConnectionLost("the broker closed the connection")
            self._client.receive(data)
            while (message := read_message(self._client)) is not None:
                self._on_message(message)

    def _drop(self, error: NotConnected | LeaseRefused | ProtocolBroken) -> None:
        if self.failure is None and any(hold.held for hold in self.holds):
            self._note(
                "the connection to the broker is lost; the command goes on, and so do the attempts to reconnect"
            )
        self.failure = error
        self.close()
        self._retry_at = time.monotonic() + self._pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)

    def close(self) -> None:
        """Close the connection; the broker keeps the leases to their ends."""
        if self.stream is not None:
            self.stream.close()
        self.stream = None
        self._answer_by = None
        for hold in self.holds:
            hold.asked = None

    # -- messages ---------------------------------------------------------------------------------------------

    def _on_message(self, message: ServerMessage) -> None:
        match message:
            case Ready():
                self._on_ready()
            case Response():
                self._on_response(message)
            case CanCloseRequest():
                self._on_close_check(message)
            case SessionError():
                raise LeaseRefused(message.code.value, message.message)

    def _on_ready(self) -> None:
        self._answer_by = None
        if self.failure is not None:
            self._note("connected to the broker again")
        self.failure = None
        for hold in self.holds:
            hold.held = False
            self._ask(hold, renew=False)

    def _ask(self, hold: Hold, *, renew: bool) -> None:
        request_id = new_request_id()
        message = self._client.renew if renew else self._client.begin
        hold.asked, hold.renewing, hold.due = request_id, renew, None
        self._send(message(request_id, hold.app_key, self._seconds))

    def _tell_end(self, hold: Hold) -> None:
        request_id = new_request_id()
        hold.asked, hold.held = request_id, False
        try:
            self._send(self._client.end(request_id, hold.app_key))
        except NotConnected as error:
            self._drop(error)

    def _on_close_check(self, check: CanCloseRequest) -> None:
        for hold in self.holds:
            if hold.app_key == check.app_key:
                hold.asked, hold.renewing, hold.due = check.request_id, True, None
                self._send(self._client.extend(check, self._seconds))

    def _on_response(self, response: Response) -> None:
        hold = next((hold for hold in self.holds if hold.asked == response.request_id), None)
        if hold is None:
            return
        hold.asked = None
        waiting = any(other.asked for other in self.holds)
        self._answer_by = time.monotonic() + ANSWER_SECONDS if waiting else None
        if response.code is Code.ACCEPTED:
            self._granted(hold, response)
        elif hold.renewing:
            self._ask(hold, renew=False)  # too late for a renewal: take the lease anew
        else:
            self._refused(hold, response)

    def _granted(self, hold: Hold, response: Response) -> None:
        if response.lease_seconds is None:  # an end
            return
        self._pause = FIRST_PAUSE_SECONDS
        hold.held, hold.refused = True, None
        hold.due = time.monotonic() + response.lease_seconds / 3

    def _refused(self, hold: Hold, response: Response) -> None:
        if hold.held:
            self._note(f"the lease on {hold.app_key} is lost: {response.message or response.code.value}")
        hold.held = False
        hold.refused = LeaseRefused(response.code.value, response.message or response.code.value)
        if response.code in _TRANSIENT:
            hold.due = time.monotonic() + self._seconds / 3

    def _send_due(self, now: float) -> None:
        for hold in self.holds:
            if hold.due is not None and now >= hold.due:
                self._ask(hold, renew=hold.held)

    @property
    def _seconds(self) -> int:
        if self._wanted is not None or self._client.ready is None:
            return self._wanted or DEFAULT_SECONDS
        limits = self._client.ready.limits
        return int(min(max(DEFAULT_SECONDS, limits.min_lease_seconds), limits.max_lease_seconds))
