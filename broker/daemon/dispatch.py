"""Where events meet the ledger and effects meet the world.

`submit` decides one event and carries out what is ready.  `perform` carries out one effect: it finds the
connection or the process that the effect names and never raises; an effect for somebody who has gone meanwhile
goes nowhere.  The deadline task sleeps until the next deadline of any row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import trio

from broker.daemon.clocks import Clocks
from broker.daemon.committer import Committer
from broker.daemon.connection import Connection
from broker.daemon.ledger import Ledger
from broker.daemon.logs import Log
from broker.daemon.processes import ProcessWatch
from handlers.events import (
    Hangup,
    ProcessEnded,
    Push,
    Reply,
    Sent,
    Stop,
    TellWhenSent,
    Then,
    Unwatch,
    Watch,
)
from handlers.rule import Effect, Event
from protocols.process import ProcessId

E = TypeVar("E", bound=Effect)
_LONGEST_SLEEP_SECONDS = 1.0
"""A sleeping machine stops trio's clock but not that of a deadline, so no sleep is longer than this."""


class Recipient(Protocol):
    """Whoever effects can be for: a connection, or the host in this process."""

    def reply(self, number: int, body: object) -> None:
        """Answer a call."""
        ...

    def push(self, body: object) -> None:
        """Send a message that no call asked for."""
        ...

    def hang_up(self) -> None:
        """End the session after what was sent before."""
        ...

    def abort(self) -> None:
        """End the session at once: an answer to it could not be made."""
        ...


class Insider(Recipient, Protocol):
    """A recipient in this process, which no closing socket tells that nothing more will come."""

    def lose(self) -> None:
        """Nothing is told any more: the callers that wait are set free, without an answer."""
        ...


class Dispatch:
    """See the module header.  `nursery` runs whatever outlives a call: flushes, delayed replies."""

    def __init__(self, clocks: Clocks, nursery: trio.Nursery, log: Log) -> None:
        self.nursery = nursery
        self.connections: dict[int, Connection] = {}
        """Those of sockets; they are who is counted, and who is told at the end."""
        self.insiders: dict[int, Insider] = {}
        self.stopping = trio.Event()
        self._clocks = clocks
        self._log = log
        self._watch = ProcessWatch(self._process_ended)
        self._earlier = trio.Event()
        self._sleeping_until: int | None = None
        self.silent = False
        self._winding_down = False
        self._carry: dict[type[Effect], Callable[[Any], object]] = {
            Reply: self._reply,
            Push: self._push,
            Hangup: self._hang_up,
            TellWhenSent: self._tell_when_sent,
            Watch: lambda effect: self._watch.watch(effect.process),
            Unwatch: lambda effect: self._watch.unwatch(effect.process),
            Then: self._go_on,
            Stop: lambda effect: self.stopping.set(),
        }

    def attach(self, ledger: Ledger, committer: Committer) -> None:
        """Give the dispatch its ledger and committer, which in turn need its `perform`."""
        self._ledger = ledger
        self._committer = committer

    def carry(self, kind: type[E], carry: Callable[[E], None]) -> None:
        """Let effects of this kind be carried out by somebody else."""
        self._carry[kind] = carry

    def submit(self, event: Event) -> bool:
        """Decide an event; False when its handler failed, which left everything as it was."""
        try:
            self._ledger.decide(event)
        except Exception as error:
            self.report(event, error)
            return False
        finally:
            self._committer.kick()
            self._look_at_deadlines()
        return True

    def report(self, event: Event, error: Exception) -> None:
        """Log a fault in a handler: the kind of event and of error, never what they hold."""
        self._log.fault("handler_failed", error, kind=type(event).__name__)

    def silence(self) -> None:
        """Carry out no effect any more: what is decided from now on can no longer be stored."""
        self.silent = True
        for insider in self.insiders.values():
            insider.lose()

    def wind_down(self) -> None:
        """Begin no further work that goes on in decisions of its own: the next start takes it up."""
        self._winding_down = True

    def perform(self, effect: Effect) -> None:
        """Carry out one effect."""
        if self.silent:
            return
        try:
            self._carry[type(effect)](effect)
        except Exception as error:
            self._log.fault("effect_failed", error, effect=type(effect).__name__)

    # -- effects ----------------------------------------------------------------------------------------------

    def _reply(self, effect: Reply) -> None:
        if effect.delay_ms:
            self.nursery.start_soon(self._reply_later, effect)
        else:
            self._tell(effect.to.connection, lambda to: to.reply(effect.to.number, effect.body))

    async def _reply_later(self, effect: Reply) -> None:
        await trio.sleep(effect.delay_ms / 1000)
        self.perform(Reply(effect.to, effect.body))

    def _push(self, effect: Push) -> None:
        self._tell(effect.connection, lambda to: to.push(effect.body))

    def _hang_up(self, effect: Hangup) -> None:
        self._tell(effect.connection, lambda to: to.hang_up())

    def _tell_when_sent(self, effect: TellWhenSent) -> None:
        connection = self.connections.get(effect.connection)
        if connection is not None:
            connection.when_sent(lambda: self.submit(Sent(effect.connection)))

    def _tell(self, number: int, tell: Callable[[Recipient], None]) -> None:
        """Whoever cannot be told is cut off, lest it wait for ever."""
        recipient = self.connections.get(number) or self.insiders.get(number)
        if recipient is None:
            return
        try:
            tell(recipient)
        except Exception:
            recipient.abort()
            raise

    def _go_on(self, effect: Then) -> None:
        if not self._winding_down:
            self.submit(effect.event)

    # -- processes and deadlines ------------------------------------------------------------------------------

    def _process_ended(self, process: ProcessId) -> None:
        self.submit(ProcessEnded(process))

    async def watch_processes(self) -> None:
        """Watch the processes that effects have named, for ever."""
        await self._watch.run()

    async def fire_deadlines(self) -> None:
        """Fire the deadlines of rows as they come, for ever."""
        while True:
            self._ledger.fire_due()
            self._committer.kick()
            self._earlier = trio.Event()
            with trio.move_on_after(self._next_sleep()):
                await self._earlier.wait()

    def _next_sleep(self) -> float:
        now = self._clocks.now()
        wait = self._ledger.deadlines.next_in(now)
        if wait is None:
            self._sleeping_until = None
            return float("inf")
        if self._ledger.refusing:  # deadlines pause; the committer's probe wakes everything again
            wait = max(wait, 1000)
        self._sleeping_until = now.elapsed + wait
        return min(wait / 1000, _LONGEST_SLEEP_SECONDS)

    def _look_at_deadlines(self) -> None:
        now = self._clocks.now()
        wait = self._ledger.deadlines.next_in(now)
        if wait is not None and (self._sleeping_until is None or now.elapsed + wait < self._sleeping_until):
            self._earlier.set()
