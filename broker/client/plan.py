"""What a client does, written once for every transport: a plan is a generator of steps.

    plan = calls.wait(request_id, revision, None)
    client.run(plan)            or, with trio, await client.run(plan)

A plan yields what is to be done next, a `Call` or a `Pause`, and is sent what came of it; an error of the call is
thrown into it.  What it returns is the result.  It reads a clock that it was given, and knows no socket.

Every call that a plan makes may be made twice without harm: get, wait, cancel and the descriptions by their nature,
update because it names the revision that it changes, create because it always carries an idempotency key.  So a call
whose connection was lost is simply made again; for a create that repetition is the query that CP-4.2 asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Generic, TypeAlias, TypeVar

import attrs

from broker.client.errors import CallFailed, ClientError, ConnectionLost, NotConnected, TimedOut
from protocols.errors import EncodeError, FrameTooLong
from protocols.json_values import JSON

RECONNECT_SECONDS = 5.0
"""How long a broker may be away, or busy, before a call is given up."""
_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 0.5
_SOON_OVER = frozenset({"stopping", "not_saved"})
"""Reasons of RUNTIME_UNAVAILABLE that are the broker's own trouble: it is being restarted, or its disk failed."""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Clock: TypeAlias = Callable[[], float]
"""Seconds that only grow."""


@attrs.frozen
class Result(Generic[T_co]):
    """A call's result: typed, and as it stood on the wire."""

    value: T_co = attrs.field(repr=False)
    raw: JSON = attrs.field(repr=False)


@attrs.frozen
class Call(Generic[T_co]):
    """A step: call a method, whose result is of class `kind`; the broker may take `waits` seconds longer over it."""

    method: str
    params: object = attrs.field(repr=False)
    kind: type[T_co]
    waits: float = 0.0


@attrs.frozen
class Pause:
    """A step: do nothing for so many seconds."""

    seconds: float


Step: TypeAlias = "Call[object] | Pause"
Plan: TypeAlias = "Generator[Step, Result[object] | None, T]"

THROWN = (ClientError, FrameTooLong, EncodeError)
"""What whoever runs a plan throws into it when a call raises it."""


def repeated(call: Call[T], clock: Clock, patience: float) -> Plan[Result[T]]:
    """Make a call, and make it again while the broker is away or busy, for `patience` seconds.

    A broker that was not there at all is not waited for.  Raises CallFailed for a refusal that stands, also for
    parameters that cannot be sent; NotConnected.
    """
    until: float | None = None
    pause = _FIRST_PAUSE_SECONDS
    while True:
        begun = clock()
        try:
            done = yield call
        except (FrameTooLong, EncodeError) as error:
            raise _unsendable(error) from None
        except ClientError as error:
            least = _pause_before_repeating(error, hoping=until is not None)
            now = clock()
            if until is None or now - begun > patience:  # a connection that stood for long earns new patience
                until = now + patience
            if least is None or now + least >= until:
                raise
            yield Pause(min(max(pause, least), until - now))
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        else:
            assert done is not None
            assert isinstance(done.value, call.kind)
            return Result(done.value, done.raw)


def _pause_before_repeating(error: ClientError, *, hoping: bool) -> float | None:
    """The least number of seconds to wait before the call is made again; None: it is not to be."""
    match error:
        case TimedOut():
            return None
        case ConnectionLost():
            return 0.0
        case NotConnected():
            return 0.0 if hoping else None
        case CallFailed(code="RUNTIME_UNAVAILABLE") if error.details.get("reason") in _SOON_OVER:
            return 0.0
        case CallFailed(code="RATE_LIMITED", details={"retryAfterMs": int(milliseconds)}):
            return milliseconds / 1000
    return None


def _unsendable(error: FrameTooLong | EncodeError) -> CallFailed:
    if isinstance(error, FrameTooLong):
        details: dict[str, JSON] = {"limitBytes": error.limit_bytes}
        return CallFailed("INVALID_PARAMS", "the parameters are too long for one message", False, details)
    return CallFailed("INVALID_PARAMS", "the parameters cannot be written as JSON", False, {})
