"""What the kernel tells about a process: on Linux from /proc, elsewhere through psutil.

psutil would do on Linux too, but its start time there is derived from the wall clock, and importing it costs more
than everything that is read here.
"""

from __future__ import annotations

import os
import sys
from typing import Protocol

import attrs

from protocols.process import ProcessId


@attrs.frozen
class Facts:
    """A living process and the pid of its parent."""

    process: ProcessId
    parent: int


class ProcessTable(Protocol):
    """The processes of the machine.  Any method may raise OSError: nothing is known then, least of all a death."""

    def look(self, pid: int) -> Facts | None:
        """The living process with this pid; None when there is none, or only a zombie."""
        ...

    def uid(self, pid: int) -> int:
        """The effective user of the process."""
        ...

    def program(self, pid: int) -> str:
        """The path of the executable, as the kernel names it."""
        ...


class ProcFs:
    """The /proc file system of Linux."""

    def look(self, pid: int) -> Facts | None:
        """See ProcessTable."""
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                return parse_stat(pid, file.read())
        except (FileNotFoundError, ProcessLookupError):
            return None

    def uid(self, pid: int) -> int:
        """From the status text: the owner of the /proc directory is root for processes that cannot be dumped."""
        with open(f"/proc/{pid}/status", "rb") as file:
            return parse_effective_uid(file.read())

    def program(self, pid: int) -> str:
        """As the link of /proc says it: `" (deleted)"` is appended when the file has been replaced or removed."""
        return os.readlink(os.fsencode(f"/proc/{pid}/exe")).decode(errors="backslashreplace")


def parse_stat(pid: int, stat: bytes) -> Facts | None:
    """Read a line of /proc/PID/stat; the name in it may hold blanks and brackets, so count from the last one.

    A process is dead once it is a zombie without further threads: a main thread that has ended while others go on
    looks like a zombie too.
    """
    state, parent, *rest = stat[stat.rindex(b")") + 1 :].split()  # from field 3 on
    threads, started = int(rest[15]), rest[17]  # fields 20 and 22
    if state in (b"Z", b"X", b"x") and threads <= 1:
        return None
    return Facts(ProcessId(pid, started.decode()), int(parent))


def parse_effective_uid(status: bytes) -> int:
    """Read the second number of the Uid line of /proc/PID/status."""
    line = next(line for line in status.splitlines() if line.startswith(b"Uid:"))
    return int(line.split()[2])


class PsutilTable:
    """Where there is no /proc: macOS."""

    def look(self, pid: int) -> Facts | None:
        """See ProcessTable.

        The start time is not `create_time()`, which moves with the wall clock on macOS, but what psutil itself
        tells processes apart by: the hash of (pid, start time as the kernel has it).
        """
        import psutil

        try:
            process = psutil.Process(pid)
            if process.status() == psutil.STATUS_ZOMBIE:
                return None
            return Facts(ProcessId(pid, str(hash(process))), process.ppid())
        except (psutil.NoSuchProcess, ValueError):
            return None
        except psutil.AccessDenied as error:
            raise PermissionError from error

    def uid(self, pid: int) -> int:
        """See ProcessTable."""
        import psutil

        try:
            return int(psutil.Process(pid).uids().effective)
        except psutil.Error as error:
            raise OSError from error

    def program(self, pid: int) -> str:
        """See ProcessTable."""
        import psutil

        try:
            return os.fsencode(psutil.Process(pid).exe()).decode(errors="backslashreplace")
        except psutil.Error as error:
            raise OSError from error


TABLE: ProcessTable = ProcFs() if sys.platform == "linux" else PsutilTable()
