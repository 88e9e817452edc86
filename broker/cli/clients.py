"""`companion clients`: who is paired, and taking rights away (CP-4.14, CP-5.1); giving is for the person alone."""

from __future__ import annotations

from collections.abc import Iterator

import click

from broker.cli.command import ID, JsonGroup
from broker.cli.console import Console, pass_console
from broker.cli.control import control
from broker.cli.pages import whole_list
from broker.cli.rotate import rotate_key
from broker.cli.scopes import Scopes
from protocols.companion.pairing import Scope
from protocols.control.clients import (
    ClientList,
    ListClients,
    ListedClient,
    NarrowClient,
    NarrowedClient,
    RevokeClient,
)


@click.group(cls=JsonGroup)
def clients() -> None:
    """Look at the paired clients, and take rights away."""


clients.add_command(rotate_key)


@clients.command("list")
@pass_console
def list_clients(console: Console) -> None:
    """List the paired clients, what each may do, and what it has open."""
    with control() as connection:
        pages, raw = whole_list(connection, "clients.list", ListClients, ClientList)
    console.result(raw, (line for page in pages for one in page.clients for line in _lines(one)))


@clients.command()
@click.argument("client_id", type=ID)
@pass_console
def revoke(console: Console, client_id: str) -> None:
    """Make a client's key worth nothing.

    Its sessions end, its unfinished requests are cancelled (key_revoked) and its results are wiped. There is no way
    back: the program has to be paired again.
    """
    with control() as connection:
        answer = connection.call("clients.revoke", RevokeClient(client_id=client_id))
    console.result(answer.raw, ["revoked"])


@clients.command()
@click.argument("client_id", type=ID)
@click.option(
    "--scopes",
    type=Scopes(or_none=True),
    required=True,
    metavar="SCOPE,...",
    help="The scopes that remain, or none.",
)
@pass_console
def narrow(console: Console, client_id: str, scopes: tuple[Scope, ...]) -> None:
    """Leave a client only these of its scopes; one that it does not have is not given.

    Its unfinished requests that need a scope that is gone are cancelled (scope_revoked).
    """
    with control() as connection:
        answer = connection.call("clients.narrow", NarrowClient(client_id=client_id, scopes=scopes))
    assert isinstance(answer.result, NarrowedClient)
    console.result(answer.raw, [f"scopes: {', '.join(answer.result.scopes) or 'none'}"])


def _lines(one: ListedClient) -> Iterator[str]:
    yield f"{one.client_id}  {one.label}"
    yield f"    scopes {', '.join(one.scopes) or 'none'}; paired {one.created_at}"
    muted = f"; muted until {one.muted_until}" if one.muted_until is not None else ""
    yield f"    {one.connections} connections, {one.open_requests} open requests{muted}"
