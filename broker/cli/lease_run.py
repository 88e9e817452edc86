"""`companion lease run`: a command with leases on apps for as long as it runs (LP-9, LP-10, LP-12).

One loop waits for the command's end, for signals to pass on, for the broker and for the next renewal.  The command
comes first: without a broker, after a refusal or after a lost connection it runs all the same, and stderr says so;
with `required` it does not start without its leases.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import attrs
import click

from broker.cli.child import Child
from broker.cli.command import ID, JsonCommand, Text
from broker.cli.console import Console, pass_console
from broker.cli.outcome import CommandFailed, Failure, failure
from broker.client.blocking.keeper import BlockingKeeper
from broker.client.errors import LeaseRefused, NotConnected
from broker.client.keeping import ANSWER_SECONDS, Hold, HolderIdentity
from broker.paths import find_paths
from protocols.json_values import JSON
from protocols.lease.codes import Code

_FINISH_SECONDS = 1.0


@attrs.frozen(kw_only=True)
class Run:
    """What to run and what to hold: see `lease run --help`."""

    command: tuple[str, ...]
    app_keys: tuple[str, ...]
    seconds: int | None
    why: str | None
    required: bool


@click.command(cls=JsonCommand, context_settings={"allow_interspersed_args": False})
@click.option(
    "--app", "apps", type=ID, multiple=True, required=True, metavar="KEY", help="The app; repeatable."
)
@click.option("--seconds", type=click.IntRange(min=1), help="The term of a lease; default: 600.")
@click.option("--required", is_flag=True, help="Do not run the command without its leases.")
@click.option("--why", type=Text(), metavar="TEXT", help="What the owner is shown as the holder's name.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
@pass_console
def run(
    console: Console,
    apps: tuple[str, ...],
    seconds: int | None,
    required: bool,
    why: str | None,
    command: tuple[str, ...],
) -> int:
    """Run COMMAND with a lease on each app for as long as it runs.

    The exit code is the command's own, 128 + number when a signal ended it, 127 or 126 when it cannot be run.
    Without a broker, or when the lease is refused, the command runs all the same and stderr says so; with
    --required the exit code is then 4 or 5.  With --json the command's stdout goes to stderr.
    """
    wanted = Run(
        command=command, app_keys=tuple(dict.fromkeys(apps)), seconds=seconds, why=why, required=required
    )
    return run_with_leases(wanted, find_paths().lease_socket, console)


def run_with_leases(wanted: Run, path: Path, console: Console) -> int:
    """Run the command with leases over the socket at `path`; gives the command's exit status."""
    keeper = BlockingKeeper(path, _holder(wanted), console.note)
    for app_key in wanted.app_keys:
        keeper.hold(Hold(app_key, wanted.seconds))
    keeper.settle(ANSWER_SECONDS)
    try:
        _tell_what_is_missing(keeper, wanted, console)
        status = _run(wanted.command, keeper, console)
        leases: list[JSON] = [{"appKey": hold.app_key, "code": _code(hold, keeper)} for hold in keeper.holds]
    finally:
        keeper.finish(_FINISH_SECONDS)
    if console.json:
        console.result({"leases": leases, "exitStatus": status}, ())
    return status


def _holder(wanted: Run) -> HolderIdentity:
    """A holder id that stands for this run alone, so that two runs of one command are two holders."""
    name = wanted.why or f"lease run: {Path(wanted.command[0]).name}"
    printable = name.encode("utf-8", "replace").decode("utf-8")[:128]
    return HolderIdentity(f"lease-run-{os.getpid()}-{os.urandom(8).hex()}", printable, os.getpid())


def _tell_what_is_missing(keeper: BlockingKeeper, wanted: Run, console: Console) -> None:
    """Say which apps are not protected; raises the first failure when leases are required."""
    if keeper.failure is not None:
        if wanted.required:
            raise keeper.failure
        why = "no broker answers" if isinstance(keeper.failure, NotConnected) else str(keeper.failure)
        console.note(f"companion: running without a lease: {why}")
        return
    for hold in keeper.holds:
        if not hold.held:
            refused = hold.refused or NotConnected("the broker did not answer in time")
            if wanted.required:
                raise refused
            console.note(f"companion: running without a lease on {hold.app_key}: {refused}")


def _run(command: Sequence[str], keeper: BlockingKeeper, console: Console) -> int:
    stdout = sys.stderr if console.json else None  # stdout is for one JSON value
    try:
        child = Child(command, stdout)
    except OSError as error:
        raise CommandFailed(_not_started(error)) from None
    with child:
        while (status := child.status) is None:
            _wait(child, keeper)
            child.pass_signals_on()
            keeper.step()
    return status


def _wait(child: Child, keeper: BlockingKeeper) -> None:
    """Until something happens or is due."""
    poll = select.poll()
    poll.register(child, select.POLLIN)
    if keeper.channel is not None:
        poll.register(keeper.channel, select.POLLIN)
    seconds = keeper.wake_at - time.monotonic()
    poll.poll(None if seconds == float("inf") else max(0.0, seconds * 1000))


def _not_started(error: OSError) -> Failure:
    """The exit codes by which shells, env and timeout tell that a command could not be run: 126 and 127."""
    missing = isinstance(error, FileNotFoundError)
    message = f"the command cannot be run ({error.strerror})"
    return failure("COMMAND_NOT_FOUND" if missing else "COMMAND_NOT_RUN", message)


def _code(hold: Hold, keeper: BlockingKeeper) -> str:
    """How an app's lease stood when the command ended: `accepted`, the code of a refusal, or NOT_CONNECTED."""
    if keeper.failure is not None:
        return keeper.failure.code if isinstance(keeper.failure, LeaseRefused) else "NOT_CONNECTED"
    if hold.refused is not None:
        return hold.refused.code
    return Code.ACCEPTED.value if hold.held else "NOT_CONNECTED"
