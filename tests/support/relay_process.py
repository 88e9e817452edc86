"""A process of a transcript: connects to the broker on command and passes lines on to the test.

    python relay_process.py SOCKET NAME

It connects to the test's SOCKET, says its name and pid, and takes commands as JSON lines: connect, send,
shutdown, close, and spawn, which starts a child of its own that does the same.  Only the standard library
is used, so that it starts quickly.
"""

from __future__ import annotations

import json
import select
import socket
import subprocess
import sys
from os import getpid
from typing import Any


class Relay:
    """The connections of this process, by their names."""

    def __init__(self, path: str, name: str) -> None:
        self._path = path
        self._test = socket.socket(socket.AF_UNIX)
        self._test.connect(path)
        self._commands = b""
        self._peers: dict[str, socket.socket] = {}
        self._children: list[subprocess.Popen[bytes]] = []
        self._tell(name=name, pid=getpid())

    def run(self) -> None:
        """Serve until the test closes its end."""
        while True:
            readable, _, _ = select.select([self._test, *self._peers.values()], [], [])
            if self._test in readable and not self._take_commands():
                return
            for name, peer in list(self._peers.items()):
                if peer in readable:
                    self._pass_on(name, peer)

    def _take_commands(self) -> bool:
        data = self._test.recv(65536)
        self._commands += data
        *lines, self._commands = self._commands.split(b"\n")
        for line in lines:
            self._obey(**json.loads(line))
        return bool(data)

    def _obey(self, do: str, name: str, **more: str) -> None:
        match do:
            case "connect":
                self._peers[name] = socket.socket(socket.AF_UNIX)
                self._peers[name].connect(more["path"])
                self._tell(connected=name)
            case "send":
                self._peers[name].sendall(more["data"].encode("latin-1"))
            case "shutdown":
                self._peers[name].shutdown(socket.SHUT_WR)
            case "close":
                self._peers.pop(name).close()
            case "spawn":
                self._children.append(subprocess.Popen([sys.executable, "-S", __file__, self._path, name]))

    def _pass_on(self, name: str, peer: socket.socket) -> None:
        try:
            data = peer.recv(65536)
        except ConnectionResetError:
            data = b""
        self._tell(peer=name, data=data.decode("latin-1"))
        if not data:
            self._peers.pop(name).close()

    def _tell(self, **facts: Any) -> None:
        self._test.sendall(json.dumps(facts).encode() + b"\n")


if __name__ == "__main__":
    Relay(*sys.argv[1:]).run()
