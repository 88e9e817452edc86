"""`companion clients rotate-key`: another key for the own client, in the place of the old one (CP-5.1, CP-5.2).

The new key is kept before it is used for the first time, and only its first use makes the old one worthless.  So
whatever breaks off on the way, the key that the profile holds is good.
"""

from __future__ import annotations

import attrs
import click

from broker.cli.command import JsonCommand
from broker.cli.console import Console, pass_console
from broker.cli.profiles import PROGRAM, own_profile, profile_option
from broker.client.blocking.companion import CompanionConnection
from broker.credentials import Credential, Store, read_credential, write_credential
from broker.paths import find_paths
from protocols.companion.client import Credential as Claim
from protocols.companion.messages import RotatedKey, RotateKey


@attrs.frozen(kw_only=True)
class Rotated:
    """The result: whose key is another one, and under which profile and where it is kept."""

    client_id: str
    credential_profile: str
    store: Store


@click.command("rotate-key", cls=JsonCommand)
@profile_option
@pass_console
def rotate_key(console: Console, profile: str | None) -> None:
    """Replace the key of the own profile by a new one.

    The client stays the same one: its requests, results and scopes are untouched. The old key is worth nothing once
    the new one is kept and has been used, and sessions that were opened with it end.
    """
    paths, name = find_paths(), own_profile(profile)
    old = read_credential(paths.credentials, name)
    with CompanionConnection.open(paths.companion_socket, PROGRAM, _claim(old)) as connection:
        told = connection.call("session.rotate_key", RotateKey()).result
    assert isinstance(told, RotatedKey)
    new = attrs.evolve(old, key=told.key)
    write_credential(paths.credentials, name, new)
    CompanionConnection.open(paths.companion_socket, PROGRAM, _claim(new)).close()
    result = Rotated(client_id=new.client_id, credential_profile=name, store=new.store)
    console.result(result, [f"the key of profile {name} is a new one"])


def _claim(kept: Credential) -> Claim:
    return Claim(kept.client_id, kept.key)
