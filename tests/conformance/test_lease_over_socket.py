"""The lease conversations of fixtures/conformance/lease against a real broker: sockets, processes,
clocks, disk.

All conversations run side by side, each with a broker of its own in this process; the time that they take is
mostly waiting.  No step depends on being quick: where a conversation waits, it waits for something to be
over.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from broker.daemon.app import Broker, Setup, open_broker
from broker.daemon.config import Config
from broker.paths import Paths
from handlers.connections import CONNECTIONS
from handlers.lease.rows import LEASES, SESSIONS
from handlers.policy import LeasePolicy, Policy
from protocols.lease.states import LeaseState
from tests.support import relay_process
from tests.support.transcripts import APPS, RUNNER, Play, Transcript, read_transcripts

AT_ONCE = 8
READ_SECONDS = 20.0
QUIET_SECONDS = 0.15
TRANSCRIPTS = read_transcripts("lease")


class Wire:
    """One connection's lines as they come in, and whether the broker has closed it."""

    def __init__(self) -> None:
        self.buffer = b""
        self.closed = False
        self.changed = trio.Event()

    def take(self, data: bytes) -> None:
        self.buffer += data
        self.closed = self.closed or not data
        self.changed.set()
        self.changed = trio.Event()

    async def line(self) -> bytes | None:
        while b"\n" not in self.buffer and not self.closed:
            await self.changed.wait()
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line or None


class Relayed:
    """A process of the conversation: what it is told to do, and the pid that it has said."""

    def __init__(self, stream: trio.SocketStream, pid: int) -> None:
        self.stream = stream
        self.pid = pid
        self.connected: dict[str, trio.Event] = {}

    async def tell(self, do: str, name: str, **more: str) -> None:
        await self.stream.send_all(json.dumps({"do": do, "name": name, **more}).encode() + b"\n")


class SocketDriver:
    """A real broker as a driver."""

    tolerance_ms = 5000

    def __init__(self, folder: Path, policy: LeasePolicy, nursery: trio.Nursery) -> None:
        self._folder = folder
        self._policy = Policy(lease=policy, apps=APPS)
        self._nursery = nursery
        self._broker: Broker | None = None
        self._ended = trio.Event()
        self._wires: dict[str, Wire] = {}
        self._streams: dict[str, trio.SocketStream] = {}
        self._owners: dict[str, Relayed] = {}
        self._relays: dict[str, Relayed] = {}
        self._arrived: dict[str, trio.Event] = {}
        self._processes: list[subprocess.Popen[bytes]] = []

    # -- the broker ------------------------------------------------------------------------------------

    @property
    def _paths(self) -> Paths:
        run = self._folder / "run"
        return Paths(
            runtime=run,
            state=self._folder / "state",
            config_file=self._folder / "config.toml",
            credentials=self._folder / "credentials",
            lease_socket=run / "ai-protection.sock",
        )

    async def start(self) -> None:
        started, self._ended = trio.Event(), trio.Event()
        self._nursery.start_soon(self._run_broker, started)
        await started.wait()

    async def _run_broker(self, started: trio.Event) -> None:
        setup = Setup(Config(policy=self._policy), self._paths, presenter="none")
        async with open_broker(setup) as broker:
            self._broker = broker
            started.set()
            await broker.wait_stopping()
        self._ended.set()

    async def restart(self) -> None:
        await self._stop_broker()
        await self.start()

    async def _stop_broker(self) -> None:
        if self._broker is not None:
            self._broker.stop()
            await self._ended.wait()

    async def stop(self) -> None:
        await self._stop_broker()
        for stream in self._streams.values():
            await stream.aclose()
        for relay in self._relays.values():
            await relay.stream.aclose()
        for process in self._processes:
            process.wait(timeout=10)

    def _rows(self, table: Any) -> list[Any]:
        assert self._broker is not None
        return self._broker.ledger.rows.all(table)

    async def _until(self, condition: Callable[[], bool]) -> None:
        with trio.fail_after(READ_SECONDS):
            while not condition():  # noqa: ASYNC110  # the broker has no event for its tests
                await trio.sleep(0.005)

    # -- processes -------------------------------------------------------------------------------------

    async def spawn(self, name: str, parent: str | None) -> int:
        path = self._folder / "relay.sock"
        if not self._relays and not self._arrived:
            await self._listen_for_relays(path)
        self._arrived[name] = trio.Event()
        if parent is None:
            command = [sys.executable, "-S", relay_process.__file__, str(path), name]
            self._processes.append(_start(command))
        else:
            await self._relays[parent].tell("spawn", name)
        with trio.fail_after(READ_SECONDS):
            await self._arrived[name].wait()
        return self._relays[name].pid

    async def _listen_for_relays(self, path: Path) -> None:
        sock = trio.socket.socket(trio.socket.AF_UNIX)
        await sock.bind(str(path))
        sock.listen()
        self._nursery.start_soon(trio.serve_listeners, self._serve_relay, [trio.SocketListener(sock)])

    async def _serve_relay(self, stream: trio.SocketStream) -> None:
        buffer = b""
        relay: Relayed | None = None
        async for data in _chunks(stream):
            *lines, buffer = (buffer + data).split(b"\n")
            for facts in map(json.loads, lines):
                if "pid" in facts:
                    relay = self._relays[facts["name"]] = Relayed(stream, facts["pid"])
                    self._arrived[facts["name"]].set()
                elif "connected" in facts and relay is not None:
                    relay.connected[facts["connected"]].set()
                else:
                    self._wires[facts["peer"]].take(facts["data"].encode("latin-1"))

    async def kill(self, process: str) -> None:
        pid = self._relays[process].pid
        os.kill(pid, signal.SIGKILL)  # nobody collects it: a zombie is dead too
        await self._until(lambda: not self._believes_in(pid))

    def _believes_in(self, pid: int) -> bool:
        sessions = any(one.process.pid == pid and not one.process_died for one in self._rows(SESSIONS))
        alive = (LeaseState.ACTIVE, LeaseState.GRACE, LeaseState.EXPIRED)
        return sessions or any(one.process.pid == pid and one.state in alive for one in self._rows(LEASES))

    # -- connections -----------------------------------------------------------------------------------

    async def connect(self, name: str, protocol: str, process: str) -> None:
        path = self._paths.lease_socket if protocol == "lease" else self._paths.control_socket
        self._wires[name] = Wire()
        if process == RUNNER:
            self._streams[name] = await trio.open_unix_socket(str(path))
            self._nursery.start_soon(self._receive, name)
            return
        owner = self._owners[name] = self._relays[process]
        owner.connected[name] = trio.Event()
        await owner.tell("connect", name, path=str(path))
        with trio.fail_after(READ_SECONDS):
            await owner.connected[name].wait()

    async def _receive(self, name: str) -> None:
        async for data in _chunks(self._streams[name]):
            self._wires[name].take(data)
        self._wires[name].take(b"")

    async def send(self, name: str, data: bytes) -> None:
        if name in self._owners:
            await self._owners[name].tell("send", name, data=data.decode("latin-1"))
        else:
            await self._streams[name].send_all(data)

    async def read(self, name: str) -> bytes | None:
        try:
            with trio.fail_after(READ_SECONDS):
                return await self._wires[name].line()
        except trio.TooSlowError:
            raise AssertionError("nothing came") from None

    async def is_quiet(self, name: str) -> bool:
        await trio.sleep(QUIET_SECONDS)
        return not self._wires[name].buffer and not self._wires[name].closed

    async def half_close(self, name: str) -> None:
        await self._streams[name].send_eof()

    async def disconnect(self, name: str) -> None:
        before = len(self._rows(CONNECTIONS))
        if name in self._owners:
            await self._owners[name].tell("close", name)
        else:
            await self._streams[name].aclose()
        await self._until(lambda: len(self._rows(CONNECTIONS)) < before)

    async def wait(self, seconds: float) -> None:
        await trio.sleep(seconds)

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    """Start a process that nobody collects before the end: trio would."""
    return subprocess.Popen(command)


async def _chunks(stream: trio.SocketStream) -> AsyncIterator[bytes]:
    """What comes until the end, however that comes."""
    try:
        while data := await stream.receive_some(65536):
            yield data
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return


@asynccontextmanager
async def _driver(policy: LeasePolicy) -> AsyncIterator[SocketDriver]:
    with tempfile.TemporaryDirectory(prefix="cb-") as folder:
        async with trio.open_nursery() as nursery:
            driver = SocketDriver(Path(folder), policy, nursery)
            await driver.start()
            try:
                yield driver
            finally:
                await driver.stop()
                nursery.cancel_scope.cancel()


async def _play(transcript: Transcript, slots: trio.CapacityLimiter, failures: dict[str, str]) -> None:
    async with slots:
        try:
            async with _driver(transcript.policy) as driver:
                await Play(driver, os.getpid()).run(transcript)
        except* AssertionError as group:
            failures[transcript.name] = "\n".join(map(str, group.exceptions))


async def _play_all() -> dict[str, str]:
    slots = trio.CapacityLimiter(AT_ONCE)
    failures: dict[str, str] = {}
    async with trio.open_nursery() as nursery:
        for transcript in TRANSCRIPTS:
            nursery.start_soon(_play, transcript, slots, failures)
    return failures


@pytest.fixture(scope="module")
def failures() -> dict[str, str]:
    """What went wrong, by conversation."""
    return trio.run(_play_all)


@pytest.mark.parametrize(
    "name",
    [pytest.param(one.name, marks=pytest.mark.requirement(*one.requirements)) for one in TRANSCRIPTS],
)
def test_conversation_goes_as_written_over_real_sockets(name: str, failures: dict[str, str]) -> None:
    assert name not in failures, failures[name]
