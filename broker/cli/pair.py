"""`companion pair`: asks the person at the screen for a key and keeps it (companion.md, Pairing; CP-5.2, CP-5.5)."""

from __future__ import annotations

from pathlib import Path

import click

from broker.cli.command import JsonCommand, ProfileName, Text
from broker.cli.console import Console, pass_console
from broker.cli.outcome import CommandFailed, Exit, Failure, not_allowed
from broker.cli.profiles import PROGRAM
from broker.client.blocking.companion import CompanionConnection
from broker.client.blocking.rpc import REPLY_SECONDS
from broker.client.calls import LONGEST_WAIT_MS, published_wait_limit
from broker.client.errors import CallFailed
from broker.credentials import Credential, list_profiles, write_credential
from broker.paths import find_paths
from broker.private_files import NotPrivate, make_private_directory
from protocols.companion.client import Credential as Claim
from protocols.companion.messages import AuthenticateResult
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


@click.command(cls=JsonCommand)
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
@pass_console
def pair(console: Console, name: str, scopes: tuple[Scope, ...], profile: str, purpose: str | None) -> None:
    """Ask the person for access as NAME and keep the key under a credential profile.

    The person compares the code that is printed here with the one in the presenter, and may grant fewer scopes.
    """
    paths = find_paths()
    _prepare(console, paths.credentials, profile)
    with CompanionConnection.open(paths.companion_socket, PROGRAM) as connection:
        asked = _ask(console, connection, PairingRequest(client_name=name, scopes=scopes, purpose=purpose))
        credential = _granted(_decision(connection, asked.pairing_id))
        write_credential(paths.credentials, profile, credential)
        identity = connection.authenticate(Claim(credential.client_id, credential.key))
    console.result(identity, _lines(identity, profile))


def _prepare(console: Console, folder: Path, profile: str) -> None:
    """Find out what would be in the way before the person is asked: the key is handed over only once."""
    try:
        make_private_directory(folder)
    except NotPrivate as error:
        raise not_allowed(f"the folder of credentials {error}") from None
    except OSError as error:
        raise not_allowed(f"the folder of credentials cannot be made ({error.strerror})") from None
    if profile in list_profiles(folder):
        console.note(f"profile {profile} will be replaced; its old client stays paired until it is revoked")


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


def _granted(outcome: PairingOutcome) -> Credential:
    """What is kept; raises CommandFailed unless the pairing was approved and the key is here."""
    match outcome:
        case PairingOutcome(status="approved", client_id=str(client_id), key=str(key)):
            return Credential(client_id, outcome.scopes or (), key)
        case PairingOutcome(status="denied"):
            failure = Failure(
                exit=Exit.NOT_ALLOWED, code="FORBIDDEN", message="the person denied the pairing"
            )
        case PairingOutcome(status="expired"):
            message = "nobody decided on the pairing in time"
            failure = Failure(exit=Exit.CANCELLED_OR_EXPIRED, code="EXPIRED", message=message, retryable=True)
        case PairingOutcome(status="cancelled"):
            message = "the pairing was cancelled"
            failure = Failure(
                exit=Exit.CANCELLED_OR_EXPIRED, code="CANCELLED", message=message, retryable=True
            )
        case _:
            failure = Failure(
                exit=Exit.FAILED, code="INTERNAL_ERROR", message="the broker handed over no key"
            )
    raise CommandFailed(failure)


def _lines(identity: AuthenticateResult, profile: str) -> list[str]:
    scopes = ", ".join(identity.scopes)
    return [f"paired as {identity.label}", f"client {identity.client_id}, scopes {scopes}, profile {profile}"]
