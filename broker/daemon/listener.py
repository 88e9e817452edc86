"""Accepts connections of one protocol: kernel identity first, then a connection task that cannot hurt the listener.

Whatever a connection raises ends that connection and is logged.  While too many connections have not finished
their handshake, further ones wait in the socket's backlog (but not the owner's tools, which have none to finish);
over the published total they are turned away (but again not the owner's tools, which would then be of no use).
"""

from __future__ import annotations

import contextlib
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
_ACCEPTS_A_PASS = 64
_FULL_PAUSE_SECONDS = 0.05


@attrs.frozen
class Service:
    """What a protocol brings to its listener: its name, its engine, and the terms for one peer.

    `handshake` is False where a connection is authenticated at accept.
    """

    protocol: str
    engine: Callable[[], LineEngine]
    terms: Callable[[Peer], Terms]
    handshake: bool = True


class Doorkeeper:
    """Numbers connections and counts them over all listeners."""

    def __init__(self, dispatch: Dispatch, log: Log, max_connections: int) -> None:
        self._dispatch = dispatch
        self._log = log
        self._max_connections = max_connections
        self._numbers = itertools.count(1)
        self._in_handshake: set[Connection] = set()

    async def listen(self, sock: socket.socket, service: Service) -> None:
        """Accept on a listening socket until it is closed, which the keeper does when it has replaced it."""
        while sock.fileno() >= 0:
            room = False
            with contextlib.suppress(trio.ClosedResourceError, OSError):
                await trio.lowlevel.wait_readable(sock.fileno())
                room = self._accept_waiting(sock, service)
            await trio.sleep(0 if room else _FULL_PAUSE_SECONDS)

    def _accept_waiting(self, sock: socket.socket, service: Service) -> bool:
        """Take in who waits in the backlog; False when there is no room for more for now."""
        for _ in range(_ACCEPTS_A_PASS):
            if service.handshake and self._too_many_in_handshake():
                return False
            try:
                accepted, _ = sock.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return True
            except OSError:  # descriptors or memory are used up: trying again at once would only burn time
                return False
            self._admit_client(accepted, service)
        return True

    def _admit_client(self, sock: socket.socket, service: Service) -> None:
        full = service.handshake and len(self._dispatch.connections) >= self._max_connections
        try:
            sock.setblocking(False)
            connection = self.admit(sock, service)
        except Exception as error:
            sock.close()
            self._log.fault("connection_not_admitted", error, protocol=service.protocol)
            return
        if full and connection is not None:
            connection.engine.turn_away("maxConnectionsTotal")

    def admit(self, sock: socket.socket, service: Service) -> Connection | None:
        """Take in a connected socket; None when its peer is another user, which is closed without a word.

        The published total is for clients: the presenter, and the owner's tools, come in however many they are.
        """
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
        self._dispatch.connections[number] = connection
        self._in_handshake.add(connection)
        self._dispatch.submit(Opened(number, service.protocol, peer.process, peer.program))
        self._dispatch.nursery.start_soon(self._serve, connection, service.protocol)
        return connection

    async def _serve(self, connection: Connection, protocol: str) -> None:
        try:
            await connection.serve()
        except Exception as error:
            self._log.fault("connection_failed", error, protocol=protocol)
        finally:
            self._dispatch.connections.pop(connection.number, None)
            self._in_handshake.discard(connection)

    def _too_many_in_handshake(self) -> bool:
        self._in_handshake = {c for c in self._in_handshake if not c.engine.authenticated}
        return len(self._in_handshake) >= MAX_IN_HANDSHAKE
