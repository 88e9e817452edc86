"""`companion requests`: make a request, look at it, wait for its end, take it back (CP-6.1, CP-6.2)."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import click

from broker.cli.command import ID, JsonGroup
from broker.cli.console import Console, compact, pass_console
from broker.cli.outcome import CommandFailed, Exit, Failure, failure_of, invalid
from broker.cli.profiles import paired, profile_option
from broker.client.blocking.paired import PairedClient
from broker.client.blocking.stream import Deadline
from broker.client.calls import new_idempotency_key
from broker.client.errors import NotConnected
from broker.client.plan import Result
from protocols.companion.messages import CreateRequest, Snapshot
from protocols.companion.states import State, is_terminal
from protocols.errors import InvalidValue
from protocols.json_values import JSON
from protocols.strict_json import decode
from protocols.structure import structure

_LARGEST_FILE = 1_048_576


@click.group(cls=JsonGroup)
def requests() -> None:
    """Make requests and follow them."""


@requests.command()
@click.option("--file", "source", required=True, metavar="FILE", help="JSON with the parameters; - is stdin.")
@profile_option
@pass_console
def create(console: Console, source: str, profile: str | None) -> None:
    """Make a request from the parameters of requests.create.

    Exit code 0 says that it was accepted, nothing more.  Without an idempotencyKey in the file one is made, so that
    the call can be repeated without asking the person twice.
    """
    request = _with_key(_read_request(source))
    with paired(profile) as client:
        try:
            result = client.create(request)
        except NotConnected as error:
            raise _outcome_unknown(error, request) from None
    console.result(result.raw, _lines(result.value))


@requests.command()
@click.argument("request_id", type=ID)
@profile_option
@pass_console
def get(console: Console, request_id: str, profile: str | None) -> None:
    """Show how a request stands."""
    with paired(profile) as client:
        result = client.get(request_id)
    console.result(result.raw, _lines(result.value))


@requests.command()
@click.argument("request_id", type=ID)
@profile_option
@pass_console
def cancel(console: Console, request_id: str, profile: str | None) -> None:
    """Take a request back; one that has ended stays as it is."""
    with paired(profile) as client:
        result = client.cancel(request_id)
    console.result(result.raw, _lines(result.value))


@requests.command()
@click.argument("request_id", type=ID)
@click.option("--for", "seconds", type=click.FloatRange(min=0), help="How long; default: until its end.")
@click.option(
    "--after-revision",
    type=click.IntRange(min=0, max=2**63 - 1),
    help="Return at the first news after this revision instead of waiting for the end.",
)
@profile_option
@pass_console
def wait(
    console: Console, request_id: str, seconds: float | None, after_revision: int | None, profile: str | None
) -> None:
    """Wait until a request has ended.

    Exit code 0: completed (with --after-revision also: there is news), 5: failed, 6: cancelled or expired,
    7: the time is over and the request goes on.
    """
    deadline = Deadline.after(seconds)
    with paired(profile) as client:
        result = _first_news(client, request_id, after_revision, deadline)
        while after_revision is None and not (is_terminal(result.value.state) or deadline.passed):
            result = _news(client, request_id, result.value.revision, deadline)
    _end_wait(console, result, news=after_revision is not None and result.value.revision > after_revision)


# -- create --------------------------------------------------------------------------------------------------------


def _read_request(source: str) -> CreateRequest:
    """The file as a message; raises CommandFailed, ParseError or InvalidValue (all of them exit 2)."""
    try:
        with click.open_file(source, "rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise invalid(f"the file cannot be read ({error.strerror})", field="--file") from None
    if len(content) > _LARGEST_FILE:
        raise invalid("the file is too long", field="--file", limit=_LARGEST_FILE)
    document = decode(content)
    if document.flaw is not None:
        raise InvalidValue(document.flaw.dotted, document.flaw.reason)
    return structure(CreateRequest, document.value)


def _with_key(request: CreateRequest) -> CreateRequest:
    if request.idempotency_key is not None:
        return request
    return attrs.evolve(request, idempotency_key=new_idempotency_key())


def _outcome_unknown(error: NotConnected, request: CreateRequest) -> CommandFailed:
    """With the key the caller can repeat the call, whatever became of it (CP-4.2)."""
    failure = failure_of(error)
    return CommandFailed(attrs.evolve(failure, details={"idempotencyKey": request.idempotency_key}))


# -- wait ----------------------------------------------------------------------------------------------------------


def _first_news(
    client: PairedClient, request_id: str, after_revision: int | None, deadline: Deadline
) -> Result[Snapshot]:
    if after_revision is None:
        return client.get(request_id)
    return _news(client, request_id, after_revision, deadline)


def _news(client: PairedClient, request_id: str, revision: int, deadline: Deadline) -> Result[Snapshot]:
    """The request once it has changed, or as it stands when the time is over."""
    found = client.wait(request_id, revision, deadline.remaining)
    raw = found.raw["request"] if isinstance(found.raw, dict) else None
    return Result(found.value.request, raw)


def _end_wait(console: Console, result: Result[Snapshot], *, news: bool) -> None:
    snapshot = result.value
    if (failure := _failure_of(snapshot, result.raw)) is not None:
        raise CommandFailed(failure)
    if not (is_terminal(snapshot.state) or news):
        message = "the time is over, and the request goes on"
        raise CommandFailed(
            Failure(
                exit=Exit.WAIT_TIMEOUT,
                code="WAIT_TIMEOUT",
                message=message,
                retryable=True,
                request=result.raw,
            )
        )
    console.result(result.raw, _lines(snapshot))


def _failure_of(snapshot: Snapshot, raw: JSON) -> Failure | None:
    """The failure that an ended request stands for; None when it was completed or has not ended (CP-6.5).  `raw` is
    the snapshot as it stood on the wire."""
    reason = f" ({snapshot.reason})" if snapshot.reason else ""
    match snapshot.state:
        case State.FAILED:
            exit_code, code = Exit.FAILED, "REQUEST_FAILED"
        case State.CANCELLED:
            exit_code, code = Exit.CANCELLED_OR_EXPIRED, "CANCELLED"
        case State.EXPIRED:
            exit_code, code = Exit.CANCELLED_OR_EXPIRED, "EXPIRED"
        case _:
            return None
    message = f"the request is {snapshot.state.value}{reason}"
    return Failure(exit=exit_code, code=code, message=message, request=raw)


def _lines(snapshot: Snapshot) -> Iterator[str]:
    reason = f" ({snapshot.reason})" if snapshot.reason else ""
    yield f"{snapshot.request_id}  {snapshot.capability}"
    yield f"{snapshot.state.value}{reason}, revision {snapshot.revision}"
    if is_terminal(snapshot.state):
        yield f"ended {snapshot.ended_at}"
    else:
        yield f"until {snapshot.deadline_at}"
    if snapshot.result is not None:
        yield f"result {compact(snapshot.result)}"
