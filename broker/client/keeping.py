"""What one holder says about its leases, over connections that come and go; no input, no output, no clock.

    keeping.hold(app_key, seconds, now), keeping.give_back(hold, now), keeping.decide(check, verdict, now)
    keeping.connected(now)              a connection stands: says hello
    keeping.receive(data, now)          what has arrived; keeping.step(now): what is due.  What they raise ends the
    keeping.lost(error, now)            connection, and `wake_at` says when to try again
    keeping.take_output()               what is to be sent

Per app it begins, renews at a third of the granted term, begins anew when a renewal came too late, and answers each
close check: with extend, or with what the lease's owner decides.  The broker keeps the leases while a connection is
lost, and over its own restart; a begin under the same holder id takes them up again (lease.md, begin on an own
lease).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeAlias

import attrs

from broker.client.errors import ClientError, ConnectionLost, LeaseRefused, ProtocolBroken, TimedOut
from protocols.errors import TheirError
from protocols.lease.client import LeaseClient
from protocols.lease.codes import Code
from protocols.lease.messages import CanCloseRequest, Ready, Response, ServerMessage, SessionError

DEFAULT_SECONDS = 600
ANSWER_SECONDS = 5.0
"""How long the broker may take over an answer before it counts as gone."""
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
_RENEWED_AT = 1 / 3
_JITTER = 0.1
_TRANSIENT = (Code.LEASE_CONFLICT, Code.NOT_ENTITLED)
"""Refusals of a begin that may be over a while later."""


@attrs.frozen
class HolderIdentity:
    """Who holds: an id that stands for one process, the name that the owner is shown, and the process."""

    id: str
    client_name: str
    pid: int

    @classmethod
    def of_this_process(cls, client_name: str) -> HolderIdentity:
        """An id that nobody had before, so that two of one program are two holders."""
        return cls(f"{os.getpid()}-{os.urandom(8).hex()}", client_name, os.getpid())


@attrs.frozen
class CloseCheck:
    """The broker asks whether an app may be closed whose lease has run out (LP-9); silence for `timeout_seconds`
    counts as busy."""

    app_key: str
    timeout_seconds: float


@attrs.frozen
class Extend:
    """The answer that keeps the app open for so many seconds; None: for the lease's own term."""

    seconds: int | None = None


@attrs.frozen
class Allow:
    """The answer that lets the app be closed; the lease is over with it."""


Verdict: TypeAlias = "Extend | Allow"


@attrs.define(eq=False)
class Hold:
    """One app: whether its lease is held, why not, when the next message about it is due, and which is on its way."""

    app_key: str
    seconds: int | None = None
    """The term that is asked for; None: ten minutes, or what comes nearest to it within the broker's limits."""
    renews: bool = True
    decides: bool = False
    """Whether its owner answers close checks, through `Keeping.checks`; else each is answered with extend."""
    held: bool = False
    refused: LeaseRefused | None = None
    failure: ClientError | None = None
    """Why it was not answered."""
    over: bool = False
    """Given back, or allowed to be closed: it is not taken up again."""
    due: float | None = None
    asked: str | None = None
    renewing: bool = False

    @property
    def answered(self) -> bool:
        """Whether the broker has said yes or no."""
        return self.held or self.refused is not None


def new_request_id() -> str:
    """An id that was not used before (lease.md, requestId)."""
    return f"req_{os.urandom(12).hex()}"


def read_message(client: LeaseClient) -> ServerMessage | None:
    """The engine's next message; raises ProtocolBroken for what no server may send."""
    try:
        return client.next_message()
    except TheirError as error:
        raise ProtocolBroken(f"the broker broke the lease protocol ({type(error).__name__})") from None


class Keeping:
    """See the module header.  `now` is a clock that only grows, in seconds.

    `note` is told, in a line each, when protection is lost and when it is back; `chance` gives numbers from 0 to 1,
    which spread renewals and reconnections of many holders.
    """

    def __init__(
        self, identity: HolderIdentity, note: Callable[[str], None], chance: Callable[[], float]
    ) -> None:
        self.holds: list[Hold] = []
        self.checks: list[tuple[Hold, CanCloseRequest]] = []
        """Close checks that the owners of their leases decide."""
        self.failure: ClientError | None = None
        """Why there is no session now; None while there is one, or the first is being opened."""
        self._identity = identity
        self._note = note
        self._chance = chance
        self._client: LeaseClient | None = None
        self._output = bytearray()
        self._pause = FIRST_PAUSE_SECONDS
        self._retry_at = 0.0
        self._answer_by: float | None = None

    # -- leases -----------------------------------------------------------------------------------------------

    def hold(self, hold: Hold, now: float) -> None:
        """Take a lease, at once or as soon as there is a session.  One lease an app: ValueError for a second."""
        if any(other.app_key == hold.app_key for other in self.holds if not other.over):
            raise ValueError("this holder has a lease on that app already")
        self.holds.append(hold)
        if self._ready:
            self._ask(hold, now)
        elif self._client is None:
            self._retry_at, self._pause = now, FIRST_PAUSE_SECONDS

    def give_back(self, hold: Hold, now: float) -> None:
        """End a lease; it is told as soon as there is a session, and `holds` has it until that was answered."""
        if hold in self.holds and not hold.over:
            hold.over, hold.held, hold.due = True, False, None
            if self._ready:
                self._end(hold, now)

    def decide(self, hold: Hold, check: CanCloseRequest, verdict: Verdict, now: float) -> None:
        """Answer a close check; without a session it has no answer, and the broker asks again."""
        if not self._ready or hold.over:
            return
        assert self._client is not None
        hold.asked, hold.renewing, hold.due = check.request_id, True, None
        if isinstance(verdict, Allow):
            hold.over, hold.held = True, False
            self._send(self._client.allow(check), now)
        else:
            self._send(self._client.extend(check, verdict.seconds or self._term(hold)), now)

    @property
    def settled(self) -> bool:
        """Whether every lease was answered, or there is no session to answer it."""
        return self.failure is not None or all(hold.answered or hold.over for hold in self.holds)

    # -- connections ------------------------------------------------------------------------------------------

    @property
    def wake_at(self) -> float:
        """When something is due, even if nothing arrives: without a connection the next attempt to make one."""
        if self._client is None:
            return self._retry_at
        times = [hold.due for hold in self.holds if hold.due is not None]
        if self._answer_by is not None:
            times.append(self._answer_by)
        return min(times, default=float("inf"))

    def connected(self, now: float) -> None:
        """A connection stands."""
        self._client = LeaseClient(self._identity.id)
        self._send(self._client.hello(self._identity.client_name, self._identity.pid), now)

    def lost(self, error: ClientError, now: float) -> None:
        """There is no connection, or no more."""
        if self.failure is None and any(hold.held for hold in self.holds):
            self._note("the connection to the broker is lost; it is tried again while the leases run on")
        self.failure = error
        self.disconnected()
        for hold in self.holds:
            hold.held, hold.failure = False, error
        self._retry_at = now + self._pause * (1 - self._chance() / 2)
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)

    def disconnected(self) -> None:
        """Whoever had the connection has closed it; the broker keeps the leases to their ends."""
        self._client = None
        self._answer_by = None
        self._output.clear()
        self.checks.clear()
        for hold in self.holds:
            hold.asked = hold.due = None  # the next session begins with every lease

    def receive(self, data: bytes, now: float) -> None:
        """Take bytes, cut anyhow; none: the stream has ended.

        Raises ConnectionLost, LeaseRefused, ProtocolBroken.
        """
        assert self._client is not None
        if not data:
            raise ConnectionLost("the broker closed the connection")
        self._client.receive(data)
        while (message := read_message(self._client)) is not None:
            self._on_message(message, now)

    def step(self, now: float) -> None:
        """Say what is due.  Raises TimedOut when the broker has fallen silent."""
        if self._answer_by is not None and now >= self._answer_by:
            raise TimedOut("the broker did not answer in time")
        for hold in self.holds:
            if hold.due is not None and now >= hold.due:
                self._ask(hold, now, renew=hold.held)

    def take_output(self) -> bytes:
        """The bytes to send now; b"" when there are none."""
        taken = bytes(self._output)
        self._output.clear()
        return taken

    # -- messages ---------------------------------------------------------------------------------------------

    @property
    def _ready(self) -> bool:
        return self._client is not None and self._client.ready is not None

    def _on_message(self, message: ServerMessage, now: float) -> None:
        match message:
            case Ready():
                self._on_ready(now)
            case Response():
                self._on_response(message, now)
            case CanCloseRequest():
                self._on_close_check(message, now)
            case SessionError():
                raise LeaseRefused(message.code.value, message.message)

    def _on_ready(self, now: float) -> None:
        self._answer_by = None
        if self.failure is not None:
            self._note("connected to the broker again")
        self.failure = None
        for hold in self.holds:
            hold.held, hold.failure = False, None
            if hold.over:
                self._end(hold, now)
            else:
                self._ask(hold, now)

    def _on_close_check(self, check: CanCloseRequest, now: float) -> None:
        for hold in self.holds:
            if hold.app_key == check.app_key and not hold.over:
                hold.due = None  # a renewal meanwhile would be an answer
                if hold.decides:
                    self.checks.append((hold, check))
                else:
                    self.decide(hold, check, Extend(), now)

    def _on_response(self, response: Response, now: float) -> None:
        hold = next((hold for hold in self.holds if hold.asked == response.request_id), None)
        if hold is None:
            return
        hold.asked = None
        waiting = any(other.asked for other in self.holds)
        self._answer_by = now + ANSWER_SECONDS if waiting else None
        if hold.over:
            self.holds.remove(hold)
        elif response.code is Code.ACCEPTED:
            self._granted(hold, response, now)
        elif hold.renewing:
            self._ask(hold, now)  # too late for a renewal: take the lease anew
        else:
            self._refused(hold, response, now)

    def _granted(self, hold: Hold, response: Response, now: float) -> None:
        self._pause = FIRST_PAUSE_SECONDS
        hold.held, hold.refused = True, None
        if hold.renews:
            hold.due = now + (response.lease_seconds or 0) * _RENEWED_AT * self._spread()

    def _refused(self, hold: Hold, response: Response, now: float) -> None:
        if hold.held:
            self._note(f"the lease on {hold.app_key} is lost: {response.message or response.code.value}")
        hold.held = False
        hold.refused = LeaseRefused(response.code.value, response.message or response.code.value)
        if response.code in _TRANSIENT:
            hold.due = now + self._term(hold) * _RENEWED_AT * self._spread()

    def _ask(self, hold: Hold, now: float, *, renew: bool = False) -> None:
        assert self._client is not None
        message = self._client.renew if renew else self._client.begin
        hold.asked, hold.renewing, hold.due = new_request_id(), renew, None
        self._send(message(hold.asked, hold.app_key, self._term(hold)), now)

    def _end(self, hold: Hold, now: float) -> None:
        assert self._client is not None
        hold.asked = new_request_id()
        self._send(self._client.end(hold.asked, hold.app_key), now)

    def _send(self, frame: bytes, now: float) -> None:
        self._output += frame
        if self._answer_by is None:
            self._answer_by = now + ANSWER_SECONDS

    def _spread(self) -> float:
        return 1 + _JITTER * (self._chance() - 0.5)

    def _term(self, hold: Hold) -> int:
        if hold.seconds is not None or self._client is None or self._client.ready is None:
            return hold.seconds or DEFAULT_SECONDS
        limits = self._client.ready.limits
        return int(min(max(DEFAULT_SECONDS, limits.min_lease_seconds), limits.max_lease_seconds))
