"""The client of a paired program: runs plans over connections that may break (`broker.client.plan`).

Each call under way has a connection of its own, so threads may share a client; a connection that is idle serves the
next call.
"""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path

from broker.client.blocking.companion import CompanionConnection
from broker.client.blocking.stream import Deadline
from broker.client.calls import Calls
from broker.client.errors import CallFailed, TimedOut
from broker.client.plan import RECONNECT_SECONDS, THROWN, Call, Pause, Plan, Result, Step, T
from broker.client.replies import REPLY_SECONDS
from protocols.companion.client import Credential
from protocols.companion.messages import (
    AuthenticateResult,
    CreateRequest,
    Implementation,
    RuntimeDescription,
    Snapshot,
    WaitResult,
)
from protocols.errors import EncodeError, FrameTooLong


class PairedClient:
    """See the module header.  It connects at the first call.

    Every call raises CallFailed for the broker's refusals and NotConnected when no broker could be reached (again).
    """

    def __init__(
        self,
        path: Path,
        program: Implementation,
        credential: Credential,
        patience: float = RECONNECT_SECONDS,
    ) -> None:
        self.calls = Calls(time.monotonic, patience)
        self._path = path
        self._program = program
        self._credential = credential
        self._idle: deque[CompanionConnection] = deque()
        self._closed = False

    def connect(self, timeout: float = REPLY_SECONDS) -> AuthenticateResult:
        """Connect ahead of the first call, to find out whether that is possible and who this client is."""
        connection = self._connected(Deadline.after(timeout))
        self._give_back(connection)
        assert connection.ready.identity is not None
        return connection.ready.identity

    def describe(self) -> Result[RuntimeDescription]:
        """runtime.describe."""
        return self.run(self.calls.describe())

    def create(self, request: CreateRequest) -> Result[Snapshot]:
        """requests.create; a request without an idempotency key gets one."""
        return self.run(self.calls.create(request))

    def get(self, request_id: str) -> Result[Snapshot]:
        """requests.get."""
        return self.run(self.calls.get(request_id))

    def cancel(self, request_id: str) -> Result[Snapshot]:
        """requests.cancel."""
        return self.run(self.calls.cancel(request_id))

    def wait(self, request_id: str, after_revision: int, seconds: float | None) -> Result[WaitResult]:
        """requests.wait until there is news or `seconds` are over; None: without end."""
        return self.run(self.calls.wait(request_id, after_revision, seconds))

    def close(self) -> None:
        """End the connections; requests go on."""
        self._closed = True
        self._close_idle()

    def __enter__(self) -> PairedClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- plans ------------------------------------------------------------------------------------------------

    def run(self, plan: Plan[T], within: float | None = None) -> T:
        """Carry a plan out; what it returns, or raises.  TimedOut when that takes longer than `within` seconds."""
        deadline = Deadline.after(within)
        try:
            step = next(plan)
            while True:
                try:
                    done = self._do(step, deadline)
                except THROWN as error:
                    step = plan.throw(error)
                else:
                    step = plan.send(done)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            plan.close()

    def _do(self, step: Step, deadline: Deadline) -> Result[object] | None:
        if deadline.passed:
            raise TimedOut("the broker did not answer in time")
        if isinstance(step, Pause):
            deadline.pause(step.seconds)
            return None
        return self._call(step, deadline)

    def _call(self, call: Call[object], deadline: Deadline) -> Result[object]:
        connection = self._connected(deadline)
        try:
            answer = connection.call(call.method, call.params, deadline.sooner(REPLY_SECONDS + call.waits))
        except (CallFailed, FrameTooLong, EncodeError):  # the connection is as good as before
            self._give_back(connection)
            raise
        except BaseException:  # perhaps in the middle of a frame
            connection.close()
            self._close_idle()  # what broke one has most likely broken all
            raise
        self._give_back(connection)
        return Result(answer.result, answer.raw)

    # -- connections ------------------------------------------------------------------------------------------

    def _connected(self, deadline: Deadline) -> CompanionConnection:
        """A connection that nobody else uses; raises CallFailed and NotConnected."""
        try:
            return self._idle.pop()
        except IndexError:
            seconds = deadline.sooner(REPLY_SECONDS)
            return CompanionConnection.open(self._path, self._program, self._credential, seconds)

    def _give_back(self, connection: CompanionConnection) -> None:
        self._idle.append(connection)
        if self._closed:
            self._close_idle()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()
