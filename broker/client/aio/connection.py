"""A companion session over one connection, with trio: any number of calls at once, one task that reads.

A call's frame goes into the connection's own buffer as a whole, and what the socket does not take at once is sent by
the connection's own task.  So a call that is cancelled never leaves half a frame; its answer, when it comes, is
dropped.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import attrs
import trio

from broker.client.channel import (
    FIRST_BACKLOG_PAUSE_SECONDS,
    LONGEST_BACKLOG_PAUSE_SECONDS,
    Channel,
    connect_now,
)
from broker.client.errors import ClientError, ConnectionLost, TimedOut
from broker.client.replies import REPLY_SECONDS, call_failed, read_event
from protocols.companion.client import CompanionClient, Credential, Ready, SessionEvent, TurnedAway
from protocols.companion.messages import Implementation
from protocols.jsonrpc_client import Answer, Failure

Wrong: TypeAlias = Callable[[], ClientError]
"""Makes an error: each task that is told of it raises one of its own."""


@attrs.define(eq=False)
class _Slot:
    """Where one answer is waited for; a slot that is filled without an answer has what went wrong."""

    filled: trio.Event = attrs.field(factory=trio.Event)
    answer: Answer | None = None
    wrong: Wrong | None = None

    def fill(self, answer: Answer | None, wrong: Wrong | None = None) -> None:
        """Wake who waits."""
        self.answer, self.wrong = answer, wrong
        self.filled.set()

    async def wait(self, seconds: float) -> None:
        """Raises what went wrong, and TimedOut."""
        with _in_time(seconds):
            await self.filled.wait()
        if self.wrong is not None:
            raise self.wrong()


class CompanionConnection:
    """A session that is open.  Tasks may share it."""

    def __init__(self, channel: Channel, engine: CompanionClient) -> None:
        self.ready: Ready
        self.ended = False
        """Whether it is of no more use."""
        self._channel = channel
        self._engine = engine
        self._output = bytearray()
        self._left = trio.Event()
        self._heard_all = False
        self._greeting = _Slot()
        self._slots: dict[int, _Slot] = {}

    @classmethod
    async def open(
        cls,
        tasks: trio.Nursery,
        path: Path,
        program: Implementation,
        credential: Credential,
        seconds: float = REPLY_SECONDS,
    ) -> CompanionConnection:
        """Connect, say hello and authenticate; its task runs in `tasks` until it is closed, also while those are
        cancelled, so that what was begun can be brought to an end.  Raises CallFailed, NotConnected.
        """
        with _in_time(seconds):
            channel = await _connect(path)
        connection = cls(channel, CompanionClient(program, credential))
        try:
            tasks.start_soon(connection._serve)
            connection._send()
            await connection._greeting.wait(seconds)
        except BaseException:
            connection.close()
            raise
        return connection

    async def call(self, method: str, params: object, seconds: float = REPLY_SECONDS) -> Answer:
        """Call and wait for the answer.

        Raises CallFailed for an error reply, NotConnected when the answer did not come, and FrameTooLong or
        EncodeError, with nothing sent, for params that cannot be sent.
        """
        if self.ended:
            raise _lost()
        number = self._engine.call(method, params)
        slot = self._slots[number] = _Slot()
        try:
            self._send()
            await slot.wait(seconds)
        finally:
            del self._slots[number]
        assert slot.answer is not None
        return slot.answer

    def close(self) -> None:
        """End the connection; calls that wait are told that it is lost."""
        self._end(_lost)

    # -- its task ---------------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        with trio.CancelScope(shield=True):
            async with trio.open_nursery() as both:
                both.start_soon(self._write)
                await self._read()
                both.cancel_scope.cancel()

    async def _read(self) -> None:
        try:
            while True:
                self._deliver(await self._next_event())
        except ClientError as error:
            text, kind = str(error), type(error)
            self._end(lambda: kind(text))

    async def _next_event(self) -> SessionEvent:
        while True:
            event = read_event(self._engine)
            self._send()  # an event of the handshake may have queued the next step
            if event is not None:
                return event
            if self._heard_all:
                raise _lost()
            if data := await self._receive():
                self._engine.receive(data)
            else:
                self._engine.end_of_stream()
                self._heard_all = True

    async def _receive(self) -> bytes:
        while (data := self._channel.receive_now()) is None:
            try:
                await trio.lowlevel.wait_readable(self._channel.fileno())
            except trio.ClosedResourceError:
                return b""
        return data

    def _deliver(self, event: SessionEvent) -> None:
        match event:
            case Ready():
                self.ready = event
                self._greeting.fill(None)
            case TurnedAway() | Failure(number=None):
                self._end(lambda: call_failed(event.error))
            case Failure(number=int(number)):
                if number in self._slots:
                    self._slots[number].fill(None, lambda: call_failed(event.error))
            case Answer():
                if event.number in self._slots:
                    self._slots[event.number].fill(event)

    def _end(self, wrong: Wrong) -> None:
        if self.ended:
            return
        self.ended = True
        trio.lowlevel.notify_closing(self._channel.fileno())
        self._channel.close()
        for slot in (self._greeting, *self._slots.values()):
            if not slot.filled.is_set():
                slot.fill(None, wrong)

    # -- sending ----------------------------------------------------------------------------------------------

    def _send(self) -> None:
        """Send what the socket takes at once, and leave the rest to the writing task."""
        self._output += self._engine.take_output()
        try:
            while self._output and (sent := self._channel.send_now(bytes(self._output))):
                del self._output[:sent]
        except ConnectionLost:  # reading comes to the end too, after what was said last
            self._output.clear()
        if self._output:
            self._left.set()

    async def _write(self) -> None:
        while True:
            await self._left.wait()
            self._left = trio.Event()
            if self.ended:
                return
            try:
                await trio.lowlevel.wait_writable(self._channel.fileno())
            except trio.ClosedResourceError:
                return
            self._send()


async def _connect(path: Path) -> Channel:
    """Connect; a full backlog means a busy broker, and is tried again."""
    pause = FIRST_BACKLOG_PAUSE_SECONDS
    while (sock := connect_now(path)) is None:
        await trio.sleep(pause)
        pause = min(2 * pause, LONGEST_BACKLOG_PAUSE_SECONDS)
    return Channel(sock)


@contextlib.contextmanager
def _in_time(seconds: float) -> Iterator[None]:
    try:
        with trio.fail_after(seconds):
            yield
    except trio.TooSlowError:
        raise TimedOut("the broker did not answer in time") from None


def _lost() -> ConnectionLost:
    return ConnectionLost("the broker closed the connection")
