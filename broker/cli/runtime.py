"""`companion runtime describe`: what the running broker is and can (CP-2.3)."""

from __future__ import annotations

from collections.abc import Iterator

import click

from broker.cli.command import JsonGroup
from broker.cli.console import Console, pass_console
from broker.cli.profiles import paired, profile_option
from protocols.companion.messages import RuntimeDescription


@click.group(cls=JsonGroup)
def runtime() -> None:
    """Look at the running broker."""


@runtime.command()
@profile_option
@pass_console
def describe(console: Console, profile: str | None) -> None:
    """Show versions, limits, retention, the presenter, and what this client may do."""
    with paired(profile) as client:
        result = client.describe()
    console.result(result.raw, _lines(result.value))


def _lines(found: RuntimeDescription) -> Iterator[str]:
    presenter, retention = found.presenter, found.retention
    yield f"{found.implementation.name} {found.implementation.version}, protocol {found.protocol_version}"
    yield f"client {found.authorization.client_id}, scopes {', '.join(found.authorization.scopes)}"
    yield f"access {'on' if found.access.enabled else 'off'}"
    yield f"presenter {presenter.kind}: {presenter.state}{'' if presenter.person else ', nobody can answer'}"
    yield f"results are kept {retention.hours} hours, ids of ended requests {retention.tombstone_days} days"
    yield f"limits: {', '.join(f'{name} {limit}' for name, limit in found.limits.items())}"
