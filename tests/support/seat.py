"""The terminal presenter as a process at a pseudo terminal of 80 by 24, with the broker's engine at the other end.

A person's hand is played by writing keys to the terminal; the mark "> " says when keys count.
"""

from __future__ import annotations

import fcntl
import os
import pty
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
from tests.support.hands import SECONDS, Hands

ROOT = Path(__file__).parents[2]
M = TypeVar("M")


class Seat(Hands):
    """A terminal with a person before it, the presenter in it, and the broker behind it."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        self.engine = PresenterEngine()
        self._number = 0
        self.master, slave = pty.openpty()
        super().__init__(self.master)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.broker, theirs = socket.socketpair()
        self.sources[self.broker.fileno()] = self._from_broker
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
                self.wait(until)

    def is_silent(self) -> bool:
        """Whether the presenter has nothing more to say, but that it lives."""
        self.push(Ping())
        self.wait_for(Pong)
        return True

    def _from_broker(self) -> None:
        data = self.broker.recv(65536)
        assert data, "the presenter has gone"
        self.engine.receive(data)
