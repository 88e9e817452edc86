"""In whose name a command calls: a credential profile, or the only one there is (CP-6.4)."""

from __future__ import annotations

import click

from broker.cli.command import ProfileName
from broker.cli.outcome import not_allowed
from broker.client.blocking.paired import PairedClient
from broker.credentials import list_profiles, read_credential
from broker.paths import find_paths
from protocols.companion.client import Credential
from protocols.companion.messages import Implementation
from protocols.implementation import VERSION

PROGRAM = Implementation(name="companion", version=VERSION)

profile_option = click.option(
    "--credential-profile",
    "profile",
    type=ProfileName(),
    metavar="PROFILE",
    help="Which pairing to use; default: the only one there is.",
)


def paired(profile: str | None) -> PairedClient:
    """A client with the credential of this profile, or of the only one there is (exit 3 when that is not clear)."""
    paths = find_paths()
    kept = read_credential(paths.credentials, own_profile(profile))
    return PairedClient(paths.companion_socket, PROGRAM, Credential(kept.client_id, kept.key))


def own_profile(profile: str | None) -> str:
    """The profile that was named, or the only one there is (exit 3 when that is not clear).

    Never a guess: the most privileged credential is not to be picked by chance.
    """
    if profile is not None:
        return profile
    match profiles := list_profiles(find_paths().credentials):
        case [only]:
            return only
        case []:
            raise not_allowed("no credential profile: pair first (companion pair NAME --scopes ...)")
    raise not_allowed(
        f"several credential profiles, name one with --credential-profile: {', '.join(profiles)}"
    )
