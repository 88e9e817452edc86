"""Where a command's words go: the result to stdout, everything else to stderr (CP-6.3).

With `--json` stdout gets one JSON value on one line, and a line for people goes to stderr.  Without it stdout gets a
few lines of text.  Whatever came from a request or another program is neutralized, so no escape byte reaches a
terminal.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable

import attrs
import click

from broker.cli.outcome import CommandFailed, Exit, Failure
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
            _write(encode(unstructure(value)) + b"\n")
        else:
            _write("".join(f"{shown(line)}\n" for line in lines).encode("utf-8"))

    def note(self, text: str) -> None:
        """A line for people on stderr."""
        click.echo(shown(text), err=True)

    def failure(self, failure: Failure) -> None:
        """Why the command did not succeed."""
        self.note(f"companion: {failure.message}")
        if self.json:
            self.result(failure.as_json(), ())


def shown(text: str) -> str:
    """The text as it may be drawn on one line of a terminal."""
    return neutralize(text, multiline=False)


def compact(value: JSON) -> str:
    """A JSON value for a line of text."""
    return encode(value).decode("utf-8")


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
        failure = Failure(exit=Exit.FAILED, code="INTERNAL_ERROR", message=message, retryable=True)
        raise CommandFailed(failure) from None


pass_console = click.make_pass_decorator(Console)
