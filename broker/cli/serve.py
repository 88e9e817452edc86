"""`companion serve`: becomes the broker.

The command line knows nothing of the daemon (a layer contract), so this process is replaced by `python -m
broker.daemon`, which also keeps its pid for whoever supervises it.
"""

from __future__ import annotations

import os
import sys

import click

from broker.cli.command import JsonCommand


@click.command(cls=JsonCommand)
@click.option(
    "--presenter", metavar="KIND", help="One of terminal, none, exec:COMMAND; default: the configuration's."
)
@click.option(
    "--config", metavar="FILE", help="The configuration; default: $COMPANION_CONFIG or the user's own."
)
def serve(presenter: str | None, config: str | None) -> None:
    """Run the broker in this process until it is stopped."""
    options = {"--presenter": presenter, "--config": config}
    given = [f"{name}={value}" for name, value in options.items() if value is not None]
    # -P: no package from the folder where this happens to be started.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "broker.daemon", *given])
