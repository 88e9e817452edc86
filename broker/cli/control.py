"""`companion status` and `companion stop`: the owner's own look at the broker, over the control socket."""

from __future__ import annotations

from collections.abc import Iterator

import click

from broker.cli.command import JsonCommand
from broker.cli.console import Console, pass_console
from broker.client.blocking.control import ControlConnection
from broker.paths import find_paths
from protocols.control.messages import Status, StatusResult, Stop
from protocols.json_values import JSON


def control() -> ControlConnection:
    """A connection to the control socket."""
    return ControlConnection.open(find_paths().control_socket)


def ask_status() -> tuple[StatusResult, JSON]:
    """How the broker is: typed, and as it stood on the wire."""
    with control() as connection:
        answer = connection.call("status", Status())
    assert isinstance(answer.result, StatusResult)
    return answer.result, answer.raw


@click.command(cls=JsonCommand)
@pass_console
def status(console: Console) -> None:
    """Show how the broker is: access, presenter, connections, open requests, leases."""
    found, raw = ask_status()
    console.result(raw, _lines(found))


@click.command(cls=JsonCommand)
@pass_console
def stop(console: Console) -> None:
    """End the broker in good order."""
    with control() as connection:
        answer = connection.call("stop", Stop())
    console.result(answer.raw, ["the broker is stopping"])


def _lines(found: StatusResult) -> Iterator[str]:
    presenter = found.presenter
    yield f"broker {found.implementation_version}, instance {found.runtime_instance_id}"
    yield f"access {'on' if found.access.enabled else 'off'}, {found.clients} paired clients"
    nobody = "" if presenter.person else ", nobody can answer"
    yield f"presenter {presenter.name or 'none'}{nobody}"
    if found.hidden or found.paused:
        yield " and ".join(
            word for word, holds in (("hidden", found.hidden), ("paused", found.paused)) if holds
        )
    counts = ", ".join(f"{name} {count}" for name, count in found.connections.items())
    yield f"connections: {counts or 'none'}"
    yield f"{found.open_requests} open requests, {found.leases} leases"
    for pack in found.character_packs.skipped:
        yield f"character pack {pack.name} was skipped: {pack.reason}"
    if found.records_lost_at is not None:
        yield f"records from before {found.records_lost_at} are lost"
