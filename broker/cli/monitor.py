"""`companion monitor`: live events about everything, and the content of nothing (CP-4.10, CP-5.9)."""

from __future__ import annotations

import click

from broker.cli.command import JsonCommand
from broker.cli.console import Console, pass_console
from broker.cli.control import control
from broker.client.blocking.stream import Deadline
from protocols.control.monitor import Event, Monitor
from protocols.json_values import JSON


@click.command(cls=JsonCommand)
@pass_console
def monitor(console: Console) -> None:
    """Print every change as it happens, until it is interrupted or the broker ends.

    Requests, clients, pairings, connections, settings and leases are told by their ids, states and reasons, never
    what anybody wrote. With --json stdout is not one value but a stream: one JSON object a line, the last of which is
    the error that ended it.
    """
    with control() as connection:
        connection.call("monitor", Monitor())
        console.note("watching")
        while True:
            event = connection.next_push(Deadline.after(None))
            if isinstance(event.body, Event):
                console.result(event.raw, [_line(event.body, event.raw)])


_FIRST = ("at", "kind", "state", "reason")


def _line(event: Event, raw: JSON) -> str:
    assert isinstance(raw, dict)
    rest = " ".join(f"{name}={_word(value)}" for name, value in raw.items() if name not in _FIRST)
    reason = f" ({event.reason})" if event.reason is not None else ""
    return f"{event.at}  {event.kind} {event.state}{reason}  {rest}".rstrip()


def _word(value: JSON) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
