"""The terminal presenter: asks a person at a terminal, in plain lines of text (presenter.md).

    python -m broker.presenters.terminal [--stdio]

It reads COMPANION_PRESENTER_FD, draws on the process's terminal (with --stdio on the one behind stdin and
stdout) and ends when the broker closes the connection or the terminal goes.  No colour, no cursor movement and no
escape sequence is ever sent.  `keyboard` turns keys into lines, `desk` decides what they mean, `drawing` what is
shown; here the three are joined to the world.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Sequence

from broker.presenters.desk import Desk
from broker.presenters.keyboard import Keyboard
from broker.presenters.tty import NoTerminal, Tty, open_tty
from protocols.companion.capabilities import Interaction, Kind
from protocols.errors import TheirError
from protocols.implementation import VERSION
from protocols.presenter.client import PresenterClient
from protocols.presenter.messages import PROTOCOL_VERSION, Ready

FD_VARIABLE = "COMPANION_PRESENTER_FD"
MARK = "> "
"""Stands before the line that is being typed, and only while keys count."""

READY = Ready(
    protocol_version=PROTOCOL_VERSION,
    name="companion-terminal",
    version=VERSION,
    person=True,
    kinds=(Kind.NOTICE, Kind.PROGRESS, Kind.INTERACTION),
    interactions=(Interaction.NONE, Interaction.CHOICE, Interaction.TEXT),
)


class Terminal:
    """One person's terminal and the broker's connection; `run` serves both until either ends."""

    def __init__(self, broker: socket.socket, tty: Tty) -> None:
        self._broker = broker
        self._tty = tty
        self._client = PresenterClient()
        self._keyboard = Keyboard(time.monotonic())
        self._desk = Desk(self._client, self._say, self._ask, lambda: tty.columns)
        self._marked = False

    def run(self) -> None:
        """Serve until the broker or the terminal has gone."""
        self._client.notify(READY)
        with selectors.DefaultSelector() as selector:
            selector.register(self._broker, selectors.EVENT_READ, self._from_broker)
            selector.register(self._tty.keys, selectors.EVENT_READ, self._from_keys)
            self._send()
            while True:
                for key, _ in selector.select(self._keyboard.armed_in(time.monotonic())):
                    if not key.data():
                        return
                self._mark()
                self._send()

    def _from_broker(self) -> bool:
        """Read the broker; False when it has gone."""
        data = self._broker.recv(65_536)
        for said in self._client.receive(data):
            self._desk.receive(said)
        return bool(data)

    def _from_keys(self) -> bool:
        """Read the keys; False when the terminal has gone."""
        data, now = self._tty.read(), time.monotonic()
        lines = self._keyboard.feed(data, now)
        self._tty.write(self._keyboard.take_echo())
        for line in lines:
            self._marked = False
            self._desk.line(line, now)
        return bool(data)

    def _send(self) -> None:
        self._broker.sendall(self._client.data_to_send())

    def _say(self, lines: Sequence[str]) -> None:
        broken = "\n" if self._marked else ""
        self._marked = False
        self._tty.write(broken + "".join(f"{line}\n" for line in lines))

    def _ask(self) -> None:
        """Something new wants an answer: whatever was typed until now was not meant for it."""
        self._tty.forget_keys()
        self._keyboard.quiet(time.monotonic())

    def _mark(self) -> None:
        self._keyboard.look_at_clock(time.monotonic())
        if self._keyboard.armed and not self._marked:
            self._tty.write(MARK + self._keyboard.typed)
            self._marked = True


def main(arguments: Sequence[str]) -> int:
    """Run the presenter; its exit status."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, _leave)
    try:
        broker = socket.socket(fileno=int(os.environ[FD_VARIABLE]))
    except (KeyError, ValueError, OSError):
        return _complain(f"{FD_VARIABLE} must name an open socket; the broker starts this program")
    try:
        with broker, open_tty(stdio="--stdio" in arguments) as tty:
            broker.set_inheritable(False)
            Terminal(broker, tty).run()
    except NoTerminal as error:
        return _complain(f"nobody can answer here: {error}")
    except (OSError, TheirError):
        return 1
    return 0


def _leave(number: int, frame: object) -> None:
    raise SystemExit(0)


def _complain(text: str) -> int:
    sys.stderr.write(f"companion-terminal: {text}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
