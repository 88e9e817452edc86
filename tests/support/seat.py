"""The terminal presenter as a process at a pseudo terminal of 80 by 24, with the broker's engine at the other end.

A person's hand is played by writing keys to the terminal; the mark "> " says when keys count.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import socket
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import TypeVar

from protocols.presenter.engine import PresenterEngine
from protocols.presenter.messages import Attention, Ping, Pong, Ready
from protocols.session import Deliver, Send

ROOT = Path(__file__).parents[2]
SECONDS = 10.0
M = TypeVar("M")


class Seat:
    """A terminal with a person before it, the presenter in it, and the broker behind it."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        self.engine = PresenterEngine()
        self.screen = ""
        self.raw = b""
        self._number = 0
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.broker, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "broker.presenters.terminal", *arguments],
                cwd=ROOT,
                stdin=slave,
                stdout=slave,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={**os.environ, **environment, "COMPANION_PRESENTER_FD": str(theirs.fileno())},
                start_new_session=True,
            )
        self.ready = self.wait_for(Ready)

    def close(self) -> None:
        self.broker.close()
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)

    def push(self, message: object) -> None:
        self.engine.push(message)
        self._flush()

    def reply(self, body: object) -> None:
        self.engine.reply(self._number, body)
        self._flush()

    def _flush(self) -> None:
        while isinstance(output := self.engine.take_output(), Send):
            self.broker.sendall(output.data)

    def wait_for(self, kind: type[M]) -> M:
        """The next message of this kind; nothing but attention may come before it."""
        until = time.monotonic() + SECONDS
        while True:
            output = self.engine.next_output()
            if isinstance(output, Deliver):
                self._number = output.number
                if isinstance(output.message, kind):
                    return output.message
                assert isinstance(output.message, Attention), output.message
            else:
                self._read(until)

    def see(self, text: str) -> str:
        """Wait until this is on the screen; everything up to it, which is then gone."""
        until = time.monotonic() + SECONDS
        while text not in self.screen:
            self._read(until)
        seen, self.screen = self.screen.split(text, 1)
        return seen

    def is_silent(self) -> bool:
        """Whether the presenter has nothing more to say, but that it lives."""
        self.push(Ping())
        self.wait_for(Pong)
        return True

    def type(self, keys: str) -> None:
        """Press these keys, as many at a time as the terminal takes."""
        left = keys.encode()
        until = time.monotonic() + SECONDS
        while left:
            if self._wait(until, writing=True):
                left = left[os.write(self.master, left[:1024]) :]

    def _read(self, until: float) -> None:
        self._wait(until, writing=False)

    def _wait(self, until: float, *, writing: bool) -> bool:
        """Take what comes, once something has; whether the terminal takes keys."""
        broker, left = self.broker.fileno(), max(0.0, until - time.monotonic())
        ready, writable, _ = select.select([broker, self.master], [self.master] * writing, [], left)
        assert ready or writable, f"nothing came; on the screen: {self.screen[-2000:]}"
        if broker in ready:
            data = self.broker.recv(65536)
            assert data, "the presenter has gone"
            self.engine.receive(data)
        if self.master in ready:
            data = os.read(self.master, 65536)
            self.raw += data
            self.screen += data.decode()
        return bool(writable)
