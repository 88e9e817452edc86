"""Credential profiles: what a client has kept of its pairing, one private file a profile (companion.md, CLI; CP-5.2).

`credentials/P.json` in the configuration folder holds clientId, scopes and store, which says where the key is: in
the file itself, or in the keychain under the client's id.  That was decided at pairing; a key that is not where the
profile says is an error, never looked for elsewhere.  The folder has mode 0700, a file 0600.  The key is never part
of a repr or of an error.
"""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Literal, TypeAlias

import attrs

from broker.keychain import KeychainError, drop_key, find_key, keep_key
from broker.private_files import NotPrivate, make_private_directory, read_private_file, write_private_file

Store: TypeAlias = Literal["keychain", "file"]

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


class CredentialError(Exception):
    """A profile cannot be used; the text names the profile and the reason, never a path or what is in the file."""


class NoCredential(CredentialError):
    """There is no such profile."""


class KeyNotKept(CredentialError):
    """The keychain did not take a key; nothing else has changed."""


@attrs.frozen
class Credential:
    """What a client authenticates with."""

    client_id: str
    scopes: tuple[str, ...]
    key: str = attrs.field(repr=False)
    store: Store = "file"
    """Where the key is kept; recorded at pairing, so that another place is never taken silently."""


@attrs.frozen
class Profile:
    """What the file of a profile says; `key` None: it is in the keychain."""

    client_id: str
    scopes: tuple[str, ...]
    store: Store
    key: str | None = attrs.field(repr=False)


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


def read_profile(folder: Path, profile: str) -> Profile:
    """Read a profile's file and leave the keychain alone.

    Raises NoCredential, and CredentialError for a file that is not private or not whole.
    """
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


def read_credential(folder: Path, profile: str) -> Credential:
    """Read a profile with its key.  Raises what `read_profile` does, and CredentialError where the key is not."""
    found = read_profile(folder, profile)
    key = found.key if found.store == "file" else _key_in_keychain(profile, found.client_id)
    if key is None:
        raise CredentialError(f"the key of credential profile {profile} is not in the keychain")
    return Credential(found.client_id, found.scopes, key, found.store)


def write_credential(folder: Path, profile: str, credential: Credential) -> None:
    """Write a profile, or replace it, so that after a crash there is the old or the new.

    Raises KeyNotKept when the keychain does not take the key, and CredentialError; the old profile is then as it was.
    """
    check_profile_name(profile)
    replaced = _readable(folder, profile)
    written = Profile(credential.client_id, credential.scopes, credential.store, None)
    if written.store == "file":
        written = attrs.evolve(written, key=credential.key)
    else:
        _put_into_keychain(profile, credential)
    try:
        _write_file(folder, profile, written)
    except CredentialError:
        _forget_key(written, unless=replaced)
        raise
    if replaced is not None:
        _forget_key(replaced, unless=written)


def remove_credential(folder: Path, profile: str) -> None:
    """Remove a profile and its key.

    Raises NoCredential when there is none, and CredentialError when the file stays.  A keychain that cannot be
    reached keeps a key that nothing leads to.
    """
    check_profile_name(profile)
    found = _readable(folder, profile)
    try:
        _file(folder, profile).unlink()
    except FileNotFoundError:
        raise NoCredential(f"there is no credential profile {profile}") from None
    except OSError as error:
        raise CredentialError(f"credential profile {profile} cannot be removed: {error.strerror}") from None
    if found is not None:
        _forget_key(found)


def forget_client(folder: Path, client_id: str) -> list[str]:
    """Remove the profiles and the keys of a client whose key is worth nothing; the names of those that are gone.

    As far as it goes: what cannot be read or removed stays.  It may take as long as a keychain does.
    """
    try:
        profiles = list_profiles(folder)
    except CredentialError:
        return []
    gone = []
    for profile in profiles:
        found = _readable(folder, profile)
        if found is not None and found.client_id == client_id:
            with contextlib.suppress(CredentialError):
                remove_credential(folder, profile)
                gone.append(profile)
    return gone


# -- the file ------------------------------------------------------------------------------------------------------


def _file(folder: Path, profile: str) -> Path:
    return folder / f"{profile}.json"


def _write_file(folder: Path, profile: str, written: Profile) -> None:
    content = {"clientId": written.client_id, "scopes": list(written.scopes), "store": written.store}
    if written.key is not None:
        content["key"] = written.key
    try:
        make_private_directory(folder)
        write_private_file(_file(folder, profile), json.dumps(content, indent=2).encode() + b"\n")
    except NotPrivate as error:
        raise CredentialError(f"the folder of credentials {error}") from None
    except OSError as error:
        raise CredentialError(f"credential profile {profile} cannot be written: {error.strerror}") from None


def _readable(folder: Path, profile: str) -> Profile | None:
    """The profile, if there is one that can be read."""
    try:
        return read_profile(folder, profile)
    except CredentialError:
        return None


def _structure(content: bytes) -> Profile:
    """Raises ValueError for anything but the members that `write_credential` writes."""
    match json.loads(content):
        case {"clientId": str(client_id), "scopes": [*scopes], "store": "file", "key": str(key)}:
            found = Profile(client_id, tuple(scopes), "file", key)
        case {"clientId": str(client_id), "scopes": [*scopes], "store": "keychain", **more} if not more:
            found = Profile(client_id, tuple(scopes), "keychain", None)
        case _:
            raise ValueError
    if not all(isinstance(scope, str) for scope in found.scopes):
        raise ValueError
    return found


# -- the keychain --------------------------------------------------------------------------------------------------


def _put_into_keychain(profile: str, credential: Credential) -> None:
    try:
        keep_key(credential.client_id, credential.key)
    except KeychainError as error:
        raise KeyNotKept(f"the keychain cannot keep the key of profile {profile}: {error}") from None


def _key_in_keychain(profile: str, client_id: str) -> str | None:
    try:
        return find_key(client_id)
    except KeychainError as error:
        reason = f"the key of credential profile {profile} cannot be read from the keychain: {error}"
        raise CredentialError(reason) from None


def _forget_key(profile: Profile, unless: Profile | None = None) -> None:
    """Remove a profile's key from the keychain, unless the other profile's is the same entry."""
    same = unless is not None and unless.store == "keychain" and unless.client_id == profile.client_id
    if profile.store == "keychain" and not same:
        with contextlib.suppress(KeychainError):
            drop_key(profile.client_id)
