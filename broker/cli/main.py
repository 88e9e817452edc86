"""The command `companion`: its groups, and the one place that turns what happened into an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from broker.cli.command import JsonGroup, RootGroup
from broker.cli.console import Console, OutputClosed, forget_stdout
from broker.cli.outcome import CommandFailed, Exit, failure, failure_of

_COMMANDS = {
    "serve": "serve:serve",
    "pair": "pair:pair",
    "ask": "ask:ask",
    "confirm": "ask:confirm",
    "input": "ask:input_",
    "notify": "notify:notify",
    "runtime": "runtime:runtime",
    "characters": "discovery:characters",
    "capabilities": "discovery:capabilities",
    "styles": "discovery:styles",
    "requests": "requests:requests",
    "lease": "lease:lease",
    "clients": "clients:clients",
    "data": "data:data",
    "monitor": "monitor:monitor",
    "access": "access:access",
    "hide": "access:hide",
    "pause": "access:pause",
    "status": "control:status",
    "stop": "control:stop",
    "help": "help_topics:help_topics",
}


@click.group(cls=RootGroup, places=_COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
def companion() -> None:
    """Talk to the local Companion Broker: ask the person, show something, keep an app open.

    Every command takes --json: stdout is then one JSON value, the result or an error with code, message and
    retryable.  The exit codes are explained by: companion help exit-codes
    """


def main() -> None:
    """Entry point: runs the command line of this process and exits."""
    sys.exit(run([as_utf8(word) for word in sys.argv[1:]]))


def as_utf8(argument: str) -> str:
    """An argument whose bytes the locale could not read, as the UTF-8 that it may be."""
    if argument.isascii():
        return argument
    try:
        return os.fsencode(argument).decode("utf-8")
    except ValueError:  # it stays what it is, and is refused where a text is expected
        return argument


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
        forget_stdout()
        return Exit.OUTPUT_CLOSED
    except CommandFailed as error:  # not even the failure could be written
        console.note(f"companion: {error.failure.message}")
        return error.failure.exit


def _fail(console: Console, error: Exception) -> int:
    if isinstance(error, OutputClosed):
        raise error
    if isinstance(error, click.UsageError) and error.ctx is not None and not console.json:
        _show_usage(console, error, error.ctx)
    told = failure("INTERRUPTED", "interrupted") if isinstance(error, click.Abort) else failure_of(error)
    console.failure(told)
    return told.exit


def _show_usage(console: Console, error: click.UsageError, context: click.Context) -> None:
    bare = isinstance(error, click.exceptions.NoArgsIsHelpError)
    for line in (context.get_help() if bare else context.get_usage()).splitlines():
        console.note(line)
    console.note("" if bare else f"Try '{context.command_path} --help' for help.")


def _asks_for_json(arguments: Sequence[str]) -> bool:
    """Whether `--json` stands where an option stands, for a line that could not be parsed."""
    command: click.Command = companion
    words = iter(arguments)
    for word in words:
        if word in ("--json", "--"):
            return word == "--json"
        if word in _options_with_value(command):
            next(words, None)
        elif word.startswith("-"):
            continue
        elif isinstance(command, JsonGroup):
            command = command.get_command(click.Context(command), word) or command
        elif not command.context_settings.get("allow_interspersed_args", True):
            return False
    return False


def _options_with_value(command: click.Command) -> set[str]:
    options = (param for param in command.params if isinstance(param, click.Option) and not param.is_flag)
    return {name for option in options for name in option.opts}


if __name__ == "__main__":
    main()
