"""The three clocks: which system clock is which, and what sleep and a stepped wall clock do to them."""

from __future__ import annotations

import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from broker.daemon.clocks import (
    BOOT_IDS,
    CLOCK_NAMES,
    WALL_SLACK_MS,
    Clocks,
    ManualClocks,
    SystemClocks,
    boot_id,
)
from handlers.rule import Now

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_now_lies_between_two_readings_of_the_named_clocks() -> None:
    names = CLOCK_NAMES[sys.platform]

    def read() -> list[int]:
        kinds = [getattr(time, names.elapsed), getattr(time, names.awake), time.CLOCK_REALTIME]
        return [time.clock_gettime_ns(kind) // 1_000_000 for kind in kinds]

    before, now, after = read(), SystemClocks().now(), read()
    readings = [now.elapsed, now.awake, now.wall]
    slack = [0, 0, WALL_SLACK_MS]  # wall time is told through awake time
    bounds = zip(before, readings, after, slack, strict=True)
    assert all(low - more <= reading <= high + more for low, reading, high, more in bounds)


@linux_only
def test_elapsed_time_is_what_linux_calls_uptime_and_counts_sleep() -> None:
    uptime = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    assert SystemClocks().now().elapsed == pytest.approx(uptime * 1000, abs=2000)


def test_awake_time_is_never_ahead_of_elapsed_time() -> None:
    now = SystemClocks().now()
    assert now.awake <= now.elapsed


def test_macos_takes_the_raw_clocks() -> None:
    """Recorded from clock_gettime(3) of macOS 10.12 and later; it was not run there."""
    assert CLOCK_NAMES["darwin"].elapsed == "CLOCK_MONOTONIC_RAW"  # mach_continuous_time: goes on in sleep
    assert CLOCK_NAMES["darwin"].awake == "CLOCK_UPTIME_RAW"  # mach_absolute_time: stands still in sleep


def test_manual_clocks_move_only_when_told() -> None:
    clocks = ManualClocks(Now(elapsed=1, awake=2, wall=3))
    assert clocks.now() == clocks.now() == Now(elapsed=1, awake=2, wall=3)
    clocks.advance(1.5)
    assert clocks.now() == Now(elapsed=1501, awake=1502, wall=1503)


def test_sleep_moves_all_but_awake_time() -> None:
    clocks = ManualClocks(Now(elapsed=0, awake=0, wall=0))
    clocks.sleep(60)
    assert clocks.now() == Now(elapsed=60_000, awake=0, wall=60_000)


def test_a_step_of_the_wall_clock_moves_nothing_else() -> None:
    clocks = ManualClocks(Now(elapsed=5, awake=5, wall=5_000))
    clocks.step_wall(-3)
    assert clocks.now() == Now(elapsed=5, awake=5, wall=2_000)


def test_both_are_clocks() -> None:
    both: list[Clocks] = [SystemClocks(), ManualClocks()]
    assert all(clocks.now().wall > 0 for clocks in both)


def test_a_boot_keeps_its_id() -> None:
    assert boot_id() == boot_id()
    assert not boot_id().startswith("unknown")


def test_a_boot_that_cannot_be_named_equals_no_other() -> None:
    def hidden() -> str:
        raise PermissionError

    assert boot_id(hidden) != boot_id(hidden)
    assert boot_id(lambda: "\n") != boot_id(lambda: "\n")


def test_the_line_break_is_no_part_of_the_boot_id() -> None:
    assert boot_id(lambda: "1F2E\n") == "1F2E"
    assert set(BOOT_IDS) == set(CLOCK_NAMES)


def test_an_awake_instant_is_told_in_the_same_wall_time_again_and_again() -> None:
    clocks = SystemClocks()
    offsets = [(now := clocks.now()).wall - now.awake for _ in range(20_000)]
    assert (
        sum(one != other for one, other in pairwise(offsets)) <= 2
    )  # the machine's clock may be set meanwhile
