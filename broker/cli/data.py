"""`companion data clear`: ask the person whether all records shall go (CP-4.15)."""

from __future__ import annotations

import click

from broker.cli.command import JsonGroup
from broker.cli.console import Console, pass_console
from broker.cli.control import control
from broker.cli.outcome import CommandFailed, failure
from protocols.control.data import ClearData, ClearResult

_DECISION_SECONDS = 600.0
"""Longer than the person has, and than deleting takes."""
_CODES = {
    "kept": ("FORBIDDEN", "the person keeps the records"),
    "dismissed": ("CANCELLED", "the person closed the question"),
    "expired": ("EXPIRED", "nobody answered in time"),
    "unavailable": ("RUNTIME_UNAVAILABLE", "the person could not be asked"),
}


@click.group(cls=JsonGroup)
def data() -> None:
    """See to what the broker has kept."""


@data.command()
@pass_console
def clear(console: Console) -> None:
    """Ask the person to delete all requests and answers that have ended, and wait for the decision.

    Nothing is deleted unless the person says so in the presenter; open requests stay in any case. Exit code 0: it is
    deleted, and gone from the disk; 3: the person keeps it; 6: nobody decided; 5: nobody could be asked. Ctrl-C takes
    the question back.
    """
    with control() as connection:
        console.note("waiting for the person to decide in the presenter")
        answer = connection.call("data.clear", ClearData(), _DECISION_SECONDS)
    assert isinstance(answer.result, ClearResult)
    if answer.result.status != "cleared":
        code, message = _CODES[answer.result.status]
        assert isinstance(answer.raw, dict)
        raise CommandFailed(failure(code, message, answer.raw))
    console.result(answer.raw, ["cleared"])
