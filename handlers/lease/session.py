"""Sessions: which connection speaks for which holder, and which process that holder is (LP-2, LP-5).

A holder id is bound to one live process: to that of its sessions, else to that of its leases.  The
process is what the kernel says, checked by the daemon before the handler sees the hello; a bare pid binds
nothing.
"""

from __future__ import annotations

import attrs

from handlers.events import Call, Closed, HalfClosed, Hangup, ProcessEnded, Reply, Watch
from handlers.lease.rows import LEASES, SESSIONS, Session, process_index
from handlers.policy import LeasePolicy
from handlers.rule import Draft, Now
from protocols.lease.codes import HandshakeCode
from protocols.lease.messages import Hello, Ready, ReadyLimits, SessionError
from protocols.process import ProcessId
from protocols.seconds import seconds


@attrs.frozen
class HelloSeen:
    """A hello together with what the kernel says of its pid.

    `process` is the holder's process: the peer itself for pid 0 or its own pid, or the ancestor of the
    peer (same user, never pid 1) that the hello names.  None: the pid is neither.
    """

    hello: Hello
    process: ProcessId | None


def hello(draft: Draft, call: Call[HelloSeen], now: Now) -> None:
    """Open the session, or say why not."""
    greeting, process = call.message.hello, call.message.process
    if process is None:
        text = "the pid is neither the connected process nor one of its ancestors"
        draft.effect(Reply(call.ref, SessionError(code=HandshakeCode.UNAUTHENTICATED, message=text)))
        return
    if (error := _refusal(draft, greeting.holder_id, process)) is not None:
        draft.effect(Reply(call.ref, error))
        return
    order = 1 + max((session.order for session in of_holder(draft, greeting.holder_id)), default=0)
    session = Session(call.ref.connection, greeting.holder_id, process, greeting.client_name, order)
    draft.put(SESSIONS, session)
    draft.effect(Watch(process), Reply(call.ref, _ready(greeting.holder_id, draft.environment.policy.lease)))


def _refusal(draft: Draft, holder_id: str, process: ProcessId) -> SessionError | None:
    policy = draft.environment.policy.lease
    bound = bound_to(draft, holder_id)
    if bound is not None and bound != process:
        text = "the holder id is bound to another process, which is alive"
        return SessionError(code=HandshakeCode.HOLDER_ID_MISMATCH, message=text)
    if len(of_holder(draft, holder_id)) >= policy.max_connections_per_holder:
        return _over_limit("maxConnectionsPerHolder")
    if bound is None and len(_other_holders(draft, holder_id)) >= policy.max_holders:
        return _over_limit("maxHolders")
    return None


def _over_limit(name: str) -> SessionError:
    text = f"the published limit {name} is reached"
    return SessionError(code=HandshakeCode.INVALID_HANDSHAKE, message=text)


def bound_to(draft: Draft, holder_id: str) -> ProcessId | None:
    """The live process that a holder id belongs to, or None when it is free."""
    for session in of_holder(draft, holder_id):
        return session.process
    for lease in draft.find(LEASES, "holder", holder_id):
        if not lease.died:
            return lease.process
    return None


def _other_holders(draft: Draft, holder_id: str) -> set[str]:
    from_sessions = {session.holder_id for session in draft.all(SESSIONS)}
    return (from_sessions | {lease.holder_id for lease in draft.all(LEASES) if lease.lives}) - {holder_id}


def of_holder(draft: Draft, holder_id: str) -> list[Session]:
    """The sessions of a holder whose process lives."""
    return draft.find(SESSIONS, "holder", holder_id)


def newest(draft: Draft, holder_id: str) -> Session | None:
    """The session that a push to this holder goes to; None while it has no live connection (LP-9)."""
    live = [session for session in of_holder(draft, holder_id) if session.live]
    return max(live, key=lambda session: session.order, default=None)


def session_of(draft: Draft, connection: int) -> Session | None:
    """The session on a connection, unless its holder's process has died."""
    session = draft.get(SESSIONS, str(connection))
    return None if session is None or session.process_died else session


def half_closed(draft: Draft, event: HalfClosed, now: Now) -> None:
    """The peer sends no more: no pushes go there from now on."""
    session = draft.get(SESSIONS, str(event.connection))
    if session is not None:
        draft.put(SESSIONS, attrs.evolve(session, live=False))


def closed(draft: Draft, event: Closed, now: Now) -> None:
    """A connection is gone, and nothing else: the holder's leases and other connections stay (G19)."""
    draft.drop(SESSIONS, str(event.connection))


def process_ended(draft: Draft, event: ProcessEnded, now: Now) -> None:
    """Close every session of the dead process, whoever still holds its socket (G24)."""
    for session in draft.find(SESSIONS, "process", process_index(event.process)):
        draft.put(SESSIONS, attrs.evolve(session, process_died=True))
        draft.effect(Hangup(session.connection))


def _ready(holder_id: str, policy: LeasePolicy) -> Ready:
    limits = ReadyLimits(
        min_lease_seconds=seconds(policy.min_ms),
        max_lease_seconds=seconds(policy.max_ms),
        grace_seconds=seconds(policy.grace_ms),
        close_check_timeout_seconds=seconds(policy.close_check_timeout_ms),
        close_check_cooldown_seconds=seconds(policy.close_check_cooldown_ms),
        max_frame_bytes=policy.max_frame_bytes,
        max_leases_per_holder=policy.max_leases_per_holder,
        max_holders=policy.max_holders,
        max_connections_per_holder=policy.max_connections_per_holder,
        messages_per_second=policy.messages_per_second,
    )
    return Ready(holder_id=holder_id, limits=limits)
