"""The one table of protocols: a row brings an engine, routes, terms and a socket, and gets everything else.

The listener, kernel identity, framing, handshake deadline, quotas, outbox, isolation, metrics and orderly shutdown
come with the row.  The presenter is a row without a socket: its connection is one end of a socketpair.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs

from broker.daemon.connection import Terms
from broker.daemon.listener import Service
from broker.daemon.peer import Peer
from broker.daemon.processes import find_ancestor
from broker.paths import Paths
from handlers import connections
from handlers.companion.routes import ROUTES as COMPANION
from handlers.control.routes import ROUTES as CONTROL
from handlers.lease.routes import ROUTES as LEASE
from handlers.lease.session import HelloSeen
from handlers.policy import Policy
from handlers.presenter.routes import ROUTES as PRESENTER
from handlers.routes import Routes
from protocols.companion.engine import CompanionEngine
from protocols.control.engine import ControlEngine
from protocols.lease.engine import LeaseEngine
from protocols.lease.messages import Hello
from protocols.presenter.engine import PresenterEngine
from protocols.process import ProcessId


@attrs.frozen
class Row:
    """One protocol; `socket` picks its place among the paths, None when nothing listens for it."""

    service: Service
    routes: Routes
    socket: Callable[[Paths], Path] | None


def protocol_table(policy: Policy) -> tuple[Row, ...]:
    """Every protocol that this broker speaks."""
    limits = policy.limits
    terms = Terms(
        max_calls=limits.max_calls_in_flight,
        max_waits=limits.max_waits,
        calls_per_second=limits.calls_per_second,
    )
    lease_terms = attrs.evolve(
        terms, ordered=True, max_calls=_UNCOUNTED, calls_per_second=policy.lease.messages_per_second
    )
    return (
        Row(
            Service(
                "companion",
                lambda: CompanionEngine(limits.max_frame_bytes, limits.max_batch),
                lambda peer: terms,
            ),
            COMPANION,
            lambda paths: paths.companion_socket,
        ),
        Row(
            Service(
                "lease", lambda: LeaseEngine(policy.lease.max_frame_bytes), _with_kernel_facts(lease_terms)
            ),
            LEASE,
            lambda paths: paths.lease_socket,
        ),
        Row(Service("presenter", PresenterEngine, lambda peer: _PRESENTER_TERMS), PRESENTER, None),
        # The last row: its monitor tells what the steps of all others have changed.
        Row(
            Service(
                "control",
                lambda: ControlEngine(limits.max_frame_bytes, limits.max_batch),
                lambda peer: terms,
                handshake=False,
            ),
            CONTROL,
            lambda paths: paths.control_socket,
        ),
    )


_UNCOUNTED = 1_000_000
"""The lease protocol publishes a rate and counts of leases, but no number of messages in flight."""
_PRESENTER_TERMS = Terms(max_calls=_UNCOUNTED, calls_per_second=10_000)


def _with_kernel_facts(terms: Terms) -> Callable[[Peer], Terms]:
    """A hello names a process; whether it may is for the kernel's view of the peer to say (lease.md, hello)."""

    def for_peer(peer: Peer) -> Terms:
        def look(message: object) -> object:
            if isinstance(message, Hello):
                return HelloSeen(message, _holder(message.pid, peer))
            return message

        return attrs.evolve(terms, look=look)

    return for_peer


def all_routes(table: tuple[Row, ...]) -> tuple[Routes, ...]:
    """The routes of every row, and those that all protocols share."""
    return (connections.ROUTES, *(row.routes for row in table))


def _holder(pid: int, peer: Peer) -> ProcessId | None:
    """The process that a hello may speak for: the peer, or the ancestor of it that it names; 0 is the peer."""
    if peer.process is None or pid == 0:
        return peer.process
    return find_ancestor(pid, peer.process)
