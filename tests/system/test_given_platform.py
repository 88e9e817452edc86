"""The given case about two brokers, dead sockets and strangers' files: G23."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.broker_process import (
    COMMAND,
    ROOT,
    SOCKETS,
    BrokerProcess,
    environment_of,
    running_broker,
    write_config,
)
from tests.support.children import child, read_line, write_line
from tests.support.lines import GIVE_UP_SECONDS, Rpc, Stopwatch, until

pytestmark = pytest.mark.requirement("G23")

SOON_SECONDS = 10.0
"""The case says two; a start on a slow machine takes a while."""
ROUNDS = 20


def test_a_second_broker_gives_up_and_the_first_notices_nothing(broker: BrokerProcess) -> None:
    before = inodes(broker.runtime)
    client = broker.agent("discover")
    watch = Stopwatch()
    second = start_and_end(broker.folder)
    assert watch.seconds < SOON_SECONDS
    assert second.returncode == 2
    assert second.stderr.count("\n") == 1
    assert "another broker" in second.stderr
    assert inodes(broker.runtime) == before
    client.call("runtime.describe")
    broker.holder("g23")
    broker.control().call("status")


def test_a_second_broker_with_another_runtime_folder_does_not_get_the_store(broker: BrokerProcess) -> None:
    second = start_and_end(broker.folder, COMPANION_RUNTIME_DIR=str(broker.folder / "run2"))
    assert second.returncode == 2
    assert not list((broker.folder / "run2").glob("*.sock"))
    broker.control().call("status")


@pytest.mark.parametrize("name", SOCKETS)
def test_a_broker_leaves_another_servers_socket_alone(folder: Path, name: str) -> None:
    """A server that knows nothing of our lock, as another host of the lease protocol would."""
    write_config(folder)
    (folder / "run").mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.bind(str(folder / "run" / name))
        stranger.listen()
        refused = start_and_end(folder)
        assert refused.returncode == 2
        assert name in refused.stderr
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(folder / "run" / name))
        assert sockets(folder / "run") == [name]


def test_a_start_after_a_crash_takes_the_dead_sockets_over(folder: Path) -> None:
    with running_broker(folder) as first:
        first.kill()
    assert sockets(folder / "run") == sorted(SOCKETS)
    with running_broker(folder) as next_one:
        next_one.greet()
        next_one.holder("g23")
        next_one.control().call("status")
        assert next_one.stop() == 0
    assert sockets(folder / "run") == []


@pytest.mark.parametrize(
    ("name", "kind"),
    [*((name, "file") for name in SOCKETS), (SOCKETS[0], "folder"), (SOCKETS[0], "link")],
)
def test_what_is_no_socket_is_never_removed(folder: Path, name: str, kind: str) -> None:
    write_config(folder)
    (folder / "run").mkdir(mode=0o700)
    place, elsewhere = folder / "run" / name, folder / "elsewhere"
    if kind == "file":
        place.write_text("some text")
    elif kind == "folder":
        place.mkdir()
    else:
        elsewhere.write_text("some text")
        place.symlink_to(elsewhere)
    refused = start_and_end(folder)
    assert refused.returncode == 2
    assert name in refused.stderr
    assert str(folder) not in refused.stderr
    assert place.is_dir() if kind == "folder" else place.read_text() == "some text"
    assert place.is_symlink() == (kind == "link")
    assert sockets(folder / "run") == []


def test_of_two_that_start_at_the_same_moment_one_is_left(folder: Path) -> None:
    """Every other time over the sockets of one that has crashed."""
    write_config(folder)
    with racers() as racing:
        for number in range(ROUNDS):
            write_line(racing, str(folder))
            assert read_line(racing) == "2", "one gives up"
            until(lambda: is_served(folder / "run" / "control.sock"))
            with Rpc.connect(folder / "run" / "ai-protection.sock") as lease:
                lease.send({"action": "session.hello"})
                assert lease.read()["code"] == "invalid_handshake"
            crash = number % 2 == 0
            write_line(racing, "SIGKILL" if crash else "SIGTERM")
            assert read_line(racing) == ("-9" if crash else "0")
            assert sockets(folder / "run") == (sorted(SOCKETS) if crash else [])


@contextmanager
def racers() -> Iterator[subprocess.Popen[str]]:
    """tests/support/two_starts.py, which leaves no broker behind however the test ends."""
    command = (sys.executable, "-m", "tests.support.two_starts")
    with child(command, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(timeout=GIVE_UP_SECONDS)


def start_and_end(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Start a broker that has to give up by itself."""
    return subprocess.run(
        [*COMMAND, "--presenter", "none"],
        cwd=ROOT,
        env={**environment_of(folder), **environment},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def is_served(path: Path) -> bool:
    try:
        with Rpc.connect(path) as control:
            return bool(control.call("status"))
    except OSError:
        return False


def inodes(runtime: Path) -> dict[str, int]:
    return {name: (runtime / name).stat().st_ino for name in SOCKETS}


def sockets(runtime: Path) -> list[str]:
    return sorted(file.name for file in runtime.iterdir() if file.is_socket())
