"""`companion lease`: hold apps open while a command runs, and ask about leases."""

from __future__ import annotations

import click

from broker.cli.command import LazyGroup

_COMMANDS = {
    "run": "lease_run:run",
    "list": "lease_owner:list_leases",
    "may-close": "lease_owner:may_close",
    "quit-done": "lease_owner:quit_done",
    "quit-abandoned": "lease_owner:quit_abandoned",
}


@click.group(cls=LazyGroup, places=_COMMANDS)
def lease() -> None:
    """Keep apps open while something works with them."""
