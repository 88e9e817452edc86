"""The terminal presenter as a process: what it draws at a real terminal, and what a person's keys become."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import termios
import time

import attrs
import pytest

from protocols.presenter.messages import (
    COMMITTED,
    Answer,
    Dismiss,
    Dismissed,
    PairingDecision,
    Presented,
    too_late,
)
from tests.support.hands import SECONDS
from tests.support.seat import ROOT, Seat
from tests.support.table import PAIRING, question


def test_a_person_answers_by_number(seat: Seat) -> None:
    shown = question("r1")
    seat.push(shown)
    assert seat.wait_for(Presented).digest == shown.digest
    assert "Read file?" in seat.see("> ")
    seat.type("2\r")
    answer = seat.wait_for(Answer)
    assert (answer.result, answer.digest) == ({"selectedId": "no"}, shown.digest)
    assert 0 <= answer.input_started_ms < SECONDS * 1000
    seat.reply(COMMITTED)
    seat.see("Your answer has been taken.")


@pytest.mark.requirement("G13", "CP-3.5")
def test_what_was_typed_before_the_prompt_answers_nothing(seat: Seat) -> None:
    seat.see("> ")
    seat.type("1")
    seat.see("1")
    seat.push(question("r1"))
    seat.wait_for(Presented)
    seat.type("1\r1\r")  # while the keys do not count yet
    seat.see("> ")
    seat.type("\r")
    seat.see("> ")
    seat.type("x\r")
    seat.wait_for(Dismissed)


@pytest.mark.requirement("G13")
def test_a_key_held_down_answers_nothing_until_it_rests(seat: Seat) -> None:
    seat.push(question("r1"))
    seat.wait_for(Presented)
    until = time.monotonic() + 1.2
    while time.monotonic() < until:
        seat.type("1\r")
        select.select([seat.broker], [], [], 0.05)
    assert "> " not in seat.screen
    seat.see("> ")
    seat.type("2\r")
    assert seat.wait_for(Answer).result == {"selectedId": "no"}


@pytest.mark.requirement("CP-5.6")
def test_a_pairing_is_approved_by_its_code(seat: Seat) -> None:
    seat.push(PAIRING)
    assert seat.wait_for(Presented).digest == PAIRING.digest
    seen = seat.see("> ")
    assert "Code: 012345" in seen
    assert "24 hours" in seen
    seat.type("approve\r")
    seat.see("the code 012345")
    seat.see("> ")
    seat.type("approve 012345 interact\r")
    decision = seat.wait_for(PairingDecision)
    assert (decision.approved, decision.scopes) == (True, ("interact",))


def test_too_late_is_told(seat: Seat) -> None:
    seat.push(question("r1"))
    seat.wait_for(Presented)
    seat.see("> ")
    seat.type("1\r")
    seat.wait_for(Answer)
    seat.push(Dismiss(request_id="r1", reason="cancelled_by_client"))
    seat.reply(too_late("cancelled", "cancelled_by_client"))
    seat.see("Too late")


def test_a_withdrawn_prompt_takes_no_answer(seat: Seat) -> None:
    seat.push(question("r1"))
    seat.wait_for(Presented)
    seat.see("> ")
    seat.type("1")
    seat.push(Dismiss(request_id="r1", reason="deadline"))
    seat.see("The question is gone: its time is over")
    seat.type("\r")
    assert seat.is_silent()


@pytest.mark.requirement("G08", "CP-6.3")
def test_no_escape_byte_ever_reaches_the_terminal(seat: Seat) -> None:
    hostile = "\x1b[2J\x1b]0;x\x07\u202e\x9b31m"
    shown = question("r1", title=hostile)
    source = attrs.evolve(shown.source, label=hostile, program=hostile)
    seat.push(attrs.evolve(shown, source=source))
    seat.wait_for(Presented)
    seat.see("> ")
    seat.type("\x1b[A\u202e1")
    seat.see("1")
    assert b"\x1b" not in seat.drawn
    assert "\u202e" not in seat.drawn.decode()
    assert "\x9b" not in seat.drawn.decode()


def test_it_ends_and_leaves_the_terminal_as_it_was_when_the_broker_goes(seat: Seat) -> None:
    seat.see("> ")
    assert termios.tcgetattr(seat.slave) != seat.before
    seat.broker.shutdown(socket.SHUT_RDWR)
    assert seat.process.wait(SECONDS) == 0
    assert termios.tcgetattr(seat.slave) == seat.before


def test_a_signal_leaves_the_terminal_as_it_was(seat: Seat) -> None:
    seat.see("> ")
    seat.process.send_signal(signal.SIGTERM)
    assert seat.process.wait(SECONDS) == 0
    assert termios.tcgetattr(seat.slave) == seat.before


def test_without_a_terminal_it_says_so_and_ends() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        done = subprocess.run(
            [sys.executable, "-m", "broker.presenters.terminal", "--stdio"],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            pass_fds=[theirs.fileno()],
            env={**os.environ, "COMPANION_PRESENTER_FD": str(theirs.fileno())},
            timeout=SECONDS,
            check=False,
        )
    assert done.returncode == 1
    assert done.stdout == b""
    assert b"nobody can answer here" in done.stderr


def test_without_its_socket_it_says_so_and_ends() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "COMPANION_PRESENTER_FD"}
    done = subprocess.run(
        [sys.executable, "-m", "broker.presenters.terminal"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 1
    assert b"COMPANION_PRESENTER_FD" in done.stderr
