"""Events and effects that every protocol shares: calls and replies, connections, processes, the start.

A connection is known by a number that is never used again while the broker runs.  A `Call` is one typed message
from a connection; its `ref` says where the `Reply` goes.  The presenter is a connection like any other.
"""

from __future__ import annotations

from typing import ClassVar, Generic, TypeVar

import attrs

from handlers.rule import Effect, Event
from protocols.process import ProcessId
from protocols.session import NotSaved

M = TypeVar("M")


@attrs.frozen
class CallRef:
    """Which call of which connection: where a reply goes."""

    connection: int
    number: int


@attrs.frozen
class Call(Event, Generic[M]):
    """A typed message from a connection.  `seed` is 32 fresh random bytes (see `handlers.rule.derive`)."""

    ref: CallRef
    message: M
    seed: bytes = attrs.field(repr=False)
    ordered: bool = False
    """Whether this protocol promises replies in the order of the messages (lease.md)."""

    def unsaved(self) -> tuple[Effect, ...]:
        return (Reply(self.ref, NotSaved()),)

    @property
    def order(self) -> str | None:
        return f"connection {self.ref.connection}" if self.ordered else None


@attrs.frozen
class Started(Event):
    """The broker starts: the rows are loaded, nothing listens yet.

    `damaged_at`: when a store was last found damaged and put out of use, in wall milliseconds.
    """

    owed: ClassVar[bool] = True
    damaged_at: int | None = None


@attrs.frozen
class Opened(Event):
    """A connection was accepted; `process` is its peer as the kernel names it, None where it cannot be told."""

    connection: int
    protocol: str
    process: ProcessId | None
    program: str | None = None


@attrs.frozen
class HalfClosed(Event):
    """The peer sends no more: its calls are still answered, but for pushes it is not live (wire.md, frame)."""

    owed: ClassVar[bool] = True
    connection: int


@attrs.frozen
class Closed(Event):
    """A connection is gone, by either side."""

    owed: ClassVar[bool] = True
    connection: int


@attrs.frozen
class Abandoned(Event):
    """The caller in process waits no more for the answer to its call."""

    ref: CallRef


@attrs.frozen
class ProcessEnded(Event):
    """A watched process has died (a zombie is dead)."""

    owed: ClassVar[bool] = True
    process: ProcessId


@attrs.frozen
class Scrubbed(Event):
    """The store's files hold nothing any more of the rows that had been deleted when `Scrub` asked for it."""

    owed: ClassVar[bool] = True
    id: str
    revision: int


@attrs.frozen
class Sent(Event):
    """Whatever had been sent to the connection when `TellWhenSent` asked has been handed to the kernel."""

    owed: ClassVar[bool] = True
    connection: int


@attrs.frozen
class Reply(Effect):
    """Answer a call with a result, or with a refusal, as the connection's protocol renders it."""

    to: CallRef
    body: object
    delay_ms: int = 0


@attrs.frozen
class Push(Effect):
    """Send a message that no call asked for."""

    connection: int
    body: object


@attrs.frozen
class TellWhenSent(Effect):
    """Tell with `Sent` when everything that was sent to the connection before is out; never, should it break."""

    connection: int


@attrs.frozen
class Hangup(Effect):
    """Close a connection once everything that was sent to it before has been flushed."""

    connection: int


@attrs.frozen
class Watch(Effect):
    """Tell with `ProcessEnded` when this process dies; watching twice is watching once."""

    process: ProcessId


@attrs.frozen
class Unwatch(Effect):
    """Nobody needs to know of this process any more."""

    process: ProcessId


@attrs.frozen
class Then(Effect):
    """Decide this event next: work that goes on in decisions of its own, each once the one before is stored."""

    event: Event


@attrs.frozen
class Scrub(Effect):
    """Leave nothing of deleted rows in the store's files, then say so with `Scrubbed`, however long it takes."""

    id: str
    revision: int


@attrs.frozen
class ForgetKey(Effect):
    """Remove what the user's own programs keep to authenticate as this client, as far as it can be found."""

    client_id: str


@attrs.frozen
class Stop(Effect):
    """End the broker in good order."""
