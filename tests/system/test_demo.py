"""`python -m broker.demo` with real processes: it shows everything, prints no key and leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

DEMO = (sys.executable, "-m", "broker.demo")
STEPS = (
    "nobody is at a terminal, so a script answers",
    "status: approved",
    "state: completed, revision: 3, reason: answered, result: {selectedId: publish}",
    "reason: answered, result: {text: Autumn report}",
    "requests.update = ",
    "state: completed, revision: 4, reason: finished",
    "lease.begin",
    "lease.can_close.request",
    "result: extend_lease",
    "allowed: false, reason: kept",
    "result: allow_close",
    "allowed: true, reason: free",
    "Done.",
)
KEY = re.compile(r"(?<![\w-])[\w-]{43}(?![\w-])")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where the demo makes its private folder; at the end nothing is in it, and no process has to do with it."""
    with tempfile.TemporaryDirectory(prefix="cb-") as name:
        yield Path(name)
        assert list(Path(name).iterdir()) == []
        assert processes_of(Path(name)) == []


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(folder)}


def processes_of(folder: Path) -> list[str]:
    """The command lines of living processes that were started with this folder."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str(folder).encode() in (place / "environ").read_bytes():
                found.append((place / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


@pytest.mark.requirement("CP-5.5", "LP-9", "LP-10", "LP-12")
def test_it_shows_the_main_job_twice_in_a_row(folder: Path) -> None:
    for _ in range(2):
        shown = subprocess.run(
            DEMO,
            env=environment(folder),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (shown.returncode, shown.stderr) == (0, "")
        told = " ".join(shown.stdout.split())
        places = [told.find(step) for step in STEPS]
        assert -1 not in places, dict(zip(STEPS, places, strict=True))
        assert places == sorted(places)
        assert KEY.search(told) is None
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_nothing(folder: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        DEMO, env=environment(folder), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if "pairing.wait" in line:
                break
        demo.send_signal(number)
        demo.stdout.read()
        assert demo.wait(20) == 128 + number


def test_a_reader_that_leaves_ends_the_demo_quietly(folder: Path) -> None:
    with subprocess.Popen(
        DEMO,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as demo:
        assert demo.stdout is not None
        assert demo.stderr is not None
        demo.stdout.readline()
        demo.stdout.close()
        assert "Traceback" not in demo.stderr.read()
        assert demo.wait(20) == 1


class Seat:
    """A person's terminal with the demo on it."""

    def __init__(self, folder: Path) -> None:
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            os.execve(DEMO[0], DEMO, environment(folder))
        self.seen = ""

    def wait_for(self, pattern: str) -> re.Match[str]:
        """What is drawn behind what was waited for before."""
        until = time.monotonic() + 30
        while (found := re.search(pattern, self.seen)) is None:
            ready, _, _ = select.select([self._master], [], [], max(0.0, until - time.monotonic()))
            assert ready, self.seen
            try:
                self.seen += os.read(self._master, 65_536).decode().replace("\r", "")
            except OSError:  # the last process has left the terminal
                raise AssertionError(self.seen) from None
        self.seen = self.seen[found.end() :]
        return found

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def status(self) -> int:
        """The demo's exit status, once it has ended."""
        with contextlib.suppress(OSError):
            while os.read(self._master, 65_536):
                pass
        os.close(self._master)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.fixture
def seat(folder: Path) -> Iterator[Seat]:
    """A seat that is left when the test has failed."""
    seat = Seat(folder)
    yield seat
    with contextlib.suppress(ProcessLookupError):
        os.kill(seat.pid, signal.SIGTERM)
        seat.status()


def test_at_a_terminal_the_person_answers(seat: Seat) -> None:
    seat.wait_for("the terminal: you answer")
    code = seat.wait_for(r'"approve (\d{6})" allows')[1]
    seat.wait_for("\n> ")
    seat.type(f"approve {code}\n")
    seat.wait_for("Keep for later")
    seat.wait_for("\n> ")
    seat.type("2\n")
    seat.wait_for(r"selectedId:\s+later")
    seat.wait_for("0/60 > ")
    seat.type("Zweiter Bericht, äh\n")
    seat.wait_for("text: Zweiter Bericht, äh")
    seat.wait_for(r"progress 1, information: \[\.{20}\] 0% done\n  \| Preparing the report")
    seat.wait_for("progress 1: it is done")
    seat.wait_for("Done. The broker")
    assert seat.status() == 0


def test_a_person_who_leaves_with_ctrl_c_leaves_nothing(seat: Seat) -> None:
    seat.wait_for("pairing.wait")
    seat.type("\x03")
    assert seat.status() == 130


def test_a_person_who_denies_sees_the_rest(seat: Seat) -> None:
    seat.wait_for(r'"deny" nothing')
    seat.wait_for("\n> ")
    seat.type("deny\n")
    seat.wait_for("the pairing is denied")
    seat.wait_for("Done. The broker")
    assert seat.status() == 0
