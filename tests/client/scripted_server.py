"""A Unix socket server for one test: each connection is served by the next function of a list, in a thread."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

LEASE_LIMITS = {
    "minLeaseSeconds": 1,
    "maxLeaseSeconds": 1800,
    "graceSeconds": 60,
    "closeCheckTimeoutSeconds": 3,
    "closeCheckCooldownSeconds": 15,
    "maxFrameBytes": 8192,
    "maxLeasesPerHolder": 64,
    "maxHolders": 1024,
    "maxConnectionsPerHolder": 8,
    "messagesPerSecond": 200,
}
"""What session.ready publishes."""


class Peer:
    """One accepted connection, in lines."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self._lines = sock.makefile("rb")

    def close(self) -> None:
        """Let go of the lines, without which the socket would stay open."""
        self._lines.close()

    def read(self) -> Any:
        """The next line as JSON; None at the end of the stream."""
        line = self._lines.readline()
        return json.loads(line) if line else None

    def write(self, value: Any) -> None:
        self.socket.sendall(json.dumps(value).encode() + b"\n")

    def answer(self, call: Any, result: Any) -> None:
        """A JSON-RPC result."""
        self.write({"jsonrpc": "2.0", "id": call["id"], "result": result})

    def refuse(self, call: Any, code: str, **details: Any) -> None:
        data = {"code": code, "retryable": False, **details}
        self.write(
            {"jsonrpc": "2.0", "id": call["id"], "error": {"code": -32602, "message": "no", "data": data}}
        )

    def greet(self) -> None:
        """Answer hello and authenticate."""
        self.greet_only()
        self.answer(self.read(), {"clientId": "c1", "label": "Test", "scopes": ["interact"]})

    def greet_only(self) -> None:
        """Answer hello."""
        self.answer(
            self.read(),
            {
                "protocolVersion": "0.1",
                "runtimeInstanceId": "r1",
                "implementation": {"name": "test", "version": "1"},
                "accessEnabled": True,
            },
        )

    def ready(self, **limits: float) -> Any:
        """Answer a lease hello; gives the hello."""
        hello = self.read()
        published = LEASE_LIMITS | limits
        self.write(
            {
                "action": "session.ready",
                "protocolVersion": 1,
                "holderId": hello["holderId"],
                "limits": published,
            }
        )
        return hello

    def grant(self, message: Any) -> None:
        """Accept a lease message."""
        echoed = ("requestId", "holderId", "appKey", "leaseSeconds")
        told = {name: message[name] for name in echoed if name in message}
        self.write({"action": "lease.response", "code": "accepted", **told})


Part: TypeAlias = "Callable[[Peer], None]"


@contextlib.contextmanager
def serving(path: Path, *parts: Part, at_once: bool = False) -> Iterator[None]:
    """Serve one connection after another at `path`; what a part raises is raised at the end of the block.

    `at_once`: the next connection is served while those before it go on.
    """
    failures: list[BaseException] = []
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen()

    def play(part: Part, sock: socket.socket) -> None:
        with sock, contextlib.closing(Peer(sock)) as peer:
            try:
                part(peer)
            except BaseException as error:
                failures.append(error)

    def run() -> None:
        playing: list[threading.Thread] = []
        for part in parts:
            thread = threading.Thread(target=play, args=(part, listener.accept()[0]), daemon=True)
            thread.start()
            playing.append(thread)
            if not at_once:
                thread.join()
        listener.close()
        for thread in playing:
            thread.join()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield
    thread.join(10)
    path.unlink(missing_ok=True)
    assert not thread.is_alive(), "a part of the script was not played"
    if failures:
        raise failures[0]


def snapshot(**members: Any) -> dict[str, Any]:
    """A request as the broker shows it."""
    return {
        "requestId": "q1",
        "runtimeInstanceId": "r1",
        "capability": "interaction.choose",
        "state": "queued",
        "revision": 1,
        "createdAt": "2026-01-01T00:00:00.000Z",
        "deadlineAt": "2026-01-01T00:01:00.000Z",
        "displayedAt": None,
        "endedAt": None,
        "resolvedCapability": "interaction.choose",
        "resolvedCharacter": "aion",
        "resolvedStyle": "default",
        "substitution": None,
        "reason": None,
        "result": None,
        "taskId": None,
        **members,
    }
