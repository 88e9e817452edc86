"""Asking holders: one push each, its way from connection to connection, and what counts as its answer (LP-9).

An ask belongs to one lease, and a lease has at most one open ask, whichever checks wait for it (that of a
variant and that of its base key may share it).  This module knows asks only; what a check makes of the
answers is decided in `handlers.lease.may_close`.
"""

from __future__ import annotations

import attrs

from handlers.events import Closed, HalfClosed, Push
from handlers.lease.book import find, move
from handlers.lease.rows import ASKS, LEASES, Answer, Ask, Lease, Session, key_of
from handlers.lease.session import newest
from handlers.rule import Draft, Due, Now, new_id
from protocols.lease.messages import CanCloseRequest
from protocols.lease.states import LeaseEvent
from protocols.seconds import seconds


def open_ask(draft: Draft, lease: Lease) -> Ask | None:
    """The ask about this lease that still awaits its answer."""
    return next(iter(draft.find(ASKS, "lease", key_of(lease))), None)


def ask(draft: Draft, lease: Lease, session: Session, now: Now, seed: bytes) -> Ask:
    """Push the question to the holder's newest connection."""
    if lease.deferred:
        draft.put(LEASES, attrs.evolve(lease, deferred=False))
    close_id = f"close_{new_id(seed, key_of(lease))}"
    until = now.awake + draft.environment.policy.lease.close_check_timeout_ms
    asked = Ask(close_id, lease.holder_id, lease.app_key, lease.process, session.connection, until)
    _push(draft, asked)
    return draft.put(ASKS, asked)


def answer(draft: Draft, asked: Ask, with_: Answer, now: Now) -> None:
    """Close an ask; it is remembered for as long as receipts are, so that a late reply finds it."""
    forget_at = now.awake + draft.environment.policy.lease.receipt_ms
    draft.put(ASKS, attrs.evolve(asked, answer=with_, forget_at=forget_at))


def due(draft: Draft, event: Due, now: Now) -> None:
    """The time for the answer, or for remembering it, is over."""
    asked = draft.get(ASKS, event.key)
    if asked is not None and asked.open:
        _silent(draft, asked, now)
    else:
        draft.drop(ASKS, event.key)


def _silent(draft: Draft, asked: Ask, now: Now) -> None:
    """The holder lives and says nothing: busy, but not for ever (lease.md, silence)."""
    lease = find(draft, asked.holder_id, asked.app_key)
    assert lease is not None, "whatever ends a lease answers its ask"
    struck = attrs.evolve(lease, strikes=lease.strikes + 1)
    if struck.strikes >= draft.environment.policy.lease.close_check_strikes:
        move(draft, struck, LeaseEvent.ALLOW, now)
        answer(draft, asked, Answer.STRUCK_OUT, now)
    else:
        draft.put(LEASES, struck)
        answer(draft, asked, Answer.SILENT, now)


# -- where the push goes -------------------------------------------------------------------------------


def connection_lost(draft: Draft, event: Closed | HalfClosed, now: Now) -> None:
    """A connection that an open question went to is gone: ask on the holder's next one, under the same id."""
    for asked in draft.find(ASKS, "connection", str(event.connection)):
        _ask_again(draft, asked)


def connection_gained(draft: Draft, holder_id: str) -> None:
    """A holder has said hello: open questions that lost their connection go there."""
    for asked in draft.find(ASKS, "holder", holder_id):
        if asked.connection is None:
            _ask_again(draft, asked)


def _ask_again(draft: Draft, asked: Ask) -> None:
    session = newest(draft, asked.holder_id)
    moved = attrs.evolve(asked, connection=None if session is None else session.connection)
    draft.put(ASKS, moved)
    _push(draft, moved)


def _push(draft: Draft, asked: Ask) -> None:
    if asked.connection is None:
        return
    request = CanCloseRequest(
        request_id=asked.close_id,
        holder_id=asked.holder_id,
        app_key=asked.app_key,
        timeout_seconds=seconds(draft.environment.policy.lease.close_check_timeout_ms),
    )
    draft.effect(Push(asked.connection, request))
