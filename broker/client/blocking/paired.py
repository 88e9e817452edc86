"""The client of a paired program: its calls survive the loss of a connection.

Every call here may be made twice without harm: get, wait, cancel and describe by their nature, create because it
always carries an idempotency key (CP-4.2).  So a connection that breaks is opened again and the call is repeated; a
create that had arrived already is answered with the request that was made of it, never with a second prompt.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Generic, TypeVar

import attrs

from broker.client.blocking.companion import CompanionConnection
from broker.client.blocking.rpc import REPLY_SECONDS
from broker.client.blocking.stream import Deadline
from broker.client.errors import CallFailed, ConnectionLost, NotConnected, ProtocolBroken, TimedOut
from protocols.companion.client import Credential
from protocols.companion.messages import (
    CancelRequest,
    CreateRequest,
    DescribeRuntime,
    GetRequest,
    Implementation,
    RuntimeDescription,
    Snapshot,
    WaitRequest,
    WaitResult,
)
from protocols.json_values import JSON

RECONNECT_SECONDS = 5.0
_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 0.5
LONGEST_WAIT_MS = 60_000
"""The longest wait of companion.md; a broker may publish a shorter one."""

T = TypeVar("T")


@attrs.frozen
class Result(Generic[T]):
    """A call's result: typed, and as it stood on the wire."""

    value: T = attrs.field(repr=False)
    raw: JSON = attrs.field(repr=False)


class PairedClient:
    """See the module header.  It connects at the first call.

    Every call raises CallFailed for the broker's refusals and NotConnected when no broker could be reached (again).
    """

    def __init__(self, path: Path, program: Implementation, credential: Credential) -> None:
        self._path = path
        self._program = program
        self._credential = credential
        self._connection: CompanionConnection | None = None

    def describe(self) -> Result[RuntimeDescription]:
        """runtime.describe."""
        return self._call("runtime.describe", DescribeRuntime(), RuntimeDescription)

    def create(self, request: CreateRequest) -> Result[Snapshot]:
        """requests.create; a request without an idempotency key gets one."""
        if request.idempotency_key is None:
            request = attrs.evolve(request, idempotency_key=new_idempotency_key())
        return self._call("requests.create", request, Snapshot)

    def get(self, request_id: str) -> Result[Snapshot]:
        """requests.get."""
        return self._call("requests.get", GetRequest(request_id=request_id), Snapshot)

    def cancel(self, request_id: str) -> Result[Snapshot]:
        """requests.cancel."""
        return self._call("requests.cancel", CancelRequest(request_id=request_id), Snapshot)

    def wait(self, request_id: str, after_revision: int, seconds: float | None) -> Result[WaitResult]:
        """requests.wait, as often as the broker's limit makes it necessary: until there is news or the time is over.

        `seconds` None: without end.
        """
        deadline = Deadline.after(seconds)
        longest = LONGEST_WAIT_MS
        while True:
            remaining = deadline.remaining
            wait_ms = longest if remaining is None else min(longest, round(remaining * 1000))
            params = WaitRequest(request_id=request_id, after_revision=after_revision, wait_ms=wait_ms)
            try:
                result = self._call("requests.wait", params, WaitResult, wait_ms / 1000)
            except CallFailed as error:
                longest = published_wait_limit(error, wait_ms)
                continue
            if result.value.changed or deadline.passed:
                return result

    def close(self) -> None:
        """End the connection; requests go on."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def __enter__(self) -> PairedClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, method: str, params: object, kind: type[T], waits: float = 0.0) -> Result[T]:
        """Call; over a new connection, again and again for a while, when the one that stood was lost."""
        hope: Deadline | None = None
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                answer = self._connected().call(method, params, REPLY_SECONDS + waits)
            except ProtocolBroken:
                self.close()
                raise
            except NotConnected as error:
                self.close()
                if isinstance(error, ConnectionLost):
                    hope = hope or Deadline.after(RECONNECT_SECONDS)
                if hope is None or hope.passed or isinstance(error, TimedOut):
                    raise
                hope.pause(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
            else:
                assert isinstance(answer.result, kind)
                return Result(answer.result, answer.raw)

    def _connected(self) -> CompanionConnection:
        if self._connection is None:
            self._connection = CompanionConnection.open(self._path, self._program, self._credential)
        return self._connection


def new_idempotency_key() -> str:
    """A key that was not used before."""
    return os.urandom(16).hex()


def published_wait_limit(error: CallFailed, wait_ms: int) -> int:
    """The broker's own longest wait, as its refusal of `wait_ms` tells it; raises the error if it is another one."""
    limit = error.details.get("limit")
    if error.details.get("field") != "waitMs" or not isinstance(limit, int) or not 0 < limit < wait_ms:
        raise error
    return limit
