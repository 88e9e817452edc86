"""A real dispatch with a door, for the toy protocol of `tests.support.toy_session`; nothing of it is stored.

Calls are answered with their value, but for these values, which go wrong in different places:

    HANDLER_FAILS    the handler raises           UNSPEAKABLE    the engine cannot render the answer
    LOOK_FAILS       the look at the message      ENGINE_FAILS   the engine on the line itself
"""

from __future__ import annotations

import io
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import attrs
import trio

from broker.daemon.clocks import ManualClocks
from broker.daemon.committer import Committer, StoreThread
from broker.daemon.connection import Terms
from broker.daemon.dispatch import Dispatch
from broker.daemon.ledger import Disk, Ledger
from broker.daemon.listener import Doorkeeper, Service
from broker.daemon.logs import Log
from broker.daemon.peer import Peer as KernelPeer
from handlers.connections import ROUTES as CONNECTIONS
from handlers.events import Call, Reply
from handlers.routes import AnyHandler, Routes, merge
from handlers.rule import Draft, Now
from tests.support.toy_routes import ENVIRONMENT
from tests.support.toy_session import Ask, Cancel, Pair, Peer, Told, ToyEngine, Wait

HANDLER_FAILS, LOOK_FAILS, UNSPEAKABLE, ENGINE_FAILS = 901, 902, 903, 904
DELAY_MS = 5_000
SECRET = "what a person wrote"
"""In the text of every error that is raised on purpose; no log may show it."""


def _ask(draft: Draft, call: Call[Ask], now: Now) -> None:
    if call.message.value == HANDLER_FAILS:
        raise RuntimeError(SECRET)
    body = object() if call.message.value == UNSPEAKABLE else Told(str(call.message.value))
    draft.effect(Reply(call.ref, body))


def _wait(draft: Draft, call: Call[Wait], now: Now) -> None:
    """A wait is answered late."""
    draft.effect(Reply(call.ref, Told("late"), DELAY_MS))


def _leave_open(draft: Draft, call: Call[Ask], now: Now) -> None:
    """The call is not answered."""


def _look(message: object) -> object:
    if isinstance(message, Ask) and message.value == LOOK_FAILS:
        raise RuntimeError(SECRET)
    return message


class FragileEngine(ToyEngine):
    """Raises at one line."""

    def on_frame(self, line: bytes) -> None:
        if str(ENGINE_FAILS).encode() in line:
            raise RuntimeError(SECRET)
        super().on_frame(line)


def terms_of(peer: KernelPeer) -> Terms:
    """The terms of every connection."""
    return Terms(look=_look)


TOY = Service("toy", FragileEngine, terms_of)


@attrs.frozen
class ToyDispatch:
    """A dispatch that runs, its door, and what it has logged."""

    dispatch: Dispatch
    door: Doorkeeper
    logged: io.StringIO

    def connect(self, service: Service = TOY) -> Peer:
        """A connection that was let in without a listener."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        assert self.door.admit(ours, service) is not None
        return Peer(theirs)


@asynccontextmanager
async def open_toy_dispatch(
    max_connections: int = 100, log: Log | None = None, more: Routes | None = None
) -> AsyncIterator[ToyDispatch]:
    """A dispatch whose connections end with the block; `more` are the routes of a protocol beside the toy."""
    calls: dict[type[object], AnyHandler] = {Ask: _ask, Wait: _wait, Cancel: _leave_open, Pair: _leave_open}
    clocks, logged = ManualClocks(), io.StringIO()
    log = log or Log(logged)
    async with trio.open_nursery() as nursery:
        dispatch = Dispatch(clocks, nursery, log)
        routes = merge((CONNECTIONS, Routes(calls=calls), more or Routes()))
        # Nothing is read from the disk and nothing is written to it.
        ledger = Ledger(routes, ENVIRONMENT, cast(Disk, None), clocks.now, dispatch.report)
        dispatch.attach(ledger, Committer(ledger, cast(StoreThread, None), dispatch.perform))
        yield ToyDispatch(dispatch, Doorkeeper(dispatch, log, max_connections), logged)
        nursery.cancel_scope.cancel()
    assert not dispatch.connections
