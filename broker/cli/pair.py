"""`companion pair`: asks the person at the screen for a key and keeps it (companion.md, Pairing; CP-5.2, CP-5.5).

Where the key will be kept is settled before the person is asked, since it is handed over only once, and recorded in
the profile.  A keychain that was asked for, or that the profile has used before, is never replaced by a file; `auto`
takes the file only where no keychain works, and says so.
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
from broker.client.blocking.companion import CompanionConnection
from broker.client.calls import LONGEST_WAIT_MS, published_wait_limit
from broker.client.errors import CallFailed
from broker.client.replies import REPLY_SECONDS
from broker.credentials import (
    Credential,
    CredentialError,
    KeyNotKept,
    Profile,
    Store,
    list_profiles,
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

KeyStore: TypeAlias = Literal["auto", "keychain", "file"]


@attrs.frozen(kw_only=True)
class Paired:
    """The result: who the client is, and under which profile and where its key is kept."""

    client_id: str
    label: str
    scopes: tuple[str, ...]
    credential_profile: str
    store: Store


class Scopes(click.ParamType[tuple[Scope, ...]]):
    """Scopes with commas between them."""

    name = "scopes"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Scope, ...]:
        named = [word.strip() for word in str(value).split(",")]
        if not set(named) <= set(SCOPES):
            self.fail(f"each must be one of {', '.join(SCOPES)}", param, ctx)
        return tuple(scope for scope in SCOPES if scope in named)


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

    The person compares the code that is printed here with the one in the presenter, and may grant fewer scopes. A
    name that begins with a dash goes last, behind --.

    \b
    companion pair Walker --scopes notify,interact --credential-profile walker
    """
    paths = find_paths()
    store = _prepare(console, paths.credentials, profile, key_store)
    with CompanionConnection.open(paths.companion_socket, PROGRAM) as connection:
        asked = _ask(console, connection, PairingRequest(client_name=name, scopes=scopes, purpose=purpose))
        granted = _granted(_decision(connection, asked.pairing_id), store)
        kept = _keep(console, paths.credentials, profile, granted, key_store)
        identity = connection.authenticate(Claim(kept.client_id, kept.key))
    result = Paired(
        client_id=identity.client_id,
        label=identity.label,
        scopes=identity.scopes,
        credential_profile=profile,
        store=kept.store,
    )
    console.result(result, _lines(result))


def _prepare(console: Console, folder: Path, profile: str, key_store: KeyStore) -> Store:
    """Find out what would be in the way before the person is asked, and where the key will be kept."""
    try:
        make_private_directory(folder)
    except NotPrivate as error:
        raise not_allowed(f"the folder of credentials {error}") from None
    except OSError as error:
        raise not_allowed(f"the folder of credentials cannot be made ({error.strerror})") from None
    if profile in list_profiles(folder):
        console.note(f"profile {profile} will be replaced; its old client stays paired until it is revoked")
    return _choose_store(console, _before(folder, profile), key_store)


def _before(folder: Path, profile: str) -> Profile | None:
    """What is replaced; a profile that cannot be read is replaced as well."""
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
    console: Console, folder: Path, profile: str, granted: Credential, key_store: KeyStore
) -> Credential:
    """Keep the key; gives the credential as it is kept."""
    try:
        write_credential(folder, profile, granted)
    except KeyNotKept as error:  # it worked a minute ago
        if key_store != "auto" or _before(folder, profile) is not None:
            raise
        console.note(f"{error}; it is kept in a private file")
        granted = attrs.evolve(granted, store="file")
        write_credential(folder, profile, granted)
    return granted


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
