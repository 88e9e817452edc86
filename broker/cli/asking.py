"""What `ask`, `confirm`, `input` and `notify` share: the options of every request, and waiting for the person."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import attrs
import click

from broker.cli.command import ID, Seconds
from broker.cli.ends import check_end, create_request, until_end
from broker.cli.interrupts import Interrupted, Interrupts
from broker.cli.outcome import CommandFailed, failure_of
from broker.cli.profiles import paired, profile_option
from broker.client.blocking.paired import PairedClient
from broker.client.blocking.stream import Deadline
from broker.client.errors import ClientError, NotConnected
from broker.client.plan import Result
from protocols.companion.messages import CreateRequest, Snapshot
from protocols.companion.states import State
from protocols.json_values import JSONObject

_LEAVING_SECONDS = 5.0
"""How long an interrupted command tries to take its question back."""
Body: TypeAlias = Callable[..., None]
"""A command's function."""


@attrs.frozen(kw_only=True)
class Common:
    """What may be said about any request."""

    timeout: float
    """Seconds."""
    character: str | None
    style: str | None
    allow_substitution: bool
    task_id: str | None
    idempotency_key: str | None
    profile: str | None

    def request(self, capability: str, params: JSONObject) -> CreateRequest:
        """The request for a capability."""
        return CreateRequest(
            capability=capability,
            params=params,
            timeout_ms=round(self.timeout * 1000),
            character=self.character,
            style=self.style,
            allow_substitution=self.allow_substitution,
            task_id=self.task_id,
            idempotency_key=self.idempotency_key,
        )


def request_options(timeout: int) -> Callable[[Body], Body]:
    """The options of `Common`, which the command gets as `common`; `timeout` is the default, in seconds."""

    def decorate(body: Body) -> Body:
        @functools.wraps(body)
        def with_common(*args: Any, **kwargs: Any) -> None:
            given = {field.name: kwargs.pop(field.name) for field in attrs.fields(Common)}
            body(*args, common=Common(**given), **kwargs)

        for option in reversed(_options(timeout)):
            option(with_common)
        return with_common

    return decorate


def _options(timeout: int) -> list[Callable[[Any], Any]]:
    return [
        click.option(
            "--timeout",
            type=Seconds(),
            default=timeout,
            show_default=True,
            metavar="SECONDS",
            help="How long it stands, waiting in the queue included.",
        ),
        click.option(
            "--character", type=ID, metavar="ID", help="Which character; default: the person's own."
        ),
        click.option("--style", type=ID, metavar="ID", help="Which style; default: the character's own."),
        click.option(
            "--allow-substitution", is_flag=True, help="Take a declared substitute for what is not there."
        ),
        click.option("--task-id", type=ID, metavar="ID", help="Your own id, told back in every snapshot."),
        click.option(
            "--idempotency-key",
            type=ID,
            metavar="KEY",
            help="The same command with the same key is the same request, even after a crash.",
        ),
        profile_option,
    ]


def ask_person(request: CreateRequest, profile: str | None) -> Result[Snapshot]:
    """Make the request and follow it until the person has answered.

    Raises CommandFailed for every other end.  Being told to stop takes the request back first, so that no question
    is left on the screen that nobody waits for; being told so twice ends at once.
    """
    try:
        with Interrupts() as interrupts, paired(profile) as client:
            ended = _follow(client, create_request(client, request), interrupts)
    except Interrupted as interrupted:
        raise CommandFailed(interrupted.failure("interrupted; the request may go on")) from None
    check_end(ended)
    return ended


def _follow(client: PairedClient, made: Result[Snapshot], interrupts: Interrupts) -> Result[Snapshot]:
    try:
        with interrupts.at_once():
            return until_end(client, made, Deadline.after(None))
    except Interrupted as interrupted:
        raise _taken_back(client, made, interrupted) from None
    except NotConnected as error:  # the request may well go on: its id is worth something
        raise CommandFailed(attrs.evolve(failure_of(error), request=made.raw)) from None


def _taken_back(client: PairedClient, made: Result[Snapshot], interrupted: Interrupted) -> CommandFailed:
    try:
        left = client.run(client.calls.cancel(made.value.request_id), within=_LEAVING_SECONDS)
    except ClientError:
        failure = interrupted.failure("interrupted; the request could not be taken back")
        return CommandFailed(attrs.evolve(failure, request=made.raw))
    if left.value.state is State.COMPLETED:
        told = interrupted.failure(
            "interrupted, but the person had answered: companion requests get ID shows it"
        )
    else:
        told = interrupted.failure(f"interrupted; the request is {left.value.state.value}")
    return CommandFailed(attrs.evolve(told, request=left.raw))
