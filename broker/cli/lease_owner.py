"""`companion lease list`, `may-close`, `quit-done`, `quit-abandoned`: the owner asks about leases (lease.md)."""

from __future__ import annotations

from collections.abc import Iterator

import click

from broker.cli.command import ID, JsonCommand
from broker.cli.console import Console, pass_console
from broker.cli.control import control
from broker.cli.outcome import Exit, Failure, failure
from broker.cli.pages import whole_list
from protocols.control.leases import (
    LeaseList,
    ListedLease,
    ListLeases,
    MayClose,
    MayCloseResult,
    QuitAbandoned,
    QuitDone,
    QuitEnded,
    Reason,
)


@click.command(name="list", cls=JsonCommand)
@pass_console
def list_leases(console: Console) -> None:
    """List the leases that are active, in grace, or over and not ended."""
    with control() as connection:
        pages, raw = whole_list(connection, "leases.list", ListLeases, LeaseList)
    console.result(raw, (_line(one) for page in pages for one in page.leases))


@click.command(cls=JsonCommand)
@click.argument("app_key", metavar="KEY", type=ID)
@click.option(
    "--reserve", is_flag=True, help="Commit the quit: nobody gets a lease until the ticket is void."
)
@pass_console
def may_close(console: Console, app_key: str, reserve: bool) -> int:
    """Ask whether an app may be closed now: exit code 0 yes, 5 no.

    Holders whose lease ran out may be asked first, which takes a few seconds.
    """
    with control() as connection:
        answer = connection.call(
            "leases.may_close", MayClose(app_key=app_key, reserve=reserve), _MAY_CLOSE_SECONDS
        )
    assert isinstance(answer.result, MayCloseResult)
    if answer.result.allowed:
        console.result(answer.raw, _verdict(answer.result))
        return Exit.DONE
    kept = _must_stay_open(answer.result)
    if console.json:
        console.note(f"companion: {kept.message}")
    assert isinstance(answer.raw, dict)
    console.result(kept.as_json() | answer.raw, _verdict(answer.result))
    return kept.exit


@click.command(cls=JsonCommand)
@click.argument("ticket", type=ID)
@pass_console
def quit_done(console: Console, ticket: str) -> None:
    """Say that the reserved quit has happened."""
    _end_quit(console, "leases.quit_done", QuitDone(ticket=ticket))


@click.command(cls=JsonCommand)
@click.argument("ticket", type=ID)
@pass_console
def quit_abandoned(console: Console, ticket: str) -> None:
    """Say that the reserved quit will not happen."""
    _end_quit(console, "leases.quit_abandoned", QuitAbandoned(ticket=ticket))


_MAY_CLOSE_SECONDS = 30.0
"""A close check takes as long as the owner's configuration says, 3 s by default."""


def _end_quit(console: Console, method: str, params: QuitDone | QuitAbandoned) -> None:
    with control() as connection:
        answer = connection.call(method, params)
    assert isinstance(answer.result, QuitEnded)
    console.result(answer.raw, [f"the ticket for {answer.result.app_key} is void"])


def _line(one: ListedLease) -> str:
    reason = f" ({one.reason})" if one.reason else ""
    return f"{one.app_key}  {one.state}{reason}  until {one.expires_at}  {one.client_name}, pid {one.pid}"


def _must_stay_open(result: MayCloseResult) -> Failure:
    """The verdict as a failure too: an exit code that is not 0 has a code (CP-6.6)."""
    if result.reason is Reason.UNKNOWN_APP:
        return failure("unknown_app", "must stay open (unknown_app)")
    return failure("MUST_STAY_OPEN", f"must stay open ({result.reason.value})")


def _verdict(result: MayCloseResult) -> Iterator[str]:
    yield f"{'may be closed' if result.allowed else 'must stay open'}: {result.reason.value}"
    if result.ticket is not None:
        yield f"ticket {result.ticket}, good for {result.valid_seconds} s"
    if result.retry_after_seconds is not None:
        yield f"ask again in {result.retry_after_seconds} s"
    for holder in result.holders:
        yield f"{holder.client_name}, pid {holder.pid}: {holder.state}, until {holder.expires_at}"
    if result.holders_total > len(result.holders):
        yield f"{result.holders_total} holders in all"
