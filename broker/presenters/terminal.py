"""The terminal presenter: asks a person at a terminal, in plain lines of text (presenter.md).

    python -m broker.presenters.terminal [--stdio]

It reads COMPANION_PRESENTER_FD, draws on the process's terminal (with --stdio on the one behind stdin and
stdout) and ends when the broker closes the connection or the terminal goes.  No colour, no cursor movement and no
escape sequence is ever sent, so a terminal that can do no more than print will do.  `keyboard` turns keys into lines,
`desk` decides what they mean, `drawing` what is shown; here the three are joined to the world.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from broker.presenters.characters import Paper
from broker.presenters.desk import Desk
from broker.presenters.keyboard import BELL, Form, Keyboard
from broker.presenters.tty import NoTerminal, Tty, open_tty
from protocols.companion.capabilities import Interaction, Kind
from protocols.errors import TheirError
from protocols.implementation import VERSION
from protocols.presenter.client import PresenterClient
from protocols.presenter.messages import PROTOCOL_VERSION, Ready

FD_VARIABLE = "COMPANION_PRESENTER_FD"
MARK = "> "
"""Stands before the line that is being typed, and only while keys count."""
_TIME_OF_DAY = "%H:%M:%S"

READY = Ready(
    protocol_version=PROTOCOL_VERSION,
    name="companion-terminal",
    version=VERSION,
    person=True,
    kinds=(Kind.ANIMATION, Kind.NOTICE, Kind.PROGRESS, Kind.INTERACTION),
    interactions=(Interaction.NONE, Interaction.CHOICE, Interaction.TEXT),
)


class Terminal:
    """One person's terminal and the broker's connection; `run` serves both until either ends.

    For `Desk` it is the seat.
    """

    def __init__(self, broker: socket.socket, tty: Tty) -> None:
        self._broker = broker
        self._tty = tty
        self._client = PresenterClient()
        self._keyboard = Keyboard(time.monotonic(), tty.characters)
        self._desk = Desk(self._client, self)
        self._marked = False

    def run(self) -> None:
        """Serve until the broker or the terminal has gone."""
        self._client.notify(READY)
        with selectors.DefaultSelector() as selector:
            selector.register(self._broker, selectors.EVENT_READ, self._from_broker)
            selector.register(self._tty.keys, selectors.EVENT_READ, self._from_keys)
            self._send()
            while True:
                for key, _ in selector.select(self._next_in()):
                    if not key.data():
                        return
                self._look_at_clock()
                self._mark()
                self._send()

    def _from_broker(self) -> bool:
        """Read the broker; False when it has gone."""
        data = self._broker.recv(65_536)
        for said in self._client.receive(data):
            self._desk.receive(said, time.monotonic())
        return bool(data)

    def _from_keys(self) -> bool:
        """Read the keys; False when the terminal has gone."""
        data = self._tty.read()
        if data is None:
            return True
        self._keyboard.feed(data, time.monotonic())
        ended, line_break, rest = self._keyboard.take_echo().rpartition("\n")
        self._tty.write(ended + line_break)
        if line_break:
            self._marked = False  # the line that is being typed is drawn behind its mark
        else:
            self._tty.write(rest)
        return bool(data)

    def _next_in(self) -> float | None:
        now = time.monotonic()
        due = (self._keyboard.next_in(now), self._desk.next_in(now))
        return min((seconds for seconds in due if seconds is not None), default=None)

    def _look_at_clock(self) -> None:
        now = time.monotonic()
        self._keyboard.look_at_clock(now)
        for typed in self._keyboard.take():
            self._desk.typed(typed, now)
        self._desk.attend(typing=self._keyboard.begun)
        self._desk.look_at_clock(now)

    def _send(self) -> None:
        if data := self._client.data_to_send():
            self._broker.sendall(data)

    def _mark(self) -> None:
        if self._keyboard.ready and not self._marked:
            self._tty.write(self._keyboard.count + MARK + self._keyboard.typed)
            self._marked = True

    # -- the seat --------------------------------------------------------------------------------------------

    @property
    def paper(self) -> Paper:
        """What is drawn on, as wide as it is by now."""
        return Paper(self._tty.columns, self._tty.characters)

    def say(self, lines: Sequence[str]) -> None:
        """Draw these lines below everything that was drawn before."""
        broken = "\n" if self._marked else ""
        self._marked = False
        self._tty.write(broken + "".join(f"{line}\n" for line in lines))

    def ask(self, form: Form, text: str = "") -> str:
        """From here on this may be typed; what had been typed before, which was not meant for it."""
        self._tty.forget_keys()
        return self._keyboard.ask(form, time.monotonic(), text)

    def ring(self) -> None:
        """Make the terminal's sound."""
        self._tty.write(BELL)

    def clock_at(self, instant: str) -> str:
        """The time of day of an instant of the protocol, where the person is."""
        return datetime.fromisoformat(instant).astimezone().strftime(_TIME_OF_DAY)

    def clock_in(self, milliseconds: int) -> str:
        """The time of day that is so far away."""
        return (datetime.now(UTC) + timedelta(milliseconds=milliseconds)).astimezone().strftime(_TIME_OF_DAY)


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
    except ConnectionError:  # the broker has gone while it was told something
        return 0
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
