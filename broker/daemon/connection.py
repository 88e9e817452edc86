"""One connection: a socket, an engine, an outbox and the quotas of its peer.

One reader task a connection.  It feeds the engine and hands what the engine delivers to the dispatch; replies come
back by `reply` from wherever they were decided, and are written by the outbox.  The task stops reading while the
engine awaits a reply that may change the session, while the peer does not read, and at the end of stream, where
it stays until everything that was asked is answered.  The only deadline is that of the handshake, and it wraps
waiting for input, never a write.  A peer that is gone is noticed by reading alone, so that what it has sent before
still counts.
"""

from __future__ import annotations

import math
import os
import socket
from collections.abc import Awaitable, Callable
from typing import Protocol

import attrs
import trio

from broker.daemon.outbox import Outbox
from handlers.events import Call, CallRef, Closed, HalfClosed
from handlers.rule import Event
from protocols.quota import Account, TokenBucket
from protocols.session import (
    Charge,
    Close,
    Deliver,
    Fault,
    LineEngine,
    Output,
    RateLimited,
    Send,
    Stopping,
)

_READ_SIZE = 65_536
_FRAMES_A_PASS = 32
_HANG_UP_CHECK_SECONDS = 1.0
_LAST_FLUSH_SECONDS = 1.0


@attrs.frozen
class Terms:
    """What a protocol's connections are held to.

    `look` adds what the kernel knows to a message before it is decided.  `max_calls` and `max_waits` bound what is
    in flight, `calls_per_second` is a token bucket that holds one second's worth.
    """

    ordered: bool = False
    handshake_seconds: float = 5.0
    outbox_bytes: int = 4 * 1024 * 1024
    max_calls: int = 64
    max_waits: int = 64
    calls_per_second: int = 200
    look: Callable[[object], object] = lambda message: message


class Broker(Protocol):
    """What a connection needs of the broker (`broker.daemon.dispatch`)."""

    nursery: trio.Nursery

    def submit(self, event: Event) -> bool:
        """Decide an event; False when its handler failed."""
        ...


class Connection:
    """See the module header.  `number` names it in events and effects."""

    def __init__(
        self, number: int, sock: socket.socket, engine: LineEngine, terms: Terms, broker: Broker
    ) -> None:
        self.number = number
        self.engine = engine
        self._socket = sock
        self._terms = terms
        self._broker = broker
        self._outbox = Outbox(sock, terms.outbox_bytes, broker.nursery, self._emptied, self._stop_reading)
        self._account = Account({Charge.CALL.value: terms.max_calls, Charge.WAIT.value: terms.max_waits})
        self._bucket = TokenBucket(terms.calls_per_second, terms.calls_per_second)
        self._charges: dict[int, Charge] = {}
        self._wake = trio.Event()
        self._handshakes = 0
        self._handshake_left = 0.0
        self._handshake_ends = math.inf
        self._waiting = trio.CancelScope()
        self._draining = False
        self._awaiting_sent: list[Callable[[], object]] = []
        self._closing = False
        self._ended = False
        self.ended = trio.Event()
        """Set when the connection is gone."""

    @property
    def charged(self) -> int:
        """How many units of its quotas the peer holds now; none when the connection has ended."""
        return self._account.total()

    # -- the reader task --------------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Serve the peer until either side ends it; then everything it was charged is released."""
        try:
            self._time_handshake()
            await self._read_until_done()
            with trio.move_on_after(_LAST_FLUSH_SECONDS):
                await self._flushed()
        finally:
            self._shut()

    async def _read_until_done(self) -> None:
        while not self._closing:
            if trio.current_time() >= self._handshake_ends:
                self.engine.handshake_timeout()
                self._drain()
                return
            if self._advance():
                await trio.lowlevel.checkpoint()
            elif self._closing:
                return
            elif self._ended:
                if self._answered():
                    return
                await self._wait_for_answers()
            elif self.engine.paused or self._outbox.crowded:
                await self._wait(self._woken)
            else:
                await self._wait(self._readable)
                self._read()

    async def _wait(self, happens: Callable[[], Awaitable[None]]) -> None:
        """Wait for something, until the connection closes or the time for the handshake is over."""
        with trio.CancelScope(deadline=self._handshake_ends) as self._waiting:
            await happens()

    async def _readable(self) -> None:
        await trio.lowlevel.wait_readable(self._socket.fileno())

    def _read(self) -> None:
        if self._closing:
            return
        try:
            data = self._socket.recv(_READ_SIZE)
        except BlockingIOError:
            return
        except OSError:
            self._closing = True
            return
        if data:
            self.engine.receive(data)
        else:
            self._on_end_of_stream()

    def _on_end_of_stream(self) -> None:
        self._ended = True
        self.engine.end_of_stream()
        if _hung_up(self._socket):
            self._advance()  # an unterminated last line still counts
            self._closing = True
        else:
            self._broker.submit(HalfClosed(self.number))

    async def _wait_for_answers(self) -> None:
        with trio.move_on_after(_HANG_UP_CHECK_SECONDS):
            await self._wait(self._woken)
        if _hung_up(self._socket):
            self._closing = True

    def _answered(self) -> bool:
        return self.engine.outstanding == 0 and self._outbox.empty

    async def _woken(self) -> None:
        await self._wake.wait()
        self._wake = trio.Event()

    def _wake_up(self) -> None:
        self._wake.set()

    def _emptied(self) -> None:
        """The outbox has flushed what the peer was slow to take."""
        self._wake_up()
        self._tell_sent()

    def _tell_sent(self) -> None:
        if self._draining or self._outbox.closed or not self._outbox.empty:
            return
        awaiting, self._awaiting_sent = self._awaiting_sent, []
        for tell in awaiting:
            tell()

    async def _flushed(self) -> None:
        while not self._outbox.empty:
            await self._woken()

    # -- outputs of the engine --------------------------------------------------------------------------------

    def _advance(self) -> bool:
        """Deal with the next frames; True when more may be waiting in the engine."""
        for _ in range(_FRAMES_A_PASS):
            if self._closing or self.engine.paused or self._outbox.crowded:
                return False
            output = self.engine.next_output()
            if output is None:
                return False
            self._drain(output)
        return True

    def _drain(self, output: Output | None = None) -> None:
        """Carry out `output` and what the engine has queued, in order, whoever made it do so."""
        if self._draining:
            return  # a reply that came at once: whoever is draining carries it out
        self._draining = True
        try:
            output = output or self.engine.take_output()
            while output is not None:
                self._carry_out(output)
                output = self.engine.take_output()
        finally:
            self._draining = False
        self._time_handshake()
        self._tell_sent()

    def _carry_out(self, output: Output) -> None:
        match output:
            case Send(data):
                self._outbox.put(data)
            case Deliver():
                self._deliver(output)
            case Close():
                self._stop_reading()

    def _deliver(self, output: Deliver) -> None:
        refusal = self._charge(output)
        if refusal is not None:
            self.reply(output.number, refusal)
            return
        message = self._terms.look(output.message)
        ref = CallRef(self.number, output.number)
        if not self._broker.submit(Call(ref, message, os.urandom(32), self._terms.ordered)):
            self.reply(output.number, Fault())

    def _charge(self, output: Deliver) -> RateLimited | None:
        retry_after = self._bucket.take(round(trio.current_time() * 1000))
        if retry_after:
            return RateLimited(retry_after, "callsPerSecond")
        if output.charge is Charge.FREE:
            return None
        if not self._account.charge(output.charge.value):
            reason = "maxWaits" if output.charge is Charge.WAIT else "maxCallsInFlight"
            return RateLimited(1000, reason)
        self._charges[output.number] = output.charge
        return None

    def _time_handshake(self) -> None:
        """Run the handshake's time.  Suspended, it stands still; it begins anew when the engine says so."""
        now = trio.current_time()
        if self.engine.handshakes > self._handshakes:
            self._handshakes = self.engine.handshakes
            self._handshake_left, self._handshake_ends = self._terms.handshake_seconds, math.inf
        running = self._handshake_ends < math.inf
        if self.engine.authenticated or self.engine.handshake_suspended:
            self._handshake_left = self._handshake_ends - now if running else self._handshake_left
            self._handshake_ends = math.inf
        elif not running:
            self._handshake_ends = now + self._handshake_left
        self._waiting.deadline = self._handshake_ends

    # -- from the effects -------------------------------------------------------------------------------------

    def reply(self, number: int, body: object) -> None:
        """Answer a delivered message; a reply to a connection that is closing goes nowhere."""
        charge = self._charges.pop(number, None)
        if charge is not None:
            self._account.release(charge.value)
        self.engine.reply(number, body)
        self._after_writing()

    def push(self, body: object) -> None:
        """Send a message that no call asked for."""
        self.engine.push(body)
        self._after_writing()

    def when_sent(self, tell: Callable[[], object]) -> None:
        """Tell once everything that was sent so far is handed to the kernel; never, if the peer does not take it."""
        self._awaiting_sent.append(tell)
        self._tell_sent()

    def hang_up(self) -> None:
        """Close the connection after what was sent before."""
        self.engine.close()
        self._after_writing()

    def stop(self) -> None:
        """The broker ends: whoever still waits for an answer is told so, and the connection closes."""
        for number in list(self._charges):
            self.reply(number, Stopping())
        self.hang_up()

    def abort(self) -> None:
        """End the connection at once, whatever was still to be sent: an answer to it could not be made."""
        self._outbox.reset()
        self._stop_reading()

    def _after_writing(self) -> None:
        self._drain()
        self._wake_up()

    def _stop_reading(self) -> None:
        self._closing = True
        self._waiting.cancel()
        self._wake_up()

    def _shut(self) -> None:
        if not self._outbox.empty:
            self._outbox.reset()
        trio.lowlevel.notify_closing(self._socket.fileno())
        self._socket.close()
        for charge in self._charges.values():
            self._account.release(charge.value)
        self._charges.clear()
        self._broker.submit(Closed(self.number))
        self.ended.set()
        assert self.charged == 0


def _hung_up(sock: socket.socket) -> bool:
    """Whether the peer has closed both directions; a half-close alone is no hang-up.

    Asked by a write of nothing: unlike POLLHUP, it means the same on every platform.
    """
    try:
        sock.send(b"")
    except BlockingIOError:
        return False
    except OSError:
        return True
    return False
