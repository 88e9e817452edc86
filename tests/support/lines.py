"""A small blocking client for line protocols: sends what it is given, as it is, and reads one line at a time."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

GIVE_UP_SECONDS = 15.0
"""How long a line that must come is waited for: long, since a machine may be slow."""


class Lines:
    """One connection; `send` takes raw bytes or an object that becomes one JSON line."""

    def __init__(self, sock: socket.socket, timeout: float = GIVE_UP_SECONDS) -> None:
        self.socket = sock
        self.socket.settimeout(timeout)
        self._buffer = b""

    @classmethod
    def connect(cls, path: Path, timeout: float = GIVE_UP_SECONDS) -> Self:
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.settimeout(timeout)
            sock.connect(str(path))
        except BaseException:
            sock.close()
            raise
        return cls(sock, timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    # -- sending ----------------------------------------------------------------------------------------------

    def send(self, data: bytes | dict[str, Any] | list[Any]) -> None:
        self.socket.sendall(data if isinstance(data, bytes) else line_of(data))

    def half_close(self) -> None:
        """Say that nothing more will be sent."""
        self.socket.shutdown(socket.SHUT_WR)

    def send_until_stuck(self, data: bytes, seconds: float = 0.5) -> int:
        """Send without ever reading; how many bytes went before the other side took none for so long."""
        before = self.socket.gettimeout()
        self.socket.settimeout(seconds)
        view, sent = memoryview(data), 0
        try:
            while sent < len(view):
                sent += self.socket.send(view[sent : sent + 65536])
        except TimeoutError:
            pass
        finally:
            self.socket.settimeout(before)
        return sent

    # -- reading ----------------------------------------------------------------------------------------------

    def line(self) -> bytes:
        """The next line without its break; b"" at the end of the stream."""
        while b"\n" not in self._buffer:
            part = self.socket.recv(65536)
            if not part:
                rest, self._buffer = self._buffer, b""
                return rest
            self._buffer += part
        line, self._buffer = self._buffer.split(b"\n", 1)
        return line

    def read(self) -> Any:
        """The next line as JSON; EOFError at the end of the stream."""
        line = self.line()
        if not line:
            raise EOFError
        return json.loads(line.decode())

    def rest(self) -> list[Any]:
        """All lines up to the end of the stream, which comes at a line end or is a reset."""
        lines: list[Any] = []
        while True:
            try:
                line = self.line()
            except ConnectionResetError:
                return lines
            if not line:
                return lines
            lines.append(json.loads(line.decode()))

    def nothing(self, seconds: float = 0.2) -> bool:
        """Whether no byte comes for a while; the end of the stream counts as nothing."""
        if self._buffer:
            return False
        before = self.socket.gettimeout()
        self.socket.settimeout(seconds)
        try:
            part = self.socket.recv(65536)
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(before)
        self._buffer += part
        return not part


class Rpc(Lines):
    """JSON-RPC over lines: `call` sends and returns the reply with this id, keeping others for later."""

    def __init__(self, sock: socket.socket, timeout: float = GIVE_UP_SECONDS) -> None:
        super().__init__(sock, timeout)
        self._next_id = 0
        self._replies: dict[object, Any] = {}
        self._notifications: list[Any] = []

    def start(self, method: str, **params: Any) -> int:
        """Send a call and return its id."""
        self._next_id += 1
        self.send({"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params})
        return self._next_id

    def reply(self, call_id: object) -> Any:
        """The whole reply object of a call."""
        while call_id not in self._replies:
            self._keep(self.read())
        return self._replies.pop(call_id)

    def call(self, method: str, **params: Any) -> Any:
        """The result of a call; AssertionError with the error when it failed."""
        message = self.reply(self.start(method, **params))
        assert "result" in message, message
        return message["result"]

    def refused(self, method: str, **params: Any) -> Any:
        """The error's data of a call that must fail."""
        message = self.reply(self.start(method, **params))
        assert "error" in message, message
        return message["error"]["data"]

    def notification(self, method: str, **members: Any) -> Any:
        """The params of the next notification with this method and these params; others are kept for later."""
        while True:
            for index, message in enumerate(self._notifications):
                if message["method"] == method and _has(message["params"], members):
                    del self._notifications[index]
                    return message["params"]
            self._keep(self.read())

    def _keep(self, message: Any) -> None:
        if "method" in message:
            self._notifications.append(message)
        else:
            self._replies[message.get("id")] = message


def line_of(message: dict[str, Any] | list[Any], size: int | None = None) -> bytes:
    """A message as one line; with `size` the line has so many bytes without its break, filled up with blanks."""
    text = json.dumps(message).encode()
    if size is None:
        return text + b"\n"
    assert len(text) <= size
    return text.ljust(size) + b"\n"


def call_of(call_id: object, method: str, **params: Any) -> dict[str, Any]:
    """A JSON-RPC call under an id of the test's own choice."""
    return {"jsonrpc": "2.0", "id": call_id, "method": method, "params": params}


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._start


def until(fact: Callable[[], object]) -> None:
    """Wait for a fact, as long as for a line."""
    watch = Stopwatch()
    while not fact():
        assert watch.seconds < GIVE_UP_SECONDS
        time.sleep(0.05)


def _has(params: dict[str, Any], members: dict[str, Any]) -> bool:
    return all(params.get(name) == value for name, value in members.items())
