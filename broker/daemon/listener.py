"""Accepts connections of one protocol: kernel identity first, then a connection task that cannot hurt the listener.

Whatever a connection raises ends that connection and is logged.  While too many connections have not finished
their handshake, further ones wait in the socket's backlog; over the published total they are turned away.
"""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Callable

import attrs
import trio

from broker.daemon.connection import Connection, Terms
from broker.daemon.dispatch import Dispatch
from broker.daemon.logs import Log
from broker.daemon.peer import Peer, peer_of
from handlers.events import Opened
from protocols.session import LineEngine

MAX_IN_HANDSHAKE = 64
_FULL_PAUSE_SECONDS = 0.05


@attrs.frozen
class Service:
    """What a protocol brings to its listener: its name, its engine, and the terms for one peer."""

    protocol: str
    engine: Callable[[], LineEngine]
    terms: Callable[[Peer], Terms]


class Doorkeeper:
    """Numbers connections and counts them over all listeners."""

    def __init__(self, dispatch: Dispatch, log: Log, max_connections: int) -> None:
        self._dispatch = dispatch
        self._log = log
        self._max_connections = max_connections
        self._numbers = itertools.count(1)

    async def listen(self, sock: socket.socket, service: Service) -> None:
        """Accept on a listening socket for ever; each pass drains the backlog."""
        while True:
            try:
                await trio.lowlevel.wait_readable(sock.fileno())
            except (trio.ClosedResourceError, OSError):
                return  # the keeper has replaced the socket
            while not self._too_many_in_handshake() and self._accept(sock, service):
                pass
            await trio.sleep(_FULL_PAUSE_SECONDS if self._too_many_in_handshake() else 0)

    def _accept(self, sock: socket.socket, service: Service) -> bool:
        try:
            accepted, _ = sock.accept()
        except OSError:  # the backlog is empty, or the peer has gone already, or descriptors are used up
            return False
        accepted.setblocking(False)
        self.admit(accepted, service)
        return True

    def admit(self, sock: socket.socket, service: Service) -> Connection | None:
        """Take in a connected socket; None when its peer is another user, which is closed without a word."""
        try:
            peer = peer_of(sock)
        except OSError:
            sock.close()
            return None
        if peer.uid != os.geteuid():
            sock.close()
            return None
        number = next(self._numbers)
        connection = Connection(number, sock, service.engine(), service.terms(peer), self._dispatch)
        full = len(self._dispatch.connections) >= self._max_connections
        self._dispatch.connections[number] = connection
        self._dispatch.submit(Opened(number, service.protocol, peer.process, peer.program))
        if full:
            connection.engine.turn_away("maxConnectionsTotal")
        self._dispatch.nursery.start_soon(self._serve, connection, service.protocol)
        return connection

    async def _serve(self, connection: Connection, protocol: str) -> None:
        try:
            await connection.serve()
        except Exception as error:
            self._log.fault("connection_failed", error, protocol=protocol)
        finally:
            self._dispatch.connections.pop(connection.number, None)

    def _too_many_in_handshake(self) -> bool:
        waiting = sum(not c.engine.authenticated for c in self._dispatch.connections.values())
        return waiting >= MAX_IN_HANDSHAKE
