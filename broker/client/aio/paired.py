"""The client of a paired program, with trio: runs plans over one connection that may break (`broker.client.plan`)."""

from __future__ import annotations

import math
from pathlib import Path

import trio

from broker.client.aio.connection import CompanionConnection
from broker.client.calls import Calls
from broker.client.errors import TimedOut
from broker.client.plan import THROWN, Call, Pause, Plan, Result, Step, T
from broker.client.replies import REPLY_SECONDS
from protocols.companion.client import Credential
from protocols.companion.messages import AuthenticateResult, Implementation


class PairedClient:
    """See the module header.  Tasks may share it; the connection's own task runs in `tasks`."""

    def __init__(
        self,
        tasks: trio.Nursery,
        path: Path,
        program: Implementation,
        credential: Credential,
        patience: float,
    ) -> None:
        self.calls = Calls(trio.current_time, patience)
        self._tasks = tasks
        self._path = path
        self._program = program
        self._credential = credential
        self._connection: CompanionConnection | None = None
        self._opening = trio.Lock()

    async def connect(self) -> AuthenticateResult:
        """Connect ahead of the first call, to find out whether that is possible and who this client is."""
        connection = await self._connected(REPLY_SECONDS)
        assert connection.ready.identity is not None
        return connection.ready.identity

    def close(self) -> None:
        """End the connection; requests go on."""
        if self._connection is not None:
            self._connection.close()

    async def run(self, plan: Plan[T], within: float = math.inf) -> T:
        """Carry a plan out; what it returns, or raises.  TimedOut when that takes longer than `within` seconds."""
        deadline = trio.current_time() + within
        try:
            step = next(plan)
            while True:
                try:
                    done = await self._do(step, deadline)
                except THROWN as error:
                    step = plan.throw(error)
                else:
                    step = plan.send(done)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            plan.close()

    async def _do(self, step: Step, deadline: float) -> Result[object] | None:
        left = deadline - trio.current_time()
        if left <= 0:
            raise TimedOut("the broker did not answer in time")
        if isinstance(step, Pause):
            await trio.sleep(min(step.seconds, left))
            return None
        return await self._call(step, left)

    async def _call(self, call: Call[object], left: float) -> Result[object]:
        connection = await self._connected(min(REPLY_SECONDS, left))
        try:
            answer = await connection.call(call.method, call.params, min(REPLY_SECONDS + call.waits, left))
        except TimedOut:  # who does not answer one call answers none
            connection.close()
            raise
        return Result(answer.result, answer.raw)

    async def _connected(self, seconds: float) -> CompanionConnection:
        """The connection, opened again where it has ended; raises CallFailed and NotConnected."""
        async with self._opening:
            if self._connection is None or self._connection.ended:
                self._connection = await CompanionConnection.open(
                    self._tasks, self._path, self._program, self._credential, seconds
                )
            return self._connection
