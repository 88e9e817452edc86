"""Which handler decides what in the lease protocol, and about leases in the control protocol."""

from __future__ import annotations

from handlers.events import Call, Closed, HalfClosed, ProcessEnded, Started
from handlers.lease import asks, book, holds, leases, may_close, quits, session
from handlers.lease.close_reply import can_close_reply
from handlers.lease.listing import list_leases
from handlers.lease.restart import started
from handlers.lease.rows import (
    ASKS,
    BLOCKS,
    CHECKS,
    COOLDOWNS,
    HOLDS,
    LEASES,
    QUIT_MARKS,
    RECEIPTS,
    SESSIONS,
)
from handlers.lease.session import HelloSeen
from handlers.routes import Routes
from handlers.rule import Draft, Now
from protocols.control.leases import ListLeases, MayClose, QuitAbandoned, QuitDone
from protocols.lease.messages import Begin, CanCloseReply, End, Renew


def _hello(draft: Draft, call: Call[HelloSeen], now: Now) -> None:
    """A new connection of a holder takes over the questions that lost theirs."""
    session.hello(draft, call, now)
    opened = session.session_of(draft, call.ref.connection)
    if opened is not None:
        asks.connection_gained(draft, opened.holder_id)


ROUTES = Routes(
    tables=(LEASES, RECEIPTS, BLOCKS, SESSIONS, HOLDS, ASKS, CHECKS, COOLDOWNS, QUIT_MARKS),
    calls={
        HelloSeen: _hello,
        Begin: leases.begin,
        Renew: leases.renew,
        End: leases.end,
        CanCloseReply: can_close_reply,
        MayClose: may_close.may_close,
        QuitDone: quits.quit_ended,
        QuitAbandoned: quits.quit_ended,
        ListLeases: list_leases,
    },
    due={
        LEASES.name: book.due,
        ASKS.name: asks.due,
        COOLDOWNS.name: may_close.cooldown_due,
        QUIT_MARKS.name: quits.due,
        HOLDS.name: holds.due,
    },
    facts={
        Started: (started,),
        HalfClosed: (session.half_closed, asks.connection_lost),
        Closed: (session.closed, asks.connection_lost, may_close.closed),
        ProcessEnded: (session.process_ended, leases.process_ended, quits.process_ended),
    },
    settle=(may_close.review,),
)
