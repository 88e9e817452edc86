"""In whose name and at which socket a program calls: what `open` of both flavours is given."""

from __future__ import annotations

from pathlib import Path

import attrs

from broker.credentials import CredentialError, NoCredential, list_profiles, read_credential
from broker.paths import find_paths
from protocols.companion.client import Credential
from protocols.companion.messages import Implementation
from protocols.implementation import VERSION

PROGRAM = Implementation(name="companion-broker-client", version=VERSION)
"""What a program that does not name itself says in session.hello."""


@attrs.frozen
class Target:
    """A broker's socket, and a paired client's credential."""

    path: Path
    credential: Credential


def find_target(profile: str | None, path: Path | None, credential: Credential | None) -> Target:
    """What is named, and for the rest the user's own broker and the only credential profile there is.

    Raises CredentialError when no profile, or no unique one, can be found (CP-6.4).
    """
    paths = find_paths()
    if credential is None:
        kept = read_credential(paths.credentials, profile or _only_profile(paths.credentials))
        credential = Credential(kept.client_id, kept.key)
    return Target(path or paths.companion_socket, credential)


def _only_profile(folder: Path) -> str:
    """Never a guess: the most privileged credential is not to be picked by chance."""
    match list_profiles(folder):
        case [profile]:
            return profile
        case []:
            raise NoCredential(
                "there is no credential profile: pair first (companion pair NAME --scopes ...)"
            )
        case profiles:
            raise CredentialError(f"several credential profiles, name one of them: {', '.join(profiles)}")
