"""The pure world as a driver of conformance transcripts."""

from __future__ import annotations

from tests.support.pure_world import Peer, Process, PureWorld
from tests.support.transcripts import RUNNER


class PureDriver:
    """Exact times, and nothing to wait for."""

    tolerance_ms = 0

    def __init__(self, world: PureWorld) -> None:
        self._world = world
        self._peers: dict[str, Peer] = {}
        self._processes: dict[str, Process] = {RUNNER: world.me}

    async def spawn(self, name: str, parent: str | None) -> int:
        process = self._world.spawn(self._processes[RUNNER if parent is None else parent])
        self._processes[name] = process
        return process.id.pid

    async def connect(self, name: str, protocol: str, process: str) -> None:
        self._peers[name] = self._world.connect(protocol, self._processes[process])

    async def send(self, name: str, data: bytes) -> None:
        self._peers[name].send(data)

    async def read(self, name: str) -> bytes | None:
        peer = self._peers[name]
        if not peer.lines:
            assert peer.closed, "nothing came"
            return None
        return peer.lines.popleft()

    async def is_quiet(self, name: str) -> bool:
        peer = self._peers[name]
        return not peer.lines and not peer.closed

    async def half_close(self, name: str) -> None:
        self._peers[name].half_close()

    async def disconnect(self, name: str) -> None:
        self._peers[name].disconnect()

    async def kill(self, process: str) -> None:
        self._world.kill(self._processes[process])

    async def wait(self, seconds: float) -> None:
        self._world.wait(seconds)

    async def restart(self) -> None:
        self._world.restart()

    def wall_ms(self) -> int:
        return self._world.clocks.now().wall
