"""Starts two brokers at the same moment: each line on standard input is a folder, in which both are started.

They are children of one process that has loaded everything already, so that they race for the lock and not for
the disk cache.  For each folder one line is printed: the exit status of the one that has ended.  The other is then
sent the signal that the next line names (SIGKILL at the end of input), and its exit status is printed.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from broker.daemon.__main__ import main


def start(folder: Path, gate: int, other_end: int) -> int:
    """Fork a broker that begins when the gate's other end is closed."""
    pid = os.fork()
    if pid:
        return pid
    os.close(other_end)
    os.environ |= {
        "COMPANION_RUNTIME_DIR": str(folder / "run"),
        "COMPANION_STATE_DIR": str(folder / "state"),
        "COMPANION_CONFIG": str(folder / "config.toml"),
    }
    status = 1
    try:
        os.read(gate, 1)
        status = main(["--presenter", "none"])
    finally:
        os._exit(status)


def race(folder: Path) -> None:
    gate, other_end = os.pipe()
    pids = {start(folder, gate, other_end) for _ in range(2)}
    os.close(gate)
    os.close(other_end)
    loser, status = os.wait()
    (winner,) = pids - {loser}
    print(os.waitstatus_to_exitcode(status), flush=True)
    os.kill(winner, signal.Signals[sys.stdin.readline().strip() or "SIGKILL"])
    print(os.waitstatus_to_exitcode(os.waitpid(winner, 0)[1]), flush=True)


if __name__ == "__main__":
    while line := sys.stdin.readline():
        race(Path(line.rstrip("\n")))
