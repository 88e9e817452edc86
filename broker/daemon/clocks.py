"""The three clocks of wire.md: elapsed time, awake time and wall time, injected wherever time is read.

What a platform calls its clocks differs, and the common names mislead: CLOCK_MONOTONIC stands still while
Linux sleeps, and goes on on macOS (where it is made from the wall clock, so the raw clocks are used there).

    clock     Linux             macOS                                        while the machine sleeps
    elapsed   CLOCK_BOOTTIME    CLOCK_MONOTONIC_RAW (mach_continuous_time)   goes on
    awake     CLOCK_MONOTONIC   CLOCK_UPTIME_RAW (mach_absolute_time)        stands still

Both count from the boot: their readings can be kept over a restart of the broker, but not of the machine.
`boot_id` tells which boot a reading belongs to.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import attrs

from handlers.rule import Now

WALL_SLACK_MS = 2
_NS_PER_MS = 1_000_000


class Clocks(Protocol):
    """Where the time comes from."""

    def now(self) -> Now: ...


@attrs.frozen
class ClockNames:
    """Which of the `time` module's clocks are elapsed and awake time."""

    elapsed: str
    awake: str


CLOCK_NAMES = {
    "linux": ClockNames(elapsed="CLOCK_BOOTTIME", awake="CLOCK_MONOTONIC"),
    "darwin": ClockNames(elapsed="CLOCK_MONOTONIC_RAW", awake="CLOCK_UPTIME_RAW"),
}


class SystemClocks:
    """The machine's clocks."""

    def __init__(self, platform: str = sys.platform) -> None:
        names = CLOCK_NAMES[platform]
        self._elapsed: int = getattr(time, names.elapsed)
        self._awake: int = getattr(time, names.awake)
        self._offset = (time.time_ns() - time.clock_gettime_ns(self._awake)) // _NS_PER_MS
        """From awake to wall time, in whole milliseconds."""

    def now(self) -> Now:
        """This instant; an awake instant is told in the same wall time each time, whatever rounding does.

        For that, wall time may be up to WALL_SLACK_MS away from the machine's.
        """
        awake, wall = time.clock_gettime_ns(self._awake), time.time_ns()
        elapsed, after = time.clock_gettime_ns(self._elapsed), time.clock_gettime_ns(self._awake)
        if (
            after - awake < _NS_PER_MS // 2
        ):  # else the thread was held up, and the readings do not belong together
            self._offset = _kept(self._offset, wall - awake)
        now = awake // _NS_PER_MS
        return Now(elapsed=elapsed // _NS_PER_MS, awake=now, wall=now + self._offset)


class ManualClocks:
    """Clocks that move only when they are told to: for tests and for runs in virtual time."""

    def __init__(self, now: Now | None = None) -> None:
        self._now = now or Now(elapsed=0, awake=0, wall=1_800_000_000_000)

    def now(self) -> Now:
        """The instant that was reached so far."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Time passes while the machine is awake."""
        self._move(elapsed=seconds, awake=seconds, wall=seconds)

    def sleep(self, seconds: float) -> None:
        """The machine sleeps: awake time stands still."""
        self._move(elapsed=seconds, wall=seconds)

    def reboot(self, off_seconds: float) -> None:
        """The machine is off for a while and starts again: what counts from the boot begins anew."""
        self._now = Now(elapsed=0, awake=0, wall=self._now.wall + _ms(off_seconds))

    def step_wall(self, seconds: float) -> None:
        """Somebody sets the wall clock, forwards or (negative) back."""
        self._move(wall=seconds)

    def _move(self, *, elapsed: float = 0, awake: float = 0, wall: float = 0) -> None:
        now = self._now
        self._now = Now(now.elapsed + _ms(elapsed), now.awake + _ms(awake), now.wall + _ms(wall))


def _kept(whole_ms: int, nanoseconds: int) -> int:
    """The difference of two clocks in whole milliseconds: as before, until that is off by one or more."""
    return whole_ms if abs(nanoseconds - whole_ms * _NS_PER_MS) < _NS_PER_MS else nanoseconds // _NS_PER_MS


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _linux_boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")


def _darwin_boot_id() -> str:
    command = ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=5).stdout


BOOT_IDS = {"linux": _linux_boot_id, "darwin": _darwin_boot_id}


def boot_id(read: Callable[[], str] = BOOT_IDS[sys.platform]) -> str:
    """The identity of this boot of the machine; equal as long as clock readings can be compared.

    Where the platform will not tell (a sandbox may hide it), a value that equals no other: persisted leases
    are then dropped as if the machine had been started anew, and the start-up hold does its job.
    """
    try:
        text = read().strip()
    except (OSError, subprocess.SubprocessError, ValueError):
        text = ""
    return text or f"unknown-{os.urandom(16).hex()}"
