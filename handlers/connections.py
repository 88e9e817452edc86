"""The connections that are open: facts, so no failed commit takes them back.

A row says who is at the other end: the kernel's word (`process`, `program`), and what the session has proved
since then (`client_id` after authentication).  Handlers read the identity here at each call and never from
the parameters of a message (CP-3.1).
"""

from __future__ import annotations

import attrs

from handlers.events import CallRef, Closed, Opened
from handlers.routes import Routes
from handlers.rule import Draft, Keep, Now, Table
from protocols.process import ProcessId


@attrs.frozen
class Connection:
    """One open connection; `client_id` is the paired client that authenticated on it."""

    number: int
    protocol: str
    process: ProcessId | None
    program: str | None
    client_id: str | None = None
    revision: int = 0

    @property
    def pid(self) -> int | None:
        """The number of the peer's process: for people to read, it identifies nothing."""
        return None if self.process is None else self.process.pid


def key_of(number: int) -> str:
    """The key under which a connection's row stands."""
    return str(number)


CONNECTIONS: Table[Connection] = Table(
    name="connections",
    row=Connection,
    keep=Keep.FACT,
    key=lambda row: key_of(row.number),
    indexes={"client": lambda row: row.client_id, "protocol": lambda row: row.protocol},
)


def opened(draft: Draft, event: Opened, now: Now) -> None:
    """A connection was accepted."""
    draft.put(CONNECTIONS, Connection(event.connection, event.protocol, event.process, event.program))


def closed(draft: Draft, event: Closed, now: Now) -> None:
    """A connection is gone; what hung on it is let go by the handlers of those tables."""
    draft.drop(CONNECTIONS, key_of(event.connection))


def caller(draft: Draft, ref: CallRef) -> Connection | None:
    """The connection that a call came by; None when it has gone meanwhile."""
    return draft.get(CONNECTIONS, key_of(ref.connection))


ROUTES = Routes(tables=(CONNECTIONS,), facts={Opened: (opened,), Closed: (closed,)})
