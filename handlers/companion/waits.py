"""Parked waits (CP-3.9): a wait is a row, not a task.

It is answered exactly once: by the next change of its request, at its own end (`expiry`), by a refusal when
its client is revoked, or not at all because its connection has gone.
"""

from __future__ import annotations

from handlers.companion.rows import WAITS, Request, Wait
from handlers.companion.snapshots import snapshot
from handlers.events import Abandoned, Call, CallRef, Closed, Reply
from handlers.rule import Draft, Now
from protocols.companion.messages import WaitRequest, WaitResult


def park(draft: Draft, call: Call[WaitRequest], now: Now) -> None:
    """Answer this call later, after waitMs at the latest."""
    asked, ref = call.message, call.ref
    until = now.elapsed + asked.wait_ms
    draft.put(WAITS, Wait(ref.connection, ref.number, asked.request_id, asked.after_revision, until))


def news(request: Request, after_revision: int) -> WaitResult:
    """What a wait is told of a request as it stands now."""
    return WaitResult(changed=request.revision > after_revision, request=snapshot(request))


def answer_all(draft: Draft, request: Request) -> None:
    """The request has changed: answer everybody who waits for it."""
    for wait in draft.find(WAITS, "request", request.id):
        answer(draft, wait, news(request, wait.after_revision))


def answer(draft: Draft, wait: Wait, body: object) -> None:
    """Answer one parked wait, with news or a refusal."""
    draft.drop(WAITS, WAITS.key(wait))
    draft.effect(Reply(CallRef(wait.connection, wait.number), body))


def abandoned(draft: Draft, event: Abandoned, now: Now) -> None:
    """Whoever waited in process has been cancelled: nobody is there to be told."""
    for wait in draft.find(WAITS, "connection", str(event.ref.connection)):
        if wait.number == event.ref.number:
            draft.drop(WAITS, WAITS.key(wait))


def closed(draft: Draft, event: Closed, now: Now) -> None:
    """Disconnecting ends waits, never requests (wire.md, shutdown)."""
    for wait in draft.find(WAITS, "connection", str(event.connection)):
        draft.drop(WAITS, WAITS.key(wait))
