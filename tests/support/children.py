"""Real child processes for tests: each is killed and collected when its block ends."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from broker.daemon.processes import identify
from protocols.process import ProcessId

SLEEP = ("sleep", "60")


@contextmanager
def child(command: Sequence[str] = SLEEP, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A running child with pipes for standard input and output."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **(pipes | options)) as process:
        try:
            yield process
        finally:
            process.kill()


def identity(process: subprocess.Popen[str]) -> ProcessId:
    """Its identity; it must be alive."""
    found = identify(process.pid)
    assert found is not None
    return found


def kill_uncollected(process: subprocess.Popen[str]) -> None:
    """Kill it and wait until it is a zombie, which it stays."""
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


def read_line(process: subprocess.Popen[str]) -> str:
    """The next line that it prints, without the line break."""
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


def write_line(process: subprocess.Popen[str], line: str) -> None:
    """Give it one line on standard input."""
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()
