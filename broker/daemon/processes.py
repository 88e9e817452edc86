"""Which process is it, does it live, whose child is it, and tell me when it dies.

A process is identified by pid and start time, so that a number that was given again is never taken for the old
process.  A zombie is dead (G24).  What cannot be found out is never a death: a holder that we may not look at
keeps its lease.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator

import trio

from broker.daemon.process_table import TABLE, Facts, ProcessTable
from protocols.process import ProcessId


def identify(pid: int, table: ProcessTable = TABLE) -> ProcessId | None:
    """The living process that has this pid now; None when it is gone, a zombie, or not to be looked at."""
    try:
        facts = table.look(pid)
    except OSError:
        return None
    return None if facts is None else facts.process


def is_alive(process: ProcessId, table: ProcessTable = TABLE) -> bool:
    """Whether the process still runs, as far as can be told; False only if it surely does not."""
    try:
        facts = table.look(process.pid)
    except OSError:
        return True
    return facts is not None and facts.process == process


def find_ancestor(pid: int, of: ProcessId, table: ProcessTable = TABLE) -> ProcessId | None:
    """The process with this pid if it is `of` or one of its ancestors, else None (lease.md, hello).

    It must run as the same effective user; pid 1 is nobody's ancestor, since it adopts every orphan.
    """
    try:
        for process in _lineage(of, table):
            if process.pid == pid:
                return process if table.uid(pid) == table.uid(of.pid) else None
    except OSError:
        pass
    return None


def _lineage(process: ProcessId, table: ProcessTable) -> Iterator[ProcessId]:
    facts = table.look(process.pid)
    if facts is None or facts.process != process:
        return
    while facts is not None and facts.process.pid > 1:
        yield facts.process
        facts = _parent(facts, table)


def _parent(child: Facts, table: ProcessTable) -> Facts | None:
    parent = table.look(child.parent)
    # Had the parent died and its pid been given away before that look, the child would have a new parent by now.
    return parent if table.look(child.process.pid) == child else None


def program_of(process: ProcessId, table: ProcessTable = TABLE) -> str | None:
    """The path of the program that the process runs, as the kernel knows it; None when that cannot be told.

    Bytes that are not UTF-8 are written as `\\xNN`, so that the text fits into every message.
    """
    try:
        program = table.program(process.pid)
    except OSError:
        return None
    return program if is_alive(process, table) else None


def open_pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when the process has died; None where that cannot be had."""
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:  # the kernel is too old, the process is gone, or descriptors are used up
        return None


class ProcessWatch:
    """Calls `died` once for each watched process that has died; a zombie has.

    `watch` and `unwatch` may be called at any time, `died` is called from a task of `run` only.  One task a
    process: it waits for a pidfd, or looks every `poll_seconds` where there is none.  Descriptors are closed when
    the process has died, when it is no longer watched, and when `run` is cancelled.
    """

    def __init__(
        self,
        died: Callable[[ProcessId], None],
        *,
        poll_seconds: float = 1.0,
        pidfd: Callable[[int], int | None] = open_pidfd,
        alive: Callable[[ProcessId], bool] = is_alive,
    ) -> None:
        self._died = died
        self._poll_seconds = poll_seconds
        self._pidfd = pidfd
        self._alive = alive
        self._scopes: dict[ProcessId, trio.CancelScope] = {}
        self._nursery: trio.Nursery | None = None

    def watch(self, process: ProcessId) -> None:
        """Tell of this process's death, also if it is dead already; watching twice is watching once."""
        if process in self._scopes:
            return
        self._scopes[process] = scope = trio.CancelScope()
        if self._nursery is not None:
            self._nursery.start_soon(self._follow, process, scope)

    def unwatch(self, process: ProcessId) -> None:
        """Do not tell of it any more."""
        if scope := self._scopes.pop(process, None):
            scope.cancel()

    async def run(self) -> None:
        """Watch for ever."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            for process, scope in self._scopes.items():
                nursery.start_soon(self._follow, process, scope)
            try:
                await trio.sleep_forever()
            finally:
                self._nursery = None

    async def _follow(self, process: ProcessId, scope: trio.CancelScope) -> None:
        with scope:
            await self._death(process)
        if self._scopes.get(process) is scope:  # not unwatched meanwhile
            del self._scopes[process]
            self._died(process)

    async def _death(self, process: ProcessId) -> None:
        fd = self._pidfd(process.pid)
        if fd is None:
            while self._alive(process):  # noqa: ASYNC110  # nothing tells of it, so it has to be asked for
                await trio.sleep(self._poll_seconds)
            return
        try:
            # Only now is it sure that the descriptor is that of the process, not of a later one with its pid.
            if self._alive(process):
                await trio.lowlevel.wait_readable(fd)
        finally:
            os.close(fd)
