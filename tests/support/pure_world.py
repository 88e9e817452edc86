"""Every protocol without a world: engines, handlers and the ledger, wired together in virtual time.

Peers write bytes and read lines as over a socket; what a broker would do with sockets, disk and kernel is
done by a few lines here.  Batches are committed at once unless `world.holding` is set; processes are made
and killed by name; time moves only in `wait` and `sleep`, and every deadline fires at its own instant.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import attrs

from broker.daemon.clocks import ManualClocks
from broker.daemon.ledger import Ledger
from handlers.environment import Environment
from handlers.events import (
    Call,
    CallRef,
    Closed,
    HalfClosed,
    Hangup,
    Opened,
    ProcessEnded,
    Push,
    Reply,
    Scrub,
    Scrubbed,
    Sent,
    Started,
    TellWhenSent,
    Then,
    Watch,
)
from handlers.policy import Policy
from handlers.routes import Routes
from handlers.rule import Effect, Event, Now
from protocols.companion.capabilities import Catalog
from protocols.companion.catalog import CATALOG
from protocols.process import ProcessId
from protocols.session import Close, Deliver, LineEngine, Send
from tests.support.memory_disk import MemoryDisk

HANDSHAKE_SECONDS = 5


@attrs.frozen
class Process:
    """A process of the pure world, and who started it."""

    id: ProcessId
    parent: Process | None = None

    def lineage(self) -> list[Process]:
        """The process and its ancestors."""
        return [self, *(self.parent.lineage() if self.parent else [])]


@attrs.frozen
class Spoken:
    """One protocol of the world; `look` adds what the kernel knows to a message, as the daemon does."""

    engine: Callable[[], LineEngine]
    look: Callable[[object, Process], object] = lambda message, process: message
    ordered: bool = False


class Peer:
    """The other end of one connection: writes bytes, reads lines."""

    def __init__(self, world: PureWorld, number: int, process: Process, spoken: Spoken) -> None:
        self.number = number
        self.process = process
        self.spoken = spoken
        self.engine = spoken.engine()
        self.opened_at = world.clocks.now().awake
        self.closed = False
        self.half_closed = False
        self.lines: deque[bytes] = deque()
        self._world = world

    def send(self, data: bytes | Mapping[str, Any]) -> None:
        """Write raw bytes, or an object as one line."""
        self.engine.receive(data if isinstance(data, bytes) else json.dumps(data).encode() + b"\n")
        self._world.settle()

    def read(self) -> Any:
        """The next line as JSON; None when nothing has come."""
        return json.loads(self.lines.popleft()) if self.lines else None

    def ask(self, data: bytes | Mapping[str, Any]) -> Any:
        """Write, and read the line that comes."""
        self.send(data)
        return self.read()

    def half_close(self) -> None:
        """Send no more; the broker closes when everything is answered."""
        self.half_closed = True
        self.engine.end_of_stream()
        self._world.submit(HalfClosed(self.number))

    def disconnect(self) -> None:
        """Close the connection from this side."""
        if not self.closed:
            self.closed = True
            self._world.submit(Closed(self.number))


class PureWorld:
    """See the module header."""

    presenter_kind: ClassVar[str] = "desktop"
    """What the broker of this world is configured to have."""

    def __init__(
        self,
        routes: Routes,
        protocols: Mapping[str, Spoken],
        policy: Policy,
        catalog: Catalog = CATALOG,
    ) -> None:
        self.clocks = ManualClocks(Now(elapsed=1_000_000, awake=1_000_000, wall=1_800_000_000_000))
        self.disk = MemoryDisk()
        self.policy = policy
        self.catalog = catalog
        self.holding = False
        self.saving = True
        """Whether batches get to the disk; those that do not have certainly failed."""
        self.deaf = False
        """Whether no byte gets to the peers any more."""
        self.files_are_read = False
        """Whether somebody reads the store's files, which cannot be scrubbed then."""
        self.effects: list[Effect] = []
        """Every effect that was carried out."""
        self.peers: dict[int, Peer] = {}
        self.me = Process(ProcessId(1000, "1"))
        self._routes = routes
        self._protocols = protocols
        self._boots = 1
        self._counter = 0
        self._watched: set[ProcessId] = set()
        self._dead: set[ProcessId] = set()
        self._start()

    # -- the broker ------------------------------------------------------------------------------------

    def _start(self) -> None:
        environment = Environment(
            self.policy,
            f"run {self._next()}",
            f"boot {self._boots}",
            self.catalog,
            presenter=self.presenter_kind,
        )
        self.ledger = Ledger(self._routes, environment, self.disk, self.clocks.now, _raise)
        self.ledger.load(self.disk.live(self._routes.tables))
        self.submit(Started())

    def restart(self, *, down_seconds: float = 0, reboot: bool = False) -> None:
        """The broker ends without a word and starts again: connections and memory are gone, the disk is
        left.  `reboot`: so is the machine, which was off for `down_seconds`.
        """
        for peer in self.peers.values():
            peer.closed = True
        self.peers.clear()
        self._watched.clear()
        if reboot:
            self.clocks.reboot(down_seconds)
        else:
            self.clocks.advance(down_seconds)
        self._boots += reboot
        self._start()

    def submit(self, event: Event) -> None:
        """Decide an event and carry out what follows."""
        self.ledger.decide(event)
        self.settle()

    def settle(self) -> None:
        """Carry everything out until nothing is left to do."""
        busy = True
        while busy:
            busy = self._commit() or self._carry_out() or self._serve_all()

    def _commit(self) -> bool:
        if self.holding or (batch := self.ledger.take_batch()) is None:
            return False
        if self.saving:
            self.disk.apply(batch.writes())
            self.ledger.committed()
        else:
            self.ledger.failed(refusing=False)
        return True

    def fail_commit(self, *, refusing: bool = False) -> None:
        """The batch that was held is certainly not on disk; `refusing`: the disk takes no more writes."""
        assert self.ledger.take_batch() is not None, "nothing was held"
        self.ledger.failed(refusing)
        self.holding = False
        self.settle()

    def _carry_out(self) -> bool:
        effect = self.ledger.take_ready()
        if effect is None:
            return False
        self.effects.append(effect)
        match effect:
            case Reply(CallRef(connection, number), body) if peer := self.peers.get(connection):
                peer.engine.reply(number, body)
            case Push(connection, body) if peer := self.peers.get(connection):
                peer.engine.push(body)
            case Hangup(connection) if peer := self.peers.get(connection):
                peer.engine.close()
            case TellWhenSent(connection) if connection in self.peers and not self.deaf:
                self.ledger.decide(Sent(connection))
            case Then(event):
                self.ledger.decide(event)
            case Scrub(id, revision) if not self.files_are_read:
                self.ledger.decide(Scrubbed(id, revision))
            case Watch(process):
                self._watched.add(process)
                self._tell_deaths()
        return True

    # -- connections -----------------------------------------------------------------------------------

    def connect(self, protocol: str, process: Process | None = None, program: str | None = None) -> Peer:
        """Open a connection; `process` is its peer, the test itself if none is named, and runs this program."""
        number = self._next()
        peer = Peer(self, number, process or self.me, self._protocols[protocol])
        self.peers[number] = peer
        self.submit(Opened(number, protocol, peer.process.id, program))
        return peer

    def open_peers(self) -> list[Peer]:
        return [peer for peer in self.peers.values() if not peer.closed]

    def _serve_all(self) -> bool:
        return sum(self._serve(peer) for peer in self.open_peers()) > 0

    def _serve(self, peer: Peer) -> bool:
        output = peer.engine.next_output()
        match output:
            case Send(data):
                peer.lines += data.splitlines()
            case Close():
                peer.disconnect()
            case Deliver(number, message):
                seen = peer.spoken.look(message, peer.process)
                ref = CallRef(peer.number, number)
                self.ledger.decide(Call(ref, seen, self._seed(), peer.spoken.ordered))
            case None if peer.half_closed and peer.engine.outstanding == 0:
                peer.disconnect()
        return output is not None

    def _seed(self) -> bytes:
        return hashlib.sha256(b"seed %d" % self._next()).digest()

    def _next(self) -> int:
        self._counter += 1
        return self._counter

    # -- processes and time ----------------------------------------------------------------------------

    def spawn(self, parent: Process | None = None) -> Process:
        """A new process."""
        number = self._next()
        return Process(ProcessId(2000 + number, str(number)), parent)

    def kill(self, process: Process) -> None:
        """The process dies; connections that somebody else holds open stay open."""
        self._dead.add(process.id)
        self._tell_deaths()

    def alive(self, process: Process) -> bool:
        return process.id not in self._dead

    def _tell_deaths(self) -> None:
        for process in self._watched & self._dead:
            self._watched.discard(process)
            self.submit(ProcessEnded(process))

    def wait(self, seconds: float) -> None:
        """Let time pass while the machine is awake."""
        end = self.clocks.now().awake + round(seconds * 1000)
        while (left := end - self.clocks.now().awake) >= 0:
            next_in = self.ledger.deadlines.next_in(self.clocks.now())
            due = next_in is not None and next_in <= left and not self.ledger.refusing
            self.clocks.advance((next_in if due and next_in is not None else left) / 1000)
            self.ledger.fire_due()
            self.settle()
            self._time_handshakes()
            if not due:
                break

    def sleep(self, seconds: float) -> None:
        """The machine sleeps: only elapsed time goes on."""
        self.clocks.sleep(seconds)
        self.ledger.fire_due()
        self.settle()

    def _time_handshakes(self) -> None:
        for peer in self.open_peers():
            late = self.clocks.now().awake - peer.opened_at > HANDSHAKE_SECONDS * 1000
            if late and not peer.engine.authenticated:
                peer.engine.handshake_timeout()
        self.settle()


def _raise(event: Event, error: Exception) -> None:
    raise error
