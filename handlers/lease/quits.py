"""Quit marks: from the moment that a quit is committed, nobody gets a lease on the app (lease.md,
lease_conflict).

A mark covers the base key and its variants.  A reserved quit (leases.may_close with reserve) has a ticket
and ends with quit_done, quit_abandoned or its time; the broker's own quit ends when the process is gone
or its time is up.
"""

from __future__ import annotations

from handlers.events import Call, ProcessEnded, Reply
from handlers.lease.refusals import LeaseRefused
from handlers.lease.rows import QUIT_MARKS, QuitMark, process_index
from handlers.rule import Draft, Due, Now
from protocols.control.leases import QuitAbandoned, QuitDone, QuitEnded
from protocols.lease.codes import Code
from protocols.process import ProcessId
from protocols.refusal import ErrorCode, Refused


def commit_reserved(draft: Draft, base_key: str, ticket: str, now: Now) -> None:
    """Commit the quit that somebody outside has reserved."""
    until = now.awake + draft.environment.policy.lease.ticket_ms
    draft.put(QUIT_MARKS, QuitMark(base_key, until, ticket=ticket))


def commit_own(draft: Draft, base_key: str, process: ProcessId, now: Now) -> None:
    """Commit a quit of the broker's own: the auto-quit is about to end this process of the app."""
    until = now.awake + draft.environment.policy.lease.quit_mark_ms
    draft.put(QUIT_MARKS, QuitMark(base_key, until, process=process))


def mark_on(draft: Draft, base_key: str) -> QuitMark | None:
    """The mark on an app, or None."""
    return draft.get(QUIT_MARKS, base_key)


def require_no_mark(draft: Draft, base_key: str) -> None:
    """Raise LeaseRefused while the quit of the app is committed."""
    if mark_on(draft, base_key) is not None:
        raise LeaseRefused(Code.LEASE_CONFLICT, "the app is being quit")


def quit_ended(draft: Draft, call: Call[QuitDone | QuitAbandoned], now: Now) -> None:
    """The asker's quit has happened or will not: either way its ticket is void."""
    marks = draft.find(QUIT_MARKS, "ticket", call.message.ticket)
    for mark in marks:
        draft.drop(QUIT_MARKS, mark.base_key)
        draft.effect(Reply(call.ref, QuitEnded(app_key=mark.base_key)))
    if not marks:
        draft.effect(Reply(call.ref, Refused(ErrorCode.NOT_FOUND, "no such ticket, or its time is over")))


def process_ended(draft: Draft, event: ProcessEnded, now: Now) -> None:
    """The process that the broker wanted gone is gone."""
    for mark in draft.find(QUIT_MARKS, "process", process_index(event.process)):
        draft.drop(QUIT_MARKS, mark.base_key)


def due(draft: Draft, event: Due, now: Now) -> None:
    """The mark's time is over."""
    draft.drop(QUIT_MARKS, event.key)
