"""A broker whose store fails when the test says so: `python -m tests.support.faulty_broker PLAN [ARGUMENTS]`.

PLAN names a file.  While it does not exist, this is the real broker.  Once it does, each call of the store is noted
in the file beside it and may come to an end:

    kill N            the process is SIGKILLed at the N-th call since the plan was made; none for N = 0
    die NAME          the process is SIGKILLed at the first call of this name
    fail CODE NAME    calls of this name (see broker/daemon/store.py) raise this error of SQLite

The test's end is `Faults`.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from functools import partial
from pathlib import Path
from unittest import mock

from broker.daemon import __main__ as daemon
from broker.daemon.app import Setup


def _calls_beside(plan: Path) -> Path:
    return plan.with_name(f"{plan.name}.calls")


class Faults:
    """Makes and lifts the plan, and reads what the store did under it."""

    def __init__(self, folder: Path) -> None:
        self._plan = folder / "plan"

    @property
    def command(self) -> tuple[str, ...]:
        """The command line of a broker under this plan."""
        return (sys.executable, "-m", "tests.support.faulty_broker", str(self._plan))

    def kill_at(self, number: int) -> None:
        """End the process at this call of the store, counted from 1."""
        self._make(f"kill {number}")

    def kill_at_call(self, name: str) -> None:
        """End the process at the next call of this name."""
        self._make(f"die {name}")

    def record(self) -> None:
        """Only note the calls."""
        self._make("kill 0")

    def fail(self, code: str, name: str) -> None:
        """Let the calls of one name fail with an error such as `SQLITE_FULL`."""
        self._make(f"fail {code} {name}")

    def lift(self) -> list[str]:
        """From now on the store works; the names of the calls that were made meanwhile."""
        self._plan.unlink(missing_ok=True)
        return self.calls()

    def calls(self) -> list[str]:
        """The names of the calls that were made under the plan so far."""
        try:
            return _calls_beside(self._plan).read_text().splitlines()
        except FileNotFoundError:
            return []

    def _make(self, plan: str) -> None:
        _calls_beside(self._plan).unlink(missing_ok=True)
        made = self._plan.with_name("plan.new")
        made.write_text(plan)
        made.replace(self._plan)  # the store must never read half a plan


class _Hook:
    """The store's `fault`."""

    def __init__(self, plan: Path) -> None:
        self._plan = plan
        self._count = 0

    def __call__(self, name: str) -> None:
        try:
            verb, what, *names = self._plan.read_text().split(" ", 2)
        except FileNotFoundError:
            self._count = 0
            return
        self._count += 1
        with _calls_beside(self._plan).open("a") as calls:
            calls.write(f"{name}\n")
        if (verb == "kill" and self._count == int(what)) or (
            verb == "die" and name == " ".join((what, *names))
        ):
            os.kill(os.getpid(), signal.SIGKILL)
        if verb == "fail" and name in names:
            error = sqlite3.OperationalError(f"{what} by plan")
            error.sqlite_errorcode = getattr(sqlite3, what)
            raise error


def main() -> int:
    """Run the real entry with the hook in place; its exit status."""
    setup = partial(Setup, fault=_Hook(Path(sys.argv[1])))
    with mock.patch.object(daemon, "Setup", setup):
        return daemon.main(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
