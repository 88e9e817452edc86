"""Leases from the command line: a command that runs with them, and the owner's questions."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from broker.client.blocking.control import ControlConnection
from protocols.control.leases import ListLeases, MayClose, MayCloseResult, Reason
from tests.cli.conftest import COMMAND, CommandLine, one_value
from tests.support.broker_process import BrokerProcess

APP = "org.example.App"
RUN = ("lease", "run", "--app", APP)
FREE = {"allowed": True, "reason": "free", "holders": [], "holdersTotal": 0}


def leases(companion: CommandLine) -> list[Any]:
    """What the broker holds, without the cost of a process."""
    with ControlConnection.open(companion.folder / "run" / "control.sock") as connection:
        raw = connection.call("leases.list", ListLeases()).raw
    assert isinstance(raw, dict)
    listed = raw["leases"]
    assert isinstance(listed, list)
    return listed


def wait_for(companion: CommandLine, state: str | None) -> Any:
    """The one lease once it is in this state; None: until there is no lease."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        listed = leases(companion)
        if state is None and not listed:
            return None
        if len(listed) == 1 and listed[0]["state"] == state:
            return listed[0]
        time.sleep(0.02)
    raise AssertionError(f"no lease became {state}")


@pytest.fixture(autouse=True)
def nothing_left(request: pytest.FixtureRequest) -> None:
    """Leases of the test before are over."""
    if "companion" in request.fixturenames:
        wait_for(request.getfixturevalue("companion"), None)


@pytest.mark.requirement("LP-9", "LP-10", "LP-12")
def test_the_app_is_held_while_the_command_runs_and_let_go_after_it(companion: CommandLine) -> None:
    command = (*RUN, "--seconds", "1", "--why", "a\x1b[2Jtest", "--", "cat")
    with companion.start(*command, stdin=subprocess.PIPE) as running:
        held = wait_for(companion, "active")
        assert held["clientName"] == "a\x1b[2Jtest"
        time.sleep(1.2)  # longer than the term: renewed
        assert leases(companion)[0]["state"] == "active"
        assert companion.json("lease", "list")["leases"][0]["holderId"] == held["holderId"]
        told = companion("lease", "list").stdout
        assert "a<U+001B>[2Jtest" in told
        assert "\x1b" not in told
        refused = companion.json("lease", "may-close", APP, exit_code=5)
        assert (refused["allowed"], refused["reason"]) == (False, "leased")
        assert running.communicate("", timeout=10) == ("", "")
        assert running.returncode == 0
    assert wait_for(companion, "grace")["reason"] in ("ended", "holder_died")  # first the one, then the other


@pytest.mark.requirement("LP-10")
def test_a_close_check_is_answered_with_extend(companion: CommandLine) -> None:
    """The command line is stopped until its lease has run out, so that the broker has to ask."""
    command = (*RUN, "--seconds", "1", "--", "cat")
    with companion.start(*command, stdin=subprocess.PIPE) as running:
        wait_for(companion, "active")
        running.send_signal(signal.SIGSTOP)
        wait_for(companion, "expired")
        awake = threading.Timer(0.2, running.send_signal, [signal.SIGCONT])
        awake.start()
        with ControlConnection.open(companion.folder / "run" / "control.sock") as connection:
            answer = connection.call("leases.may_close", MayClose(app_key=APP)).result
        awake.join()
    assert isinstance(answer, MayCloseResult)
    assert (answer.allowed, answer.reason) == (False, Reason.KEPT)


def test_the_exit_status_is_the_commands(companion: CommandLine) -> None:
    assert companion(*RUN, "--", "sh", "-c", "exit 3").returncode == 3
    killed = companion(*RUN, "--required", "--json", "--", "sh", "-c", "echo out; kill -9 $$")
    assert (killed.returncode, killed.stderr) == (137, "out\n")
    assert one_value(killed.stdout) == {"leases": [{"appKey": APP, "code": "accepted"}], "exitStatus": 137}


PASSES = """
import signal, sys
def told(number, frame):
    print(number, flush=True)
    if number == signal.SIGTERM: sys.exit(9)
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM): signal.signal(number, told)
print("ready", flush=True)
while True: signal.pause()
"""


def test_signals_are_passed_on(lonely: CommandLine) -> None:
    with lonely.start(*RUN, "--", sys.executable, "-c", PASSES) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
            running.send_signal(number)
            assert running.stdout.readline() == f"{number.value}\n"
        assert running.wait(10) == 9


def test_ctrl_c_reaches_the_command_once(lonely: CommandLine) -> None:
    """The terminal sends it to the whole foreground group, so it is not passed on a second time."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(COMMAND[0], [*COMMAND, *RUN, "--", sys.executable, "-c", PASSES], lonely.environment)
    seen = b""
    for awaited, keys in ((b"ready\r\n", b"\x03"), (b"2\r\n", b"")):
        while awaited not in seen:
            seen += os.read(terminal, 4096)
        os.write(terminal, keys)
    os.kill(pid, signal.SIGTERM)
    with contextlib.suppress(OSError):  # the end of a terminal
        while data := os.read(terminal, 4096):
            seen += data
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    assert seen.count(b"2\r\n") == 1


def test_an_ignored_signal_stays_ignored(lonely: CommandLine) -> None:
    show = [sys.executable, "-c", "import signal; print(signal.getsignal(signal.SIGHUP).name)"]
    running = subprocess.run(
        ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *COMMAND, *RUN, "--", *show],
        env=lonely.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert running.stdout == "SIG_IGN\n"


def test_without_a_broker_the_command_runs_and_stderr_says_so(lonely: CommandLine) -> None:
    ended = lonely(*RUN, "--", "sh", "-c", "echo ran; exit 4")
    assert (ended.returncode, ended.stdout) == (4, "ran\n")
    assert "without a lease" in ended.stderr


@pytest.mark.requirement("CP-6.5", "CP-6.6")
def test_required_and_no_broker_is_4_and_nothing_runs(lonely: CommandLine) -> None:
    error = lonely.json(*RUN, "--required", "--", "no-such-command", exit_code=4)["error"]
    assert (error["code"], error["retryable"]) == ("NOT_CONNECTED", True)


@pytest.mark.requirement("LP-7", "CP-6.6")
def test_a_refused_lease_is_told_and_the_command_runs(companion: CommandLine) -> None:
    unknown = ("lease", "run", "--app", "no.such.app")
    ended = companion(*unknown, "--", "echo", "ran")
    assert (ended.returncode, ended.stdout) == (0, "ran\n")
    assert "without a lease on no.such.app: unknown_app" in ended.stderr
    required = (*unknown, "--app", APP, "--required", "--", "no-such-command")
    error = companion.json(*required, exit_code=5)["error"]
    assert (error["code"], error["retryable"]) == ("unknown_app", False)


def test_a_command_that_does_not_exist_is_127(lonely: CommandLine) -> None:
    ended = lonely(*RUN, "--json", "--", "no-such-command")
    assert ended.returncode == 127
    assert one_value(ended.stdout)["error"]["code"] == "COMMAND_NOT_FOUND"


@pytest.mark.requirement("G18")
def test_the_commands_own_options_are_not_ours(lonely: CommandLine) -> None:
    assert lonely(*RUN, "--why", "-rf", "--", "echo", "--json", "--help").stdout == "--json --help\n"
    assert lonely(*RUN, "echo", "-n", "--required").stdout == "--required"


def test_a_list_of_several_pages_is_printed_whole(broker: BrokerProcess, companion: CommandLine) -> None:
    holder = broker.holder("many")
    apps = [f"{APP}#{number:03}" for number in range(60)]
    for app in apps:
        holder.begin(app, 600)
    listed = companion.json("lease", "list")
    assert [one["appKey"] for one in listed["leases"]] == apps
    assert listed["nextCursor"] is None
    assert companion.inside("lease", "list").stdout.count("\n") == len(apps)
    for app in apps:
        holder.end(app)


def test_a_reserved_quit_is_done_or_abandoned(companion: CommandLine) -> None:
    ticket = ""
    for command in ("quit-abandoned", "quit-done"):
        allowed = companion.json("lease", "may-close", APP, "--reserve")
        assert allowed | FREE == allowed
        ticket = allowed["ticket"]
        assert companion.json("lease", command, ticket) == {"appKey": APP}
    assert companion.json("lease", "quit-done", ticket, exit_code=5)["error"]["code"] == "NOT_FOUND"
