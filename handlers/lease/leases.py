"""lease.begin, lease.renew, lease.end: what a holder does about its own lease (lease.md).

Each message is decided in the same order: the session's holder, the receipt of an earlier answer, the
payload, the app, the entitlement, a committed quit, and then the lease itself.  A refusal changes
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from handlers.events import Call, ProcessEnded, Reply
from handlers.lease import quits
from handlers.lease.asks import answer, open_ask
from handlers.lease.book import Grant, find, granted, in_scope, move, moved
from handlers.lease.entitlement import require_app, require_entitled, require_room
from handlers.lease.listing import shown_time
from handlers.lease.receipts import accept, earlier_answer
from handlers.lease.refusals import LeaseRefused
from handlers.lease.rows import LEASES, Answer, Lease, Session, process_index
from handlers.lease.session import session_of
from handlers.policy import LeasePolicy
from handlers.rule import Draft, Now
from protocols.lease.codes import Code
from protocols.lease.messages import Begin, BusinessMessage, End, Renew, Response
from protocols.lease.states import LeaseEvent, LeaseState

M = TypeVar("M", Begin, Renew, End)


def begin(draft: Draft, call: Call[Begin], now: Now) -> None:
    """Take a lease, or make the own one longer."""
    _serve(draft, call, _begin, now)


def renew(draft: Draft, call: Call[Renew], now: Now) -> None:
    """Set a new end to the own lease, later or earlier."""
    _serve(draft, call, _renew, now)


def end(draft: Draft, call: Call[End], now: Now) -> None:
    """Give the own lease back."""
    _serve(draft, call, _end, now)


def _serve(draft: Draft, call: Call[M], act: Callable[[Draft, M, Session, Now], Response], now: Now) -> None:
    message: M = call.message
    try:
        session = require_session(draft, call.ref.connection, message)
        response = earlier_answer(draft, message) or act(draft, message, session, now)
    except LeaseRefused as refused:
        response = refused.response(message.request_id)
    draft.effect(Reply(call.ref, response))


def require_session(draft: Draft, connection: int, message: BusinessMessage) -> Session:
    """The connection's session, which speaks for its own holder only; raises LeaseRefused."""
    session = session_of(draft, connection)
    if session is None or session.holder_id != message.holder_id:
        raise LeaseRefused(Code.HOLDER_MISMATCH, "holderId: not that of this session")
    return session


def _begin(draft: Draft, message: Begin, session: Session, now: Now) -> Response:
    base = _require_grantable(draft, message)
    lease = find(draft, message.holder_id, message.app_key)
    if lease is None or not lease.lives:
        require_room(draft, message.holder_id)
    return _grant(draft, message, session, base, LeaseEvent.BEGIN, now)


def _renew(draft: Draft, message: Renew, session: Session, now: Now) -> Response:
    base = _require_grantable(draft, message)
    lease = _require_own(draft, message, base)
    if lease.state is LeaseState.EXPIRED and open_ask(draft, lease) is None:
        raise LeaseRefused(Code.REQUEST_EXPIRED, "the lease and its grace are over")
    return _grant(draft, message, session, base, LeaseEvent.RENEW, now)


def _end(draft: Draft, message: End, session: Session, now: Now) -> Response:
    base = require_app(draft, message.app_key)
    lease = _require_own(draft, message, base)
    asked = open_ask(draft, lease)
    if asked is not None:
        answer(draft, asked, Answer.ALLOWED, now)
    after = moved(draft, lease, LeaseEvent.END, now)
    response = Response(
        request_id=message.request_id,
        code=Code.ACCEPTED,
        holder_id=message.holder_id,
        app_key=message.app_key,
        grace_ends_at=shown_time(after.grace_ends_at, now),
    )
    return accept(draft, message, after, response)


def _grant(
    draft: Draft, message: Begin | Renew, session: Session, base_key: str, event: LeaseEvent, now: Now
) -> Response:
    old = find(draft, message.holder_id, message.app_key)
    asked = None if old is None else open_ask(draft, old)
    if asked is not None:  # a begin or renew while the holder is asked is its answer
        event = LeaseEvent.EXTEND
        answer(draft, asked, Answer.EXTENDED, now)
    grant = Grant(event, session, message.app_key, base_key, message.lease_seconds)
    lease = granted(draft, old, grant, now)
    return accept(draft, message, lease, granted_response(message.request_id, lease, now))


def granted_response(request_id: str, lease: Lease, now: Now) -> Response:
    """The answer to whatever made a lease active."""
    return Response(
        request_id=request_id,
        code=Code.ACCEPTED,
        holder_id=lease.holder_id,
        app_key=lease.app_key,
        lease_seconds=lease.lease_seconds,
        expires_at=shown_time(lease.expires_at, now),
        grace_ends_at=shown_time(lease.grace_ends_at, now),
    )


def _require_grantable(draft: Draft, message: Begin | Renew) -> str:
    _require_seconds(draft.environment.policy.lease, message.lease_seconds)
    base = require_app(draft, message.app_key)
    require_entitled(draft, message.holder_id)
    quits.require_no_mark(draft, base)
    return base


def _require_seconds(policy: LeasePolicy, lease_seconds: int) -> None:
    if not policy.min_ms <= lease_seconds * 1000 <= policy.max_ms:
        raise LeaseRefused(Code.INVALID_PAYLOAD, "leaseSeconds: outside the published limits")


def _require_own(draft: Draft, message: Renew | End, base_key: str) -> Lease:
    lease = find(draft, message.holder_id, message.app_key)
    if lease is not None and lease.lives:
        return lease
    others = [x for x in in_scope(draft, message.app_key, base_key) if x.app_key == message.app_key]
    if any(other.state.protects for other in others):
        raise LeaseRefused(Code.HOLDER_MISMATCH, "another holder has the lease on this app")
    raise LeaseRefused(Code.REQUEST_EXPIRED, "there is no lease on this app")


def process_ended(draft: Draft, event: ProcessEnded, now: Now) -> None:
    """A holder has died: its active leases go into grace at once, and nobody needs to ask it any more
    (G24).
    """
    for lease in draft.find(LEASES, "process", process_index(event.process)):
        asked = open_ask(draft, lease)
        if asked is not None:
            answer(draft, asked, Answer.DIED, now)
        move(draft, lease, LeaseEvent.HOLDER_DIED, now)
