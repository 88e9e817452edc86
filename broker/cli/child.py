"""A command run as a child: signals are passed on to it, and its exit status is told as a shell tells it.

A pipe that signal handlers write to (`signal.set_wakeup_fd`) makes signals, and the child's end, something that a
loop can wait for together with sockets.  A signal that this process was started to ignore (nohup, a background job)
stays ignored, by the child too.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from types import FrameType
from typing import IO, Any, TypeAlias

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_Handler: TypeAlias = Any  # what signal.signal gives back


class Child:
    """A running command; use it as a context manager, which puts the signal handlers back."""

    def __init__(self, command: Sequence[str], stdout: IO[str] | None) -> None:
        """Start the command; raises OSError when it cannot be started."""
        self._signals, self._wakeup = os.pipe()
        os.set_blocking(self._signals, False)
        os.set_blocking(self._wakeup, False)
        self._old_wakeup = signal.set_wakeup_fd(self._wakeup, warn_on_full_buffer=False)
        self._old_handlers = self._catch()
        try:
            self._process = subprocess.Popen(command, stdout=stdout)
        except BaseException:
            self._put_back()
            raise

    def fileno(self) -> int:
        """Readable when there are signals to pass on or the command may have ended."""
        return self._signals

    @property
    def status(self) -> int | None:
        """The exit status, 128 + number when a signal ended it; None while it runs."""
        status = self._process.poll()
        return 128 - status if status is not None and status < 0 else status

    def pass_signals_on(self) -> None:
        """Send the command what this process was sent."""
        try:
            numbers = os.read(self._signals, 4096)
        except BlockingIOError:
            return
        for number in numbers:
            if number in PASSED_ON and not (number == signal.SIGINT and _in_foreground()):
                self._process.send_signal(number)

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self._put_back()

    def _catch(self) -> dict[int, _Handler]:
        """Handle what is to be passed on, and the child's end."""
        caught = [number for number in PASSED_ON if signal.getsignal(number) is not signal.SIG_IGN]
        return {number: signal.signal(number, _nothing) for number in (*caught, signal.SIGCHLD)}

    def _put_back(self) -> None:
        for number, handler in self._old_handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._old_wakeup)
        os.close(self._signals)
        os.close(self._wakeup)


def _nothing(_number: int, _frame: FrameType | None) -> None:
    """The wake-up pipe has the number already."""


def _in_foreground() -> bool:
    """Whether Ctrl-C of the terminal reaches the command by itself: the terminal sends it to the whole group."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
