"""`companion help`: what holds for all commands, made from the tables that the code itself goes by."""

from __future__ import annotations

from collections.abc import Iterator

import click

from broker.cli.command import JsonGroup
from broker.cli.console import Console, pass_console
from broker.cli.outcome import MEANINGS, CodeRow, Exit, codes
from protocols.json_values import JSON


@click.group("help", cls=JsonGroup)
def help_topics() -> None:
    """Read about what holds for every command."""


@help_topics.command("exit-codes")
@pass_console
def exit_codes(console: Console) -> None:
    """List the exit codes, and the words that come with them.

    The word is the "code" of the error that --json prints; a retryable one may succeed later, unchanged. With
    --json the list itself is one JSON value.
    """
    console.result({"exitCodes": [_entry(exit) for exit in Exit]}, _lines())


def rows_of(exit: Exit) -> list[CodeRow]:
    """The words that come with an exit code."""
    return [row for row in codes() if row.exit is exit]


def _entry(exit: Exit) -> JSON:
    listed: list[JSON] = [{"code": row.code, "retryable": row.retryable} for row in rows_of(exit)]
    return {"exit": int(exit), "meaning": MEANINGS[exit], "codes": listed}


def _lines() -> Iterator[str]:
    for exit in Exit:
        yield f"{int(exit):>3}  {MEANINGS[exit]}"
        for row in rows_of(exit):
            yield f"       {row.code}{' (retryable)' if row.retryable else ''}"
