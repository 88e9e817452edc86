"""`companion requests`: make a request, look at it, wait for its end, take it back (CP-6.1, CP-6.2)."""

from __future__ import annotations

import click

from broker.cli.command import ID, JsonGroup, Seconds
from broker.cli.console import Console, pass_console
from broker.cli.ends import check_end, create_request, news, snapshot_lines, until_end
from broker.cli.files import read_json
from broker.cli.outcome import CommandFailed, failure
from broker.cli.profiles import paired, profile_option
from broker.cli.update import update
from broker.client.blocking.stream import Deadline
from broker.client.plan import Result
from protocols.companion.messages import CreateRequest, Snapshot
from protocols.companion.states import is_terminal
from protocols.structure import structure


@click.group(cls=JsonGroup)
def requests() -> None:
    """Make requests and follow them."""


requests.add_command(update)


@requests.command()
@click.option("--file", "source", required=True, metavar="FILE", help="JSON with the parameters; - is stdin.")
@profile_option
@pass_console
def create(console: Console, source: str, profile: str | None) -> None:
    """Make a request from the parameters of requests.create.

    Exit code 0 says that it was accepted, nothing more.  Without an idempotencyKey in the file one is made, so that
    the call can be repeated without asking the person twice.
    """
    request = structure(CreateRequest, read_json(source))
    with paired(profile) as client:
        result = create_request(client, request)
    console.result(result.raw, snapshot_lines(result.value))


@requests.command()
@click.argument("request_id", type=ID)
@profile_option
@pass_console
def get(console: Console, request_id: str, profile: str | None) -> None:
    """Show how a request stands."""
    with paired(profile) as client:
        result = client.get(request_id)
    console.result(result.raw, snapshot_lines(result.value))


@requests.command()
@click.argument("request_id", type=ID)
@profile_option
@pass_console
def cancel(console: Console, request_id: str, profile: str | None) -> None:
    """Take a request back; one that has ended stays as it is."""
    with paired(profile) as client:
        result = client.cancel(request_id)
    console.result(result.raw, snapshot_lines(result.value))


@requests.command()
@click.argument("request_id", type=ID)
@click.option(
    "--for", "seconds", type=Seconds(0), metavar="SECONDS", help="How long to wait; default: until its end."
)
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
        if after_revision is None:
            result = until_end(client, client.get(request_id), deadline)
        else:
            result = news(client, request_id, after_revision, deadline)
    is_news = after_revision is not None and result.value.revision > after_revision
    _end_wait(console, result, is_news=is_news)


# -- wait ----------------------------------------------------------------------------------------------------------


def _end_wait(console: Console, result: Result[Snapshot], *, is_news: bool) -> None:
    check_end(result)
    if not (is_terminal(result.value.state) or is_news):
        message = "the time is over, and the request goes on"
        raise CommandFailed(failure("WAIT_TIMEOUT", message, request=result.raw))
    console.result(result.raw, snapshot_lines(result.value))
