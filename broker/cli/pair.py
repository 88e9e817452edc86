"""`companion pair`: asks the person at the screen for a key and keeps it (companion.md, Pairing; CP-5.2, CP-5.5).

Where the key will be kept is settled before the person is asked, since it is handed over only once, and recorded in
the profile.  A keychain that was asked for, or that the profile has used before, is never replaced by a file; `auto`
takes the file only where no keychain works, and says so.  The client whose profile is replaced is revoked once the
new key is kept and has proved good.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

import attrs
import click

from broker.cli.command import ProfileName, Text, TextCommand
from broker.cli.console import Console, pass_console
from broker.cli.outcome import CommandFailed, failure, not_allowed
from broker.cli.profiles import PROGRAM
from broker.cli.scopes import Scopes
from broker.client.blocking.companion import CompanionConnection
from broker.client.blocking.control import ControlConnection
from broker.client.calls import LONGEST_WAIT_MS, published_wait_limit
from broker.client.errors import CallFailed, ClientError
from broker.client.replies import REPLY_SECONDS
from broker.credentials import (
    Credential,
    CredentialError,
    KeyNotKept,
    Profile,
    Store,
    read_profile,
    write_credential,
)
from broker.keychain import KeychainError, check_keychain
from broker.paths import find_paths
from broker.private_files import NotPrivate, make_private_directory
from protocols.companion.client import Credential as Claim
from protocols.companion.pairing import (
    MAX_CLIENT_NAME_RAW,
    MAX_PURPOSE,
    SCOPES,
    PairingOutcome,
    PairingRequest,
    PairingRequested,
    PairingWait,
    Scope,
)
from protocols.control.clients import RevokeClient

KeyStore: TypeAlias = Literal["auto", "keychain", "file"]


@attrs.frozen(kw_only=True)
class Paired:
    """The result: who the client is, and under which profile and where its key is kept."""

    client_id: str
    label: str
    scopes: tuple[str, ...]
    credential_profile: str
    store: Store


@click.command(cls=TextCommand)
@click.argument("name", type=Text(1, MAX_CLIENT_NAME_RAW))
@click.option(
    "--scopes", type=Scopes(), required=True, metavar="SCOPE,...", help=f"Some of {', '.join(SCOPES)}."
)
@click.option(
    "--credential-profile",
    "profile",
    type=ProfileName(),
    required=True,
    metavar="PROFILE",
    help="Where the key goes.",
)
@click.option(
    "--purpose", type=Text(1, MAX_PURPOSE), metavar="TEXT", help="What the person is told it is for."
)
@click.option(
    "--key-store",
    type=click.Choice(["auto", "keychain", "file"]),
    default="auto",
    show_default=True,
    help="Where the key is kept; auto: where it was before, else the keychain, else a file of mode 0600.",
)
@pass_console
def pair(
    console: Console,
    name: str,
    scopes: tuple[Scope, ...],
    profile: str,
    purpose: str | None,
    key_store: KeyStore,
) -> None:
    """Ask the person for access as NAME and keep the key under a credential profile.

    The person compares the code that is printed here with the one in the presenter, and may grant fewer scopes. Over
    an existing profile the client that it was of is revoked once the new key is kept. A name that begins with a dash
    goes last, behind --.

    \b
    companion pair Walker --scopes notify,interact --credential-profile walker
    """
    paths = find_paths()
    before = _prepare(paths.credentials, profile)
    store = _choose_store(console, before, key_store)
    with CompanionConnection.open(paths.companion_socket, PROGRAM) as connection:
        asked = _ask(console, connection, PairingRequest(client_name=name, scopes=scopes, purpose=purpose))
        granted = _granted(_decision(connection, asked.pairing_id), store)
        try:
            kept = _keep(
                console,
                paths.credentials,
                profile,
                granted,
                may_be_a_file=key_store == "auto" and before is None,
            )
        except CredentialError:
            _revoke(console, paths.control_socket, granted.client_id)
            raise
        identity = connection.authenticate(Claim(kept.client_id, kept.key))
    if before is not None and before.client_id != kept.client_id:
        _revoke(console, paths.control_socket, before.client_id)
    result = Paired(
        client_id=identity.client_id,
        label=identity.label,
        scopes=identity.scopes,
        credential_profile=profile,
        store=kept.store,
    )
    console.result(result, _lines(result))


def _prepare(folder: Path, profile: str) -> Profile | None:
    """Find out what would be in the way before the person is asked; gives the profile that is replaced.

    One that cannot be read is replaced as well.
    """
    try:
        make_private_directory(folder)
    except NotPrivate as error:
        raise not_allowed(f"the folder of credentials {error}") from None
    except OSError as error:
        raise not_allowed(f"the folder of credentials cannot be made ({error.strerror})") from None
    try:
        return read_profile(folder, profile)
    except CredentialError:
        return None


def _choose_store(console: Console, before: Profile | None, key_store: KeyStore) -> Store:
    wanted = before.store if key_store == "auto" and before is not None else key_store
    if wanted == "file":
        return "file"
    try:
        check_keychain()
    except KeychainError as error:
        if wanted == "keychain":
            raise not_allowed(
                f"the keychain cannot be used: {error}; --key-store file would use a file"
            ) from None
        console.note(f"the keychain cannot be used: {error}; the key will be kept in a private file")
        return "file"
    return "keychain"


def _keep(
    console: Console, folder: Path, profile: str, granted: Credential, *, may_be_a_file: bool
) -> Credential:
    """Keep the key; gives the credential as it is kept."""
    try:
        write_credential(folder, profile, granted)
    except KeyNotKept as error:  # the keychain worked a minute ago
        if not may_be_a_file:
            raise
        console.note(f"{error}; it is kept in a private file")
        granted = attrs.evolve(granted, store="file")
        write_credential(folder, profile, granted)
    return granted


def _revoke(console: Console, path: Path, client_id: str) -> None:
    """Take the rights of a client away whose key nobody has any more; what stays in the way is told."""
    try:
        with ControlConnection.open(path) as connection:
            connection.call("clients.revoke", RevokeClient(client_id=client_id))
    except CallFailed as error:
        if error.code != "NOT_FOUND":
            console.note(f"client {client_id} stays paired: {error.message}")
    except ClientError as error:
        console.note(f"client {client_id} stays paired: {error}")


def _ask(console: Console, connection: CompanionConnection, request: PairingRequest) -> PairingRequested:
    asked = connection.call("pairing.request", request).result
    assert isinstance(asked, PairingRequested)
    console.note(f"verification code: {asked.verification_code}")
    console.note("Approve it in the presenter only if the same code is shown there.")
    return asked


def _decision(connection: CompanionConnection, pairing_id: str) -> PairingOutcome:
    """Wait until the person has decided or the pairing has expired."""
    wait_ms = LONGEST_WAIT_MS
    while True:
        params = PairingWait(pairing_id=pairing_id, wait_ms=wait_ms)
        try:
            outcome = connection.call("pairing.wait", params, REPLY_SECONDS + wait_ms / 1000).result
        except CallFailed as error:
            wait_ms = published_wait_limit(error, wait_ms)
            continue
        assert isinstance(outcome, PairingOutcome)
        if outcome.status != "pending":
            return outcome


def _granted(outcome: PairingOutcome, store: Store) -> Credential:
    """What is to be kept; raises CommandFailed unless the pairing was approved and the key is here."""
    match outcome:
        case PairingOutcome(status="approved", client_id=str(client_id), key=str(key)):
            return Credential(client_id, outcome.scopes or (), key, store)
        case PairingOutcome(status="denied"):
            raise CommandFailed(failure("FORBIDDEN", "the person denied the pairing"))
        case PairingOutcome(status="expired"):
            raise CommandFailed(failure("EXPIRED", "nobody decided on the pairing in time"))
        case PairingOutcome(status="cancelled"):
            raise CommandFailed(failure("CANCELLED", "the pairing was cancelled"))
    raise CommandFailed(failure("INTERNAL_ERROR", "the broker handed over no key"))


def _lines(paired: Paired) -> list[str]:
    where = "in the keychain" if paired.store == "keychain" else "in a private file"
    return [
        f"paired as {paired.label}",
        f"client {paired.client_id}, scopes {', '.join(paired.scopes)}",
        f"profile {paired.credential_profile}, its key {where}",
    ]
