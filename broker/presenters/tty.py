"""A terminal whose keys are read one by one, and which is left as it was found."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import termios
from collections.abc import Iterator

from broker.charset import encoding_of, visible
from broker.presenters.characters import Characters

_INPUT, _LOCAL, _CHARACTERS = 0, 3, 6  # places in what tcgetattr gives


class NoTerminal(Exception):
    """There is no terminal at which a person could answer; the message says what was tried."""


class Tty:
    """The descriptors of a terminal: where keys come from and where lines go, in the locale's character set."""

    def __init__(self, keys: int, screen: int) -> None:
        self.keys = keys
        self.characters = Characters(encoding_of(sys.stdout))
        self._screen = screen

    def read(self) -> bytes | None:
        """The keys that are there, None when there are none; b"" when the terminal has gone.

        Keys that have been announced may have been forgotten since, so it is asked for them once more.
        """
        if not select.select([self.keys], [], [], 0)[0]:
            return None
        try:
            return os.read(self.keys, 1024)
        except OSError:
            return b""

    def write(self, text: str) -> None:
        """Put text on the screen at once; a terminal that has gone takes nothing."""
        data = visible(text, self.characters.encoding)
        with contextlib.suppress(OSError):
            while data:
                data = data[os.write(self._screen, data) :]

    def forget_keys(self) -> None:
        """Throw away what was typed and not read yet."""
        with contextlib.suppress(termios.error):
            termios.tcflush(self.keys, termios.TCIFLUSH)

    @property
    def columns(self) -> int:
        """The width of the screen."""
        with contextlib.suppress(OSError):
            if columns := os.get_terminal_size(self._screen).columns:
                return columns
        return 80


@contextlib.contextmanager
def open_tty(*, stdio: bool) -> Iterator[Tty]:
    """The process's terminal, or (`stdio`) the one behind stdin and stdout, for the length of the block.

    Raises NoTerminal where there is none, or where a background process may not read it.
    """
    with contextlib.ExitStack() as stack:
        if stdio:
            tty = Tty(sys.stdin.fileno(), sys.stdout.fileno())
        else:
            tty = Tty(*[_open_controlling_terminal(stack)] * 2)
        _check(tty.keys)
        before = termios.tcgetattr(tty.keys)
        stack.callback(termios.tcsetattr, tty.keys, termios.TCSANOW, before)
        termios.tcsetattr(tty.keys, termios.TCSANOW, _key_by_key(termios.tcgetattr(tty.keys)))
        yield tty


def _open_controlling_terminal(stack: contextlib.ExitStack) -> int:
    try:
        descriptor = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        raise NoTerminal("the process has no terminal") from None
    stack.callback(os.close, descriptor)
    return descriptor


def _check(keys: int) -> None:
    if not os.isatty(keys):
        raise NoTerminal("standard input is no terminal")
    try:
        foreground = os.tcgetpgrp(keys)
    except OSError:  # not our controlling terminal: it has no foreground that we could be missing from
        return
    if foreground != os.getpgrp():
        raise NoTerminal("the process is in the background of its terminal")


def _key_by_key(attributes: list[int | list[bytes | int]]) -> list[int | list[bytes | int]]:
    """No line editing, no echo, no Ctrl-S; Ctrl-C still ends the process."""
    changed = list(attributes)
    flags, local, characters = changed[_INPUT], changed[_LOCAL], changed[_CHARACTERS]
    assert isinstance(flags, int)
    assert isinstance(local, int)
    assert isinstance(characters, list)
    changed[_INPUT] = flags & ~termios.IXON
    changed[_LOCAL] = local & ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
    characters = list(characters)
    characters[termios.VMIN], characters[termios.VTIME] = 1, 0
    changed[_CHARACTERS] = characters
    return changed
