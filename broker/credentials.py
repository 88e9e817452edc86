"""Credential profiles: what a client has kept of its pairing, one private file a profile (companion.md, CLI; CP-5.2).

`credentials/P.json` in the configuration folder holds clientId, scopes, store and key; the folder has mode 0700, a
file 0600.  The key is never part of a repr or of an error.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Literal

import attrs

from broker.private_files import NotPrivate, make_private_directory, read_private_file, write_private_file

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


class CredentialError(Exception):
    """A profile cannot be used; the text names the profile and the reason, never a path or what is in the file."""


class NoCredential(CredentialError):
    """There is no such profile."""


@attrs.frozen
class Credential:
    """What a client authenticates with."""

    client_id: str
    scopes: tuple[str, ...]
    key: str = attrs.field(repr=False)
    store: Literal["file"] = "file"
    """Where the key is kept; recorded at pairing, so that another place is never taken silently."""


def check_profile_name(profile: str) -> None:
    """Raise CredentialError unless the name is 1..64 letters, digits, `_`, `.` or `-`, the first no `.` or `-`."""
    if not _NAME.fullmatch(profile):
        raise CredentialError(
            "a profile name is 1 to 64 letters, digits, underscores, dots or hyphens, "
            "and does not begin with a dot or a hyphen"
        )


def list_profiles(folder: Path) -> list[str]:
    """The names of the profiles that have a file, in order."""
    try:
        names = [path.stem for path in folder.iterdir() if path.suffix == ".json"]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CredentialError(f"the folder of credentials cannot be read: {error.strerror}") from None
    return sorted(filter(_NAME.fullmatch, names))


def read_credential(folder: Path, profile: str) -> Credential:
    """Read a profile.  Raises NoCredential, and CredentialError for a file that is not private or not whole."""
    check_profile_name(profile)
    try:
        return _structure(read_private_file(_file(folder, profile)))
    except FileNotFoundError:
        raise NoCredential(f"there is no credential profile {profile}") from None
    except NotPrivate as error:
        raise CredentialError(f"the file of credential profile {profile} {error}") from None
    except OSError as error:
        raise CredentialError(f"credential profile {profile} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):  # its text may quote the key
        raise CredentialError(f"the file of credential profile {profile} is damaged") from None


def write_credential(folder: Path, profile: str, credential: Credential) -> None:
    """Write a profile, or replace it, so that after a crash there is the old or the new.  Raises CredentialError."""
    check_profile_name(profile)
    content = {
        "clientId": credential.client_id,
        "scopes": list(credential.scopes),
        "store": credential.store,
        "key": credential.key,
    }
    try:
        make_private_directory(folder)
        write_private_file(_file(folder, profile), json.dumps(content, indent=2).encode() + b"\n")
    except NotPrivate as error:
        raise CredentialError(f"the folder of credentials {error}") from None
    except OSError as error:
        raise CredentialError(f"credential profile {profile} cannot be written: {error.strerror}") from None


def remove_credential(folder: Path, profile: str) -> None:
    """Remove a profile.  Raises NoCredential when there is none, and CredentialError."""
    check_profile_name(profile)
    try:
        _file(folder, profile).unlink()
    except FileNotFoundError:
        raise NoCredential(f"there is no credential profile {profile}") from None
    except OSError as error:
        raise CredentialError(f"credential profile {profile} cannot be removed: {error.strerror}") from None


def _file(folder: Path, profile: str) -> Path:
    return folder / f"{profile}.json"


def _structure(content: bytes) -> Credential:
    """Raises ValueError for anything but the members that `write_credential` writes."""
    match json.loads(content):
        case {"clientId": str(client_id), "scopes": [*scopes], "store": "file", "key": str(key)} if all(
            isinstance(scope, str) for scope in scopes
        ):
            return Credential(client_id, tuple(scopes), key)
    raise ValueError
