"""The command `companion`: its groups, and the one place that turns what happened into an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from broker.cli.command import LazyGroup
from broker.cli.console import Console, OutputClosed
from broker.cli.outcome import CommandFailed, Exit, Failure, failure_of

_BY_SIGINT = 130
_BY_SIGPIPE = 141
_INTERRUPTED = Failure(exit=_BY_SIGINT, code="INTERRUPTED", message="interrupted", retryable=True)


_COMMANDS = {
    "serve": "serve:serve",
    "pair": "pair:pair",
    "runtime": "runtime:runtime",
    "requests": "requests:requests",
    "lease": "lease:lease",
    "status": "control:status",
    "stop": "control:stop",
}


@click.group(cls=LazyGroup, places=_COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
def companion() -> None:
    """Talk to the local Companion Broker: ask the person, show something, keep an app open.

    \b
    Exit codes: 0 done, 2 bad parameters, 3 authentication or permission, 4 cannot connect,
    5 failed, 6 cancelled or expired, 7 this wait timed out and the request goes on.
    """


def main() -> None:
    """Entry point: runs the command line of this process and exits."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command; gives its exit code and lets no error out."""
    console = Console()
    try:
        try:
            code = companion.main(arguments, "companion", standalone_mode=False, obj=console)
            return int(code or Exit.DONE)
        except Exception as error:
            console.json = console.json or (isinstance(error, click.UsageError) and _asks_for_json(arguments))
            return _fail(console, error)
    except OutputClosed:
        _forget_stdout()
        return _BY_SIGPIPE
    except CommandFailed as error:  # not even the failure could be written
        console.note(f"companion: {error.failure.message}")
        return error.failure.exit


def _fail(console: Console, error: Exception) -> int:
    if isinstance(error, OutputClosed):
        raise error
    if isinstance(error, click.UsageError) and not console.json:
        error.show()
        return Exit.BAD_PARAMETERS
    failure = _INTERRUPTED if isinstance(error, click.Abort) else failure_of(error)
    console.failure(failure)
    return failure.exit


def _asks_for_json(arguments: Sequence[str]) -> bool:
    """Whether `--json` stands where options stand, for a line that could not be parsed."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def _forget_stdout() -> None:
    """Keep the interpreter from flushing into the closed pipe when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
