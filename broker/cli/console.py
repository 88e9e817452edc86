"""Where a command's words go: the result to stdout, everything else to stderr (CP-6.3).

With `--json` stdout gets one JSON value on one line, and a line for people goes to stderr.  Without it stdout gets a
few lines of text.  Whatever came from a request or another program is neutralized, so no escape byte reaches a
terminal.  Where the locale cannot show a character, text has it written out and JSON has it escaped.

stderr is a courtesy: when it is closed or full, a command goes on without it.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable

import attrs
import click

from broker.charset import ascii_json, encoding_of, visible
from broker.cli.outcome import CommandFailed, Failure, failure
from protocols.json_values import JSON
from protocols.strict_json import encode
from protocols.structure import unstructure
from protocols.text import neutralize


class OutputClosed(Exception):
    """Nobody reads stdout any more."""


@attrs.define
class Console:
    """The two streams of a command; `json` may be turned on until the first result is written."""

    json: bool = False

    def result(self, value: object, lines: Iterable[str]) -> None:
        """The command's result: a message or JSON value as one line of JSON, or else these lines of text."""
        if self.json:
            _write(_json_line(value))
        else:
            self.text("".join(f"{shown(line)}\n" for line in lines))

    def answer(self, value: object, text: str) -> None:
        """A result that is one text: for a program as it is, in UTF-8; at a terminal with nothing hidden in it."""
        if self.json:
            _write(_json_line(value))
        elif _is_terminal():
            self.text(f"{neutralize(text, multiline=True)}\n")
        else:
            _write(f"{text}\n".encode())

    def text(self, text: str) -> None:
        """Text for people, as far as the locale can show it."""
        _write(visible(text, encoding_of(sys.stdout)))

    def note(self, text: str) -> None:
        """A line for people on stderr."""
        _note(f"{shown(text)}\n")

    def failure(self, failure: Failure) -> None:
        """Why the command did not succeed; without JSON the line holds its code too (CP-6.6)."""
        again = ", retryable" if failure.retryable else ""
        self.note(f"companion: {failure.message}" + ("" if self.json else f" [{failure.code}{again}]"))
        if self.json:
            self.result(failure.as_json(), ())


def shown(text: str) -> str:
    """The text as it may be drawn on one line of a terminal."""
    return neutralize(text, multiline=False)


def compact(value: JSON) -> str:
    """A JSON value for a line of text."""
    return encode(value).decode("utf-8")


def forget_stdout() -> None:
    """Keep the interpreter from flushing into a closed pipe when it ends."""
    _forget(sys.stdout.fileno())


def _json_line(value: object) -> bytes:
    line = compact(unstructure(value))
    return ascii_json(line, only_unprintable=encoding_of(sys.stdout) == "utf-8").encode() + b"\n"


def _is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def _write(data: bytes) -> None:
    """All of it to stdout; raises OutputClosed, or CommandFailed where stdout takes nothing (a full disk)."""
    try:
        if sys.stdout is None:  # closed by whoever started us; its number may be a socket's by now
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        sys.stdout.flush()
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(sys.stdout.fileno(), rest) :]
    except BrokenPipeError:
        raise OutputClosed from None
    except OSError as error:
        message = f"the result could not be written ({error.strerror})"
        raise CommandFailed(failure("INTERNAL_ERROR", message)) from None


def _note(line: str) -> None:
    if sys.stderr is None:
        return
    encoding = encoding_of(sys.stderr)
    try:
        sys.stderr.write(visible(line, encoding).decode(encoding))
        sys.stderr.flush()
    except OSError:
        _forget(sys.stderr.fileno())


def _forget(number: int) -> None:
    """What is still to be written there goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


pass_console = click.make_pass_decorator(Console)
