"""Live events for the owner's tools: a step behind every decision tells the monitors what it has changed.

The step reads nothing but the draft's own changes, so it delays no reply, and it costs next to nothing while
nobody listens.  Its pushes are effects like any other: they are sent once what they tell of is stored.
"""

from __future__ import annotations

import attrs

from handlers.control.changes import events
from handlers.events import Call, Closed, Push, Reply
from handlers.rule import Draft, Keep, Now, Table
from protocols.control.messages import Done
from protocols.control.monitor import Monitor


@attrs.frozen
class Listener:
    """A control connection that wants to be told."""

    connection: int
    revision: int = 0


LISTENERS: Table[Listener] = Table(
    name="control_listeners", row=Listener, keep=Keep.FACT, key=lambda row: str(row.connection)
)


def monitor(draft: Draft, call: Call[Monitor], now: Now) -> None:
    """Tell this connection of whatever is decided after this."""
    draft.put(LISTENERS, Listener(call.ref.connection))
    draft.effect(Reply(call.ref, Done()))


def closed(draft: Draft, event: Closed, now: Now) -> None:
    """A connection is gone, and its monitor with it."""
    draft.drop(LISTENERS, str(event.connection))


def tell(draft: Draft, now: Now) -> None:
    """Tell every monitor what this decision has changed; runs behind all other steps, lest it miss some."""
    listeners = draft.all(LISTENERS)
    if listeners:
        told = list(events(draft, now))
        draft.effect(*(Push(listener.connection, event) for listener in listeners for event in told))
