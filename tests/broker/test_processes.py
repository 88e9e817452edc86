"""Processes: identity beyond the pid, zombies, ancestors, programs.  All with real processes, on both tables."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import attrs
import pytest

from broker.daemon.process_table import (
    Facts,
    ProcessTable,
    ProcFs,
    PsutilTable,
    parse_effective_uid,
    parse_stat,
)
from broker.daemon.processes import find_ancestor, identify, is_alive, program_of
from protocols.process import ProcessId
from tests.support.children import child, kill_uncollected, read_line

TABLES: list[ProcessTable] = [PsutilTable()] + ([ProcFs()] if sys.platform == "linux" else [])
each_table = pytest.mark.parametrize("table", TABLES, ids=lambda table: type(table).__name__)
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root may start processes of another user")
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="Linux only")


class Hidden:
    """A table that may not look at anything."""

    def look(self, pid: int) -> Facts | None:
        raise PermissionError

    def uid(self, pid: int) -> int:
        raise PermissionError

    def program(self, pid: int) -> str:
        raise PermissionError


def identity(pid: int, table: ProcessTable) -> ProcessId:
    found = identify(pid, table)
    assert found is not None
    return found


@each_table
def test_a_process_keeps_its_identity_while_it_lives(table: ProcessTable) -> None:
    with child() as process:
        found = identity(process.pid, table)
        assert found.pid == process.pid
        assert identify(process.pid, table) == found
        assert is_alive(found, table)


@each_table
@pytest.mark.requirement("G24")
def test_a_process_that_nobody_has_collected_is_dead(table: ProcessTable) -> None:
    with child() as process:
        found = identity(process.pid, table)
        kill_uncollected(process)
        os.kill(process.pid, 0)  # the pid still exists
        assert not is_alive(found, table)
        assert identify(process.pid, table) is None


@each_table
def test_a_process_that_was_collected_is_dead(table: ProcessTable) -> None:
    with child() as process:
        found = identity(process.pid, table)
    assert not is_alive(found, table)
    assert identify(process.pid, table) is None


@each_table
def test_a_pid_that_was_given_again_is_not_the_old_process(table: ProcessTable) -> None:
    with child() as process:
        former = attrs.evolve(identity(process.pid, table), started="1")
        assert not is_alive(former, table)
        assert find_ancestor(os.getpid(), former, table) is None


@each_table
@pytest.mark.parametrize("pid", [-1, 0, 2**31, 2**63 - 1])
def test_a_pid_that_cannot_be_is_nobody(table: ProcessTable, pid: int) -> None:
    assert identify(pid, table) is None or (pid == 0 and sys.platform == "darwin")


def test_what_may_not_be_looked_at_counts_as_alive_and_is_nobodys_ancestor() -> None:
    process = ProcessId(7, "1")
    assert is_alive(process, Hidden())
    assert identify(7, Hidden()) is None
    assert find_ancestor(7, process, Hidden()) is None
    assert program_of(process, Hidden()) is None


@each_table
def test_a_process_and_those_above_it_are_its_ancestors(table: ProcessTable) -> None:
    with child(["sh", "-c", "sleep 60 & echo $!; wait"]) as shell:
        grandchild = identity(int(read_line(shell)), table)
        assert find_ancestor(grandchild.pid, grandchild, table) == grandchild
        assert find_ancestor(shell.pid, grandchild, table) == identity(shell.pid, table)
        assert find_ancestor(os.getpid(), grandchild, table) is not None
        assert find_ancestor(grandchild.pid, identity(shell.pid, table), table) is None
        os.kill(grandchild.pid, 9)


@each_table
def test_a_brother_is_no_ancestor(table: ProcessTable) -> None:
    with child() as one, child() as other:
        assert find_ancestor(one.pid, identity(other.pid, table), table) is None


@each_table
@pytest.mark.parametrize("pid", [1, 0, -1])
def test_process_1_is_nobodys_ancestor(table: ProcessTable, pid: int) -> None:
    with child() as process:
        assert find_ancestor(pid, identity(process.pid, table), table) is None


@each_table
@root_only
def test_a_process_of_another_user_is_no_ancestor(table: ProcessTable) -> None:
    with child(user=65534) as process:
        own = identity(process.pid, table)
        assert find_ancestor(process.pid, own, table) is not None
        assert find_ancestor(os.getpid(), own, table) is None


@each_table
def test_the_program_is_the_one_that_the_kernel_runs(table: ProcessTable) -> None:
    with child([sys.executable, "-c", "input()"]) as process:
        found = identity(process.pid, table)
        assert program_of(found, table) == str(Path(sys.executable).resolve())
        assert program_of(attrs.evolve(found, started="1"), table) is None
    assert program_of(found, table) is None


@linux_only
def test_a_process_whose_main_thread_has_ended_is_alive() -> None:
    script = (
        "import ctypes, threading, time\n"
        "threading.Thread(target=time.sleep, args=(60,)).start()\n"
        "print('up', flush=True)\n"
        "ctypes.CDLL(None).syscall(60, 0)\n"  # exit, of this thread only
    )
    if os.uname().machine != "x86_64":
        pytest.skip("the number of the system call is that of x86-64")
    with child([sys.executable, "-c", script]) as process:
        read_line(process)
        stat = Path(f"/proc/{process.pid}/stat")
        while stat.read_bytes().rpartition(b") ")[2][:1] != b"Z":
            pass
        found = identify(process.pid)
        assert found is not None
        assert is_alive(found)


class Orphaning:
    """A child whose parent, 2, dies at the moment at which it is looked at; a stranger has that pid then."""

    def __init__(self) -> None:
        self._parent = 2

    def look(self, pid: int) -> Facts | None:
        if pid == 3:
            return Facts(ProcessId(3, "30"), self._parent)
        self._parent = 1
        return Facts(ProcessId(pid, "40"), 1)

    def uid(self, pid: int) -> int:
        return 0

    def program(self, pid: int) -> str:
        raise PermissionError


def test_a_stranger_with_the_pid_of_a_dead_parent_is_no_ancestor() -> None:
    assert find_ancestor(2, ProcessId(3, "30"), Orphaning()) is None


STAT = (
    b"812 (a) Z (b 7) S 640 812 640 0 -1 4194304 101 0 0 0 0 0 0 0 20 0 1 0 134589 3133440 384 1844674407370955 "
    b"9 9 1 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 9 9 9 1 1 1 1 0\n"
)


def test_a_program_name_with_blanks_and_brackets_does_not_shift_the_fields() -> None:
    assert parse_stat(812, STAT) == Facts(ProcessId(812, "134589"), parent=640)


@pytest.mark.parametrize("state", [b"Z", b"X"])
def test_a_recorded_zombie_is_no_process(state: bytes) -> None:
    assert parse_stat(812, STAT.replace(b") S ", b") " + state + b" ")) is None


def test_the_effective_user_is_the_second_of_the_four() -> None:
    assert parse_effective_uid(b"Name:\tx\nUmask:\t0022\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n") == 2
