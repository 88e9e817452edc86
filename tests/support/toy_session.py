"""A toy JSON-RPC protocol over one end of a real socketpair: the test is the peer, and it is the handlers.

ask     a plain call          wait     is charged to the waits
login   serial; ends the handshake         cancel   is charged to nothing
pair    suspends the handshake until something is pushed, and gives its time anew then
hold    suspends the handshake until it is answered, and gives no new time
"""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, ClassVar, TypeVar

import attrs
import trio

from broker.daemon.connection import Connection, Terms
from handlers.events import Call, CallRef
from handlers.rule import Event
from protocols import jsonrpc
from protocols.jsonrpc_session import JsonRpcEngine, Method, method_table
from protocols.session import Charge, Deliver
from protocols.structure import integer, text

PATIENCE_SECONDS = 10
"""Longer than anything takes here: a test that would wait for ever fails."""

E = TypeVar("E", bound=Event)


@attrs.frozen
class Ask:
    """What every call of the toy protocol may carry."""

    value: int = integer(0, 1_000_000, default=0)


class Wait(Ask):
    """See the module header."""


class Login(Ask):
    """See the module header."""


class Cancel(Ask):
    """See the module header."""


class Pair(Ask):
    """See the module header."""


class Hold(Ask):
    """See the module header."""


@attrs.frozen
class Told:
    """What every call of the toy protocol is answered with."""

    words: str = text(0, 60_000, default="")


class ToyEngine(JsonRpcEngine):
    """Serves the toy protocol."""

    methods: ClassVar[Mapping[str, Method]] = method_table(
        Method("ask", Ask, Told),
        Method("wait", Wait, Told, charge=Charge.WAIT),
        Method("login", Login, Told, serial=True),
        Method("cancel", Cancel, Told, charge=Charge.FREE),
        Method("pair", Pair, Told),
        Method("hold", Hold, Told),
    )

    def __init__(self, authenticated: bool = True) -> None:
        super().__init__(65_536)
        self.authenticated = authenticated
        self._pairing = False
        self._pairings_ended = 0
        self._held: int | None = None

    @property
    def handshakes(self) -> int:
        return 1 + self._pairings_ended

    @property
    def handshake_suspended(self) -> bool:
        return self._pairing or self._held is not None

    def deliver(self, output: Deliver) -> None:
        self._held = output.number if isinstance(output.message, Hold) else self._held
        super().deliver(output)

    def reply(self, number: int, body: object) -> None:
        self._held = None if number == self._held else self._held
        super().reply(number, body)

    def on_result(self, method: Method, body: object) -> None:
        self.authenticated |= method.name == "login"
        self._pairing |= method.name == "pair"

    def push(self, body: object) -> None:
        assert isinstance(body, Told)
        self._pairings_ended += self._pairing
        self._pairing = False
        self.send(jsonrpc.notification("told", {"words": body.words}))


class Handlers:
    """What a connection has of the broker: every event is kept, and `decide` says what becomes of a call."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.nursery = nursery
        self.events: list[Event] = []
        self.decide: Callable[[Call[Ask]], bool] = lambda call: True
        self._news = trio.Event()

    def submit(self, event: Event) -> bool:
        """Keep the event."""
        self.events.append(event)
        self._news.set()
        self._news = trio.Event()
        return self.decide(event) if isinstance(event, Call) else True

    def of(self, kind: type[E]) -> list[E]:
        """The events of one kind so far."""
        return [event for event in self.events if isinstance(event, kind)]

    def asked(self) -> list[int]:
        """What the calls so far carried."""
        return [call.message.value for call in self.of(Call)]

    async def wait(self, kind: type[E], count: int = 1) -> list[E]:
        """Wait for so many events of a kind."""
        with trio.fail_after(PATIENCE_SECONDS):
            while len(self.of(kind)) < count:
                await self._news.wait()
        return self.of(kind)


class Peer:
    """The other end of the connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.stream = trio.SocketStream(trio.socket.from_stdlib_socket(sock))
        self._ids = 0
        self._buffer = b""

    async def __aenter__(self) -> Peer:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stream.aclose()

    def line(self, method: str, value: int = 0) -> bytes:
        """The next call as a line."""
        self._ids += 1
        call = {"jsonrpc": "2.0", "id": self._ids, "method": method, "params": {"value": value}}
        return json.dumps(call).encode() + b"\n"

    async def send(self, *methods: str) -> None:
        """Send calls, all at once; each carries its number, beginning with 0."""
        await self.stream.send_all(b"".join(self.line(name, value) for value, name in enumerate(methods)))

    async def read(self) -> dict[str, Any] | None:
        """The next line, None at the end of the stream; half a line before it is an error."""
        line = await self._line()
        message: dict[str, Any] | None = None if line is None else json.loads(line)
        return message

    async def read_batch(self) -> list[dict[str, Any]]:
        """The replies in the next line, which must be those of a batch."""
        line = await self._line()
        assert line is not None
        replies: list[dict[str, Any]] = json.loads(line)
        return replies

    async def _line(self) -> bytes | None:
        with trio.fail_after(PATIENCE_SECONDS):
            while b"\n" not in self._buffer:
                data = await self._receive()
                if not data:
                    assert not self._buffer, "the stream ends in half a line"
                    return None
                self._buffer += data
        line, self._buffer = self._buffer.split(b"\n", 1)
        return line

    async def rest(self) -> list[dict[str, Any]]:
        """Everything up to the end of the stream."""
        lines = []
        while (line := await self.read()) is not None:
            lines.append(line)
        return lines

    async def _receive(self) -> bytes:
        try:
            return bytes(await self.stream.receive_some())
        except trio.BrokenResourceError:  # a reset: the other side had not read all that was sent to it
            return b""


class Session:
    """One connection that is served, its peer and its handlers."""

    def __init__(self, connection: Connection, peer: Peer, handlers: Handlers) -> None:
        self.connection = connection
        self.peer = peer
        self.handlers = handlers

    async def call(self, method: str) -> CallRef:
        """Send one call and wait for it to be delivered."""
        count = len(self.handlers.of(Call))
        await self.peer.send(method)
        return (await self.handlers.wait(Call, count + 1))[-1].ref

    def reply(self, call: CallRef, words: str = "") -> None:
        """Answer a call."""
        self.connection.reply(call.number, Told(words))

    def answer_at_once(self) -> None:
        """From now on calls are answered while they are decided."""

        def decide(call: Call[Ask]) -> bool:
            self.reply(call.ref, str(call.message.value))
            return True

        self.handlers.decide = decide

    async def ended(self) -> None:
        """Wait until the connection is gone."""
        with trio.fail_after(PATIENCE_SECONDS):
            await self.connection.ended.wait()


@asynccontextmanager
async def open_session(terms: Terms | None = None, *, authenticated: bool = True) -> AsyncIterator[Session]:
    """A connection of the toy protocol, served until the block ends."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    async with trio.open_nursery() as nursery:
        handlers, peer = Handlers(nursery), Peer(theirs)
        connection = Connection(7, ours, ToyEngine(authenticated), terms or Terms(), handlers)
        nursery.start_soon(connection.serve)
        async with peer:
            yield Session(connection, peer, handlers)
        nursery.cancel_scope.cancel()
    assert connection.ended.is_set()
    assert connection.charged == 0
