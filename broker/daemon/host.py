"""The host entry: requests of the process that embeds the broker, past the sockets and past nothing else (CP-1.3).

    async with open_broker(setup) as broker:
        asked = await broker.host.create({"capability": "notice.show", "params": {...}, "timeoutMs": 60_000})
        news = await broker.host.wait({"requestId": asked.request_id, "afterRevision": 1, "waitMs": 60_000})

Each method takes the params of the wire's method of that name as JSON values, and does with them what a connection
does with a line: they are written and read as strict JSON, structured, decided by the same handlers over the same
queue, and answered once what was decided is stored.  Who asks is said by the connection that the calls come by, never
by their params; no socket leads to that connection (`handlers/companion/host.py`).

A call is decided at once and then waits for its commit.  That wait is not given up when the task is cancelled, lest a
request be made that nobody knows of; only `wait` can be cancelled while it waits, and leaves nothing behind.  The
published rates of a connection do not hold here: they protect the broker from its clients, and the host runs it.
"""

from __future__ import annotations

import itertools
import os
from typing import TypeVar

import attrs
import trio

from broker.daemon.dispatch import Dispatch
from handlers.companion.host import HOST, HOST_CONNECTION
from handlers.events import Abandoned, Call, CallRef, Closed, Opened
from protocols.companion.messages import (
    CancelRequest,
    CreateRequest,
    GetRequest,
    Snapshot,
    UpdateRequest,
    WaitRequest,
    WaitResult,
)
from protocols.errors import EncodeError, InvalidValue, ParseError
from protocols.json_values import JSONObject
from protocols.jsonrpc_session import as_refused, invalid_params
from protocols.refusal import ErrorCode, Refused
from protocols.session import Fault, Refusal, Stopping
from protocols.strict_json import decode, encode
from protocols.structure import structure

M = TypeVar("M")
R = TypeVar("R")


class HostRefused(Exception):
    """The broker says no, as it would to any client: the stable code, and what goes with it (CP-6.6).

    `details` are those of the wire's error; neither they nor the text hold anything of the request's content.
    """

    def __init__(self, refused: Refused) -> None:
        super().__init__(f"{refused.code.value}: {refused.message}")
        self.code: ErrorCode = refused.code
        self.details: JSONObject = refused.details

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed later."""
        return self.code.facts.retryable


class HostCutOff(Exception):
    """The broker ended, by a lost store or by being cancelled, without an answer: the call may hold or not."""

    def __init__(self) -> None:
        super().__init__("the broker ended before the call was answered")


@attrs.frozen
class _CutOff(Refusal):
    """Nothing more is told."""


@attrs.define(eq=False)
class _Pending:
    """A call that has no answer yet; `parked`: its answer may come much later than its commit."""

    parked: bool
    body: object = None
    answered: trio.Event = attrs.field(factory=trio.Event)

    def answer(self, body: object) -> None:
        if not self.answered.is_set():
            self.body = body
            self.answered.set()


class HostEntry:
    """See the module header.  `max_frame_bytes`: what params may take when written, as a frame of a client may."""

    def __init__(self, dispatch: Dispatch, max_frame_bytes: int) -> None:
        self._dispatch = dispatch
        self._max_frame_bytes = max_frame_bytes
        self._numbers = itertools.count(1)
        self._pending: dict[int, _Pending] = {}
        self._over: Refusal | None = None

    async def create(self, params: JSONObject) -> Snapshot:
        """`requests.create` (CP-3.1): the request as it was accepted, or as it was made by the same idempotency key.

        Raises HostRefused, HostCutOff.
        """
        return await self._ask(CreateRequest, params, Snapshot)

    async def get(self, params: JSONObject) -> Snapshot:
        """`requests.get`: an own request as it is now.  Raises HostRefused, HostCutOff."""
        return await self._ask(GetRequest, params, Snapshot)

    async def wait(self, params: JSONObject) -> WaitResult:
        """`requests.wait` (CP-3.9): news of an own request, for at most `waitMs` milliseconds.

        Raises HostRefused (RUNTIME_UNAVAILABLE with the reason `stopping` as soon as the broker's end was asked
        for), HostCutOff.  Cancelled, it leaves no wait behind, and the request goes on.
        """
        return await self._ask(WaitRequest, params, WaitResult)

    async def update(self, params: JSONObject) -> Snapshot:
        """`requests.update` (CP-3.11): the changed request.  Raises HostRefused, HostCutOff."""
        return await self._ask(UpdateRequest, params, Snapshot)

    async def cancel(self, params: JSONObject) -> Snapshot:
        """`requests.cancel`: the request, cancelled unless it had ended before.  Raises HostRefused, HostCutOff."""
        return await self._ask(CancelRequest, params, Snapshot)

    # -- a call -----------------------------------------------------------------------------------------------

    async def _ask(self, kind: type[M], params: JSONObject, result: type[R]) -> R:
        message = read_params(kind, params, self._max_frame_bytes)
        await trio.lowlevel.checkpoint_if_cancelled()
        self._check_open(kind)
        number, pending = next(self._numbers), _Pending(parked=kind is WaitRequest)
        self._pending[number] = pending
        ref = CallRef(HOST_CONNECTION, number)
        try:
            if not self._dispatch.submit(Call(ref, message, os.urandom(32))):
                pending.answer(Fault())
            with trio.CancelScope(shield=not pending.parked):
                await pending.answered.wait()
        finally:
            self._forget(ref)
        if not isinstance(pending.body, result):
            raise _error(pending.body)
        return pending.body

    def _check_open(self, kind: type[object]) -> None:
        over = self._over
        if over is None and kind is WaitRequest and self._dispatch.stopping.is_set():
            over = Stopping()
        if over is not None:
            raise _error(over)

    def _forget(self, ref: CallRef) -> None:
        """Let go of a call; one that was left without the broker's answer is not waited for any more."""
        if self._pending.pop(ref.number, None) is not None and self._over is None:
            self._dispatch.submit(Abandoned(ref))

    # -- from the effects -------------------------------------------------------------------------------------

    def reply(self, number: int, body: object) -> None:
        """The answer to a call; one that nobody waits for any more goes nowhere."""
        pending = self._pending.pop(number, None)
        if pending is not None:
            pending.answer(body)

    def push(self, body: object) -> None:
        """Nothing is pushed to the host."""
        raise TypeError(f"the host has no push for {type(body).__name__}")

    def hang_up(self) -> None:
        """The host's session ends with the broker alone."""

    def abort(self) -> None:
        """An answer could not be made: nobody is left waiting for it."""
        self._answer_all(Fault())

    # -- from the start to the end ----------------------------------------------------------------------------

    def open(self) -> None:
        """From here on the host's calls are decided."""
        self._dispatch.insiders[HOST_CONNECTION] = self
        self._dispatch.submit(Opened(HOST_CONNECTION, HOST, None))

    async def end_waits(self) -> None:
        """Once the broker's end was asked for, nobody in this process is kept from it by a wait of the host's."""
        await self._dispatch.stopping.wait()
        for pending in self._pending.values():
            if pending.parked:
                pending.answer(Stopping())

    def stop(self) -> None:
        """The broker ends: whoever still waits for an answer is told so, and no further call is taken."""
        self._over = self._over or Stopping()
        self._answer_all(self._over)
        self._dispatch.submit(Closed(HOST_CONNECTION))

    def lose(self) -> None:
        """Nothing is committed any more: nobody is told anything, and nobody is left waiting."""
        self._over = self._over or _CutOff()
        self._answer_all(self._over)

    def _answer_all(self, body: object) -> None:
        for pending in self._pending.values():
            pending.answer(body)


def read_params(kind: type[M], params: JSONObject, max_bytes: int) -> M:
    """The message that these params are, read from the very text that a client would have sent.

    Raises HostRefused with INVALID_PARAMS, as a client would have been told.
    """
    try:
        text = encode(params)
        if len(text) > max_bytes:
            raise InvalidValue("", "too long", max_bytes)
        document = decode(text)
        if document.flaw is not None:
            raise InvalidValue(document.flaw.dotted, document.flaw.reason)
        return structure(kind, document.value)
    except InvalidValue as error:
        refused = invalid_params(error)
    except (EncodeError, ParseError) as error:
        refused = invalid_params(InvalidValue("", str(error)))
    raise HostRefused(refused)


def _error(body: object) -> HostRefused | HostCutOff:
    if isinstance(body, _CutOff):
        return HostCutOff()
    if isinstance(body, Refusal):
        body = as_refused(body)
    assert isinstance(body, Refused), type(body).__name__
    return HostRefused(body)
