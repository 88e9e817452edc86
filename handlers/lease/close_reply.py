"""lease.can_close.reply: the holder's answer to a close check, in time or late (LP-10; lease.md, reply)."""

from __future__ import annotations

from handlers.events import Call, Reply
from handlers.lease import quits
from handlers.lease.asks import answer
from handlers.lease.book import Grant, find, granted, move
from handlers.lease.entitlement import require_app, require_entitled, require_room
from handlers.lease.leases import granted_response, require_session
from handlers.lease.refusals import LeaseRefused
from handlers.lease.rows import ASKS, LEASES, Answer, Ask, Session
from handlers.policy import LeasePolicy
from handlers.rule import Draft, Now
from protocols.lease.codes import Code
from protocols.lease.messages import CanCloseReply, Response
from protocols.lease.states import LeaseEvent


def can_close_reply(draft: Draft, call: Call[CanCloseReply], now: Now) -> None:
    """Take the answer of a holder that was asked."""
    message = call.message
    try:
        session = require_session(draft, call.ref.connection, message)
        response = _decide(draft, message, session, now)
    except LeaseRefused as refused:
        response = refused.response(message.request_id)
    draft.effect(Reply(call.ref, response))


def _decide(draft: Draft, message: CanCloseReply, session: Session, now: Now) -> Response:
    base = require_app(draft, message.app_key)
    if message.result == "allow_close":
        return _allow(draft, message, _require_ask(draft, message, session), now)
    if message.lease_seconds is None:
        raise LeaseRefused(Code.INVALID_PAYLOAD, "leaseSeconds: missing")
    require_entitled(draft, message.holder_id)
    quits.require_no_mark(draft, base)
    asked = _require_ask(draft, message, session)
    policy = draft.environment.policy.lease
    grant = Grant(LeaseEvent.EXTEND, session, message.app_key, base, _clamped(message.lease_seconds, policy))
    return _extend(draft, asked, grant, now)


def _require_ask(draft: Draft, message: CanCloseReply, session: Session) -> Ask:
    asked = draft.get(ASKS, message.request_id)
    if asked is None or (asked.holder_id, asked.process) != (session.holder_id, session.process):
        raise LeaseRefused(Code.REQUEST_EXPIRED, "this holder was not asked under this id")
    if asked.app_key != message.app_key:
        raise LeaseRefused(Code.INVALID_PAYLOAD, "appKey: not the app that was asked about")
    return asked


def _allow(draft: Draft, message: CanCloseReply, asked: Ask, now: Now) -> Response:
    """This holder's lease is gone; the same answer again while the time runs gets the same reply."""
    in_time = now.awake < asked.until
    lease = find(draft, asked.holder_id, asked.app_key)
    if asked.open and in_time and lease is not None:
        move(draft, lease, LeaseEvent.ALLOW, now)
        answer(draft, asked, Answer.ALLOWED, now)
    elif not (asked.answer is Answer.ALLOWED and in_time):
        raise LeaseRefused(Code.REQUEST_EXPIRED, "the close check is over for this holder")
    return Response(
        request_id=message.request_id,
        code=Code.ACCEPTED,
        holder_id=message.holder_id,
        app_key=message.app_key,
    )


def _extend(draft: Draft, asked: Ask, grant: Grant, now: Now) -> Response:
    """In time or late: the holder needs the app, and it is still there."""
    if asked.answer is Answer.ALLOWED:
        raise LeaseRefused(Code.REQUEST_EXPIRED, "this holder has allowed the close")
    old = find(draft, asked.holder_id, asked.app_key)
    if old is None or not old.lives:
        require_room(draft, asked.holder_id)
    lease = draft.put(LEASES, granted(draft, old, grant, now))
    answer(draft, asked, Answer.EXTENDED, now)
    return granted_response(asked.close_id, lease, now)


def _clamped(lease_seconds: int, policy: LeasePolicy) -> int:
    """The nearest whole number of seconds within the published limits."""
    least, most = -(-policy.min_ms // 1000), policy.max_ms // 1000
    return max(least, min(lease_seconds, most))
