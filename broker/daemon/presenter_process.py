"""Runs the presenter: a child process with one end of a socketpair, so that nobody else can attach.

The broker's end is served like any connection, under the presenter's engine.  A presenter that ends is started
again with a growing delay; one that has lived for a while starts over with the shortest (presenter.md, Death).
Its standard error goes to the broker's; at the end it is asked to go by the closed socket, then by SIGTERM.
"""

from __future__ import annotations

import os
import shlex
import signal
import socket
import sys
from collections.abc import Callable, Sequence

import trio

from broker.daemon.connection import Connection
from broker.daemon.errors import StartRefused
from broker.daemon.logs import Log

FD_VARIABLE = "COMPANION_PRESENTER_FD"
_DELAYS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_SETTLED_SECONDS = 10.0
_LEAVE_SECONDS = 1.0
"""How long a presenter has to do what it was asked to, before it is asked in a harder way."""

Admit = Callable[[socket.socket], Connection | None]


def settled(kind: str) -> str:
    """The kind that is meant: `auto` is the terminal where somebody sits at one, else none."""
    if kind != "auto":
        return kind
    return "terminal" if sys.stdin.isatty() and sys.stderr.isatty() else "none"


def published(kind: str) -> str:
    """The kind as clients may read it: the command of an `exec:` is not for them."""
    return settled(kind).partition(":")[0]


def command_of(kind: str) -> Sequence[str] | None:
    """The command line of a presenter kind: None for `none`; StartRefused for a kind that does not exist."""
    kind = settled(kind)
    if kind == "none":
        return None
    if kind == "terminal":
        return [sys.executable, "-m", "broker.presenters.terminal"]
    if kind.startswith("exec:"):
        try:
            words = shlex.split(kind.removeprefix("exec:"))
        except ValueError:
            words = []
        if words and "\0" not in kind:
            return words
        raise StartRefused("presenter.kind", "the command of exec: cannot be split into words")
    raise StartRefused("presenter.kind", "must be auto, terminal, none or exec:COMMAND")


async def keep_presenter(command: Sequence[str], admit: Admit, log: Log) -> None:
    """Run the presenter for ever, starting it again whenever it ends."""
    attempt = 0
    while True:
        started = trio.current_time()
        try:
            code = await _run_once(command, admit)
        except OSError:
            log.warning("presenter_not_started", attempt=attempt)
        else:
            log.warning("presenter_ended", code=code, attempt=attempt)
        attempt = 0 if trio.current_time() - started > _SETTLED_SECONDS else attempt + 1
        await trio.sleep(_DELAYS[min(attempt, len(_DELAYS) - 1)])


async def _run_once(command: Sequence[str], admit: Admit) -> int:
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            process = await _start(command, theirs)
    except BaseException:
        ours.close()
        raise
    connection: Connection | None = None
    try:
        ours.setblocking(False)
        if (connection := admit(ours)) is not None:
            await _until_either_ends(process, connection)
        return await _leave(process)
    finally:
        with trio.CancelScope(shield=True):
            if connection is None:
                ours.close()
            else:
                connection.hang_up()
            await _leave(process)


async def _start(command: Sequence[str], end: socket.socket) -> trio.Process:
    environment = {**os.environ, FD_VARIABLE: str(end.fileno())}
    process = await trio.lowlevel.open_process(command, pass_fds=[end.fileno()], env=environment)
    assert isinstance(process, trio.Process)
    return process


async def _until_either_ends(process: trio.Process, connection: Connection) -> None:
    """Wait until the presenter has closed its socket or has died, whatever then still runs or holds the socket."""

    async def process_ends() -> None:
        await process.wait()
        with trio.move_on_after(_LEAVE_SECONDS):  # its last words may still be on their way
            await connection.ended.wait()
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(process_ends)
        await connection.ended.wait()
        nursery.cancel_scope.cancel()


async def _leave(process: trio.Process) -> int:
    """Give the process a moment to end by itself, then ask it to; it is our own child."""
    for ask in (None, signal.SIGTERM, signal.SIGKILL):
        if ask is not None:
            process.send_signal(ask)
        with trio.move_on_after(_LEAVE_SECONDS):
            return await process.wait()
    return await process.wait()
